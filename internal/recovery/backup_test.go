package recovery_test

// These tests compare restored databases with their originals key by key, which the public
// API does not show.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/backup"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/memory"
	"github.com/jaydb/jay/storage/storagetest"
)

// contentsOf returns all keys and values that a backup must have, as r shows them.
// Those of indexes are compared by the checks of indexes.
func contentsOf(t testing.TB, r storage.Reader) map[string]string {
	t.Helper()
	it, err := r.Iterate(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	out := make(map[string]string)
	live := make(map[string]bool) // streams that a content has
	for ok := it.First(); ok; ok = it.Next() {
		key := string(it.Key())
		switch {
		case key[0] == format.SpaceIndex || key[0] == format.SpaceIndexState:
			continue
		case strings.HasPrefix(key, "au") || strings.HasPrefix(key, "ag"):
			continue // uploads that are not whole, and what is to be removed
		case key == "mbackups\x00" || key == "mfloor/backup\x00":
			continue // what the restored database must not continue
		case key == "mrestoring\x00" || key == "mindexes\x00":
			continue // what is different until the indexes are built
		case strings.HasPrefix(key, "ac"):
			c, err := format.DecodeContent(it.Value())
			if err != nil {
				t.Fatal(err)
			}
			live[string(format.ChunkKey(c.Stream, 0)[:9])] = true
		case key[0] == format.SpaceChunks && !live[key[:9]]:
			continue
		}
		out[key] = string(it.Value())
	}
	return out
}

// sameContents fails the test where two databases differ.
func sameContents(t testing.TB, what string, want, got map[string]string) {
	t.Helper()
	n := 0
	for key, value := range want {
		if other, found := got[key]; !found || other != value {
			if n++; n < 6 {
				t.Errorf("%s: %q is %.120q, want %.120q (found %v)", what, key, other, value, found)
			}
		}
	}
	for key := range got {
		if _, found := want[key]; !found {
			if n++; n < 12 {
				t.Errorf("%s: %q is there, and was not", what, key)
			}
		}
	}
	if n > 0 {
		t.Fatalf("%s: %d keys differ", what, n)
	}
}

// stepping is a database that a random history is made on, every feature in it.
type stepping struct {
	t      testing.TB
	db     *jay.DB
	random *rand.Rand
	now    atomic.Pointer[time.Time] // the sweeper reads it, too
	n      int
}

func newStepping(t testing.TB, seed uint64, opts jay.Options) *stepping {
	s := &stepping{t: t, random: rand.New(rand.NewPCG(seed, 50))}
	s.advance(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	opts.Now = func() time.Time { return *s.now.Load() }
	db, err := jay.OpenMemory(&opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s.db = db
	return s
}

// advance sets the clock.
func (s *stepping) advance(to time.Time) { s.now.Store(&to) }

func (s *stepping) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("step %d: %v", s.n, err)
	}
}

// id returns the ID of a document, which may be there or not.
func (s *stepping) id() string {
	n := s.random.IntN(60)
	switch s.random.IntN(4) {
	case 0:
		return fmt.Sprintf("Users/%d", n) // clustered
	case 1:
		return fmt.Sprintf("lost/%d", n) // in Users, but elsewhere
	case 2:
		return fmt.Sprintf("logs/%d", n)
	}
	return fmt.Sprintf("orders/%d", n)
}

func (s *stepping) collection(id string) string {
	switch id[0] {
	case 'U', 'l':
		if strings.HasPrefix(id, "logs") {
			return "Logs"
		}
		return "Users"
	}
	return "Orders"
}

// step does one random thing.
func (s *stepping) step() {
	ctx := context.Background()
	s.n++
	s.advance(s.now.Load().Add(time.Second))
	id := s.id()
	body := fmt.Sprintf(`{"n":%d,"city":"c%d","tags":["a%d","b"],"text":%q}`, s.n, s.n%7, s.n%5, strings.Repeat("x", s.random.IntN(200)))
	switch s.random.IntN(24) {
	case 0, 1:
		if err := s.db.Delete(ctx, id); !errors.Is(err, jay.ErrNotFound) {
			s.must(err)
		}
	case 2:
		_, err := s.db.Store(ctx, "Users", []byte(body))
		s.must(err)
	case 3:
		_, err := s.db.Put(ctx, "invoices|", []byte(body), jay.InCollection("Invoices"))
		s.must(err)
	case 4:
		_, err := s.db.Put(ctx, "logs/", []byte(body), jay.InCollection("Logs"))
		s.must(err)
	case 5, 6:
		at := s.now.Load().Add(time.Duration(s.random.IntN(100)+50) * time.Hour)
		opts := []jay.WriteOption{jay.ExpiresAt(at)}
		if s.n%2 == 0 {
			opts[0] = jay.RefreshAt(at)
		}
		id := fmt.Sprint("timed/", s.n%20)
		if _, err := s.db.Get(ctx, id); err != nil { // it may have been renamed
			opts = append(opts, jay.InCollection("Timed"))
		}
		_, err := s.db.Put(ctx, id, []byte(body), opts...)
		s.must(err)
	case 7, 8:
		if _, err := s.db.Get(ctx, id); err == nil {
			content := strings.Repeat(strconv.Itoa(s.random.IntN(10)), s.random.IntN(20))
			_, err := s.db.Attachments(id).Put(ctx, fmt.Sprint("file", s.random.IntN(3)), strings.NewReader(content))
			s.must(err)
		}
	case 9:
		if _, err := s.db.Get(ctx, id); err == nil {
			_, err := s.db.Attachments(id).Put(ctx, "broken", io.MultiReader(strings.NewReader("abcdefghijkl"), iotest.ErrReader(errors.New("the stream is broken"))))
			if err == nil {
				s.t.Fatal("an upload that broke off is stored")
			}
		}
	case 10:
		if _, err := s.db.Get(ctx, id); err == nil {
			_, err := s.db.Put(ctx, id, []byte(body), jay.KeepRevision())
			s.must(err)
		}
	case 11:
		if s.random.IntN(4) == 0 {
			_, err := s.db.Revisions().Purge(ctx, jay.RevisionPurge{Before: s.now.Load().Add(-time.Duration(s.random.IntN(300)) * time.Second)})
			s.must(err)
		}
	case 12:
		if s.random.IntN(4) == 0 {
			s.must(s.db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Collections: map[string]jay.RevisionRule{"Orders": {Keep: uint64(1 + s.random.IntN(4))}}}))
		}
	case 13:
		if s.random.IntN(8) == 0 {
			_, err := s.db.DropCollection(ctx, "Invoices")
			s.must(err)
		}
	case 14:
		if s.random.IntN(8) == 0 {
			from, to := "Timed", "Clocked"
			if n, err := s.db.Query("Clocked").Count(ctx); err == nil && n > 0 {
				from, to = to, from
			}
			_, _ = s.db.RenameCollection(ctx, from, to) // both may have documents
		}
	case 15:
		if s.random.IntN(4) == 0 {
			s.must(s.db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{[]string{"city", "n", "tags"}[s.random.IntN(3)]}}))
		}
	case 16:
		if s.random.IntN(4) == 0 {
			for s.random.IntN(2) == 0 {
				more, err := parts.Of(s.db).Horizon.RemoveSome(ctx)
				s.must(err)
				if !more {
					break
				}
			}
		}
	case 17:
		s.must(checks.RemoveContents(s.db))
	case 18:
		if _, err := s.db.Get(ctx, id); err == nil {
			_, err := s.db.Revisions().Force(ctx, id)
			s.must(err)
		}
	case 19:
		if s.random.IntN(4) == 0 {
			s.must(s.db.Subscriptions().Ensure(ctx, jay.Subscription{Name: fmt.Sprint("mail", s.random.IntN(3)), Query: "from Users"}))
		}
	case 20:
		s.exchange(ctx, fmt.Sprint("Names/", s.random.IntN(8)))
	case 21:
		_, err := s.db.NextIdentity(ctx, "calls", jay.RequestID(fmt.Sprint("call ", s.n%9)))
		s.must(err)
	default:
		_, err := s.db.Put(ctx, id, []byte(body), jay.InCollection(s.collection(id)))
		s.must(err)
	}
}

