// Package simulation runs a whole database in one thread, from one seed: every verb, on a disk that tears, fills
// and dies, on a clock that jumps, against a model that knows what may be unknown. docs/simulation.md has
// how to repeat, shorten and extend a run.
package simulation_test

import (
	"bytes"
	"io"
	"os"
	"slices"
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
// full there are more of them. docs/simulation.md has the variables that make a campaign, repeat a failure and run a script.
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
		wanted = 7 * length
	}
	seed := sample.Of(t, 14).Seed()
	if seed == 0 { // in full
		seed = uint64(time.Now().Unix() / int64(24*time.Hour/time.Second))
	}
	seed <<= 20
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
	if world != "" && !slices.Contains(worlds, world) {
		t.Fatalf("JAY_SIMULATION_WORLD is %q, not one of %v", world, worlds)
	}
	most, again := 5, number(t, "JAY_SIMULATION_REPEAT", 0) // failures; how often their seeds are run again
	switch {
	case again > 0:
		most = 40
	case number(t, "JAY_SIMULATION_SHRINK", 1) == 0:
		most = 1
	}
	const said = 100_000 // steps after which a campaign says what it has done
	repeated, before := 0, 0
	for failures := 0; all.steps < wanted && failures < most; seed++ {
		if world != "" && draw(seed).world != world {
			continue
		}
		if again > 0 {
			if simulate(t, seed, steps(seed, draw(seed), length), io.Discard, all) != nil {
				if failures++; failsAgain(t, seed, again) {
					repeated++
				}
				t.Errorf("%d of %d failing seeds have failed again within %d runs", repeated, failures, again)
			}
		} else if !try(t, seed, all) {
			failures++
		}
		if all.steps/said > before {
			before = all.steps / said
			t.Logf("so far: %v", all)
		}
	}
}

// failsAgain reports whether a seed that has failed fails again within some runs.
func failsAgain(t *testing.T, seed uint64, runs int) bool {
	t.Helper()
	for range runs {
		if simulate(t, seed, steps(seed, draw(seed), length), io.Discard, newFigures()) != nil {
			return true
		}
	}
	return false
}

// number returns what a variable says, or a number if it says nothing.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	jaytest.Must(t, err)
	return n
}

// try makes the run of one seed. If it fails, it shortens the script, and prints it with what it does.
func try(t *testing.T, seed uint64, all *figures) (passed bool) {
	t.Helper()
	script := steps(seed, draw(seed), length)
	err := simulate(t, seed, script, io.Discard, all)
	if err == nil {
		return true
	}
	t.Logf("seed %d fails", seed)
	short := shrink(t, seed, script, err, number(t, "JAY_SIMULATION_SHRINK", 400))
	var text, log bytes.Buffer
	writeScript(&text, seed, short)
	again := simulate(t, seed, short, &log, newFigures())
	t.Errorf("after %d steps in all: %v\nJAY_SIMULATION_SEED=%d repeats it, and a file with this script, named by JAY_SIMULATION_SCRIPT:\n%s\nWhat it does:\n%s\n%v",
		all.steps, err, seed, &text, &log, again)
	return false
}

// Ensure that one seed gives one history, byte for byte, in each world, with power that goes when nothing writes. What
// strikes in the middle of a call meets goroutines of Pebble, too, and their order is another one from run to run.
func TestSimulation_Repeats(t *testing.T) {
	sample.OneGoroutine(t)
	today := sample.Of(t, 4)
	for i, world := range slices.Compact(slices.Clone(worlds)) {
		if !today.Has(i) {
			continue
		}
		seed := uint64(0)
		for draw(seed).world != world {
			seed++
		}
		script := steps(seed, draw(seed), length/2)
		for i := range script {
			if f := faults[faultNamed(script[i].fault)]; f.of(machineFaults) && f.name != "" && f.name != "closed behind it" {
				script[i].fault = "power goes behind it"
			}
			if script[i].verb == atOnceName {
				script[i].verb = inTurnName
			}
		}
		var logs [2]bytes.Buffer
		for i := range logs {
			if err := simulate(t, seed, script, &logs[i], newFigures()); err != nil {
				t.Fatal(err)
			}
		}
		was, is := strings.Split(logs[0].String(), "\n"), strings.Split(logs[1].String(), "\n")
		for i := range was {
			if i >= len(is) || was[i] != is[i] {
				t.Errorf("%s, seed %d: line %d is\n%s\nand the second time\n%s", world, seed, i, was[i], is[min(i, len(is)-1)])
				break
			}
		}
	}
}
