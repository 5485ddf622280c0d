// Package passphrase makes encryption keys for jay.Options.EncryptionKeys from passphrases, by Argon2id (RFC 9106). It is a module of its own, as it needs golang.org/x/crypto.
//
// A key is derived from the passphrase and from the ID of the key, which has a random salt and says how much work the derivation is:
//
//	$argon2id$v=19$m=65536,t=3,p=4$c2l4dGVlbiBieXRlcyE
//
// The ID is no secret. The database stores it in its files, so nobody has to keep the salt. A program must know the ID of its newest key, which its new files get: keep the ID with the configuration of the
// program. If it is lost, it is read again in the file JAY.keys of the database, where it is in the clear.
//
// A passphrase is weaker than a key of package keys: whoever has the files can try passphrases, as many as the work of each allows. Choose six random words or more.
//
// All of the package is safe for concurrent use.
package passphrase

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/crypto/argon2"

	"github.com/jaydb/jay"
)

// Bounds of what a derivation may be asked to do. They hold for the IDs in files as well, which anybody may have written who can change the disk.
const (
	MinMemoryKiB = 19 << 10 // 19 MiB
	MaxMemoryKiB = 1 << 20  // 1 GiB
	MaxPasses    = 64
	MaxThreads   = 16

	saltBytes = 16
	maxBytes  = 4096 // of a passphrase
)

// Work is how much work it is to derive a key, and so to try a passphrase.
type Work struct {
	MemoryKiB uint32 // KiB of memory, while a key is derived: MinMemoryKiB to MaxMemoryKiB
	Passes    uint32 // over the memory: 1 to MaxPasses
	Threads   uint8  // that may share the work: 1 to MaxThreads
}

// DefaultWork is the second recommended option of RFC 9106, section 4: 64 MiB and three passes, by four threads. It takes some tenths of a second.
var DefaultWork = Work{MemoryKiB: 64 << 10, Passes: 3, Threads: 4}

// Error says what is wrong with an ID, a passphrase or a Work. errors.Is(err, jay.ErrKey) is true. It never has a passphrase in it.
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

// Is makes errors.Is find jay.ErrKey.
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

// NewID returns the ID of a new key, with a random salt. It has at most 64 bytes, as the IDs of keys do. The error is an *Error for a Work that is out of bounds.
func NewID(w Work) (string, error) {
	if problem := w.check(); problem != "" {
		return "", &Error{Problem: problem}
	}
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // which never fails: it ends the program instead
	return idOf(w, salt), nil
}

// parse reads the ID of a key. Only what NewID writes is one, byte by byte: two texts for one key would be two keys to a database.
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

// Derive returns the key with this ID. It takes the memory and the time that the ID asks for. passphrase has 1 to 4,096 bytes, which are taken as they are: a line break at the end is part of it. It is not
// kept. Every passphrase gives a key: only the database says whether it is the right one, with jay.ErrKey.
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

// Keys returns keys for jay.Options.EncryptionKeys. newest is the ID of the newest key. ask returns the passphrase of an ID, and may ask a user for it. It is called when a key is asked for first, by one
// goroutine at a time, and again if there was an error. To change the passphrase, give another newest ID, and have ask tell IDs apart.
//
// The keys stay in memory. Errors of Newest and Key are an *Error, which wraps none, or what ask has returned as an error that is jay.ErrKey as well.
func Keys(newest string, ask func(id string) ([]byte, error)) jay.EncryptionKeys {
	return &source{newest: newest, ask: ask, known: make(map[string]jay.EncryptionKey)}
}

// source is what Keys returns.
type source struct {
	newest string
	ask    func(id string) ([]byte, error)

	mu    sync.Mutex // held while a key is derived: one at a time takes its memory
	known map[string]jay.EncryptionKey
}

// Newest implements jay.EncryptionKeys.
func (s *source) Newest() (jay.EncryptionKey, error) { return s.Key(s.newest) }

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
