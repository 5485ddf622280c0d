package exec

import (
	"fmt"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/loads"
	"github.com/jaydb/jay/storage"
)

// loading is what a run needs of a query with fields of documents that are loaded: it reads bodies that are expanded, and answers with
// those that are stored.
type loading struct {
	spec  *loads.Spec // nil for a query that loads nothing
	plain storage.Reader
	own   map[string]*docs.Document // of the transaction, by folded ID, as they are
}

// begin makes the run read expanded bodies, if its query needs them. What a transaction has written may be loaded by others, so that no index has
// their entries as the transaction sees them: none that loads is used then.
func (l *loading) begin(r *Run, db *Database) error {
	paths, err := r.q.Loads()
	if err != nil {
		return fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	if l.spec = loads.NewSpec(paths); l.spec == nil {
		return nil
	}
	l.plain = r.snapshot
	load := loads.From(r.snapshot)
	if written := r.overlay.Written; len(written) > 0 {
		db.Catalog = db.Catalog.WithoutLoads()
		stored, bodies := load, make(map[string][]byte, len(written))
		for folded := range written {
			doc, err := r.overlay.Read(folded)
			if err == nil {
				bodies[folded] = doc.JSON()
			} else if err != errs.ErrNotFound {
				return err
			}
		}
		load = func(folded string) ([]byte, error) {
			if written[folded] {
				return bodies[folded], nil
			}
			return stored(folded)
		}
	}
	fold := r.env.Rules.Fold
	own := make([]*docs.Document, len(r.overlay.Own))
	l.own = make(map[string]*docs.Document, len(own))
	for i, doc := range r.overlay.Own {
		e, err := l.spec.Expand(doc.JSON(), fold, load)
		if err != nil {
			return fmt.Errorf("%w: document %q: %w", errs.ErrQuery, doc.ID(), err)
		}
		expanded := docs.Make(doc.Origins(), doc.FoldedID(), doc.Header(), e.Body)
		own[i], l.own[doc.FoldedID()] = &expanded, doc
	}
	r.overlay.Own = own
	r.snapshot = loads.NewReader(r.snapshot, l.spec, fold, load)
	return nil
}

// restore gives a row its document as it is stored.
func (l *loading) restore(r *Run, row *Row) (err error) {
	if l.spec == nil || row.Document == nil {
		return nil
	}
	if own := l.own[row.Document.FoldedID()]; own != nil {
		own.CloneBody() // see Tx.pending
		row.Document = own
		return nil
	}
	row.Document, err = r.docs.ReadFolded(l.plain, row.Document.FoldedID())
	return err
}
