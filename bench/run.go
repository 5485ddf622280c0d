package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/fixture"
	"github.com/jaydb/jay/bench/report"
	"github.com/jaydb/jay/bench/worker"
	"github.com/jaydb/jay/bench/workload"
)

// aloneBytes is how much data an engine may have in a workload that all engines
// run in turns: their processes hold it all at the same time.
const aloneBytes = 1 << 30

// growthSizes are the numbers of documents of -growth, up to -docs; the smoke
// test has its own.
var (
	growthSizes = []int{10_000, 100_000, 1_000_000, 5_000_000}
	smokeSizes  = []int{1_000, 4_000}
)

// bench is a run of the program.
type bench struct {
	*options
	only   *regexp.Regexp
	dir    string // for everything that is removed at the end
	makers []engine.Maker
	report *report.Report
	runs   int // number of process directories made

	terminal bool // progress is seen
}

// run runs everything and prints it. Failed is true if a check failed, or an
// engine.
func (o *options) run() (failed bool, err error) {
	b := &bench{options: o, terminal: isTerminal(os.Stderr)}
	if b.only, err = regexp.Compile(o.only); err != nil {
		return false, err
	}
	if o.docs < 1000 || o.rounds < 1 || o.rounds > fixture.LastRevision-fixture.FirstRevision-1 {
		return false, errors.New("at least 1000 documents, and 1 to 88 rounds")
	}
	if b.dir, err = os.MkdirTemp(o.dir, "jay-bench-"); err != nil {
		return false, err
	}
	onInterrupt(b.dir)
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := b.prepare(); err != nil {
		return false, err
	}

	started := time.Now()
	for _, p := range b.params() {
		for _, w := range workload.All(p) {
			if b.only.MatchString(w.Name) {
				b.measure(w, p)
			}
		}
	}
	return b.finish(time.Since(started))
}

// prepare chooses the engines and describes the machine.
func (b *bench) prepare() error {
	machine, err := report.ThisMachine(b.dir)
	if err != nil {
		return err
	}
	b.report = &report.Report{Machine: machine, LeftOut: make(map[string]string)}
	wanted := strings.FieldsFunc(b.engines, func(r rune) bool { return r == ',' || r == ' ' })
	for _, name := range wanted {
		if _, ok := engine.ByName(name); !ok {
			return fmt.Errorf("no engine %q: see -list", name)
		}
	}
	for _, m := range engine.Makers() {
		switch {
		case len(wanted) > 0 && !slices.Contains(wanted, m.Name) && !slices.Contains(wanted, m.VariantOf):
		case m.Missing != "":
			b.report.LeftOut[m.Name] = m.Missing
			fmt.Fprintf(os.Stderr, "%s is left out: %s\n", m.Name, m.Missing)
		default:
			b.makers = append(b.makers, m)
		}
	}
	b.report.Engines = b.makers
	if b.profileDir != "" {
		return os.MkdirAll(b.profileDir, 0o755)
	}
	return nil
}

// params returns what the workloads are made from: once, or once for each
// size of -growth.
func (b *bench) params() []workload.Params {
	p := workload.Params{Docs: b.docs, Size: b.size, Rounds: b.rounds, Limit: b.limit, Growth: b.growth}
	if !b.growth {
		p.RealFile = b.realFile()
		b.report.Params = p
		b.report.Params.RealFile = ""
		return []workload.Params{p}
	}
	b.report.Params = p
	sizes := growthSizes
	if b.smoke {
		sizes = smokeSizes
	}
	var all []workload.Params
	for _, docs := range sizes {
		if docs <= b.docs {
			p.Docs = docs
			all = append(all, p)
		}
	}
	return all
}

// realFile writes what `go list -json std` says to a file. Without the go
// command there are no real documents.
func (b *bench) realFile() string {
	text, err := exec.Command("go", "list", "-json", "std").Output()
	file := filepath.Join(b.dir, "std.json")
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "real documents are left out: go list -json std:", err)
		return ""
	}
	return file
}

// measure runs one workload on all engines and adds its row.
func (b *bench) measure(w workload.Workload, p workload.Params) {
	row := &report.Row{Workload: w, Alone: w.Bytes() > aloneBytes}
	var makers []engine.Maker
	for _, m := range b.makers {
		if w.RunsOn(m) {
			makers = append(makers, m)
			row.Lines = append(row.Lines, &report.Line{Engine: m.Name})
		}
	}
	if len(makers) == 0 {
		return
	}
	if row.Alone {
		for _, l := range row.Lines {
			b.inTurns([]*report.Line{l}, w, p)
		}
	} else {
		b.inTurns(row.Lines, w, p)
	}
	row.Finish()
	b.report.Rows = append(b.report.Rows, row)
	b.progress("")
	if b.smoke {
		fmt.Println(row.Brief())
	} else {
		fmt.Fprintln(os.Stderr, row.Brief())
	}
}

