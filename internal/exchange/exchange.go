// Package exchange decides what a compare-exchange key and value may be, and reads them.
// Package write writes them, with documents in one commit.
//
// A value has an index, which is the etag that its newest write has drawn: so it grows
// with every write of the database, and no write, before or after a crash or a deletion,
// has the same one.
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
	MaxPage       = 1024    // values that Page returns at a time
)

// Value is a compare-exchange value, in memory of its own.
type Value struct {
	Folded   string // its key, folded
	Key      string // as it was written
	Index    uint64
	Value    []byte // JSON
	Metadata []byte // a JSON object, or nil
}

// CheckKey checks a key, and returns it folded. The key of a guard may be as long as the
// ID of its document makes it.
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

// The wrapping of a value for the check of documents.
var open, end = []byte(`{"Object":`), []byte(`}`)

// CheckValue checks that value is JSON as documents have it, but of any kind, and
// returns it without white space, in memory of its own.
func CheckValue(value []byte, limits metadata.Limits) ([]byte, error) {
	if len(value) > MaxValueBytes {
		return nil, &metadata.Error{Rule: fmt.Sprintf("a compare-exchange value has at most %d bytes", MaxValueBytes), Limit: MaxValueBytes, Actual: len(value), Offset: MaxValueBytes}
	}
	if !json.Valid(value) { // the wrapping would let 1,"b":2 pass
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

// CheckMetadata checks the metadata of a value, which may be nil, and returns it without
// white space.
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

// IndexAt returns the index of a folded key, 0 if there is no value.
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

// decode returns the value of a record, in memory of its own.
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

// decodeShared decodes a record without copying what it has.
func decodeShared(folded string, record []byte) (format.Exchange, error) {
	x, err := format.DecodeExchange(record)
	if err != nil {
		err = fmt.Errorf("key %q: %w", errs.Shorten(folded), err)
	}
	return x, err
}

// Walker is what values are walked over with: a storage.Reader or Tx.
type Walker interface {
	Iterate(lo, hi []byte) (storage.Iterator, error)
}

// Each calls fn with the values whose folded key begins with prefix and comes after
// after, in the order of their folded keys, until fn returns false.
func Each(ctx context.Context, r Walker, prefix, after string, fn func(*Value) bool) error {
	return walk(ctx, r, prefix, after, func(folded string, record []byte) (bool, error) {
		v, err := decode(folded, record)
		return err == nil && fn(v), err
	})
}

// EachIndex is Each for the indexes of the values: it copies no value.
func EachIndex(ctx context.Context, r Walker, prefix, after string, fn func(folded string, index uint64) bool) error {
	return walk(ctx, r, prefix, after, func(folded string, record []byte) (bool, error) {
		x, err := decodeShared(folded, record)
		return err == nil && fn(folded, x.Index), err
	})
}

// walk calls fn with records, which are valid until it returns.
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
