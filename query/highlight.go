package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Highlight asks for fragments of a text in each answer, around the words and phrases that the
// searches of the query find in the text.
type Highlight struct {
	Field   Field // whose texts are shown; the query must search it
	Length  int   // of a fragment in characters, without tags: MinFragment to MaxFragment
	Count   int   // of fragments at most, 1 to MaxFragments
	Options HighlightOptions
}

// HighlightOptions say how fragments are written. The zero value puts matches between <b> and </b>,
// and escapes the text for HTML.
type HighlightOptions struct {
	// PreTags and PostTags are written before and after each match. The words of the searches use the
	// pairs in turn. Both have the same length. The tags are written without escaping, so they must
	// not come from untrusted input.
	PreTags, PostTags []string

	// Plain does not escape the text for HTML. Then a document can inject HTML into the page that
	// shows the text.
	Plain bool
}

// Bounds of highlights.
const (
	MinFragment   = 18     // characters of a fragment
	MaxFragment   = 10_000 // characters of a fragment
	MaxFragments  = 100    // of a field in one answer
	MaxHighlights = 16     // of one query
	MaxTags       = 16     // pairs of one highlight
	MaxTagBytes   = 256    // of one tag
)

// Default length and number of the fragments of a highlight.
const (
	UsualFragment  = 128
	UsualFragments = 1
)

// Check returns ErrCondition for an invalid highlight.
func (h *Highlight) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: highlight(%s): %s", ErrCondition, h.Field, fmt.Sprintf(format, args...))
	}
	o := &h.Options
	switch {
	case h.Field.Meta != MetaNone || h.Field.Path.IsZero() || h.Field.Date != DateNone:
		return bad("a highlight is of a field of documents with text")
	case h.Length < MinFragment || h.Length > MaxFragment:
		return bad("a fragment has %d to %d characters, not %d", MinFragment, MaxFragment, h.Length)
	case h.Count < 1 || h.Count > MaxFragments:
		return bad("there are 1 to %d fragments, not %d", MaxFragments, h.Count)
	case len(o.PreTags) != len(o.PostTags) || len(o.PreTags) > MaxTags:
		return bad("%d PreTags and %d PostTags: as many of each, %d at most", len(o.PreTags), len(o.PostTags), MaxTags)
	}
	for _, tags := range [][]string{o.PreTags, o.PostTags} {
		for _, tag := range tags {
			if len(tag) > MaxTagBytes {
				return bad("a tag of %d bytes, %d are the most", len(tag), MaxTagBytes)
			}
		}
	}
	return nil
}

// Tags returns the tags that are written.
func (o *HighlightOptions) Tags() (before, after []string) {
	if len(o.PreTags) == 0 {
		return []string{"<b>"}, []string{"</b>"}
	}
	return o.PreTags, o.PostTags
}

// highlightOptions are the options as RavenDB's clients send them, with Plain beside them.
type highlightOptions struct {
	GroupKey string   `json:",omitempty"`
	PreTags  []string `json:",omitempty"`
	PostTags []string `json:",omitempty"`
	Plain    bool     `json:",omitempty"`
}

// ParseHighlightOptions parses options as RavenDB's clients send them: PreTags, PostTags, and
// Plain, which is Jay's. It returns ErrCondition for others.
func ParseHighlightOptions(raw []byte) (o HighlightOptions, err error) {
	var given highlightOptions
	if err := decodeOptions(raw, &given); err != nil {
		return o, fmt.Errorf("%w: options of highlight(): %w", ErrCondition, err)
	}
	if given.GroupKey != "" {
		return o, fmt.Errorf("%w: options of highlight(): GroupKey %.100q: fragments are of documents, and not of groups", ErrCondition, given.GroupKey)
	}
	return HighlightOptions{given.PreTags, given.PostTags, given.Plain}, nil
}

// decodeOptions decodes one object of options, without regard to the case of names; others than
// those of v are an error.
func decodeOptions(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("there is something behind the object")
	}
	return nil
}

// IncludesMore reports whether the answers come with included documents, highlights or
// explanations.
func (q *Query) IncludesMore() bool {
	return len(q.Include) > 0 || len(q.Highlights) > 0 || q.Explanations
}

// printHighlight returns a highlight as a query writes it.
func printHighlight(h Highlight) string {
	text := fmt.Sprintf("highlight(%s, %d, %d", h.Field, h.Length, h.Count)
	if o := h.Options; o.Plain || len(o.PreTags) > 0 {
		text += ", " + quote(string(marshalOptions(highlightOptions{"", o.PreTags, o.PostTags, o.Plain})))
	}
	return text + ")"
}

// marshalOptions is the inverse of decodeOptions.
func marshalOptions(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // options always marshal
	return bytes.TrimSpace(b.Bytes())
}

// beside parses what a query includes that is no document.
type beside struct{ *parser }

// call parses highlight(), explanations() or timings(). It reports whether there is one.
func (p beside) call(q *Query) (found bool, err error) {
	switch {
	case p.tok.is("highlight"):
		return true, p.highlight(q)
	case p.tok.is("explanations"):
		return true, p.explanations(q)
	case p.tok.is("timings"):
		p.advance()
		p.advance()
		q.Timings = true
		return true, p.expectSymbol(")", "behind timings(")
	}
	return false, nil
}

