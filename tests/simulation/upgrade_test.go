package simulation_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/keys"
	"github.com/jaydb/jay/storage/storagetest"
)

// fixtures are the databases of older formats, and those that use what raises the format. A standby is not opened to be
// written: package standby has the test of that.
var fixtures = func() []string {
	dirs, err := filepath.Glob(filepath.Join("..", "..", "testdata", "format*", "*"))
	if err != nil || len(dirs) < 5 {
		panic(fmt.Sprintf("there are %q, and not a database of each format: %v", dirs, err))
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return filepath.Base(dir) == "standby" })
}()

// load returns a disk with a fixture on it.
func (w *world) load(fixture string) *storagetest.Disk {
	disk := storagetest.NewDisk().Repeatable()
	w.must(disk.MkdirAll(dir, 0o755))
	entries, err := os.ReadDir(fixture)
	w.must(err)
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(fixture, entry.Name()))
		w.must(err)
		f, err := disk.Create(disk.PathJoin(dir, entry.Name()), vfs.WriteCategoryUnspecified)
		w.must(err)
		_, err = f.Write(text)
		w.must(err)
		w.must(f.Sync())
		w.must(f.Close())
	}
	for _, name := range []string{dir, ""} {
		d, err := disk.OpenDir(name)
		w.must(err)
		w.must(d.Sync())
		w.must(d.Close())
	}
	return disk
}

// upgrade opens a database of an older format on a disk of its own, whose power goes meanwhile, and opens what is left.
func upgrade(w *world) {
	fixture := w.pick(fixtures)
	want := w.upgraded(fixture, w.load(fixture))
	disk := w.load(fixture)
	cut := disk.CutPower(w.intn(6), w.intn(101), w.pieces())
	db, err := jay.Open(dir, w.upgradeOptions(fixture, disk))
	if err != nil && !cut.Happened() {
		w.fail("upgrade of %s: %v", fixture, err)
	}
	w.rest()
	found := cut.Disk()
	if found == nil {
		found = disk.Crash(w.intn(101), rand.New(rand.NewPCG(w.rand.Uint64(), 4)))
	}
	if db != nil {
		_ = db.Close()
	}
	w.figures.crashes++
	if got := w.upgraded(fixture, found); got != want {
		w.fail("the upgrade of %s, cut off, has left\n%s\nwant\n%s", fixture, got, want)
	}
	fmt.Fprintf(w.log, "%s. ", filepath.Base(filepath.Dir(fixture)))
}

func (w *world) upgradeOptions(fixture string, disk *storagetest.Disk) *jay.Options {
	o := &jay.Options{FS: disk, Now: w.now, Rand: w.ids, MustExist: true, MemTableBytes: w.settings.memory, CacheBytes: 1 << 20}
	if filepath.Base(fixture) == "encrypted" {
		o.EncryptionKeys = keys.Of(jay.EncryptionKey{ID: "fixture", Secret: bytes.Repeat([]byte{0x5a}, 32)})
	}
	return o
}

// upgraded opens and closes a database, and returns its documents.
func (w *world) upgraded(fixture string, disk *storagetest.Disk) string {
	db, err := jay.Open(dir, w.upgradeOptions(fixture, disk))
	w.must(err)
	w.verify(db)
	var all strings.Builder
	for d, err := range db.Documents(ctx, jay.Scan{}) {
		w.must(err)
		text, err := d.MarshalJSON()
		w.must(err)
		fmt.Fprintf(&all, "%s\n", text)
	}
	w.must(db.Close())
	return all.String()
}
