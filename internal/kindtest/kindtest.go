// Package kindtest is what every kind of index must pass: declarations, random histories of
// documents, builds beside writers, power failures in a build, damage, repairs and figures. It plants
// damage in what is stored, and sets hooks of the process, so that its tests do not run beside others.
package kindtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	public "github.com/jaydb/jay/jaytest"
)

// Subject is a kind, and an index of it.
type Subject struct {
	Name  string       // of the kind
	Kind  catalog.Kind // without Open for one that is known without being registered
	Index jay.Index    // a declaration; its name and kind are set

	Body      func(r *rand.Rand) string // of a document
	Condition func(r *rand.Rand) string // in RQL, some of which the index answers; nil for a kind that answers groups only
	Groups    func(r *rand.Rand) string // what follows from and its collection, of a query of groups; nil for a kind that answers none
	Order     string                    // in RQL, in which the index gives answers; "" for none
	Likely    bool                      // it has the first answers of Order only, which are sorted

	Explained string      // what Explain says of an answer, beside the name of the index
	Invalid   []jay.Index // declarations that are ErrIndex
	Refused   string      // a body that cannot be in the index; "" if there is none
	Settles   bool        // it is a catalog.Settler, which has something to settle whenever documents have changed
	Trails    bool        // what it settles leaves a catalog.Trail

	forget func() // makes the kind unknown
}

const (
	indexName = "tested"
	things    = "Things"
)

var ctx = context.Background()

// Run runs all tests.
func Run(t *testing.T, s Subject) {
	s.Index.Name, s.Index.Kind = indexName, s.Name
	if s.Kind.Open != nil {
		s.forget = catalog.Register(s.Name, s.Kind)
		t.Cleanup(func() { s.forget() })
	}
	t.Run("Declared", s.declared)
	t.Run("Histories", s.histories)
	t.Run("Campaign", s.campaign)
	t.Run("Refused", s.refused)
	t.Run("Built", s.built)
	t.Run("PowerCut", s.powerCut)
	t.Run("Damaged", s.damaged)
	t.Run("Figures", s.figures)
	if s.Settles {
		t.Run("Settled", s.settled)
	}
}

// declared: a declaration is listed with its kind, is the same only as itself, and is refused if the
// kind cannot have it.
func (s *Subject) declared(t *testing.T) {
	db := jaytest.Memory(t, nil)
	for range 2 {
		jaytest.Must(t, db.EnsureIndex(ctx, things, s.Index))
	}
	list, err := db.Indexes(ctx, things)
	if err != nil || len(list) != 1 || list[0].Kind != s.Name || !maps.Equal(list[0].Options, s.Index.Options) || list[0].State != jay.IndexReady {
		t.Errorf("got %+v, %v", list, err)
	}
	other := s.Index
	other.Fields = append([]string{"Other"}, s.Index.Fields[1:]...)
	if err := db.EnsureIndex(ctx, things, other); !errors.Is(err, jay.ErrIndexExists) {
		t.Errorf("other fields: got %v", err)
	}
	if s.Name != "" {
		other = s.Index
		other.Kind, other.Options = "", nil
		if err := db.EnsureIndex(ctx, things, other); !errors.Is(err, jay.ErrIndexExists) || !strings.Contains(err.Error(), s.Name) {
			t.Errorf("another kind: got %v", err)
		}
		other = s.Index
		other.Name, other.Unique = "unique", true
		if err := db.EnsureIndex(ctx, things, other); !errors.Is(err, jay.ErrIndex) {
			t.Errorf("unique: got %v", err)
		}
	}
	s.options(t, db)
	for i, invalid := range s.Invalid {
		invalid.Name, invalid.Kind = fmt.Sprint("invalid", i), s.Name
		if err := db.EnsureIndex(ctx, things, invalid); !errors.Is(err, jay.ErrIndex) {
			t.Errorf("%+v: got %v", invalid, err)
		}
	}
	jaytest.Must(t, db.DropIndex(ctx, things, indexName))
	if n, err := checks.IndexKeys(db); n != 0 || err != nil {
		t.Errorf("%d keys are left, %v", n, err)
	}
}

