package lsm

import "os"

// lockDir does nothing on Windows, where Pebble's file LOCK is enough: it is
// open without any sharing. While the handle is open, neither this process nor
// another can open, replace or remove the file, nor rename the directory; a program
// that copies the directory cannot read the file. LockFileEx would add nothing, and
// its locks also stop readers. A reader that shares the
// directory has no lock: a process that opens it to write later is not excluded.
func lockDir(*os.File, bool) error { return nil }

// unlockDir does nothing.
func unlockDir(*os.File) error { return nil }
