package indexer_test

// This file stops a replacement in its middle, which no call does.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/indexer"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage/storagetest"
)

// replacement is a database in which the index "At" of text is to be replaced by one of
// instants, and the task that would do so.
func replacement(t *testing.T, options *jay.Options) (*jay.DB, *indexer.Task) {
	t.Helper()
	ctx := context.Background()
	db, err := jay.Open("db", options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil && !errors.Is(err, jay.ErrClosed) {
			t.Error(err)
		}
	})
	for i := range 50 {
		at := time.Date(2026, 1, 1, i, 0, 0, 0, time.FixedZone("", 3600))
		if _, err := db.Put(ctx, fmt.Sprintf("events/%02d", i), fmt.Appendf(nil, `{"At":%q}`, at.Format(time.RFC3339)), jay.InCollection("Events")); err != nil {
			t.Fatal(err)
		}
	}
	old := jay.Index{Name: "At", Fields: []string{"At"}}
	if err := db.EnsureIndex(ctx, "Events", old); err != nil {
		t.Fatal(err)
	}
	info := jay.IndexInfo{Index: jay.Index{Name: "At", Fields: []string{"At as date"}}, Collection: "Events"}
	task := &indexer.Task{Key: indexer.KeyOf("Events", "At"), Info: info, Replaces: parts.Of(db).Indexes.Load().Find("Events", "At").Number}
	task.Ctx, task.Cancel = context.WithCancel(ctx)
	t.Cleanup(task.Cancel)
	return db, task
}

