package backups

import (
	"errors"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sealed"
)

// remembered are keys of which each is asked for once by its ID, as a directory may have many backups with one key.
type remembered sealed.Keys

// remember returns keys that are remembered; nil for nil.
func remember(keys sealed.Keys) jay.EncryptionKeys {
	if keys == nil {
		return nil
	}
	return remembered(keys.Remembered())
}

// Newest implements jay.EncryptionKeys.
func (r remembered) Newest() (jay.EncryptionKey, error) { return r.Key("") }

// Key implements jay.EncryptionKeys.
func (r remembered) Key(id string) (jay.EncryptionKey, error) {
	key, err := r(id)
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

// withoutKey reports whether the key of a backup of the chain is missing or wrong. Then neither its
// age nor whether it is whole is known.
func (c *chain) withoutKey() bool {
	d := directory{backups: c.links}
	_, found := d.withoutKey()
	return found
}
