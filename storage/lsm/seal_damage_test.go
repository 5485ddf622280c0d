package lsm_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

// image is the files of a directory.
type image map[string][]byte

// imageOf reads the files of a directory.
func imageOf(t *testing.T, dir string) image {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := make(image)
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// disk returns a file system in memory with the files.
func (i image) disk(t *testing.T) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewMem()
	if err := fs.MkdirAll("db", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range i {
		f, err := fs.Create(fs.PathJoin("db", name), vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.Write(bytes.Clone(text))
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return fs
}

// sealedImage returns a database of the key a: closed, or as a killed process leaves it.
func sealedImage(t *testing.T, killed bool, value string) (files image, want map[string]string) {
	t.Helper()
	dir := t.TempDir()
	e := openSealed(t, dir, "a")
	want = make(map[string]string)
	for i := range 120 {
		key := fmt.Sprintf("key %04d", i)
		want[key] = fmt.Sprintf("%s %d %s", value, i, strings.Repeat("x", 100))
		if err := set(e, key, want[key]); err != nil {
			t.Fatal(err)
		}
		if i == 60 {
			if err := e.Compact(ctx, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !killed {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		return imageOf(t, dir), want
	}
	files = imageOf(t, dir)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return files, want
}

// tells opens a database, reads all of it, and checks its files. It returns an error if damage was told, and whether what was read is
// what was written.
func tells(t *testing.T, files image, want map[string]string) (told error, right bool) {
	t.Helper()
	fs := files.disk(t)
	e, err := lsm.Open("db", lsm.Options{FS: fs, EncryptionKeys: keysOf("a")})
	if err != nil {
		return err, false
	}
	defer e.Close()
	list, err := e.Files()
	if err != nil {
		return err, false
	}
	for _, f := range list {
		damage, err := e.CheckFile(ctx, f, func(int) error { return nil })
		if err != nil {
			told = errors.Join(told, err)
		}
		for _, d := range damage {
			told = errors.Join(told, d)
		}
	}
	right = true
	for key, value := range want {
		text, closer, err := e.Get([]byte(key))
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			told = errors.Join(told, err)
			continue
		}
		if err != nil || string(text) != value {
			right = false
		}
		if err == nil {
			closer.Close()
		}
	}
	return told, right
}

// Ensure that whatever is changed in the files of an encrypted database, after a close or a kill, every read returns what was written or
// an error: flipped bits, cut and longer files, parts that were exchanged within files and between them, files that took one
// another's places, also from another database with the same key.
func TestSealed_Damage(t *testing.T) {
	sample.OneGoroutine(t)
	of := sample.Of(t, 14)
	rounds, seed := of.Rounds(4000), of.Seed()
	if text := os.Getenv("JAY_SEALED_ROUNDS"); text != "" { // make damage
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(seed, 39))
	counts := make(map[string]int)
	for _, killed := range []bool{false, true} {
		whole, want := sealedImage(t, killed, "value")
		other, _ := sealedImage(t, killed, "other")
		if told, right := tells(t, whole, want); told != nil || !right {
			t.Fatalf("killed %v: without damage: %v, right %v", killed, told, right)
		}
		var names []string
		for name, text := range whole {
			if len(text) > 0 {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for range rounds / 2 {
			files := make(image)
			for name, text := range whole {
				files[name] = bytes.Clone(text)
			}
			what := change(random, files, other, names)
			told, right := tells(t, files, want)
			switch {
			case told != nil:
				counts["told"]++
				if !errors.Is(told, storage.ErrCorrupt) && !errors.Is(told, storage.ErrKey) && !errors.Is(told, storage.ErrNotDatabase) && !errors.Is(told, storage.ErrNewerFormat) {
					t.Errorf("killed %v, %s: told as %v", killed, what, told)
				}
			case right:
				counts["harmless"]++
			default:
				t.Errorf("killed %v, %s: a wrong answer, and nothing told (seed %d)", killed, what, seed)
			}
		}
	}
	t.Logf("%v", counts)
	if counts["told"] < counts["harmless"] {
		t.Errorf("most changes did no harm: %v", counts)
	}
}

// change damages files, and says what it did.
func change(random *rand.Rand, files, other image, names []string) string {
	name := names[random.IntN(len(names))]
	text := files[name]
	at := random.IntN(len(text))
	switch random.IntN(7) {
	case 0, 1:
		text[at] ^= 1 << random.IntN(8)
		return fmt.Sprintf("bit flipped in %s at %d", name, at)
	case 2:
		files[name] = text[:at]
		return fmt.Sprintf("%s cut at %d", name, at)
	case 3:
		n := min(len(text)-at, 1+random.IntN(5000))
		clear(text[at : at+n])
		return fmt.Sprintf("%d bytes of %s zeroed at %d", n, name, at)
	case 4:
		to := random.IntN(len(text))
		n := min(len(text)-max(at, to), 1+random.IntN(5000))
		copy(text[to:to+n], bytes.Clone(text[at:at+n]))
		return fmt.Sprintf("%d bytes of %s copied from %d to %d", n, name, at, to)
	case 5:
		second := names[random.IntN(len(names))]
		files[name], files[second] = files[second], files[name]
		return fmt.Sprintf("%s and %s exchanged", name, second)
	}
	foreign, found := other[name]
	if !found || len(foreign) == 0 {
		text[at] ^= 255
		return fmt.Sprintf("byte changed in %s at %d", name, at)
	}
	if random.IntN(2) == 0 {
		files[name] = bytes.Clone(foreign)
		return fmt.Sprintf("%s of another database", name)
	}
	at = min(at, len(foreign))
	n := copy(text[at:], foreign[at:])
	return fmt.Sprintf("%d bytes of %s at %d of another database", n, name, at)
}

// Ensure that after a power loss at any sync, an encrypted database opens with all that was acknowledged, and that no file is
// ever found damaged.
func TestSealed_PowerCut(t *testing.T) {
	of := sample.Of(t, 10)
	for cut := range of.Rounds(250) {
		random := rand.New(rand.NewPCG(of.Seed(), uint64(cut)))
		disk := storagetest.NewDisk()
		var mu sync.Mutex
		var after *storagetest.Disk
		left, percent, pieces := random.IntN(200), random.IntN(101), rand.New(rand.NewPCG(of.Seed(), uint64(cut)+1000))
		disk.OnEverySync(func() {
			mu.Lock()
			defer mu.Unlock()
			if left--; left == -1 {
				after = disk.Crash(percent, pieces)
			}
		})
		gone := func() bool {
			mu.Lock()
			defer mu.Unlock()
			return after != nil
		}
		open := func(d *storagetest.Disk) (*lsm.Engine, error) {
			return lsm.Open("db", lsm.Options{FS: d, EncryptionKeys: keysOf("a"), MemTableBytes: 64 << 10})
		}
		e, err := open(disk)
		if err != nil {
			t.Fatal(err)
		}
		had := 0
		for i := range 100 {
			if err := set(e, fmt.Sprintf("key %04d", i), strings.Repeat("v", random.IntN(3000))); err != nil {
				t.Fatal(err)
			}
			if !gone() {
				had = i + 1
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if !gone() {
			after = disk.Crash(percent, pieces)
		}
		again, err := open(after)
		if err != nil {
			t.Fatalf("cut %d (seed %d): %v", cut, of.Seed(), err)
		}
		for i := range had {
			if !has(t, again, fmt.Sprintf("key %04d", i)) {
				t.Fatalf("cut %d (seed %d): key %d of %d is lost", cut, of.Seed(), i, had)
			}
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
