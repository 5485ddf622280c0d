package worker

import "syscall"

// DieWithParent kills a worker when the thread that started it ends, however
// that comes about: a worker that is stopped would stay for ever. The thread
// must be one that lives as long as the program (runtime.LockOSThread).
func DieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
