package worker_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/worker"
	"github.com/jaydb/jay/bench/workload"
)

// TestMain makes the test's own program a worker, as the benchmark does.
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

var params = workload.Params{Docs: 2000, Size: 550, Rounds: 2, Limit: time.Minute}

// Ensure that every engine has all of its documents after its process was
// killed, and opens again.
func TestProcess_Killed(t *testing.T) {
	for _, maker := range engine.Makers() {
		t.Run(maker.Name, func(t *testing.T) {
			if maker.Missing != "" || maker.VariantOf != "" {
				t.Skip("no engine of this row", maker.Missing)
			}
			p, err := worker.Start(worker.Spec{
				Engine: maker.Name, Workload: "open after kill -9", Params: params, Dir: t.TempDir(),
			}, true)
			if err != nil {
				t.Fatal(err)
			}
			for range params.Rounds {
				result, err := p.Round()
				if err != nil {
					t.Fatal(err)
				}
				if result.Ops != 1 || result.Nanos == 0 {
					t.Errorf("round: %+v", result)
				}
			}
			s, err := p.Finish()
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Failures) > 0 || s.Checked != params.Docs {
				t.Errorf("checked %d, want %d; failures %v", s.Checked, params.Docs, s.Failures)
			}
		})
	}
}

// Ensure that what goes wrong in a worker comes back as an error.
func TestStart_Unknown(t *testing.T) {
	for _, spec := range []worker.Spec{
		{Engine: "floppy", Workload: "missing get", Params: params},
		{Engine: "bbolt", Workload: "nothing at all", Params: params},
	} {
		spec.Dir = t.TempDir()
		if _, err := worker.Start(spec, false); err == nil || !strings.Contains(err.Error(), "no ") {
			t.Errorf("%+v: got %v, want an error", spec, err)
		}
	}
}

// Ensure that a worker can be another program than the one that starts it, and
// that its time on a processor grows with its work.
func TestStart_AnotherProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "other")
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(executable, program); err != nil {
		t.Skip(err)
	}
	p, err := worker.Start(worker.Spec{
		Program: program, Engine: engine.Jay, Workload: "random get, in cache", Params: params, Dir: t.TempDir(),
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	before := p.CPU()
	result, err := p.Round()
	if err != nil || result.Ops == 0 {
		t.Errorf("round: %+v, %v", result, err)
	}
	if after := p.CPU(); runtime.GOOS == "linux" && (before == 0 || after <= before) {
		t.Errorf("%s on a processor before the round, %s after it", before, after)
	}
	if _, err := p.Finish(); err != nil {
		t.Error(err)
	}

	spec := worker.Spec{Program: program + "-missing", Engine: engine.Jay, Workload: "missing get", Params: params, Dir: t.TempDir()}
	if _, err := worker.Start(spec, false); err == nil {
		t.Error("a program that is not there was started")
	}
}