// options: an option that the kind does not have, or not with this value, is refused, and changed options are
// another index, which replaces the first.
func (s *Subject) options(t *testing.T, db *jay.DB) {
	refused := func(name, value, rule string) {
		other := s.Index
		other.Name, other.Options = "refused", maps.Clone(other.Options)
		if other.Options == nil {
			other.Options = make(map[string]string)
		}
		other.Options[name] = value
		err := db.EnsureIndex(ctx, things, other)
		var option *jay.OptionError
		if !errors.As(err, &option) || !errors.Is(err, jay.ErrIndex) || *option != (jay.OptionError{Index: "refused", Collection: things, Kind: s.Name, Option: name, Value: value, Rule: option.Rule, Unknown: name == "no such option"}) || !strings.Contains(option.Rule, rule) {
			t.Errorf("option %q = %q: got %v", name, value, err)
		}
	}
	refused("no such option", "x", "option")
	for _, o := range s.Kind.Options {
		bad := "\x01"
		refused(o.Name, bad, "control characters")
		if _, ok := o.Check("no such value"); !ok {
			refused(o.Name, "no such value", o.Rule)
		}
		if o.Default == "" {
			continue
		}
		given := s.Index
		if given.Options = maps.Clone(given.Options); given.Options == nil {
			given.Options = make(map[string]string)
		}
		if _, other := given.Options[o.Name]; other {
			delete(given.Options, o.Name) // the default
			if err := db.EnsureIndex(ctx, things, given); !errors.Is(err, jay.ErrIndexExists) || !strings.Contains(err.Error(), o.Name+"="+s.Index.Options[o.Name]) {
				t.Errorf("without the option %q: got %v", o.Name, err)
			}
			jaytest.Must(t, db.EnsureIndex(ctx, things, given, jay.ReplaceIndex()))
			checks.WaitIndexTasks(db)
			list, err := db.Indexes(ctx, things)
			if _, there := list[0].Options[o.Name]; err != nil || len(list) != 1 || there {
				t.Errorf("replaced: got %+v, %v", list, err)
			}
			jaytest.Must(t, db.EnsureIndex(ctx, things, s.Index, jay.ReplaceIndex()))
			checks.WaitIndexTasks(db)
			continue
		}
		given.Options[o.Name] = o.Default
		jaytest.Must(t, db.EnsureIndex(ctx, things, given)) // it is the same
	}
	list, err := db.Indexes(ctx, things)
	if err != nil || len(list) != 1 || !maps.Equal(list[0].Options, s.Index.Options) {
		t.Errorf("got %+v, %v", list, err)
	}
}

// pair is a database with the index, and one without.
type pair struct {
	s          *Subject
	with       *jay.DB
	without    *jay.DB
	random     *rand.Rand
	collection string
	answered   int // queries that the index has answered
	ordered    int // of those, with the order of the Subject, the ones that were not sorted
}

func (s *Subject) pair(t *testing.T, with *jay.DB, seed uint64) *pair {
	return &pair{s: s, with: with, without: jaytest.Memory(t, nil), random: rand.New(rand.NewPCG(seed, 0)), collection: things}
}

// change changes both databases alike.
func (p *pair) change(t *testing.T) {
	t.Helper()
	change, what := p.drawn()
	one, other := change(p.with), change(p.without)
	if (one == nil) != (other == nil) {
		t.Fatalf("%s: got %v with the index, and %v without", what, one, other)
	}
}

