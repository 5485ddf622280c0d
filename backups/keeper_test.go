package backups_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/backups"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/jaytest"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

var ctx = context.Background()

// kept is a database whose clock is that of its backups, which are on a disk of their own.
type kept struct {
	t    *testing.T
	db   *jaytest.DB
	disk *storagetest.Disk
	o    backups.Options
	k    *backups.Keeper
	n    int // of documents
}

func newKept(t *testing.T, o backups.Options) *kept {
	t.Helper()
	w := &kept{t: t, db: jaytest.Open(t, nil), disk: storagetest.NewDisk(), o: o}
	w.o.Dir, w.o.FS, w.o.Now = "/copies", w.disk, w.db.Clock.Now
	w.open()
	t.Cleanup(func() {
		if err := w.k.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return w
}

func (w *kept) open() {
	w.t.Helper()
	k, err := backups.Open(w.db.DB, w.o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.k = k
}

// again is what a restart of the program does.
func (w *kept) again() {
	w.t.Helper()
	if err := w.k.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.open()
}

// make stores a document, and makes a backup some time later.
func (w *kept) make(after time.Duration) backups.Backup {
	w.t.Helper()
	w.put()
	w.db.Clock.Advance(after)
	b, err := w.k.Make(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

func (w *kept) put() {
	w.t.Helper()
	w.n++
	if _, err := w.db.Put(ctx, fmt.Sprint("docs/", w.n), []byte(`{"text":"`+strings.Repeat("x", 100)+`"}`)); err != nil {
		w.t.Fatal(err)
	}
}

// names lists the files of the directory, without the lock.
func (w *kept) names() string { return names(w.t, w.disk) }

func names(t *testing.T, disk lsm.FS) string {
	t.Helper()
	d, err := disk.List("/copies")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(d)
	var all []string
	for n := range 100 { // in order
		for _, name := range d {
			if strings.HasPrefix(name, fmt.Sprintf("%08d", n)) {
				all = append(all, strings.TrimLeft(strings.Replace(name, ".jaybackup", "", 1), "0"))
			}
		}
	}
	return strings.Join(all, " ")
}

// restored returns how many documents the newest chain of a disk has.
func restored(t *testing.T, disk lsm.FS) int64 {
	t.Helper()
	links, err := backups.Chain(disk, "/copies")
	if err != nil {
		t.Fatal(err)
	}
	var streams [][]byte
	for _, b := range links {
		f, err := disk.Open(b.Path)
		if err != nil {
			t.Fatal(err)
		}
		stream, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		streams = append(streams, stream)
	}
	return jaytest.CheckBackup(t, streams...).Documents
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// Ensure that a chain begins with a full backup and goes on with what has changed, that a new one begins when that is old, that old chains
// are removed whole, and that the newest restores everything.
func TestKeeper_Chains(t *testing.T) {
	t.Parallel()
	w := newKept(t, backups.Options{Every: time.Hour, Full: 3 * time.Hour, Keep: 4})
	for range 3 {
		w.make(time.Hour)
	}
	equal(t, "one chain", w.names(), "1-full 2-since 3-since")
	w.make(time.Hour)
	w.make(time.Hour)
	equal(t, "two chains", w.names(), "1-full 2-since 3-since 4-full 5-since")
	w.make(time.Hour)
	w.make(time.Hour)
	equal(t, "the first chain is removed when four newer backups are there", w.names(), "4-full 5-since 6-since 7-full")
	equal(t, "documents", restored(t, w.disk), w.n)
	s := w.k.Status()
	equal(t, "status", fmt.Sprint(s.Backups, s.Chains, s.Last.Number, s.Last.Documents, s.Late, s.Failures, s.Problem, len(s.Broken)), fmt.Sprint(4, 2, 7, 7, false, 0, "", 0))
	equal(t, "due", s.Due, w.db.Clock.Now().Add(time.Hour))
	w.again()
	equal(t, "after a restart", w.k.Status().Due, s.Due)
	w.make(time.Hour)
	equal(t, "after a restart", w.names(), "4-full 5-since 6-since 7-full 8-since")
	equal(t, "documents", restored(t, w.disk), w.n)
}

// Ensure that a clock that jumps removes no backup that is among the newest, and does not keep new ones from being made or from coming
// after the old ones.
func TestKeeper_Clock(t *testing.T) {
	t.Parallel()
	w := newKept(t, backups.Options{Every: time.Hour, Full: 2 * time.Hour, Keep: 2, KeepFor: 10 * time.Hour})
	for range 4 {
		w.make(time.Hour)
	}
	equal(t, "all are young", w.names(), "1-full 2-since 3-full 4-since")
	w.make(20 * 365 * 24 * time.Hour)
	equal(t, "years later", w.names(), "3-full 4-since 5-full")
	w.db.Clock.Advance(-30 * 365 * 24 * time.Hour)
	if s := w.k.Status(); s.Late || s.Due.After(w.db.Clock.Now()) {
		t.Errorf("the clock was set back: %+v", s)
	}
	w.make(0)
	equal(t, "set back", w.names(), "3-full 4-since 5-full 6-full")
	w.make(time.Hour)
	equal(t, "set back", w.names(), "3-full 4-since 5-full 6-full 7-since")
	equal(t, "documents", restored(t, w.disk), w.n)
}

// Ensure that a full disk leaves the backups as they are, is noticed when the last is old, and that backups go on when there is room.
func TestKeeper_FullDisk(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newKept(t, backups.Options{Every: time.Hour, Keep: 1, LateAfter: 2 * time.Hour, Logger: loggerTo(&log)})
	w.make(time.Hour)
	w.disk.Fill()
	for range 3 {
		w.put()
		w.db.Clock.Advance(time.Hour)
		if _, err := w.k.Make(ctx); !errors.Is(err, storagetest.ErrFull) {
			t.Fatalf("a full disk: %v", err)
		}
	}
	equal(t, "files", w.names(), "1-full")
	s := w.k.Status()
	equal(t, "status", fmt.Sprint(s.Failures, s.Late, s.Problem != "", s.Due.Sub(w.db.Clock.Now())), "3 true true 4m0s")
	if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "late=true") {
		t.Errorf("the log: %s", text)
	}
	w.disk.Heal()
	w.make(0)
	equal(t, "files", w.names(), "1-full 2-since")
	s = w.k.Status()
	equal(t, "status", fmt.Sprint(s.Failures, s.Late, s.Problem), "0 false")
	equal(t, "documents", restored(t, w.disk), w.n)
}

// change overwrites a file of the directory with what fn makes of it.
func (w *kept) change(name string, fn func(text []byte) []byte) {
	w.t.Helper()
	path := "/copies/" + name
	f, err := w.disk.Open(path)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		w.t.Fatal(err)
	}
	out, err := w.disk.Create(path, "test")
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = out.Write(fn(text))
	if err := errors.Join(err, out.Close()); err != nil {
		w.t.Fatal(err)
	}
}

// Ensure that a chain with a link that is damaged, cut short, missing or unreadable is not followed any more: a new one begins,
// what is before the link is still restored until then, and no such chain counts for Keep.
func TestKeeper_DamagedLink(t *testing.T) {
	t.Parallel()
	for what, hurt := range map[string]func(w *kept){
		"a flipped bit": func(w *kept) {
			w.change("00000002-since.jaybackup", func(text []byte) []byte { text[len(text)-30] ^= 4; return text })
		},
		"cut short": func(w *kept) {
			w.change("00000002-since.jaybackup", func(text []byte) []byte { return text[:len(text)-1] })
		},
		"empty": func(w *kept) { w.change("00000002-since.jaybackup", func([]byte) []byte { return nil }) },
		"missing": func(w *kept) {
			if err := w.disk.Remove("/copies/00000002-since.jaybackup"); err != nil {
				w.t.Fatal(err)
			}
		},
		"the beginning": func(w *kept) {
			w.change("00000001-full.jaybackup", func(text []byte) []byte { text[80] ^= 4; return text })
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newKept(t, backups.Options{Every: time.Hour, Keep: 2})
			for range 3 {
				w.make(time.Hour)
			}
			hurt(w)
			w.again()
			b := w.make(time.Hour)
			if b.Base != "" || b.Number != 4 {
				t.Errorf("after the damage: %+v", b)
			}
			if s := w.k.Status(); len(s.Broken) == 0 || s.Last.ID != b.ID {
				t.Errorf("status: %+v", s)
			}
			equal(t, "documents", restored(t, w.disk), w.n)
			w.make(time.Hour)
			equal(t, "the broken chain is removed when two newer ones are there", w.names(), "4-full 5-since")
		})
	}
}

// Ensure that a loss of power, or the end of the process, at any sync of a backup leaves a directory whose newest chain restores, which has
// every backup that Make has returned before, and in which backups go on.
func TestKeeper_PowerCut(t *testing.T) {
	t.Parallel()
	random, today := rand.New(rand.NewPCG(1, 34)), sample.Of(t, 7)
	_, _, syncs := cutPower(t, -1, 0, random)
	if syncs < 30 {
		t.Fatalf("five backups sync %d times", syncs)
	}
	for n := range syncs {
		for i, keep := range []int{0, 50, 100} { // the last is what the end of a process leaves
			if !today.Has(3*n + i) {
				continue
			}
			lost, made, all := cutPower(t, n, keep, random)
			if lost == nil { // on a busy machine, writes may share a sync that they did not share before
				if all > n || all < 30 {
					t.Fatalf("sync %d was not met, of %d", n, all)
				}
				continue
			}
			afterCut(t, fmt.Sprintf("%d %%, sync %d", keep, n), lost, made)
		}
	}
}

// cutOptions are those of backups on the disk of the database: full, since, full (which removes a chain), since, full.
func cutOptions(disk *storagetest.Disk, now func() time.Time) backups.Options {
	return backups.Options{Dir: "/copies", FS: disk, Now: now, Every: time.Hour, Full: 2 * time.Hour, Keep: 1, Each: func(context.Context, backups.Backup) error { return nil }}
}

// cutPower makes five backups, each of a document more. At sync n the power goes: it returns the disk as it is found then, of which each
// piece that was not synced is there with a probability in percent, how many backups Make had returned by then, and how many syncs there were.
func cutPower(t *testing.T, n, keep int, random *rand.Rand) (lost *storagetest.Disk, before int64, all int) {
	t.Helper()
	disk, now := storagetest.NewDisk(), jaytest.NewClock()
	db, err := jay.Open("db", &jay.Options{FS: disk, Now: now.Now})
	if err != nil {
		t.Fatal(err)
	}
	k, err := backups.Open(db, cutOptions(disk, now.Now))
	if err != nil {
		t.Fatal(err)
	}
	var syncs, made atomic.Int64
	disk.OnEverySync(func() {
		if syncs.Add(1) == int64(n)+1 {
			lost, before = disk.Crash(keep, random), made.Load()
		}
	})
	for i := range 5 {
		if _, err := db.Put(ctx, fmt.Sprint("docs/", i), []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		now.Advance(time.Hour)
		if _, err := k.Make(ctx); err != nil {
			t.Fatal(err)
		}
		made.Add(1)
	}
	disk.OnEverySync(nil)
	if err := errors.Join(k.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	return lost, before, int(syncs.Load())
}

// afterCut opens what a loss of power has left, after backups of so many documents.
func afterCut(t *testing.T, what string, disk *storagetest.Disk, before int64) {
	t.Helper()
	if before > 0 {
		if got := restored(t, disk); got < before {
			t.Errorf("%s: %d documents are restored, and backups of %d were made: %s", what, got, before, names(t, disk))
		}
	}
	now := jaytest.NewClock()
	now.Advance(5 * time.Hour)
	db, err := jay.Open("db", &jay.Options{FS: disk, Now: now.Now})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	k, err := backups.Open(db, cutOptions(disk, now.Now))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for i := range 2 {
		if _, err := db.Put(ctx, fmt.Sprint("more/", i), []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Make(ctx); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if left := names(t, disk); strings.Contains(left, "unfinished") || len(k.Status().Broken) > 0 {
		t.Errorf("%s: %s is left, %+v", what, left, k.Status())
	}
	all, err := db.Collections(ctx)
	if err != nil {
		t.Fatal(err)
	}
	documents := int64(0)
	for _, c := range all {
		documents += c.Documents
	}
	equal(t, what+": documents", restored(t, disk), documents)
	if err := errors.Join(k.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// Ensure that each backup is handed over once and in order, again after a failure and by the next Keeper, and that the marks go with the
// backups.
func TestKeeper_Each(t *testing.T) {
	t.Parallel()
	var got []string
	refuse := false
	w := newKept(t, backups.Options{Every: time.Hour, Full: 3 * time.Hour, Keep: 1, Each: func(_ context.Context, b backups.Backup) error {
		if refuse {
			return errors.New("the object store does not answer")
		}
		got = append(got, fmt.Sprint(b.Number))
		return nil
	}})
	w.make(time.Hour)
	refuse = true
	w.make(time.Hour)
	w.make(time.Hour)
	s := w.k.Status()
	equal(t, "status", fmt.Sprint(s.Unsent, s.Failures, strings.Contains(s.Problem, "does not answer"), got), "2 0 true [1]")
	refuse = false
	w.again()
	equal(t, "unsent after a restart", w.k.Status().Unsent, 2)
	w.make(time.Hour)
	equal(t, "handed over", got, "[1 2 3 4]")
	equal(t, "files", w.names(), "4-full 4-full.sent")
	s = w.k.Status()
	equal(t, "status", fmt.Sprint(s.Unsent, s.Problem), "0")
}

// Ensure that Run makes a backup when it is due, again sooner after a failure, and ends with its context, the Keeper and the database.
func TestKeeper_Run(t *testing.T) {
	t.Parallel()
	waits := make(chan time.Duration)
	pass := make(chan time.Time)
	w := newKept(t, backups.Options{Every: time.Hour, After: func(d time.Duration) <-chan time.Time { waits <- d; return pass }})
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.k.Run(running) }()
	equal(t, "the first wait, after a backup at once", <-waits, time.Minute)
	equal(t, "files", w.names(), "1-full")
	w.db.Clock.Advance(59*time.Minute + 30*time.Second)
	pass <- w.db.Clock.Now()
	equal(t, "the wait until it is due", <-waits, 30*time.Second)
	w.db.Clock.Advance(30 * time.Second)
	w.disk.Fill()
	pass <- w.db.Clock.Now()
	equal(t, "the wait after a failure", <-waits, time.Minute)
	w.disk.Heal()
	w.db.Clock.Advance(time.Minute)
	pass <- w.db.Clock.Now()
	<-waits
	equal(t, "files", w.names(), "1-full 2-since")
	stop()
	if err := <-ended; err != nil {
		t.Errorf("its context has ended: %v", err)
	}

	if err := w.k.Close(); err != nil {
		t.Fatal(err)
	}
	w.db.Clock.Advance(time.Hour)
	if err := w.k.Run(ctx); err != nil {
		t.Errorf("a closed Keeper: %v", err)
	}
	if _, err := w.k.Make(ctx); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("a closed Keeper: %v", err)
	}
}

// Ensure that a drill restores the newest chain and leaves nothing, and finds a chain that cannot be restored.
func TestKeeper_Drill(t *testing.T) {
	t.Parallel()
	w := newKept(t, backups.Options{})
	if _, err := w.k.Drill(ctx, "/drill"); !errors.Is(err, backups.ErrNoBackup) {
		t.Errorf("without a backup: %v", err)
	}
	w.make(time.Hour)
	w.make(time.Hour)
	info, err := w.k.Drill(ctx, "/drill")
	if err != nil || info.Documents != 2 || len(info.Backups) != 2 {
		t.Errorf("%+v, %v", info, err)
	}
	w.change("00000002-since.jaybackup", func(text []byte) []byte { text[len(text)-30] ^= 4; return text })
	if _, err := w.k.Drill(ctx, "/drill"); !errors.Is(err, jay.ErrBackup) || !strings.Contains(err.Error(), "00000002-since") {
		t.Errorf("a damaged link: %v", err)
	}
	left, err := w.disk.List("/")
	if err != nil || len(left) != 1 {
		t.Errorf("%q are left, %v", left, err)
	}
}

// Ensure that a directory belongs to one Keeper, and has the backups of one database; that files which are none stay; and that options which
// cannot be are refused.
func TestOpen_Refused(t *testing.T) {
	t.Parallel()
	w := newKept(t, backups.Options{})
	if _, err := backups.Open(w.db.DB, w.o); !errors.Is(err, jay.ErrLocked) {
		t.Errorf("a second Keeper: %v", err)
	}
	w.make(time.Hour)
	for _, name := range []string{"README", "00000001-full.txt", "1-full.jaybackup"} {
		f, err := w.disk.Create("/copies/"+name, "test")
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	w.again()
	if _, err := w.disk.Stat("/copies/README"); err != nil {
		t.Error(err)
	}
	if err := w.k.Close(); err != nil {
		t.Fatal(err)
	}
	other := jaytest.Open(t, nil)
	if _, err := backups.Open(other.DB, w.o); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("backups of another database: %v", err)
	}
	for what, change := range map[string]func(o *backups.Options){
		"Dir":       func(o *backups.Options) { o.Dir = "" },
		"Every":     func(o *backups.Options) { o.Every = time.Millisecond },
		"Full":      func(o *backups.Options) { o.Full = -1 },
		"Keep":      func(o *backups.Options) { o.Keep = -1 },
		"KeepFor":   func(o *backups.Options) { o.KeepFor = -1 },
		"LateAfter": func(o *backups.Options) { o.LateAfter = -1 },
	} {
		o := w.o
		change(&o)
		if _, err := backups.Open(w.db.DB, o); !errors.Is(err, jay.ErrOption) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.open()
}

// Ensure that a database which is opened for each backup is given back after it, and that Run goes on while it cannot be opened and ends when it is gone.
func TestOpenFrom(t *testing.T) {
	t.Parallel()
	db, open, fails := jaytest.Open(t, nil), 0, error(nil)
	source := func(context.Context) (*jay.DB, func(), error) {
		if fails != nil {
			return nil, nil, fails
		}
		open++
		return db.DB, func() { open-- }, nil
	}
	waits, pass := make(chan time.Duration), make(chan time.Time)
	k, err := backups.OpenFrom(ctx, source, backups.Options{Dir: "/copies", FS: db.Disk, Now: db.Clock.Now, After: func(d time.Duration) <-chan time.Time { waits <- d; return pass }})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx) }()
	for _, err := range []error{nil, jay.ErrClosed, nil, jay.ErrNoDatabase} {
		if <-waits; open != 0 {
			t.Errorf("after a backup, %d handles are left", open)
		}
		fails = err
		db.Clock.Advance(time.Hour)
		pass <- db.Clock.Now()
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	equal(t, "files", names(t, db.Disk), "1-full 2-since 3-since")
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	fails = nil
	if k, err = backups.OpenFrom(ctx, source, backups.Options{Dir: "/copies", FS: db.Disk}); err != nil || open != 0 {
		t.Fatalf("%d handles are left, %v", open, err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// Ensure that a backup which is damaged on its way to the disk does not count, is not handed over and is removed, and that the next one
// follows the last good one.
func TestKeeper_DamagedOnItsWay(t *testing.T) {
	t.Parallel()
	db, on, handed := jaytest.Open(t, nil), new(atomic.Bool), 0
	o := backups.Options{Dir: "/copies", FS: flipping{db.Disk, on}, Now: db.Clock.Now, Each: func(context.Context, backups.Backup) error { handed++; return nil }}
	k, err := backups.Open(db.DB, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, flips := range []bool{true, false, true, false} {
		if _, err := db.Put(ctx, fmt.Sprint("docs/", i), []byte(`{"text":"`+strings.Repeat("x", 100)+`"}`)); err != nil {
			t.Fatal(err)
		}
		on.Store(flips)
		if _, err := k.Make(ctx); errors.Is(err, jay.ErrBackup) != flips || !flips && err != nil {
			t.Errorf("backup %d: %v", i, err)
		}
		on.Store(false)
	}
	equal(t, "files", names(t, db.Disk), "1-full 1-full.sent 2-since 2-since.sent")
	equal(t, "handed over", handed, 2)
	equal(t, "documents", restored(t, db.Disk), 4)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// Ensure that a database which was restored in the place of its original goes on in the same directory, with a full backup first, and that
// one with a node tag of its own is another database, with another directory.
func TestKeeper_AfterRestore(t *testing.T) {
	t.Parallel()
	w := newKept(t, backups.Options{Every: time.Hour})
	w.make(time.Hour)
	w.make(time.Hour)
	used, err := w.db.Counters(ctx)
	if err != nil {
		t.Fatal(err)
	}
	links, err := backups.Chain(w.disk, "/copies")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.k.Close(); err != nil {
		t.Fatal(err)
	}
	for tag, want := range map[string]error{"": nil, "B": jay.ErrUsage} {
		dir := "/restored" + tag
		o := &jay.Options{FS: w.disk, Now: w.db.Clock.Now}
		if _, err := jay.RestoreFrom(ctx, dir, jay.RestoreOptions{CopyTag: tag, SameTag: tag == "", Floors: used, Options: o}, links[0].Path, links[1].Path); err != nil {
			t.Fatal(err)
		}
		db, err := jay.Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		k, err := backups.Open(db, w.o)
		if !errors.Is(err, want) {
			t.Errorf("tag %q: %v, want %v", tag, err, want)
		}
		if err == nil {
			if b, err := k.Make(ctx); err != nil || b.Number != 3 || b.Base != "" || b.Documents != 2 {
				t.Errorf("after the restore: %+v, %v", b, err)
			}
			if err := k.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w.open()
	equal(t, "files", w.names(), "1-full 2-since 3-full")
	if b, err := w.k.Make(ctx); err != nil || b.Base != "" || b.Number != 4 { // it does not know the one before it
		t.Errorf("the original goes on: %+v, %v", b, err)
	}
}
