package core

import (
	"context"
	"errors"

	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// CheckCounts compares all numbers that are kept with what they count, in one snapshot,
// unless not everything is counted yet.
func (db *Database) CheckCounts(ctx context.Context) (err error) {
	if err := db.Env.Enter(); err != nil {
		return err
	}
	defer db.Env.Exit()
	snapshot := db.Env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	if err := counts.Check(snapshot); !errors.Is(err, counts.ErrNotReady) {
		return err
	}
	return nil
}

// CheckContents compares the contents of attachments with the documents that have them,
// in one snapshot.
func (db *Database) CheckContents(ctx context.Context) error {
	w, err := db.Scan(docs.Range{}, db.Env.Engine.Snapshot)
	if err != nil {
		return err
	}
	defer w.Close()
	references := make(map[format.Hash]uint64)
	for more := true; more; {
		var damaged error
		more, err = w.Headers(ctx, 8192, func(_ []byte, h *metadata.Header, _ int) {
			all, err := format.DecodeAttachments(h.Attachments)
			damaged = errs.First(damaged, err)
			for i := range all {
				references[all[i].Hash]++
			}
		})
		if err = errs.First(damaged, err); err != nil {
			return err
		}
	}
	return w.Use(func(r storage.Reader) error { return attachments.Check(ctx, r, references) })
}

// CheckRevisions checks every revision: see revisions.Check.
func (db *Database) CheckRevisions() (err error) {
	snapshot := db.Env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	return revisions.Check(snapshot)
}
