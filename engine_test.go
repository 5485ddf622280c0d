package jay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/storage"
	stores "github.com/jaydb/jay/storage/memory"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a database in a store of another engine is there when it is opened again, is
// backed up and restored, and that IDs do not come twice.
func TestOptions_Engine(t *testing.T) {
	driver := new(stores.Driver)
	o := jay.Options{Engine: driver}
	db := open(t, "orders", &o)
	if _, err := jay.Open("orders", &o); !errors.Is(err, jay.ErrLocked) {
		t.Errorf("a second Open: %v, want ErrLocked", err)
	}
	must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Name: "n", Fields: []string{"n"}}))
	seen := make(map[string]bool)
	insert := func(db *jay.DB, requests ...string) {
		t.Helper()
		for _, request := range requests {
			id, err := db.Put(ctx, request, json.RawMessage(`{"n":1}`), jay.InCollection("Orders"))
			must(t, err)
			if seen[id.ID] {
				t.Errorf("%s came twice", id.ID)
			}
			seen[id.ID] = true
		}
	}
	insert(db, "orders/", "orders|", "")
	must(t, db.Close())

	o.MustExist = true
	db = open(t, "orders", &o)
	insert(db, "orders/", "orders|", "")
	found, err := db.Query("Orders").Where(jay.Eq("n", 1)).Count(ctx)
	must(t, err)
	equal(t, found, int64(len(seen)))
	report, err := db.Verify(ctx, nil)
	must(t, err)
	equal(t, report.Found, int64(0))
	if err := db.Checkpoint(ctx, t.TempDir()); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("a checkpoint: %v, want ErrUsage", err)
	}
	var backup bytes.Buffer
	_, err = db.Backup(ctx, &backup, nil)
	must(t, err)

	restore := jay.RestoreOptions{CopyTag: "B", Options: &jay.Options{Engine: driver}}
	if _, err := jay.Restore(ctx, "orders", restore, bytes.NewReader(backup.Bytes())); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a restore in the place of a store: %v, want fs.ErrExist", err)
	}
	if _, err := jay.Restore(ctx, "broken", restore, bytes.NewReader(backup.Bytes()[:backup.Len()/2])); !errors.Is(err, jay.ErrBackup) {
		t.Errorf("a half backup: %v, want ErrBackup", err)
	}
	if _, err := jay.Open("broken", &o); !errors.Is(err, jay.ErrNoDatabase) {
		t.Errorf("after a restore that failed: %v, want ErrNoDatabase", err)
	}
	info, err := jay.Restore(ctx, "copy", restore, bytes.NewReader(backup.Bytes()))
	must(t, err)
	equal(t, info.Documents, int64(len(seen)))
	equal(t, info.Indexes, 1)
	must(t, db.Close())
	db = open(t, "copy", &o)
	insert(db, "orders/", "") // identities of a copy need a floor
	must(t, db.Close())

	for name, check := range map[string]func() error{
		"check": func() error { _, err := jay.VerifyDir(ctx, "orders", &o, nil); return err },
		"repair": func() error {
			_, err := jay.Repair(ctx, "orders", "repaired", &jay.Options{Engine: driver}, nil)
			return err
		},
	} {
		if err := check(); !errors.Is(err, jay.ErrUsage) || !strings.Contains(err.Error(), "orders") {
			t.Errorf("%s of a store without files: %v, want ErrUsage", name, err)
		}
	}
}

// Ensure that options of the default engine are refused beside another.
func TestOptions_Engine_Refused(t *testing.T) {
	driver := new(stores.Driver)
	for name, set := range map[string]func(*jay.Options){
		"FS":            func(o *jay.Options) { o.FS = storagetest.NewDisk() },
		"CacheBytes":    func(o *jay.Options) { o.CacheBytes = 1 << 20 },
		"MemTableBytes": func(o *jay.Options) { o.MemTableBytes = 1 << 20 },
		"GroupReadable": func(o *jay.Options) { o.GroupReadable = true },
		"Loads":         func(o *jay.Options) { o.Loads = jay.NewLoads(1) },
	} {
		o := jay.Options{Engine: driver}
		set(&o)
		if _, err := jay.Open("a", &o); !errors.Is(err, jay.ErrOption) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want ErrOption", name, err)
		}
	}
	if _, err := jay.OpenMemory(&jay.Options{Engine: driver}); !errors.Is(err, jay.ErrOption) {
		t.Errorf("in memory: %v, want ErrOption", err)
	}
	if _, err := jay.Open("a", &jay.Options{Engine: driver, MinFreeBytes: 1}); err == nil || !strings.Contains(err.Error(), "room") {
		t.Errorf("a reserve of a disk that there is not: %v", err)
	}
	open(t, "a", &jay.Options{Engine: driver}) // nothing is left open
}

// Ensure that a write that is larger than the engine takes is refused with what it may be, and that one which
// finds the store away can be made again.
func TestOptions_Engine_Limits(t *testing.T) {
	var opened storage.Engine
	driver := &stores.Driver{Limits: storage.Limits{ValueBytes: 10_000}}
	db := open(t, "a", &jay.Options{Engine: driverFunc{driver, func(e storage.Engine) { opened = e }}})
	_, err := db.Put(ctx, "big", json.RawMessage(`{"s":"`+strings.Repeat("x", 10_000)+`"}`))
	var limit *storage.LimitError
	if !errors.As(err, &limit) || !errors.Is(err, jay.ErrTooLarge) || limit.What != "value" || limit.Most != 10_000 {
		t.Errorf("a large document: %v", err)
	}
	if _, err := db.Get(ctx, "big"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("it is there: %v", err)
	}
	away := opened.(*stores.Engine)
	away.SetUnavailable(errors.New("restarting"))
	if _, err := db.Put(ctx, "small", json.RawMessage(`{}`)); !errors.Is(err, jay.ErrUnavailable) {
		t.Errorf("the store is away: %v, want ErrUnavailable", err)
	}
	away.SetUnavailable(nil)
	_, err = db.Put(ctx, "small", json.RawMessage(`{}`))
	must(t, err)
}

