//go:build !unix

package worker

import "os"

// Here a process that waits for its turn may go on with its background work.
func pause(*os.Process) error  { return nil }
func resume(*os.Process) error { return nil }

// FlushDisk does nothing here.
func FlushDisk() {}
