package jay_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
)

// Ensure that a collection that is dropped takes its attachments along.
func TestAttachments_DropCollection(t *testing.T) {
	defer jay.SetChunkBytes(10)()
	db := memory(t, nil)
	for i := range 20 {
		put(t, db, fmt.Sprint("users/", i), `{}`, jay.InCollection("Users"))
		attach(t, db, fmt.Sprint("users/", i), "x", randomBytes(uint64(i%5), 35))
	}
	put(t, db, "other", `{}`)
	must(t, db.Attachments("users/3").Copy(ctx, "x", "other", "y"))
	_, err := db.DropCollection(ctx, "Users")
	must(t, err)
	jaytest.CheckContents(t, db)
	equal(t, jaytest.ChunkKeys(t, db), 4)
	got, err := attached(t, db.Attachments("other"), "y")
	must(t, err)
	equal(t, string(got), string(randomBytes(3, 35)))
}

// Ensure that the writes of a document keep its attachments: all verbs, one by one and in
// batches that are read ahead, with an index and without.
func TestAttachments_StayWithDocument(t *testing.T) {
	for _, indexed := range []bool{false, true} {
		db := memory(t, &jay.Options{DocumentCacheBytes: -1})
		if indexed {
			must(t, db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"n"}}))
		}
		put(t, db, "users/1", `{"n":1}`, jay.InCollection("Users"))
		info := attach(t, db, "users/1", "x", []byte("hello"))
		check := func(what string) {
			t.Helper()
			list, err := db.Attachments("users/1").List(ctx)
			must(t, err)
			if len(list) != 1 || list[0] != info {
				t.Errorf("%s: %v", what, list)
			}
			must(t, jay.CheckContents(db))
		}
		put(t, db, "users/1", `{"n":2}`)
		check("put")
		_, err := db.Replace(ctx, "Users/1", []byte(`{"n":3,"@metadata":{"@attachments":[{"Name":"y"}],"@flags":"x"}}`))
		must(t, err)
		check("replace")
		_, err = db.Patch(ctx, "users/1", jay.Increment("n", 1))
		must(t, err)
		check("patch")
		var b jay.Batch
		for i := range 300 {
			b.Put(fmt.Sprint("users/", i), []byte(`{"n":5}`), jay.InCollection("Users"))
		}
		b.Patch("users/1", jay.Increment("n", 1))
		_, err = db.Apply(ctx, &b)
		must(t, err)
		check("large batch")
		must(t, db.Update(ctx, func(tx *jay.Tx) error { _, err := tx.Put(ctx, "users/1", []byte(`{"n":6}`)); return err }))
		check("transaction")
		_, err = db.Query("Users").Where(jay.Eq("n", 6)).Patch(ctx, jay.Set("n", 7))
		must(t, err)
		check("query")
		n, err := db.Query("Users").Where(jay.Eq("n", 7)).Count(ctx)
		must(t, err)
		equal(t, n, 1)
		if indexed {
			must(t, jay.CheckIndexes(db))
		}
		must(t, db.Attachments("users/1").Rename(ctx, "x", "y"))
		n, err = db.Query("Users").Where(jay.Eq("n", 7)).Count(ctx)
		must(t, err)
		equal(t, n, 1)
	}
}

// Ensure that a stream that breaks at any byte, in any way, stores nothing.
func TestAttachments_BrokenStream(t *testing.T) {
	defer jay.SetChunkBytes(10)()
	db := memory(t, &jay.Options{MaxAttachmentBytes: 60})
	m := put(t, db, "a/1", `{}`)
	for n := range 45 {
		broken := io.MultiReader(bytes.NewReader(randomBytes(4, n)), iotest.ErrReader(io.ErrUnexpectedEOF))
		if _, err := db.Attachments("a/1").Put(ctx, "x", broken); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("broken after %d bytes: %v", n, err)
		}
		func() {
			defer func() { equal(t, fmt.Sprint(recover()), "a panic") }()
			_, err := db.Attachments("a/1").Put(ctx, "x", io.MultiReader(bytes.NewReader(randomBytes(4, n)), panicReader{}))
			t.Errorf("a panic after %d bytes: %v", n, err)
		}()
		if n%9 == 0 {
			jaytest.CheckContents(t, db)
			equal(t, jaytest.ChunkKeys(t, db), 0)
		}
	}
	if _, err := db.Attachments("a/1").Put(ctx, "x", bytes.NewReader(make([]byte, 61))); !errors.Is(err, jay.ErrInvalidAttachment) {
		t.Errorf("a byte too many: %v", err)
	}
	jaytest.CheckContents(t, db)
	equal(t, jaytest.ChunkKeys(t, db), 0)
	doc, err := db.Get(ctx, "a/1")
	must(t, err)
	equal(t, doc.ChangeVector(), m.ChangeVector)
}

