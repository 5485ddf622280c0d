package model_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
)

// Ensure that one content is kept once for all its attachments, counted right after
// each of their deletes, in every order and by every verb, and gone after the last.
func TestAttachments_Dedup_EveryOrder(t *testing.T) {
	sample.OneGoroutine(t)
	defer checks.SetChunkBytes(100)()
	verbs := map[string]func(db *jay.DB, i int) error{
		"attachment": func(db *jay.DB, i int) error { return db.Attachments(fmt.Sprint("users/", i)).Delete(ctx, "x") },
		"document":   func(db *jay.DB, i int) error { return db.Delete(ctx, fmt.Sprint("users/", i)) },
		"replaced": func(db *jay.DB, i int) error {
			_, err := db.Attachments(fmt.Sprint("users/", i)).Put(ctx, "X", strings.NewReader(fmt.Sprint("another", i)))
			if err == nil {
				err = db.Attachments(fmt.Sprint("users/", i)).Delete(ctx, "x")
			}
			return err
		},
		"batch": func(db *jay.DB, i int) error {
			var b jay.Batch
			b.Put(fmt.Sprint("users/", i), []byte(`{"changed":true}`))
			b.Delete(fmt.Sprint("users/", i))
			b.Put(fmt.Sprint("users/", i), []byte(`{"new":true}`), jay.InCollection("Users"))
			_, err := db.Apply(ctx, &b)
			return err
		},
		"transaction": func(db *jay.DB, i int) error {
			return db.Update(ctx, func(tx *jay.Tx) error {
				a := tx.Attachments(fmt.Sprint("users/", i))
				return errors.Join(a.Rename(ctx, "x", "y"), a.Copy(ctx, "y", fmt.Sprint("users/", i), "z"), a.Delete(ctx, "y"), a.Delete(ctx, "z"))
			})
		},
		"query": func(db *jay.DB, i int) error {
			_, err := db.Query("Users").Where(jay.Eq("n", i)).Delete(ctx)
			return err
		},
		"session": func(db *jay.DB, i int) error {
			s := db.OpenSession()
			if err := s.DeleteID(fmt.Sprint("users/", i)); err != nil {
				return err
			}
			return s.SaveChanges(ctx)
		},
	}
	orders := [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	for name, remove := range verbs {
		for _, size := range []int{0, 50, 100, 950} {
			db := memory(t, &jay.Options{Durability: jay.Relaxed})
			content := jaytest.RandomBytes(3, size)
			for _, order := range orders {
				for i := range 3 {
					put(t, db, fmt.Sprint("users/", i), fmt.Sprintf(`{"n":%d}`, i), jay.InCollection("Users"))
					jaytest.Attach(t, db, fmt.Sprint("users/", i), "x", content)
				}
				for gone, i := range order {
					left := int64(3 - gone)
					equal(t, jaytest.AttachmentCounts(t, db).Attachments, left)
					equal(t, jaytest.AttachmentCounts(t, db).Bytes, left*int64(size))
					equal(t, jaytest.AttachmentCounts(t, db).Contents, 1)
					equal(t, jaytest.AttachmentCounts(t, db).StoredBytes, int64(size))
					must(t, remove(db, i))
					if gone == 1 { // the last one still has all
						got, err := jaytest.Attached(t, db.Attachments(fmt.Sprint("users/", order[2])), "x")
						if err != nil || !bytes.Equal(got, content) {
							t.Fatalf("%s, size %d, order %v: %v", name, size, order, err)
						}
					}
					must(t, checks.Contents(db))
				}
				jaytest.CheckContents(t, db)
				equal(t, jaytest.ChunkKeys(t, db), 0)
				equal(t, jaytest.AttachmentCounts(t, db), jay.AttachmentStats{})
			}
		}
	}
}

// Ensure that whatever happens in the middle of an upload, at each of its bytes, no chunk
// goes that a document has: the same content is put by another writer, its last
// reference is removed, the chunks of streams without one are removed, the document is
// deleted, or changed.
func TestAttachments_Upload_Interleaved(t *testing.T) {
	sample.OneGoroutine(t)
	defer checks.SetChunkBytes(10)()
	content := jaytest.RandomBytes(5, 45)
	found := func(t *testing.T, err error) {
		t.Helper()
		if err != nil && !errors.Is(err, jay.ErrNotFound) {
			t.Fatal(err)
		}
	}
	steps := map[string]func(t *testing.T, db *jay.DB){
		"nothing":        func(*testing.T, *jay.DB) {},
		"another writer": func(t *testing.T, db *jay.DB) { jaytest.Attach(t, db, "a/2", "other", content) },
		"last reference": func(t *testing.T, db *jay.DB) { found(t, db.Attachments("a/0").Delete(ctx, "x")) },
		"sweep":          func(t *testing.T, db *jay.DB) { must(t, checks.RemoveContents(db)) },
		"document":       func(t *testing.T, db *jay.DB) { must(t, db.Delete(ctx, "a/0")) },
		"changed":        func(t *testing.T, db *jay.DB) { put(t, db, "a/1", `{"changed":true}`) },
		"same attachment": func(t *testing.T, db *jay.DB) {
			found(t, second(db.Attachments("a/1").Put(ctx, "x", bytes.NewReader(content))))
		},
		"document gone": func(t *testing.T, db *jay.DB) { must(t, db.Delete(ctx, "a/1")) },
	}
	names := []string{"nothing", "another writer", "last reference", "sweep", "document", "changed", "same attachment", "document gone"}
	for _, one := range names {
		for _, two := range names {
			db := memory(t, &jay.Options{Durability: jay.Relaxed})
			for _, at := range []int{0, 9, 10, 25, 45} {
				for i := range 3 {
					put(t, db, fmt.Sprint("a/", i), `{}`)
				}
				jaytest.Attach(t, db, "a/0", "x", content)
				exists := false
				r := &jaytest.HookReader{R: bytes.NewReader(content), After: at, Do: func() {
					steps[one](t, db)
					steps[two](t, db)
					must(t, checks.RemoveContents(db))
					var err error
					exists, err = db.Exists(ctx, "a/1")
					must(t, err)
				}}
				_, err := db.Attachments("a/1").Put(ctx, "x", r)
				if exists {
					must(t, err)
					got, err := jaytest.Attached(t, db.Attachments("a/1"), "x")
					if err != nil || !bytes.Equal(got, content) {
						t.Fatalf("%s, %s at %d: %v", one, two, at, err)
					}
				} else if !errors.Is(err, jay.ErrNotFound) {
					t.Fatalf("%s, %s at %d: %v, want ErrNotFound", one, two, at, err)
				}
				must(t, checks.Contents(db))
				jaytest.CheckContents(t, db)
				for i := range 3 {
					must(t, db.Delete(ctx, fmt.Sprint("a/", i)))
				}
				jaytest.CheckContents(t, db)
				equal(t, jaytest.ChunkKeys(t, db), 0)
			}
		}
	}
}

// Ensure that a random history of all verbs leaves what a model has, whatever is
// removed meanwhile and however often the database is opened again.
func TestAttachments_Contents_Model(t *testing.T) {
	sample.OneGoroutine(t)
	defer checks.SetChunkBytes(10)()
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for seed := range uint64(rounds) {
		random := rand.New(rand.NewPCG(seed, 11))
		place := jaytest.NewPlace(t)
		db := openAt(t, place, jay.Options{Durability: jay.Relaxed})
		model := make(map[string]map[string]string) // contents, by document and name
		pick := func() string { return fmt.Sprint("docs/", random.IntN(4)) }
		name := func() string { return fmt.Sprint("n", random.IntN(3)) }
		for step := range 800 {
			id, n := pick(), name()
			has := model[id] != nil
			var err error
			switch verb := random.IntN(100); {
			case verb < 15:
				put(t, db, id, fmt.Sprintf(`{"step":%d}`, step))
				if !has {
					model[id] = make(map[string]string)
				}
			case verb < 20:
				err = db.Delete(ctx, id)
				delete(model, id)
			case verb < 50:
				content := jaytest.RandomBytes(uint64(random.IntN(3)), random.IntN(4)*9)
				_, err = db.Attachments(id).Put(ctx, n, bytes.NewReader(content))
				if !has {
					if !errors.Is(err, jay.ErrNotFound) {
						t.Fatalf("step %d: %v", step, err)
					}
					err = nil
				} else {
					model[id][n] = string(content)
				}
			case verb < 60:
				if err = db.Attachments(id).Delete(ctx, n); !has && errors.Is(err, jay.ErrNotFound) {
					err = nil
				}
				delete(model[id], n)
			case verb < 75:
				to, m := pick(), name()
				content, found := model[id][n]
				if verb < 67 {
					err = db.Attachments(id).Copy(ctx, n, to, m)
				} else {
					err = db.Attachments(id).Move(ctx, n, to, m)
				}
				if !found || model[to] == nil {
					if !errors.Is(err, jay.ErrNotFound) {
						t.Fatalf("step %d: copy %s %s to %s: %v", step, id, n, to, err)
					}
					err = nil
					break
				}
				if verb >= 67 {
					delete(model[id], n)
				}
				model[to][m] = content
			case verb < 85:
				err = db.Update(ctx, func(tx *jay.Tx) error {
					if !has {
						return nil
					}
					if _, err := tx.Attachments(id).Put(ctx, n, strings.NewReader("in a transaction")); err != nil {
						return err
					}
					if random.IntN(2) == 0 {
						return errSkipped
					}
					model[id][n] = "in a transaction"
					_, err := tx.Put(ctx, id, []byte(`{"tx":true}`))
					return err
				})
				if errors.Is(err, errSkipped) {
					err = nil
				}
			case verb < 95:
				err = checks.RemoveContents(db)
			default:
				closeDB(t, db)
				db = openAt(t, place, jay.Options{Durability: jay.Relaxed})
			}
			if err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if step%20 == 0 {
				compareModel(t, db, model)
			}
		}
		compareModel(t, db, model)
		jaytest.CheckContents(t, db)
		closeDB(t, db)
	}
}

// compareModel compares all attachments with the model.
func compareModel(t *testing.T, db *jay.DB, model map[string]map[string]string) {
	t.Helper()
	must(t, checks.Contents(db))
	for id, attachments := range model {
		list, err := db.Attachments(id).List(ctx)
		must(t, err)
		if len(list) != len(attachments) {
			t.Fatalf("%s has %v, want %d attachments", id, list, len(attachments))
		}
		for name, content := range attachments {
			got, err := jaytest.Attached(t, db.Attachments(id), name)
			if err != nil || string(got) != content {
				t.Fatalf("%s of %s: %d bytes, %v, want %d bytes", name, id, len(got), err, len(content))
			}
		}
	}
}

var errSkipped = errors.New("the transaction changes nothing")
