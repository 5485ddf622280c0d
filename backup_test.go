package jay_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/backup"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/invariants"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/internal/verify"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/storagetest"
)

// readersOf returns readers of backups.
func readersOf(streams ...[]byte) (readers []io.Reader) {
	for _, stream := range streams {
		readers = append(readers, jaytest.ReadBackup(stream))
	}
	return readers
}

// restoreMemory restores backups on a disk in memory, with the node tag B, and opens
// the result.
func restoreMemory(t testing.TB, opts jay.Options, streams ...[]byte) *jay.DB {
	t.Helper()
	opts.FS = storagetest.NewDisk()
	if _, err := jay.Restore(ctx, "restored", jay.RestoreOptions{CopyTag: "B", Options: &opts}, readersOf(streams...)...); err != nil {
		t.Fatal(err)
	}
	db, err := jay.Open("restored", &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func sameDocuments(t testing.TB, want, got map[string]string) {
	t.Helper()
	for id, text := range want {
		if got[id] != text {
			t.Errorf("document %q is %.200s, want %.200s", id, got[id], text)
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %d documents, want %d", len(got), len(want))
	}
}

// writing is a writer that does something else before it is written to.
type writing struct {
	io.Writer
	before func()
}

func (w writing) Write(p []byte) (int, error) {
	w.before()
	return w.Writer.Write(p)
}

// Ensure that a backup that is made while everything writes restores to the state at its etag,
// document by document; and that the restored database makes no ID that one has.
func TestBackup_WhileWriting(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	type write struct {
		id, body string // "" for a deletion
		etag     uint64
	}
	logs := make([][]write, 4)
	var writers sync.WaitGroup
	done, begun := make(chan struct{}), make(chan struct{}, len(logs))
	for i := range logs {
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				id := fmt.Sprintf("docs/%d-%d", i, n%200)
				var m jay.Metadata
				var err error
				body := fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, strings.Repeat("abc ", n%40))
				if n%7 == 6 {
					body = ""
					var all []jay.Metadata
					var b jay.Batch
					b.Delete(id)
					if all, err = db.Apply(ctx, &b); err == nil {
						m = all[0]
					}
				} else {
					m, err = db.Put(ctx, id, json.RawMessage(body), jay.InCollection("Docs"))
				}
				if err != nil {
					t.Error(err)
					return
				}
				if m.Etag > 0 { // a deletion of nothing has none
					logs[i] = append(logs[i], write{id, body, m.Etag})
				}
				if n == 300 {
					begun <- struct{}{}
				}
			}
		})
	}
	for range logs {
		<-begun
	}
	var stream bytes.Buffer
	info, err := db.Backup(ctx, &stream)
	close(done)
	writers.Wait()
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]string)
	for _, log := range logs {
		for _, w := range log {
			if w.etag > info.Etag {
				break
			}
			if delete(want, w.id); w.body != "" {
				want[w.id] = w.body
			}
		}
	}
	restored := restoreMemory(t, jay.Options{}, stream.Bytes())
	n := 0
	for doc, err := range restored.Documents(ctx, jay.Scan{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; want[doc.ID()] != string(doc.Body()) {
			t.Errorf("%s is %.100s, want %.100s", doc.ID(), doc.Body(), want[doc.ID()])
		}
	}
	if n != len(want) || int64(n) != info.Documents {
		t.Errorf("%d documents are restored, %d were there, and the backup has %d", n, len(want), info.Documents)
	}
	made := make(map[string]bool)
	for range 100 {
		m, err := restored.Store(ctx, "Docs", json.RawMessage(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Get(ctx, m.ID); !errors.Is(err, jay.ErrNotFound) || made[m.ID] {
			t.Fatalf("%s is made, and was there: %v", m.ID, err)
		}
		made[m.ID] = true
	}
}

// Ensure that a write during a backup is not in it, however it is done and wherever
// the backup is: the writes happen between two pieces of the stream.
func TestBackup_OneMoment(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	fill := func(n int) {
		var b jay.Batch
		for i := range 3000 {
			b.Put(fmt.Sprint("docs/", i), []byte(fmt.Sprintf(`{"n":%d,"i":%d,"s":"%x"}`, n, i, strings.Repeat(fmt.Sprint(i*7919), 60))), jay.InCollection("Docs"))
		}
		if _, err := db.Apply(ctx, &b); err != nil {
			t.Fatal(err)
		}
	}
	fill(0)
	want := documentsOf(t, db)
	var stream bytes.Buffer
	writes := 0
	_, err := db.Backup(ctx, writing{&stream, func() {
		writes++
		put(t, db, fmt.Sprint("new/", writes), `{}`)
		put(t, db, fmt.Sprint("docs/", 2999-writes), `{"changed":true}`)
		if err := db.Delete(ctx, fmt.Sprint("docs/", writes)); err != nil {
			t.Error(err)
		}
	}}, jay.BackupPlain()) // an encrypted one comes in fewer pieces
	if err != nil || writes < 5 {
		t.Fatalf("%d writes, %v", writes, err)
	}
	restored := restoreMemory(t, jay.Options{}, stream.Bytes())
	got := documentsOf(t, restored)
	sameDocuments(t, want, got)
}

// Ensure that a database that is closed while it is backed up ends the backup, and that
// a context and an error of the writer do.
func TestBackup_Ends(t *testing.T) {
	fill := func() *jay.DB {
		db := memory(t, nil)
		for i := range 10 {
			put(t, db, fmt.Sprint("d/", i), `{"s":"`+strings.Repeat("x", 300_000)+`"}`)
		}
		return db
	}
	db := fill()
	var closed bool
	_, err := db.Backup(ctx, writing{io.Discard, func() {
		if !closed {
			closed = true
			closeDB(t, db)
		}
	}})
	if !errors.Is(err, jay.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	db = fill()
	ending, cancel := context.WithCancel(ctx)
	if _, err = db.Backup(ending, writing{io.Discard, cancel}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err = db.Backup(ctx, fullWriter{}); !errors.Is(err, errFull) {
		t.Errorf("a writer that fails: %v", err)
	}
	info, stream := backUp(t, db) // none of those has moved the floor
	if _, err := jay.VerifyBackup(ctx, nil, jaytest.ReadBackup(stream)); err != nil || info.Documents != 10 {
		t.Errorf("%+v, %v", info, err)
	}
}

var errFull = errors.New("no space left")

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errFull }

// Ensure that a chain is restored in its order only, and only whole.
func TestRestore_Chain(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{}`)
	info, full := backUp(t, db)
	put(t, db, "b", `{}`)
	info, one := backUp(t, db, jay.BackupSince(info.ID))
	put(t, db, "c", `{}`)
	_, two := backUp(t, db, jay.BackupSince(info.ID))
	_, again := backUp(t, db)
	_, other := backUp(t, jaytest.Incompressible(t, 1))
	for _, row := range []struct {
		name    string
		streams [][]byte
		stream  int
	}{
		{"no full one", [][]byte{one}, 0},
		{"one left out", [][]byte{full, two}, 1},
		{"exchanged", [][]byte{full, two, one}, 1},
		{"twice", [][]byte{full, one, one}, 2},
		{"two full ones", [][]byte{full, again}, 1},
		{"of another full one", [][]byte{again, one}, 1},
		{"of another database", [][]byte{other, one}, 1},
	} {
		disk := storagetest.NewDisk()
		_, err := jay.Restore(ctx, "new", jay.RestoreOptions{CopyTag: "B", Options: &jay.Options{FS: disk}}, readersOf(row.streams...)...)
		var damage *jay.BackupError
		if !errors.As(err, &damage) || damage.Stream != row.stream {
			t.Errorf("%s: %v", row.name, err)
		}
		if names, _ := disk.List("/"); len(names) > 0 {
			t.Errorf("%s: %q is left", row.name, names)
		}
	}
	whole, err := jay.VerifyBackup(ctx, nil, readersOf(full, one, two)...)
	if err != nil || len(whole) != 3 || whole[2].Base != whole[1].ID {
		t.Errorf("%+v, %v", whole, err)
	}
	if _, err := jay.VerifyBackup(ctx, nil, readersOf(one, two)...); err != nil {
		t.Errorf("the end of a chain: %v", err)
	}
	if n := len(documentsOf(t, restoreMemory(t, jay.Options{}, full, one, two))); n != 3 {
		t.Errorf("%d documents are restored", n)
	}
}

// Ensure that an application keeps its promise of IDs when yesterday's backup is
// restored and the original has gone on: under a new node tag without more, and under the same one only
// with floors for all that it may have used.
func TestRestore_Promise(t *testing.T) {
	made := make(map[string]string) // who made an ID
	make1 := func(db *jay.DB, who string, identities bool) {
		t.Helper()
		ids := []string{"orders/", ""}
		if identities {
			ids = append(ids, "invoices|")
		}
		for range 40 {
			for _, request := range ids {
				m, err := db.Put(ctx, request, json.RawMessage(`{}`), jay.InCollection("Mixed"))
				if err != nil {
					t.Fatal(err)
				}
				if made[m.ID] != "" {
					t.Fatalf("%s makes %s, which %s has made", who, m.ID, made[m.ID])
				}
				made[m.ID] = who
			}
			m, err := db.Store(ctx, "Users", json.RawMessage(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			if made[m.ID] != "" {
				t.Fatalf("%s makes %s, which %s has made", who, m.ID, made[m.ID])
			}
			made[m.ID] = who
		}
	}
	db := memory(t, nil)
	make1(db, "the original", true)
	_, stream := backUp(t, db)
	make1(db, "the original, later", true) // lost with it
	used, err := db.Counters(ctx)
	if err != nil {
		t.Fatal(err)
	}

	copied := restoreMemory(t, jay.Options{}, stream)
	if _, err := copied.Put(ctx, "invoices|", json.RawMessage(`{}`)); !errors.Is(err, jay.ErrNeedsFloor) {
		t.Errorf("an identity without a floor: %v", err)
	}
	make1(copied, "a copy", false)
	if err := copied.RaiseCounters(ctx, jay.Counters{Identities: map[string]int64{"invoices|": 1000}}); err != nil {
		t.Fatal(err)
	}
	make1(copied, "a copy with a floor", true)

	restore := func(o jay.RestoreOptions) (*storagetest.Disk, error) {
		disk := storagetest.NewDisk()
		o.Options = &jay.Options{FS: disk}
		_, err := jay.Restore(ctx, "db", o, jaytest.ReadBackup(stream))
		return disk, err
	}
	for _, row := range []struct {
		o       jay.RestoreOptions
		want    error
		mention string
	}{
		{jay.RestoreOptions{}, jay.ErrOption, "CopyTag"},
		{jay.RestoreOptions{CopyTag: "B", SameTag: true}, jay.ErrOption, "exclude"},
		{jay.RestoreOptions{CopyTag: "b"}, jay.ErrOption, ""},
		{jay.RestoreOptions{CopyTag: "A"}, jay.ErrFixed, "A"},
		{jay.RestoreOptions{SameTag: true}, jay.ErrNeedsFloor, "identity invoices| (40), hilo users"},
		{jay.RestoreOptions{SameTag: true, Floors: jay.Counters{Etag: used.Etag, HiLo: used.HiLo}}, jay.ErrNeedsFloor, "invoices|"},
		{jay.RestoreOptions{SameTag: true, Floors: jay.Counters{Etag: used.Etag, HiLo: used.HiLo, Identities: map[string]int64{"invoices|": 39}}}, jay.ErrNeedsFloor, "invoices| (40)"},
	} {
		disk, err := restore(row.o)
		if !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.mention) {
			t.Errorf("%+v: %v", row.o, err)
		}
		if names, _ := disk.List("/"); len(names) > 0 {
			t.Errorf("%+v: %q is left", row.o, names)
		}
	}
	disk, err := restore(jay.RestoreOptions{SameTag: true, Floors: used})
	if err != nil {
		t.Fatal(err)
	}
	same := onDisk(t, disk, jay.Options{})
	defer closeDB(t, same)
	make1(same, "the restored one", true)
}

// Ensure that compare-exchange values and results of calls are restored as they were, and that
// a restored database with a floor for etags makes no index that its original has made since the backup.
func TestRestore_CompareExchange(t *testing.T) {
	db := memory(t, nil)
	first := exchanged(t, db.CompareExchange(), "Lock", "ann", 0)
	info, full := backUp(t, db)
	second := exchanged(t, db.CompareExchange(), "Lock", "bob", first)
	n, err := db.NextIdentity(ctx, "calls", jay.RequestID("once"))
	if err != nil {
		t.Fatal(err)
	}
	_, more := backUp(t, db, jay.BackupSince(info.ID))
	lost := uint64(0) // an index that a client of the lost database holds
	for i := range 10 {
		lost = exchanged(t, db.CompareExchange(), fmt.Sprint("later/", i), i, 0)
	}
	used, err := db.Counters(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if used.Etag < lost {
		t.Errorf("the etag of Counters is %d, below index %d", used.Etag, lost)
	}

	for _, floor := range []uint64{0, used.Etag} {
		disk := storagetest.NewDisk()
		o := jay.RestoreOptions{CopyTag: "B", Floors: jay.Counters{Etag: floor, Identities: map[string]int64{"calls|": 100}}, Options: &jay.Options{FS: disk}}
		if _, err := jay.Restore(ctx, "db", o, readersOf(full, more)...); err != nil {
			t.Fatal(err)
		}
		restored := onDisk(t, disk, jay.Options{})
		x := restored.CompareExchange()
		if value, index := valueOf(t, x, "lock"); value != `"bob"` || index != second {
			t.Errorf("restored is %s with index %d, want bob with %d", value, index, second)
		}
		if again, err := restored.NextIdentity(ctx, "calls", jay.RequestID("once")); err != nil || again != n {
			t.Errorf("a call that is repeated returns %d, %v, want %d", again, err, n)
		}
		if index := exchanged(t, x, "lock", "cid", second); index <= max(second, floor) {
			t.Errorf("a new index is %d, and the floor was %d, and %d was used", index, floor, second)
		}
		closeDB(t, restored)
	}
}

// Ensure that a backup of a damaged database is refused, with the number of damages and one of
// them, unless they are accepted; and that keys of no known kind, which are no damage of a
// backup, hide none.
func TestRestore_Damaged(t *testing.T) {
	db, err := jay.OpenMemory(nil)
	must(t, err)
	defer func() { must(t, db.Close()) }() // without a check: it is damaged
	put(t, db, "ann", `{}`)
	put(t, db, "bob", `{}`) // a collection with a number of documents, and none, does not open
	set := func(key, value []byte) {
		must(t, checks.Engine(db).Update(ctx, true, func(tx storage.Tx) error {
			if value == nil {
				tx.Delete(key)
			} else {
				tx.Set(key, value, nil)
			}
			return nil
		}))
	}
	restore := func(accept func(jay.Damage)) error {
		_, stream := backUp(t, db, jay.BackupOnce())
		_, err := jay.Restore(ctx, "db", jay.RestoreOptions{CopyTag: "B", Damage: accept, Options: &jay.Options{FS: storagetest.NewDisk()}}, jaytest.ReadBackup(stream))
		return err
	}
	for i := range verify.DefaultDamages {
		set([]byte(fmt.Sprintf("z%04d", i)), []byte("of a later version"))
	}
	must(t, restore(nil))
	set(format.MemberKey(nil, "@empty", "ann"), nil)
	if err := restore(nil); !errors.Is(err, jay.ErrBackup) || !strings.Contains(err.Error(), "1 damages") {
		t.Errorf("beside keys of no known kind: %v", err)
	}
	for i := range verify.DefaultDamages {
		set([]byte(fmt.Sprintf("z%04d", i)), nil)
	}
	if err := restore(nil); !errors.Is(err, jay.ErrBackup) || !strings.Contains(err.Error(), "1 damages") || !strings.Contains(err.Error(), "member-missing") {
		t.Errorf("damaged: %v", err)
	}
	var accepted []string
	must(t, restore(func(d jay.Damage) { accepted = append(accepted, d.Kind) }))
	if len(accepted) != 1 || accepted[0] != "member-missing" {
		t.Errorf("accepted: %q", accepted)
	}
}

// Ensure that a backup in which the content of an attachment claims chunks of another size,
// so that it cannot be read, is not restored, and that a check of the database finds it. What
// is restored can be read: one chunk is the same for each size that it does not exceed.
func TestRestore_ChunksOfAnotherSize(t *testing.T) {
	sample.OneGoroutine(t)
	if invariants.Enabled {
		t.Skip("Close checks what this test damages")
	}
	for name, change := range map[string]func(c *format.Content){
		"twice":        func(c *format.Content) { c.ChunkBytes *= 2 },
		"half":         func(c *format.Content) { c.ChunkBytes /= 2 },
		"1,000 times":  func(c *format.Content) { c.ChunkBytes *= 1000 },
		"one byte":     func(c *format.Content) { c.ChunkBytes++ },
		"another size": func(c *format.Content) { c.Size-- },
	} {
		for _, chunks := range []int{1, 3} {
			db, err := jay.OpenMemory(nil)
			must(t, err)
			put(t, db, "ann", `{}`)
			text := bytes.Repeat([]byte("x"), (chunks-1)*256<<10+100_000)
			must(t, second(db.Attachments("ann").Put(ctx, "f", bytes.NewReader(text))))
			hash := sha256.Sum256(text)
			must(t, checks.Engine(db).Update(ctx, true, func(tx storage.Tx) error {
				record, closer, err := tx.Get(format.ContentKey(&hash))
				must(t, err)
				c, err := format.DecodeContent(record)
				must(t, err)
				must(t, closer.Close())
				change(&c)
				tx.Set(format.ContentKey(&hash), c.Append(nil), nil)
				return nil
			}))
			report, err := db.Verify(ctx, nil)
			must(t, err)
			_, stream := backUp(t, db, jay.BackupOnce())
			must(t, db.Close())
			disk := storagetest.NewDisk()
			_, err = jay.Restore(ctx, "db", jay.RestoreOptions{CopyTag: "B", Options: &jay.Options{FS: disk}}, jaytest.ReadBackup(stream))

			if readable := chunks == 1 && name != "another size"; !readable {
				if report.Found == 0 || !errors.Is(err, jay.ErrBackup) {
					t.Errorf("%s, %d chunks: Verify found %d damages, Restore: %v", name, chunks, report.Found, err)
				}
				continue
			}
			must(t, err)
			restored, err := jay.Open("db", &jay.Options{FS: disk})
			must(t, err)
			reader, err := restored.Attachments("ann").Get(ctx, "f")
			must(t, err)
			if got, err := io.ReadAll(reader); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%s, %d chunks: %d bytes, %v", name, chunks, len(got), err)
			}
			must(t, reader.Close())
			must(t, restored.Close())
		}
	}
}

// Ensure that the first backup of a restored database is a full one.
func TestRestore_NoBase(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{}`)
	info, stream := backUp(t, db)
	restored := restoreMemory(t, jay.Options{}, stream)
	for _, base := range []string{info.ID} {
		if _, err := restored.Backup(ctx, io.Discard, jay.BackupSince(base)); !errors.Is(err, jay.ErrBackupBase) {
			t.Errorf("%v", err)
		}
	}
	next, again := backUp(t, restored)
	put(t, restored, "b", `{}`)
	_, more := backUp(t, restored, jay.BackupSince(next.ID))
	disk := storagetest.NewDisk()
	if _, err := jay.Restore(ctx, "new", jay.RestoreOptions{CopyTag: "C", Options: &jay.Options{FS: disk}}, readersOf(again, more)...); err != nil {
		t.Error(err)
	}
}

// Ensure that indexes are built by a restore, unique ones too, and are right.
func TestRestore_Indexes(t *testing.T) {
	sample.OneGoroutine(t)
	db := memory(t, nil)
	for _, ix := range []jay.Index{{Fields: []string{"City", "-Age"}}, {Fields: []string{"Mail"}, Unique: true}} {
		if err := db.EnsureIndex(ctx, "Users", ix); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 700 {
		put(t, db, fmt.Sprint("users/", i), fmt.Sprintf(`{"City":["a","b%d"],"Age":%d,"Mail":"m%d"}`, i%9, i, i), jay.InCollection("Users"))
	}
	_, stream := backUp(t, db)
	restored := restoreMemory(t, jay.Options{}, stream)
	if err := checks.Indexes(restored); err != nil {
		t.Error(err)
	}
	all, err := restored.Indexes(ctx, "")
	if err != nil || len(all) != 2 || all[0].State != jay.IndexReady || all[1].State != jay.IndexReady {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := restored.Put(ctx, "users/x", json.RawMessage(`{"Mail":"m5"}`), jay.InCollection("Users")); !errors.Is(err, jay.ErrUnique) {
		t.Errorf("a value of a unique index again: %v", err)
	}
}

// unread is a backup that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the backup was read")
	return 0, io.EOF
}

// Ensure that the directory to be made must not exist, that a directory that is being
// made is no database, and that options that write elsewhere are refused, and invalid ones before a backup is read.
func TestRestore_Directory(t *testing.T) {
	t.Parallel()
	_, stream := backUp(t, jaytest.Incompressible(t, 5))
	dir := filepath.Join(t.TempDir(), "db")
	o := jay.RestoreOptions{CopyTag: "B"}
	info, err := jay.Restore(ctx, dir, o, jaytest.ReadBackup(stream))
	if err != nil || info.Documents != 5 || info.NodeTag != "B" {
		t.Fatalf("%+v, %v", info, err)
	}
	if _, err := jay.Restore(ctx, dir, o, jaytest.ReadBackup(stream)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a directory that is there: %v", err)
	}
	if _, err := os.Stat(dir + ".unfinished"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was made: %v", err)
	}
	other := filepath.Join(t.TempDir(), "db")
	if err := os.Mkdir(other+".unfinished", 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := jay.Restore(ctx, other, o, jaytest.ReadBackup(stream)); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a directory that is being made: %v", err)
	}
	for _, options := range []jay.Options{{CopyTag: "C"}, {NodeTag: "C"}, {ReadOnly: true}, {AcceptLoss: func(*jay.DamageError) {}}} {
		if _, err := jay.Restore(ctx, other, jay.RestoreOptions{CopyTag: "B", Options: &options}, jaytest.ReadBackup(stream)); !errors.Is(err, jay.ErrOption) {
			t.Errorf("%+v: %v", options, err)
		}
	}
	invalid := jay.RestoreOptions{CopyTag: "B", Options: &jay.Options{MaxDepth: -1}}
	if _, err := jay.Restore(ctx, dir+"1", invalid, unread{t}); !errors.Is(err, jay.ErrOption) || !strings.Contains(err.Error(), "MaxDepth") {
		t.Errorf("an invalid option: %v", err)
	}
	if _, err := jay.Restore(ctx, dir+"2", o); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("no backup: %v", err)
	}
	if _, err := jay.Restore(ctx, "", o, jaytest.ReadBackup(stream)); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("no directory: %v", err)
	}
}

// peak is the most memory that was in use at any of its samples.
func peak(fn func()) (bytes uint64) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		var m runtime.MemStats
		for {
			runtime.ReadMemStats(&m)
			bytes = max(bytes, m.HeapInuse)
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	fn()
	close(done)
	<-ended
	return bytes
}

// TestBackup_Speed prints how fast a backup of JAY_BACKUP_DOCUMENTS documents, an
// incremental one with a hundredth of them, their restore and a checkpoint are. The
// table is that of docs/backup.md.
func TestBackup_Speed(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("JAY_BACKUP_DOCUMENTS"))
	if err != nil {
		t.Skip("make backup")
	}
	dir := t.TempDir()
	db := open(t, filepath.Join(dir, "db"), nil)
	defer db.Close()
	must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"Customer", "-Total"}}))
	document := func(i, version int) []byte {
		return fmt.Appendf(nil, `{"Customer":"customers/%d-A","Total":%d.%02d,"Version":%d,"Ordered":"2026-%02d-%02dT10:00:00.0000000Z","ShipTo":{"City":"City %d","Street":"%d Main Street","Zip":"%05d"},"Lines":[{"Product":"products/%d-A","Price":%d.5,"Quantity":%d},{"Product":"products/%d-A","Price":%d.25,"Quantity":%d}],"Note":"%x"}`,
			i*7919%5000, i%1000, i%100, version, 1+i%12, 1+i%28, i*31%900, i%500, i*13%99999, i%77, i%99, i%9, i*3%77, i%55, i%5, uint64(i)*0x9E3779B97F4A7C15)
	}
	bodies := int64(0)
	for from := 0; from < n; from += 1000 {
		var b jay.Batch
		for i := from; i < min(from+1000, n); i++ {
			body := document(i, 0)
			bodies += int64(len(body))
			b.Put(fmt.Sprintf("orders/%d-A", i), body, jay.InCollection("Orders"))
		}
		_, err := db.Apply(ctx, &b)
		must(t, err)
	}
	must(t, db.Compact(ctx))
	report := func(what string, begun time.Time, bytes int64, memory uint64) {
		took := time.Since(begun).Seconds()
		t.Logf("%-28s %6.2f s  %7.0f documents/s  %6.1f MB/s of bodies, %6.1f MB written or read, %4d MB of heap", what, took, float64(n)/took, float64(bodies)/1e6/took, float64(bytes)/1e6, memory>>20)
	}
	t.Logf("%d documents, %.1f MB of bodies", n, float64(bodies)/1e6)
	var info jay.BackupInfo
	var full, more bytes.Buffer
	begun := time.Now()
	memory := peak(func() { info, err = db.Backup(ctx, io.Discard, jay.BackupOnce()) })
	must(t, err)
	report("backup", begun, info.Bytes, memory)
	info, err = db.Backup(ctx, &full)
	must(t, err)
	for i := 0; i < n; i += 100 {
		put(t, db, fmt.Sprintf("orders/%d-A", i), string(document(i, 1)), jay.InCollection("Orders"))
	}
	begun = time.Now()
	info, err = db.Backup(ctx, &more, jay.BackupSince(info.ID))
	must(t, err)
	report("incremental, 1 %", begun, info.Bytes, 0)
	begun = time.Now()
	_, err = jay.VerifyBackup(ctx, nil, bytes.NewReader(full.Bytes()))
	must(t, err)
	report("verify", begun, int64(full.Len()), 0)
	begun = time.Now()
	memory = peak(func() {
		_, err = jay.Restore(ctx, filepath.Join(dir, "restored"), jay.RestoreOptions{CopyTag: "B"}, bytes.NewReader(full.Bytes()), bytes.NewReader(more.Bytes()))
	})
	must(t, err)
	report("restore of both, one index", begun, int64(full.Len()+more.Len()), memory)
	begun = time.Now()
	must(t, db.Checkpoint(ctx, filepath.Join(dir, "copy")))
	report("checkpoint", begun, 0, 0)
}

