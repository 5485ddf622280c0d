package lsm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

// conversions are the ways in which a database is converted.
var conversions = []struct {
	name     string
	from, to sealed.Keys
}{
	{"encrypt", nil, keysOf("a")},
	{"decrypt", keysOf("a"), nil},
	{"rotate", keysOf("a"), keysOf("b", "a")},
}

// Ensure that a database that was converted opens with its new keys only, has what it had, and has none of its text in the clear
// if it is encrypted; and that a checkpoint made before stays as it was.
func TestConvert(t *testing.T) {
	const marker = "the marker of the conversion"
	for _, row := range conversions {
		t.Run(row.name, func(t *testing.T) {
			dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
			e, err := lsm.Open(dir, lsm.Options{EncryptionKeys: row.from})
			if err != nil {
				t.Fatal(err)
			}
			fill(t, e, 100, marker)
			if err := errors.Join(e.Checkpoint(ctx, copied), e.Close()); err != nil {
				t.Fatal(err)
			}
			if err := lsm.Convert(ctx, dir, lsm.Options{EncryptionKeys: row.from}, row.to, nil); err != nil {
				t.Fatal(err)
			}
			for name, text := range imageOf(t, dir) {
				if row.to != nil && strings.Contains(string(text), marker[:12]) {
					t.Errorf("%s has the marker in the clear", name)
				}
			}
			if row.name != "rotate" {
				if _, err := lsm.Open(dir, lsm.Options{EncryptionKeys: row.from}); !errors.Is(err, storage.ErrKey) {
					t.Errorf("with the keys from before: got %v, want ErrKey", err)
				}
			}
			newest := row.to
			if row.name == "rotate" {
				newest = keysOf("b") // the older key is not needed any more
			}
			for path, keys := range map[string]sealed.Keys{dir: newest, copied: row.from} {
				e, err := lsm.Open(path, lsm.Options{EncryptionKeys: keys})
				if err != nil {
					t.Fatal(err)
				}
				if !has(t, e, "key "+marker+" 0099") || !has(t, e, "key "+marker+" 0000") {
					t.Error("a key is missing")
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := lsm.Convert(ctx, dir, lsm.Options{EncryptionKeys: newest}, newest, nil); err != nil {
				t.Errorf("a conversion that changes nothing: %v", err)
			}
		})
	}
}

// Ensure that a conversion which was interrupted at any sync, by a loss of power or by its context, leaves a database that is refused
// or opens with one side's keys, and that the same conversion, called again, completes it.
func TestConvert_PowerCut(t *testing.T) {
	of := sample.Of(t, 7)
	for _, row := range conversions {
		ended := false
		for cut := 0; !ended; cut++ {
			disk := storagetest.NewDisk()
			e, err := lsm.Open("db", lsm.Options{FS: disk, EncryptionKeys: row.from})
			if err != nil {
				t.Fatal(err)
			}
			fill(t, e, 30, "v")
			if err := errors.Join(e.FinishCreation(), e.Close()); err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var after *storagetest.Disk
			left := cut
			random := rand.New(rand.NewPCG(of.Seed(), uint64(cut)))
			disk.OnEverySync(func() {
				mu.Lock()
				defer mu.Unlock()
				if left--; left == -1 {
					after = disk.Crash(random.IntN(101), random)
				}
			})
			if err := lsm.Convert(ctx, "db", lsm.Options{FS: disk, EncryptionKeys: row.from}, row.to, nil); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			found := after
			mu.Unlock()
			if ended = found == nil; ended {
				t.Logf("%s: %d syncs", row.name, cut)
				continue
			}
			if !of.Has(cut) {
				continue
			}
			where := fmt.Sprintf("%s, cut at sync %d (seed %d)", row.name, cut, of.Seed())
			finishConversion(t, where, found, row.from, row.to)
		}
	}
}

// finishConversion checks a disk on which a conversion was interrupted, and completes it.
func finishConversion(t *testing.T, where string, disk *storagetest.Disk, from, to sealed.Keys) {
	t.Helper()
	for _, keys := range []sealed.Keys{from, to} {
		e, err := lsm.Open("db", lsm.Options{FS: disk, EncryptionKeys: keys, ReadOnly: true})
		if err != nil && !errors.Is(err, storage.ErrKey) {
			t.Fatalf("%s: opened as %v", where, err)
		}
		if err == nil {
			if !has(t, e, "key v 0029") {
				t.Fatalf("%s: it opens, and a key is missing", where)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	err := lsm.Convert(ctx, "db", lsm.Options{FS: disk, EncryptionKeys: from}, to, nil)
	if errors.Is(err, storage.ErrKey) { // it had ended: the database has its new keys
		err = lsm.Convert(ctx, "db", lsm.Options{FS: disk, EncryptionKeys: to}, to, nil)
	}
	if err != nil {
		t.Fatalf("%s: called again: %v", where, err)
	}
	e, err := lsm.Open("db", lsm.Options{FS: disk, EncryptionKeys: to})
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	for i := range 30 {
		if !has(t, e, fmt.Sprintf("key v %04d", i)) {
			t.Fatalf("%s: key %d is missing", where, i)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// Ensure that a conversion with wrong keys changes nothing, and that one which has begun is not taken elsewhere.
func TestConvert_Refused(t *testing.T) {
	dir := t.TempDir()
	if err := openSealed(t, dir, "a").Close(); err != nil {
		t.Fatal(err)
	}
	before := allBytes(t, dir)
	for name, keys := range map[string][2]sealed.Keys{
		"no keys":            {nil, keysOf("b")},
		"another key":        {keysOf("b"), nil},
		"without the older":  {keysOf("a"), keysOf("b")},
		"plain to plain":     {nil, nil},
		"keys of the target": {nil, keysOf("a")},
	} {
		err := lsm.Convert(ctx, dir, lsm.Options{EncryptionKeys: keys[0]}, keys[1], nil)
		if !errors.Is(err, storage.ErrKey) {
			t.Errorf("%s: got %v, want ErrKey", name, err)
		}
		if name != "without the older" && allBytes(t, dir) != before {
			t.Errorf("%s: the directory was changed", name)
		}
		before = allBytes(t, dir)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := lsm.Convert(ended, dir, lsm.Options{EncryptionKeys: keysOf("a")}, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: got %v", err)
	}
	if _, err := lsm.Open(dir, lsm.Options{EncryptionKeys: keysOf("a")}); !errors.Is(err, storage.ErrKey) || !strings.Contains(err.Error(), "has not ended") {
		t.Errorf("opened in between: got %v, want ErrKey", err)
	}
	if err := lsm.Convert(ctx, dir, lsm.Options{EncryptionKeys: keysOf("a")}, keysOf("a"), nil); err == nil {
		t.Error("another conversion was begun in between")
	}
	if err := lsm.Convert(ctx, dir, lsm.Options{EncryptionKeys: keysOf("a")}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "JAY.keys")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the identity of a decrypted database: %v", err)
	}
}
