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
	"testing"
	"testing/synctest"

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
		all[i] = step{
			verb:  verbs[weighted(r, s.weights)].name,
			fault: faults[weighted(r, s.faults)].name,
			seed:  uint64(r.Uint32()),
		}
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
func simulate(t *testing.T, seed uint64, script []step, log io.Writer, figures *figures) (err error) {
	t.Helper()
	s := draw(seed)
	synctest.Test(t, func(*testing.T) {
		var key [32]byte
		copy(key[:], strconv.FormatUint(seed, 10))
		w := &world{settings: s, model: newModel(), disk: storagetest.NewDisk(), ids: rand.NewChaCha8(key), log: log, figures: figures}
		err = w.run(script)
		figures.steps += w.steps
	})
	for range 2 {
		runtime.GC() // empties pools: they have channels of this bubble, which no other may use
	}
	figures.runs++
	return err
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
	runs, steps int
	met         map[string]map[string]int // by verb and fault
}

func newFigures() *figures { return &figures{met: make(map[string]map[string]int)} }

func (f *figures) meet(verb, fault string) {
	if f.met[verb] == nil {
		f.met[verb] = make(map[string]int)
	}
	f.met[verb][fault]++
}

// String is a table: how often each verb met each fault.
func (f *figures) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs, %d steps\n", f.runs, f.steps)
	for i, fault := range faults {
		fmt.Fprintf(&b, "%c: %s\n", 'a'+i, cmp.Or(fault.name, "no fault"))
	}
	fmt.Fprintf(&b, "%-20s", "")
	for i := range faults {
		fmt.Fprintf(&b, "%8c", 'a'+i)
	}
	b.WriteString("\n")
	for _, v := range verbs {
		fmt.Fprintf(&b, "%-20s", v.name)
		for _, fault := range faults {
			fmt.Fprintf(&b, "%8d", f.met[v.name][fault.name])
		}
		b.WriteString("\n")
	}
	return b.String()
}
