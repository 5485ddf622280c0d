//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
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

// killAll kills a process and its children at once. The process is stopped first, so that it makes no more of them.
func killAll(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	out, err := exec.Command("ps", "-o", "pid=", "--ppid", strconv.Itoa(pid)).Output()
	if err != nil {
		return fmt.Errorf("list the children of %d: %w", pid, err)
	}
	pids := []int{pid}
	for _, child := range strings.Fields(string(out)) {
		n, err := strconv.Atoi(child)
		if err != nil {
			return err
		}
		pids = append(pids, n)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) { // it may have ended by itself
			return err
		}
	}
	// One that waits for the disk ends after that.
	for until := time.Now().Add(time.Minute); slices.ContainsFunc(pids, runs); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			return errors.New("the server's processes do not end")
		}
	}
	return nil
}

// runs reports whether there is a process that has not ended.
func runs(pid int) bool {
	out, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output() // fails if there is none
	return len(out) > 0 && out[0] != 'Z'
}
