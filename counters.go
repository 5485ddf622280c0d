package jay

import (
	"context"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/core"
)

// Counters are the counters of a database. An export contains them, so that a copy repeats no number.
type Counters struct {
	// Etag is the number of the newest write.
	Etag uint64 `json:"etag"`
	// Identities are the last used numbers, by folded request ("users|"). In a cluster, they cover only
	// documents that were written to this database. DB.Identities asks the cluster.
	Identities map[string]int64 `json:"identities,omitempty"`
	// HiLo are the highest numbers granted, by tag ("users"), folded.
	HiLo map[string]int64 `json:"hilo,omitempty"`
}

// Counters returns the present values of the counters.
func (db *DB) Counters(ctx context.Context) (c Counters, err error) {
	found, err := db.core.Counters(ctx)
	return Counters(found), err
}

// RaiseCounters durably raises every counter to at least the given number, and lowers none. It makes an import
// of another database's documents safe: no write that begins after RaiseCounters has returned makes an ID with
// a number that was used in the other database. HiLo clients of this process, the database's own client and
// those of NewHiLoClient, skip the numbers that they hold up to the given number. Only a range that NextRange
// granted before stays with its caller.
//
// In a database opened with Options.CopyTag, the number of an identity or of a HiLo
// tag is the floor that it needs.
//
// Skipped etags count as unread changes: after a raise by more than 10,000,000, a subscription with deletions
// may have to be reset, and the next backup may have to be a full one.
//
// RaiseCounters refuses a number above 1<<62 or below 0, and changes nothing.
func (db *DB) RaiseCounters(ctx context.Context, c Counters) error {
	return db.core.RaiseCounters(ctx, core.Counters(c))
}

// RangeRequest asks for the next range of numbers of a HiLo tag. Its fields (see
// package ids):
//
//	Tag          string     the sequence: an ID prefix without its separator, such as "users"
//	LastSize     int64      the size of the client's last range; 0 for none
//	LastRangeAt  time.Time  Range.GrantedAt of that range; the zero time if unknown
//	Separator    string     between tag and number; "" means the separator of the database
//	LastMax      int64      the highest number that the client was ever granted
//	Waiting      int        the number of callers that wait for this range; used by the older generations of HiLo
type RangeRequest = ids.RangeRequest

// Range is a range of HiLo numbers that is granted to one client, which may make IDs from them. Its fields (see
// package ids):
//
//	Prefix     string     such as "users/"
//	Low, High  int64      the first and the last number
//	Size       int64      the LastSize of the client's next RangeRequest
//	NodeTag    string     the suffix of the IDs, after a hyphen
//	GrantedAt  time.Time  the LastRangeAt of the next RangeRequest
type Range = ids.Range

// NextRange reserves the next range of numbers of a HiLo tag, for a client that makes its own IDs: Prefix +
// number + "-" + NodeTag. The range is on disk before NextRange returns, under any durability, and no other
// call ever gets one of its numbers, even if the document Raven/HiLo/<tag> is changed or deleted.
//
// The client passes the values of its last range (Size, GrantedAt, High), which
// determine the next size: twice the last within 30 seconds, half after 60, never
// less than 32 or more than 1,048,576. A new client passes zero values.
//
// NextRange raises the document's Max, or creates the document, and keeps its
// other fields. It returns an *IDError for a tag that makes no ID, ErrExhausted
// near 1<<63, ErrLeadTooLarge for a LastMax far above any number granted.
func (db *DB) NextRange(ctx context.Context, req RangeRequest) (Range, error) {
	if err := db.core.Env.Enter(); err != nil {
		return Range{}, err
	}
	defer db.core.Env.Exit()
	return db.core.Ranges.Next(ctx, req)
}

// ReturnRange returns the numbers after last of the range that ended at end, and
// reports whether it was accepted: only once, only while that range is the newest
// of its tag and the document is unchanged, and only for low-1 <= last <= end.
// Otherwise nothing changes and the numbers stay unused.
func (db *DB) ReturnRange(ctx context.Context, tag string, last, end int64) (bool, error) {
	if err := db.core.Env.Enter(); err != nil {
		return false, err
	}
	defer db.core.Env.Exit()
	return db.core.Ranges.Return(ctx, tag, last, end)
}

// HiLoClient draws IDs of the generation that Options.HiLoMode selects. The database has its own client. Other
// clients are independent of it, as if each ran on another machine. See DB.NewHiLoClient.
//
// Its methods, which are safe for concurrent use (see package ids):
//
//	Next(ctx, tag) (id, error)        the next ID of a tag, such as "users"
//	NextN(ctx, tag, n) (ids, error)   n IDs at once
//	Held(fn)                          calls fn(tag, low, high) for each range of unused numbers
//	Raise(floor)                      skips the numbers up to floor(tag)
//	Close(ctx) error                  returns unused numbers
//
// The methods return ErrClientClosed after Close of the client, and ErrClosed after Close of the database.
type HiLoClient = ids.Client

// NewHiLoClient returns an independent client, which never holds a number that another client holds. Its Next
// and NextN take a tag, such as "users". Close the client before the database; otherwise the rest of its ranges
// stays unused.
//
// RaiseCounters raises the client, too, and InspectIDs reports the numbers that it
// holds.
func (db *DB) NewHiLoClient() *HiLoClient {
	return db.core.NewClient()
}

// NextIdentity takes the next number of an identity, without a document, and returns the number. "users" and
// "users|" name the same counter, folded. As in Put, numbers whose document exists are skipped. The number is
// on disk before NextIdentity returns, under any durability.
//
// With RequestID a repeated call returns the number of the first call. With Options.Cluster, repeat the call on
// the same node; no other node ever gets the number.
func (db *DB) NextIdentity(ctx context.Context, name string, opts ...CallOption) (n int64, err error) {
	return onIdentity(ctx, db, core.IdentityCall{Name: name}, opts)
}

// SeedIdentity sets the last used number of an identity to value, so that the next document gets value+1, and
// returns the resulting number. A value below the present one changes nothing, unless force is set.
// SeedIdentity refuses negative values.
//
// In a database opened with Options.CopyTag, the first seed of an identity is the
// floor that it needs.
//
// Danger: forcing a counter down is the only way to make numbers repeat. Even then no document is overwritten,
// but new documents can get the IDs of deleted ones.
//
// Under Relaxed durability a crash can undo a forced seed downward: the previously reserved block of numbers
// stays reserved, and the counter continues after the block, above the forced value. Then seed the identity
// again.
func (db *DB) SeedIdentity(ctx context.Context, name string, value int64, force bool, opts ...CallOption) (last int64, err error) {
	return onIdentity(ctx, db, core.IdentityCall{Name: name, Seed: true, Value: value, Force: force}, opts)
}

// Identities returns the last used number of every identity, by the folded request ("users|"). With
// Options.Cluster, the numbers cover all nodes.
func (db *DB) Identities(ctx context.Context) (map[string]int64, error) {
	if db.opts.Cluster != nil {
		return db.core.ClusterIdentities(ctx)
	}
	counters, err := db.Counters(ctx)
	return counters.Identities, err
}

// onIdentity carries out NextIdentity and SeedIdentity.
func onIdentity(ctx context.Context, db *DB, call core.IdentityCall, opts []CallOption) (int64, error) {
	var o callOptions
	for _, option := range opts {
		option.call(&o)
	}
	if o.given {
		call.RequestID = &o.id
	}
	return db.core.OnIdentity(ctx, call)
}
