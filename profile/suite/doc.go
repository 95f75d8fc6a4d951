// Package suite holds the workloads that ship with cotenant: suite.yaml and
// the scripts it starts, from Debian's packages (packages.txt).
//
//	path, err := suite.Unpack(dir) // dir/suite.yaml and its scripts
//	s, err := profile.LoadSuite(path)
package suite
