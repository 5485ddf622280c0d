package odd_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"time"
)

// frames makes what a client of the socket of changes sends: commands, and some that are none.
func (o *odds) frames() []byte {
	var all []byte
	for range 1 + o.IntN(5) {
		text := fmt.Sprintf(`{"CommandId":%s,"Command":%s,"Param":%s}`, o.pick("1", "2", "-1", "null", `"x"`, "1e400"), o.pick(`"watch-docs"`, `"watch-doc"`, `"watch-prefix"`, `"watch-collection"`, `"watch-indexes"`, `"watch-index"`, `"watch-operations"`, `"watch-operation"`, `"unwatch-docs"`, `"unwatch-doc"`, `"x"`, "null"), o.pick(`"odd/1"`, "null", `""`, "1", `"Odd"`, "[]"))
		text = o.spoil(text)
		if len(text) > 60_000 {
			text = text[:60_000]
		}
		kind := byte(0x81)
		if o.chance(15) {
			kind = byte(o.IntN(256))
		}
		switch {
		case len(text) < 126:
			all = append(all, kind, 0x80|byte(len(text)))
		default:
			all = binary.BigEndian.AppendUint16(append(all, kind, 0x80|126), uint16(len(text)))
		}
		all = append(all, 0, 0, 0, 0) // the mask, which changes nothing
		all = append(all, text...)
	}
	return all
}

// socket opens the socket of changes of a database, sends frames and leaves. It returns what the log says about it.
func (h *host) socket(database string, frames []byte) string {
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.http.URL, "http://"))
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /databases/%s/changes HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", database)
	_, _ = conn.Write(frames) // the server may have left
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	buffer := make([]byte, 4096)
	for err == nil {
		_, err = conn.Read(buffer)
	}
	return h.log.take()
}
