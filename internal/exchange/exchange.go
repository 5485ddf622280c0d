// Package exchange validates the keys and values of compare-exchange, and reads them.
// Package write writes them, in one commit with documents.
//
// The index of a value is the etag of its newest write. So it grows with every write of
// the database, and no two writes have the same index, even after a crash or a deletion.
package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Limits of keys and values.
const (
	MaxKeyBytes   = 512
	MaxValueBytes = 1 << 20 // value and metadata together
	MaxPage       = 1024    // values in a page
)

// Value is a compare-exchange value, in memory of its own.
type Value struct {
	Folded   string // its key, folded
	Key      string // the key as the caller wrote it
	Index    uint64
	Value    []byte // JSON
	Metadata []byte // a JSON object, or nil
}

// CheckKey validates a key and returns it folded. The key of a guard may be as long as
// its document's ID requires.
func CheckKey(rules ids.Rules, key string) (folded string, err error) {
	if key == "" {
		return "", &ids.Error{Rule: "a compare-exchange key has at least 1 byte", Limit: 1}
	}
	folded = rules.Fold(key)
	longest := rules
	longest.MaxBytes = MaxKeyBytes
	if IsGuard(folded) {
		longest.MaxBytes = len(format.GuardPrefix) + rules.MaxBytes
	}
	if err := longest.Check(key); err != nil {
		return "", fmt.Errorf("compare-exchange key: %w", err)
	}
	return folded, nil
}

// IsGuard reports whether a folded key is that of the guard of a document.
func IsGuard(folded string) bool { return strings.HasPrefix(folded, format.GuardPrefix) }

// A value of any kind is checked inside an object, as a document is.
var open, end = []byte(`{"Object":`), []byte(`}`)

// CheckValue checks that value is valid JSON by the rules for documents, though of any
// kind. It returns a copy without white space.
func CheckValue(value []byte, limits metadata.Limits) ([]byte, error) {
	if len(value) > MaxValueBytes {
		return nil, &metadata.Error{Rule: fmt.Sprintf("a compare-exchange value has at most %d bytes", MaxValueBytes), Limit: MaxValueBytes, Actual: len(value), Offset: MaxValueBytes}
	}
	if !json.Valid(value) { // inside the object, 1,"b":2 would be valid
		err := json.Unmarshal(value, new(json.RawMessage))
		at, detail := 0, "no value"
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			at, detail = int(syntax.Offset), syntax.Error()
		}
		return nil, &metadata.Error{Rule: "a compare-exchange value must be JSON", Detail: detail, Offset: at}
	}
	wrapped := bytes.Join([][]byte{open, value, end}, nil)
	limits.MaxBytes = len(wrapped)
	limits.MaxDepth++
	scanned, err := metadata.Scan(wrapped, limits)
	if broken := (*metadata.Error)(nil); errors.As(err, &broken) {
		broken.Offset = max(0, broken.Offset-len(open))
	}
	if err != nil {
		return nil, err
	}
	return scanned.Body[len(open) : len(scanned.Body)-len(end)], nil
}

// CheckMetadata checks the metadata of a value, which may be nil. It returns a copy
// without white space.
func CheckMetadata(custom []byte, limits metadata.Limits) ([]byte, error) {
	if custom == nil {
		return nil, nil
	}
	limits.MaxBytes = MaxValueBytes
	scanned, err := metadata.Scan(custom, limits)
	if err != nil {
		return nil, fmt.Errorf("metadata of a compare-exchange value: %w", err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(scanned.Body, &members); err != nil {
		return nil, err
	}
	for _, name := range []string{"@expires", "@refresh"} {
		if _, found := members[name]; found {
			return nil, fmt.Errorf("%w: a compare-exchange value with %s: only documents expire", ids.ErrUsage, name)
		}
	}
	if len(members) == 0 {
		return nil, nil
	}
	return bytes.Clone(scanned.Body), nil
}

// Get returns the value of a folded key, or nil if there is none.
func Get(r docs.Getter, folded string) (*Value, error) {
	record, closer, err := r.Get(format.ExchangeKey(nil, folded))
	if err == storage.ErrNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v, err := decode(folded, record)
	return v, errs.First(err, closer.Close())
}

// IndexAt returns the index of the value of a folded key; 0 if there is none.
func IndexAt(r docs.Getter, folded string) (uint64, error) {
	record, closer, err := r.Get(format.ExchangeKey(nil, folded))
	if err == storage.ErrNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	x, err := decodeShared(folded, record)
	return x.Index, errs.First(err, closer.Close())
}

// decode returns a copy of the value in a record.
func decode(folded string, record []byte) (*Value, error) {
	x, err := decodeShared(folded, record)
	if err != nil {
		return nil, err
	}
	v := &Value{Folded: folded, Key: folded, Index: x.Index, Value: bytes.Clone(x.Value), Metadata: bytes.Clone(x.Metadata)}
	if x.Key != nil {
		v.Key = string(x.Key)
	}
	return v, nil
}

// decodeShared decodes a record; the result shares its memory.
func decodeShared(folded string, record []byte) (format.Exchange, error) {
	x, err := format.DecodeExchange(record)
	if err != nil {
		err = fmt.Errorf("key %q: %w", errs.Shorten(folded), err)
	}
	return x, err
}

// Walker can iterate over values: a storage.Reader or Tx.
type Walker interface {
	Iterate(lo, hi []byte) (storage.Iterator, error)
}

// Each calls fn with the values whose folded keys begin with prefix and are greater than
// after, in their order, until fn returns false.
func Each(ctx context.Context, r Walker, prefix, after string, fn func(*Value) bool) error {
	return walk(ctx, r, prefix, after, func(folded string, record []byte) (bool, error) {
		v, err := decode(folded, record)
		return err == nil && fn(v), err
	})
}

// EachIndex is like Each but passes only the folded keys and indexes, without copying
// values.
func EachIndex(ctx context.Context, r Walker, prefix, after string, fn func(folded string, index uint64) bool) error {
	return walk(ctx, r, prefix, after, func(folded string, record []byte) (bool, error) {
		x, err := decodeShared(folded, record)
		return err == nil && fn(folded, x.Index), err
	})
}

// walk calls fn with the records of such keys. A record is valid until fn returns.
func walk(ctx context.Context, r Walker, prefix, after string, fn func(folded string, record []byte) (more bool, err error)) (err error) {
	lo, hi := format.ExchangeBounds(prefix)
	if after != "" {
		if next := append(format.ExchangeKey(nil, after), 0); bytes.Compare(next, lo) > 0 {
			lo = next
		}
	}
	it, err := r.Iterate(lo, hi)
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := fn(string(format.ExchangeName(it.Key())), it.Value())
		if err != nil || !more {
			return err
		}
	}
	return it.Error()
}
