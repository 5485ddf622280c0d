//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// other returns the user whom the server runs as, if this one may not run it, as root may not.
func other() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
	}
	return nil, errors.New("root may not run PostgreSQL, and there is no user postgres or nobody")
}

// asOther makes a command run as the user whom the server runs as.
func asOther(c *exec.Cmd) {
	if credential, err := other(); err == nil && credential != nil {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	}
}

// giveAway gives directories to that user.
func giveAway(dirs ...string) error {
	credential, err := other()
	if err != nil || credential == nil {
		return err
	}
	for _, dir := range dirs {
		if err := os.Chown(dir, int(credential.Uid), int(credential.Gid)); err != nil {
			return err
		}
	}
	return nil
}

// killAll kills a process and its children at once.
func killAll(pid int) error {
	out, err := exec.Command("ps", "-o", "pid=", "--ppid", strconv.Itoa(pid)).Output()
	if err != nil {
		return fmt.Errorf("list the children of %d: %w", pid, err)
	}
	errs := []error{syscall.Kill(pid, syscall.SIGKILL)}
	for _, child := range strings.Fields(string(out)) {
		n, err := strconv.Atoi(child)
		if err == nil {
			err = syscall.Kill(n, syscall.SIGKILL)
		}
		if !errors.Is(err, syscall.ESRCH) { // it may have ended by itself
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
