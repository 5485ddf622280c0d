package write

import (
	"github.com/jaydb/jay/internal/schemas"
)

// A document is checked against the rule of its collection once, outside of the transaction, where its index entries are extracted. The
// transaction only compares: if the collection has another rule by then, or the document is in another collection, the transaction ends, and the
// document is checked again outside of it (Writer.extractAgain).

// fit checks the body of o against the rule of its collection. A refresh, which is the put of what is there, is not checked.
func (o *Op) fit(w *Writer) {
	if o.due != nil {
		return
	}
	if rule := w.Schemas.Load().Of(o.FoldedCollection); rule != o.rule || rule != nil {
		o.rule, o.unfit = rule, rule.Check(o.JSON)
	}
}

// misfit returns why the rule refuses o, or nil.
func (o *Op) misfit() error { return o.rule.Refusal(o.unfit, o.ID) }

// fit checks what a patch would make against the rule of the collection of the document.
func (g *speculation) fit(w *Writer) {
	g.rule, g.unfit = w.Schemas.Load().Of(g.folded), nil
	if g.rule != nil && g.changed {
		g.unfit = g.rule.Check(g.Body)
	}
}

// schemas returns the rules that this run of the transaction follows.
func (t *Txn) schemas() *schemas.Rules {
	if !t.schemasRead {
		t.schemasRead, t.schemasOf = true, t.Writer.Schemas.Load()
	}
	return t.schemasOf
}

// stageFit refuses a document that violates the rule of its collection, and notes one that it warns of. Documents that keep their body are not
// checked: those with other attachments or another expiry, and those that a rename moves. Neither are those whose commit is decided already.
func (t *Txn) stageFit(o *Op) error {
	if o.Verb.KeepsBody() || o.moves || o.due != nil || o.sameBody {
		return nil
	}
	if !t.applying {
		if o.rule != t.schemas().Of(o.FoldedCollection) {
			return errRulesChanged
		}
		if err := o.misfit(); err != nil {
			return err
		}
	}
	if o.unfit != nil {
		t.warned = append(t.warned, o)
	}
	return nil
}

// warn counts a document that was committed though it violates a rule.
func (o *Op) warn(w *Writer) { w.Schemas.Warn(w.Env, o.unfit, o.FoldedCollection, o.ID) }
