package sealed

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/jaydb/jay/internal/errs"
)

// MaxIDBytes is the longest ID of an encryption key, in bytes.
// Part of the on-disk format. Must not change.
const MaxIDBytes = 64

// Key is an encryption key and its ID. The ID is stored in clear.
type Key struct {
	ID     string // 1 to MaxIDBytes bytes
	Secret []byte // KeyBytes random bytes
}

// Keys returns the encryption key with an ID, or, for "", the newest one, with which new files are
// encrypted. It may be called by several goroutines at once, and the Ring remembers its results.
type Keys func(id string) (Key, error)

// DatabaseID is a random number of a database, by which its files are told from those of another database
// with the same keys.
type DatabaseID [16]byte

// NewDatabaseID returns a random DatabaseID.
func NewDatabaseID() (id DatabaseID) {
	_, _ = rand.Read(id[:])
	return id
}

// Ring has the encryption keys of one database. It asks for each key once.
type Ring struct {
	keys     Keys
	database DatabaseID

	remembered
	newest string // ID of the key of new files. Guarded by remembered.mu.
}

// remembered are keys by their IDs. It is safe for concurrent use.
type remembered struct {
	mu    sync.Mutex
	known map[string]Key // Guarded by mu.
}

// get returns the key with an ID, for which it asks if it is not known.
func (r *remembered) get(id string, ask Keys) (Key, error) {
	r.mu.Lock()
	key, found := r.known[id]
	r.mu.Unlock()
	if found {
		return key, nil
	}
	key, err := ask(id) // which may take long
	if err != nil {
		return key, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[id] = key
	return key, nil
}

// Remembered returns keys of which each is asked for once by its ID, and the newest one each time; nil for nil.
func (keys Keys) Remembered() Keys {
	if keys == nil {
		return nil
	}
	r := &remembered{known: make(map[string]Key)}
	return func(id string) (Key, error) {
		if id == "" {
			return keys(id)
		}
		return r.get(id, keys)
	}
}

// NewRing returns the ring of a database. It asks for the newest key. If that is not to be had, the error is
// an errs.ErrKey.
func NewRing(database DatabaseID, keys Keys) (*Ring, error) {
	r := &Ring{keys: keys, database: database, remembered: remembered{known: make(map[string]Key)}}
	if _, err := r.Renew(); err != nil {
		return nil, err
	}
	return r, nil
}

// Renew asks for the newest key and returns its ID. Files that are made from now on are encrypted with it. After an
// error the key is the one before.
func (r *Ring) Renew() (id string, err error) {
	key, err := r.Next()
	if err != nil {
		return "", err
	}
	r.Use(key)
	return key.ID, nil
}

// Next asks for the newest key, and does not use it yet.
func (r *Ring) Next() (Key, error) {
	key, err := r.keys.ask("")
	if err != nil {
		return Key{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, found := r.known[key.ID]; found && !bytes.Equal(old.Secret, key.Secret) {
		return Key{}, fmt.Errorf("%w: the key %q is not the one that had this ID before", errs.ErrKey, key.ID)
	}
	return key, nil
}

// Use encrypts the files that are made from now on with a key of Next.
func (r *Ring) Use(key Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[key.ID], r.newest = key, key.ID
}

// ask asks for a key, and checks the answer.
func (keys Keys) ask(id string) (Key, error) {
	what := "the newest key"
	if id != "" {
		what = fmt.Sprintf("the key %q", id)
	}
	key, err := keys(id)
	switch {
	case err != nil:
		return Key{}, fmt.Errorf("%w: %s cannot be had: %w", errs.ErrKey, what, err)
	case key.ID == "" || len(key.ID) > MaxIDBytes:
		return Key{}, fmt.Errorf("%w: the ID of %s has %d bytes; it must have 1 to %d", errs.ErrKey, what, len(key.ID), MaxIDBytes)
	case len(key.Secret) != KeyBytes:
		return Key{}, fmt.Errorf("%w: the key %q has %d bytes; it must have %d", errs.ErrKey, key.ID, len(key.Secret), KeyBytes)
	case id != "" && key.ID != id:
		return Key{}, fmt.Errorf("%w: asked for %s, got the key %q", errs.ErrKey, what, key.ID)
	}
	key.Secret = bytes.Clone(key.Secret)
	return key, nil
}

// key returns the key with an ID.
func (r *Ring) key(id string) (Key, error) { return r.get(id, r.keys.ask) }

// Newest returns the ID of the key of new files.
func (r *Ring) Newest() string { return r.current().ID }

// current returns the key of new files.
func (r *Ring) current() Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[r.newest]
}

// saltBytes is the length of the salt with which a wrapping key is derived.
const saltBytes = 32

// wrappedBytes is the length of a wrapped file key: salt, and the sealed file key.
// Part of the on-disk format. Must not change.
const wrappedBytes = saltBytes + KeyBytes + sealBytes

// wrapInfo separates this use of an encryption key from any other.
// Part of the on-disk format. Must not change.
const wrapInfo = "jay: wrap a file key, version 1"

// wrappingKey derives the key that encrypts one file key. As each has a salt of its own, an encryption key may wrap any number
// of file keys.
func wrappingKey(k Key, salt []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, k.Secret, salt, wrapInfo, KeyBytes)
}

// wrap encrypts a file key. about is authenticated with it.
func wrap(k Key, fileKey, about []byte) ([]byte, error) {
	salt := make([]byte, saltBytes, wrappedBytes)
	_, _ = rand.Read(salt)
	key, err := wrappingKey(k, salt)
	if err != nil {
		return nil, err
	}
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	return aead.Seal(salt, nil, fileKey, about), nil
}

// unwrap decrypts a file key. It returns false if the key is not the one that wrapped it, or if anything was changed.
func unwrap(k Key, wrapped, about []byte) (fileKey []byte, ok bool, err error) {
	key, err := wrappingKey(k, wrapped[:saltBytes])
	if err != nil {
		return nil, false, err
	}
	aead, err := newAEAD(key)
	if err != nil {
		return nil, false, err
	}
	fileKey, err = aead.Open(nil, nil, wrapped[saltBytes:], about)
	return fileKey, err == nil && len(fileKey) == KeyBytes, nil
}

// The identity says which database a directory holds, and shows whether a key is the right one before any
// other file is opened: it is a header whose file key encrypts nothing. It is stored as
// a file of its own, and consists of
//
//	magic "JAYKEYS" and version 1 (8) | database ID (16) | slot of a header (240) | CRC-32C of all before (4)
//
// Part of the on-disk format. Must not change.
const (
	identityMagic = "JAYKEYS\x01"
	identityBytes = len(identityMagic) + len(DatabaseID{}) + slotBytes + 4
)

// identityName is the name in the slot of an identity. No file has it.
const identityName = "identity"

// Identity returns the identity of the ring's database, made with the newest key.
func (r *Ring) Identity() ([]byte, error) { return r.IdentityWith(r.current()) }

// IdentityWith is Identity, made with a key of Next.
func (r *Ring) IdentityWith(key Key) ([]byte, error) {
	b := append([]byte(identityMagic), r.database[:]...)
	slot, err := makeSlot(key, newFileKey(), b, identityName)
	if err != nil {
		return nil, err
	}
	b = append(b, slot...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

// IdentityKey returns the ID of the key that an identity was made with; "" if the identity is not whole.
func IdentityKey(identity []byte) string {
	if len(identity) != identityBytes {
		return ""
	}
	id, _, ok := parseSlot(identity[identityBytes-4-slotBytes : identityBytes-4])
	if !ok {
		return ""
	}
	return id
}

// IdentityByNewest reports whether an identity was made with the newest key.
func (r *Ring) IdentityByNewest(identity []byte) bool { return IdentityKey(identity) == r.current().ID }

// OpenIdentity returns the ring of the database whose identity was read from the file name. An identity that is not
// whole is a *Damage. If a key is not to be had, or is not the one that the database was
// encrypted with, the error is an errs.ErrKey.
func OpenIdentity(identity []byte, name string, keys Keys) (*Ring, error) {
	if len(identity) != identityBytes || string(identity[:len(identityMagic)]) != identityMagic {
		return nil, &Damage{name, 0, fmt.Sprintf("it is not the identity of an encrypted database, of %d bytes", identityBytes)}
	}
	text := identity[:identityBytes-4]
	if crc32.Checksum(text, castagnoli) != binary.BigEndian.Uint32(identity[len(text):]) {
		return nil, &Damage{name, 0, "the identity of the encrypted database does not have its checksum"}
	}
	about, slot := text[:len(text)-slotBytes], text[len(text)-slotBytes:]
	r, err := NewRing(DatabaseID(about[len(identityMagic):]), keys)
	if err != nil {
		return nil, err
	}
	id, _, ok := parseSlot(slot)
	if !ok {
		return nil, &Damage{name, int64(len(about)), "the wrapped key does not have its checksum"}
	}
	key, err := r.key(id)
	if err != nil {
		return nil, err
	}
	_, ok, err = openSlot(key, slot, about)
	if err == nil && !ok {
		err = fmt.Errorf("%w: the key %q is not the one that the database was encrypted with", errs.ErrKey, id)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}
