package simulation_test

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/storage/storagetest"
)

// step is one step of a script: what is done, the fault that it meets, and the seed of all that is drawn
// in it.
type step struct {
	verb, fault string
	seed        uint64
}

// String is the step as a script has it.
func (s step) String() string {
	text := fmt.Sprintf("%s #%d", s.verb, s.seed)
	if s.fault != "" {
		text += ", " + s.fault
	}
	return text
}

// steps draws the steps of a run from its seed.
func steps(seed uint64, s settings, n int) []step {
	r := rand.New(rand.NewPCG(seed, 3))
	all := make([]step, n)
	for i := range all {
		v, f := verbs[weighted(r, s.weights)], faults[weighted(r, s.faults)]
		if v.only == "" && f.of(clientFaults) {
			f = faults[0]
		}
		all[i] = step{verb: v.name, fault: f.name, seed: uint64(r.Uint32())}
	}
	return all
}

// weighted draws a place of the weights.
func weighted(r *rand.Rand, weights []int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	at := r.IntN(sum)
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	panic("the sum is greater than its parts")
}

// simulate runs a script in a bubble of its own. The error is what it has found.
//
// It has one processor. With several, a goroutine that was woken runs at once or later, as the machine has time for it, and what is
// written without a sync reaches the disk or stays in memory accordingly. With one, goroutines take turns where they wait and at the
// operations of the disk.
func simulate(t *testing.T, seed uint64, script []step, log io.Writer, figures *figures) (err error) {
	t.Helper()
	s := draw(seed)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer set(&knobs.FloorEtags, 1<<60)() // raised etags count as changes that nobody has read
	if s.small {
		defer set(&knobs.KeptChanges, 8)()
		defer set(&knobs.ChangeDocuments, 3)()
		defer set(&knobs.LazyBatches, 2)()
		defer set(&knobs.AttachmentChunkBytes, 300)()
	}
	if s.world == members {
		defer set(&knobs.ClusterStill, true)()
	}
	synctest.Test(t, func(*testing.T) {
		var key [32]byte
		copy(key[:], strconv.FormatUint(seed, 10))
		w := &world{settings: s, clock: new(atomic.Int64), model: newModel(), ids: rand.NewChaCha8(key), log: log, figures: figures}
		w.disk = storagetest.NewDisk().Repeatable()
		begun := time.Now()
		err = w.run(script)
		figures.steps += w.steps
		figures.time += time.Since(begun)
	})
	for range 2 {
		runtime.GC() // empties pools: they have channels of this bubble, which no other may use
	}
	figures.runs[s.world]++
	return err
}

// set gives a knob a value, and returns what gives it back the one before.
func set[T any](knob *T, value T) (undo func()) {
	before := *knob
	*knob = value
	return func() { *knob = before }
}

// shrink leaves out of a script that fails what it fails without, with at most so many runs.
// The shorter one fails in the same way, as far as the first words of the failure say.
func shrink(t *testing.T, seed uint64, script []step, failure error, runs int) []step {
	t.Helper()
	fails := func(script []step) bool {
		runs--
		err := simulate(t, seed, script, io.Discard, newFigures())
		return err != nil && beginning(err) == beginning(failure)
	}
	for part := len(script) / 2; part > 0 && runs > 0; {
		shorter := false
		for at := 0; at < len(script) && runs > 0; {
			without := slices.Delete(slices.Clone(script), at, min(at+part, len(script)))
			if fails(without) {
				script, shorter = without, true
				continue
			}
			at += part
		}
		if part == 1 && !shorter {
			break
		}
		if part > 1 {
			part /= 2
		}
	}
	return script
}

// beginning returns the first words of a failure.
func beginning(err error) string {
	words := strings.Fields(err.Error())
	return strings.Join(words[:min(len(words), 3)], " ")
}

// writeScript writes a script, with the seed of its settings in the first line.
func writeScript(w io.Writer, seed uint64, script []step) {
	fmt.Fprintf(w, "settings #%d\n", seed)
	for _, s := range script {
		fmt.Fprintln(w, s)
	}
}

// readScript is the inverse of writeScript. Lines that begin with // are for people.
func readScript(r io.Reader) (seed uint64, script []step, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "//") {
			continue
		}
		name, rest, found := strings.Cut(line, " #")
		number, met, _ := strings.Cut(rest, ", ")
		value, badly := strconv.ParseUint(number, 10, 64)
		switch {
		case !found || badly != nil:
			return 0, nil, fmt.Errorf("line %d: %q is not a verb, # and a number", n, line)
		case name == "settings":
			seed = value
		default:
			if !slices.ContainsFunc(verbs, func(v verb) bool { return v.name == name }) || !slices.ContainsFunc(faults, func(f fault) bool { return f.name == met }) {
				return 0, nil, fmt.Errorf("line %d: there is no verb %q, or no fault %q", n, name, met)
			}
			script = append(script, step{verb: name, fault: met, seed: value})
		}
	}
	return seed, script, lines.Err()
}

// figures count what has happened.
type figures struct {
	steps   int
	crashes int             // how often a machine has lost its power, or a process was killed
	runs    map[string]int  // by world
	met     map[meeting]int // of a verb and a fault
	time    time.Duration   // that has passed in the worlds
}

// meeting is a verb that meets a fault in a world; "" for any.
type meeting struct{ world, verb, fault string }

func newFigures() *figures {
	return &figures{runs: make(map[string]int), met: make(map[meeting]int)}
}

func (f *figures) meet(world, verb, fault string) {
	f.met[meeting{world, verb, fault}]++
	f.met[meeting{world, "", fault}]++
}

// String is a table for each world: how often each verb met each fault.
func (f *figures) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d steps, %.1f years, %d crashes\n", f.steps, f.time.Hours()/24/365, f.crashes)
	for _, world := range slices.Compact(slices.Clone(worlds)) {
		if f.runs[world] == 0 {
			continue
		}
		has := slices.DeleteFunc(slices.Clone(faults), func(one fault) bool { return !one.in(world) })
		met := 0
		for _, one := range has {
			met += f.met[meeting{world, "", one.name}]
		}
		met -= f.met[meeting{world, "", ""}]
		fmt.Fprintf(&b, "\n%s: %d runs, %d steps with a fault\n", world, f.runs[world], met)
		for i, one := range has {
			fmt.Fprintf(&b, "%c: %s\n", 'a'+i, cmp.Or(one.name, "no fault"))
		}
		fmt.Fprintf(&b, "%-22s", "")
		for i := range has {
			fmt.Fprintf(&b, "%7c", 'a'+i)
		}
		b.WriteString("\n")
		for _, v := range verbs {
			if !v.in(world) {
				continue
			}
			fmt.Fprintf(&b, "%-22s", v.name)
			for _, one := range has {
				fmt.Fprintf(&b, "%7d", f.met[meeting{world, v.name, one.name}])
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}
