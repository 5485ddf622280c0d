package jay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/jaydb/jay"
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
