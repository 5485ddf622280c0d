// Package jaytest has what tests of several packages need to open, fill and
// read a database in one line. Whatever fails ends the test.
package jaytest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/jaytest"
	"github.com/jaydb/jay/keys"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/memory"
	"github.com/jaydb/jay/storage/storagetest"
)

var ctx = context.Background()

// Memory opens a database in memory and closes it at the end of the test. With JAY_ENGINE=memory it
// is in a store of package storage/memory, and with JAY_ENGINE=shared in one that others may write to: make engine runs tests so. With
// JAY_ENGINE=encrypted it is in encrypted files, on a disk in memory: see make encrypted. Another value names one of Engines.
func Memory(t testing.TB, opts *jay.Options) *jay.DB {
	t.Helper()
	db, err := OpenMemory(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		Verify(t, db)
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// OpenMemory is Memory for a test that closes the database itself, or has no testing.TB.
func OpenMemory(opts *jay.Options) (*jay.DB, error) {
	if os.Getenv("JAY_ENGINE") == "encrypted" {
		return openEncrypted(opts)
	}
	driver, err := engine()
	if err != nil {
		return nil, err
	}
	if driver == nil {
		return jay.OpenMemory(opts)
	}
	var o jay.Options
	if opts != nil {
		o = *opts
	}
	o.Engine = driver
	o.CacheBytes, o.MemTableBytes, o.Loads = 0, 0, nil      // of Pebble
	o.DocumentCacheBytes = cmp.Or(o.DocumentCacheBytes, -1) // documents are remembered only where a test is about that
	if os.Getenv("JAY_ENGINE") != "memory" {
		o.DocumentCacheBytes = -1
	}
	db, err := jay.Open("memory", &o)
	return db, errors.Join(err, drop(driver))
}

// dropper is a driver whose stores stay when they are closed, unless they are dropped.
type dropper interface {
	// Drop removes the stores that the driver has opened, each as soon as no engine has it open.
	Drop() error
}

// drop calls Drop, if a driver has it.
func drop(driver storage.Driver) error {
	if d, has := driver.(dropper); has {
		return d.Drop()
	}
	return nil
}

// ownKeys are those of openEncrypted.
var ownKeys = keys.Of(jay.EncryptionKey{ID: "tests", Secret: bytes.Repeat([]byte("k"), keys.SecretBytes)})

// ReadBackup returns a reader of a backup, which may be one of a database of Memory with JAY_ENGINE=encrypted.
func ReadBackup(stream []byte) io.Reader {
	return jay.EncryptedBackup(bytes.NewReader(stream), ownKeys)
}

// openEncrypted opens an encrypted database on a new disk in memory. A memtable of 1 MiB makes even small tests write tables.
func openEncrypted(opts *jay.Options) (*jay.DB, error) {
	var o jay.Options
	if opts != nil {
		o = *opts
	}
	if o.FS != nil || o.Engine != nil {
		return jay.OpenMemory(opts) // which refuses them
	}
	o.FS, o.EncryptionKeys = storagetest.NewDisk(), ownKeys
	o.MemTableBytes = cmp.Or(o.MemTableBytes, 1<<20)
	return jay.Open("memory", &o)
}

// Engines are further engines for JAY_ENGINE, of stores that several processes have open: a test program that links one adds it here. Each
// call returns a driver with stores of its own.
var Engines = map[string]func() storage.Driver{
	"shared": func() storage.Driver { return &memory.Driver{Shared: true} },
}

// engine returns the driver that JAY_ENGINE names, or nil for Pebble's.
func engine() (storage.Driver, error) {
	switch name := os.Getenv("JAY_ENGINE"); name {
	case "", "encrypted":
		return nil, nil
	case "memory":
		return new(memory.Driver), nil
	default:
		driver := Engines[name]
		if driver == nil {
			return nil, fmt.Errorf("JAY_ENGINE is %q, and this test program has no such engine", name)
		}
		return driver(), nil
	}
}

// SharedDriver returns a driver of stores that several databases have open at once: in memory, or of the engine that JAY_ENGINE
// names.
func SharedDriver(t testing.TB) storage.Driver {
	t.Helper()
	if name := os.Getenv("JAY_ENGINE"); name == "" || name == "memory" || name == "encrypted" {
		return Engines["shared"]()
	}
	driver, err := engine()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := drop(driver); err != nil {
			t.Errorf("drop the stores: %v", err)
		}
	})
	return driver
}

