package backups

import (
	"errors"
	"sync"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sealed"
)

// remembered are keys of which each is asked for once by its ID, as a directory may have many backups with one key. Its methods are
// safe for concurrent use.
type remembered struct {
	keys jay.EncryptionKeys

	mu    sync.Mutex
	known map[string]jay.EncryptionKey // Guarded by mu.
}

// remember returns keys that are remembered; nil for nil.
func remember(keys jay.EncryptionKeys) jay.EncryptionKeys {
	if keys == nil {
		return nil
	}
	return &remembered{keys: keys, known: make(map[string]jay.EncryptionKey)}
}

// Newest implements jay.EncryptionKeys.
func (r *remembered) Newest() (jay.EncryptionKey, error) { return r.keys.Newest() }

// Key implements jay.EncryptionKeys.
func (r *remembered) Key(id string) (jay.EncryptionKey, error) {
	r.mu.Lock()
	key, found := r.known[id]
	r.mu.Unlock()
	if found {
		return key, nil
	}
	key, err := r.keys.Key(id) // which may take long
	if err != nil {
		return key, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[id] = key
	return key, nil
}

// ofDatabase are the keys of a database.
type ofDatabase sealed.Keys

// Newest implements jay.EncryptionKeys.
func (k ofDatabase) Newest() (jay.EncryptionKey, error) { return k.Key("") }

// Key implements jay.EncryptionKeys.
func (k ofDatabase) Key(id string) (jay.EncryptionKey, error) {
	key, err := k(id)
	return jay.EncryptionKey(key), err
}

// withoutKey returns the first backup whose key is missing or wrong.
func (d *directory) withoutKey() (b Backup, found bool) {
	for _, b := range d.backups {
		if errors.Is(b.Err, jay.ErrKey) {
			return b, true
		}
	}
	return b, false
}

// withoutKey reports whether the key of a backup of the chain is missing or wrong. Then neither its age nor whether it is whole is known.
func (c *chain) withoutKey() bool {
	d := directory{backups: c.links}
	_, found := d.withoutKey()
	return found
}