// panicReader panics.
type panicReader struct{}

func (panicReader) Read([]byte) (int, error) { panic("a panic") }

// Ensure that a reader shows the whole of what it has opened, though the attachment is
// deleted, replaced and put again meanwhile and its chunks could be removed, and that
// they are when it is closed.
func TestAttachments_Reader_Deleted(t *testing.T) {
	defer jay.SetChunkBytes(10)()
	for _, size := range []int{0, 5, 10, 11, 95} {
		db := memory(t, nil)
		put(t, db, "a/1", `{}`)
		content := randomBytes(6, size)
		attach(t, db, "a/1", "x", content)
		chunks := jaytest.ChunkKeys(t, db)
		var readers []*jay.AttachmentReader
		for range 2 {
			r, err := db.Attachments("a/1").Get(ctx, "x")
			must(t, err)
			readers = append(readers, r)
		}
		begin := make([]byte, size/2)
		_, err := io.ReadFull(readers[0], begin)
		must(t, err)
		must(t, db.Attachments("a/1").Delete(ctx, "x"))
		must(t, jay.RemoveContents(db))
		attach(t, db, "a/1", "x", content)
		attach(t, db, "a/1", "x", []byte("other"))
		must(t, jay.RemoveContents(db))
		rest, err := io.ReadAll(readers[0])
		must(t, err)
		equal(t, string(begin)+string(rest), string(content))
		must(t, readers[0].Close())
		must(t, jay.RemoveContents(db))
		must(t, iotest.TestReader(readers[1], content))
		if size > 10 {
			equal(t, jaytest.ChunkKeys(t, db), chunks+1)
		}
		must(t, readers[1].Close())
		jaytest.CheckContents(t, db)
		equal(t, jaytest.ChunkKeys(t, db), 1)
	}
}

// Ensure that a reader that is open at Close ends with ErrClosed, and that an upload in
// progress does, and that Close does not wait for either.
func TestAttachments_Close(t *testing.T) {
	defer jay.SetChunkBytes(10)()
	db := open(t, t.TempDir(), nil)
	put(t, db, "a/1", `{}`)
	attach(t, db, "a/1", "x", randomBytes(7, 100))
	r, err := db.Attachments("a/1").Get(ctx, "x")
	must(t, err)
	_, err = io.ReadFull(r, make([]byte, 5))
	must(t, err)
	_, err = db.Attachments("a/1").Put(ctx, "y", &jaytest.HookReader{R: bytes.NewReader(randomBytes(8, 100)), After: 55, Do: func() { closeDB(t, db) }})
	if !errors.Is(err, jay.ErrClosed) {
		t.Errorf("an upload: %v", err)
	}
	if rest, err := io.ReadAll(r); !errors.Is(err, jay.ErrClosed) || len(rest) != 5 {
		t.Errorf("a reader: %d bytes, %v", len(rest), err)
	}
	must(t, r.Close())
	if _, err := db.Attachments("a/1").Get(ctx, "x"); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("a get: %v", err)
	}
	db = open(t, db.Dir(), nil) // sweeps
	jaytest.CheckContents(t, db)
	equal(t, jaytest.ChunkKeys(t, db), 10)
	closeDB(t, db)
}

var errSkipped = errors.New("the transaction changes nothing")

// Ensure that writers, readers and removals of the same few contents at once lose
// nothing: each reader sees whole contents, and what is left fits.
func TestAttachments_Concurrent(t *testing.T) {
	defer jay.SetChunkBytes(50)()
	db := memory(t, nil)
	contents := make(map[string]bool)
	for i := range 4 {
		contents[string(randomBytes(uint64(i), 10+i*80))] = true
	}
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 12))
			for range 60 {
				id := fmt.Sprint("docs/", random.IntN(3))
				a := db.Attachments(id)
				var err error
				switch i := random.IntN(4); random.IntN(6) {
				case 0:
					_, err = db.Put(ctx, id, []byte(`{}`))
				case 1, 2:
					_, err = a.Put(ctx, "x", bytes.NewReader(randomBytes(uint64(i), 10+i*80)))
				case 3:
					err = a.Delete(ctx, "x")
				case 4:
					var got []byte
					got, err = attached(t, a, "x")
					if err == nil && !contents[string(got)] {
						t.Errorf("a reader saw %d bytes that nobody wrote", len(got))
					}
				default:
					if i == 0 {
						err = db.Delete(ctx, id)
					} else {
						err = jay.RemoveContents(db)
					}
				}
				if err != nil && !errors.Is(err, jay.ErrNotFound) {
					t.Errorf("worker %d: %v", w, err)
				}
			}
		})
	}
	workers.Wait()
	jaytest.CheckContents(t, db)
}

