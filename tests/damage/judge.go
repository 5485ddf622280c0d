package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jaydb/jay"
)

// judgeCommand makes this program a judge: it reads cases, one on a line, and
// answers each with an outcome.
const judgeCommand = "judge"

// class says how a damage showed.
type class string

// Classes, from the best to the worst.
const (
	harmless class = "harmless"
	typed    class = "typed error"
	untyped  class = "untyped error"
	silent   class = "SILENT"
	panicked class = "panic"
	hung     class = "hang"
)

var classes = []class{harmless, typed, untyped, silent, panicked, hung}

// task is a case as a judge gets it.
type task struct {
	Image   string // directory
	State   string // file
	Work    string // directory for the copy
	Relaxed bool
	Must    bool // open with MustExist
	Damage  damage
}

// outcome is what a judge found.
type outcome struct {
	Class class  `json:"class"`
	Text  string `json:"text,omitempty"`
	Lost  int    `json:"lost,omitempty"` // documents missing or changed without an error
}

// worsen notes a finding.
func (o *outcome) worsen(c class, format string, args ...any) {
	if slices.Index(classes, c) > slices.Index(classes, o.Class) {
		o.Class, o.Text = c, fmt.Sprintf(format, args...)
	}
}

// sentinels are the documented errors that may be the answer to damage.
var sentinels = []error{
	jay.ErrCorrupt, jay.ErrUnreadable, jay.ErrNotDatabase, jay.ErrNoDatabase, jay.ErrNewerFormat,
	jay.ErrNotWritable, jay.ErrFailed, jay.ErrUnknownOutcome,
}

// fail notes an error.
func (o *outcome) fail(where string, err error) {
	for _, s := range sentinels {
		if errors.Is(err, s) {
			o.worsen(typed, "%s: %v", where, err)
			return
		}
	}
	o.worsen(untyped, "%s: %v", where, err)
}

// judgeChild answers the cases that come in.
func judgeChild(in io.Reader, out io.Writer) error {
	states := make(map[string]*state)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var t task
		if err := json.Unmarshal(lines.Bytes(), &t); err != nil {
			return err
		}
		if states[t.State] == nil {
			s, err := loadState(t.State)
			if err != nil {
				return err
			}
			states[t.State] = s
		}
		o, err := judge(t, states[t.State])
		if err != nil {
			return err
		}
		text, err := json.Marshal(o)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n", text); err != nil {
			return err
		}
	}
	return lines.Err()
}

// judge damages a copy of the image and looks at it as a program would: open,
// read everything, write, close, and once more.
func judge(t task, want *state) (*outcome, error) {
	if err := os.RemoveAll(t.Work); err != nil {
		return nil, err
	}
	if err := linkDir(t.Work, t.Image); err != nil {
		return nil, err
	}
	if err := t.Damage.apply(t.Work); err != nil {
		return nil, err
	}
	o := &outcome{Class: harmless}
	known := want
	for round := range 2 {
		db, err := jay.Open(t.Work, options(t.Relaxed, t.Must))
		if err != nil {
			o.fail("open", err)
			return o, nil
		}
		check(o, db, known)
		if round == 0 {
			if known, err = known.with(writeSome(o, db, known)); err != nil {
				return nil, err
			}
		}
		if err := db.Close(); err != nil {
			o.fail("close", err)
			return o, nil // what was written may not be there, and that was said
		}
	}
	return o, nil
}