// drawn returns a random change.
func (p *pair) drawn() (change func(db *jay.DB) error, what string) {
	r := p.random
	id := func() string {
		text := fmt.Sprint("things/", r.IntN(40))
		if r.IntN(4) == 0 {
			text = strings.ToUpper(text)
		}
		return text
	}
	in, body := p.collection, func() json.RawMessage { return json.RawMessage(p.s.Body(r)) }
	if r.IntN(10) == 0 {
		in = "Others"
	}
	first, second, one, another, n := id(), id(), body(), body(), r.IntN(100)
	put := func(db *jay.DB) error { _, err := db.Put(ctx, first, one, jay.InCollection(in)); return err }
	switch r.IntN(8) {
	case 0, 1:
		return func(db *jay.DB) error { return db.Delete(ctx, first) }, "delete " + first
	case 2:
		return func(db *jay.DB) error { _, err := db.Patch(ctx, first, jay.Set("Note", n)); return err }, "patch " + first
	case 3:
		return func(db *jay.DB) error {
			var b jay.Batch
			b.Put(first, one, jay.InCollection(in))
			if !strings.EqualFold(first, second) {
				b.Put(second, another, jay.InCollection(in))
			}
			_, err := db.Apply(ctx, &b)
			return err
		}, "a batch"
	case 4:
		return func(db *jay.DB) error {
			return db.Update(ctx, func(tx *jay.Tx) error {
				if _, err := tx.Put(ctx, first, one, jay.InCollection(in)); err != nil {
					return err
				}
				_, err := tx.Put(ctx, first, another, jay.InCollection(in))
				return err
			})
		}, "a transaction"
	}
	return put, "put " + first
}

// agree compares what queries find in both databases, and the entries with the documents.
func (p *pair) agree(t *testing.T) {
	t.Helper()
	jaytest.Must(t, checks.Indexes(p.with))
	jaytest.Verify(t, p.with)
	if p.s.Groups != nil {
		for range 15 {
			p.compareGroups(t)
		}
	}
	if p.s.Condition == nil {
		return
	}
	for range 10 {
		p.compare(t, p.s.Condition(p.random))
	}
	// Several conditions: intersections, unions and what is checked on documents.
	one, other := p.s.Condition(p.random), p.s.Condition(p.random)
	p.compare(t, "("+one+") or ("+other+")")
	p.compare(t, "("+one+") and ("+other+")")
	p.compare(t, "not ("+one+")")
}

func (p *pair) compare(t *testing.T, where string) {
	t.Helper()
	text := fmt.Sprintf("from %s where %s", p.collection, where)
	for _, rql := range []string{text, text + " order by id() desc limit 3", text + " select count()"} {
		got, want := jaytest.Rows(t, p.with, rql), jaytest.Rows(t, p.without, rql)
		if rql == text {
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s: got %q with the index, and %q without", rql, got, want)
		}
	}
	if used(t, p.with, text) {
		p.answered++
	}
	if p.s.Order == "" {
		return
	}
	text += " order by " + p.s.Order
	got, want := pages(t, p.with, text), jaytest.Rows(t, p.without, text)
	if !slices.Equal(got, want) {
		t.Fatalf("%s: got the pages %q with the index, and %q without", text, got, want)
	}
	if p.s.Likely {
		text += " limit 4"
		if got, want := jaytest.Rows(t, p.with, text), jaytest.Rows(t, p.without, text); !slices.Equal(got, want) {
			t.Fatalf("%s: got %q with the index, and %q without", text, got, want)
		}
		if used(t, p.with, text) && strings.Contains(explained(t, p.with, text), "sort in memory") {
			p.ordered++
		}
		return
	}
	if used(t, p.with, text) && strings.Contains(explained(t, p.with, text), "already in order") {
		p.ordered++
	}
}

// compareGroups compares the groups of a query.
func (p *pair) compareGroups(t *testing.T) {
	t.Helper()
	rql := p.s.query(p.random, p.collection)
	if got, want := sortedRows(t, p.with, rql), sortedRows(t, p.without, rql); !slices.Equal(got, want) {
		t.Fatalf("%s: got %q with the index, and %q without", rql, got, want)
	}
	if used(t, p.with, rql) {
		p.answered++
	}
}

