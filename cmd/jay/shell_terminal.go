package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// errInterrupt is returned by console.readLine for Ctrl-C.
var errInterrupt = errors.New("interrupted")

// console is the terminal of a shell. It reads lines, which the user can edit, and
// single keys, and knows its size. It is used by one goroutine.
type console struct {
	in   *typed
	out  io.Writer
	raw  func() (restore func() error, err error) // enters raw mode, in which keys arrive at once and raise no signals
	size func() (width, height int)

	editor *term.Terminal
	keys   *keyReader

	complete func(before string) completion // nil for none
	history  *history
	searched int    // history entry that Ctrl-R has found, -1 for none
	search   string // text that Ctrl-R searches for
}

// newConsole returns the console of two files that are a terminal.
func newConsole(in, out *os.File, h *history) *console {
	return newConsoleOn(in, out, h, func() (func() error, error) {
		undo, err := enableEscapes(out)
		if err != nil {
			return nil, err
		}
		state, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return nil, errors.Join(err, undo())
		}
		return func() error { return errors.Join(term.Restore(int(in.Fd()), state), undo()) }, nil
	}, func() (int, int) {
		width, height, err := term.GetSize(int(out.Fd()))
		if err != nil || width < 1 || height < 1 {
			return 80, 24
		}
		return width, height
	})
}

// newConsoleOn returns the console of any terminal.
func newConsoleOn(in io.Reader, out io.Writer, h *history, raw func() (func() error, error), size func() (int, int)) *console {
	c := &console{in: &typed{r: in}, out: out, raw: raw, size: size, history: h, searched: -1}
	c.keys = &keyReader{r: c.in, before: func() { _ = c.editor.SetSize(size()) }}
	c.editor = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{c.keys, out}, "")
	c.editor.History = h
	c.editor.AutoCompleteCallback = c.onKey
	return c
}

// maxTypedLine is the greatest length of a line, in characters. The editor drops what
// is typed beyond it.
const maxTypedLine = 4096

// readLine reads a line that the user edits. It returns errInterrupt for Ctrl-C, io.EOF
// for Ctrl-D on an empty line, and the context's error when that ends. A line that is too
// long to be edited is refused: some of it was dropped.
func (c *console) readLine(ctx context.Context, prompt string) (line string, err error) {
	restore, err := c.raw()
	if err != nil {
		return "", err
	}
	c.editor.SetPrompt(prompt)
	c.editor.SetBracketedPasteMode(true)
	err = await(ctx, func() (err error) {
		line, err = c.editor.ReadLine()
		return err
	})
	if ctx.Err() != nil { // the editor is still reading: do not reset it
		_, _ = io.WriteString(c.out, "\x1b[?2004l\r\n")
		return "", errors.Join(err, restore())
	}
	c.editor.SetBracketedPasteMode(false)
	c.searched = -1
	if restoreErr := restore(); restoreErr != nil {
		return "", errors.Join(err, restoreErr)
	}
	if c.keys.takeInterrupt() {
		return "", errInterrupt
	}
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	if err == nil && utf8.RuneCountInString(line) >= maxTypedLine {
		return "", fmt.Errorf("a line of %d characters or more, of which the rest is lost: break it, or give it to jay shell in a file", maxTypedLine)
	}
	return line, err
}