// check reads every document, by its ID and in a walk, and every entry of the
// indexes, by queries that may use nothing else.
func check(o *outcome, db *jay.DB, want *state) {
	ctx := context.Background()
	wrong := make(map[string]bool)
	miss := func(id, format string, args ...any) {
		if !want.Loose[id] {
			wrong[id] = true
			o.worsen(silent, format, args...)
		}
	}

	for id, expected := range want.Docs {
		doc, err := db.Get(ctx, id)
		switch {
		case errors.Is(err, jay.ErrNotFound) && !errors.Is(err, jay.ErrCorrupt):
			miss(id, "%s was acknowledged and is gone", id)
		case err != nil:
			o.fail("get", err)
		case string(doc.Body()) != expected.Body || doc.ChangeVector() != expected.ChangeVector:
			miss(id, "%s has changed", id)
		}
	}

	seen, whole := make(map[string]bool), true
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		if err != nil {
			o.fail("scan", err)
			whole = false
			break
		}
		id := doc.ID()
		if !ours(id) {
			continue
		}
		seen[id] = true
		switch expected, known := want.Docs[id]; {
		case !known:
			miss(id, "%s came back, or from nowhere", id)
		case string(doc.Body()) != expected.Body:
			miss(id, "%s has changed, in a walk", id)
		}
	}
	if whole {
		for id := range want.Docs {
			if !seen[id] {
				miss(id, "%s is not met by a walk", id)
			}
		}
	}

	declared, err := db.Indexes(ctx, collection)
	switch {
	case err != nil:
		o.fail("indexes", err)
		return
	case len(declared) != len(indexes):
		o.worsen(silent, "%d indexes are declared, want %d", len(declared), len(indexes))
		return
	}
	for field, values := range want.entries {
		for value, ids := range values {
			checkQuery(o, field+" = "+value, db.Query(collection).Where(jay.Eq(field, value)), slices.Values(ids), miss)
		}
	}
	checkQuery(o, "order by Mail", db.Query(collection).Where(jay.Gt("Mail", "")).OrderBy("Mail"), maps.Keys(want.Docs), miss)
	o.Lost = max(o.Lost, len(wrong))
}

func checkQuery(o *outcome, what string, q jay.Query[jay.Document], ids iter.Seq[string], miss func(id, format string, args ...any)) {
	expected, seen := maps.Collect(paired(ids)), make(map[string]bool)
	for doc, err := range q.NoScan().Iter(context.Background()) {
		if err != nil {
			o.fail("query", err)
			return
		}
		if seen[doc.ID()] {
			miss(doc.ID(), "%s answers %s twice", what, doc.ID())
		}
		seen[doc.ID()] = true
		if !expected[doc.ID()] {
			miss(doc.ID(), "%s answers %s", what, doc.ID())
		}
	}
	for id := range expected {
		if !seen[id] {
			miss(id, "%s does not answer %s", what, id)
		}
	}
}

func paired(ids iter.Seq[string]) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		for id := range ids {
			if !yield(id, true) {
				return
			}
		}
	}
}

// writeSome writes a document of every kind of ID, and returns those that were
// acknowledged. None may have been made before.
func writeSome(o *outcome, db *jay.DB, known *state) map[string]stored {
	written := make(map[string]stored)
	ctx := context.Background()
	for i, request := range []string{"users|", "orders/", "", "things/new"} {
		text := newBody(9, 90_000_001+8*i)
		var m jay.Metadata
		var err error
		if request == "" {
			m, err = db.Store(ctx, collection, text)
		} else {
			m, err = db.Put(ctx, request, text, jay.InCollection(collection))
		}
		if err != nil {
			o.fail("put", err)
			continue
		}
		if _, there := known.Docs[m.ID]; there && !known.Loose[m.ID] || known.Ever[m.ID] {
			o.worsen(silent, "%s was made again", m.ID)
			o.Lost = max(o.Lost, 1)
		}
		written[m.ID] = stored{string(text), m.ChangeVector}
	}
	return written
}

// linkDir copies a directory. Tables, which nothing ever writes into, are
// linked.
func linkDir(to, from string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, f := range files {
		source, target := filepath.Join(from, f.Name()), filepath.Join(to, f.Name())
		if strings.HasSuffix(f.Name(), ".sst") && os.Link(source, target) == nil {
			continue
		}
		text, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
