package workload

import (
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/jaydb/jay/bench/engine"
)

// prefix begins all IDs but GUIDs.
const prefix = "orders/"

// newKey returns the ID of document number, as HiLo makes it.
func newKey(number int) engine.Key { return keyWithTag(number, 'A') }

// missingKey returns an ID between those of documents, without a document.
func missingKey(number int) engine.Key { return keyWithTag(number, 'B') }

func keyWithTag(number int, tag byte) engine.Key {
	b := make([]byte, 0, 24)
	b = append(b, prefix...)
	b = strconv.AppendInt(b, int64(number)+1, 10)
	b = append(b, '-', tag)
	return engine.Key{Text: string(b), Bytes: b}
}

// freshKey returns an ID for a new document.
func (r *Run) freshKey(number int) (engine.Key, error) {
	var id uuid.UUID
	var err error
	switch r.w.Settings.IDs {
	case engine.HiLo:
		return newKey(number), nil
	case engine.GUIDv4:
		id, err = uuid.NewRandom()
	case engine.GUIDv7:
		id, err = uuid.NewV7()
	default:
		err = fmt.Errorf("unknown kind of ID %q", r.w.Settings.IDs)
	}
	text := id.String()
	return engine.Key{Text: text, Bytes: []byte(text)}, err
}
