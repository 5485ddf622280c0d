package recovery_test

// These tests compare copies with their originals key by key, which the public API does not show.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/backup"
	"github.com/jaydb/jay/internal/copier"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/memory"
	"github.com/jaydb/jay/storage/storagetest"
)

// everyKey returns all keys and values of a store, but those that no copy has.
func everyKey(t testing.TB, d storage.Driver, name string) map[string]string {
	t.Helper()
	e, err := d.Open(name, storage.OpenOptions{ReadOnly: true, MustExist: true})
	jaytest.Must(t, err)
	defer e.Close()
	left, err := backup.FindLeftOut(e)
	jaytest.Must(t, err)
	it, err := e.Iterate(nil, nil)
	jaytest.Must(t, err)
	all := make(map[string]string)
	for ok := it.First(); ok; ok = it.Next() {
		if !left.Has(it.Key()) {
			all[string(it.Key())] = string(it.Value())
		}
	}
	jaytest.Must(t, errors.Join(it.Error(), it.Close()))
	return all
}

func onDisk(disk *storagetest.Disk) storage.Driver { return lsm.Driver{Options: lsm.Options{FS: disk}} }

// history makes a database on a disk by a random history of the present day, so that nothing in it expires while a test has it open.
func history(t testing.TB, disk *storagetest.Disk, seed uint64, steps int) {
	t.Helper()
	s := &stepping{t: t, random: rand.New(rand.NewPCG(seed, 38))}
	s.advance(time.Now().UTC())
	var err error
	s.db, err = jay.Open("from", &jay.Options{FS: disk, Now: func() time.Time { return *s.now.Load() }})
	jaytest.Must(t, err)
	for range steps {
		s.step()
	}
	_, err = s.db.Backup(context.Background(), discard{})
	jaytest.Must(t, err)
	jaytest.Must(t, s.db.Close())
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Ensure that a copy has exactly the keys and values of its source, whatever that has, also when it is interrupted again and again and goes on; that
// a copy of it, in a store of another engine, has them, too; and that both can be opened and are whole.
func TestCopy_Exact(t *testing.T) {
	knobs.CopyKeys, knobs.AttachmentChunkBytes = 7, 4
	defer func() { knobs.CopyKeys, knobs.AttachmentChunkBytes = 8192, 0 }()
	ctx := context.Background()
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		disk, other := storagetest.NewDisk(), new(memory.Driver)
		history(t, disk, uint64(round), 150)
		want := everyKey(t, onDisk(disk), "from")

		random := rand.New(rand.NewPCG(uint64(round), 1))
		interrupted := 0
		var info jay.CopyInfo
		for {
			ctx, cancel := context.WithCancel(ctx)
			left := 1 + random.IntN(4)
			var err error
			info, err = jay.Copy(ctx, "from", "there", jay.CopyOptions{SameTag: true, From: &jay.Options{FS: disk}, To: &jay.Options{Engine: other}, Progress: func(p jay.CopyProgress) {
				if left--; left == 0 && interrupted < 40 {
					cancel()
				}
			}})
			cancel()
			if err == nil {
				break
			}
			interrupted++
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if _, err := jay.Open("there", &jay.Options{Engine: other, MustExist: true}); !errors.Is(err, jay.ErrRestoring) && !errors.Is(err, storage.ErrNoDatabase) {
				t.Fatalf("a copy that is not whole opens: %v", err)
			}
		}
		if interrupted < 3 || !info.Resumed || info.NodeTag != "A" || info.Keys != int64(len(want)) || info.Documents == 0 {
			t.Errorf("round %d: %d interruptions, %+v, want %d keys", round, interrupted, info, len(want))
		}
		sameContents(t, "there", want, everyKey(t, other, "there"))
		info, err := jay.Copy(ctx, "there", "back", jay.CopyOptions{SameTag: true, From: &jay.Options{Engine: other}, To: &jay.Options{FS: disk}})
		jaytest.Must(t, err)
		if info.Resumed {
			t.Errorf("round %d: a copy that was not interrupted says %+v", round, info)
		}
		sameContents(t, "back", want, everyKey(t, onDisk(disk), "back"))
		for _, o := range []struct {
			name string
			jay.Options
		}{{"there", jay.Options{Engine: other}}, {"back", jay.Options{FS: disk}}} {
			db, err := jay.Open(o.name, &o.Options)
			jaytest.Must(t, err)
			report, err := db.Verify(ctx, nil)
			jaytest.Must(t, err)
			if report.Found > 0 {
				t.Errorf("round %d: %s: %v", round, o.name, report.Damages)
			}
			jaytest.Must(t, db.Close())
		}
	}
}