// inTurns runs a workload on the engines of lines, round by round. An engine
// that fails says so in its line, and takes no further part.
func (b *bench) inTurns(lines []*report.Line, w workload.Workload, p workload.Params) {
	processes := make([]*worker.Process, len(lines))
	dirs := make([]string, len(lines))
	for i, l := range lines {
		b.progress("%s: %s: prepare", w.Name, l.Engine)
		var err error
		if dirs[i], err = b.newDir(l.Engine); err == nil {
			processes[i], err = worker.Start(worker.Spec{
				Engine: l.Engine, Workload: w.Name, Params: p, Dir: dirs[i], ProfileDir: b.profileDir,
			}, w.Killed)
		}
		l.Fail(err)
	}
	for round := range w.Rounds {
		b.each(len(lines), func(turn int) {
			i := (turn + round) % len(lines) // none always follows the same one
			if lines[i].Error != "" {
				return
			}
			b.progress("%s: round %d of %d: %s", w.Name, round+1, w.Rounds, lines[i].Engine)
			if w.Writes && !b.smoke {
				worker.FlushDisk()
			}
			result, err := processes[i].Round()
			if err != nil {
				lines[i].Fail(err)
				return
			}
			lines[i].Add(result)
		})
	}
	b.each(len(lines), func(i int) {
		b.progress("%s: %s: check", w.Name, lines[i].Engine)
		b.end(lines[i], processes[i], dirs[i])
	})
}

// each calls fn for each engine of n, one after another; but all at once in a
// smoke test, whose figures say nothing and whose time is short.
func (b *bench) each(n int, fn func(i int)) {
	if !b.smoke {
		for i := range n {
			fn(i)
		}
		return
	}
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { fn(i) })
	}
	group.Wait()
}

// end has an engine's data checked, and removes it.
func (b *bench) end(l *report.Line, p *worker.Process, dir string) {
	if l.Error == "" {
		summary, err := p.Finish()
		l.Summary = summary
		l.Fail(err)
	}
	if l.Error != "" && p != nil {
		l.Fail(p.Kill())
	}
	l.Fail(os.RemoveAll(dir))
}

// newDir makes a directory for one engine's process.
func (b *bench) newDir(name string) (string, error) {
	b.runs++
	dir := filepath.Join(b.dir, fmt.Sprintf("%d-%s", b.runs, name))
	return dir, os.Mkdir(dir, 0o755)
}

// progress shows what is being done, in place of what it showed before. On
// anything but a terminal it says nothing.
func (b *bench) progress(format string, args ...any) {
	if b.terminal {
		fmt.Fprintf(os.Stderr, "\r\033[K"+format, args...)
	}
}

// isTerminal reports whether f is a terminal.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// finish prints the results and saves them.
func (b *bench) finish(took time.Duration) (failed bool, err error) {
	b.progress("")
	b.report.Judge()
	totals := b.report.Totals()
	switch {
	case totals.Workloads == 0:
		return false, errors.New("no such workload: see -list")
	case b.targets:
		fmt.Print(b.report.TargetsText())
		fmt.Printf("%s, in %s\n", totals, took.Round(time.Second/10))
	case b.smoke:
		fmt.Printf("%s, in %s\n", totals, took.Round(time.Second/10))
	default:
		fmt.Print(b.report.Text())
		fmt.Fprintf(os.Stderr, "in %s\n", took.Round(time.Second))
	}
	if b.out != "" {
		name := "results"
		if b.growth {
			name = "growth"
		}
		err = b.report.Save(b.out, name)
	}
	return len(totals.Failures) > 0, err
}

// printList lists what there is to choose from.
func (o *options) printList() {
	p := workload.Params{Docs: o.docs, Size: o.size, Rounds: o.rounds, Growth: o.growth, RealFile: "std.json"}
	for _, w := range workload.All(p) {
		fmt.Printf("%-42s %9d documents, %9d operations, %s\n", w.Name, w.Docs, w.Ops, w.Durability())
	}
	fmt.Println()
	for _, m := range engine.Makers() {
		fmt.Printf("%-16s %s %s\n", m.Name, m.Module, m.Missing)
	}
}
