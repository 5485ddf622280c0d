package standby_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/standby"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/storagetest"
)

var (
	ctx  = context.Background()
	must = jaytest.Must
	put  = jaytest.Put
)

// copyOf opens a standby on a disk in memory, which pauses for a moment only.
func copyOf(t testing.TB, disk *storagetest.Disk, source standby.Source) *standby.Standby {
	t.Helper()
	s, err := standby.Open("copy", source, standby.Options{Database: &jay.Options{FS: disk}, Retry: 100 * time.Millisecond})
	must(t, err)
	return s
}

// read returns the database of a standby.
func read(t testing.TB, s *standby.Standby) *jay.DB {
	t.Helper()
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	db, err := s.DB(within)
	must(t, err)
	return db
}

// keysOf returns all keys of a database, but for those that a standby has for itself.
func keysOf(t testing.TB, db *jay.DB) string {
	t.Helper()
	var out strings.Builder
	for line := range strings.Lines(jaytest.Keys(t, db, nil, nil)) {
		if !strings.HasPrefix(line, "m"+format.StandbyName) && !strings.HasPrefix(line, "m"+format.DefinitionsName) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// await waits until the standby has the keys of the source, which is idle.
func await(t testing.TB, s *standby.Standby, source *jay.DB) {
	t.Helper()
	must(t, source.Flush(ctx))
	want, got := keysOf(t, source), ""
	for more := jaytest.Patience(); more(got == want); {
		db := read(t, s)
		err := parts.Of(db).Inside(func() error { got = keysOf(t, db); return nil })
		if err != nil && !errors.Is(err, jay.ErrClosed) { // there is another one
			t.Fatal(err)
		}
	}
	if got != want {
		t.Fatalf("the standby differs: %v\n%s", s.Status(), firstDifference(got, want))
	}
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("got  %.300s\nwant %.300s", a[i], b[i])
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(a), len(b))
}

// Ensure that a standby has what its source has, from the first copy on, as it changes, and after either was closed.
func TestStandby(t *testing.T) {
	disk, copyDisk := storagetest.NewDisk(), storagetest.NewDisk()
	db := jaytest.OnDisk(t, disk, jay.Options{})
	put(t, db, "users/1", `{"name":"Ada","@metadata":{"@collection":"Users"}}`)
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "name", Fields: []string{"name"}}))

	s := copyOf(t, copyDisk, standby.From(db))
	await(t, s, db)
	reader := read(t, s)
	put(t, db, "users/2", `{"name":"Bob","@metadata":{"@collection":"Users"}}`)
	jaytest.Attach(t, db, "users/2", "photo", []byte("jpeg"))
	must(t, db.Delete(ctx, "users/1"))
	await(t, s, db)
	if _, err := reader.Get(ctx, "users/1"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("a document that was deleted: %v", err)
	}
	jaytest.Equal(t, jaytest.Body(t, reader, "users/2"), `{"name":"Bob"}`)
	if rows := jaytest.Rows(t, reader, `from Users where name = 'Bob'`); len(rows) != 1 {
		t.Errorf("got the rows %q", rows)
	}
	jaytest.Verify(t, reader)
	_, err := reader.Put(ctx, "users/3", json.RawMessage(`{}`))
	if !errors.Is(err, jay.ErrStandby) || !errors.Is(err, jay.ErrReadOnly) {
		t.Errorf("a write: %v", err)
	}
	if status := s.Status(); status.Copies != 1 || !status.Connected || status.Moment.IsZero() {
		t.Errorf("got %+v", status)
	}

	// An index that is declared later answers, too.
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "age", Fields: []string{"age"}}))
	put(t, db, "users/4", `{"age":4,"@metadata":{"@collection":"Users"}}`)
	await(t, s, db)
	if rows := jaytest.Rows(t, reader, `from Users where age = 4`); len(rows) != 1 {
		t.Errorf("got the rows %q", rows)
	}

	// A standby that comes back goes on without a comparison.
	must(t, s.Close())
	put(t, db, "users/5", `{}`)
	s = copyOf(t, copyDisk, standby.From(db))
	await(t, s, db)
	if status := s.Status(); status.Copies != 0 {
		t.Errorf("got %+v", status)
	}

	// A source that comes back is compared.
	must(t, s.Close())
	jaytest.Close(t, db)
	db = jaytest.OnDisk(t, disk, jay.Options{})
	must(t, db.Delete(ctx, "users/5"))
	put(t, db, "users/6", `{}`)
	s = copyOf(t, copyDisk, standby.From(db))
	await(t, s, db)
	awaitStatus(t, s, "a source that comes back", func(status standby.Status) bool { return status.Copies == 1 }) // counted after the keys are there
	must(t, s.Close())
	jaytest.Close(t, db)

	// Nobody else writes to it.
	if _, err := jay.Open("copy", &jay.Options{FS: copyDisk}); !errors.Is(err, jay.ErrStandby) {
		t.Errorf("open: %v", err)
	}
	alone, err := jay.Open("copy", &jay.Options{FS: copyDisk, ReadOnly: true})
	must(t, err)
	jaytest.Equal(t, jaytest.Body(t, alone, "users/6"), `{}`)
	must(t, alone.Close())
}

