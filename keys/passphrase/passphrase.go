// Package passphrase makes encryption keys for jay.Options.EncryptionKeys from passphrases, by
// Argon2id (RFC 9106). It is a module of its own, as it needs golang.org/x/crypto.
//
// A key is derived from the passphrase and from the ID of the key, which has a random salt and says
// how much work the derivation is:
//
//	$argon2id$v=19$m=65536,t=3,p=4$c2l4dGVlbiBieXRlcyE
//
// The ID is not a secret. The database stores it in its files, in the clear, so the program need
// not keep the salt. InDir reads the ID there. A program can also keep the ID in its configuration,
// and pass it to Keys.
//
// A passphrase is weaker than a key of package keys: an attacker who has the files can try
// passphrases, and only the work of each derivation slows the attack down. Choose six random words
// or more.
//
// Everything in the package is safe for concurrent use.
package passphrase

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/crypto/argon2"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/keys"
)

// Bounds of the work of a derivation. They also hold for the IDs in files, which an attacker who
// can write to the disk may have changed.
const (
	MinMemoryKiB = 19 << 10 // 19 MiB
	MaxMemoryKiB = 1 << 20  // 1 GiB
	MaxPasses    = 64
	MaxThreads   = 16

	saltBytes = 16
	maxBytes  = 4096 // of a passphrase
)

// Work is the work of deriving a key, and so of trying a passphrase.
type Work struct {
	MemoryKiB uint32 // KiB of memory, while a key is derived: MinMemoryKiB to MaxMemoryKiB
	Passes    uint32 // over the memory: 1 to MaxPasses
	Threads   uint8  // that may share the work: 1 to MaxThreads
}

// DefaultWork is the second recommended option of RFC 9106, section 4: 64 MiB and three passes, by
// four threads. It takes some tenths of a second.
var DefaultWork = Work{MemoryKiB: 64 << 10, Passes: 3, Threads: 4}

// Error says what is wrong with an ID, a passphrase or a Work. errors.Is(err, jay.ErrKey) is true.
// An Error never contains a passphrase.
type Error struct {
	ID      string // or "" if none is meant
	Problem string
}

// Error names the ID and the problem.
func (e *Error) Error() string {
	if e.ID == "" {
		return "key from a passphrase: " + e.Problem
	}
	return fmt.Sprintf("key %.80q from a passphrase: %s", e.ID, e.Problem)
}

// Is makes errors.Is(err, jay.ErrKey) true.
func (e *Error) Is(target error) bool { return target == jay.ErrKey }

// check returns what is out of bounds, or "".
func (w Work) check() string {
	switch {
	case w.MemoryKiB < MinMemoryKiB || w.MemoryKiB > MaxMemoryKiB:
		return fmt.Sprintf("m is %d KiB, and must be %d to %d", w.MemoryKiB, MinMemoryKiB, MaxMemoryKiB)
	case w.Passes < 1 || w.Passes > MaxPasses:
		return fmt.Sprintf("t is %d passes, and must be 1 to %d", w.Passes, MaxPasses)
	case w.Threads < 1 || w.Threads > MaxThreads:
		return fmt.Sprintf("p is %d threads, and must be 1 to %d", w.Threads, MaxThreads)
	}
	return ""
}

// idOf returns the ID of a key: see the package.
func idOf(w Work, salt []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s", argon2.Version, w.MemoryKiB, w.Passes, w.Threads, base64.RawStdEncoding.EncodeToString(salt))
}

// NewID returns the ID of a new key, with a random salt. It has at most 64 bytes, as the IDs of
// keys do. The error is an *Error for a Work that is out of bounds.
func NewID(w Work) (string, error) {
	if problem := w.check(); problem != "" {
		return "", &Error{Problem: problem}
	}
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // which never fails: it ends the program instead
	return idOf(w, salt), nil
}

// parse reads the ID of a key. Only what NewID writes is one, byte by byte: two texts for one key
// would be two keys to a database.
func parse(id string) (w Work, salt []byte, err error) {
	wrong := func(problem string) (Work, []byte, error) { return Work{}, nil, &Error{id, problem} }
	parts := strings.Split(id, "$")
	if len(id) > 64 || len(parts) != 5 || parts[0] != "" || parts[1] != "argon2id" {
		return wrong("it is not the ID of such a key, which NewID makes")
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &w.MemoryKiB, &w.Passes, &w.Threads); err != nil {
		return wrong("its parameters are not m=…,t=…,p=…")
	}
	if problem := w.check(); problem != "" {
		return wrong(problem)
	}
	salt, err = base64.RawStdEncoding.Strict().DecodeString(parts[4])
	if err != nil || len(salt) != saltBytes {
		return wrong(fmt.Sprintf("its salt is not %d bytes in base64", saltBytes))
	}
	if idOf(w, salt) != id {
		return wrong("it is not written as NewID writes it, or of another version of Argon2")
	}
	return w, salt, nil
}

