// Command disk measures stores whose documents do not fit into memory.
//
//	go run ./disk [-docs N] [-memory BYTES] [-cache BYTES] [-engines LIST] [-slice D] [-dir DIR] [-smoke]
//
// One engine after another has the machine for itself, in a process whose memory is limited
// by a control group, the system's cache of files included. This needs Linux and the right
// to make such a group. As docs/operations.md says of such processes, glibc's allocator has two
// arenas and returns large blocks: otherwise the store that is opened a second time gets its cache from other
// arenas than those that keep the memory of the first one. The documents are JSON of 550 bytes in which nothing repeats.
//
//	load       all documents, in batches of 1,000, each batch atomic and not synced; the
//	           rate of the first and of the last tenth
//	settle     until the engine writes nothing more by itself, also after it is opened again
//	get        reads by random IDs, by one goroutine and by eight, each compared with what was written
//	insert     durable inserts by eight goroutines while another one updates 100 random
//	           documents at a time, so that the engine merges its files meanwhile
//	open       the process is killed during these writes; how long the next one takes to
//	           open the store and to read a document
//
// Beside them stand the bytes that the process has written to the disk for each byte of the
// documents, the space on the disk, and the most memory that the process had.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/report"
	"github.com/jaydb/jay/bench/worker"
)

// Workers die with the thread that starts them (worker.DieWithParent): it must
// be the main one.
func init() { runtime.LockOSThread() }

// options are the command line. The worker gets them as JSON.
type options struct {
	Docs    int
	Memory  int64 // of the control group; 0 for no group
	Cache   int64
	Slice   time.Duration
	Engine  string
	Dir     string // of the engine
	Killed  bool   // the store is there, and its process was killed
	engines string
	parent  string
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == worker.Subcommand {
		runtime.UnlockOSThread() // see worker.Main
		exitOn(work(os.Stdin, os.Stdout))
		return
	}
	var o options
	flag.IntVar(&o.Docs, "docs", 50_000_000, "documents to load")
	flag.Int64Var(&o.Memory, "memory", 2<<30, "memory of an engine's process and of the system's cache of its files, in bytes; 0 for no limit")
	flag.Int64Var(&o.Cache, "cache", 512<<20, "size of the engine's own cache, in bytes")
	flag.DurationVar(&o.Slice, "slice", time.Minute, "how long each kind of operation is measured after the load")
	flag.StringVar(&o.engines, "engines", "pebble,jay", "engines, one after another")
	flag.StringVar(&o.parent, "dir", os.TempDir(), "where the files are put, and removed: on the disk that is to be measured")
	smoke := flag.Bool("smoke", false, "a short run with few documents and no limit, to see that it works")
	flag.Parse()
	if *smoke {
		o.Docs, o.Memory, o.Slice = 10_000, 0, 200*time.Millisecond
	}
	exitOn(o.run())
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "disk:", err)
		os.Exit(1)
	}
}

// run measures all engines.
func (o *options) run() error {
	names := strings.Split(o.engines, ",")
	for _, name := range names {
		if m, ok := engine.ByName(name); !ok || m.Missing != "" {
			return fmt.Errorf("no engine %q in this build %s", name, m.Missing)
		}
	}
	if o.Docs < tenths*batchDocs || o.Docs%(tenths*batchDocs) != 0 {
		return fmt.Errorf("-docs must be a multiple of %d", tenths*batchDocs)
	}
	machine, err := report.ThisMachine(o.parent)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n\n%d documents of %d bytes, %d MB of memory, caches of %d MB\n", machine.String(), o.Docs, docBytes, o.Memory>>20, o.Cache>>20)
	for _, name := range names {
		fmt.Printf("\n%s\n", name)
		if err := o.one(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// one measures one engine: a process loads, reads and writes until it is killed, and another one opens the store.
func (o *options) one(name string) (err error) {
	one := *o
	one.Engine = name
	if one.Dir, err = os.MkdirTemp(o.parent, "jay-disk-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(one.Dir)) }()
	if err := one.process(func(s said) bool { return s.Kill }); err != nil {
		return err
	}
	one.Killed = true
	return one.process(nil)
}

// process runs a worker in a control group of its own and prints what it says. It kills the worker when kill returns true.
func (o *options) process(kill func(said) bool) (err error) {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, worker.Subcommand)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "MALLOC_ARENA_MAX=2", "MALLOC_MMAP_THRESHOLD_=1048576")
	cmd.SysProcAttr = worker.DieWithParent()
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := false
	defer func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed, and says so
		}
	}()
	if o.Memory > 0 {
		remove, err := limit(cmd.Process.Pid, o.Memory)
		if err != nil {
			return err
		}
		defer func() { // after the process
			if !ended {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				ended = true
			}
			err = errors.Join(err, remove())
		}()
	}
	if err := json.NewEncoder(in).Encode(o); err != nil { // the worker begins
		return err
	}
	for d := json.NewDecoder(out); ; {
		var s said
		if err := d.Decode(&s); err != nil {
			return fmt.Errorf("the process is gone: %w", err)
		}
		switch {
		case s.Error != "":
			return errors.New(s.Error)
		case s.Done:
			ended = true
			return cmd.Wait()
		case kill != nil && kill(s):
			return nil
		}
		fmt.Printf("  %-34s %s\n", s.What, s.Figure)
	}
}

// limit puts a process into a new control group with so much memory, of version 1 or 2. remove removes the group when the process has ended.
func limit(pid int, bytes int64) (remove func() error, err error) {
	root, file := "/sys/fs/cgroup", "memory.max"
	if _, err := os.Stat(filepath.Join(root, "memory", "memory.limit_in_bytes")); err == nil {
		root, file = filepath.Join(root, "memory"), "memory.limit_in_bytes"
	}
	dir := filepath.Join(root, fmt.Sprintf("jay-disk-%d", pid))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("a control group is needed for -memory: %w", err)
	}
	remove = func() (err error) {
		for range 50 { // the kernel takes a moment to forget a process
			if err = os.Remove(dir); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		return err
	}
	for _, w := range []struct{ file, text string }{{file, fmt.Sprint(bytes)}, {"cgroup.procs", fmt.Sprint(pid)}} {
		if err := os.WriteFile(filepath.Join(dir, w.file), []byte(w.text), 0o644); err != nil {
			return nil, errors.Join(fmt.Errorf("a control group is needed for -memory: %w", err), remove())
		}
	}
	return remove, nil
}
