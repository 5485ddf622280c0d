package fulltext_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/fulltext"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/query"
)

var ctx = context.Background()

// quickly makes parts small and sweeps frequent until the test ends. It must not run beside others.
func quickly(t *testing.T) {
	t.Cleanup(fulltext.Quickly())
	t.Cleanup(checks.NoSettler())
}

func put(t testing.TB, db *jay.DB, id, text string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"Text": text})
	jaytest.Must(t, err)
	_, err = db.Put(ctx, id, body, jay.InCollection("Notes"))
	jaytest.Must(t, err)
}

// words declares an index of words of notes.
func words(t testing.TB, db *jay.DB, options map[string]string) {
	t.Helper()
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Text"}, Options: options}))
}

func count(t testing.TB, q jay.Query[jay.Document]) int64 {
	t.Helper()
	n, err := q.NoScan().Count(ctx)
	jaytest.Must(t, err)
	return n
}

// Ensure that what documents leave behind when they change is removed, and that small blocks are joined: an index of documents that have
// changed many times has about as many keys as a new one.
func TestText_Swept(t *testing.T) {
	quickly(t)
	db := jaytest.Memory(t, nil)
	words(t, db, nil)
	r := rand.New(rand.NewPCG(1, 36))
	for round := range 30 {
		for i := range 40 {
			var s strings.Builder
			for range 20 {
				fmt.Fprintf(&s, "w%d ", r.IntN(60))
			}
			put(t, db, fmt.Sprintf("notes/%d", i), s.String()+fmt.Sprintf("round%d", round))
		}
		jaytest.Must(t, checks.Settle(db))
	}
	jaytest.Verify(t, db)
	jaytest.Must(t, db.Flush(ctx)) // what checks count is on disk
	worn, err := checks.IndexKeys(db)
	jaytest.Must(t, err)
	jaytest.Equal(t, count(t, db.Query("Notes").Where(jay.Search("Text", "round29"))), 40)
	jaytest.Equal(t, count(t, db.Query("Notes").Where(jay.Search("Text", "round28"))), 0)

	jaytest.Must(t, db.DropIndex(ctx, "Notes", "Words"))
	words(t, db, nil)
	jaytest.Must(t, checks.Settle(db))
	jaytest.Must(t, db.Flush(ctx))
	fresh, err := checks.IndexKeys(db)
	jaytest.Must(t, err)
	if worn > 2*fresh || fresh < 100 {
		t.Errorf("%d keys after many changes, %d of a new index", worn, fresh)
	}
}

// Ensure that a word of many documents has few blocks, though each part that was settled has made one.
func TestText_Joined(t *testing.T) {
	quickly(t)
	db := jaytest.Memory(t, nil)
	words(t, db, nil)
	const documents, terms = 200, 10
	for i := range documents {
		put(t, db, fmt.Sprintf("notes/%d", i), "a b c d e f g h i j")
	}
	jaytest.Must(t, checks.Settle(db))
	jaytest.Must(t, db.Flush(ctx))
	keys, err := checks.IndexKeys(db)
	jaytest.Must(t, err)
	if blocks := keys - 2*documents; blocks > 15*terms {
		t.Errorf("about %d blocks of %d words of %d documents", blocks, terms, documents)
	}
	jaytest.Equal(t, count(t, db.Query("Notes").Where(jay.Search("Text", `"c d e"`))), documents)
	jaytest.Verify(t, db)
}

// Ensure that writers and the settler do not lose documents when they meet: each search finds what was written, at every moment.
func TestText_Writers(t *testing.T) {
	least, most := fulltext.MinTail, fulltext.PartDocuments
	fulltext.MinTail, fulltext.PartDocuments = 1, 5
	t.Cleanup(func() { fulltext.MinTail, fulltext.PartDocuments = least, most })
	db := jaytest.Memory(t, nil)
	words(t, db, nil)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 40 {
				put(t, db, fmt.Sprintf("notes/%d-%d", g, i%10), fmt.Sprintf("all of%d step%d", g, i))
				if n := count(t, db.Query("Notes").Where(jay.Search("Text", fmt.Sprintf("of%d step%d", g, i), jay.AllWords()))); n != 1 {
					t.Errorf("writer %d, step %d: found %d", g, i, n)
				}
			}
		})
	}
	wg.Wait()
	jaytest.Equal(t, count(t, db.Query("Notes").Where(jay.Search("Text", "all"))), 80)
	jaytest.Verify(t, db)
}

