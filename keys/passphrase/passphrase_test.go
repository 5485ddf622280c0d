package passphrase_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/keys"
	"github.com/jaydb/jay/keys/passphrase"
)

// quick is the least work, so that tests are fast.
var quick = passphrase.Work{MemoryKiB: passphrase.MinMemoryKiB, Passes: 1, Threads: 1}

// Ensure that the key is the one that Argon2id 1.3 gives for the passphrase, the salt and the parameters of the ID, as other implementations compute it.
func TestDerive_Vectors(t *testing.T) {
	t.Parallel()
	for _, v := range vectors {
		k, err := passphrase.Derive(v.id, []byte(v.passphrase))
		if err != nil || k.ID != v.id || hex.EncodeToString(k.Secret) != v.secret {
			t.Errorf("%s: %x, %v; want %s", v.id, k.Secret, err, v.secret)
		}
	}
}

// Ensure that a new ID has a salt of its own, the parameters that were asked for, and no more bytes than the ID of a key has.
func TestNewID(t *testing.T) {
	t.Parallel()
	a, err := passphrase.NewID(passphrase.DefaultWork)
	if err != nil || !strings.HasPrefix(a, "$argon2id$v=19$m=65536,t=3,p=4$") {
		t.Errorf("%q, %v", a, err)
	}
	if b, err := passphrase.NewID(passphrase.DefaultWork); err != nil || b == a {
		t.Errorf("again: %q, %v", b, err)
	}
	longest, err := passphrase.NewID(passphrase.Work{MemoryKiB: passphrase.MaxMemoryKiB, Passes: passphrase.MaxPasses, Threads: passphrase.MaxThreads})
	if err != nil || len(longest) > 64 {
		t.Errorf("%d bytes: %q, %v", len(longest), longest, err)
	}
}

// Ensure that work out of bounds, IDs that NewID does not make and passphrases of no or too much length are refused before anything is derived; so no ID in a file takes more
// than the bounds.
func TestDerive_Refused(t *testing.T) {
	t.Parallel()
	for _, w := range []passphrase.Work{{}, {MemoryKiB: passphrase.MinMemoryKiB - 1, Passes: 1, Threads: 1}, {MemoryKiB: passphrase.MaxMemoryKiB + 1, Passes: 1, Threads: 1}, {MemoryKiB: 1 << 16, Passes: 0, Threads: 1}, {MemoryKiB: 1 << 16, Passes: 65, Threads: 1}, {MemoryKiB: 1 << 16, Passes: 1, Threads: 0}, {MemoryKiB: 1 << 16, Passes: 1, Threads: 17}} {
		id, err := passphrase.NewID(w)
		if _, is := errors.AsType[*passphrase.Error](err); !is || !errors.Is(err, jay.ErrKey) {
			t.Errorf("%+v: %q, %v", w, id, err)
		}
	}
	const salt = "c2l4dGVlbiBieXRlcyE"
	good := "$argon2id$v=19$m=65536,t=3,p=4$AAAAAAAAAAAAAAAAAAAAAA"
	for _, id := range []string{
		"", "2026-01", "$argon2i$v=19$m=65536,t=3,p=4$AAAAAAAAAAAAAAAAAAAAAA", "$argon2id$v=16$m=65536,t=3,p=4$AAAAAAAAAAAAAAAAAAAAAA",
		"$argon2id$v=19$m=4194304,t=3,p=4$AAAAAAAAAAAAAAAAAAAAAA", "$argon2id$v=19$m=1024,t=3,p=4$AAAAAAAAAAAAAAAAAAAAAA", "$argon2id$v=19$m=65536,t=1000,p=4$AAAAAAAAAAAAAAAAAAAAAA",
		"$argon2id$v=19$m=99999999999999999999,t=3,p=4$AAAAAAAAAAAAAAAAAAAAAA", "$argon2id$v=19$m=-1,t=3,p=4$AAAAAAAAAAAAAAAAAAAAAA", "$argon2id$v=19$m=65536,t=3,p=260$AAAAAAAAAAAAAAAAAAAAAA",
		"$argon2id$v=19$m=65536,t=3,p=4$" + salt, "$argon2id$v=19$m=65536,t=3,p=4$AAAAAAAAAAAAAAAAAAAAAB", // bits that mean nothing
		"$argon2id$v=19$m=065536,t=3,p=4$AAAAAAAAAAAAAAAAAAAAAA", "$argon2id$v=19$m=65536,t=3,p=4,x$AAAAAAAAAAAAAAAAAAAAAA", good + "$", good + "\n", " " + good, strings.Repeat("x", 1<<20),
	} {
		k, err := passphrase.Derive(id, []byte("a passphrase"))
		if e, is := errors.AsType[*passphrase.Error](err); !is || !errors.Is(err, jay.ErrKey) || e.ID != id || len(err.Error()) > 500 {
			t.Errorf("%.100q: %v, %v", id, k, err)
		}
	}
	for _, p := range []string{"", strings.Repeat("x", 4097)} {
		if _, err := passphrase.Derive(good, []byte(p)); !errors.Is(err, jay.ErrKey) {
			t.Errorf("a passphrase of %d bytes: %v", len(p), err)
		}
	}
}