func planOf(t *testing.T, db *jay.DB, rql string) string {
	t.Helper()
	q, err := db.RQL(rql, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := q.Explain(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return e.Plan[0]
}

const (
	textQuery    = "from Events where exact(At >= '2026-01-02')"
	instantQuery = "from Events where At as date >= '2026-01-02T00:00:00Z'"
)

func statesOf(t *testing.T, db *jay.DB) string {
	t.Helper()
	infos, err := db.Indexes(context.Background(), "Events")
	if err != nil {
		t.Fatal(err)
	}
	states := []string{}
	for _, info := range infos {
		states = append(states, fmt.Sprintf("%s %s", strings.Join(info.Fields, ","), info.State))
	}
	return strings.Join(states, "; ")
}

// Ensure that the old index answers until the new one is ready, that both are
// maintained, and that the new one answers from then on.
func TestReplaceIndex_OldAnswersMeanwhile(t *testing.T) {
	ctx := context.Background()
	db, task := replacement(t, &jay.Options{FS: storagetest.NewDisk().FS})
	if err := parts.Of(db).Indexer.Declare(task); err != nil {
		t.Fatal(err)
	}
	if got := statesOf(t, db); got != "At ready; At as date building" {
		t.Errorf("declared: %s", got)
	}
	if _, err := db.Put(ctx, "events/new", []byte(`{"At":"2026-06-01T00:00:00Z"}`), jay.InCollection("Events")); err != nil {
		t.Fatal(err)
	}
	if err := db.Delete(ctx, "events/07"); err != nil {
		t.Fatal(err)
	}
	if text, instant := planOf(t, db, textQuery), planOf(t, db, instantQuery); text != `index "At", one range` || instant != "scan Events" {
		t.Errorf("declared: text by %s, instants by %s", text, instant)
	}
	if err := parts.Of(db).Indexer.Build(task); err != nil {
		t.Fatal(err)
	}
	if got := statesOf(t, db); got != "At dropping; At as date ready" {
		t.Errorf("built: %s", got)
	}
	if text, instant := planOf(t, db, textQuery), planOf(t, db, instantQuery); text != "scan Events" || instant != `index "At", one range` {
		t.Errorf("built: text by %s, instants by %s", text, instant)
	}
	if err := checks.Indexes(db); err != nil {
		t.Error(err)
	}
}

// Ensure that DropIndex in the middle of a replacement drops both indexes: while the new
// one is built, and while the old one is removed.
func TestReplaceIndex_DropInTheMiddle(t *testing.T) {
	ctx := context.Background()
	for _, built := range []bool{false, true} {
		db, task := replacement(t, &jay.Options{FS: storagetest.NewDisk().FS})
		if err := parts.Of(db).Indexer.Declare(task); err != nil {
			t.Fatal(err)
		}
		if built {
			if err := parts.Of(db).Indexer.Build(task); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.DropIndex(ctx, "events", "at"); err != nil {
			t.Error(err)
		}
		if n, err := checks.IndexKeys(db); n != 0 || err != nil || statesOf(t, db) != "" {
			t.Errorf("built %v: %d keys are left, %v, of %s", built, n, err, statesOf(t, db))
		}
	}
}

// Ensure that a replacement that has lost its task goes on: with the declaration that is
// asked for, of which there is one in the end.
func TestReplaceIndex_Continues(t *testing.T) {
	ctx := context.Background()
	for name, wanted := range map[string]jay.Index{
		"the same":    {Name: "At", Fields: []string{"At as date"}},
		"another one": {Name: "At", Fields: []string{"-At as date", "N"}},
	} {
		for _, built := range []bool{false, true} {
			db, task := replacement(t, &jay.Options{FS: storagetest.NewDisk().FS})
			if err := parts.Of(db).Indexer.Declare(task); err != nil {
				t.Fatal(err)
			}
			if built {
				if err := parts.Of(db).Indexer.Build(task); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.EnsureIndex(ctx, "Events", wanted); name == "another one" && !errors.Is(err, jay.ErrIndexExists) {
				t.Errorf("%s, built %v: without ReplaceIndex: %v", name, built, err)
			}
			parts.Of(db).Indexer.Resume() // as Open does
			if err := db.EnsureIndex(ctx, "Events", wanted, jay.ReplaceIndex()); err != nil {
				t.Errorf("%s, built %v: %v", name, built, err)
			}
			checks.WaitIndexTasks(db)
			if got, want := statesOf(t, db), strings.Join(wanted.Fields, ",")+" ready"; got != want {
				t.Errorf("%s, built %v: got %s, want %s", name, built, got, want)
			}
			if err := checks.Indexes(db); err != nil {
				t.Errorf("%s, built %v: %v", name, built, err)
			}
		}
	}
}

// Ensure that documents that refuse the new index leave the old one as it is.
func TestReplaceIndex_Refused(t *testing.T) {
	ctx := context.Background()
	db, _ := replacement(t, &jay.Options{FS: storagetest.NewDisk().FS})
	if _, err := db.Put(ctx, "events/again", []byte(`{"At":"2026-01-01T00:00:00+01:00"}`), jay.InCollection("Events")); err != nil {
		t.Fatal(err)
	}
	unique := jay.Index{Name: "At", Fields: []string{"At as date"}, Unique: true}
	for range 2 {
		err := db.EnsureIndex(ctx, "Events", unique, jay.ReplaceIndex())
		var taken *jay.UniqueError
		if !errors.As(err, &taken) || taken.Value != `["2025-12-31T23:00:00.0000000Z"]` {
			t.Errorf("got %v", err)
		}
		if got := statesOf(t, db); got != "At ready" {
			t.Errorf("got %s", got)
		}
		if err := checks.Indexes(db); err != nil {
			t.Error(err)
		}
	}
	if err := db.Delete(ctx, "events/again"); err != nil {
		t.Fatal(err)
	}
	if err := db.EnsureIndex(ctx, "Events", unique, jay.ReplaceIndex()); err != nil {
		t.Error(err)
	}
	if got := statesOf(t, db); got != "At as date ready" {
		t.Errorf("got %s", got)
	}
}

// Ensure that a loss of power after any number of chunks of a replacement, of the build
// of the new index or of the removal of the old one, ends with the new index and no
// entry of the old one: the next Open goes on by itself.
func TestReplaceIndex_Crash_InTheMiddle(t *testing.T) {
	defer checks.SetBuildChunks(7, 7)()
	ctx := context.Background()
	for step := range 16 {
		for _, percent := range []int{0, 100} {
			disk := storagetest.NewDisk()
			db, task := replacement(t, &jay.Options{FS: disk.FS})
			if err := parts.Of(db).Indexer.Declare(task); err != nil {
				t.Fatal(err)
			}
			chunks := min(step, 8) // of 50 documents: the last one ends the build
			if err := buildChunks(db, task, chunks); err != nil {
				t.Fatal(err)
			}
			if step >= 8 {
				if err := parts.Of(db).Indexer.FinishBuild(task); err != nil {
					t.Fatal(err)
				}
				for range step - 8 {
					if _, err := parts.Of(db).Indexer.RemoveChunk(task.Replaces, nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			crashed := disk.Crash(percent, rand.New(rand.NewPCG(uint64(step), 1)))
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}

			again, err := jay.Open("db", &jay.Options{FS: crashed.FS})
			if err != nil {
				t.Fatal(err)
			}
			q := again.Query("Events").Where(jay.Ge("At", time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)))
			if n, err := q.Count(ctx); n != 25 || err != nil {
				t.Errorf("step %d, %d%%: %d answers, %v, want 25", step, percent, n, err)
			}
			checks.WaitIndexTasks(again)
			if got := statesOf(t, again); got != "At as date ready" {
				t.Errorf("step %d, %d%%: %s", step, percent, got)
			}
			if err := checks.Indexes(again); err != nil {
				t.Errorf("step %d, %d%%: %v", step, percent, err)
			}
			if n, err := q.NoScan().Count(ctx); n != 25 || err != nil {
				t.Errorf("step %d, %d%%: %d answers, %v, want 25", step, percent, n, err)
			}
			if err := again.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// buildChunks is buildIndex up to a number of chunks.
func buildChunks(db *jay.DB, task *indexer.Task, chunks int) error {
	ix := parts.Of(db).Indexes.Load().ByNumber(task.Number)
	w, err := parts.Of(db).Scan(docs.Range{Collection: "Events"}, parts.Of(db).Env.Engine.Latest)
	if err != nil {
		return err
	}
	defer w.Close()
	e := indexer.NewBuildExtraction(ix)
	for range chunks {
		chunk, _, err := parts.Of(db).Indexer.NextChunk(task.Ctx, w, e)
		if err != nil {
			return err
		}
		if err := parts.Of(db).Indexer.EnterChunk(ix, chunk); err != nil {
			return err
		}
	}
	return nil
}