// Ensure that an index answers searches by its own analyzer only, so that it changes no answer.
func TestText_Analyzer(t *testing.T) {
	quickly(t)
	db := jaytest.Memory(t, nil)
	words(t, db, map[string]string{"analyzer": "English"})
	put(t, db, "notes/1", "The falling leaves")
	put(t, db, "notes/2", "A leaf falls")
	for range 2 {
		jaytest.Equal(t, count(t, db.Query("Notes").Where(jay.Search("Text", "fall", jay.WithAnalyzer("english")))), 2)
		if _, err := db.Query("Notes").Where(jay.Search("Text", "fall")).NoScan().Count(ctx); !errors.Is(err, jay.ErrNoIndex) {
			t.Errorf("another analyzer: got %v", err)
		}
		n, err := db.Query("Notes").Where(jay.Search("Text", "fall")).Count(ctx)
		jaytest.Must(t, err)
		jaytest.Equal(t, n, 0)
		jaytest.Must(t, checks.Settle(db))
		jaytest.Must(t, db.Flush(ctx))
	}
	list, err := db.Indexes(ctx, "Notes")
	jaytest.Must(t, err)
	jaytest.Equal(t, list[0].Options["analyzer"], "english")
}

// Ensure that patterns that mean more words than the bound are refused, and that those within it are not.
func TestText_Terms(t *testing.T) {
	quickly(t)
	fulltext.PartDocuments = 500
	db := jaytest.Memory(t, nil)
	words(t, db, nil)
	for i := range 11 {
		var s strings.Builder
		for j := range 100 {
			fmt.Fprintf(&s, "word%02dx%d ", i, j)
		}
		put(t, db, fmt.Sprintf("notes/%d", i), s.String())
	}
	jaytest.Must(t, checks.Settle(db))
	jaytest.Must(t, db.Flush(ctx)) // queries read what is on disk
	search := func(s string) error {
		_, err := db.Query("Notes").Where(jay.Search("Text", s)).NoScan().Count(ctx)
		return err
	}
	jaytest.Must(t, search("word0*"))
	var limit *query.LimitError
	if err := search("word*"); !errors.Is(err, jay.ErrQuery) || !errors.As(err, &limit) || limit.Limit != fulltext.MaxTerms {
		t.Errorf("got %v", err)
	}
}

// Ensure that texts beyond the bound of an index are refused by a typed error, and change nothing.
func TestText_Large(t *testing.T) {
	quickly(t)
	db := jaytest.Memory(t, nil)
	words(t, db, nil)
	put(t, db, "notes/1", "oak")
	_, err := db.Put(ctx, "notes/1", []byte(`{"Text":"`+strings.Repeat("a", 9<<20)+`"}`), jay.InCollection("Notes"))
	var document *jay.DocumentError
	if !errors.As(err, &document) {
		t.Errorf("got %v", err)
	}
	put(t, db, "notes/2", strings.Repeat("b", 1<<20)+" "+strings.Repeat("c ", 1<<19))
	jaytest.Must(t, checks.Settle(db))
	jaytest.Must(t, db.Flush(ctx))
	for search, want := range map[string]int64{"oak": 1, "c": 1, strings.Repeat("b", 8*128): 1} {
		jaytest.Equal(t, count(t, db.Query("Notes").Where(jay.Search("Text", search))), want)
	}
	jaytest.Verify(t, db)
}

// Ensure that the first index raises the format of its database.
func TestText_FormatRises(t *testing.T) {
	dir := t.TempDir()
	db := jaytest.Open(t, dir, nil)
	defer jaytest.Close(t, db)
	risen := func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "JAY"))
		jaytest.Must(t, err)
		if strings.Contains(string(text), "expressions") {
			t.Error("the format has risen for what is not used")
		}
		return strings.Contains(string(text), ": text\n")
	}
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Fields: []string{"Text"}}))
	if risen() {
		t.Error("an ordered index has raised it")
	}
	words(t, db, nil)
	if !risen() {
		t.Error("it has not risen")
	}
}

// Ensure that what was settled comes to the disk, where queries read it, though nobody writes afterwards.
func TestText_Synced(t *testing.T) {
	db := jaytest.Open(t, t.TempDir(), nil)
	defer jaytest.Close(t, db)
	words(t, db, nil)
	for i := range fulltext.MinTail {
		put(t, db, fmt.Sprintf("notes/%d", i), "oak")
	}
	checks.WaitSettled(db)
	keys, err := checks.IndexKeys(db) // on disk
	jaytest.Must(t, err)
	if least := 2*fulltext.MinTail + 3; keys < least { // of each document two; a block, the state and the lengths, once they are settled
		t.Errorf("%d keys are on disk, want at least %d", keys, least)
	}
}

