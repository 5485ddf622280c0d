package standby_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/standby"
	"github.com/jaydb/jay/storage/storagetest"
)

// makeIDs makes an ID by each strategy.
func makeIDs(t *testing.T, db *jay.DB, seen map[string]string, who string) {
	t.Helper()
	for _, request := range []string{"", "log/", "invoices|"} {
		var m jay.Metadata
		var err error
		if request == "" {
			m, err = db.Store(ctx, "Orders", json.RawMessage(`{}`))
		} else {
			m, err = db.Put(ctx, request, json.RawMessage(`{}`))
		}
		must(t, err)
		if other, found := seen[m.ID]; found {
			t.Errorf("%s makes %s, which %s has made", who, m.ID, other)
		}
		seen[m.ID] = who
	}
}

// standbyOf makes a standby of db on a disk and closes it.
func standbyOf(t *testing.T, db *jay.DB) *storagetest.Disk {
	t.Helper()
	disk := storagetest.NewDisk()
	s := copyOf(t, disk, standby.From(db))
	await(t, s, db)
	must(t, s.Close())
	return disk
}

// Ensure that a promoted standby is a database of its own, whose IDs are never those of its source, which goes on:
// identities are refused until they have a floor.
func TestPromote_CopyTag(t *testing.T) {
	db := jaytest.Memory(t, nil)
	seen := make(map[string]string)
	for range 40 {
		makeIDs(t, db, seen, "the source")
	}
	disk := standbyOf(t, db)
	for range 40 {
		makeIDs(t, db, seen, "the source, later")
	}

	for _, tag := range []string{"A", "longer", ""} {
		if _, err := jay.Promote(ctx, "copy", jay.PromoteOptions{CopyTag: tag, Options: &jay.Options{FS: disk}}); !errors.Is(err, jay.ErrFixed) && !errors.Is(err, jay.ErrOption) {
			t.Errorf("CopyTag %q: %v", tag, err)
		}
	}
	info, err := jay.Promote(ctx, "copy", jay.PromoteOptions{CopyTag: "B", Options: &jay.Options{FS: disk}})
	must(t, err)
	if info.NodeTag != "B" || info.Documents != 121 { // with the document of HiLo
		t.Errorf("got %+v", info)
	}
	promoted, err := jay.Open("copy", &jay.Options{FS: disk})
	must(t, err)
	if _, err := promoted.Put(ctx, "invoices|", json.RawMessage(`{}`)); !errors.Is(err, jay.ErrNeedsFloor) {
		t.Errorf("an identity without a floor: %v", err)
	}
	_, err = promoted.SeedIdentity(ctx, "invoices|", 1000, false)
	must(t, err)
	for range 40 {
		makeIDs(t, promoted, seen, "the promoted")
	}
	for range 40 {
		makeIDs(t, db, seen, "the source, at last")
	}
	jaytest.Close(t, promoted)
	if _, err := jay.Promote(ctx, "copy", jay.PromoteOptions{CopyTag: "C", Options: &jay.Options{FS: disk}}); !errors.Is(err, jay.ErrStandby) {
		t.Errorf("a database that is no standby: %v", err)
	}
	if _, err := standby.Open("copy", standby.From(db), standby.Options{Database: &jay.Options{FS: disk}}); !errors.Is(err, jay.ErrStandby) {
		t.Errorf("to follow with a database: %v", err)
	}
}

// Ensure that a standby takes the place of a source that is gone only with floors, and then makes no ID again.
func TestPromote_SameTag(t *testing.T) {
	db := jaytest.Memory(t, nil)
	seen := make(map[string]string)
	makeIDs(t, db, seen, "the source")
	disk := standbyOf(t, db)
	for range 100 { // what the standby never sees
		makeIDs(t, db, seen, "the source, later")
	}
	last, err := db.Counters(ctx)
	must(t, err)

	o := jay.PromoteOptions{SameTag: true, Options: &jay.Options{FS: disk}}
	for _, floors := range []jay.Counters{{}, {Etag: last.Etag + 1<<20}, {Etag: last.Etag + 1<<20, Identities: last.Identities}, {Identities: last.Identities, HiLo: last.HiLo}} {
		o.Floors = floors
		if _, err := jay.Promote(ctx, "copy", o); !errors.Is(err, jay.ErrNeedsFloor) {
			t.Errorf("floors %+v: %v", floors, err)
		}
	}
	if _, err := jay.Open("copy", &jay.Options{FS: disk}); !errors.Is(err, jay.ErrStandby) {
		t.Errorf("after a promotion that failed: %v", err)
	}
	o.Floors = jay.Counters{Etag: last.Etag + 1<<20, Identities: last.Identities, HiLo: last.HiLo}
	_, err = jay.Promote(ctx, "copy", o)
	must(t, err)
	promoted, err := jay.Open("copy", &jay.Options{FS: disk})
	must(t, err)
	for range 50 {
		makeIDs(t, promoted, seen, "the promoted")
	}
	jaytest.Close(t, promoted)
}

