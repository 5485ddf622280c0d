package verify

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// readRequests reads the results of requests: each has a number, and each number a result.
// Results lie before the state, and numbers behind it. Where keys cannot be read, nothing
// is said to be missing.
func (v *verifier) readRequests() error {
	var state format.RequestState
	seen := false
	numbers := make(map[uint64]string)
	results := uint64(0)
	unread := v.report.Unread
	err := v.readAll(format.SpaceRequests, func(_ storage.Reader, key, value []byte) error {
		switch {
		case len(key) > 3 && key[1] == 'i' && key[len(key)-1] == 0:
			number, text, err := format.DecodeRequest(value)
			if err != nil || !json.Valid(text) {
				v.damage(RequestRecord, key, "the result cannot be decoded")
				return nil
			}
			results++
			numbers[number] = string(key[2 : len(key)-1])
		case bytes.Equal(key, format.RequestStateKey):
			var err error
			if state, err = format.DecodeRequestState(value); err != nil {
				v.damage(RequestRecord, key, "%v", err)
			}
			seen = err == nil
		case len(key) == 10 && key[1] == 's':
			number := binary.BigEndian.Uint64(key[2:])
			if v.report.Unread > unread {
				return nil
			}
			if numbers[number] != string(value) || seen && (number < state.First || number >= state.Next) {
				v.damage(RequestRecord, key, "number %d is not that of the result of %s", number, quote(string(value)))
				return nil
			}
			delete(numbers, number)
		default:
			v.damage(KeyMalformed, key, "the key is none of a result, a number or the state")
		}
		return nil
	})
	if err != nil || v.report.Unread > unread {
		return err
	}
	for number, id := range numbers {
		v.damage(RequestRecord, format.RequestKey(id), "it has the number %d, which is not there", number)
	}
	if seen && results != state.Next-state.First {
		v.damage(RequestRecord, format.RequestStateKey, "there are %d results, and %d are counted", results, state.Next-state.First)
	}
	return nil
}