// Ensure that a checkpoint that is made while everything writes opens, has all that was acknowledged
// before and of what came later a prefix, and that neither notices the other afterwards.
func TestCheckpoint_WhileWriting(t *testing.T) {
	t.Parallel()
	for _, durability := range []jay.Durability{jay.Synced, jay.Relaxed} {
		dir := t.TempDir()
		db := open(t, filepath.Join(dir, "db"), &jay.Options{Durability: durability})
		defer db.Close()
		if err := db.EnsureIndex(ctx, "Docs", jay.Index{Fields: []string{"n"}}); err != nil {
			t.Fatal(err)
		}
		const before = 200
		for i := range before {
			put(t, db, fmt.Sprint("docs/", i), fmt.Sprintf(`{"n":%d}`, i), jay.InCollection("Docs"))
		}
		var writer sync.WaitGroup
		done := make(chan struct{})
		writer.Go(func() {
			for i := before; ; i++ {
				select {
				case <-done:
					return
				default:
					put(t, db, fmt.Sprint("docs/", i), fmt.Sprintf(`{"n":%d}`, i), jay.InCollection("Docs"))
				}
			}
		})
		for round := range 3 {
			if err := db.Checkpoint(ctx, filepath.Join(dir, fmt.Sprint("copy", round))); err != nil {
				t.Fatal(err)
			}
		}
		close(done)
		writer.Wait()
		for round := range 3 {
			copied := open(t, filepath.Join(dir, fmt.Sprint("copy", round)), &jay.Options{CopyTag: "B", MustExist: true})
			all := documentsOf(t, copied)
			for i := range len(all) {
				if all[fmt.Sprint("docs/", i)] == "" {
					t.Fatalf("round %d: of %d documents, number %d is missing", round, len(all), i)
				}
			}
			if len(all) < before {
				t.Errorf("round %d: %d documents", round, len(all))
			}
			if err := errors.Join(checks.Indexes(copied), checks.Counts(copied)); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			put(t, copied, "only-here", `{}`)
			if err := copied.Compact(ctx); err != nil {
				t.Error(err)
			}
			closeDB(t, copied)
		}
		if _, err := db.Get(ctx, "only-here"); !errors.Is(err, jay.ErrNotFound) {
			t.Errorf("a document of a checkpoint: %v", err)
		}
		if err := db.Compact(ctx); err != nil {
			t.Error(err)
		}
		closeDB(t, db)
		db = open(t, filepath.Join(dir, "db"), nil)
		if err := checks.Indexes(db); err != nil {
			t.Error(err)
		}
		closeDB(t, db)
	}
}

