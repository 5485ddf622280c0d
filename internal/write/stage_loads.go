package write

import (
	"fmt"
	"slices"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/loads"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Documents that others load
//
// An index that loads documents (package loads) has entries that follow from several of them. A writer stages those of its document, and
// those of all that refer to it, which it finds by the keys of references. It reads what is loaded in its transaction: of two that write a
// document and one that refers to it, one finds the other's, whichever comes first, or conflicts with it.

// Loads stages what a transaction changes in indexes that load documents.
type Loads struct{ T *Txn }

// changed is a document that is written, with its bodies before and after, nil for none.
type changed struct {
	id, folded    string
	was           string // the ID as it was written before
	before, after []byte
}

// stage stages the entries of indexes that load documents: those of c in its collection, which may be nil, and with others those of the
// documents that refer to it. The document is staged already, and before is as it was.
func (l Loads) stage(c *changed, ci *catalog.Collection, others bool) error {
	from := loads.From(l.T.Tx)
	was, is := from.Instead(c.folded, c.before), from.Instead(c.folded, c.after)
	if ci != nil {
		for _, of := range ci.Loading {
			if err := l.enter(of, c, was, is); err != nil {
				return err
			}
		}
	}
	if !others {
		return nil
	}
	for _, of := range l.T.indexes().Loading {
		if !of.Only().Loads.Differs(c.before, c.after) {
			continue
		}
		referrers, err := l.referrers(of.Only(), c)
		if err != nil {
			return err
		}
		for _, folded := range referrers {
			if err := l.enterAgain(of, folded, was, is); err != nil {
				return err
			}
		}
	}
	return nil
}

// change returns what stage needs to know of a document before it is staged, or nil if nothing is to be done.
func (l Loads) change(o *Op, ci *catalog.Collection, old *OldDocument, found bool, after []byte) (*changed, error) {
	all := l.T.indexes().Loading
	if len(all) == 0 {
		return nil, nil
	}
	c := &changed{id: o.ID, folded: o.FoldedID, was: old.ID, before: old.Body, after: after}
	any := ci != nil && len(ci.Loading) > 0
	for i := 0; !any && !o.moves && i < len(all); i++ {
		referrers, err := l.referrersUpTo(all[i].Only(), c.folded, 1)
		if err != nil {
			return nil, err
		}
		any = len(referrers) > 0
	}
	if !any {
		return nil, nil
	}
	if !found || c.before != nil {
		return c, nil
	}
	id, body, err := l.stored(c.folded)
	if body != nil {
		c.was, c.before = id, body
	}
	return c, err
}

// stored returns a document as the transaction finds it: its ID as it is written, and its body, nil for none.
func (l Loads) stored(folded string) (id string, body []byte, err error) {
	record, closer, err := l.T.Tx.Get(format.NewDocumentKey(folded))
	if err == storage.ErrNotFound {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	h, body, err := metadata.Decode(record)
	id, body = docs.WrittenID(&h, folded), slices.Clone(body)
	return id, body, errs.First(err, closer.Close())
}

// referrers returns the folded IDs of the documents that refer to c in an index, but c.
func (l Loads) referrers(ix *catalog.Index, c *changed) ([]string, error) {
	all, err := l.referrersUpTo(ix, c.folded, catalog.MaxReferrers+2) // it may refer to itself
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(folded string) bool { return folded == c.folded })
	if len(all) > catalog.MaxReferrers {
		return nil, &index.ReferrersError{Index: ix.Info.Name, Collection: ix.Info.Collection, ID: c.id, Limit: catalog.MaxReferrers}
	}
	return all, nil
}

// referrersUpTo returns n documents that refer to one in an index, or all that there are. What the transaction has staged is seen by no iterator.
func (l Loads) referrersUpTo(ix *catalog.Index, folded string, n int) (all []string, err error) {
	lo := catalog.AppendReferencePrefix(nil, ix.Number, folded)
	staged := l.T.references[string(lo)]
	for referrer, there := range staged {
		if there {
			all = append(all, referrer)
		}
	}
	slices.Sort(all)
	it, err := l.T.Tx.Iterate(lo, format.PrefixEnd(lo))
	if err != nil {
		return nil, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok && len(all) < n; ok = it.Next() {
		referrer, _, err := catalog.Referrer(it.Key())
		if err != nil {
			return nil, err
		}
		if _, known := staged[string(referrer)]; !known {
			all = append(all, string(referrer))
		}
	}
	return all[:min(len(all), n)], it.Error()
}

// stageReference stages a reference, or its removal.
func (l Loads) stageReference(ix *catalog.Index, referenced, folded string, there bool) {
	l.T.key = catalog.AppendReferenceKey(l.T.key[:0], ix.Number, referenced, folded)
	if there {
		l.T.Tx.Set(l.T.key, nil, nil)
	} else {
		l.T.Tx.Delete(l.T.key)
	}
	prefix := string(catalog.AppendReferencePrefix(nil, ix.Number, referenced))
	if l.T.references == nil {
		l.T.references = make(map[string]map[string]bool)
	}
	if l.T.references[prefix] == nil {
		l.T.references[prefix] = make(map[string]bool)
	}
	l.T.references[prefix][folded] = there
}

// enterAgain stages the entries of a document that refers to one that changes.
func (l Loads) enterAgain(of *catalog.Collection, folded string, was, is loads.Load) error {
	id, body, err := l.stored(folded)
	if err == nil && body == nil {
		err = storage.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("index %q has a reference of document %q: %w", of.Only().Info.Name, folded, err)
	}
	return l.enter(of, &changed{id: id, folded: folded, was: id, before: body, after: body}, was, is)
}

// enter stages the entries of a document in an index that loads others, of which was has the bodies before and is those after.
func (l Loads) enter(of *catalog.Collection, c *changed, was, is loads.Load) error {
	ix := of.Only()
	var old OldDocument
	var now *catalog.Entries
	var before, after loads.Expanded
	var err error
	if c.before != nil {
		if before, err = ix.Loads.Expand(c.before, l.T.Writer.Env.Rules.Fold, was); err != nil {
			return fmt.Errorf("old entries of %q: %w", c.folded, err)
		}
		old = OldDocument{Body: before.Body, ID: c.was, Size: len(before.Body)}
	}
	if c.after != nil {
		if after, err = ix.Loads.Expand(c.after, l.T.Writer.Env.Rules.Fold, is); err != nil {
			return loads.Refusal(ix.Info.Name, err)
		}
		if now, err = of.Extract(after.Body, nil); err != nil {
			return catalog.WithID(err, c.id)
		}
	}
	if err := l.T.StageIndexes(of, c.id, c.folded, &old, now); err != nil {
		return err
	}
	l.stageReferences(ix, c.folded, before.References, after.References)
	return nil
}

// stageReferences replaces the keys of references of a document.
func (l Loads) stageReferences(ix *catalog.Index, folded string, before, after []string) {
	for _, referenced := range before {
		if _, stays := slices.BinarySearch(after, referenced); !stays {
			l.stageReference(ix, referenced, folded, false)
		}
	}
	for _, referenced := range after {
		if _, was := slices.BinarySearch(before, referenced); !was || ix.Info.State == index.Building {
			l.stageReference(ix, referenced, folded, true)
		}
	}
}

// Enter stages the entries of a document in an index that is being built and loads others.
func (l Loads) Enter(of *catalog.Collection, folded string) error {
	id, body, err := l.stored(folded)
	if body == nil || err != nil {
		return err
	}
	from := loads.From(l.T.Tx)
	return l.enter(of, &changed{id: id, folded: folded, after: body}, from, from)
}
