package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is a progress bar on stderr. The nil progress, for a stderr that is not
// a terminal, shows nothing.
type progress struct{ bar *progressbar.ProgressBar }

// newProgress starts a bar over total bytes; a total below 0 is unknown.
func (a *app) newProgress(what string, total int64) *progress {
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
	return &progress{progressbar.NewOptions64(total, append(options,
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWriter(a.stderr),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)...)}
}

// showsProgress reports whether bars are shown at all.
func (a *app) showsProgress() bool { return !a.json && isTerminal(a.stderr) }

// add moves the bar on by n bytes. It is safe for concurrent use. It ignores
// errors of drawing.
func (p *progress) add(n int) {
	if p != nil {
		_ = p.bar.Add(n)
	}
}

// set moves the bar to n.
func (p *progress) set(n int64) {
	if p != nil {
		_ = p.bar.Set64(n)
	}
}

// done removes the bar from the screen.
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
