// Package cluster tests nodes that agree through etcd: real processes on a network that is
// cut, slowed down and mended, with everything that callers saw checked against what may be.
// make cluster runs it.
package cluster
