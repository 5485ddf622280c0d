package docs

import (
	"fmt"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Ahead are documents that were read together, by their folded IDs; nil for one that is not there.
type Ahead map[string]*Document

// ReadAhead reads documents together, if that takes less time than reading them one by one: from a
// server, which is asked once. Otherwise it reads nothing, and returns nil.
func (r *Reader) ReadAhead(from Getter, folded []string) (Ahead, error) {
	many, is := from.(storage.ManyGetter)
	if !is || len(folded) < 2 {
		return nil, nil
	}
	keys := make([][]byte, len(folded))
	a := make(Ahead, len(folded))
	for i, id := range folded {
		keys[i], a[id] = format.DocumentKey(nil, id), nil
	}
	err := many.GetMany(keys, func(i int, record []byte) error {
		doc, err := r.CopyDocument(format.DocumentID(keys[i]), record)
		a[folded[i]] = doc
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get %d documents: %w", len(folded), err)
	}
	return a, nil
}

// ReadFrom is ReadFolded, but for a document of a, which belongs to the caller from then on. a may be nil.
func (r *Reader) ReadFrom(a Ahead, from Getter, folded string) (*Document, error) {
	doc, known := a[folded]
	if !known {
		return r.ReadFolded(from, folded)
	}
	if delete(a, folded); doc == nil {
		return nil, errs.ErrNotFound
	}
	return doc, nil
}
