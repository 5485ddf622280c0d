package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// stdinName is the argument for standard input or output.
const stdinName = "-"

// errLongInput is returned for input that is longer than it may be.
var errLongInput = errors.New("the input is too long")

// standardInput is what a command reads that is given no file.
type standardInput struct {
	io.Reader
	prompts io.Writer // a terminal at which somebody may have to type, or nil
}

func (a *app) input() standardInput {
	in := standardInput{Reader: a.stdin}
	if a.isTerminal(a.stdin) && a.isTerminal(a.stderr) {
		in.prompts = a.stderr
	}
	return in
}

// prompt prints on a terminal that the command waits for input, so that it does not seem to hang.
func (in standardInput) prompt(what string) {
	if in.prompts != nil {
		fmt.Fprintf(in.prompts, "type or paste %s, then Ctrl-D on a line of its own\n", what)
	}
}

// read reads a file, or standard input if its name is "" or "-": on a terminal it says that it waits for what. It returns how messages name
// the input, and its text without a byte order mark, as editors on Windows write it; or errLongInput for more than limit bytes.
func (in standardInput) read(ctx context.Context, file, what string, limit int) (name string, text []byte, err error) {
	name, r := "standard input", in.Reader
	if file != "" && file != stdinName {
		f, err := os.Open(file)
		if err != nil {
			return file, nil, err
		}
		defer f.Close()
		name, r = file, f
	} else {
		in.prompt(what)
	}
	ahead := newReadAhead(ctx, r)
	defer ahead.stop()
	text, err = io.ReadAll(io.LimitReader(ahead, int64(limit)+1))
	switch {
	case err != nil:
		return name, nil, fmt.Errorf("read %s: %w", name, err)
	case len(text) > limit:
		return name, nil, errLongInput
	}
	return name, bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), nil
}

// readAhead reads from a reader in the background, a few chunks ahead, so that
// decompressing and storing overlap, and so that a context can end the wait for
// input.
type readAhead struct {
	ctx    context.Context
	cancel context.CancelFunc
	full   chan chunk  // chunks that were read
	free   chan []byte // buffers to read into
	rest   chunk       // the unread part of the current chunk
	whole  []byte      // the buffer of the current chunk
}

// chunk is what one Read returned.
type chunk struct {
	data []byte
	err  error
}

const (
	chunkBytes  = 256 << 10
	chunksAhead = 3
)

func newReadAhead(ctx context.Context, r io.Reader) *readAhead {
	ctx, cancel := context.WithCancel(ctx)
	a := &readAhead{ctx: ctx, cancel: cancel, full: make(chan chunk, chunksAhead), free: make(chan []byte, chunksAhead)}
	for range chunksAhead {
		a.free <- make([]byte, chunkBytes)
	}
	go a.fill(r)
	return a
}

// fill runs in the background until r ends or a stops. A Read that never returns
// leaks its goroutine.
func (a *readAhead) fill(r io.Reader) {
	for {
		var buffer []byte
		select {
		case buffer = <-a.free:
		case <-a.ctx.Done():
			return
		}
		n, err := r.Read(buffer)
		select {
		case a.full <- chunk{buffer[:n], err}:
		case <-a.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader. It returns the context's error when that ends.
func (a *readAhead) Read(p []byte) (int, error) {
	if err := a.ctx.Err(); err != nil {
		return 0, err
	}
	for len(a.rest.data) == 0 {
		if a.rest.err != nil {
			return 0, a.rest.err
		}
		if a.whole != nil {
			a.free <- a.whole[:cap(a.whole)]
			a.whole = nil
		}
		select {
		case a.rest = <-a.full:
			a.whole = a.rest.data
		case <-a.ctx.Done():
			return 0, a.ctx.Err()
		}
	}
	n := copy(p, a.rest.data)
	a.rest.data = a.rest.data[n:]
	return n, nil
}

// stop ends the reading in the background.
func (a *readAhead) stop() { a.cancel() }

// errLongLine is returned for a line that is longer than it may be.
var errLongLine = errors.New("the line is too long")

// readLine reads a line with its end, of at most limit bytes.
func readLine(r *bufio.Reader, limit int) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, errLongLine
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// countedReader calls count with the number of bytes of each Read.
type countedReader struct {
	r     io.Reader
	count func(n int)
}

// Read implements io.Reader.
func (c countedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.count(n)
	return n, err
}
