package env

import (
	"encoding/json"

	"github.com/jaydb/jay/storage"
)

// SetJSON stages a record whose value is JSON.
func SetJSON(tx storage.Tx, key []byte, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tx.Set(key, text, nil)
	return nil
}