// Place is where a test has a database that it opens more than once: a disk, whose power it can cut, or a store of the engine that
// JAY_ENGINE names, which loses nothing.
type Place struct {
	disk   *storagetest.Disk
	driver storage.Driver // nil for the disk
}

// NewPlace returns a Place without a database. The stores of an engine are gone at the end of the test.
func NewPlace(t testing.TB) *Place {
	t.Helper()
	switch os.Getenv("JAY_ENGINE") {
	case "", "encrypted":
		return &Place{disk: storagetest.NewDisk()}
	case "memory": // a store of one's own, which is closed before it is opened again
		return &Place{driver: new(memory.Driver)}
	}
	return &Place{driver: SharedDriver(t)}
}

// Open opens the database of a place, and makes it if there is none. Options of the files are left out where there are none.
func (p *Place) Open(o jay.Options) (*jay.DB, error) {
	if p.driver == nil {
		o.FS = p.disk
		return jay.Open("db", &o)
	}
	o.Engine = p.driver
	o.CacheBytes, o.MemTableBytes, o.Loads = 0, 0, nil
	o.DocumentCacheBytes = -1
	return jay.Open("db", &o)
}

// Shared reports whether others may write to the store, so that calls return ErrShared.
func (p *Place) Shared() bool {
	own, is := p.driver.(*memory.Driver)
	return p.driver != nil && (!is || own.Shared)
}

// Crash returns the place as a loss of power now would leave it, with a part of what was not synced: see storagetest.Disk.Crash. That of an engine is the
// same place.
func (p *Place) Crash(percent int, random *rand.Rand) *Place {
	if p.driver != nil {
		return p
	}
	return &Place{disk: p.disk.Crash(percent, random)}
}

