//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package lsm

import "os"

// lockDir does nothing on systems without flock. Solaris has Pebble's file
// LOCK, a lock by fcntl: a process loses it when it opens and closes that
// file, so a program that copies the directory must be another process there.
// Pebble can lock no file on AIX: Open fails. For Plan 9, JavaScript and WASI
// it cannot be built.
func lockDir(*os.File, bool) error { return nil }

// unlockDir does nothing.
func unlockDir(*os.File) error { return nil }
