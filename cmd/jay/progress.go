package main

import (
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is a progress bar on stderr. A nil progress, for a stderr that is not a
// terminal, shows nothing. The bar is drawn after a delay, because a rate of the first
// moments would be meaningless.
type progress struct {
	bar     *progressbar.ProgressBar
	elapsed func() time.Duration // since the beginning
	waiting atomic.Int64         // added before the bar was drawn
	drawn   atomic.Bool
}

// barDelay is the time after which the bar is drawn.
const barDelay = 500 * time.Millisecond

// newByteProgress starts a bar over total bytes; a total below 0 is unknown.
func (a *app) newByteProgress(what string, total int64) *progress {
	return a.newBar(what, total, progressbar.OptionShowBytes(true))
}

// newCountProgress starts a bar over total documents.
func (a *app) newCountProgress(what string, total int64) *progress {
	return a.newBar(what, total, progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("documents"))
}

func (a *app) newBar(what string, total int64, options ...progressbar.Option) *progress {
	if !a.showsProgress() {
		return nil
	}
	return newProgress(progressbar.NewOptions64(total, append(options,
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWriter(a.stderr),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)...))
}

func newProgress(bar *progressbar.ProgressBar) *progress {
	bar.StartWithoutRender() // starts the clock of the rate
	start := time.Now()
	return &progress{bar: bar, elapsed: func() time.Duration { return time.Since(start) }}
}

// showsProgress reports whether bars are shown at all.
func (a *app) showsProgress() bool { return !a.json && isTerminal(a.stderr) }

// add advances the bar by n bytes. It is safe for concurrent use, and ignores errors of
// drawing.
func (p *progress) add(n int) {
	switch {
	case p == nil:
	case p.elapsed() < barDelay:
		p.waiting.Add(int64(n))
	default:
		p.drawn.Store(true)
		_ = p.bar.Add64(int64(n) + p.waiting.Swap(0))
	}
}

// set moves the bar to n.
func (p *progress) set(n int64) {
	if p != nil && p.elapsed() >= barDelay {
		p.drawn.Store(true)
		_ = p.bar.Set64(n)
	}
}

// done removes the bar from the screen.
func (p *progress) done() {
	if p != nil && p.drawn.Load() {
		_ = p.bar.Exit()
		_ = p.bar.Clear()
	}
}

// isTerminal reports whether a reader or writer is a terminal.
func isTerminal(stream any) bool {
	f, is := stream.(*os.File)
	return is && term.IsTerminal(int(f.Fd()))
}

// terminalWidth returns the width of the terminal w, 0 if w is not a terminal.
func terminalWidth(w io.Writer) int {
	if !isTerminal(w) {
		return 0
	}
	width, _, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil {
		return 0
	}
	return width
}