// query returns a random query, of groups if the kind answers such.
func (s *Subject) query(r *rand.Rand, collection string) string {
	if s.Groups != nil {
		return "from " + collection + " " + s.Groups(r)
	}
	return "from " + collection + " where " + s.Condition(r)
}

// pages returns the IDs that a query finds, page by page.
func pages(t *testing.T, db *jay.DB, rql string) (found []string) {
	t.Helper()
	q, err := db.RQL(rql, nil)
	jaytest.Must(t, err)
	for next := ""; ; {
		page, err := q.Limit(3).After(next).Page(ctx)
		jaytest.Must(t, err)
		for _, row := range page.Items {
			found = append(found, row.Document.ID())
		}
		if next = page.Next; next == "" {
			return found
		}
	}
}

// used reports whether the index has answered a query.
func used(t *testing.T, db *jay.DB, rql string) bool {
	t.Helper()
	return strings.Contains(explained(t, db, rql), fmt.Sprintf("%q", indexName))
}

func explained(t *testing.T, db *jay.DB, rql string) string {
	t.Helper()
	q, err := db.RQL(rql, nil)
	jaytest.Must(t, err)
	x, err := q.Explain(ctx)
	jaytest.Must(t, err)
	return strings.Join(x.Plan, "; ")
}

// end fails the test if no query was answered by the index.
func (p *pair) end(t *testing.T) {
	t.Helper()
	if p.answered == 0 {
		t.Error("the index has answered no query")
	}
	if p.s.Order != "" && p.ordered == 0 {
		t.Error("the index has given no answers in its order")
	}
}

// histories: after each part of a random history, a rename of the collection among them, the entries
// are those of the documents, and queries find what a scan finds.
func (s *Subject) histories(t *testing.T) {
	sample.OneGoroutine(t)
	today := sample.Of(t, 4)
	for seed := range uint64(4) {
		if !today.Has(int(seed)) {
			continue
		}
		p := s.pair(t, jaytest.Memory(t, nil), seed)
		jaytest.Must(t, p.with.EnsureIndex(ctx, things, s.Index))
		for round := range 6 {
			for range 25 {
				p.change(t)
			}
			if round == 2 || round == 4 {
				to := things
				if p.collection == things {
					to = "Items"
				}
				for _, db := range []*jay.DB{p.with, p.without} {
					_, err := db.RenameCollection(ctx, p.collection, to)
					jaytest.Must(t, err)
				}
				p.collection = to
			}
			p.agree(t)
		}
		p.inTransaction(t)
		p.end(t)
	}
}

// inTransaction compares queries of a transaction, which see what it has written.
func (p *pair) inTransaction(t *testing.T) {
	t.Helper()
	body, rql := json.RawMessage(p.s.Body(p.random)), p.s.query(p.random, p.collection)
	if p.s.Order != "" {
		rql += " order by " + p.s.Order
	}
	var found [2][]string
	for i, db := range []*jay.DB{p.with, p.without} {
		jaytest.Must(t, db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.Put(ctx, "own/1", body, jay.InCollection(p.collection)); err != nil {
				return err
			}
			q, err := tx.RQL(rql, nil)
			if err != nil {
				return err
			}
			found[i] = nil
			for row, err := range q.Iter(ctx) {
				if err != nil {
					return err
				}
				if row.Document != nil {
					found[i] = append(found[i], row.Document.ID())
				} else {
					found[i] = append(found[i], string(row.JSON))
				}
			}
			return nil
		}))
		if p.s.Order == "" {
			slices.Sort(found[i])
		}
	}
	if !slices.Equal(found[0], found[1]) {
		t.Fatalf("in a transaction, %s: got %q with the index, and %q without", rql, found[0], found[1])
	}
}

