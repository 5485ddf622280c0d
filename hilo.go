package jay

import (
	"context"
	"slices"

	"github.com/jaydb/jay/ids"
)

// RangeRequest asks for the next range of numbers of a HiLo tag. Its fields (see
// package ids):
//
//	Tag          string     the sequence: an ID prefix without its separator, such as "users"
//	LastSize     int64      the size of the client's last range; 0 for none
//	LastRangeAt  time.Time  Range.GrantedAt of that range; the zero time if unknown
//	Separator    string     between tag and number; "" is the database's
//	LastMax      int64      the highest number that the client was ever granted
//	Waiting      int        callers that wait for this range; used by the older generations of HiLo
type RangeRequest = ids.RangeRequest

// Range is a grant of HiLo numbers to one client, which may make IDs of them. Its
// fields (see package ids):
//
//	Prefix     string     such as "users/"
//	Low, High  int64      the first and the last number
//	Size       int64      the LastSize of the client's next RangeRequest
//	NodeTag    string     the end of the IDs, behind a hyphen
//	GrantedAt  time.Time  the LastRangeAt of the next RangeRequest
type Range = ids.Range

// NextRange reserves the next range of numbers of a HiLo tag, for a client that
// makes its own IDs: Prefix + number + "-" + NodeTag. The range is on disk before
// NextRange returns, under any durability, and no other call ever gets one of its
// numbers, whatever happens to the document Raven/HiLo/<tag>.
//
// The client passes the values of its last range (Size, GrantedAt, High), which
// determine the next size: twice the last within 30 seconds, half after 60, never
// less than 32 or more than 1,048,576. A new client passes zero values.
//
// NextRange raises the document's Max, or creates the document, and keeps its
// other fields. It returns an *IDError for a tag that makes no ID, ErrExhausted
// near 1<<63, ErrLeadTooLarge for a LastMax far above any number granted.
func (db *DB) NextRange(ctx context.Context, req RangeRequest) (Range, error) {
	if err := db.env.Enter(); err != nil {
		return Range{}, err
	}
	defer db.env.Exit()
	return db.ranges.Next(ctx, req)
}

// ReturnRange returns the numbers after last of the range that ended at end, and
// reports whether it was accepted: only once, only while that range is the newest
// of its tag and the document is unchanged, and only for low-1 <= last <= end.
// Otherwise nothing changes and the numbers stay unused.
func (db *DB) ReturnRange(ctx context.Context, tag string, last, end int64) (bool, error) {
	if err := db.env.Enter(); err != nil {
		return false, err
	}
	defer db.env.Exit()
	return db.ranges.Return(ctx, tag, last, end)
}

// HiLoClient draws IDs of the generation that Options.HiLoMode names. The database
// has a client of its own; others are independent of it, as if each ran on another
// machine. See DB.NewHiLoClient.
//
// Its methods, which are safe for concurrent use (see package ids):
//
//	Next(ctx, tag) (id, error)        the next ID of a tag, such as "users"
//	NextN(ctx, tag, n) (ids, error)   n IDs at once
//	Held(fn)                          calls fn(tag, low, high) for each range of unused numbers
//	Raise(floor)                      skips the numbers up to floor(tag)
//	Close(ctx) error                  gives unused numbers back
//
// They return ErrClientClosed after its Close, and ErrClosed after that of the
// database.
type HiLoClient = ids.Client

// NewHiLoClient returns an independent client, which never holds a number that
// another client holds. Its Next and NextN take a tag, such as "users". Close it
// before the database, or the rest of its ranges stays unused.
//
// RaiseCounters raises the client, too, and InspectIDs reports the numbers that it
// holds.
func (db *DB) NewHiLoClient() *HiLoClient {
	c := db.ranges.NewClient(db.env)
	db.clients.add(c)
	return c
}

// eachClient calls fn with the HiLo clients of this process.
func eachClient(db *DB, fn func(*ids.Client)) {
	fn(db.client)
	db.clients.mu.Lock()
	list := slices.Clone(db.clients.list)
	db.clients.mu.Unlock()
	for _, p := range list {
		if c := p.Value(); c != nil {
			fn(c)
		}
	}
}
