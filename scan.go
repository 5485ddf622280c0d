package jay

import (
	"context"
	"fmt"
	"iter"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/storage"
)

// Scan selects the documents of DB.Documents. The zero value selects all of them.
type Scan struct {
	// Collection limits the walk to one collection; "@empty" is one too.
	Collection string
	// Prefix limits the walk to IDs that begin with it, compared as IDs are.
	Prefix string
	// Matches limits the walk to IDs whose part behind Prefix is like this
	// pattern, and Exclude leaves out those that are like this one. * stands for
	// any characters, ? for one, and | separates alternatives, as in RavenDB's
	// LoadStartingWith: "*-A|*-B". Patterns are compared as IDs are. Every ID
	// behind Prefix is looked at. At most 1,024 bytes each, else ErrUsage.
	Matches string
	Exclude string
	// After begins behind this ID, whether or not it is there: for paging. With Reverse
	// the IDs below it are behind it.
	After string
	// Reverse walks from the greatest ID to the least: with server-side IDs, whose
	// numbers rise, from the newest document to the oldest.
	Reverse bool
	// Limit is the most documents to walk over; 0 means no limit.
	Limit int
}

// documents returns the range of documents that s selects.
func (s Scan) documents() docs.Range {
	return docs.Range{Collection: s.Collection, Prefix: s.Prefix, Matches: s.Matches, Exclude: s.Exclude, After: s.After, Reverse: s.Reverse}
}

// startScan opens a Cursor over documents of the snapshot that take returns. It is for
// callers that are not inside the gate.
func (db *DB) startScan(over docs.Range, take func() storage.Snapshot) (*docs.Cursor, error) {
	if err := db.env.Enter(); err != nil {
		return nil, err
	}
	defer db.env.Exit()
	return db.docs.Scan(over, take)
}

// Documents iterates over documents in the byte order of their folded IDs, so that
// users/10-A comes before users/2-A, or in the opposite order. All are as they were when the iteration began.
// Each document belongs to the caller. Leaving the loop early releases everything;
// if the iteration fails, its last pair is a nil document and the error.
//
// A collection is read as one range of documents where its IDs begin with its name,
// as Orders' orders/33-A does; every other document costs a look-up.
func (db *DB) Documents(ctx context.Context, s Scan) iter.Seq2[*Document, error] {
	return func(yield func(*Document, error) bool) {
		var span *observe.Span
		if db.watch != nil {
			span = db.watch.Start(ctx, observe.Operation{Verb: "scan", Collection: s.Collection})
			ctx = span.Context()
			defer span.Finish()
		}
		over := s.documents()
		over.Moment = db.docs.Moment()
		w, err := db.startScan(over, db.env.Engine.Snapshot)
		if err != nil {
			yield(nil, span.Fail(fmt.Errorf("documents: %w", err)))
			return
		}
		defer w.Close()
		for n := 0; s.Limit <= 0 || n < s.Limit; n++ {
			span.Resume()
			doc, err := w.Next(ctx)
			span.Pause()
			if err != nil {
				yield(nil, span.Fail(fmt.Errorf("documents: %w", err)))
				return
			}
			if doc == nil {
				return
			}
			span.Found()
			if !yield((*Document)(doc), nil) {
				return
			}
		}
	}
}