// Ensure that a promotion that loses its power anywhere leaves a standby, which is promoted again or follows again, or a database.
func TestPromote_Crash(t *testing.T) {
	db := jaytest.Memory(t, nil)
	put(t, db, "invoices|", `{}`)
	disk := standbyOf(t, db)
	options := func(disk *storagetest.Disk) jay.PromoteOptions {
		return jay.PromoteOptions{CopyTag: "B", Floors: jay.Counters{Identities: map[string]int64{"invoices|": 100}}, Options: &jay.Options{FS: disk}}
	}
	random := rand.New(rand.NewPCG(1, 34))
	standbys := 0
	for n := 1; ; n++ {
		if testing.Short() && n > 4 && n%4 != 0 {
			continue
		}
		from := disk.Crash(100, random)
		cut := from.CutPower(n, 0, random)
		_, err := jay.Promote(ctx, "copy", options(from))
		must(t, err)
		if !cut.Happened() {
			break
		}
		after := cut.Disk()
		opened, err := jay.Open("copy", &jay.Options{FS: after.Crash(100, random)})
		if errors.Is(err, jay.ErrStandby) {
			standbys++
			again := copyOf(t, after.Crash(100, random), standby.From(db))
			await(t, again, db)
			must(t, again.Close())
			if _, err = jay.Promote(ctx, "copy", options(after)); err != nil {
				t.Fatalf("after %d syncs: %v", n, err)
			}
			opened, err = jay.Open("copy", &jay.Options{FS: after})
		}
		if err != nil {
			t.Fatalf("after %d syncs: %v", n, err)
		}
		m, err := opened.Put(ctx, "invoices|", json.RawMessage(`{}`))
		must(t, err)
		jaytest.Equal(t, m.ID, "invoices/101")
		jaytest.Equal(t, fmt.Sprint(opened.Close()), "<nil>")
	}
	if standbys == 0 {
		t.Error("no cut has left a standby")
	}
}

// Ensure that a promotion in the place of the source that loses its power anywhere can be made again with the same floors, also
// under Relaxed, which reserves numbers above those that are in use.
func TestPromote_SameFloorsAgain(t *testing.T) {
	db := jaytest.Memory(t, nil)
	makeIDs(t, db, make(map[string]string), "the source")
	disk := standbyOf(t, db)
	last, err := db.Counters(ctx)
	must(t, err)
	last.Etag += 1 << 20
	last.Identities["invoices|"] = 100
	for tag := range last.HiLo { // the document of its range is written anew, under an etag above the floor
		last.HiLo[tag] += 1000
	}
	if len(last.HiLo) == 0 {
		t.Fatal("no range of HiLo")
	}
	random := rand.New(rand.NewPCG(2, 34))
	again := 0
	for n := 1; ; n++ {
		from := disk.Crash(100, random)
		options := func(disk *storagetest.Disk) jay.PromoteOptions {
			return jay.PromoteOptions{SameTag: true, Floors: last, Options: &jay.Options{FS: disk, Durability: jay.Relaxed}}
		}
		cut := from.CutPower(n, 100, random)
		_, err := jay.Promote(ctx, "copy", options(from))
		must(t, err)
		if !cut.Happened() {
			break
		}
		switch _, err = jay.Promote(ctx, "copy", options(cut.Disk())); {
		case err == nil:
			again++
		case !errors.Is(err, jay.ErrStandby): // it was a database already
			t.Fatalf("after %d syncs: %v", n, err)
		}
		promoted, err := jay.Open("copy", &jay.Options{FS: cut.Disk()})
		must(t, err)
		m, err := promoted.Put(ctx, "invoices|", json.RawMessage(`{}`))
		must(t, err)
		jaytest.Equal(t, m.ID, "invoices/101")
		jaytest.Close(t, promoted)
	}
	if again == 0 {
		t.Error("no promotion was made again")
	}
}
