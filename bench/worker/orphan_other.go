//go:build !linux

package worker

import "syscall"

// dieWithParent does nothing here: a worker ends when its input does.
func dieWithParent() *syscall.SysProcAttr { return nil }