// driverFunc is a Driver that shows the engines that it opens.
type driverFunc struct {
	storage.Driver
	opened func(storage.Engine)
}

func (d driverFunc) Open(name string, o storage.OpenOptions) (storage.Engine, error) {
	e, err := d.Driver.Open(name, o)
	if err == nil {
		d.opened(e)
	}
	return e, err
}

// hurriedStore returns a driver whose snapshots live for a number of reads, which set changes; 0 is for ever.
func hurriedStore() (driver *stores.Driver, set func(reads int64)) {
	const age = 1_000_000
	var now, step atomic.Int64
	driver = &stores.Driver{Limits: storage.Limits{SnapshotAge: age}, Now: func() time.Time { return time.Unix(0, now.Add(step.Load())) }}
	return driver, func(reads int64) {
		step.Store(0)
		if reads > 0 {
			step.Store(age/reads + 1)
		}
	}
}

// Ensure that on an engine whose snapshots expire, wherever that happens, a call returns what it does elsewhere, or
// ErrSnapshotExpired, and never less than is there.
func TestOptions_Engine_ShortSnapshots(t *testing.T) {
	driver, set := hurriedStore()
	db := open(t, "a", &jay.Options{Engine: driver})
	for i := range 30 {
		_, err := db.Put(ctx, fmt.Sprint("orders/", i), json.RawMessage(fmt.Sprintf(`{"n":%d,"even":%v}`, i%10, i%2 == 0)), jay.InCollection("Orders"))
		must(t, err)
	}
	must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"n"}}))
	rows := func(via interface {
		RQL(text string, params map[string]any) (jay.Query[jay.Row], error)
	}, rql string) (found string, err error) {
		q, err := via.RQL(rql, nil)
		if err != nil {
			return "", err
		}
		for row, err := range q.Iter(ctx) {
			if err != nil {
				return "", err
			}
			found += string(row.JSON) + "\n"
		}
		return found, nil
	}
	calls := map[string]func() (string, error){
		"an index":    func() (string, error) { return rows(db, "from Orders where n = 3 or n > 8 select n, even") },
		"a scan":      func() (string, error) { return rows(db, "from Orders where even = true select n") },
		"an order":    func() (string, error) { return rows(db, "from Orders order by even, n desc select n, even limit 7") },
		"groups":      func() (string, error) { return rows(db, "from Orders group by even select even, count(), sum(n)") },
		"a count":     func() (string, error) { return rows(db, "from Orders where n > 4 select count()") },
		"collections": func() (string, error) { all, err := db.Collections(ctx); return fmt.Sprint(all), err },
		"a view": func() (found string, err error) {
			err = db.View(ctx, func(tx *jay.Tx) error { found, err = rows(tx, "from Orders where n < 5 select n"); return err })
			return found, err
		},
		"a transaction": func() (found string, err error) {
			err = db.Update(ctx, func(tx *jay.Tx) error {
				if found, err = rows(tx, "from Orders where n < 2 select n"); err != nil {
					return err
				}
				_, err := tx.Put(ctx, "totals/1", json.RawMessage(`{}`))
				return err
			})
			return found, err
		},
		"a check": func() (string, error) {
			r, err := db.Verify(ctx, nil)
			return fmt.Sprint(r.Found, r.Documents, r.NotCompared), err
		},
		"a backup": func() (string, error) {
			var stream bytes.Buffer
			info, err := db.Backup(ctx, &stream, jay.BackupOnce())
			return fmt.Sprint(info.Documents), err
		},
	}
	for name, call := range calls {
		set(0)
		whole, err := call()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		ended, expired := 0, 0
		for reads := int64(1); reads < 4000; reads += 1 + reads/8 {
			set(reads)
			found, err := call()
			switch {
			case errors.Is(err, jay.ErrSnapshotExpired):
				expired++
			case err != nil:
				t.Errorf("%s, %d reads: %v", name, reads, err)
			case found != whole:
				t.Fatalf("%s, %d reads: got %s, want %s", name, reads, found, whole)
			default:
				ended++
			}
		}
		if ended == 0 || expired == 0 {
			t.Errorf("%s: %d times it ended, %d times its snapshot did: the test does not test it", name, ended, expired)
		}
	}
	set(0)
}

// Ensure that an index is built on such an engine, though one snapshot does not last, and that a build which comes to no document
// ends with the error and goes on later; and that a change feed reads on.
func TestOptions_Engine_ShortSnapshots_Build(t *testing.T) {
	driver, set := hurriedStore()
	db := open(t, "a", &jay.Options{Engine: driver})
	for i := range 300 {
		_, err := db.Put(ctx, fmt.Sprint("orders/", i), json.RawMessage(fmt.Sprintf(`{"n":%d}`, i%10)), jay.InCollection("Orders"))
		must(t, err)
	}
	set(40)
	must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"n"}}))
	set(1)
	if err := db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"m"}}); !errors.Is(err, jay.ErrSnapshotExpired) {
		t.Errorf("got %v, want ErrSnapshotExpired", err)
	}
	set(0)
	must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"m"}}))
	must(t, checks.Indexes(db))

	set(200)
	n := 0
	for change, err := range db.Changes(ctx, "") {
		must(t, err)
		if n++; change.ID == "orders/299" {
			break
		}
	}
	if n < 300 {
		t.Errorf("%d changes", n)
	}
	set(0)
}