// Ensure that a copy of what has a key in each space has them all.
func TestCopy_EverySpace(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	jaytest.Close(t, everySpace(t, dir+"/from"))
	_, err := jay.Copy(ctx, dir+"/from", dir+"/to", jay.CopyOptions{SameTag: true})
	jaytest.Must(t, err)
	sameContents(t, "copy", everyKey(t, lsm.Driver{}, dir+"/from"), everyKey(t, lsm.Driver{}, dir+"/to"))
}

// Ensure that no number comes twice (A20): a copy with the tag of its source goes on where that was, and one with a tag of its own makes other IDs, and
// refuses identities until their numbers have a minimum; it has a database ID of its own, and no backup of the source can be followed.
func TestCopy_Numbers(t *testing.T) {
	ctx, disk := context.Background(), storagetest.NewDisk()
	from := jaytest.OnDisk(t, disk, jay.Options{Durability: jay.Relaxed})
	used := make(map[string]bool)
	add := func(db *jay.DB, n int) {
		t.Helper()
		for range n {
			for _, request := range []string{"calls|", "calls/"} {
				m, err := db.Put(ctx, request, []byte(`{}`), jay.InCollection("Calls"))
				jaytest.Must(t, err)
				if used[m.ID] {
					t.Fatalf("%s comes twice", m.ID)
				}
				used[m.ID] = true
			}
			id := jaytest.Store(t, db, "Users")
			if used[id] {
				t.Fatalf("%s comes twice", id)
			}
			used[id] = true
		}
	}
	add(from, 40)
	_, err := from.Backup(ctx, discard{})
	jaytest.Must(t, err)
	name := from.Dir()
	disk = disk.Crash(100, rand.New(rand.NewPCG(1, 1))) // without a clean Close
	jaytest.Close(t, from)

	_, err = jay.Copy(ctx, name, "moved", jay.CopyOptions{SameTag: true, From: &jay.Options{FS: disk}, To: &jay.Options{FS: disk}})
	jaytest.Must(t, err)
	moved, err := jay.Open("moved", &jay.Options{FS: disk})
	jaytest.Must(t, err)
	add(moved, 40)
	jaytest.Close(t, moved)

	info, err := jay.Copy(ctx, "moved", "apart", jay.CopyOptions{CopyTag: "B", From: &jay.Options{FS: disk}, To: &jay.Options{FS: disk}})
	jaytest.Must(t, err)
	jaytest.Equal(t, info.NodeTag, "B")
	apart, err := jay.Open("apart", &jay.Options{FS: disk})
	jaytest.Must(t, err)
	if _, err := apart.NextIdentity(ctx, "calls"); !errors.Is(err, jay.ErrNeedsFloor) {
		t.Errorf("an identity of a copy with another tag: %v", err)
	}
	known, err := backup.Known(parts.Of(apart).Env.Engine)
	jaytest.Must(t, err)
	if len(known.Made) > 0 {
		t.Errorf("backups of the source can be followed: %+v", known)
	}
	if id := jaytest.Store(t, apart, "Users"); used[id] || !strings.HasSuffix(id, "-B") {
		t.Errorf("the copy makes %s", id)
	}
	jaytest.Close(t, apart)

	_, err = jay.Copy(ctx, "moved", "floors", jay.CopyOptions{CopyTag: "C", Floors: jay.Counters{Identities: map[string]int64{"calls|": 100_000}}, From: &jay.Options{FS: disk}, To: &jay.Options{FS: disk}})
	jaytest.Must(t, err)
	floors, err := jay.Open("floors", &jay.Options{FS: disk})
	jaytest.Must(t, err)
	if n, err := floors.NextIdentity(ctx, "calls"); n != 100_001 || err != nil {
		t.Errorf("behind a floor of 100,000: %d, %v", n, err)
	}
	jaytest.Close(t, floors)
	if _, err := jay.Copy(ctx, "apart", "again", jay.CopyOptions{CopyTag: "A", From: &jay.Options{FS: disk}, To: &jay.Options{FS: disk}}); !errors.Is(err, jay.ErrFixed) {
		t.Errorf("a tag that the source had: %v", err)
	}
}

