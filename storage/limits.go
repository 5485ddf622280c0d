package storage

import (
	"fmt"
	"time"
)

// MaxTxBytes is the most that one transaction may stage on any engine: 1 GiB of keys and
// values. A commit needs its bytes twice in memory, in the staging and in the
// engine's batch, and a small machine must bear that. Pebble's limit is 4 GiB.
const MaxTxBytes = 1 << 30

// Limits say how much an engine can store, and how long it can show one moment. 0 means that the
// engine has no limit of its own.
type Limits struct {
	KeyBytes   int   // of a key
	ValueBytes int   // of a value
	TxBytes    int64 // of the keys and values of a transaction; at most MaxTxBytes, which 0 means

	// SnapshotAge is the least time for which a Snapshot, or an Iterator of a Reader, shows its
	// moment. After that each read, and each move of an iterator, may return ErrSnapshotExpired, but
	// never another state. 0 means as long as it is open. SnapshotAge does not apply to the reads of a
	// transaction.
	SnapshotAge time.Duration
}

// Sizes are the sizes of the keys and values that a transaction stages.
type Sizes struct {
	Key, Value int   // the longest ones
	Tx         int64 // all keys and values
}

// Add adds a key and its value.
func (s *Sizes) Add(key, value int) {
	s.Key, s.Value = max(s.Key, key), max(s.Value, value)
	s.Tx += int64(key) + int64(value)
}

// Check returns a *LimitError for sizes that are above the limits.
func (l Limits) Check(s Sizes) error {
	most := l.TxBytes
	if most == 0 {
		most = MaxTxBytes
	}
	switch {
	case l.KeyBytes > 0 && s.Key > l.KeyBytes:
		return &LimitError{What: "key", Bytes: int64(s.Key), Most: int64(l.KeyBytes)}
	case l.ValueBytes > 0 && s.Value > l.ValueBytes:
		return &LimitError{What: "value", Bytes: int64(s.Value), Most: int64(l.ValueBytes)}
	case s.Tx > most:
		return &LimitError{What: "transaction", Bytes: s.Tx, Most: most}
	}
	return nil
}

// LimitError is the error of a transaction that stages more than its engine can store. It is an
// ErrTooLarge. Nothing was changed.
type LimitError struct {
	What  string // "key", "value" or "transaction"
	Bytes int64  // its size; for a transaction, the bytes that were staged until then
	Most  int64
}

// Error names the limit and what is above it.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%v: a %s of %d bytes, and the storage engine takes %d at most; nothing was changed", ErrTooLarge, e.What, e.Bytes, e.Most)
}

// Unwrap returns ErrTooLarge.
func (e *LimitError) Unwrap() error { return ErrTooLarge }
