//go:build !linux

package engine

import "os"

// dataSync waits until the file's content is on disk.
func dataSync(f *os.File) error { return f.Sync() }