// Derive returns the key with this ID. It takes the memory and the time that the ID asks for.
// passphrase has 1 to 4,096 bytes, and is used as it is: a line break at the end is part of it.
// Derive does not keep it. Every passphrase gives a key: only the database detects a wrong one,
// with jay.ErrKey.
//
// The error is an *Error.
func Derive(id string, passphrase []byte) (jay.EncryptionKey, error) {
	w, salt, err := parse(id)
	if err != nil {
		return jay.EncryptionKey{}, err
	}
	if len(passphrase) == 0 || len(passphrase) > maxBytes {
		return jay.EncryptionKey{}, &Error{id, fmt.Sprintf("the passphrase has %d bytes, and must have 1 to %d", len(passphrase), maxBytes)}
	}
	return jay.EncryptionKey{ID: id, Secret: argon2.IDKey(passphrase, salt, w.Passes, w.MemoryKiB, w.Threads, 32)}, nil
}

// NextID returns the ID of the key that replaces the key with this ID when the passphrase changes.
// The next ID asks for the same work, and has another salt. The same ID always gives the same next
// ID, so an interrupted change, after which some files have the new key already, can continue with
// that key. NextID returns an *Error if id is not the ID of such a key.
func NextID(id string) (string, error) {
	w, _, err := parse(id)
	if err != nil {
		return "", err
	}
	// A salt must not be that of another passphrase. It need not be a secret: the hash of a random
	// salt, which is in the ID, is as good as random.
	salt := sha256.Sum256([]byte("jay: the salt after " + id))
	return idOf(w, salt[:saltBytes]), nil
}

// InDir returns keys for the database in directory dir. The newest key has the ID that the database
// needs (keys.NeededBy). If there is no database yet, or it is not encrypted yet, InDir makes a new
// ID with DefaultWork. So the program keeps nothing but the passphrase. Otherwise InDir works as
// Keys does.
func InDir(dir string, ask func(id string) ([]byte, error)) jay.EncryptionKeys {
	made := sync.OnceValues(func() (string, error) { return NewID(DefaultWork) })
	s := newSource(ask)
	s.newest = func() (string, error) {
		id, err := keys.NeededBy(dir)
		if errors.Is(err, jay.ErrNoDatabase) || err == nil && id == "" {
			return made()
		}
		return id, err
	}
	return s
}

// File returns a function for Keys and InDir that reads the passphrase from a file with one line.
// The line break at the end of the line is not part of the passphrase. Other users must not be able
// to read the file, as keys.ReadSecret says. An error is an *Error or a *keys.Error, and a
// jay.ErrKey.
func File(path string) func(id string) ([]byte, error) {
	return func(id string) ([]byte, error) {
		text, err := keys.ReadSecret(path, maxBytes+len("\r\n"))
		if err != nil {
			return nil, err
		}
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 || len(rest) > 0 {
			return nil, &keys.Error{Source: path, Problem: "a file with a passphrase has one line, and nothing after it"}
		}
		return line, nil
	}
}

// Keys returns keys for jay.Options.EncryptionKeys. newest is the ID of the newest key. ask returns
// the passphrase of an ID, and may ask a user for it. One goroutine at a time calls ask, when a key
// is first needed, and again after an error. To change the passphrase, pass another newest ID, and
// let ask return the passphrase of each ID.
//
// The keys stay in memory. Newest and Key return an *Error, which wraps no other error, or the
// error of ask, wrapped so that it is jay.ErrKey as well.
func Keys(newest string, ask func(id string) ([]byte, error)) jay.EncryptionKeys {
	s := newSource(ask)
	s.newest = func() (string, error) { return newest, nil }
	return s
}

// source is what Keys and InDir return.
type source struct {
	newest func() (id string, err error)
	ask    func(id string) ([]byte, error)

	mu    sync.Mutex // held while a key is derived: one at a time takes its memory
	known map[string]jay.EncryptionKey
}

// newSource returns a source without newest.
func newSource(ask func(id string) ([]byte, error)) *source {
	return &source{ask: ask, known: make(map[string]jay.EncryptionKey)}
}

// Newest implements jay.EncryptionKeys.
func (s *source) Newest() (jay.EncryptionKey, error) {
	id, err := s.newest()
	if err != nil {
		return jay.EncryptionKey{}, err
	}
	return s.Key(id)
}

// Key implements jay.EncryptionKeys.
func (s *source) Key(id string) (jay.EncryptionKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key, found := s.known[id]; found {
		return key, nil
	}
	if _, _, err := parse(id); err != nil { // before anybody is asked
		return jay.EncryptionKey{}, err
	}
	passphrase, err := s.ask(id)
	if err != nil {
		return jay.EncryptionKey{}, errors.Join(&Error{id, "its passphrase cannot be had"}, err)
	}
	key, err := Derive(id, passphrase)
	if err != nil {
		return jay.EncryptionKey{}, err
	}
	s.known[id] = key
	return key, nil
}