// Ensure that wrong options, and directories that are no standby's, are refused.
func TestOpen_Refused(t *testing.T) {
	db := jaytest.Memory(t, nil)
	for name, o := range map[string]standby.Options{
		"Retry":         {Retry: -1},
		"ReadOnly":      {Database: &jay.Options{ReadOnly: true}},
		"NodeTag":       {Database: &jay.Options{NodeTag: "B"}},
		"CaseSensitive": {Database: &jay.Options{CaseSensitive: true}},
	} {
		if _, err := standby.Open("copy", standby.From(db), o); !errors.Is(err, jay.ErrOption) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := standby.Open("", standby.From(db), standby.Options{}); !errors.Is(err, jay.ErrOption) {
		t.Errorf("no directory: %v", err)
	}
	disk := storagetest.NewDisk()
	other := jaytest.OnDisk(t, disk, jay.Options{})
	put(t, other, "users/1", `{}`)
	jaytest.Close(t, other)
	if _, err := standby.Open("db", standby.From(db), standby.Options{Database: &jay.Options{FS: disk}}); !errors.Is(err, jay.ErrStandby) {
		t.Errorf("a database: %v", err)
	}
	jaytest.Close(t, jaytest.OnDisk(t, disk, jay.Options{}))
}

// Ensure that a standby does not take in another database, and that the reason is said.
func TestStandby_AnotherDatabase(t *testing.T) {
	db, other := jaytest.Memory(t, nil), jaytest.Memory(t, nil)
	put(t, db, "users/1", `{}`)
	disk := standbyOf(t, db)
	s := copyOf(t, disk, standby.From(other))
	if err := s.Wait(ctx); !errors.Is(err, jay.ErrStandby) || !strings.Contains(err.Error(), "does not descend") {
		t.Errorf("got %v", err)
	}
	jaytest.Equal(t, jaytest.Body(t, read(t, s), "users/1"), `{}`)
	must(t, s.Close())
	if err := s.Wait(ctx); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := s.DB(ctx); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("the database after Close: %v", err)
	}
}

// Ensure that a standby of a standby has what the first source has, with the moment of that.
func TestStandby_Chain(t *testing.T) {
	db := jaytest.Memory(t, nil)
	put(t, db, "users/1", `{}`)
	first := copyOf(t, storagetest.NewDisk(), standby.From(db))
	second := copyOf(t, storagetest.NewDisk(), standby.From(read(t, first)))
	await(t, second, db)
	put(t, db, "users/2", `{}`)
	must(t, db.Delete(ctx, "users/1"))
	await(t, second, db)
	if a, b := second.Status().Moment, first.Status().Moment; a.After(b) {
		t.Errorf("the second standby has the moment %v, and the first %v", a, b)
	}
	must(t, second.Close())
	must(t, first.Close())
}

// Ensure that a backup of a standby restores to a database that is none.
func TestStandby_Backup(t *testing.T) {
	db := jaytest.Memory(t, nil)
	put(t, db, "users/1", `{}`)
	s := copyOf(t, storagetest.NewDisk(), standby.From(db))
	_, stream := jaytest.BackUp(t, read(t, s))
	must(t, s.Close())
	disk := storagetest.NewDisk()
	_, err := jay.Restore(ctx, "db", jay.RestoreOptions{CopyTag: "B", Options: &jay.Options{FS: disk}}, bytes.NewReader(stream))
	must(t, err)
	restored := jaytest.OnDisk(t, disk, jay.Options{})
	put(t, restored, "users/2", `{}`)
	jaytest.Close(t, restored)
}

