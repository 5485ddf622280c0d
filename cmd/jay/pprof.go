package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// pprofHeaderTimeout bounds the time to read the headers of a request for a profile.
const pprofHeaderTimeout = 10 * time.Second

// servePprof serves Go's profiles on a loopback address until ctx ends.
func servePprof(ctx context.Context, address string, mux http.Handler) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	if tcp, is := l.Addr().(*net.TCPAddr); !is || !tcp.IP.IsLoopback() {
		return errors.Join(usageError{text: fmt.Sprintf("--pprof takes a loopback address, not %s", l.Addr())}, l.Close())
	}
	s := &http.Server{ReadHeaderTimeout: pprofHeaderTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		host, _, err := net.SplitHostPort(q.Host)
		if err != nil {
			host = q.Host
		}
		site := q.Header.Get("Sec-Fetch-Site") // an image of a page has no Origin
		if !isLoopbackHost(strings.Trim(host, "[]")) || q.Header.Get("Origin") != "" || site == "cross-site" || site == "same-site" {
			http.Error(w, "profiles are for programs of this machine", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, q)
	})}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	go func() { _ = s.Serve(l) }() // it ends with ctx
	return nil
}
