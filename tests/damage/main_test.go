package main

import (
	"os"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/sample"
)

// TestMain makes this test binary a child of a campaign if it is called as one.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Ensure that the campaign runs, and that in a small share of it nothing
// panics or hangs, every error is of a documented kind, and damage to a table
// or a small file of a database that had been closed does not go unnoticed.
func TestCampaign_Smoke(t *testing.T) {
	c := config{dir: t.TempDir(), seed: 1, share: 500, random: 10_000, tail: 4096, parallel: 2, timeout: time.Minute}
	if testing.Short() {
		c.share, c.seed = 4000, sample.Of(t, 1).Seed()
	}
	r, err := campaign(c, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	r.print(t.Output())
	if n := r.Totals[untyped] + r.Totals[panicked] + r.Totals[hung]; n > 0 {
		t.Errorf("%d panics, hangs and errors of no documented kind", n)
	}
	for _, row := range r.Rows {
		if n := row.Counts[silent]; n > 0 && !r.killed(row.Image) {
			t.Errorf("%s, %s %s: %d silent losses", row.Image, row.File, row.Op, n)
		}
	}
}

// Ensure that the judge sees what it is there for: a document that has
// vanished, changed or come back, an index entry that has, and an ID that is
// made again.
func TestJudge_SeesLosses(t *testing.T) {
	dir := t.TempDir()
	im, err := buildImage(dir, endQuiet, false)
	if err != nil {
		t.Fatal(err)
	}
	path := im.dir + ".json"
	if err := im.want.save(path); err != nil {
		t.Fatal(err)
	}
	unharmed := damage{File: "LOCK", Op: opDelete}
	look := func(change func(s *state)) *outcome {
		t.Helper()
		s, err := loadState(path)
		if err != nil {
			t.Fatal(err)
		}
		change(s)
		o, err := judge(task{Image: im.dir, Work: dir + "/work", Must: true, Damage: unharmed}, s)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if o := look(func(*state) {}); o.Class != harmless {
		t.Fatalf("the undamaged database: %+v", o)
	}

	text := string(newBody(1, 1))
	some := func(s *state) string {
		for id := range s.Docs {
			return id
		}
		return ""
	}
	changes := map[string]func(s *state){
		"a document is gone": func(s *state) { s.Docs["things/lost"] = stored{Body: text} },
		"a document changed": func(s *state) { s.Docs[some(s)] = stored{Body: text} },
		"a document is back": func(s *state) { delete(s.Docs, some(s)) },
		"an entry is gone":   func(s *state) { s.entries["City"]["city1"] = append(s.entries["City"]["city1"], "things/lost") },
		"an entry is wrong":  func(s *state) { s.entries["Tags"]["tag1"] = s.entries["Tags"]["tag1"][1:] },
		"an ID comes again":  func(s *state) { s.Ever["users/97"] = true },
	}
	for name, change := range changes {
		if o := look(change); o.Class != silent {
			t.Errorf("%s: %+v, want a silent loss", name, o)
		}
	}
}
