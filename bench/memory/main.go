// Command memory compares the memory that a process takes with the bound that it was given.
//
//	go run ./memory [-docs N] [-short] [-http] [-lasts D]
//
// For each bound it runs itself as a child, three times: with one database of Options.MaxMemory, with a server of server.Options.MaxMemory that has
// three databases, which are also used in its process, and with such a server that another process sends the requests of RavenDB's clients to, for as long as -lasts says. With -http only the last is
// measured. The child uses every feature that holds memory, several at a time: inserts, documents of 4 MiB, attachments, bulk writers, builds of indexes of each
// kind, searches, vectors, places, sorts, groups, transactions, revisions, documents that expire, subscriptions, feeds of changes, backups, and requests over HTTP.
//
// The child's peak (VmHWM on Linux, which also counts the pages of the program) must stay within the bound, 48 MiB for the program, and three
// times the largest document. The child has the limit of Go's heap, and glibc the settings, that the command gives itself and docs/operations.md recommends. With -profile the child
// writes heap profiles into a directory while it works.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

const (
	mib      = 1 << 20
	largest  = 4 * mib // a document
	overhead = 48 * mib
)

func main() {
	docs := flag.Int("docs", 100_000, "documents")
	short := flag.Bool("short", false, "only the smallest bound")
	bound := flag.Int64("child", 0, "work under this bound, and print the peak")
	kind := flag.String("kind", "database", "what the child has: one of "+fmt.Sprint(kinds))
	onlyHTTP := flag.Bool("http", false, "only the server that another process asks")
	lasts := flag.Duration("lasts", time.Minute, "how long requests are sent to that")
	profile := flag.String("profile", "", "directory for heap profiles of the child")
	flag.Parse()
	err := error(nil)
	if *bound > 0 {
		err = child(*bound, *docs, *kind, *profile)
	} else {
		of := kinds
		if *onlyHTTP {
			of = kinds[2:]
		}
		err = compare(*docs, *short, of, *lasts, *profile)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

// kinds are what is measured.
var kinds = []string{"database", "server", "server over HTTP"}

// compare runs children for each bound.
func compare(docs int, short bool, of []string, lasts time.Duration, profile string) error {
	bounds := []int64{64 * mib, 256 * mib, 1024 * mib}
	if short {
		bounds = bounds[:1]
	}
	over := false
	fmt.Printf("| MaxMemory | %s | may be |\n|---|%s---|\n", strings.Join(of, " | "), strings.Repeat("---|", len(of)))
	for _, bound := range bounds {
		most := bound + overhead + 3*largest
		row := fmt.Sprintf("| %d MiB |", bound/mib)
		for _, kind := range of {
			self := exec.Command(os.Args[0], "-child", fmt.Sprint(bound), "-docs", fmt.Sprint(docs), "-kind", kind, "-profile", profile)
			self.Stderr = os.Stderr
			self.Env = append(os.Environ(), "MALLOC_MMAP_THRESHOLD_=1048576", "MALLOC_ARENA_MAX=2")
			measure := peakOf
			if kind == kinds[2] {
				measure = func(self *exec.Cmd) (int64, error) { return peakOverHTTP(self, docs, lasts) }
			}
			peak, err := measure(self)
			if err != nil {
				return fmt.Errorf("%s with %d: %w", kind, bound, err)
			}
			over = over || peak > most
			row += fmt.Sprintf(" %d MiB |", peak/mib)
		}
		fmt.Printf("%s %d MiB |\n", row, most/mib)
	}
	if over {
		return errors.New("a peak is above what it may be")
	}
	return nil
}

// peakOf runs a child that works and prints its peak.
func peakOf(self *exec.Cmd) (int64, error) {
	out, err := self.Output()
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
}

// peakOverHTTP runs a child that serves, sends requests to it, ends it, and returns the peak that it prints.
func peakOverHTTP(self *exec.Cmd, docs int, lasts time.Duration) (peak int64, err error) {
	in, err := self.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := self.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := self.Start(); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		return 0, errors.Join(errors.New("the server does not start"), in.Close(), self.Wait())
	}
	err = soak(context.Background(), lines.Text(), docs, lasts, os.Stderr)
	if err = errors.Join(err, in.Close()); err == nil && lines.Scan() {
		peak, err = strconv.ParseInt(lines.Text(), 10, 64)
	}
	return peak, errors.Join(err, self.Wait())
}

// child uses every feature, and prints the peak of its memory.
func child(bound int64, docs int, kind, profile string) (err error) {
	dir, err := os.MkdirTemp("", "jay-memory")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if profile != "" {
		defer profiles(profile)()
	}
	work, known := map[string]func(context.Context, string, int64, int) error{kinds[0]: inDatabase, kinds[1]: inServer, kinds[2]: serveAlone}[kind]
	if !known {
		return fmt.Errorf("-kind must be one of %q", kinds)
	}
	if err := work(context.Background(), dir, bound, docs); err != nil {
		return err
	}
	peak, err := peakBytes()
	fmt.Println(peak)
	return err
}

// inDatabase uses a database.
func inDatabase(ctx context.Context, dir string, bound int64, docs int) error {
	db, err := jay.Open(dir+"/db", &jay.Options{MaxMemory: bound, MaxDocumentBytes: largest, Durability: jay.Relaxed})
	if err != nil {
		return err
	}
	s, err := db.Stats(ctx)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	limitHeap(bound, s.Memory.HeapBytes)
	return errors.Join(use(ctx, db, dir, docs), db.Close())
}

// inServer uses a server, with one database that has all documents, and two that have a tenth of them.
func inServer(ctx context.Context, dir string, bound int64, docs int) error {
	s, err := server.Open(server.Options{Data: dir + "/data", MaxMemory: bound, Database: jay.Options{MaxDocumentBytes: largest, Durability: jay.Relaxed}})
	if err != nil {
		return err
	}
	limitHeap(bound, s.Memory().HeapBytes)
	h := httptest.NewServer(s)
	defer h.Close()
	for i, name := range []string{"first", "second", "third"} {
		c := &client{url: h.URL, name: name}
		if err := c.create(ctx); err != nil {
			return errors.Join(err, s.Close())
		}
		db, release, err := s.Database(ctx, name)
		if err != nil {
			return errors.Join(err, s.Close())
		}
		n := docs
		if i > 0 {
			n = docs / 10
		}
		err = errors.Join(use(ctx, db, dir, n), c.use(ctx))
		release()
		if err != nil {
			return errors.Join(err, s.Close())
		}
	}
	return s.Close()
}

// limitHeap sets the limit of the heap as the command does.
func limitHeap(bound, heap int64) { debug.SetMemoryLimit(heap + min(3*largest, bound/4)) }

// profiles writes a heap profile whenever the process has grown by an eighth. It returns a function that ends that.
func profiles(dir string) (end func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		last := int64(0)
		for i := 0; ; {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if peak, _ := peakBytes(); peak > last+last/8 {
				last = peak
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				fmt.Fprintf(os.Stderr, "%d: peak %d MiB, of Go %d, in use %d, free %d, stacks %d\n", i, peak/mib, (m.Sys-m.HeapReleased)/mib, m.HeapInuse/mib, (m.HeapIdle-m.HeapReleased)/mib, m.StackInuse/mib)
				if f, err := os.Create(filepath.Join(dir, fmt.Sprintf("heap%d.pprof", i))); err == nil {
					_ = pprof.WriteHeapProfile(f)
					_ = f.Close()
				}
				i++
			}
		}
	}()
	return func() { close(done); <-ended }
}

// peakBytes returns the most memory that the process had.
func peakBytes() (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("the peak is known on Linux only: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, "VmHWM:"); is {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n << 10, err
		}
	}
	return 0, errors.New("/proc/self/status has no VmHWM")
}
