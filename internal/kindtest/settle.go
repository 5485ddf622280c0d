package kindtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	public "github.com/jaydb/jay/jaytest"
	"github.com/jaydb/jay/storage/memory"
	"github.com/jaydb/jay/storage/storagetest"
)

// settled runs the tests of a kind that settles its entries in the background.
func (s *Subject) settled(t *testing.T) {
	t.Run("Writers", s.settledBesideWriters)
	t.Run("Builds", s.settledBesideBuilds)
	t.Run("Snapshots", s.settledUnderSnapshots)
	t.Run("PowerCut", s.settledPowerCut)
	t.Run("Closed", s.settledClosed)
	t.Run("Backups", s.settledBackups)
	t.Run("Dropped", s.settledDropped)
	t.Run("NotRun", s.settledNotRun)
	t.Run("Shared", s.settledShared)
	t.Run("Unavailable", s.settledUnavailable)
	t.Run("Broken", s.settledBroken)
	if s.Trails {
		t.Run("Trail", s.settledTrail)
	}
}

// settleHalf settles a part or two, if the kind settles, so that there is something of all forms that its keys have.
func (s *Subject) settleHalf(t testing.TB, db *jay.DB) {
	t.Helper()
	for range 3 {
		if found, err := checks.SettleSome(db); err != nil || !found && s.Settles {
			t.Fatalf("nothing to settle: %v, %v", found, err)
		}
	}
	jaytest.Must(t, db.Flush(ctx)) // what checks read is on disk
}

// isSettled fails the test if there is something to settle. Nothing may be settled in the background.
func isSettled(t testing.TB, db *jay.DB) {
	t.Helper()
	if found, err := checks.SettleSome(db); found || err != nil {
		t.Errorf("there was something to settle: %v, %v", found, err)
	}
}

// settledBesideWriters: documents that change between the reading of a part and its commit, or after it, are as they
// are at each moment.
func (s *Subject) settledBesideWriters(t *testing.T) {
	defer checks.NoSettler()()
	today := sample.Of(t, 3)
	for seed := range uint64(3) {
		if !today.Has(int(seed)) {
			continue
		}
		p := s.pair(t, jaytest.Memory(t, nil), seed)
		jaytest.Must(t, p.with.EnsureIndex(ctx, things, s.Index))
		restore := checks.OnSettle(func(context.Context) {
			for range p.random.IntN(4) {
				p.change(t)
			}
		})
		for range 10 {
			for range 10 {
				p.change(t)
			}
			for range 3 {
				_, err := checks.SettleSome(p.with)
				jaytest.Must(t, err)
			}
			p.agree(t)
		}
		restore()
		p.inTransaction(t)
		p.endSettled(t)
	}
}

// endSettled settles the rest, and compares and closes the databases.
func (p *pair) endSettled(t *testing.T) {
	t.Helper()
	jaytest.Must(t, checks.Settle(p.with))
	p.agree(t)
	p.end(t)
}

// settledBesideBuilds: an index that is built is settled meanwhile, and so is what is written beside it.
func (s *Subject) settledBesideBuilds(t *testing.T) {
	defer checks.NoSettler()()
	defer builders["commits"]()()
	p := s.pair(t, jaytest.Memory(t, nil), 1)
	for range 80 {
		p.change(t)
	}
	parts := 0
	restore := checks.OnBuildChunk(func(_ context.Context, state jay.IndexState) {
		p.change(t)
		found, err := checks.SettleSome(p.with)
		if err != nil {
			t.Error(err)
		}
		if found && state == jay.IndexBuilding {
			parts++
		}
	})
	err := p.with.EnsureIndex(ctx, things, s.Index)
	restore()
	jaytest.Must(t, err)
	if parts < 3 {
		t.Errorf("%d parts were settled", parts)
	}
	p.agree(t)
	p.endSettled(t)
}

// settledUnderSnapshots: what a snapshot shows stays, whatever is settled and written meanwhile, and so does what an iterator that has
// begun has not come to.
func (s *Subject) settledUnderSnapshots(t *testing.T) {
	defer checks.NoSettler()()
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, things, s.Index))
	s.fill(t, db, 40)
	s.settleHalf(t, db)
	r := rand.New(rand.NewPCG(11, 0))
	var queries []string
	for range 10 {
		rql := "from " + things + " where " + s.Condition(r)
		if s.Order != "" {
			rql += " order by " + s.Order
		}
		queries = append(queries, rql)
	}
	all := func(tx *jay.Tx, between func()) (found []string) {
		for _, rql := range queries {
			q, err := tx.RQL(rql, nil)
			jaytest.Must(t, err)
			for row, err := range q.Iter(ctx) {
				jaytest.Must(t, err)
				found = append(found, row.Document.ID()+string(row.Document.Body()))
				between()
			}
			found = append(found, "")
		}
		if s.Order == "" {
			slices.Sort(found)
		}
		return found
	}
	jaytest.Must(t, db.View(ctx, func(tx *jay.Tx) error {
		before := all(tx, func() {})
		parts := 0
		again := all(tx, func() {
			jaytest.Put(t, db, fmt.Sprint("things/", r.IntN(60)), s.Body(r), jay.InCollection(things))
			found, err := checks.SettleSome(db)
			jaytest.Must(t, err)
			if found {
				parts++
			}
		})
		if parts < 10 {
			t.Errorf("%d parts were settled", parts)
		}
		if !slices.Equal(before, again) {
			t.Errorf("found %q, and then %q", before, again)
		}
		return nil
	}))
	jaytest.Verify(t, db)
	s.answersAlike(t, db)
}

