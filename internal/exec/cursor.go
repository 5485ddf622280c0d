package exec

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// Cursor is a position in the order of a query's answers.
type Cursor struct {
	Key   []byte `json:"k"`           // what query.Sorter makes of the document
	ID    string `json:"i"`           // folded
	Query []byte `json:"q"`           // fingerprint of the query
	Part  int    `json:"p,omitempty"` // of an entry: see entry
	At    int    `json:"a,omitempty"`

	Likes []string `json:"l,omitempty"` // what moreLikeThis() means, so that it means the same on all pages

	Scores []byte `json:"s,omitempty"` // of a query with scores: score.Scores.AppendFrequencies, so that all pages have the same

	Exact bool // the key decides; false if a value was cut
}

// cursorOf returns the position of a document.
func (r *Run) cursorOf(doc *docs.Document) *Cursor {
	key, exact := r.sorter.AppendKey(nil, r.doc(doc))
	return &Cursor{Key: key, ID: doc.FoldedID(), Scores: r.scoring.bytes(), Likes: r.likes.resolved, Exact: exact}
}

// isAfter reports whether c comes after the position where the answers begin.
func (r *Run) isAfter(c *Cursor) bool {
	order := bytes.Compare(c.Key, r.options.After.Key)
	if order == 0 {
		order = strings.Compare(c.ID, r.options.After.ID)
		if r.tiesDescend() {
			order = -order
		}
	}
	return order > 0
}

// indexKey returns the cursor's values as the plan's index has them behind
// those that are bound: the same, or turned round if it is walked backwards.
func (r *Run) indexKey(c *Cursor) []byte {
	var key []byte
	rest := c.Key
	for _, o := range r.q.OrderBy {
		part := rest
		rest, _ = query.SkipKey(rest)
		switch {
		case o.Field.Meta == query.MetaID: // the last: the ID stands behind the values
		case r.plan.Access[0].Binds(o.Field):
		case r.plan.Reverse:
			v, _ := query.DecodeKey(part)
			key, _ = query.AppendKey(key, v, !o.Descending)
		default:
			key = append(key, part[:len(part)-len(rest)]...)
		}
	}
	return key
}

// Text returns the cursor as text.
func (c *Cursor) Text(q *query.Query) string {
	c.Query = fingerprint(q)
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // bytes and text always marshal
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// fingerprint identifies a query by what decides its answers and their order.
func fingerprint(q *query.Query) []byte {
	plain := *q
	plain.Limit, plain.HasLimit, plain.Offset, plain.Select, plain.Include, plain.Highlights, plain.UseIndex, plain.NoIndex = 0, false, 0, nil, nil, nil, "", false
	sum := sha256.Sum256([]byte(plain.String()))
	return sum[:8]
}

// maxCursor bounds the text of a cursor.
const maxCursor = 64 << 10

// ParseCursor reads the text of a cursor of a query.
func ParseCursor(text string, q *query.Query) (*Cursor, error) {
	bad := fmt.Errorf("%w: not a cursor of Page: %q", errs.ErrQuery, errs.Shorten(text))
	if len(text) > maxCursor {
		return nil, bad
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, bad
	}
	c := &Cursor{Exact: true}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, bad
	}
	ordered := *q
	if len(ordered.OrderBy) == 0 && q.Index == "" {
		ordered.OrderBy = []query.Order{{Field: query.Field{Meta: query.MetaID}}}
	}
	if !bytes.Equal(c.Query, fingerprint(&ordered)) {
		return nil, fmt.Errorf("%w: the cursor comes from another query, or from this one in another order", errs.ErrQuery)
	}
	rest, parts := c.Key, 0
	for ; len(rest) > 0; parts++ {
		var ok bool
		if rest, ok = query.SkipKey(rest); !ok {
			return nil, bad
		}
	}
	if parts != len(ordered.OrderBy) && (q.Index == "" || len(ordered.OrderBy) > 0 || parts > 1) {
		return nil, bad
	}
	return c, nil
}
