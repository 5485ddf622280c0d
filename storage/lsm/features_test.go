package lsm_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

// Features of versions to come: older knows none of them, middle the first, newer both.
var (
	birds  = storage.Feature{Format: storage.BaseFormat + 1, Name: "birds"}
	fish   = storage.Feature{Format: storage.BaseFormat + 2, Name: "fish"}
	older  = storage.Features{}
	middle = storage.Features{birds}
	newer  = storage.Features{birds, fish}
)

// base is the text of the format file of a database that uses no feature.
var base = fmt.Sprintf("jay database, format %d\n", storage.BaseFormat)

// openKnowing opens a database as a version does that knows some features.
func openKnowing(disk vfs.FS, known storage.Features) (*lsm.Engine, error) {
	return lsm.Open("db", lsm.Options{FS: disk, Features: known})
}

func mustOpenKnowing(t *testing.T, disk vfs.FS, known storage.Features) *lsm.Engine {
	t.Helper()
	e, err := openKnowing(disk, known)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// use commits a key that needs features.
func use(e storage.Engine, key string, features ...storage.Feature) error {
	return e.Update(ctx, true, func(tx storage.Tx) error {
		for _, f := range features {
			tx.RequireFeature(f)
		}
		tx.Set([]byte(key), []byte("v"), nil)
		return nil
	})
}

func mustClose(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// fileText returns what is in a file of a disk.
func fileText(t *testing.T, disk vfs.FS, path string) string {
	t.Helper()
	f, err := disk.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func wantText(t *testing.T, disk vfs.FS, want string) {
	t.Helper()
	if got := fileText(t, disk, "db/JAY"); got != want {
		t.Errorf("JAY is %q, want %q", got, want)
	}
}

// wantNewer checks that an error refuses a format, and names the features that are not known.
func wantNewer(t *testing.T, err error, found, newest int, names ...string) {
	t.Helper()
	var f *storage.FormatError
	if !errors.As(err, &f) || !errors.Is(err, storage.ErrNewerFormat) {
		t.Errorf("got %v, want a FormatError", err)
		return
	}
	if f.What != "database" || f.Found != found || f.Newest != newest || !slices.Equal(f.Features, names) {
		t.Errorf("got %+v, want the format %d of %d, for %q", f, found, newest, names)
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("%v does not name %q", err, name)
		}
	}
}

// Ensure that the format of a database rises when a feature is first used and not before, that it never
// falls, and that a version that knows less is told which features it does not know.
func TestFeatures_FirstUse(t *testing.T) {
	disk := storagetest.NewDisk()
	e := mustOpenKnowing(t, disk, newer)
	if err := set(e, "a", "1"); err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
	wantText(t, disk, base)
	mustClose(t, mustOpenKnowing(t, disk, older)) // nothing is in its way

	e = mustOpenKnowing(t, disk, newer)
	failed := errors.New("no")
	if err := e.Update(ctx, true, func(tx storage.Tx) error { tx.RequireFeature(fish); return failed }); err != failed {
		t.Fatal(err)
	}
	wantText(t, disk, base)
	if err := use(e, "b", fish); err != nil {
		t.Fatal(err)
	}
	withFish := fmt.Sprintf("jay database, format %d\nfeature %d: fish\n", fish.Format, fish.Format)
	wantText(t, disk, withFish)
	if got, want := fmt.Sprint(e.Format()), fmt.Sprintf("{%d [{%d fish}]}", fish.Format, fish.Format); got != want {
		t.Errorf("the engine says %s, want %s", got, want)
	}
	if err := errors.Join(e.Update(ctx, true, func(tx storage.Tx) error { tx.Delete([]byte("b")); return nil }), use(e, "c", fish)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
	wantText(t, disk, withFish)

	for _, known := range []storage.Features{older, middle} {
		_, err := openKnowing(disk, known)
		wantNewer(t, err, fish.Format, known.Newest(), "fish")
		_, err = lsm.Open("db", lsm.Options{FS: disk, Features: known, ReadOnly: true})
		wantNewer(t, err, fish.Format, known.Newest(), "fish")
		_, err = lsm.OpenSalvage("db", lsm.Options{FS: disk, Features: known})
		wantNewer(t, err, fish.Format, known.Newest(), "fish")
	}
	wantText(t, disk, withFish)

	// A feature with a lower number, later: the number stays, and both are named.
	e = mustOpenKnowing(t, disk, newer)
	if err := use(e, "d", birds); err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
	wantText(t, disk, fmt.Sprintf("jay database, format %d\nfeature %d: birds\nfeature %d: fish\n", fish.Format, birds.Format, fish.Format))
	_, err := openKnowing(disk, older)
	wantNewer(t, err, fish.Format, older.Newest(), "birds", "fish")
	_, err = openKnowing(disk, middle)
	wantNewer(t, err, fish.Format, middle.Newest(), "fish")

	s, err := lsm.OpenSalvage("db", lsm.Options{FS: disk, Features: newer})
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, s)
	if got, want := fmt.Sprint(s.Format()), fmt.Sprintf("{%d [{%d birds} {%d fish}]}", fish.Format, birds.Format, fish.Format); got != want {
		t.Errorf("Salvage says %s, want %s", got, want)
	}
}

// Ensure that a power failure at any sync leaves no key of a feature in a database whose format a version
// would open that does not know the feature, and that all that was committed is there.
func TestFeatures_PowerCut(t *testing.T) {
	sample.OneGoroutine(t)
	steps := []struct {
		key      string
		features []storage.Feature
	}{{"a", nil}, {"b", []storage.Feature{birds}}, {"c", nil}, {"d", []storage.Feature{birds, fish}}}
	cuts := 0
	for happened := true; happened; cuts++ {
		for _, keep := range []int{0, 50, 100} {
			disk := storagetest.NewDisk()
			mustClose(t, mustOpenKnowing(t, disk, newer)) // its creation is another test's
			var mu sync.Mutex
			var found *storagetest.Disk
			left, committed := cuts, 0
			disk.OnEverySync(func() {
				mu.Lock()
				defer mu.Unlock()
				if left--; left == -1 {
					found = disk.Crash(keep, rand.New(rand.NewPCG(uint64(cuts), uint64(keep))))
				}
			})
			lost := func() bool {
				mu.Lock()
				defer mu.Unlock()
				return found != nil
			}
			e := mustOpenKnowing(t, disk, newer)
			for _, step := range steps {
				if err := use(e, step.key, step.features...); err != nil {
					t.Fatal(err)
				}
				if !lost() {
					committed++
				}
			}
			mustClose(t, e)
			disk.OnEverySync(nil)
			if happened = lost(); !happened {
				break
			}
			for i, known := range []storage.Features{older, middle, newer} {
				e, err := openKnowing(found, known)
				if errors.Is(err, storage.ErrNewerFormat) && i < 2 {
					continue
				}
				if err != nil {
					t.Fatalf("sync %d, %d %% kept: a version that knows %v: %v", cuts, keep, known, err)
				}
				for n, step := range steps {
					there := has(t, e, step.key)
					if !there && n < committed {
						t.Errorf("sync %d, %d %% kept: %s is gone", cuts, keep, step.key)
					}
					for _, f := range step.features {
						if there && !slices.Contains(e.Format().Features, f) {
							t.Errorf("sync %d, %d %% kept: %s is there, which needs %v, and the format is %v", cuts, keep, step.key, f, e.Format())
						}
					}
				}
				mustClose(t, e)
			}
		}
	}
	if cuts < 8 {
		t.Errorf("%d syncs, want those of four commits and of two times the format file and its directory", cuts)
	}
}

// Ensure that nothing is committed if the format cannot be raised, that the engine goes on, and that
// the next transaction raises it.
func TestFeatures_DiskFails(t *testing.T) {
	for left := range 2 { // the file is made; it gets its name
		disk := storagetest.NewDisk()
		e := mustOpenKnowing(t, disk, newer)
		disk.FailCreationsIn("db/JAY", left)
		if err := use(e, "a", birds); !errors.Is(err, storagetest.ErrInjected) || errors.Is(err, storage.ErrUnknownOutcome) {
			t.Errorf("after %d: got %v, want the error of the disk", left, err)
		}
		if has(t, e, "a") || len(e.Format().Features) > 0 {
			t.Errorf("after %d: the key is there: %v, with the format %v", left, has(t, e, "a"), e.Format())
		}
		if err := errors.Join(set(e, "b", "1"), e.Sync(ctx)); err != nil {
			t.Errorf("after %d: without the feature: %v", left, err)
		}
		disk.Heal()
		if err := use(e, "a", birds); err != nil || !has(t, e, "a") {
			t.Errorf("after %d: %v, the key is there: %v", left, err, has(t, e, "a"))
		}
		mustClose(t, e)
		wantText(t, disk, fmt.Sprintf("jay database, format %d\nfeature %d: birds\n", birds.Format, birds.Format))
	}
}

// Ensure that a transaction that needs what the engine does not know commits nothing.
func TestFeatures_Unknown(t *testing.T) {
	disk := storagetest.NewDisk()
	e := mustOpenKnowing(t, disk, middle)
	defer mustClose(t, e)
	wantNewer(t, use(e, "a", birds, fish), fish.Format, middle.Newest(), "fish")
	wantNewer(t, use(e, "a", storage.Feature{Format: birds.Format, Name: "bats"}), birds.Format, middle.Newest(), "bats")
	if has(t, e, "a") {
		t.Error("the key was committed")
	}
	wantText(t, disk, base)
}

// Ensure that a checkpoint has the format of its original, and that a database whose format file is lost
// gets that of all features, as it may hold them.
func TestFeatures_Copies(t *testing.T) {
	disk := storagetest.NewDisk()
	e := mustOpenKnowing(t, disk, newer)
	if err := errors.Join(use(e, "a", birds), e.Checkpoint(ctx, "copy")); err != nil {
		t.Fatal(err)
	}
	mustClose(t, e)
	want := fileText(t, disk, "db/JAY")
	if got := fileText(t, disk, filepath.Join("copy", "JAY")); got != want {
		t.Errorf("JAY of the checkpoint is %q, want %q", got, want)
	}

	if err := disk.Remove("db/JAY"); err != nil {
		t.Fatal(err)
	}
	s, err := lsm.OpenSalvage("db", lsm.Options{FS: disk, Features: newer})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Format().Number; got != fish.Format {
		t.Errorf("Salvage says %d, want %d", got, fish.Format)
	}
	mustClose(t, s)
	e, err = lsm.Open("db", lsm.Options{FS: disk, Features: newer, AcceptLoss: func(*storage.DamageError) {}})
	if err != nil || !has(t, e, "a") {
		t.Fatal(err)
	}
	mustClose(t, e)
	_, err = openKnowing(disk, older)
	wantNewer(t, err, fish.Format, older.Newest(), "birds", "fish")
}

// Ensure that a format file with any other text is no database, or damage: it says exactly what was written.
func TestFeatures_FileText(t *testing.T) {
	whole := fmt.Sprintf("jay database, format %d\nfeature %d: birds\n", birds.Format, birds.Format)
	for _, text := range []string{
		"", "jay database, format \n", "jay database, format 0\n", "jay database, format -1\n", "jay database, format 04\n", "jay database, format 4",
		fmt.Sprintf("jay database, format %d\n", birds.Format), base + fmt.Sprintf("feature %d: birds\n", birds.Format), base + "\n",
		whole + "\n", whole + whole, strings.TrimSuffix(whole, "\n"), strings.Replace(whole, "birds", "bird", 1), strings.Replace(whole, "feature", "Feature", 1),
		fmt.Sprintf("jay database, format %d\nfeature %d: fish\nfeature %d: birds\n", fish.Format, fish.Format, birds.Format),
	} {
		disk := storagetest.NewDisk()
		e := mustOpenKnowing(t, disk, newer)
		if err := use(e, "a", birds); err != nil {
			t.Fatal(err)
		}
		mustClose(t, e)
		wantText(t, disk, whole)
		f, err := disk.Create("db/JAY", vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		mustClose(t, f)
		if _, err := openKnowing(disk, newer); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("%q: got %v, want ErrCorrupt", text, err)
		}
	}
}
