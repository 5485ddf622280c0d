package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
)

// errStopped is returned by a pager whose user wants to see no more.
var errStopped = errors.New("stopped")

// pager writes results to a terminal, and waits for a key after each page. It holds no
// more than a part of a line. Control characters, which could be commands to the terminal,
// are written as escapes.
type pager struct {
	out     *bufio.Writer
	console *console // nil for no pages
	ctx     context.Context

	width, rows int // of the terminal
	used        int // rows since the last key
	column      int // of the cursor
	endless     bool
	rest        []byte // of a character of which not all bytes have come
}

// newPager begins a result.
func newPager(ctx context.Context, out io.Writer, c *console) *pager {
	p := &pager{out: bufio.NewWriter(out), console: c, ctx: ctx, endless: c == nil}
	if c != nil {
		p.width, p.rows = c.size()
	}
	return p
}

// Write implements io.Writer. It returns errStopped when the user has seen enough, and
// the context's error when that ends at the end of a page.
func (p *pager) Write(b []byte) (int, error) {
	if p.endless && p.console == nil {
		return p.out.Write(b)
	}
	n := len(b)
	if len(p.rest) > 0 {
		b = append(p.rest, b...)
	}
	for len(b) > 0 {
		if !utf8.FullRune(b) {
			break
		}
		r, size := utf8.DecodeRune(b)
		if err := p.write(r); err != nil {
			return 0, err
		}
		b = b[size:]
	}
	p.rest = append([]byte(nil), b...)
	return n, nil
}

// write writes a character.
func (p *pager) write(r rune) error {
	shown := string(r)
	if !isHarmless(r) || r == '\t' {
		shown = fmt.Sprintf(`\u%04x`, r)
	}
	width := 0
	if r != '\n' {
		for _, c := range shown {
			width += text.RuneWidth(c)
		}
		if p.column+width > p.width {
			p.newRow()
		}
	}
	if p.used >= p.rows-1 && !p.endless {
		if err := p.wait(); err != nil {
			return err
		}
	}
	if _, err := p.out.WriteString(shown); err != nil {
		return err
	}
	if p.column += width; r == '\n' {
		p.newRow()
	}
	return nil
}

func (p *pager) newRow() {
	p.used++
	p.column = 0
}

// pagerPrompt is what stands below a page, and pagerErase removes it.
const (
	pagerPrompt = "\x1b[7m-- more: space, Enter for a line, a for all, q to stop --\x1b[0m"
	pagerErase  = "\r\x1b[K"
)

// wait waits for a key.
func (p *pager) wait() error {
	key, err := p.console.readKey(p.ctx, func() error {
		_, err := p.out.WriteString(pagerPrompt)
		return errors.Join(err, p.out.Flush())
	})
	if _, writeErr := p.out.WriteString(pagerErase); writeErr != nil {
		return writeErr
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case err != nil, key == 'q', key == 'Q', key == keyInterrupt, key == 4:
		return errStopped
	case key == '\r', key == '\n', key == 'j':
		p.used = max(0, p.rows-2)
	case key == 'a', key == 'G':
		p.endless = true
	default:
		p.used = 0
	}
	return nil
}

// end writes what is left.
func (p *pager) end() error { return p.out.Flush() }