// Ensure that what is to be removed goes in batches, also where there are more streams, or
// more chunks, than one batch has.
func TestAttachments_Sweep_Batches(t *testing.T) {
	defer jay.SetChunkBytes(1)()
	defer checks.KeepChunks()()
	db := memory(t, &jay.Options{Durability: jay.Relaxed})
	put(t, db, "a/1", `{}`)
	put(t, db, "a/2", `{}`)
	for i := range 150 {
		attach(t, db, "a/1", fmt.Sprint(i), []byte(fmt.Sprintf("%03d", i)))
	}
	attach(t, db, "a/1", "large", randomBytes(1, 2500))
	for range 100 {
		broken := io.MultiReader(strings.NewReader("12345"), iotest.ErrReader(io.ErrUnexpectedEOF))
		if _, err := db.Attachments("a/2").Put(ctx, "x", broken); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	}
	must(t, db.Delete(ctx, "a/1"))
	equal(t, jaytest.AttachmentCounts(t, db).Removing, 151)
	all, batches := jaytest.ChunkKeys(t, db), 0
	equal(t, all, 150*3+2500+100*5)
	for more := true; more; batches++ {
		var err error
		more, err = checks.RemoveSomeContents(db)
		must(t, err)
		left := jaytest.ChunkKeys(t, db)
		if all-left > 1024 {
			t.Errorf("a batch has removed %d chunks", all-left)
		}
		all = left
		must(t, jay.CheckContents(db))
	}
	equal(t, all, 0)
	if batches < 4 {
		t.Errorf("%d batches", batches)
	}
	jaytest.CheckContents(t, db)
}

// Ensure that a change of attachments makes a revision where revisions are kept, and that
// a revert leaves the attachments that there are.
func TestAttachments_Revisions(t *testing.T) {
	db := memory(t, nil)
	must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{}}))
	first := put(t, db, "a/1", `{"n":1}`)
	attach(t, db, "a/1", "x", []byte("hello"))
	put(t, db, "a/1", `{"n":2}`)
	must(t, db.Attachments("a/1").Rename(ctx, "x", "y"))
	_, err := db.Revisions().Revert(ctx, "a/1", first.ChangeVector)
	must(t, err)
	equal(t, body(t, db, "a/1"), `{"n":1}`)
	list, err := db.Attachments("a/1").List(ctx)
	must(t, err)
	equal(t, len(list), 1)
	equal(t, list[0].Name, "y")
	revisions := 0
	for _, err := range db.Revisions().List(ctx, "a/1", jay.RevisionPage{}) {
		must(t, err)
		revisions++
	}
	equal(t, revisions, 5)
	jaytest.CheckContents(t, db)
	must(t, db.Delete(ctx, "a/1"))
	jaytest.CheckContents(t, db)
	equal(t, jaytest.ChunkKeys(t, db), 0)
}

// Ensure that an upload that stalls holds nothing up: writes, reads, removals and Flush
// go on beside it.
func TestAttachments_Upload_Stalls(t *testing.T) {
	defer jay.SetChunkBytes(10)()
	db := memory(t, nil)
	put(t, db, "a/1", `{}`)
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := second(db.Attachments("a/1").Put(ctx, "x", r))
		_ = r.CloseWithError(errors.New("the put has ended"))
		done <- err
	}()
	_, err := w.Write(randomBytes(1, 25))
	must(t, err)
	put(t, db, "a/1", `{"n":1}`)
	attach(t, db, "a/1", "x", []byte("other"))
	must(t, jay.RemoveContents(db))
	must(t, db.Flush(ctx))
	must(t, db.Compact(ctx))
	_, err = w.Write(randomBytes(2, 25))
	must(t, err)
	must(t, w.Close())
	must(t, <-done)
	got, err := attached(t, db.Attachments("a/1"), "x")
	must(t, err)
	equal(t, string(got), string(randomBytes(1, 25))+string(randomBytes(2, 25)))
	jaytest.CheckContents(t, db)
}
