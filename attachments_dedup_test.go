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
	"github.com/jaydb/jay/storage/storagetest"
)

// attachmentCounts returns the figures of attachments in Stats.
func attachmentCounts(t testing.TB, db *jay.DB) jay.AttachmentStats {
	t.Helper()
	s, err := db.Stats(ctx)
	must(t, err)
	return s.Attachments
}

// Ensure that one content is kept once for all its attachments, counted right after
// each of their deletes, in every order and by every verb, and gone after the last.
func TestAttachments_Dedup_EveryOrder(t *testing.T) {
	defer jay.SetChunkBytes(100)()
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
			content := randomBytes(3, size)
			for _, order := range orders {
				for i := range 3 {
					put(t, db, fmt.Sprint("users/", i), fmt.Sprintf(`{"n":%d}`, i), jay.InCollection("Users"))
					attach(t, db, fmt.Sprint("users/", i), "x", content)
				}
				for gone, i := range order {
					left := int64(3 - gone)
					equal(t, attachmentCounts(t, db).Attachments, left)
					equal(t, attachmentCounts(t, db).Bytes, left*int64(size))
					equal(t, attachmentCounts(t, db).Contents, 1)
					equal(t, attachmentCounts(t, db).StoredBytes, int64(size))
					must(t, remove(db, i))
					if gone == 1 { // the last one still has all
						got, err := attached(t, db.Attachments(fmt.Sprint("users/", order[2])), "x")
						if err != nil || !bytes.Equal(got, content) {
							t.Fatalf("%s, size %d, order %v: %v", name, size, order, err)
						}
					}
					must(t, jay.CheckContents(db))
				}
				checkContents(t, db)
				equal(t, jay.ChunkKeys(t, db), 0)
				equal(t, attachmentCounts(t, db), jay.AttachmentStats{})
			}
		}
	}
}

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
	checkContents(t, db)
	equal(t, jay.ChunkKeys(t, db), 4)
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
			checkContents(t, db)
			equal(t, jay.ChunkKeys(t, db), 0)
		}
	}
	if _, err := db.Attachments("a/1").Put(ctx, "x", bytes.NewReader(make([]byte, 61))); !errors.Is(err, jay.ErrInvalidAttachment) {
		t.Errorf("a byte too many: %v", err)
	}
	checkContents(t, db)
	equal(t, jay.ChunkKeys(t, db), 0)
	doc, err := db.Get(ctx, "a/1")
	must(t, err)
	equal(t, doc.ChangeVector(), m.ChangeVector)
}

// panicReader panics.
type panicReader struct{}

func (panicReader) Read([]byte) (int, error) { panic("a panic") }

// hookReader calls fn once, before the byte at an offset is read.
type hookReader struct {
	r     io.Reader
	after int
	fn    func()
}

func (h *hookReader) Read(p []byte) (int, error) {
	if h.after == 0 && h.fn != nil {
		h.fn()
		h.fn = nil
	}
	if h.fn != nil && len(p) > h.after {
		p = p[:h.after]
	}
	n, err := h.r.Read(p)
	h.after -= n
	return n, err
}

