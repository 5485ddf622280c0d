package core

import (
	"context"
	"time"

	"github.com/jaydb/jay/internal/agenda"
	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/storage"
)

// Moment is what reads of one snapshot with Options.ExactExpiry agree on. The zero value
// shows documents until they are deleted.
type Moment struct {
	At      time.Time // documents are left out that have expired by then
	DueFrom time.Time // none in the snapshot has before
}

// BegunMoment is a moment before its snapshot is taken.
type BegunMoment struct {
	at   time.Time
	mark agenda.Mark
}

// BeginMoment begins a moment: the snapshot is taken next, and then EndMoment called.
func (db *Database) BeginMoment() (b BegunMoment) {
	if b.at = db.Docs.Moment(); !b.at.IsZero() {
		b.mark = db.Writer.Agenda.Begin()
	}
	return b
}

// EndMoment ends a moment, once its snapshot is taken.
func (db *Database) EndMoment(b BegunMoment) Moment {
	if b.at.IsZero() {
		return Moment{}
	}
	return Moment{b.at, db.Writer.Agenda.From(b.mark)}
}

// CountsAt returns how many documents each collection has in a snapshot, by folded name.
// payer pays for the map while it grows.
func CountsAt(ctx context.Context, snapshot storage.Reader, at Moment, payer *budget.Payer) (map[string]int64, error) {
	all, err := counts.All(snapshot, payer)
	if err != nil || at.At.IsZero() {
		return all, err
	}
	err = EachGone(ctx, snapshot, at, func(collection []byte) {
		name := string(collection)
		if all[name]--; all[name] == 0 {
			delete(all, name)
		}
	})
	return all, err
}

// CountAt is CountsAt for one collection.
func CountAt(ctx context.Context, snapshot storage.Reader, foldedCollection string, at Moment) (int64, error) {
	n, err := counts.Of(snapshot, foldedCollection)
	if err != nil || at.At.IsZero() {
		return n, err
	}
	err = EachGone(ctx, snapshot, at, func(collection []byte) {
		if string(collection) == foldedCollection {
			n--
		}
	})
	return n, err
}

// EachGone calls fn with the folded collection of each document that has expired.
func EachGone(ctx context.Context, snapshot storage.Reader, at Moment, fn func(foldedCollection []byte)) error {
	seen := 0
	err := docs.EachGone(snapshot, at.DueFrom, at.At, func(collection []byte) bool {
		fn(collection)
		seen++
		return seen%1024 != 0 || ctx.Err() == nil
	})
	return errs.First(err, ctx.Err())
}