// await runs fn and returns its error, or the context's error if that ends first.
func await(ctx context.Context, fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readKey shows a prompt, waits for a key and returns its first byte. From the prompt
// on, keys raise no signals.
func (c *console) readKey(ctx context.Context, prompt func() error) (key byte, err error) {
	restore, err := c.raw()
	if err != nil {
		return 0, err
	}
	err = prompt()
	if err == nil {
		var b []byte // a key such as PgDn has several bytes
		if b, err = c.in.next(ctx); err == nil {
			key = b[0]
		}
	}
	return key, errors.Join(err, restore())
}

// typed reads a terminal. A read can be abandoned: the next one returns its bytes, so
// that none are lost. It is used by one goroutine.
type typed struct {
	r       io.Reader
	reading chan typedBytes // receives the result of an abandoned read; nil for none
	held    []byte          // bytes that were read and not returned yet
}

// typedBytes is the result of a read.
type typedBytes struct {
	bytes []byte
	err   error
}

// next returns the next typed bytes, at least one. It returns the context's error if
// that ends first.
func (t *typed) next(ctx context.Context) ([]byte, error) {
	if len(t.held) > 0 {
		b := t.held
		t.held = nil
		return b, nil
	}
	if t.reading == nil {
		reading := make(chan typedBytes, 1)
		go func() {
			var b [256]byte
			n, err := t.r.Read(b[:])
			reading <- typedBytes{b[:n], err}
		}()
		t.reading = reading
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case read := <-t.reading:
		t.reading = nil
		if len(read.bytes) > 0 {
			return read.bytes, nil // the next read returns the error again
		}
		return nil, cmp.Or(read.err, io.ErrNoProgress)
	}
}

// Read implements io.Reader.
func (t *typed) Read(p []byte) (int, error) {
	b, err := t.next(context.Background())
	n := copy(p, b)
	t.held = b[n:]
	return n, err
}

// Keys that the shell handles itself.
const (
	keyInterrupt = 3
	keyTab       = '\t'
	keySearch    = 18 // Ctrl-R
)

// onKey is called by the editor for each key that it does not know itself.
func (c *console) onKey(line string, pos int, key rune) (string, int, bool) {
	switch key {
	case keyTab:
		return c.onTab(line, pos)
	case keySearch:
		return c.onSearch(line)
	}
	c.searched = -1
	return "", 0, false
}

// onTab completes the word before the cursor as far as it is unambiguous, or shows the
// candidates.
func (c *console) onTab(line string, pos int) (string, int, bool) {
	if c.complete == nil {
		return line, pos, true
	}
	found := c.complete(line[:pos])
	if found.insert != "" {
		head := line[:pos-min(pos, found.replace)] + found.insert
		return head + line[pos:], len(head), true
	}
	if len(found.candidates) > 0 {
		width, _ := c.size()
		_, _ = io.WriteString(c.editor, inColumns(found.candidates, width)+found.more)
	}
	return line, pos, true
}

// onSearch replaces the line with the newest history entry that contains it, and then
// with older ones.
func (c *console) onSearch(line string) (string, int, bool) {
	if c.searched < 0 {
		c.search = line
	}
	next := c.history.find(c.search, c.searched)
	if next < 0 {
		return line, len(line), true
	}
	c.searched = next
	return c.history.At(next), len(c.history.At(next)), true
}

// inColumns lays words out in columns.
func inColumns(words []string, width int) string {
	column := 0
	for _, w := range words {
		column = max(column, displayWidth(w)+2)
	}
	perRow := max(1, (width-1)/column)
	var b strings.Builder
	for i, w := range words {
		b.WriteString(w)
		if i%perRow == perRow-1 || i == len(words)-1 {
			b.WriteByte('\n')
			continue
		}
		b.WriteString(strings.Repeat(" ", column-displayWidth(w)))
	}
	return b.String()
}

// keyReader passes keys to the editor. In place of Ctrl-C, which would end the editor
// without clearing its line, it sends keys that clear the line and end it.
type keyReader struct {
	r           io.Reader
	before      func() // called before each read
	held        []byte // bytes that were read and not returned yet
	interrupted bool   // the next line to end was ended by Ctrl-C
}

// abandonLine has the keys that end a paste, move to the end of the line, delete the
// line, and end it.
const abandonLine = "\x1b[201~\x05\x15\r"

// Read implements io.Reader.
func (k *keyReader) Read(p []byte) (int, error) {
	if len(k.held) == 0 {
		k.before()
		b := make([]byte, len(p))
		n, err := k.r.Read(b)
		if n == 0 {
			return 0, err
		}
		k.held = b[:n] // the next read returns the error again
	}
	if k.held[0] == keyInterrupt && len(p) >= len(abandonLine) {
		k.held = k.held[1:]
		k.interrupted = true
		return copy(p, abandonLine), nil
	}
	end := len(k.held)
	if i := strings.IndexByte(string(k.held[1:]), keyInterrupt); i >= 0 {
		end = i + 1
	}
	n := copy(p, k.held[:end])
	k.held = k.held[n:]
	return n, nil
}

// takeInterrupt reports whether the last line was ended by Ctrl-C.
func (k *keyReader) takeInterrupt() bool {
	was := k.interrupted
	k.interrupted = false
	return was
}
