package keys

import (
	"fmt"

	"github.com/jaydb/jay/storage/lsm"
)

// NeededBy returns the ID of the key without which the database in directory dir does not open: the newest that it was given. It is "" for a database that is not encrypted. No key
// is needed for that, no file is changed, and the database may be in use.
//
// The error is jay.ErrNoDatabase if there is none, and of a directory that is damaged or cannot be read what jay.Open returns.
func NeededBy(dir string) (id string, err error) {
	found, err := lsm.ReadEncryption(nil, dir)
	if err != nil {
		return "", fmt.Errorf("the key of %q: %w", dir, err)
	}
	return found.Key, nil
}
