// Package simulation runs a whole database in one thread, from one seed: every verb, on a disk that tears, fills
// and dies, on a clock that jumps, against a model that knows what may be unknown. docs/simulation.md has
// how to repeat, shorten and extend a run.
package simulation_test

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
)

// length is how many steps a run has.
const length = 400

// Ensure that whatever happens to a database, it has what was acknowledged and nothing else. The seeds are those of the day; in
// full there are more of them. A campaign:
//
//	JAY_SIMULATION=1000000 go test -run 'TestSimulation$' -count=1 -timeout 0 -v ./tests/simulation
//
// It ends after five failures, and with JAY_SIMULATION_SHRINK=0, which shortens no script, after the first one.
// JAY_SIMULATION_WORLD=shared leaves out the runs of other worlds than two databases on one store, and
// machine those of that one. A failure prints its script, shortened; JAY_SIMULATION_SCRIPT names a file to run again.
func TestSimulation(t *testing.T) {
	sample.OneGoroutine(t)
	all := newFigures()
	defer func() {
		if !t.Failed() {
			t.Logf("%v", all)
		}
	}()
	if name := os.Getenv("JAY_SIMULATION_SCRIPT"); name != "" {
		f, err := os.Open(name)
		jaytest.Must(t, err)
		defer f.Close()
		seed, script, err := readScript(f)
		jaytest.Must(t, err)
		if err := simulate(t, seed, script, os.Stdout, all); err != nil {
			t.Fatal(err)
		}
		return
	}
	wanted := 60 * length
	if testing.Short() {
		wanted = 8 * length
	}
	seed := sample.Of(t, 14).Seed() << 20
	if text := os.Getenv("JAY_SIMULATION"); text != "" {
		n, err := strconv.Atoi(text)
		jaytest.Must(t, err)
		wanted, seed = n, uint64(time.Now().UnixNano())
	}
	if text := os.Getenv("JAY_SIMULATION_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		jaytest.Must(t, err)
		seed = n
	}
	world := os.Getenv("JAY_SIMULATION_WORLD")
	if world != "" && world != (settings{}).world() && world != (settings{shared: true}).world() {
		t.Fatalf("JAY_SIMULATION_WORLD is %q, not machine or shared", world)
	}
	most := 5 // failures
	if os.Getenv("JAY_SIMULATION_SHRINK") == "0" {
		most = 1
	}
	for failures := 0; all.steps < wanted && failures < most; seed++ {
		if world != "" && draw(seed).world() != world {
			continue
		}
		if !try(t, seed, all) {
			failures++
		}
	}
}

// try makes the run of one seed. If it fails, it shortens the script, and prints it with what it does.
func try(t *testing.T, seed uint64, all *figures) (passed bool) {
	t.Helper()
	script := steps(seed, draw(seed), length)
	err := simulate(t, seed, script, io.Discard, all)
	if err == nil {
		return true
	}
	runs := 400
	if text := os.Getenv("JAY_SIMULATION_SHRINK"); text != "" {
		var bad error
		runs, bad = strconv.Atoi(text)
		jaytest.Must(t, bad)
	}
	t.Logf("seed %d fails", seed)
	short := shrink(t, seed, script, err, runs)
	var text, log bytes.Buffer
	writeScript(&text, seed, short)
	again := simulate(t, seed, short, &log, newFigures())
	t.Errorf("after %d steps in all: %v\nJAY_SIMULATION_SEED=%d repeats it, and a file with this script, named by JAY_SIMULATION_SCRIPT:\n%s\nWhat it does:\n%s\n%v",
		all.steps, err, seed, &text, &log, again)
	return false
}

// Ensure that one seed gives one history, word for word.
func TestSimulation_Repeats(t *testing.T) {
	sample.OneGoroutine(t)
	for seed := range uint64(3) {
		script := steps(seed, draw(seed), length/2)
		var logs [2]bytes.Buffer
		for i := range logs {
			if err := simulate(t, seed, script, &logs[i], newFigures()); err != nil {
				t.Fatal(err)
			}
		}
		was, is := strings.Split(logs[0].String(), "\n"), strings.Split(logs[1].String(), "\n")
		for i := range was {
			if i >= len(is) || was[i] != is[i] {
				t.Errorf("seed %d: line %d is\n%s\nand the second time\n%s", seed, i, was[i], is[min(i, len(is)-1)])
				break
			}
		}
	}
}