// settledPowerCut: whenever the power goes while documents change and are settled, the next process finds an index that
// answers, and goes on.
func (s *Subject) settledPowerCut(t *testing.T) {
	sample.OneGoroutine(t)
	defer checks.NoSettler()()
	public.EveryPowerCut(t, nil, func(db *public.DB) {
		s.fill(t, db.DB, 12)
		jaytest.Must(t, db.EnsureIndex(ctx, things, s.Index))
	}, func(db *public.DB) {
		r := rand.New(rand.NewPCG(5, 0))
		for i := range 6 { // the power goes, after which there are errors
			_, _ = db.Put(ctx, fmt.Sprint("things/", r.IntN(12)), []byte(s.Body(r)), jay.InCollection(things))
			_, _ = checks.SettleSome(db.DB)
			if i%2 == 0 {
				_ = db.Flush(ctx)
			}
		}
	}, func(db *public.DB) {
		jaytest.Must(t, checks.Settle(db.DB))
		jaytest.Verify(t, db.DB)
		s.answersAlike(t, db.DB)
	})
}

// settledClosed: Close ends a worker that is under way, and the next Open goes on without a write.
func (s *Subject) settledClosed(t *testing.T) {
	dir := t.TempDir()
	restore := checks.NoSettler()
	db := jaytest.Open(t, dir, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, things, s.Index))
	s.fill(t, db, 40)
	jaytest.Must(t, db.Close())
	restore()

	reached := make(chan struct{})
	var once sync.Once
	restore = checks.OnSettle(func(ctx context.Context) {
		once.Do(func() { close(reached) })
		<-ctx.Done()
	})
	db = jaytest.Open(t, dir, nil)
	<-reached
	jaytest.Must(t, db.Close())
	restore()

	db = jaytest.Open(t, dir, nil)
	defer jaytest.Close(t, db)
	checks.WaitSettled(db)
	isSettled(t, db)
	jaytest.Put(t, db, "things/1", s.Body(rand.New(rand.NewPCG(9, 0))), jay.InCollection(things)) // a write wakes the worker, too
	checks.WaitSettled(db)
	isSettled(t, db)
	jaytest.Verify(t, db)
	s.answersAlike(t, db)
}

// settledBackups: backups, full and incremental, that are made while an index is settled can be restored.
func (s *Subject) settledBackups(t *testing.T) {
	sample.OneGoroutine(t)
	defer checks.NoSettler()()
	db := jaytest.Open(t, t.TempDir(), nil)
	defer jaytest.Close(t, db)
	jaytest.Must(t, db.EnsureIndex(ctx, things, s.Index))
	s.fill(t, db, 30)
	s.settleHalf(t, db)

	var chain []io.Reader
	last := ""
	backUp := func() {
		var opts []jay.BackupOption
		if last != "" {
			opts = append(opts, jay.BackupSince(last))
		}
		info, stream := jaytest.BackUp(t, db, opts...)
		last, chain = info.ID, append(chain, bytes.NewReader(stream))
	}
	r := rand.New(rand.NewPCG(13, 0))
	restore := checks.OnSettle(func(context.Context) {
		backUp()
		jaytest.Put(t, db, "things/1", s.Body(r), jay.InCollection(things))
	})
	s.settleHalf(t, db)
	restore()
	backUp()

	into := filepath.Join(t.TempDir(), "restored")
	_, err := jay.Restore(ctx, into, jay.RestoreOptions{CopyTag: "B"}, chain...)
	jaytest.Must(t, err)
	restored := jaytest.Open(t, into, nil)
	defer jaytest.Close(t, restored)
	if got, want := jaytest.Documents(t, restored), jaytest.Documents(t, db); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	checks.WaitIndexTasks(restored)
	jaytest.Verify(t, restored)
	jaytest.Must(t, checks.Settle(restored))
	jaytest.Verify(t, restored)
	s.answersAlike(t, restored)

	copied := filepath.Join(t.TempDir(), "copied")
	jaytest.Must(t, db.Checkpoint(ctx, copied))
	opened := jaytest.Open(t, copied, nil)
	defer jaytest.Close(t, opened)
	jaytest.Must(t, checks.Settle(opened))
	jaytest.Verify(t, opened)
	s.answersAlike(t, opened)
}

