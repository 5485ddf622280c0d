package lsm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

// ringOf is a source of keys as a user has it: some may be lost, and some mixed up.
type ringOf struct {
	newest  string
	secrets map[string]byte // by ID, what each byte of the secret is
}

func (r ringOf) keys(id string) (sealed.Key, error) {
	if id == "" {
		id = r.newest
	}
	b, is := r.secrets[id]
	if !is {
		return sealed.Key{}, errors.New("lost")
	}
	return sealed.Key{ID: id, Secret: bytes.Repeat([]byte{b}, sealed.KeyBytes)}, nil
}

// String is for messages.
func (r ringOf) String() string {
	var all []string
	for id, b := range r.secrets {
		all = append(all, fmt.Sprintf("%s=%c", id, b))
	}
	slices.Sort(all)
	return r.newest + " of " + strings.Join(all, " ")
}

// Ensure that a database of which keys are lost or mixed up either opens and has everything, as no file needs the wrong ones, or is refused by ErrKey at once;
// that the refusal changes no byte, and that the right keys open it afterwards. The databases have files of up to four keys: rotations begin, and most do not
// end. JAY_SEALED_ROUNDS is how many databases there are.
func TestSealed_LostAndMixedKeys(t *testing.T) {
	rounds := 3
	if text := os.Getenv("JAY_SEALED_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		jaytest.Must(t, err)
		rounds = n / 10
	}
	refused, opened := 0, 0
	for range rounds {
		seed := rand.Uint64()
		r, o := lostAndMixed(t, seed)
		refused, opened = refused+r, opened+o
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d databases: refused %d times, opened %d times", rounds, refused, opened)
	if refused == 0 || opened == 0 {
		t.Error("one of the two never happened")
	}
}

// Ensure that the key of a table is asked for at once, though no other file needs it.
func TestSealed_KeyOfTable(t *testing.T) {
	disk := storagetest.NewDisk()
	older, both, newer := ringOf{"a", map[string]byte{"a": 'a'}}, ringOf{"b", map[string]byte{"a": 'a', "b": 'b'}}, ringOf{"b", map[string]byte{"b": 'b'}}
	open := func(r ringOf) (*lsm.Engine, error) {
		return lsm.Open("db", lsm.Options{FS: disk, EncryptionKeys: r.keys})
	}
	e, err := open(older)
	jaytest.Must(t, err)
	jaytest.Must(t, errors.Join(e.FinishCreation(), set(e, "key", "value"), e.Compact(ctx, nil, nil), e.Close()))
	for range 3 { // the manifest, and a log without writes, have the key of the Open before
		e, err = open(both)
		jaytest.Must(t, err)
		left, err := e.OlderKeys()
		jaytest.Must(t, err)
		for _, name := range left {
			if !strings.HasSuffix(name, ".sst") {
				_, err := e.Rekey(name)
				jaytest.Must(t, err)
			}
		}
		jaytest.Must(t, e.Close())
	}
	before := bytesIn(t, disk, "db")
	if _, err := open(newer); !errors.Is(err, storage.ErrKey) || !strings.Contains(err.Error(), ".sst") {
		t.Errorf("without the key of a table: got %v, want ErrKey that names the table", err)
	}
	if bytesIn(t, disk, "db") != before {
		t.Error("the refusal changed files")
	}
	e, err = open(both)
	jaytest.Must(t, err)
	if !has(t, e, "key") {
		t.Error("the key is missing")
	}
	jaytest.Must(t, e.Close())
}

func lostAndMixed(t *testing.T, seed uint64) (refused, opened int) {
	random := rand.New(rand.NewPCG(seed, 0))
	disk := storagetest.NewDisk()
	right := ringOf{"a", map[string]byte{"a": 'a'}}
	open := func(disk *storagetest.Disk, r ringOf, readOnly bool) (*lsm.Engine, error) {
		return lsm.Open("db", lsm.Options{FS: disk, EncryptionKeys: r.keys, ReadOnly: readOnly, MemTableBytes: 256 << 10})
	}
	e, err := open(disk, right, false)
	jaytest.Must(t, err)
	jaytest.Must(t, e.FinishCreation())
	written := make(map[string]string)
	for step := range 3 + random.IntN(8) {
		switch random.IntN(5) {
		case 0, 1:
			for i := range 1 + random.IntN(50) {
				key, value := fmt.Sprintf("key %d", random.IntN(200)), fmt.Sprintf("%d %d %s", step, i, strings.Repeat("x", random.IntN(2000)))
				jaytest.Must(t, set(e, key, value))
				written[key] = value
			}
		case 2:
			jaytest.Must(t, e.Compact(context.Background(), nil, nil))
		case 3:
			jaytest.Must(t, e.Close())
			e, err = open(disk, right, false)
			jaytest.Must(t, err)
		case 4:
			if len(right.secrets) == 4 {
				continue
			}
			right.newest = string(rune('a' + len(right.secrets)))
			right.secrets[right.newest] = right.newest[0]
			_, err := e.RenewKey("")
			jaytest.Must(t, err)
			older, err := e.OlderKeys()
			jaytest.Must(t, err)
			for _, name := range older {
				if random.IntN(2) == 0 {
					_, err := e.Rekey(name)
					jaytest.Must(t, err)
				}
			}
		}
	}
	jaytest.Must(t, e.Close())

	try := func(r ringOf) {
		t.Helper()
		own := disk.Crash(100, random)
		before := bytesIn(t, own, "db")
		readOnly := random.IntN(2) == 0
		e, err := open(own, r, readOnly)
		if err != nil {
			refused++
			if !errors.Is(err, storage.ErrKey) || errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("keys %v, right ones %v: got %v, want ErrKey", r, right, err)
			}
			if after := bytesIn(t, own, "db"); after != before {
				t.Errorf("keys %v, right ones %v: the refusal changed files", r, right)
			}
			e, err = open(own, right, readOnly)
			jaytest.Must(t, err)
		} else {
			opened++
		}
		n := 0
		it, err := e.Iterate(nil, nil)
		jaytest.Must(t, err)
		for ok := it.First(); ok; ok = it.Next() {
			if written[string(it.Key())] == string(it.Value()) {
				n++
			}
		}
		jaytest.Must(t, errors.Join(it.Error(), it.Close()))
		if n != len(written) {
			t.Errorf("keys %v, right ones %v: %d keys have what was written, of %d", r, right, n, len(written))
		}
		jaytest.Must(t, e.Close())
	}
	ids := []string{"a", "b", "c", "d"}[:len(right.secrets)]
	for lost := range 1 << len(ids) { // every subset
		r := ringOf{right.newest, make(map[string]byte)}
		for i, id := range ids {
			if lost>>i&1 == 0 {
				r.secrets[id] = right.secrets[id]
			} else if r.newest == id { // another key is the newest of those that are left
				r.newest = ""
			}
		}
		if len(r.secrets) == 0 {
			continue
		}
		if r.newest == "" {
			for id := range r.secrets {
				r.newest = max(r.newest, id)
			}
		}
		try(r)
	}
	for i := range ids {
		for j := range ids { // two have each other's secret, or one a secret that never was
			r := ringOf{right.newest, make(map[string]byte)}
			for id, b := range right.secrets {
				r.secrets[id] = b
			}
			if r.secrets[ids[i]], r.secrets[ids[j]] = r.secrets[ids[j]], r.secrets[ids[i]]; i == j {
				r.secrets[ids[i]] = '?'
			}
			try(r)
		}
	}
	return refused, opened
}