// refused: a document that cannot be in the index is refused, and one that is there already ends
// the build and leaves no entry.
func (s *Subject) refused(t *testing.T) {
	if s.Refused == "" {
		t.Skip("each document can be in the index")
	}
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, things, s.Index))
	_, err := db.Put(ctx, "things/1", json.RawMessage(s.Refused), jay.InCollection(things))
	if !errors.Is(err, jay.ErrInvalidDocument) || !strings.Contains(err.Error(), indexName) {
		t.Errorf("got %v", err)
	}
	jaytest.Must(t, db.DropIndex(ctx, things, indexName))
	jaytest.Put(t, db, "things/1", s.Refused, jay.InCollection(things))
	jaytest.Put(t, db, "things/2", s.Body(rand.New(rand.NewPCG(1, 0))), jay.InCollection(things))
	if err := db.EnsureIndex(ctx, things, s.Index); !errors.Is(err, jay.ErrInvalidDocument) {
		t.Errorf("a build: got %v", err)
	}
	if n, err := checks.IndexKeys(db); n != 0 || err != nil {
		t.Errorf("%d keys are left, %v", n, err)
	}
}

// builders are the ways in which indexes are built.
var builders = map[string]func() (restore func()){
	"commits": func() func() {
		chunks, tables := checks.SetBuildChunks(3, 5), checks.SetBuildTables(1<<30, 1<<20, 1<<20)
		return func() { tables(); chunks() }
	},
	"tables": func() func() {
		chunks, tables := checks.SetBuildChunks(3, 5), checks.SetBuildTables(5, 64<<10, 16<<10) // a Stager that is no Tabler is built by commits all the same
		return func() { tables(); chunks() }
	},
}

// built: an index that is built while documents change has the entries of all.
func (s *Subject) built(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(builders)) {
		t.Run(name, func(t *testing.T) {
			defer builders[name]()()
			today := sample.Of(t, 3)
			for seed := range uint64(3) {
				if !today.Has(int(seed)) {
					continue
				}
				p := s.pair(t, jaytest.Memory(t, nil), seed)
				for range 60 {
					p.change(t)
				}
				steps := 0
				beside := func() {
					steps++
					for range 3 {
						p.change(t)
					}
				}
				undoChunks := checks.OnBuildChunk(func(_ context.Context, state jay.IndexState) {
					if state == jay.IndexBuilding {
						beside()
					}
				})
				undoTables := checks.OnBuildTables(func(checks.TableStep) { beside() })
				err := p.with.EnsureIndex(ctx, things, s.Index)
				undoTables()
				undoChunks()
				jaytest.Must(t, err)
				if steps < 3 {
					t.Errorf("documents were changed %d times", steps)
				}
				p.agree(t)
				jaytest.Verify(t, p.with)
				p.end(t)
			}
		})
	}
}

// fill stores documents.
func (s *Subject) fill(t testing.TB, db *jay.DB, n int) {
	r := rand.New(rand.NewPCG(7, 0))
	for i := range n {
		jaytest.Put(t, db, fmt.Sprint("things/", i), s.Body(r), jay.InCollection(things))
	}
}

// answersAlike compares what queries find with the index, and after it was dropped.
func (s *Subject) answersAlike(t *testing.T, db *jay.DB) {
	t.Helper()
	r := rand.New(rand.NewPCG(11, 0))
	var queries []string
	var found [][]string
	answered := false
	for range 20 {
		rql := s.query(r, things)
		queries, found = append(queries, rql), append(found, sortedRows(t, db, rql))
		answered = answered || used(t, db, rql)
	}
	if !answered {
		t.Error("the index has answered no query")
	}
	jaytest.Must(t, db.DropIndex(ctx, things, indexName))
	for i, rql := range queries {
		if want := sortedRows(t, db, rql); !slices.Equal(found[i], want) {
			t.Errorf("%s: got %q with the index, and %q without", rql, found[i], want)
		}
	}
}