// Open opens the database in dir.
func Open(t testing.TB, dir string, opts *jay.Options) *jay.DB {
	t.Helper()
	db, err := jay.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// OnDisk opens the database on a disk that can fail and lose its power.
func OnDisk(t testing.TB, disk *storagetest.Disk, opts jay.Options) *jay.DB {
	t.Helper()
	opts.FS = disk
	return Open(t, "db", &opts)
}

// Verify checks a database, whose disk may have failed, for damage.
func Verify(t interface {
	Helper()
	Errorf(format string, args ...any)
}, db *jay.DB) {
	t.Helper()
	r, _ := db.Verify(ctx, nil) // what the disk refuses to read cannot be checked
	for _, d := range r.Damages[:min(5, len(r.Damages))] {
		t.Errorf("verify: %v, key %q", d, d.Key)
	}
	if n := int(r.Found) - 5; n > 0 {
		t.Errorf("verify: %d damages more", n)
	}
}

// Close closes a database, in which there must be no damage.
func Close(t testing.TB, db *jay.DB) {
	t.Helper()
	Verify(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// Put stores a document that must be accepted.
func Put(t testing.TB, db *jay.DB, id, body string, opts ...jay.WriteOption) jay.Metadata {
	t.Helper()
	m, err := db.Put(ctx, id, json.RawMessage(body), opts...)
	if err != nil {
		t.Fatalf("put %q: %v", id, err)
	}
	return m
}

// Store stores an empty document under a HiLo ID, and returns the ID.
func Store(t testing.TB, db *jay.DB, collection string) string {
	t.Helper()
	m, err := db.Store(ctx, collection, json.RawMessage(`{}`))
	if err != nil {
		t.Fatalf("store into %q: %v", collection, err)
	}
	return m.ID
}

// Body returns the document's body, or "absent".
func Body(t testing.TB, db *jay.DB, id string) string {
	t.Helper()
	doc, err := db.Get(ctx, id)
	if errors.Is(err, jay.ErrNotFound) {
		return "absent"
	}
	if err != nil {
		t.Fatalf("get %q: %v", id, err)
	}
	return string(doc.Body())
}

// CollectionOf returns the typed collection of T.
func CollectionOf[T any](t testing.TB, db *jay.DB, opts ...jay.CollectionOption) *jay.Collection[T] {
	t.Helper()
	c, err := jay.CollectionOf[T](db, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// PatchIn patches a document where the test says: in a "batch", a
// "transaction", or directly in the "database". A batch has no result to return.
func PatchIn(where string, db *jay.DB, id string, opts []jay.PatchOption) (r jay.PatchResult, err error) {
	switch where {
	case "batch":
		var b jay.Batch
		b.Patch(id, opts...)
		_, err = db.Apply(ctx, &b)
	case "transaction":
		err = db.Update(ctx, func(tx *jay.Tx) error {
			r, err = tx.Patch(ctx, id, opts...)
			return err
		})
	default:
		r, err = db.Patch(ctx, id, opts...)
	}
	return r, err
}

// FinishIndexTasks waits until no index is being built or dropped any more.
func FinishIndexTasks(t testing.TB, db *jay.DB) {
	t.Helper()
	infos, err := db.Indexes(ctx, "")
	Must(t, err)
	for _, info := range infos {
		switch info.State {
		case jay.IndexBuilding:
			if err := db.EnsureIndex(ctx, info.Collection, info.Index); err != nil && !errors.Is(err, jay.ErrUnique) {
				t.Fatalf("resumed build of %q: %v", info.Name, err)
			}
		case jay.IndexDropping:
			if err := db.DropIndex(ctx, info.Collection, info.Name); err != nil && !errors.Is(err, jay.ErrIndex) {
				t.Fatalf("resumed drop of %q: %v", info.Name, err)
			}
		}
	}
}

// Must ends the test at an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Equal compares two values.
func Equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Array returns a JSON array of n times the element.
func Array(element string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

// NumberAfter returns the number of an ID that begins with prefix, or -1.
func NumberAfter(id, prefix string) int64 {
	text, _ := strings.CutPrefix(id, prefix)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// Clock is the clock of the public package.
type Clock = jaytest.Clock

// NewClock returns a clock that stands still at noon of 21 November 2026, until Advance.
func NewClock() *Clock {
	c := jaytest.NewClock()
	c.Set(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	return c
}

// Goroutines is the number of goroutines of Concurrently.
const Goroutines = 16

// Concurrently runs fn on several goroutines, each with a generator of its own.
// The seed is printed if the test fails.
func Concurrently(t testing.TB, fn func(g int, random *rand.Rand)) {
	t.Helper()
	seed := rand.Uint64()
	var wg sync.WaitGroup
	for g := range Goroutines {
		wg.Go(func() { fn(g, rand.New(rand.NewPCG(seed, uint64(g)))) })
	}
	wg.Wait()
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

// HangGuard is how long Within and Await wait for what would otherwise hang the
// test.
const HangGuard = time.Minute

// Patience is for tests whose rounds depend on chance, such as goroutines that
// meet: they make more rounds until what they look for has happened, however slow
// the machine. The function that it returns reports whether to go on: as long as
// done is false, for HangGuard at most.
//
//	more := jaytest.Patience()
//	for round := 0; round < 20 || more(met > 0); round++ {
func Patience() (more func(done bool) bool) {
	begun := time.Now()
	return func(done bool) bool { return !done && time.Since(begun) < HangGuard }
}

// Allocs returns how often fn allocates, as testing.AllocsPerRun, but the least of
// a few measurements, or the first that is not above enough: goroutines of the
// database that run beside fn are counted, too.
func Allocs(runs int, enough float64, fn func()) float64 {
	least := testing.AllocsPerRun(runs, fn)
	for range 9 {
		if least <= enough {
			break
		}
		least = min(least, testing.AllocsPerRun(runs, fn))
	}
	return least
}

// CollectSeldom makes the garbage collector run less often, unless GOGC says how often: tests
// allocate much and keep little, so that it takes a fourth of their time. It is for the
// TestMain of packages that do not measure memory.
func CollectSeldom() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(600)
	}
}

// Parallel makes at least n of the tests that call t.Parallel run at once, unless the flag
// -parallel says how many. It is for the TestMain of packages whose tests mostly wait.
func Parallel(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given && n > runtime.GOMAXPROCS(0) {
		if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
			panic(err)
		}
	}
}

// Within returns the answer, which must come before HangGuard.
func Within(t testing.TB, answer <-chan error, who string) error {
	t.Helper()
	select {
	case err := <-answer:
		return err
	case <-time.After(HangGuard):
		t.Fatalf("%s has no answer after %s", who, HangGuard)
		return nil
	}
}

// Await waits until done is closed, which must happen before HangGuard.
func Await(t testing.TB, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(HangGuard):
		t.Fatalf("%s: nothing after %s", what, HangGuard)
	}
}

// Finished returns a channel that is closed when the group is done.
func Finished(group *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	return done
}
