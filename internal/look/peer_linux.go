package look

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// checkPeer refuses a process of another user, unless it is root's. A connection in memory has no other process.
func checkPeer(conn net.Conn) error {
	socket, is := conn.(*net.UnixConn)
	if !is {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var peer *syscall.Ucred
	failed := raw.Control(func(fd uintptr) {
		peer, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return err
	case peer.Uid != 0 && int(peer.Uid) != os.Geteuid():
		return fmt.Errorf("the database belongs to another user than %d", peer.Uid)
	}
	return nil
}
