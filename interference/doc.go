// Package interference answers one question: on this class of node, with
// these tasks together, how fast is each, and how sure are we?
package interference
