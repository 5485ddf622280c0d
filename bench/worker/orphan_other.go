//go:build !linux

package worker

import "syscall"

// DieWithParent does nothing here: a worker ends when its input does.
func DieWithParent() *syscall.SysProcAttr { return nil }