// Ensure that writers who are faster than the settler are slowed down, so that the tail, which each query reads, does not become longer and longer.
func TestText_Throttled(t *testing.T) {
	t.Cleanup(fulltext.Quickly())
	fulltext.PartDocuments, fulltext.MaxTail, fulltext.MinBlocks = 20, 50, 20_000
	var parts atomic.Int64
	t.Cleanup(checks.OnSettle(func(context.Context) {
		parts.Add(1)
		time.Sleep(2 * time.Millisecond) // as on a slow machine
	}))
	db := jaytest.Memory(t, nil)
	words(t, db, nil)
	const enough = 250 // parts
	var wg sync.WaitGroup
	var documents atomic.Int64
	for g := range 4 {
		wg.Go(func() {
			for i := 0; parts.Load() < enough; i++ {
				put(t, db, fmt.Sprintf("notes/%d-%d", g, i), "oak")
				documents.Add(1)
			}
		})
	}
	wg.Wait()
	if n := int(documents.Load()); n > 4*enough*fulltext.PartDocuments { // without the throttle it is 6 to 8 times as many
		t.Errorf("%d documents were written while about %d were settled", n, enough*fulltext.PartDocuments)
	}
	checks.WaitSettled(db)
	jaytest.Must(t, db.Flush(ctx))
	jaytest.Equal(t, count(t, db.Query("Notes").Where(jay.Search("Text", "oak"))), documents.Load())
}

// Ensure that all of a tail is settled though each part begins where the one before it ended: also what lies before that while writers add more behind it.
func TestText_TailFromItsBeginning(t *testing.T) {
	quickly(t)
	db := jaytest.Memory(t, nil)
	words(t, db, nil)
	for i := range 5 {
		put(t, db, fmt.Sprintf("notes/b%d", i), "oak")
	}
	settle := func() {
		t.Helper()
		found, err := checks.SettleSome(db)
		jaytest.Must(t, err)
		if !found {
			t.Fatal("nothing was settled")
		}
	}
	settle()
	put(t, db, "notes/a", "ash") // before all that follows
	for round := range 20 {
		for i := range 5 {
			put(t, db, fmt.Sprintf("notes/c%d-%d", 100+round, i), "oak")
		}
		settle()
	}
	keys := func() int {
		t.Helper()
		jaytest.Must(t, db.Flush(ctx))
		n, err := checks.IndexKeys(db)
		jaytest.Must(t, err)
		return n
	}
	before := keys()
	jaytest.Must(t, db.Delete(ctx, "notes/a"))
	if after := keys(); after < before { // of a document in the tail two keys go; of one in the blocks two others come
		t.Errorf("the document was still in the tail: %d keys, and %d without it", before, after)
	}
	jaytest.Verify(t, db)
}

// Ensure that a sweep, which may have many parts, does not keep the settler from the tail, which writers make longer meanwhile.
func TestText_TailBesideSweep(t *testing.T) {
	quickly(t)
	defer func(n int) { fulltext.SweepBytes = n }(fulltext.SweepBytes)
	fulltext.SweepBytes = 1
	db := jaytest.Memory(t, nil)
	words(t, db, nil)
	settle := func() bool {
		t.Helper()
		found, err := checks.SettleSome(db)
		jaytest.Must(t, err)
		return found
	}
	keys := func() int {
		t.Helper()
		jaytest.Must(t, db.Flush(ctx))
		n, err := checks.IndexKeys(db)
		jaytest.Must(t, err)
		return n
	}
	const parts = 12 // with a block for each word of five documents: more than are enough for a sweep
	for i := range 5 * parts {
		put(t, db, fmt.Sprintf("notes/a%02d", i), fmt.Sprintf("oak%d ash%d elm%d", i, i, i))
	}
	for range 2 * parts { // every other one of the sweep
		settle()
	}
	for round := range 5 { // each in the middle of the sweep
		id := fmt.Sprintf("notes/b%d", round)
		for i := range 5 {
			put(t, db, fmt.Sprintf("%s-%d", id, i), "oak")
		}
		settle()
		settle()
		before := keys()
		jaytest.Must(t, db.Delete(ctx, id+"-0"))
		if after := keys(); after < before-1 { // of a document in the tail two keys go; of one in the blocks one goes, or another one comes
			t.Errorf("round %d: the document was still in the tail: %d keys, and %d without it", round, before, after)
		}
	}
	// A tail that is too short for a part stays as it is, and so do the numbers of documents, and scores.
	fulltext.MinTail = 3
	put(t, db, "notes/c1", "oak")
	put(t, db, "notes/c2", "oak")
	const scored = "from Notes where search(Text, 'oak') order by score(), id() select id(), score()"
	jaytest.Must(t, db.Flush(ctx))
	before := jaytest.Rows(t, db, scored)
	for range 4 {
		if !settle() {
			t.Error("the sweep was over, and nothing was tested")
		}
	}
	if after := jaytest.Rows(t, db, scored); !slices.Equal(before, after) {
		t.Errorf("scores before parts of a sweep: %q, and after them %q", before, after)
	}
	for settle() {
	}
	jaytest.Verify(t, db)
	jaytest.Equal(t, count(t, db.Query("Notes").Where(jay.Search("Text", "oak"))), 22)
}
