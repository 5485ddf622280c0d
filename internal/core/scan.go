package core

import (
	"context"

	"github.com/jaydb/jay/internal/docs"
)

// ReadBatch returns the first documents of a range, at most n and about so many bytes,
// as they are now, on disk or not: a write depends on them, which comes after them. The caller
// of ctx pays for long ones.
func (db *Database) ReadBatch(ctx context.Context, over docs.Range, n, bytes int) ([]*docs.Document, error) {
	w, err := db.Scan(over, db.Env.Engine.Latest)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	w.PayWith(ctx)
	var found []*docs.Document
	for size := 0; len(found) < n && size < bytes; {
		doc, err := w.Next(ctx)
		if err != nil {
			return nil, err
		}
		if doc == nil {
			break
		}
		size += len(doc.JSON())
		found = append(found, doc)
	}
	return found, nil
}
