package main

// In the package, as it is a command.

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jaydb/jay/bench/worker"
)

// TestMain makes the test's own program a worker, as main does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == worker.Subcommand {
		if err := worker.Main(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Ensure that a run of some workloads ends well, saves its results, and leaves
// nothing behind.
func TestOptions_Run(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	for _, o := range []*options{
		{smoke: true, engines: "jay,pebble,bbolt-tuned", only: "^bulk load, synced|8 goroutines$|^prefix", dir: dir, out: out, profileDir: filepath.Join(out, "profiles")},
		{smoke: true, growth: true, engines: "jay, pebble", dir: dir, out: out, size: 100},
	} {
		if o.size == 0 {
			o.size = 550
		}
		o.setDefaults()
		if failed, err := o.run(); err != nil || failed {
			t.Errorf("%+v: failed %t, %v", o, failed, err)
		}
	}
	for _, name := range []string{"results.json", "results.txt", "bulk.svg", "growth.json", "growth-load.svg", "profiles/prefix-scan-jay-1.pprof"} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Ensure that what cannot be run is an error and not an empty table.
func TestOptions_Run_Refused(t *testing.T) {
	for name, o := range map[string]options{
		"no such workload": {only: "^nothing$"},
		"no such engine":   {engines: "floppy"},
		"bad expression":   {only: "("},
		"too many rounds":  {rounds: 89},
		"too small":        {docs: 10},
	} {
		o.dir, o.size, o.smoke, o.limit = t.TempDir(), 550, true, time.Second
		o.setDefaults()
		if _, err := o.run(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