// Ensure that a checkpoint takes the place of nothing, lies outside of the database, and
// is refused where it cannot be.
func TestCheckpoint_Refused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "db")
	db := open(t, path, nil)
	defer closeDB(t, db)
	put(t, db, "a", `{}`)
	there, unfinished := filepath.Join(dir, "there"), filepath.Join(dir, "begun.unfinished")
	for _, name := range []string{there, unfinished} {
		if err := os.Mkdir(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{there, path, strings.TrimSuffix(unfinished, ".unfinished")} {
		if err := db.Checkpoint(ctx, name); err == nil || name != path && !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	inside := filepath.Join(path, "copy")
	if err := db.Checkpoint(ctx, inside); err == nil {
		t.Error("a checkpoint in the directory of the database")
	}
	if _, err := os.Stat(inside); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v", inside, err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := db.Checkpoint(ended, filepath.Join(dir, "x")); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if err := memory(t, nil).Checkpoint(ctx, "x"); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("in memory: %v", err)
	}
	if err := db.Checkpoint(ctx, filepath.Join(dir, "good")); err != nil {
		t.Error(err)
	}
}

// Ensure that a disk without room for a checkpoint fails the checkpoint, and not the
// database.
func TestCheckpoint_NoRoom(t *testing.T) {
	t.Parallel()
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	defer closeDB(t, db)
	put(t, db, "a", `{}`)
	for files := range 80 {
		disk.FailCreationsIn("copy", files)
		err := db.Checkpoint(ctx, "copy")
		disk.Heal()
		if err == nil {
			if files < 4 {
				t.Errorf("a checkpoint of %d files", files)
			}
			return
		}
		if names, _ := disk.List("/"); len(names) != 1 {
			t.Errorf("with room for %d files, %q are left", files, names)
		}
		put(t, db, "a", `{}`)
	}
	t.Error("no checkpoint was made")
}

// Ensure that a checkpoint is refused while another one is made.
func TestCheckpoint_OneAtATime(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	defer closeDB(t, db)
	put(t, db, "a", `{}`)
	var asked atomic.Bool
	var second error
	disk.OnEverySync(func() {
		names, _ := disk.List("/")
		begun := slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "first") })
		if begun && asked.CompareAndSwap(false, true) {
			second = db.Checkpoint(ctx, "second")
		}
	})
	if err := db.Checkpoint(ctx, "first"); err != nil {
		t.Fatal(err)
	}
	disk.OnEverySync(nil)
	if second == nil || !strings.Contains(second.Error(), "another") {
		t.Errorf("a second one: %v", second)
	}
	if err := db.Checkpoint(ctx, "third"); err != nil {
		t.Error(err)
	}
}