// Ensure that a source whose moments end is read in many of them.
func TestCopy_MomentsEnd(t *testing.T) {
	knobs.CopyKeys = 5
	defer func() { knobs.CopyKeys = 8192 }()
	ctx, disk := context.Background(), storagetest.NewDisk()
	history(t, disk, 1, 100)
	var now atomic.Int64
	short := &memory.Driver{Limits: storage.Limits{SnapshotAge: time.Second}, Now: func() time.Time { return time.Unix(0, now.Add(1e7)) }} // 100 questions
	to := func(name string, from, to jay.Options) {
		t.Helper()
		_, err := jay.Copy(ctx, "from", name, jay.CopyOptions{SameTag: true, From: &from, To: &to})
		jaytest.Must(t, err)
	}
	to("from", jay.Options{FS: disk}, jay.Options{Engine: short})
	to("back", jay.Options{Engine: short}, jay.Options{FS: disk})
	sameContents(t, "back", everyKey(t, onDisk(disk), "from"), everyKey(t, onDisk(disk), "back"))
	never := &memory.Driver{Limits: storage.Limits{SnapshotAge: time.Second}, Now: func() time.Time { return time.Unix(now.Add(1), 0) }}
	if _, err := jay.Copy(ctx, "from", "x", jay.CopyOptions{SameTag: true, From: &jay.Options{FS: disk}, To: &jay.Options{Engine: never}}); !errors.Is(err, jay.ErrSnapshotExpired) {
		t.Errorf("a target whose moments end at once: %v", err)
	}
}

// Ensure that what the target cannot store is listed, by name, before anything is made.
func TestCopy_Limits(t *testing.T) {
	ctx, disk := context.Background(), storagetest.NewDisk()
	db, err := jay.Open("from", &jay.Options{FS: disk})
	jaytest.Must(t, err)
	long := "users/" + strings.Repeat("x", 200)
	jaytest.Put(t, db, long, `{}`)
	jaytest.Put(t, db, "users/2", fmt.Sprintf(`{"Text":%q}`, strings.Repeat("y", 3000)))
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "ByText", Fields: []string{"Text"}}))
	jaytest.Put(t, db, "notes/1", fmt.Sprintf(`{"Text":%q}`, strings.Repeat("z", 150)), jay.InCollection("Notes"))
	jaytest.Must(t, db.Close())
	small := &memory.Driver{Limits: storage.Limits{KeyBytes: 150, ValueBytes: 2000, TxBytes: 1 << 20}}
	_, err = jay.Copy(ctx, "from", "to", jay.CopyOptions{SameTag: true, From: &jay.Options{FS: disk}, To: &jay.Options{Engine: small}})
	var refused *jay.CopyLimitError
	if !errors.As(err, &refused) || !errors.Is(err, jay.ErrTooLarge) || refused.Found != int64(len(refused.Records)) {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"document \"" + long[:50], `document "users/2"`, `index "ByText" of Notes`} {
		if !slices.ContainsFunc(refused.Records, func(r string) bool { return strings.Contains(r, want) }) {
			t.Errorf("%s is not named: %v", want, err)
		}
	}
	if _, err := small.Open("to", storage.OpenOptions{MustExist: true}); !errors.Is(err, storage.ErrNoDatabase) {
		t.Errorf("the target was made: %v", err)
	}
	// One that is there, and empty, is asked, too.
	e, err := small.Open("to", storage.OpenOptions{})
	jaytest.Must(t, err)
	jaytest.Must(t, e.Close())
	_, err = jay.Copy(ctx, "from", "to", jay.CopyOptions{SameTag: true, From: &jay.Options{FS: disk}, To: &jay.Options{Engine: small}})
	if !errors.As(err, &refused) || len(everyKey(t, small, "to")) > 0 {
		t.Errorf("an empty target: %v", err)
	}
	few := &memory.Driver{Limits: storage.Limits{TxBytes: 40_000}} // a transaction of the copy has a quarter
	var steps []string
	_, err = jay.Copy(ctx, "from", "to", jay.CopyOptions{SameTag: true, From: &jay.Options{FS: disk}, To: &jay.Options{Engine: few}, Progress: func(p jay.CopyProgress) {
		if p.TotalKeys == 0 && p.Step != "measure" {
			t.Errorf("the total is not known: %+v", p)
		}
		steps = append(steps, p.Step)
	}})
	jaytest.Must(t, err)
	if got := strings.Join(slices.Compact(steps), " "); got != "measure copy compare" {
		t.Errorf("steps %s", got)
	}
}

