//go:build !unix

package workload

import "io/fs"

// allocatedBytes is the length of a file.
func allocatedBytes(info fs.FileInfo) int64 { return info.Size() }