func sortedRows(t *testing.T, db *jay.DB, rql string) []string {
	t.Helper()
	rows := jaytest.Rows(t, db, rql)
	slices.Sort(rows)
	return rows
}

// powerCut: whenever the power goes while an index is built, the next Open goes on, or there is no
// index, and all entries are there.
func (s *Subject) powerCut(t *testing.T) {
	sample.OneGoroutine(t)
	for _, name := range slices.Sorted(maps.Keys(builders)) {
		t.Run(name, func(t *testing.T) {
			defer builders[name]()()
			built := 0
			cuts := public.EveryPowerCut(t, nil, func(db *public.DB) { s.fill(t, db.DB, 12) }, func(db *public.DB) {
				_ = db.EnsureIndex(ctx, things, s.Index) // the power goes
			}, func(db *public.DB) {
				checks.WaitIndexTasks(db.DB)
				jaytest.Must(t, checks.Indexes(db.DB))
				list, err := db.Indexes(ctx, things)
				jaytest.Must(t, err)
				if len(list) == 1 {
					built++
					jaytest.Equal(t, list[0].State, jay.IndexReady)
					s.answersAlike(t, db.DB)
				}
			})
			if built == 0 || cuts == 0 {
				t.Errorf("%d power failures, %d indexes", cuts, built)
			}
		})
	}
}

// damages change one entry, and return what undoes that.
var damages = map[string]func(db *jay.DB, key, value []byte) (undo func()){
	"an entry is missing": func(db *jay.DB, key, value []byte) func() {
		checks.RemoveEntry(db, key)
		return func() { checks.SetEntry(db, key, value) }
	},
	"an entry has another value": func(db *jay.DB, key, value []byte) func() {
		checks.SetEntry(db, key, append(slices.Clone(value), 0xfe))
		return func() { checks.SetEntry(db, key, value) }
	},
	"an entry of a document that is not there": func(db *jay.DB, key, value []byte) func() {
		return planted(db, slices.Concat(key[:len(key)-1], []byte("x\x00")), value)
	},
	"an entry that a document does not give": func(db *jay.DB, key, value []byte) func() {
		return planted(db, slices.Concat(key[:5], []byte{key[5] ^ 1}, key[6:]), value)
	},
	"a key that cannot be decoded": func(db *jay.DB, key, value []byte) func() {
		return planted(db, key[:len(key)-1], value)
	},
}

// planted adds an entry, and returns what removes it.
func planted(db *jay.DB, key, value []byte) func() {
	if before, found := checks.Entries(db)[string(key)]; found { // of the same document
		checks.SetEntry(db, key, append([]byte(before), 0xfe))
		return func() { checks.SetEntry(db, key, []byte(before)) }
	}
	checks.SetEntry(db, key, value)
	return func() { checks.RemoveEntry(db, key) }
}