// Ensure that a passphrase is asked for once for each ID, again after an error, and never for an ID that is none.
func TestKeys_Asks(t *testing.T) {
	t.Parallel()
	id, err := passphrase.NewID(quick)
	if err != nil {
		t.Fatal(err)
	}
	asked, failure := 0, errors.New("the terminal is closed")
	k := passphrase.Keys(id, func(of string) ([]byte, error) {
		if of != id {
			t.Errorf("asked for %q", of)
		}
		if asked++; asked == 1 {
			return nil, failure
		}
		return []byte("six random words"), nil
	})
	if _, err := k.Newest(); !errors.Is(err, failure) || !errors.Is(err, jay.ErrKey) {
		t.Errorf("got %v", err)
	}
	if _, err := k.Key("2026-01"); !errors.Is(err, jay.ErrKey) {
		t.Errorf("got %v", err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if got, err := k.Newest(); err != nil || got.ID != id || len(got.Secret) != 32 {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	all.Wait()
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

// Ensure that a database opens with its passphrase only, also after the passphrase was changed, and that the ID alone is needed beside the passphrases.
func TestKeys_Database(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "db")
	first, err := passphrase.NewID(quick)
	if err != nil {
		t.Fatal(err)
	}
	second, err := passphrase.NewID(quick)
	if err != nil {
		t.Fatal(err)
	}
	with := func(newest string, words map[string]string) *jay.Options {
		return &jay.Options{EncryptionKeys: passphrase.Keys(newest, func(id string) ([]byte, error) {
			if words[id] == "" {
				return nil, fmt.Errorf("no passphrase for %s", id)
			}
			return []byte(words[id]), nil
		})}
	}
	use := func(o *jay.Options) error {
		db, err := jay.Open(dir, o)
		if err != nil {
			return err
		}
		_, err = db.Put(ctx, "notes/1", []byte(`{}`))
		return errors.Join(err, db.Close())
	}
	if err := use(with(first, map[string]string{first: "one"})); err != nil {
		t.Fatal(err)
	}
	if err := use(with(first, map[string]string{first: "two"})); !errors.Is(err, jay.ErrKey) {
		t.Errorf("a wrong passphrase: %v", err)
	}
	if err := use(with(second, map[string]string{second: "two"})); !errors.Is(err, jay.ErrKey) {
		t.Errorf("without the older passphrase: %v", err)
	}
	both := map[string]string{first: "one", second: "two"}
	if err := use(with(second, both)); err != nil {
		t.Errorf("another passphrase: %v", err)
	}
	if _, err := jay.RotateDir(ctx, dir, with(second, both), nil); err != nil {
		t.Fatal(err)
	}
	if err := use(with(second, map[string]string{second: "two"})); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
}

// Ensure that the next ID asks for the same work with another salt, that it is the same each time, and that an ID that is none has no next one.
func TestNextID(t *testing.T) {
	t.Parallel()
	const id = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA"
	next, err := passphrase.NextID(id)
	if err != nil || !strings.HasPrefix(next, "$argon2id$v=19$m=19456,t=2,p=1$") || next == id {
		t.Errorf("%q, %v", next, err)
	}
	if again, err := passphrase.NextID(id); err != nil || again != next {
		t.Errorf("again: %q, %v, want %q", again, err, next)
	}
	if after, err := passphrase.NextID(next); err != nil || after == id || after == next {
		t.Errorf("after it: %q, %v", after, err)
	}
	if _, err := passphrase.Derive(next, []byte("words")); err != nil {
		t.Error(err)
	}
	if next, err := passphrase.NextID("2026-01"); !errors.Is(err, jay.ErrKey) {
		t.Errorf("of a key of a file: %q, %v", next, err)
	}
}

// Ensure that a database is made and opened with the passphrase alone, also by another program, and that its ID stays.
func TestInDir(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	use := func(words string) error {
		db, err := jay.Open(dir, &jay.Options{EncryptionKeys: passphrase.InDir(dir, func(string) ([]byte, error) { return []byte(words), nil })})
		if err != nil {
			return err
		}
		return db.Close()
	}
	if err := use("one"); err != nil {
		t.Fatal(err)
	}
	first, err := keys.NeededBy(dir)
	if err != nil || !strings.HasPrefix(first, "$argon2id$v=19$m=65536,t=3,p=4$") {
		t.Errorf("%q, %v", first, err)
	}
	if err := use("one"); err != nil {
		t.Error(err)
	}
	if err := use("two"); !errors.Is(err, jay.ErrKey) || errors.Is(err, jay.ErrCorrupt) {
		t.Errorf("another passphrase: %v", err)
	}
	if id, err := keys.NeededBy(dir); err != nil || id != first {
		t.Errorf("then it is %q, %v", id, err)
	}
}

// Ensure that a file has its one line without the line break as the passphrase, and that no other file is taken.
func TestFile(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 4096)
	for _, row := range []struct{ text, want string }{ // "" for none
		{"six words", "six words"}, {"six words\n", "six words"}, {"six words\r\n", "six words"}, {" a\t\n", " a\t"}, {long + "\r\n", long},
		{"", ""}, {"\n", ""}, {"a\nb", ""}, {"a\n\n", ""}, {long + "xxx", ""},
	} {
		path := filepath.Join(t.TempDir(), "words")
		if err := os.WriteFile(path, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := passphrase.File(path)("")
		if string(got) != row.want || (err == nil) != (row.want != "") || err != nil && !errors.Is(err, jay.ErrKey) {
			t.Errorf("%.20q: %.20q, %v", row.text, got, err)
		}
	}
}