// Ensure that a copy is refused, by its rule, that would mix two databases, or be one of two moments.
func TestCopy_Rules(t *testing.T) {
	knobs.CopyKeys = 3
	defer func() { knobs.CopyKeys = 8192 }()
	ctx, disk := context.Background(), storagetest.NewDisk()
	history(t, disk, 3, 60)
	o := &jay.Options{FS: disk}
	total := int64(len(everyKey(t, onDisk(disk), "from")))
	const late = -1 // when nearly all is copied
	copyTo := func(from, to string, opts jay.CopyOptions, batches int) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		opts.From, opts.To = o, o
		opts.SameTag = opts.CopyTag == ""
		whenLate := batches == late
		opts.Progress = func(p jay.CopyProgress) {
			if batches--; batches == 0 || whenLate && p.Step == "copy" && p.Keys > total-9 {
				cancel()
			}
		}
		_, err := jay.Copy(ctx, from, to, opts)
		return err
	}
	refused := func(what string, rule string, err error) {
		t.Helper()
		var e *jay.CopyError
		if !errors.As(err, &e) || !errors.Is(err, jay.ErrCopy) || e.Rule != rule || e.Do == "" {
			t.Errorf("%s: %v, want a CopyError of the rule %q", what, err, rule)
		}
	}
	open := func(name string) *jay.DB {
		t.Helper()
		db, err := jay.Open(name, o)
		jaytest.Must(t, err)
		return db
	}
	jaytest.Must(t, open("other").Close())
	refused("a target with a database", copier.RuleEmpty, copyTo("from", "other", jay.CopyOptions{}, 0))
	if err := copyTo("from", "from", jay.CopyOptions{}, 0); !errors.Is(err, jay.ErrLocked) {
		t.Errorf("a copy into the source: %v", err)
	}
	if err := copyTo("from", "to", jay.CopyOptions{}, late); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	refused("a source that is not whole", copier.RuleWhole, copyTo("to", "next", jay.CopyOptions{}, 0))
	refused("another source", copier.RuleSame, copyTo("other", "to", jay.CopyOptions{}, 0))
	refused("another tag", copier.RuleSame, copyTo("from", "to", jay.CopyOptions{CopyTag: "B"}, 0))
	before := everyKey(t, onDisk(disk), "from")

	// Written to in between: with an etag it is seen at once, without one in the end.
	db := open("from")
	jaytest.Must(t, db.EnsureIndex(ctx, "New", jay.Index{Fields: []string{"X"}}))
	jaytest.Must(t, db.Close())
	if before["metag\x00"] != everyKey(t, onDisk(disk), "from")["metag\x00"] {
		t.Fatal("an index takes an etag")
	}
	refused("a source that was written to", copier.RuleEqual, copyTo("from", "to", jay.CopyOptions{}, 0))
	db = open("from")
	jaytest.Put(t, db, "users/new", `{}`)
	jaytest.Must(t, db.Close())
	refused("a source that was written to", copier.RuleUnwritten, copyTo("from", "to", jay.CopyOptions{}, 0))

	// Changed by another hand.
	if err := copyTo("from", "broken", jay.CopyOptions{}, 5); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for _, key := range []string{"zextra", "\x01first"} {
		e, err := onDisk(disk).Open("broken", storage.OpenOptions{})
		jaytest.Must(t, err)
		jaytest.Must(t, e.Update(ctx, true, func(tx storage.Tx) error { tx.Set([]byte(key), nil, nil); return nil }))
		jaytest.Must(t, e.Close())
		refused("a key that the source has not", copier.RuleEqual, copyTo("from", "broken", jay.CopyOptions{}, 0))
		e, err = onDisk(disk).Open("broken", storage.OpenOptions{})
		jaytest.Must(t, err)
		jaytest.Must(t, e.Update(ctx, true, func(tx storage.Tx) error { tx.Delete([]byte(key)); return nil }))
		jaytest.Must(t, e.Close())
	}
	for _, value := range []string{"changed", ""} { // of the first key, which is there
		first := slices.Min(slices.Collect(maps.Keys(everyKey(t, onDisk(disk), "from"))))
		if value == "" {
			value = everyKey(t, onDisk(disk), "from")[first]
		}
		e, err := onDisk(disk).Open("broken", storage.OpenOptions{})
		jaytest.Must(t, err)
		jaytest.Must(t, e.Update(ctx, true, func(tx storage.Tx) error { tx.Set([]byte(first), []byte(value), nil); return nil }))
		jaytest.Must(t, e.Close())
		if value == "changed" {
			refused("a value that the source has not", copier.RuleEqual, copyTo("from", "broken", jay.CopyOptions{}, 0))
		}
	}
	jaytest.Must(t, copyTo("from", "broken", jay.CopyOptions{}, 0))

	// A store of which nobody can say whether it was written to.
	shared := &memory.Driver{Shared: true}
	db, err := jay.Open("from", &jay.Options{Engine: shared})
	jaytest.Must(t, err)
	jaytest.Must(t, db.Close())
	_, err = jay.Copy(ctx, "from", "x", jay.CopyOptions{SameTag: true, From: &jay.Options{Engine: shared}, To: o})
	refused("a shared store without numbers", copier.RuleUnwritten, err)

	// Records of what is no database of its own.
	for _, name := range []string{format.StandbyName, format.MembershipName} {
		e, err := onDisk(disk).Open("other", storage.OpenOptions{})
		jaytest.Must(t, err)
		key := format.AppendKey(nil, format.SpaceMeta, name)
		jaytest.Must(t, e.Update(ctx, true, func(tx storage.Tx) error { tx.Set(key, []byte("{}"), nil); return nil }))
		jaytest.Must(t, e.Close())
		refused(name, copier.RuleWhole, copyTo("other", "y", jay.CopyOptions{}, 0))
		e, err = onDisk(disk).Open("other", storage.OpenOptions{})
		jaytest.Must(t, err)
		jaytest.Must(t, e.Update(ctx, true, func(tx storage.Tx) error { tx.Delete(key); return nil }))
		jaytest.Must(t, e.Close())
	}
	for _, wrong := range []jay.CopyOptions{{}, {SameTag: true, CopyTag: "B"}, {CopyTag: "b"}, {SameTag: true, Floors: jay.Counters{Etag: 1}}, {SameTag: true, From: &jay.Options{ReadOnly: true}}, {SameTag: true, To: &jay.Options{NodeTag: "B"}}} {
		if _, err := jay.Copy(ctx, "from", "z", wrong); !errors.Is(err, jay.ErrOption) && !errors.Is(err, jay.ErrInvalidID) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}