// Ensure that whatever happens in the middle of an upload, at each of its bytes, no chunk
// goes that a document has: the same content is put by another writer, its last
// reference is removed, the chunks of streams without one are removed, the document is
// deleted, or changed.
func TestAttachments_Upload_Interleaved(t *testing.T) {
	defer jay.SetChunkBytes(10)()
	content := randomBytes(5, 45)
	found := func(t *testing.T, err error) {
		t.Helper()
		if err != nil && !errors.Is(err, jay.ErrNotFound) {
			t.Fatal(err)
		}
	}
	steps := map[string]func(t *testing.T, db *jay.DB){
		"nothing":        func(*testing.T, *jay.DB) {},
		"another writer": func(t *testing.T, db *jay.DB) { attach(t, db, "a/2", "other", content) },
		"last reference": func(t *testing.T, db *jay.DB) { found(t, db.Attachments("a/0").Delete(ctx, "x")) },
		"sweep":          func(t *testing.T, db *jay.DB) { must(t, jay.RemoveContents(db)) },
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
				attach(t, db, "a/0", "x", content)
				exists := false
				r := &hookReader{r: bytes.NewReader(content), after: at, fn: func() {
					steps[one](t, db)
					steps[two](t, db)
					must(t, jay.RemoveContents(db))
					var err error
					exists, err = db.Exists(ctx, "a/1")
					must(t, err)
				}}
				_, err := db.Attachments("a/1").Put(ctx, "x", r)
				if exists {
					must(t, err)
					got, err := attached(t, db.Attachments("a/1"), "x")
					if err != nil || !bytes.Equal(got, content) {
						t.Fatalf("%s, %s at %d: %v", one, two, at, err)
					}
				} else if !errors.Is(err, jay.ErrNotFound) {
					t.Fatalf("%s, %s at %d: %v, want ErrNotFound", one, two, at, err)
				}
				must(t, jay.CheckContents(db))
				checkContents(t, db)
				for i := range 3 {
					must(t, db.Delete(ctx, fmt.Sprint("a/", i)))
				}
				checkContents(t, db)
				equal(t, jay.ChunkKeys(t, db), 0)
			}
		}
	}
}

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
		chunks := jay.ChunkKeys(t, db)
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
			equal(t, jay.ChunkKeys(t, db), chunks+1)
		}
		must(t, readers[1].Close())
		checkContents(t, db)
		equal(t, jay.ChunkKeys(t, db), 1)
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
	_, err = db.Attachments("a/1").Put(ctx, "y", &hookReader{r: bytes.NewReader(randomBytes(8, 100)), after: 55, fn: func() { closeDB(t, db) }})
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
	checkContents(t, db)
	equal(t, jay.ChunkKeys(t, db), 10)
	closeDB(t, db)
}

// Ensure that a random history of all verbs leaves what a model has, whatever is
// removed meanwhile and however often the database is opened again.
func TestAttachments_Model(t *testing.T) {
	defer jay.SetChunkBytes(10)()
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for seed := range uint64(rounds) {
		random := rand.New(rand.NewPCG(seed, 11))
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{Durability: jay.Relaxed})
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
				content := randomBytes(uint64(random.IntN(3)), random.IntN(4)*9)
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
				err = jay.RemoveContents(db)
			default:
				closeDB(t, db)
				db = onDisk(t, disk, jay.Options{Durability: jay.Relaxed})
			}
			if err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if step%20 == 0 {
				compareModel(t, db, model)
			}
		}
		compareModel(t, db, model)
		checkContents(t, db)
		closeDB(t, db)
	}
}

var errSkipped = errors.New("the transaction changes nothing")

// compareModel compares all attachments with the model.
func compareModel(t *testing.T, db *jay.DB, model map[string]map[string]string) {
	t.Helper()
	must(t, jay.CheckContents(db))
	for id, attachments := range model {
		list, err := db.Attachments(id).List(ctx)
		must(t, err)
		if len(list) != len(attachments) {
			t.Fatalf("%s has %v, want %d attachments", id, list, len(attachments))
		}
		for name, content := range attachments {
			got, err := attached(t, db.Attachments(id), name)
			if err != nil || string(got) != content {
				t.Fatalf("%s of %s: %d bytes, %v, want %d bytes", name, id, len(got), err, len(content))
			}
		}
	}
}

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
	checkContents(t, db)
}

// Ensure that what is to be removed goes in batches, also where there are more streams, or
// more chunks, than one batch has.
func TestAttachments_Sweep_Batches(t *testing.T) {
	defer jay.SetChunkBytes(1)()
	defer jay.KeepChunks()()
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
	equal(t, attachmentCounts(t, db).Removing, 151)
	all, batches := jay.ChunkKeys(t, db), 0
	equal(t, all, 150*3+2500+100*5)
	for more := true; more; batches++ {
		var err error
		more, err = jay.RemoveSomeContents(db)
		must(t, err)
		left := jay.ChunkKeys(t, db)
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
	checkContents(t, db)
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
	checkContents(t, db)
	must(t, db.Delete(ctx, "a/1"))
	checkContents(t, db)
	equal(t, jay.ChunkKeys(t, db), 0)
}
