package main

// In the package, as it is a command.

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/bench/stats"
	"github.com/jaydb/jay/bench/worker"
	"github.com/jaydb/jay/bench/workload"
)

// TestMain makes the test's own program a worker.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == worker.Subcommand {
		if err := worker.Main(); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Ensure that a measurement keeps every sample, and says what it found.
func TestMeasurement(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m := &measurement{Commits: [2]string{"old", "new"}, programs: [2]string{executable, executable}, dir: t.TempDir(), log: io.Discard}
	for _, name := range []string{"get", "open"} {
		for _, trial := range trials {
			if trial.Name == name {
				trial.docs, trial.limit = 1000, time.Minute
				if _, err := m.measure(trial, 2); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if left, err := os.ReadDir(m.dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	file := filepath.Join(t.TempDir(), "samples.json")
	if err := m.save(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var saved measurement
	if err := json.Unmarshal(text, &saved); err != nil {
		t.Fatal(err)
	}
	if len(saved.Rows) != 2 {
		t.Fatalf("%d rows saved, want 2", len(saved.Rows))
	}
	for _, r := range saved.Rows {
		for which, nanos := range r.Samples {
			if len(nanos) != 2 || nanos[0] <= 0 || nanos[1] <= 0 {
				t.Errorf("%s: sample %d: %v, want two", r.Name, which, nanos)
			}
		}
	}
	for _, want := range []string{"base: old", "next: new", "get", "open"} {
		if !strings.Contains(m.table(), want) {
			t.Errorf("%q is missing in:\n%s", want, m.table())
		}
	}
}

// Ensure that every trial names a workload that there is, and an engine that
// runs it.
func TestTrials(t *testing.T) {
	for _, trial := range trials {
		p := workload.Params{Docs: trial.docs, Size: 550, Rounds: trial.warm + trial.rounds, Limit: trial.limit}
		if _, err := workload.ByName(p, trial.workload); err != nil {
			t.Errorf("%s: %v", trial.Name, err)
		}
	}
}

// Ensure that a commit is slower only if the whole interval says so.
func TestRow_Verdict(t *testing.T) {
	about := func(low, high float64) stats.Interval {
		return stats.Interval{Median: (low + high) / 2, Low: low, High: high}
	}
	for _, test := range []struct {
		ratio, noise stats.Interval
		want         string
	}{
		{about(0.99, 1.2), about(0.9, 1.1), "not slower: +20.0 % at most"},
		{about(1, 1.1), about(0.9, 1.1), "not slower: +10.0 % at most"},
		{about(1.05, 1.2), about(0.9, 1.1), "SLOWER by 5.0 % or more"},
		{about(1.05, 1.2), about(1.01, 1.1), "disturbed: repeat"},
		{about(0.8, 0.99), about(0.9, 1.1), "faster"},
	} {
		r := row{Ratio: test.ratio, Noise: test.noise}
		if got := r.verdict(); got != test.want {
			t.Errorf("%+v, %+v: got %q, want %q", test.ratio, test.noise, got, test.want)
		}
	}
}