// leftIn returns the names on a disk that begin with a prefix.
func leftIn(t testing.TB, disk *storagetest.Disk, prefix string) (left []string) {
	t.Helper()
	names, err := disk.List("/")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			left = append(left, name)
		}
	}
	return left
}

// Ensure that a chain of backups in files is restored from their names, that a file is replaced only by a
// whole one, and that nothing else is left beside it.
func TestDB_BackupTo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := memory(t, nil)
	put(t, db, "a", `{}`)
	monday, tuesday := filepath.Join(dir, "monday.backup"), filepath.Join(dir, "tuesday.backup")
	if err := os.WriteFile(monday, []byte("what was there"), 0o644); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := db.BackupTo(ended, monday); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if text, err := os.ReadFile(monday); err != nil || string(text) != "what was there" {
		t.Errorf("a backup that failed has replaced the file: %q, %v", text, err)
	}
	full, err := db.BackupTo(ctx, monday)
	if err != nil {
		t.Fatal(err)
	}
	put(t, db, "b", `{}`)
	if _, err = db.BackupTo(ctx, tuesday, jay.BackupSince(full.ID)); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || !slices.Equal(names, []string{monday, tuesday}) {
		t.Errorf("%q are there, %v", names, err)
	}
	if info, err := os.Stat(monday); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("the mode of a backup is %v, %v", info.Mode(), err)
	}

	restored, err := jay.RestoreFrom(ctx, filepath.Join(dir, "new.db"), jay.RestoreOptions{CopyTag: "B"}, monday, tuesday)
	if err != nil || restored.Documents != 2 || len(restored.Backups) != 2 {
		t.Errorf("restored %+v, %v", restored, err)
	}
	for _, row := range []struct {
		what  string
		files []string
		want  error
		names string
	}{
		{"no file", nil, jay.ErrUsage, ""},
		{"a missing one", []string{monday, filepath.Join(dir, "wednesday")}, fs.ErrNotExist, "wednesday"},
		{"a directory", []string{dir}, jay.ErrUsage, dir},
		{"the wrong order", []string{tuesday, monday}, jay.ErrBackup, tuesday},
		{"one twice", []string{monday, tuesday, tuesday}, jay.ErrBackup, tuesday},
	} {
		other := filepath.Join(dir, "other.db")
		_, err := jay.RestoreFrom(ctx, other, jay.RestoreOptions{CopyTag: "B"}, row.files...)
		if !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.names) {
			t.Errorf("%s: %v", row.what, err)
		}
		if left, _ := filepath.Glob(other + "*"); len(left) > 0 {
			t.Errorf("%s: %q is left", row.what, left)
		}
	}
	for name, want := range map[string]error{"": jay.ErrUsage, dir: jay.ErrUsage, filepath.Join(dir, "none", "x"): fs.ErrNotExist} {
		if _, err := db.BackupTo(ctx, name); !errors.Is(err, want) {
			t.Errorf("to %q: %v", name, err)
		}
	}
}