// settledDropped: an index that is dropped between the reading of a part and its commit leaves no keys, also if the
// commit comes when some of its keys are removed and the others are not.
func (s *Subject) settledDropped(t *testing.T) {
	sample.OneGoroutine(t)
	defer checks.NoSettler()()
	s.settledInDrop(t)
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, things, s.Index))
	s.fill(t, db, 30)
	dropped := false
	restore := checks.OnSettle(func(context.Context) {
		dropped = true
		jaytest.Must(t, db.DropIndex(ctx, things, indexName))
	})
	_, err := checks.SettleSome(db)
	restore()
	jaytest.Must(t, err)
	if n, err := checks.IndexKeys(db); n != 0 || err != nil || !dropped {
		t.Errorf("%d keys are left, %v, dropped %v", n, err, dropped)
	}
}

// settledInDrop settles a part of an index in the middle of its drop.
func (s *Subject) settledInDrop(t *testing.T) {
	defer checks.SetBuildChunks(3, 1)()
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, things, s.Index))
	s.fill(t, db, 30)
	middle, settled, dropped := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	chunks := 0
	defer checks.OnBuildChunk(func(_ context.Context, state jay.IndexState) {
		if chunks++; chunks == 4 {
			close(middle)
			<-settled
		}
	})()
	restore := checks.OnSettle(func(context.Context) {
		go func() { dropped <- db.DropIndex(ctx, things, indexName) }()
		<-middle
	})
	found, err := checks.SettleSome(db)
	restore()
	close(settled)
	jaytest.Must(t, err)
	jaytest.Must(t, <-dropped)
	if n, err := checks.IndexKeys(db); n != 0 || err != nil || !found {
		t.Errorf("%d keys are left, %v, a part was found: %v", n, err, found)
	}
}

// settledNotRun: nothing is settled in a database that is only read, nor by a process that does not know the kind; both leave
// the index as it is.
func (s *Subject) settledNotRun(t *testing.T) {
	dir := t.TempDir()
	restore := checks.NoSettler()
	db := jaytest.Open(t, dir, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, things, s.Index))
	s.fill(t, db, 30)
	s.settleHalf(t, db)
	before := checks.Entries(db)
	jaytest.Must(t, db.Close())
	restore()

	unchanged := func(db *jay.DB) {
		t.Helper()
		checks.WaitSettled(db)
		if got := checks.Entries(db); !maps.Equal(got, before) {
			t.Errorf("got %d entries, want %d as they were", len(got), len(before))
		}
	}
	db = jaytest.Open(t, dir, &jay.Options{ReadOnly: true})
	unchanged(db)
	jaytest.Verify(t, db)
	jaytest.Must(t, db.Close())
	s.withoutKind(t, dir)
	restore = checks.NoSettler()
	db = jaytest.Open(t, dir, nil)
	unchanged(db)
	jaytest.Must(t, db.Close())
	restore()
	db = jaytest.Open(t, dir, nil)
	defer jaytest.Close(t, db)
	checks.WaitSettled(db)
	isSettled(t, db)
	jaytest.Must(t, db.Flush(ctx))
	if maps.Equal(checks.Entries(db), before) {
		t.Error("nothing was settled")
	}
	s.answersAlike(t, db)
}

// settledShared: of two processes that settle the same part one does, and two workers beside writers of both are harmless.
func (s *Subject) settledShared(t *testing.T) {
	restore := checks.NoSettler()
	driver := &memory.Driver{Shared: true}
	open := func() *jay.DB { return jaytest.Open(t, "db", &jay.Options{Engine: driver}) }
	a, b := open(), open()
	restore()
	jaytest.Must(t, a.EnsureIndex(ctx, things, s.Index))
	s.fill(t, b, 40)
	inside := false
	restore = checks.OnSettle(func(context.Context) {
		if inside {
			return
		}
		inside = true
		found, err := checks.SettleSome(b)
		if inside = false; !found || err != nil {
			t.Errorf("the other process: %v, %v", found, err)
		}
		jaytest.Verify(t, a)
	})
	s.settleHalf(t, a)
	restore()
	jaytest.Must(t, checks.Settle(a))
	isSettled(t, b)
	jaytest.Verify(t, b)
	jaytest.Must(t, a.Close())
	jaytest.Must(t, b.Close())

	a, b = open(), open()
	defer jaytest.Close(t, a)
	defer jaytest.Close(t, b)
	var writers sync.WaitGroup
	for i, db := range []*jay.DB{a, b} {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 0))
			for range 60 {
				_, err := db.Put(ctx, fmt.Sprint("things/", r.IntN(40)), []byte(s.Body(r)), jay.InCollection(things))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	checks.WaitSettled(a)
	checks.WaitSettled(b)
	jaytest.Verify(t, a)
	s.answersAlike(t, b)
}

