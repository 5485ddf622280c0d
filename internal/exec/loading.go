package exec

import (
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/loads"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// loading is what a run needs of a query with fields of documents that are loaded: it reads bodies that are expanded, and answers with
// those that are stored.
type loading struct {
	spec            *loads.Spec               // nil for a query that loads nothing
	plain, expanded storage.Reader            // of the same documents
	expands         bool                      // what was read so far, or a part of it
	own             map[string]*docs.Document // of the transaction, by folded ID, as they are
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
	l.expanded = loads.NewReader(r.snapshot, l.spec, fold, load)
	r.snapshot = l.expanded // until settle
	return nil
}

// settle makes the run read documents as they are stored, if nothing of what it still looks at is loaded, with this condition left to check: an index
// has decided the others.
func (l *loading) settle(r *Run, where query.Expr) {
	if l.spec == nil {
		return
	}
	r.snapshot = l.plain
	if r.fan != nil || IsGrouped(r.q) || query.LoadsIn(where) ||
		slices.ContainsFunc(r.q.Select, func(c query.Column) bool { return c.Field.Loads() }) ||
		slices.ContainsFunc(r.q.OrderBy, func(o query.Order) bool { return o.Field.Loads() }) {
		r.snapshot, l.expands = l.expanded, true
	}
}

// restore gives a row its document as it is stored.
func (l *loading) restore(r *Run, row *Row) {
	if l.spec == nil || row.Document == nil {
		return
	}
	if own := l.own[row.Document.FoldedID()]; own != nil {
		own.CloneBody() // see Tx.pending
		row.Document = own
	} else if l.expands {
		doc := docs.Make(row.Document.Origins(), row.Document.FoldedID(), row.Document.Header(), l.spec.Contract(row.Document.JSON()))
		row.Document = &doc
	}
}