// Ensure that a disk that is full, or on which nothing can be made, leaves neither a file nor a backup that the
// database believes to have.
func TestDB_BackupTo_NoRoom(t *testing.T) {
	t.Parallel()
	disk := storagetest.NewDisk()
	own := onDisk(t, disk, jay.Options{})
	defer closeDB(t, own)
	put(t, own, "a", `{}`)
	first, err := own.BackupTo(ctx, "first")
	if err != nil {
		t.Fatal(err)
	}
	put(t, own, "b", `{}`)
	for n := range 3 { // of what is created and renamed
		disk.FailCreationsIn("next", n)
		_, err := own.BackupTo(ctx, "next")
		disk.Heal()
		if err == nil {
			if n != 2 {
				t.Errorf("a backup with room for %d files", n)
			}
			break
		}
		if !errors.Is(err, storagetest.ErrInjected) {
			t.Errorf("room for %d files: %v", n, err)
		}
		if left := leftIn(t, disk, "next"); len(left) > 0 {
			t.Errorf("room for %d files: %q is left", n, left)
		}
		known, err := backup.Known(parts.Of(own).Env.Engine)
		if err != nil || len(known.Made) != 1 || known.Made[0].ID != first.ID {
			t.Errorf("the database remembers %+v, and %s is there, %v", known.Made, first.ID, err)
		}
	}
}

