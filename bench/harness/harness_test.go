package harness

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestMain_Arguments(t *testing.T) {
	dir := t.TempDir()
	var ran []string
	measurement := func(name string, rounds int, fail error) Measurement {
		return Measurement{Name: name, About: "about " + name, Rounds: rounds, New: func(flags *flag.FlagSet) func(*Run) error {
			n := flags.Int("n", 1, "a number")
			return func(r *Run) error {
				if _, err := os.Stat(r.Dir); err != nil {
					t.Error(err)
				}
				ran = append(ran, fmt.Sprint(name, " ", r.Rounds, " ", r.Smoke, " ", *n))
				return fail
			}
		}}
	}
	all := []Measurement{measurement("one", 3, nil), measurement("two", 0, nil), measurement("bad", 1, errors.New("as asked"))}
	for _, c := range []struct {
		args   string
		status int
		ran    string
		says   string
	}{
		{"", 2, "", "about two"},
		{"three", 2, "", "usage"},
		{"one", 0, "one 3 false 1", ""},
		{"one -rounds 5 -n 7", 0, "one 5 false 7", ""},
		{"one -smoke", 0, "one 1 true 1", ""},
		{"one -rounds 0", 2, "", "above 0"},
		{"two -rounds 2", 2, "", "not defined: -rounds"},
		{"two more", 2, "", `"more"`},
		{"bad", 1, "bad 1 false 1", "bad: as asked"},
		{"-smoke", 1, "one 1 true 1, two 1 true 1, bad 1 true 1", "bad: as asked"},
	} {
		ran = nil
		args := strings.Fields(c.args)
		if len(args) > 0 && args[0] != "-smoke" {
			args = append([]string{args[0], "-dir", dir}, args[1:]...)
		}
		var says strings.Builder
		status := Main(all, args, &says)
		if got := strings.Join(ran, ", "); status != c.status || got != c.ran || !strings.Contains(says.String(), c.says) {
			t.Errorf("%q: status %d, ran %q, says %q", c.args, status, got, says.String())
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

func TestTurns(t *testing.T) {
	r := &Run{Rounds: 3}
	var turns []string
	if err := r.Turns(2, func(round, side int) error { turns = append(turns, fmt.Sprint(round, side)); return nil }); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(turns, ", "), "0 0, 0 1, 1 1, 1 0, 2 0, 2 1"; got != want {
		t.Errorf("the turns are %s, want %s", got, want)
	}
	stop := errors.New("stop")
	if err := r.Turns(2, func(round, side int) error { return stop }); err != stop {
		t.Errorf("got %v", err)
	}
}