// exchange changes a compare-exchange value, or removes it.
func (s *stepping) exchange(ctx context.Context, key string) {
	index := uint64(0)
	v, err := s.db.CompareExchange().Get(ctx, key)
	if err == nil {
		index = v.Index
	} else if !errors.Is(err, jay.ErrNotFound) {
		s.must(err)
	}
	if index > 0 && s.random.IntN(4) == 0 {
		s.must(s.db.CompareExchange().Delete(ctx, key, index))
		return
	}
	_, err = s.db.CompareExchange().Put(ctx, key, s.n, index)
	s.must(err)
}

// backedUp is a backup, and what it must restore to.
type backedUp struct {
	info     jay.BackupInfo
	stream   []byte
	contents map[string]string
	counters jay.Counters
}

func (s *stepping) backUp(opts ...jay.BackupOption) *backedUp {
	s.t.Helper()
	s.must(s.db.Flush(context.Background())) // chunks of uploads may wait for their sync
	out := &backedUp{contents: contentsOf(s.t, parts.Of(s.db).Env.Engine)}
	var err error
	out.counters, err = s.db.Counters(context.Background())
	s.must(err)
	var stream bytes.Buffer
	out.info, err = s.db.Backup(context.Background(), &stream, opts...)
	s.must(err)
	out.stream = stream.Bytes()
	return out
}

