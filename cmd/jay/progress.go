package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is a bar on stderr, or nothing if that is not a terminal. The nil
// progress shows nothing.
type progress struct{ bar *progressbar.ProgressBar }

// newProgress starts a bar over total bytes; a total below 0 is unknown.
func (a *app) newProgress(what string, total int64) *progress {
	if a.json || !isTerminal(a.stderr) {
		return nil
	}
	return &progress{progressbar.NewOptions64(total,
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWriter(a.stderr),
		progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)}
}

// add moves the bar on by n bytes. It is safe for concurrent use. A bar that
// cannot be drawn is no reason to stop.
func (p *progress) add(n int) {
	if p != nil {
		_ = p.bar.Add(n)
	}
}

// done takes the bar off the screen.
func (p *progress) done() {
	if p != nil {
		_ = p.bar.Exit()
		_ = p.bar.Clear()
	}
}

func isTerminal(w io.Writer) bool {
	f, is := w.(*os.File)
	return is && term.IsTerminal(int(f.Fd()))
}