// Ensure that an idle source pays nothing for a standby: no commit and no sync.
func TestStandby_Idle(t *testing.T) {
	disk := storagetest.NewDisk()
	db := jaytest.OnDisk(t, disk, jay.Options{})
	put(t, db, "users/1", `{}`)
	s := copyOf(t, storagetest.NewDisk(), standby.From(db))
	await(t, s, db)
	before := s.Status().Moment
	syncs := disk.Syncs()
	for more := jaytest.Patience(); more(s.Status().Moment.Sub(before) > time.Second); {
	}
	if got := disk.Syncs(); got != syncs {
		t.Errorf("%d syncs while nothing was written", got-syncs)
	}
	must(t, s.Close())
	jaytest.Close(t, db)
}

// Ensure that the text of an error of a source behind an address is said, and cut when it is long.
func TestURL(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "not today"+strings.Repeat("!", 10_000), http.StatusTeapot)
	}))
	defer server.Close()
	s := copyOf(t, storagetest.NewDisk(), standby.URL(nil, server.URL))
	var status standby.Status
	for more := jaytest.Patience(); more(status.Err != nil); {
		status = s.Status()
	}
	if !strings.Contains(status.Error, "not today!") || len(status.Error) > 5000 || status.Connected || status.Readable {
		t.Errorf("got %+v", status)
	}
	must(t, s.Close())
}

// Ensure that a comparison in which nothing differs goes on without a pause: it takes less than one for each block that is read.
func TestStandby_ComparesWithoutPauses(t *testing.T) {
	disk, copyDisk := storagetest.NewDisk(), storagetest.NewDisk()
	db := jaytest.OnDisk(t, disk, jay.Options{})
	for n := range 12 {
		put(t, db, fmt.Sprint("large/", n), fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 1<<20)))
	}
	s := copyOf(t, copyDisk, standby.From(db))
	await(t, s, db)
	must(t, s.Close())
	jaytest.Close(t, db)
	db = jaytest.OnDisk(t, disk, jay.Options{})
	began := time.Now()
	s = copyOf(t, copyDisk, standby.From(db))
	for s.Status().Copies == 0 && time.Since(began) < 10*time.Second { // with a pause for each of 12 MiB it is longer
		time.Sleep(time.Millisecond)
	}
	jaytest.Equal(t, s.Status().Copies, 1)
	must(t, s.Close())
	jaytest.Close(t, db)
}

// cutting is a source whose streams can be cut off.
type cutting struct {
	standby.Source

	mu      sync.Mutex
	streams int
	last    io.Closer
}

// Stream implements standby.Source.
func (c *cutting) Stream(ctx context.Context, request []byte) (io.ReadCloser, error) {
	in, err := c.Source.Stream(ctx, request)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams, c.last = c.streams+1, in
	return in, err
}

// cut cuts the last stream off, and waits for the next one.
func (c *cutting) cut(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	before := c.streams
	must(t, c.last.Close())
	c.mu.Unlock()
	for more := jaytest.Patience(); more(c.count() > before); {
	}
	if c.count() == before {
		t.Fatal("the standby does not come back")
	}
}

func (c *cutting) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams
}

// Ensure that connections to an idle source cost the standby no commit and no sync, and that a feature which the source has come to use meanwhile still
// raises its format.
func TestStandby_ConnectsWithoutCommits(t *testing.T) {
	db := jaytest.Memory(t, nil)
	put(t, db, "users/1", `{}`)
	source, disk := &cutting{Source: standby.From(db)}, storagetest.NewDisk()
	s := copyOf(t, disk, source)
	await(t, s, db)
	before := disk.Syncs()
	for range 5 {
		source.cut(t)
	}
	moment := s.Status().Moment
	awaitStatus(t, s, "the last connection", func(s standby.Status) bool { return s.Connected && s.Moment.After(moment) })
	if got := disk.Syncs() - before; got != 0 {
		t.Errorf("5 connections cost %d syncs", got)
	}
	must(t, parts.Of(db).Env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		tx.RequireFeature(storage.FeatureUTC)
		return nil
	}))
	source.cut(t)
	features := func() []storage.Feature { return parts.Of(read(t, s)).Env.Engine.Format().Features }
	for more := jaytest.Patience(); more(slices.Contains(features(), storage.FeatureUTC)); {
	}
	if got := features(); !slices.Contains(got, storage.FeatureUTC) || !slices.Contains(got, storage.FeatureStandby) {
		t.Errorf("got %v", got)
	}
	must(t, s.Close())
}
