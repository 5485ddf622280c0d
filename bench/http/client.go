package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/bench/stats"
)

// conn is a connection that sends prepared requests, one at a time.
type conn struct {
	net.Conn
	in   *bufio.Reader
	body []byte // of the last reply
}

func dial(address string) (*conn, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, in: bufio.NewReaderSize(c, 16<<10)}, nil
}

// request returns the bytes of a request.
func request(method, path string, body []byte) []byte {
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\n", method, path)
	if body != nil {
		head += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return append([]byte(head+"\r\n"), body...)
}

// do sends a request and reads the reply, whose status must be one of 2xx.
func (c *conn) do(request []byte) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	status := string(bytes.TrimSpace(line))
	length, chunked := 0, false
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = true
		}
	}
	c.body = c.body[:0]
	if chunked {
		err = c.chunks()
	} else {
		err = c.append(length)
	}
	if err == nil && (len(status) < 12 || status[9] != '2') {
		err = fmt.Errorf("%s: %.300s", status, c.body)
	}
	return err
}

// append reads n bytes of the body.
func (c *conn) append(n int) error {
	begin := len(c.body)
	c.body = append(c.body, make([]byte, n)...)
	_, err := io.ReadFull(c.in, c.body[begin:])
	return err
}

// chunks reads a body in chunks.
func (c *conn) chunks() error {
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 31)
		if err != nil {
			return err
		}
		if err := c.append(int(n)); err != nil {
			return err
		}
		if _, err := c.in.Discard(2); err != nil || n == 0 {
			return err
		}
	}
}

// dialAll opens n connections. The result of closeAll is to be called.
func dialAll(address string, n int) (conns []*conn, closeAll func(), err error) {
	closeAll = func() {
		for _, c := range conns {
			_ = c.Close() // the replies were read
		}
	}
	for range n {
		c, err := dial(address)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		conns = append(conns, c)
	}
	return conns, closeAll, nil
}

// measure sends requests of a kind over n connections for a time, and returns how many were
// answered in a second.
func (t *target) measure(ctx context.Context, what string, n int, slice time.Duration, l *stats.Latency) (rate float64, err error) {
	conns, closeAll, err := dialAll(t.address, n)
	if err != nil {
		return 0, err
	}
	defer closeAll()
	for _, c := range conns { // so that connections are accepted before the time begins
		if err := c.do(t.make("GET", 0)); err != nil {
			return 0, err
		}
	}
	var all sync.WaitGroup
	var count atomic.Int64
	latencies, failures := make([]stats.Latency, n), make([]error, n)
	begun := time.Now()
	ctx, cancel := context.WithDeadline(ctx, begun.Add(slice))
	defer cancel()
	for i, c := range conns {
		all.Go(func() {
			for ctx.Err() == nil {
				number := int(t.next.Add(1))
				if what != "PUT" {
					number = number * 7919 % t.loaded
				}
				one := t.make(what, number)
				sent := time.Now()
				if failures[i] = c.do(one); failures[i] != nil {
					return
				}
				latencies[i].Record(time.Since(sent))
				if what == "query" && !bytes.Contains(c.body, queryAnswer) {
					failures[i] = fmt.Errorf("the query has not found its documents: %.300s", c.body)
					return
				}
				count.Add(1)
			}
		})
	}
	all.Wait()
	took := time.Since(begun)
	for i := range latencies {
		l.Merge(&latencies[i])
	}
	return float64(count.Load()) / took.Seconds(), errors.Join(failures...)
}

// maxStreams is how many bulk inserts run at a time: Jay refuses what goes beyond the memory that
// it has for them. Of more connections the others are idle.
const maxStreams = 32

// bulk inserts documents over n connections, and returns how many were stored in a second.
func (t *target) bulk(_ context.Context, n, documents int) (rate float64, err error) {
	conns, closeAll, err := dialAll(t.address, n)
	if err != nil {
		return 0, err
	}
	defer closeAll() // of all
	if !t.pocketbase() {
		n = min(n, maxStreams)
		conns = conns[:n]
	}
	begin := int(t.next.Add(int64(documents))) - documents + 1 // number 0 is there already
	requests := make([][][]byte, n)
	for i, c := range conns {
		from, to := begin+documents*i/n, begin+documents*(i+1)/n
		if requests[i], err = t.bulkRequests(c, from, to); err != nil {
			return 0, err
		}
	}
	var all sync.WaitGroup
	failures := make([]error, n)
	begun := time.Now()
	for i, c := range conns {
		all.Go(func() {
			for _, one := range requests[i] {
				if failures[i] = c.do(one); failures[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	took := time.Since(begun)
	if t.loaded == 0 {
		t.loaded = documents
	}
	return float64(documents) / took.Seconds(), errors.Join(failures...)
}
