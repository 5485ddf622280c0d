package revisions

import (
	"context"
	"errors"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Recover repairs the records about revisions after a loss that was accepted, so that they
// match the revisions that are left and no later write reuses the number of one that
// survived. Lost revisions leave gaps in the numbers. Recover reads all revisions; nothing
// may be written meanwhile.
func Recover(e *env.Env) error {
	counts := make(map[string]int64)
	for after := ""; ; {
		next, err := recoverSome(e, after, counts)
		if err != nil {
			return err
		}
		if after = next; next == "" {
			break
		}
	}
	return e.Engine.Update(context.Background(), true, func(tx storage.Tx) (err error) {
		it, err := tx.Iterate(format.RevisionCountBounds[0], format.RevisionCountBounds[1])
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, it.Close()) }()
		for ok := it.First(); ok; ok = it.Next() {
			tx.Delete(it.Key())
		}
		for collection, n := range counts {
			tx.Add(format.RevisionCountKey(nil, collection), n)
		}
		return it.Error()
	})
}

// recoverSome recovers up to StepDocuments documents with folded IDs after after. It
// returns the last of them, or "" at the end.
func recoverSome(e *env.Env, after string, counts map[string]int64) (next string, err error) {
	latest := e.Engine.Latest()
	defer func() { err = errs.First(err, latest.Close()) }()
	lo := format.HistoryBounds[0]
	if after != "" {
		lo = format.PrefixEnd(format.HistoryKey(nil, after))
	}
	it, err := latest.Iterate(lo, format.HistoryBounds[1])
	if err != nil {
		return "", err
	}
	defer func() { err = errs.First(err, it.Close()) }()

	type survivor struct {
		id       string
		h        format.History
		deletion bool // the last
	}
	var found []survivor
	for ok := it.First(); ok; ok = it.Next() {
		id, number, err := format.SplitRevisionKey(it.Key())
		if err != nil {
			return "", err
		}
		if n := len(found); n == 0 || found[n-1].id != string(id) {
			if n == StepDocuments {
				next = found[n-1].id
				break
			}
			found = append(found, survivor{id: string(id)})
		}
		one := &found[len(found)-1]
		if number == 0 {
			continue
		}
		s, err := decode(it.Value(), number)
		if err != nil {
			return "", err
		}
		if one.h.First == 0 {
			one.h.First = number
		}
		one.h.Last, one.deletion = number, s.Deletion
		counts[format.CollectionKey(string(s.Header.Collection))]++
	}
	if err := it.Error(); err != nil || len(found) == 0 {
		return "", err
	}
	return next, e.Engine.Update(context.Background(), true, func(tx storage.Tx) error {
		for _, one := range found {
			if err := recoverOne(tx, one.id, one.h, one.deletion); err != nil {
				return err
			}
		}
		return nil
	})
}

// recoverOne writes the history of a document whose surviving revisions are h, without
// a first one if there are none. A document whose last revision is a deletion is listed as
// deleted, even if it is there again as no revision: see write.Txn.numberFirst.
func recoverOne(tx storage.Tx, foldedID string, h format.History, deletion bool) error {
	if deletion {
		tx.Set(format.DeletedKey(nil, foldedID), nil, nil)
	}
	value, closer, err := tx.Get(format.DocumentKey(nil, foldedID))
	if err != nil && err != storage.ErrNotFound {
		return err
	}
	if err == storage.ErrNotFound {
		if h.First == 0 {
			tx.Delete(format.HistoryKey(nil, foldedID))
			return nil
		}
		tx.Set(format.DeletedKey(nil, foldedID), nil, nil)
	} else {
		header, body, err := metadata.Decode(value)
		if err == nil && header.Revision > 0 && h.First == 0 {
			h = format.History{First: header.Revision, Last: header.Revision - 1}
		}
		if err == nil && header.Revision > 0 && header.Revision != h.Last+1 {
			header.Revision = h.Last + 1
			tx.Set(format.DocumentKey(nil, foldedID), append(header.AppendTail(header.AppendHead(nil)), body...), nil)
		}
		if err := errs.First(err, closer.Close()); err != nil {
			return err
		}
	}
	if h.First == 0 {
		h = format.NoHistory
	}
	tx.Set(format.HistoryKey(nil, foldedID), h.Append(nil), nil)
	return nil
}
