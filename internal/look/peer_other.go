//go:build !linux

package look

import "net"

// checkPeer relies on the mode of the socket.
func checkPeer(net.Conn) error { return nil }
