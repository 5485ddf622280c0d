package server_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/standby"
)

// Ensure that a standby follows a database of the server, leaves with it, and comes back; and that what is no request of a
// standby is refused.
func TestFollow(t *testing.T) {
	h := start(t)
	h.do("PUT", "/admin/databases?name=shop", `{}`)
	h.do("PUT", "/databases/shop/docs?id=users/1", `{"Name":"Ann"}`)
	address := h.http.URL + "/jay/v1/databases/shop/follow"
	s, err := standby.Open(filepath.Join(t.TempDir(), "copy"), standby.URL(h.http.Client(), address), standby.Options{Retry: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	has := func(id string) {
		t.Helper()
		for {
			db, err := s.DB(ctx)
			if err != nil {
				t.Fatalf("%v: %+v", err, s.Status())
			}
			if found, _ := db.Exists(ctx, id); found { // a database that was closed is asked for again
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	has("users/1")
	h.do("PUT", "/databases/shop/docs?id=users/2", `{"Name":"Bob"}`)
	has("users/2")

	for body, says := range map[string]string{"please": "damaged", "": "damaged", standbyMagic + strings.Repeat("\xff", 9): "bytes"} {
		if a := h.do("POST", "/jay/v1/databases/shop/follow", body); a.status != 400 || !strings.Contains(a.body, says) {
			t.Errorf("%q: status %d, %s", body, a.status, a.body)
		}
	}
	for _, head := range []string{"Content-Length: 272629761\r\n", "Transfer-Encoding: chunked\r\n"} {
		c, err := net.Dial("tcp", h.http.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("POST /jay/v1/databases/shop/follow HTTP/1.1\r\nHost: localhost\r\n" + head + "\r\n")); err != nil {
			t.Error(err)
		}
		reply := make([]byte, 12)
		if _, err := c.Read(reply); err != nil || string(reply) != "HTTP/1.1 400" {
			t.Errorf("%s: %q, %v", head, reply, err)
		}
		_ = c.Close() // the reply was read
	}
	if a := h.do("POST", "/jay/v1/databases/none/follow", "please"); a.status != 503 {
		t.Errorf("no database: status %d, %s", a.status, a.body)
	}

	// The database is deleted, and the standby stays what it was.
	h.do("DELETE", "/admin/databases", `{"DatabaseNames":["shop"],"HardDelete":true}`)
	for s.Status().Connected {
		time.Sleep(time.Millisecond)
	}
	has("users/2")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

const standbyMagic = "jay standby, version 1\n"