// Ensure that a loss of power at any sync of a backup leaves the whole file or none of that name, and that a
// database that knows of the backup has the file.
func TestDB_BackupTo_PowerCut(t *testing.T) {
	t.Parallel()
	for n := 0; ; n++ {
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{})
		put(t, db, "a", `{"text":"`+strings.Repeat("x", 10_000)+`"}`)
		var lost *storagetest.Disk
		var syncs atomic.Int64
		disk.OnEverySync(func() {
			if syncs.Add(1) == int64(n)+1 {
				lost = disk.Crash(0, nil)
			}
		})
		info, err := db.BackupTo(ctx, "full")
		disk.OnEverySync(nil)
		if err != nil {
			t.Fatal(err)
		}
		closeDB(t, db)
		if lost == nil {
			if n < 3 {
				t.Errorf("a backup syncs %d times", n)
			}
			return
		}

		there := slices.Contains(leftIn(t, lost, "full"), "full")
		db = onDisk(t, lost, jay.Options{})
		if _, err := db.Backup(ctx, io.Discard, jay.BackupSince(info.ID)); err == nil && !there {
			t.Errorf("sync %d: the database knows of a backup that is not there", n)
		}
		closeDB(t, db)
		if !there {
			continue
		}
		if _, err := jay.RestoreFrom(ctx, "new", jay.RestoreOptions{CopyTag: "B", Options: &jay.Options{FS: lost}}, "full"); err != nil {
			t.Errorf("sync %d: %v", n, err)
		}
	}
}

// Ensure that BackupStored is called when the stream is whole, and that a backup which could not be stored is not
// remembered.
func TestBackupStored(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	put(t, db, "a", `{}`)
	var stream bytes.Buffer
	full, err := db.Backup(ctx, &stream, jay.BackupStored(func() error {
		_, err := jay.VerifyBackup(ctx, nil, jaytest.ReadBackup(stream.Bytes()))
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Backup(ctx, io.Discard, jay.BackupStored(func() error { return errFull })); !errors.Is(err, errFull) {
		t.Errorf("an upload that fails: %v", err)
	}
	file := filepath.Join(t.TempDir(), "x")
	if _, err := db.BackupTo(ctx, file, jay.BackupStored(func() error {
		_, err := os.Stat(file)
		return errors.Join(err, errFull)
	})); !errors.Is(err, errFull) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a copy of the file that fails: %v", err)
	}
	known, err := backup.Known(parts.Of(db).Env.Engine)
	if err != nil || len(known.Made) != 1 || known.Made[0].ID != full.ID {
		t.Errorf("the database remembers %+v, and %s is stored, %v", known.Made, full.ID, err)
	}
}
