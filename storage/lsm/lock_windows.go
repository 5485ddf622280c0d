package lsm

import "os"

// lockDir does nothing on Windows, where Pebble's file LOCK is enough: it is
// open without any sharing. While the handle is open, neither this process nor
// another can open, replace or remove the file, nor rename the directory; a program
// that copies the directory cannot read the file. LockFileEx would add nothing, and
// its locks also stop readers.
func lockDir(*os.File) error { return nil }

// unlockDir does nothing.
func unlockDir(*os.File) error { return nil }