func readersOfChain(chain []*backedUp) (all []io.Reader) {
	for _, b := range chain {
		all = append(all, bytes.NewReader(b.stream))
	}
	return all
}

// restoreChain restores backups, and compares all keys before the restored database is
// set apart from its original. Then it restores them in the place of that, whose counters are where they were
// at the last backup.
func restoreChain(t testing.TB, chain []*backedUp) {
	t.Helper()
	ctx, disk := context.Background(), storagetest.NewDisk()
	readers := func() []io.Reader { return readersOfChain(chain) }
	engine, err := lsm.Open("raw", lsm.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	applier, err := backup.NewApplier(ctx, engine)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readers() {
		if _, err := applier.Apply(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := applier.Complete(ctx); err != nil {
		t.Fatal(err)
	}
	last := chain[len(chain)-1]
	sameContents(t, fmt.Sprintf("%d backups", len(chain)), last.contents, contentsOf(t, engine))
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}

	info, err := jay.Restore(ctx, "new", jay.RestoreOptions{SameTag: true, Floors: last.counters, Options: &jay.Options{FS: disk}}, readers()...)
	if err != nil {
		t.Fatal(err)
	}
	if info.Etag != last.info.Etag || len(info.Backups) != len(chain) {
		t.Errorf("restored %+v, want the etag of %+v", info, last.info)
	}
	db, err := jay.Open("new", &jay.Options{FS: disk, MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, ix := range parts.Of(db).Indexes.Load().All {
		if ix.Info.State != jay.IndexReady {
			t.Errorf("index %s is %s", ix.Info.Name, ix.Info.State)
		}
	}
}

// Ensure that a full backup and ten incremental ones that follow it restore to exactly the keys
// that the database had, after random histories with everything that a database can
// hold; and that each shorter chain restores to the state then.
func TestBackup_Chain_Exact(t *testing.T) {
	rounds, steps := 2, 120
	if testing.Short() {
		rounds = 1
	}
	if n, err := strconv.Atoi(os.Getenv("JAY_BACKUP_ROUNDS")); err == nil {
		rounds = n
	}
	knobs.KeptChanges, knobs.AttachmentChunkBytes = 5, 4
	defer func() { knobs.KeptChanges, knobs.AttachmentChunkBytes = 1000, 0 }()
	for round := range rounds {
		s := newStepping(t, uint64(round), jay.Options{})
		s.must(s.db.Revisions().Configure(context.Background(), jay.RevisionsConfiguration{Collections: map[string]jay.RevisionRule{"Orders": {}}}))
		for range steps {
			s.step()
		}
		chain := []*backedUp{s.backUp()}
		for range 10 {
			for range s.random.IntN(steps) {
				s.step()
			}
			base := chain[len(chain)-1]
			b := s.backUp(jay.BackupSince(base.info.ID))
			if b.info.Base != base.info.ID || b.info.After != base.info.Etag {
				t.Fatalf("round %d: %+v does not follow %+v", round, b.info, base.info)
			}
			chain = append(chain, b)
		}
		for _, s := range format.Spaces {
			needed := s.Backup == format.CarriedSinceBase || s.Backup == format.FollowsDocuments || s.First == format.SpaceExchange || s.First == format.SpaceRequests
			if needed && !slices.ContainsFunc(slices.Collect(maps.Keys(chain[len(chain)-1].contents)), func(key string) bool { return key[0] == s.First }) {
				t.Errorf("round %d: no step writes into %v", round, s)
			}
		}
		for _, n := range []int{1, 2, 2 + s.random.IntN(8), len(chain)} {
			restoreChain(t, chain[:n])
		}
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

// Ensure that several backups can follow one: each time what has changed since the full
// one.
func TestBackup_Since_TheSameBase(t *testing.T) {
	knobs.KeptChanges = 5
	defer func() { knobs.KeptChanges = 1000 }()
	s := newStepping(t, 7, jay.Options{})
	for range 100 {
		s.step()
	}
	full := s.backUp()
	for range 3 {
		for range 50 {
			s.step()
		}
		restoreChain(t, []*backedUp{full, s.backUp(jay.BackupSince(full.info.ID))})
	}
}

// Ensure that an incremental backup does not carry, nor read, what has not changed.
func TestBackup_Since_Small(t *testing.T) {
	t.Parallel()
	s := newStepping(t, 3, jay.Options{})
	ctx := context.Background()
	for i := range 2000 {
		_, err := s.db.Put(ctx, fmt.Sprint("users/", i), []byte(fmt.Sprintf(`{"n":%d,"text":"%030d"}`, i, i*i)), jay.InCollection("Users"))
		s.must(err)
	}
	full := s.backUp()
	for _, i := range []int{5, 700, 1999} {
		_, err := s.db.Put(ctx, fmt.Sprint("users/", i), []byte(`{"new":true}`), jay.InCollection("Users"))
		s.must(err)
	}
	s.must(s.db.Delete(ctx, "users/6"))
	next := s.backUp(jay.BackupSince(full.info.ID))
	if next.info.Documents != 3 || next.info.Deletions != 1 || next.info.RawBytes > 4000 {
		t.Errorf("3 documents and a deletion: %+v", next.info)
	}
	restoreChain(t, []*backedUp{full, next})
}

// Ensure that a document with many revisions is backed up in pieces, and not gathered in
// memory.
func TestBackup_Since_ManyRevisions(t *testing.T) {
	t.Parallel()
	s := newStepping(t, 8, jay.Options{})
	ctx := context.Background()
	s.must(s.db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Collections: map[string]jay.RevisionRule{"Notes": {}}}))
	full := s.backUp()
	text := strings.Repeat("x", 200_000)
	for n := range 60 {
		_, err := s.db.Put(ctx, "notes/1", []byte(fmt.Sprintf(`{"n":%d,"text":%q}`, n, text)), jay.InCollection("Notes"))
		s.must(err)
	}
	last, longest := int64(0), int64(0)
	next := s.backUp(jay.BackupSince(full.info.ID), jay.BackupProgress(func(n int64) { last, longest = n, max(longest, n-last) }))
	if next.info.RawBytes < 60*200_000 || longest > 2*backup.BlockBytes {
		t.Errorf("%d bytes, of which %d were gathered before they were written", next.info.RawBytes, longest)
	}
	restoreChain(t, []*backedUp{full, next})
}

// Ensure that records of deletions are kept for the next backup, but not for ever; and that
// a backup is refused whose base is older than what is kept.
func TestBackup_Since_Gone(t *testing.T) {
	knobs.KeptChanges, knobs.FloorEtags = 2, 50
	defer func() { knobs.KeptChanges, knobs.FloorEtags = 1000, 10_000_000 }()
	s := newStepping(t, 4, jay.Options{})
	ctx := context.Background()
	write := func(n int) {
		for i := range n {
			_, err := s.db.Put(ctx, fmt.Sprint("a/", i%3), []byte(`{}`))
			s.must(err)
			s.must(s.db.Delete(ctx, fmt.Sprint("a/", i%3)))
		}
		for more := true; more; {
			var err error
			more, err = parts.Of(s.db).Horizon.RemoveSome(ctx)
			s.must(err)
		}
	}
	write(3)
	full := s.backUp()
	write(10)
	restoreChain(t, []*backedUp{full, s.backUp(jay.BackupSince(full.info.ID))})
	write(60)
	_, err := s.db.Backup(ctx, io.Discard, jay.BackupSince(full.info.ID))
	var base *jay.BackupBaseError
	if !asBase(err, &base) || base.Base != full.info.ID || base.Etag != full.info.Etag || base.Oldest <= base.Etag {
		t.Fatalf("got %v, %+v", err, base)
	}
	// That etag is the oldest that can be followed: a backup of it would be.
	full = s.backUp()
	if full.info.Etag < base.Oldest {
		t.Errorf("a new backup has etag %d, and the oldest that can be followed %d", full.info.Etag, base.Oldest)
	}
	write(1)
	restoreChain(t, []*backedUp{full, s.backUp(jay.BackupSince(full.info.ID))})

	for _, id := range []string{"x", strings.Repeat("y", 10_000)} {
		if _, err := s.db.Backup(ctx, io.Discard, jay.BackupSince(id)); !asBase(err, &base) || base.Etag != 0 {
			t.Errorf("an unknown base: %v", err)
		}
	}
	once := s.backUp(jay.BackupOnce())
	if _, err := s.db.Backup(ctx, io.Discard, jay.BackupSince(once.info.ID)); !asBase(err, &base) {
		t.Errorf("a base that was not to be followed: %v", err)
	}
}

func asBase(err error, base **jay.BackupBaseError) bool {
	*base = nil
	return errors.Is(err, jay.ErrBackupBase) && errors.As(err, base)
}

// Ensure that a database remembers its newest backups, and no more than it says.
func TestBackup_Known_Bounded(t *testing.T) {
	t.Parallel()
	s := newStepping(t, 5, jay.Options{})
	first := s.backUp()
	var last *backedUp
	for range backup.MaxKnown {
		last = s.backUp()
	}
	known, err := backup.Known(parts.Of(s.db).Env.Engine)
	s.must(err)
	if n := len(known.Made); n != backup.MaxKnown || known.Made[n-1].ID != last.info.ID || slices.ContainsFunc(known.Made, func(b format.Backup) bool { return b.ID == first.info.ID }) {
		t.Errorf("%d are known", n)
	}
}

// onRead is a reader that does something before each read.
type onRead struct {
	io.Reader
	before func()
}

func (r onRead) Read(p []byte) (int, error) {
	r.before()
	return r.Reader.Read(p[:1])
}

// Ensure that an attachment whose upload has begun before a backup, and ends after it, is whole
// in the next one.
func TestBackup_Since_Upload(t *testing.T) {
	defer checks.SetChunkBytes(4)()
	s := newStepping(t, 6, jay.Options{})
	ctx := context.Background()
	_, err := s.db.Put(ctx, "a", []byte(`{}`))
	s.must(err)
	var chain []*backedUp
	n := 0
	upload := onRead{strings.NewReader("an upload of some chunks"), func() {
		if n++; n == 10 || n == 18 {
			if len(chain) == 0 {
				chain = append(chain, s.backUp())
			} else {
				chain = append(chain, s.backUp(jay.BackupSince(chain[0].info.ID)))
			}
		}
	}}
	_, err = s.db.Attachments("a").Put(ctx, "long", upload)
	s.must(err)
	chain = append(chain, s.backUp(jay.BackupSince(chain[1].info.ID)))
	for n := range chain {
		restoreChain(t, chain[:n+1])
	}
}

// operationsOf returns the operations of a backup, one a line.
func operationsOf(t testing.TB, stream []byte) string {
	t.Helper()
	r, err := backup.NewReader(bytes.NewReader(stream), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out strings.Builder
	for {
		op, err := r.Next()
		if err == io.EOF {
			return out.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		switch op.Kind {
		case 1:
			fmt.Fprintf(&out, "01 %s → %s\n", jaytest.Quote(op.Key), jaytest.Quote(op.Value))
		case 2:
			fmt.Fprintf(&out, "02 %s\n", jaytest.Quote(op.Key))
		default:
			fmt.Fprintf(&out, "03 %s … %s\n", jaytest.Quote(op.Key), jaytest.Quote(op.Value))
		}
	}
}

// Ensure that the operations of a backup are those of docs/format.md, which holds this
// dump.
func TestBackup_Layout_Golden(t *testing.T) {
	ctx := context.Background()
	db := jaytest.Dumped(t)
	defer db.Close()
	s := &stepping{t: t, db: db}
	for _, id := range []string{"ann", "bob"} {
		_, err := db.Put(ctx, id, []byte(`{}`), jay.InCollection("Users"))
		s.must(err)
	}
	s.must(db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Name"}}))
	full := s.backUp()
	_, err := db.Put(ctx, "ann", []byte(`{"Name":"Ann"}`), jay.InCollection("Users"))
	s.must(err)
	s.must(db.Delete(ctx, "bob"))
	next := s.backUp(jay.BackupSince(full.info.ID))
	jaytest.InFormat(t, "```\n"+operationsOf(t, full.stream)+"\n"+operationsOf(t, next.stream)+"```\n")
}

// filling is an engine that calls a function before each transaction.
type filling struct {
	storage.Engine
	fill func()
}

// Update implements storage.Engine.
func (f *filling) Update(ctx context.Context, sync bool, fn func(storage.Tx) error) error {
	f.fill()
	return f.Engine.Update(ctx, sync, fn)
}

// Ensure that a restore does not begin in a store that another process fills after it was found empty.
func TestNewApplier_StoreFilled(t *testing.T) {
	ctx := context.Background()
	driver := &memory.Driver{Shared: true}
	var engines [2]storage.Engine
	for i := range engines {
		var err error
		if engines[i], err = driver.Open("db", storage.OpenOptions{}); err != nil {
			t.Fatal(err)
		}
		defer engines[i].Close()
	}
	fill := func() {
		jaytest.Must(t, engines[1].Update(ctx, true, func(tx storage.Tx) error {
			tx.Set([]byte("k"), []byte("v"), nil)
			return nil
		}))
	}
	if _, err := backup.NewApplier(ctx, &filling{engines[0], fill}); !errors.Is(err, jay.ErrBackup) {
		t.Errorf("got %v, want ErrBackup", err)
	}
	if mark, err := backup.IsRestoring(engines[1]); mark != nil || err != nil {
		t.Errorf("the store is marked: %v, %v", mark, err)
	}
}

// fillingDriver is a driver whose engines are filling.
type fillingDriver struct {
	storage.Driver
	fill func()
}

// Open implements storage.Driver.
func (d *fillingDriver) Open(name string, o storage.OpenOptions) (storage.Engine, error) {
	e, err := d.Driver.Open(name, o)
	if err != nil {
		return nil, err
	}
	return &filling{e, d.fill}, nil
}

// Ensure that a process cannot open a store to which another one begins to copy meanwhile, whether it finds the store empty or with the settings that the copy
// has written: the copy would overwrite what it writes.
func TestOpen_CopyBegins(t *testing.T) {
	ctx, mark := context.Background(), format.AppendKey(nil, format.SpaceMeta, format.RestoringName)
	for name, settings := range map[string]bool{"empty": false, "with settings": true} {
		t.Run(name, func(t *testing.T) {
			driver := &memory.Driver{Shared: true}
			if settings {
				jaytest.Must(t, jaytest.Open(t, "db", &jay.Options{Engine: driver}).Close())
			}
			copier, err := driver.Open("db", storage.OpenOptions{})
			jaytest.Must(t, err)
			defer copier.Close()
			before := len(contentsOf(t, copier))
			begin := func() {
				jaytest.Must(t, copier.Update(ctx, true, func(tx storage.Tx) error {
					tx.Set(mark, []byte(`{"Copy":{}}`), nil)
					return nil
				}))
			}
			db, err := jay.Open("db", &jay.Options{Engine: &fillingDriver{driver, begin}})
			if !errors.Is(err, jay.ErrRestoring) {
				t.Errorf("Open: %v, want ErrRestoring", err)
			}
			if err == nil {
				jaytest.Must(t, db.Close())
			}
			if n := len(contentsOf(t, copier)); n != before {
				t.Errorf("%d keys, want %d", n, before)
			}
		})
	}
}
