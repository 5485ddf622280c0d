package disk_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/storagetest"
)

// image is what a directory consists of: the bytes of each file.
type image map[string][]byte

// imageOf reads the directory "db" of a disk.
func imageOf(t *testing.T, disk *storagetest.Disk) image {
	t.Helper()
	names, err := disk.List("db")
	if err != nil {
		t.Fatal(err)
	}
	files := make(image)
	for _, name := range names {
		f, err := disk.Open("db/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if files[name], err = io.ReadAll(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	return files
}

// disk returns a disk with the files.
func (m image) disk(t *testing.T) *storagetest.Disk {
	t.Helper()
	disk := storagetest.NewDisk()
	if err := disk.MkdirAll("db", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range m {
		f, err := disk.Create("db/"+name, "test")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(slices.Clone(text)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := disk.OpenDir("db")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		t.Fatal(err)
	}
	return disk
}

// with returns a copy with one file replaced; nil removes it.
func (m image) with(name string, text []byte) image {
	c := maps.Clone(m)
	if text == nil {
		delete(c, name)
	} else {
		c[name] = text
	}
	return c
}

// named returns the names of the files that contain part, sorted.
func (m image) named(part string) []string {
	var names []string
	for name := range m {
		if strings.Contains(name, part) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// flipped returns text with a bit of a byte flipped.
func flipped(text []byte, at int) []byte {
	c := slices.Clone(text)
	c[at] ^= 1 << (at % 8)
	return c
}

// contents says everything that a database holds: documents with metadata,
// the answers of an index, counters.
func contentsOf(t *testing.T, disk *storagetest.Disk) (string, error) {
	opts := jay.Options{MustExist: true, CacheBytes: 1 << 20, MemTableBytes: 256 << 10}
	opts.FS = disk
	db, err := jay.Open("db", &opts)
	if err != nil {
		return "", err
	}
	text, err := databaseText(db)
	return text, errors.Join(err, db.Close())
}

func databaseText(db *jay.DB) (string, error) {
	var b strings.Builder
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		if err != nil {
			return "", err
		}
		text, err := doc.MarshalJSON()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s\n", text)
	}
	found, err := db.Query("from Users where Age >= 0 order by Age").All(ctx)
	if err != nil {
		return "", err
	}
	for _, doc := range found {
		fmt.Fprintf(&b, "%s\n", doc.Metadata().ID)
	}
	stats, err := db.Stats(ctx)
	for ; err == nil && stats.Counting; stats, err = db.Stats(ctx) { // behind damage that was accepted
		time.Sleep(time.Millisecond)
	}
	fmt.Fprintf(&b, "%v %s %+v\n", stats.Collections, stats.NodeTag, stats.Counters)
	return b.String(), err
}

// images are the ways that a database of some tables and some commits in the log
// is left: closed, by a process that was killed, and by a machine that lost its
// power. older are earlier images of it.
func images(t *testing.T) (left map[string]image, older []image) {
	t.Helper()
	disk := storagetest.NewDisk()
	copied := func(percent int) image { return imageOf(t, disk.Crash(percent, rand.New(rand.NewPCG(1, 1)))) }
	opts := jay.Options{MemTableBytes: 256 << 10, CacheBytes: 1 << 20}
	for round := range 3 {
		db := onDisk(t, disk, opts)
		if err := db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Age"}}); err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			put(t, db, fmt.Sprintf("users/%d-%d", round, i), fmt.Sprintf(`{"Age":%d,"Text":"%s"}`, i, strings.Repeat("x", 300)), jay.InCollection("Users"))
			if i%10 == 5 {
				older = append(older, copied(100))
			}
		}
		put(t, db, "users|", `{"Age":7}`, jay.InCollection("Users"))
		if round == 2 {
			killed, lost := copied(100), copied(0)
			left = map[string]image{
				"killed":             killed,
				"power lost":         lost.with("JAY.control", killed["JAY.control"]), // which is synced within a second
				"power lost at once": lost,
			}
		}
		closeDB(t, db)
		if round < 2 {
			older = append(older, copied(0))
		}
	}
	left["closed"] = copied(0)
	return left, older
}

// damageOutcomes counts what became of damaged databases.
type damageOutcomes struct{ harmless, detected, silent, untyped int }

// judge opens a damaged image and notes what became of it.
func (o *damageOutcomes) judge(t *testing.T, damaged image, want, what string) {
	t.Helper()
	disk := damaged.disk(t)
	got, err := contentsOf(t, disk)
	var damage *jay.DamageError
	switch {
	case err == nil && got == want:
		o.harmless++
	case err == nil:
		o.silent++
		if o.silent <= 10 {
			t.Errorf("%s: silent: %d bytes of contents, want %d", what, len(got), len(want))
		}
	case errors.As(err, &damage):
		o.detected++
		if after := imageOf(t, disk); !maps.EqualFunc(damaged, after.with("LOCK", damaged["LOCK"]), slices.Equal[[]byte]) {
			t.Errorf("%s: %v, and the directory was changed", what, err)
		}
	case errors.Is(err, jay.ErrNotDatabase), errors.Is(err, jay.ErrNewerFormat), errors.Is(err, jay.ErrCorrupt), errors.Is(err, storage.ErrCorrupt):
		o.detected++
	default:
		o.untyped++
		if o.untyped <= 10 {
			t.Errorf("%s: not typed: %v", what, err)
		}
	}
}

// lastCommit is how many bytes of the log's end a machine that lost its power may lose to
// damage in silence: what was committed within the last second, and there only
// the last three syncs, as each later one proves that those before were on disk.
const lastCommit = 3 * 700

// Ensure that no flipped bit of any file is silent: the database is whole, or the
// error is one of its kind and nothing in the directory has changed. With
// JAY_DAMAGE=all it is every byte, else every 41st of larger files.
func TestDamage_FlippedBits(t *testing.T) {
	sample.OneGoroutine(t)
	left, _ := images(t)
	all, today := os.Getenv("JAY_DAMAGE") == "all", sample.Of(t, sample.Fortnight)
	for how, whole := range left {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			want, err := contentsOf(t, whole.disk(t))
			if err != nil {
				t.Fatal(err)
			}
			logs := whole.named(".log")
			for _, name := range slices.Sorted(maps.Keys(whole)) {
				size := len(whole[name])
				if how == "power lost at once" && name == logs[len(logs)-1] {
					size -= lastCommit
				}
				stride := 1
				if size > 1000 && !all {
					stride = 41
				}
				var o damageOutcomes
				for at := 0; at < size; at += stride {
					if name == "JAY.control" && whole[name][at] == 0 && at%41 != 0 {
						continue // the rest of a slot
					}
					if !all && !today.Has(at/stride) {
						continue
					}
					o.judge(t, whole.with(name, flipped(whole[name], at)), want, fmt.Sprintf("%s, byte %d", name, at))
				}
				t.Logf("%-40s %6d bytes: %+v", name, len(whole[name]), o)
			}
		})
	}
}

// Ensure that no file that is missing, empty, cut, zeroed in part, or an older
// copy of itself, is silent.
func TestDamage_Files(t *testing.T) {
	sample.OneGoroutine(t)
	left, older := images(t)
	delete(left, "power lost at once") // a log that ends there looks like one after a crash
	today := sample.Of(t, 3)
	for how, whole := range left {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			want, err := contentsOf(t, whole.disk(t))
			if err != nil {
				t.Fatal(err)
			}
			var o damageOutcomes
			cases := 0
			judge := func(damaged image, what string) {
				if cases++; today.Has(cases) {
					o.judge(t, damaged, want, what)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(whole)) {
				text := whole[name]
				cases = 0
				judge(whole.with(name, nil), name+" is missing")
				if strings.HasPrefix(name, "marker.manifest.") {
					for i, old := range older {
						damaged := whole.with(name, nil).with(old.named("marker.manifest.")[0], []byte{})
						judge(damaged, fmt.Sprintf("the older marker %d", i))
					}
				}
				if len(text) == 0 {
					continue
				}
				judge(whole.with(name, []byte{}), name+" is empty")
				live := len(text)
				for _, size := range []int{live - 1, live / 2, live / 3, 1} {
					if size > 0 {
						judge(whole.with(name, slices.Clone(text[:size])), fmt.Sprintf("%s is cut to %d bytes", name, size))
					}
				}
				for at := 0; at < live; at += max(512, live/16) {
					zeroed := slices.Clone(text)
					clear(zeroed[at:min(at+512, live)])
					judge(whole.with(name, zeroed), fmt.Sprintf("%s has zeros at byte %d", name, at))
				}
				for i, old := range older {
					if copied, there := old[name]; there && !slices.Equal(copied, text) {
						judge(whole.with(name, copied), fmt.Sprintf("%s is the older copy %d", name, i))
					}
				}
			}
			t.Logf("%+v", o)
		})
	}
}

// Ensure that AcceptLoss opens what a refused directory still holds, and says what
// it passed over: everything if nothing but a record of what must be there is
// missing, and a prefix of what was written if a log is damaged.
func TestDamage_AcceptLoss(t *testing.T) {
	sample.OneGoroutine(t)
	left, _ := images(t)
	whole := left["closed"]
	want, err := contentsOf(t, whole.disk(t))
	if err != nil {
		t.Fatal(err)
	}
	marker, version := whole.named("marker.manifest.")[0], whole.named("marker.format-version.")[0]
	logs := whole.named(".log") // older ones may be there still
	log := logs[len(logs)-1]
	tests := []struct {
		name    string
		damaged image
		file    string // that is named
		all     bool   // everything is there
	}{
		{"JAY is missing", whole.with("JAY", nil), "JAY", true},
		{"JAY is damaged", whole.with("JAY", flipped(whole["JAY"], 3)), "JAY", true},
		{"the control file is missing", whole.with("JAY.control", nil), "JAY.control", true},
		{"the control file is empty", whole.with("JAY.control", []byte{}), "JAY.control", true},
		{"the marker is missing", whole.with(marker, nil), "marker.manifest.*", true},
		{"the format version is missing", whole.with(version, nil), "marker.format-version.*", true},
		{"the log is damaged", whole.with(log, flipped(whole[log], 9000)), log, false},
		{"the log is missing", whole.with(log, nil), log, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			disk := test.damaged.disk(t)
			var damage *jay.DamageError
			if _, err := contentsOf(t, disk); !errors.As(err, &damage) || damage.File != test.file || damage.Dir != "db" {
				t.Errorf("got %v, want damage of %s", err, test.file)
			}
			var losses []string
			opts := jay.Options{MustExist: true, AcceptLoss: func(e *jay.DamageError) { losses = append(losses, e.File) }}
			opts.FS = disk
			db, err := jay.Open("db", &opts)
			if err != nil {
				t.Fatal(err)
			}
			got, err := databaseText(db)
			if err != nil {
				t.Fatal(err)
			}
			closeDB(t, db)
			if (got == want) != test.all || len(got) < 1000 || !slices.Contains(losses, test.file) {
				t.Errorf("%d bytes of contents of %d; losses %q", len(got), len(want), losses)
			}
			if again, err := contentsOf(t, disk); again != got || err != nil {
				t.Errorf("opened again without: %v, %d bytes, before %d", err, len(again), len(got))
			}
		})
	}
}

// Ensure that a database of format 1, which has no control file, is not taken
// for a new one when the marker of its manifest is missing, and that damage in
// front of a whole record is noticed.
func TestFormat1_Damage(t *testing.T) {
	sample.OneGoroutine(t)
	whole := make(image)
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "format1", "db", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if whole[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	want, err := contentsOf(t, whole.disk(t))
	if err != nil {
		t.Fatal(err)
	}
	var o damageOutcomes
	o.judge(t, whole.with(whole.named("marker.manifest.")[0], nil), want, "the marker is missing")
	o.judge(t, whole.with("MANIFEST-000005", nil), want, "the manifest is missing")
	o.judge(t, whole.with("MANIFEST-000005", []byte{}), want, "the manifest is empty")
	for at := range whole["JAY"] {
		o.judge(t, whole.with("JAY", flipped(whole["JAY"], at)), want, fmt.Sprintf("JAY, byte %d", at))
	}
	if o.harmless > 0 {
		t.Errorf("%+v", o)
	}
}