// highlight = "highlight" "(" field [ "," length [ "," count [ "," options ] ] ] ")" .
func (p beside) highlight(q *Query) (err error) {
	at := p.tok.offset
	p.advance()
	p.advance()
	h := Highlight{Length: UsualFragment, Count: UsualFragments}
	if h.Field, err = p.field("the field of highlight()"); err != nil {
		return err
	}
	for _, to := range []*int{&h.Length, &h.Count} {
		if p.acceptSymbol(",") {
			if *to, _, err = p.count("number of characters or fragments"); err != nil {
				return err
			}
		}
	}
	if p.acceptSymbol(",") {
		at := p.tok.offset
		raw, err := p.options("highlight()", "'{\"PreTags\":[\"<i>\"],\"PostTags\":[\"</i>\"]}'")
		if err != nil {
			return err
		}
		if h.Options, err = ParseHighlightOptions(raw); err != nil {
			return p.fail(at, "%v", err).because(err)
		}
	}
	if err := h.Check(); err != nil {
		return p.fail(at, "%v", err).because(err)
	}
	if err := q.AddHighlight(h); err != nil {
		return p.fail(at, "%v", err).because(err)
	}
	return p.expectSymbol(")", "behind the options of highlight()")
}

// AddHighlight adds a highlight. It returns ErrCondition for too many, and for a second one of the same field.
func (q *Query) AddHighlight(h Highlight) error {
	if len(q.Highlights) == MaxHighlights {
		return fmt.Errorf("%w: %d highlights, %d are the most", ErrCondition, MaxHighlights+1, MaxHighlights)
	}
	for i := range q.Highlights {
		if q.Highlights[i].Field.String() == h.Field.String() {
			return fmt.Errorf("%w: a second highlight(%s)", ErrCondition, h.Field)
		}
	}
	q.Highlights = append(q.Highlights[:len(q.Highlights):len(q.Highlights)], h)
	return nil
}

// options parses options as a text or a parameter, and returns their JSON.
func (p beside) options(of, example string) ([]byte, error) {
	at := p.tok
	switch at.kind {
	case tokenText:
		p.advance()
		return []byte(at.text), nil
	case tokenParameter:
		value, err := p.parameter()
		if err != nil {
			return nil, err
		}
		if text, is := value.(string); is {
			return []byte(text), nil
		}
		raw, err := json.Marshal(value)
		if err != nil || len(raw) == 0 || raw[0] != '{' {
			return nil, p.fail(at.offset, "the options of %s are an object, such as %s", of, example)
		}
		return raw, nil
	}
	return nil, p.unexpected("the options of " + of + " as text or a parameter, such as " + example)
}

// explanations = "explanations" "(" [ options ] ")" .
func (p beside) explanations(q *Query) error {
	p.advance()
	p.advance()
	if !p.tok.isSymbol(")") {
		at := p.tok.offset
		raw, err := p.options("explanations()", "'{}'")
		if err != nil {
			return err
		}
		var given struct{ GroupKey *string }
		if err := decodeOptions(raw, &given); err != nil {
			return p.fail(at, "options of explanations(): %v", err)
		}
		if given.GroupKey != nil && *given.GroupKey != "" {
			return p.fail(at, "explanations are of documents, and have no GroupKey")
		}
	}
	q.Explanations = true
	return p.expectSymbol(")", "behind explanations(")
}

// Explanation shows how the score of an answer is computed. Score is the sum of the scores of its
// Parts.
type Explanation struct {
	Score float64         `json:"score"`
	Parts []ExplainedPart `json:"parts"`
}

// ExplainedPart is the contribution of one condition to a score. The condition is a search, or a
// true condition with a boost.
type ExplainedPart struct {
	Condition string  `json:"condition"` // in RQL
	Score     float64 `json:"score"`     // the sum of its Words; of another condition its Boost
	Boost     float64 `json:"boost"`     // the product of the boosts around it

	// Of a search:
	Field         string          `json:"field,omitempty"`
	Analyzer      string          `json:"analyzer,omitempty"`
	Weight        float64         `json:"weight,omitempty"`        // of the field, in the index
	Documents     int64           `json:"documents,omitempty"`     // with text in the field
	Length        int             `json:"length,omitempty"`        // how many words the field has in this one, as it counts
	AverageLength float64         `json:"averageLength,omitempty"` // and on the average in all
	Words         []ExplainedWord `json:"words,omitempty"`         // that were found
}

// ExplainedWord is the contribution of one word or phrase of a search to a score: the product of
// the boosts of the search and of the word, the weight, Rarity and Frequency.
type ExplainedWord struct {
	Text      string  `json:"text"` // as the search has it
	Score     float64 `json:"score"`
	Boost     float64 `json:"boost"`
	Documents int64   `json:"documents"` // in which it is
	Rarity    float64 `json:"rarity"`    // the greater, the fewer documents have it
	Count     int     `json:"count"`     // how often this one has it
	Frequency float64 `json:"frequency"` // the greater, the more often this one has it in a short text; below 2.2
}

// String returns the explanation as lines of text.
func (e *Explanation) String() string {
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
	var b strings.Builder
	fmt.Fprintf(&b, "%s = sum of", number(e.Score))
	for i := range e.Parts {
		p := &e.Parts[i]
		fmt.Fprintf(&b, "\n  %s %s", number(p.Score), p.Condition)
		if p.Analyzer == "" {
			continue
		}
		fmt.Fprintf(&b, ": %s has %d words, %s on the average of %d documents", p.Field, p.Length, number(p.AverageLength), p.Documents)
		for _, w := range p.Words {
			fmt.Fprintf(&b, "\n    %s %s = boost %s × weight %s × rarity %s (in %d of %d documents) × frequency %s (%d here)",
				number(w.Score), w.Text, number(p.Boost*w.Boost), number(p.Weight), number(w.Rarity), w.Documents, p.Documents, number(w.Frequency), w.Count)
		}
	}
	return b.String()
}
