//go:build !unix

package serve

import "io"

// lockFolder does nothing here.
func lockFolder(string) (io.Closer, error) { return io.NopCloser(nil), nil }