// settledUnavailable: a worker that finds the store away goes on when it is back, without a write.
func (s *Subject) settledUnavailable(t *testing.T) {
	defer checks.SetSettlePause(time.Millisecond)()
	driver := &storagetest.Commits{Driver: new(memory.Driver)}
	quiet := checks.NoSettler()
	db := jaytest.Open(t, "db", &jay.Options{Engine: driver})
	jaytest.Must(t, db.EnsureIndex(ctx, things, s.Index))
	s.fill(t, db, 30)
	jaytest.Must(t, db.Close())
	quiet()

	parts := 0
	defer checks.OnSettle(func(context.Context) {
		if parts++; parts < 4 {
			driver.Fail(storagetest.Unavailable, 1)
		}
	})()
	db = jaytest.Open(t, "db", &jay.Options{Engine: driver})
	defer jaytest.Close(t, db)
	checks.WaitSettled(db)
	if parts < 5 {
		t.Errorf("%d parts, three of which found the store away", parts)
	}
	isSettled(t, db)
	jaytest.Verify(t, db)
	s.answersAlike(t, db)
}

// settledBroken: an index whose part fails is left alone and named in the log, once, and another one is settled.
func (s *Subject) settledBroken(t *testing.T) {
	sample.OneGoroutine(t)
	var log bytes.Buffer
	quiet := checks.NoSettler()
	driver := new(memory.Driver)
	options := &jay.Options{Engine: driver, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	db := jaytest.Open(t, "db", options)
	jaytest.Must(t, db.EnsureIndex(ctx, things, s.Index))
	other := s.Index
	other.Name = "other"
	jaytest.Must(t, db.EnsureIndex(ctx, things, other))
	s.fill(t, db, 30)
	for key, value := range checks.Entries(db) {
		if key[4] == 1 { // of the first index
			checks.SetEntry(db, []byte(key), append([]byte(value), 0xfe))
		}
	}
	jaytest.Must(t, db.Close())
	quiet()

	db = jaytest.Open(t, "db", options)
	checks.WaitSettled(db)
	before := checks.Entries(db)
	if n := bytes.Count(log.Bytes(), []byte("is not settled any more")); n != 1 || !bytes.Contains(log.Bytes(), []byte(indexName)) {
		t.Errorf("the log says %s", log.Bytes())
	}
	isSettled(t, db)
	for key, value := range before {
		if key[4] == 1 && value[len(value)-1] != 0xfe {
			t.Errorf("key %q of the broken index was written", key)
		}
	}
	jaytest.Must(t, db.DropIndex(ctx, things, indexName))
	jaytest.Verify(t, db)
	jaytest.Must(t, db.Close())
}

// settledTrail: what settling has deleted is passed by queries, and not for ever: as soon as there is nothing to settle, the engine compacts it.
func (s *Subject) settledTrail(t *testing.T) {
	var lo, hi []byte
	passed := func(db *jay.DB) int {
		t.Helper()
		n, known, err := checks.Passed(db, lo, hi)
		jaytest.Must(t, err)
		if !known {
			t.Skip("the engine does not know what is passed")
		}
		return n
	}
	restore := checks.SetTrails(1<<30, 0)
	dir := t.TempDir()
	db := jaytest.Open(t, dir, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, things, s.Index))
	s.fill(t, db, 100)
	checks.WaitSettled(db)
	jaytest.Must(t, db.Flush(ctx))
	if lo, hi = checks.Trail(db); passed(db) < 50 {
		t.Errorf("%d deleted keys of 100 documents are passed while nothing is compacted", passed(db))
	}
	jaytest.Close(t, db)
	restore()

	compacted := func() {
		t.Helper()
		for begun := time.Now(); passed(db) >= 40; time.Sleep(time.Millisecond) {
			if time.Since(begun) > time.Minute {
				t.Fatalf("%d deleted keys are still passed", passed(db))
			}
		}
	}
	defer checks.SetTrails(40, time.Millisecond)()
	db = jaytest.Open(t, dir, nil)
	defer jaytest.Close(t, db)
	compacted()
	for i := range 100 {
		jaytest.Must(t, db.Delete(ctx, fmt.Sprint("things/", i)))
	}
	s.fill(t, db, 100)
	checks.WaitSettled(db)
	compacted()
	jaytest.Verify(t, db)
	s.answersAlike(t, db)
}
