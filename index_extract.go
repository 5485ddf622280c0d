package jay

import (
	"errors"
)

// extract extracts the entries of the document that a patch would make.
func (g *speculation) extract(db *DB) {
	g.indexed, g.entries, g.refused = db.indexes().Of(g.folded), nil, nil
	if g.indexed != nil && g.changed {
		g.entries, g.refused = g.indexed.Extract(g.body)
	}
}

// maxEnteredBytes is how many bytes of bodies a transaction extracts the entries
// of, while other writes wait. Beyond it the transaction gives up: see
// extractAgain. A variable for tests.
var maxEnteredBytes = 1 << 20

// errIndexesChanged ends a transaction whose ops have entries for other indexes
// than the current ones.
var errIndexesChanged = errors.New("the indexes have changed since the entries were extracted")

// extractAgain extracts the entries of ops for the current indexes, outside the
// transaction. It is needed whenever indexes change.
func (db *DB) extractAgain(ops []*op) {
	for _, o := range ops {
		if o.verb == verbPatch {
			if g := &o.patching.guess; g.body != nil && g.indexed != db.indexes().Of(g.folded) {
				g.extract(db)
			}
			if o = o.patching.insert; o == nil {
				continue
			}
		}
		if ci := db.indexes().Of(o.foldedCollection); o.verb != verbDelete && ci != o.indexed {
			o.extract(ci)
		}
	}
}