// damaged: each damage of an entry is found, and a repair builds the index anew. Without its
// kind the database can be read, and afterwards it goes on.
func (s *Subject) damaged(t *testing.T) {
	sample.OneGoroutine(t)
	defer checks.NoSettler()()
	dir := t.TempDir()
	db := jaytest.Open(t, dir, nil)
	s.fill(t, db, 30)
	jaytest.Must(t, db.EnsureIndex(ctx, things, s.Index))
	s.settleHalf(t, db)
	jaytest.Verify(t, db)
	entries := checks.Entries(db)
	keys := slices.Sorted(maps.Keys(entries))
	r := rand.New(rand.NewPCG(3, 0))
	some := func() []string {
		all := []string{keys[r.IntN(len(keys))], keys[r.IntN(len(keys))], keys[r.IntN(len(keys))], keys[r.IntN(len(keys))], keys[r.IntN(len(keys))]}
		for i := range keys { // and each form of keys, as their first bytes are
			if s.Settles && (i == 0 || keys[i][5] != keys[i-1][5]) {
				all = append(all, keys[i])
			}
		}
		return all
	}
	today := sample.Of(t, 5)
	for _, what := range slices.Sorted(maps.Keys(damages)) {
		for i, key := range some() {
			if !today.Has(i) {
				continue
			}
			undo := damages[what](db, []byte(key), []byte(entries[key]))
			report, err := db.Verify(ctx, nil)
			jaytest.Must(t, err)
			if report.Found == 0 || !strings.HasPrefix(report.Damages[0].Kind, "index-") || !strings.Contains(report.Damages[0].Subject, indexName) {
				t.Errorf("%s, key %q: found %v", what, key, report.Damages)
			}
			undo()
		}
	}
	jaytest.Verify(t, db)
	for _, what := range slices.Sorted(maps.Keys(damages)) {
		key := keys[r.IntN(len(keys))]
		damages[what](db, []byte(key), []byte(entries[key]))
	}
	jaytest.Must(t, db.Close())

	into := filepath.Join(t.TempDir(), "repaired")
	report, err := jay.Repair(ctx, dir, into, nil, nil)
	if err != nil || len(report.Lost) != 0 || report.Indexes != 1 {
		t.Fatalf("got %+v, %v", report, err)
	}
	s.withoutKind(t, into)
	db = jaytest.Open(t, into, nil)
	defer jaytest.Close(t, db)
	jaytest.Verify(t, db)
	jaytest.Must(t, checks.Indexes(db))
	if got := len(checks.Entries(db)); got != len(entries) && !s.Settles {
		t.Errorf("got %d entries, want %d", got, len(entries))
	}
	s.settleHalf(t, db)
	jaytest.Verify(t, db)
	s.fill(t, db, 40)
	s.answersAlike(t, db)
}

// withoutKind opens a database in a process that does not know the kind.
func (s *Subject) withoutKind(t *testing.T, dir string) {
	if s.Name == "" {
		return // each version knows it
	}
	if s.Kind.Open == nil {
		defer catalog.Forget(s.Name)()
	} else {
		s.forget()
		defer func() { s.forget = catalog.Register(s.Name, s.Kind) }()
	}
	db := jaytest.Open(t, dir, nil)
	defer jaytest.Close(t, db)
	_, err := db.Put(ctx, "things/1", json.RawMessage(`{}`), jay.InCollection(things))
	var unknown *jay.KindError
	if !errors.As(err, &unknown) || unknown.Kind != s.Name {
		t.Errorf("got %v", err)
	}
	if n := len(jaytest.Rows(t, db, "from "+things)); n != 30 {
		t.Errorf("got %d documents", n)
	}
}

// figures: what is said about an index is said about this kind, too.
func (s *Subject) figures(t *testing.T) {
	defer checks.NoSettler()()
	dir := t.TempDir()
	db := jaytest.Open(t, dir, nil)
	defer jaytest.Close(t, db)
	s.fill(t, db, 200)
	jaytest.Must(t, db.EnsureIndex(ctx, things, s.Index))
	jaytest.Must(t, db.Compact(ctx))
	usage, err := db.DiskUsage(ctx)
	if err != nil || len(usage.Indexes) != 1 || usage.Indexes[0].Name != indexName || usage.Indexes[0].Bytes == 0 {
		t.Errorf("got %+v, %v", usage.Indexes, err)
	}
	report, err := db.Verify(ctx, nil)
	if err != nil || report.IndexEntries != int64(len(checks.Entries(db))) || report.IndexEntries < 50 {
		t.Errorf("%d entries, %v", report.IndexEntries, err)
	}
	r := rand.New(rand.NewPCG(5, 0))
	for range 50 {
		rql := s.query(r, things)
		if text := explained(t, db, rql); strings.Contains(text, cmp.Or(s.Explained, indexName)) && strings.Contains(text, indexName) {
			return
		}
	}
	t.Errorf("Explain says nothing of index %q and %q", indexName, s.Explained)
}
