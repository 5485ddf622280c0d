package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/fold"
	"github.com/jaydb/jay/internal/text"
)

// Fuzzy is true if the field reaches a text whose similarity to Text as a whole is above
// Similarity. The similarity is 1 minus d/n, as in Lucene: d is the number of characters to insert,
// remove or replace to turn one text into the other, and n is the length of the shorter text in
// characters.
type Fuzzy struct {
	Field      Field
	Text       string  // up to MaxFuzzyText characters
	Similarity float64 // from 0 up to but without 1
	Fold       bool    // case does not matter
}

// MaxFuzzyText is how many characters the Text of a Fuzzy has at most.
const MaxFuzzyText = 256

// MaxProximity is how many other words NewProximity allows for at most.
const MaxProximity = text.MaxSlop

func (Fuzzy) expr() {}

// NewFuzzy returns a condition that is also true of values that differ a little. For a Compare of
// equal text it returns a Fuzzy. For a Search it returns a Search for words that differ by up to
// two characters and whose similarity is above the given one, as for a Fuzzy. It returns
// ErrCondition for any other condition.
func NewFuzzy(e Expr, similarity float64) (Expr, error) {
	if !(similarity >= 0 && similarity < 1) {
		return nil, fmt.Errorf("%w: fuzzy(): a similarity is a number from 0 up to but without 1, not %v", ErrCondition, similarity)
	}
	switch e := e.(type) {
	case Compare:
		if e.Op == Equal && isText(e.Value) {
			f := Fuzzy{Field: e.Field, Text: e.Value.Text(), Similarity: similarity, Fold: e.Fold}
			return f, f.check()
		}
	case Search:
		varied, err := text.Varied(e.Text, similarity)
		if err == nil {
			e.Text = varied
			_, _, err = e.parse()
		}
		if err != nil {
			return nil, fmt.Errorf("%w: fuzzy(): %w", ErrCondition, err)
		}
		return e, nil
	}
	return nil, fmt.Errorf("%w: fuzzy() is of a field that equals a text, or of search(), and not of %s", ErrCondition, conditionText(e))
}

// NewProximity returns a Search for all words of the Search e, in any order, with up to words other
// words between them. words is at most MaxProximity. NewProximity returns ErrCondition for another
// condition, and for signs such as wildcards in the search.
func NewProximity(e Expr, words int) (Expr, error) {
	s, is := e.(Search)
	if !is {
		return nil, fmt.Errorf("%w: proximity() is of search(), and not of %s", ErrCondition, conditionText(e))
	}
	if words < 0 || words > MaxProximity {
		return nil, fmt.Errorf("%w: proximity(): between words are 0 to %d others, not %d", ErrCondition, MaxProximity, words)
	}
	nearby, err := text.Nearby(s.Text, words)
	if err == nil {
		s.Text, s.All = nearby, false
		_, _, err = s.parse()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: proximity(): %w", ErrCondition, err)
	}
	return s, nil
}

// conditionText returns a condition for the text of an error.
func conditionText(e Expr) string {
	if e == nil {
		return "nothing"
	}
	if _, err := Measure(e); err != nil {
		return "this condition"
	}
	return fmt.Sprintf("%.100s", FormatCondition(e))
}

func (e Fuzzy) on() (Field, bool) { return e.Field, true }

func (e Fuzzy) mapFields(fn func(Field) (Field, error)) (_ Expr, err error) {
	e.Field, err = fn(e.Field)
	return e, err
}

func (e Fuzzy) measure(s Size) Size {
	s.Regexps++ // they are bounded together, as each looks at each text of a document
	s.Bytes += len(e.Text)
	return s
}

func (e Fuzzy) write(b *strings.Builder) {
	b.WriteString("fuzzy(")
	Compare{Field: e.Field, Op: Equal, Value: TextValue(e.Text), Fold: e.Fold}.write(b)
	b.WriteString(", " + strconv.FormatFloat(e.Similarity, 'f', -1, 64) + ")")
}

func (Fuzzy) looksAtValues() bool { return true }

func (e Fuzzy) refold(fn func(Field, bool) bool) Expr {
	e.Fold = fn(e.Field, e.Fold)
	return e
}

// check returns ErrCondition for what breaks a bound.
func (e Fuzzy) check() error {
	switch {
	case !(e.Similarity >= 0 && e.Similarity < 1):
		return fmt.Errorf("%w: fuzzy(): a similarity is a number from 0 up to but without 1, not %v", ErrCondition, e.Similarity)
	case utf8.RuneCountInString(e.Text) > MaxFuzzyText:
		return fmt.Errorf("%w: fuzzy(): a text of %d characters, %d are the most", ErrCondition, utf8.RuneCountInString(e.Text), MaxFuzzyText)
	}
	return nil
}

func (e Fuzzy) complete(_ *compiler, to condition, folds bool) (condition, error) {
	to = textCondition(to, opFuzzy, e.Text, folds || e.Fold)
	to.fuzzy = &fuzzyWord{word: []rune(string(to.text)), above: e.Similarity}
	return to, e.check()
}

// fuzzyWord is a compiled Fuzzy.
type fuzzyWord struct {
	word  []rune
	above float64
}

// variants is the memory in which a Matcher compares texts with those of Fuzzy conditions.
type variants struct {
	text      []rune
	last, row []int
}

// isFuzzy reports whether a text satisfies an opFuzzy.
func (m *Matcher) isFuzzy(c *condition, text []byte) bool {
	if len(text) > 8*utf8.UTFMax*(MaxFuzzyText+1) { // longer than any that is similar, however it is folded
		return false
	}
	if c.fold {
		m.folded = fold.Append(m.folded[:0], text)
		text = m.folded
	}
	v, word := &m.variants, c.fuzzy.word
	v.text = v.text[:0]
	for _, r := range string(text) {
		v.text = append(v.text, r)
	}
	shorter, longer := min(len(word), len(v.text)), max(len(word), len(v.text))
	if shorter == 0 {
		return longer == 0
	}
	most := int((1 - c.fuzzy.above) * float64(shorter)) // changes
	if longer-shorter > most || !m.pace.Spend(len(v.text)*(2*most+1)) {
		return false
	}
	changes := v.changes(word, most)
	return changes == 0 || 1-float64(changes)/float64(shorter) > c.fuzzy.above
}

// changes returns how many characters must be put in, left out or replaced to make the text of a
// word, or more than most. Only what is within most of the diagonal of the table is computed.
func (v *variants) changes(word []rune, most int) int {
	v.last, v.row = v.last[:0], v.row[:0]
	for j := range len(word) + 1 {
		v.last = append(v.last, j)
	}
	v.row = slices.Grow(v.row, len(word)+1)[:len(word)+1]
	for i, r := range v.text {
		lo, hi := max(1, i+1-most), min(len(word), i+1+most)
		v.row[lo-1] = most + 1
		if lo == 1 {
			v.row[0] = i + 1
		}
		for j := lo; j <= hi; j++ {
			d := v.last[j-1]
			if word[j-1] != r {
				d++
			}
			if j < i+1+most { // above is within the band
				d = min(d, v.last[j]+1)
			}
			v.row[j] = min(d, v.row[j-1]+1)
		}
		v.last, v.row = v.row, v.last
	}
	return v.last[len(word)]
}

// near parses fuzzy() and proximity().
type near struct{ *parser }

// near = ( "fuzzy" | "proximity" ) "(" condition "," number ")" .
func (p near) condition() (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	fuzzy, start := p.tok.is("fuzzy"), p.tok
	p.advance()
	p.advance()
	e, err := p.parser.condition()
	if err != nil {
		return nil, err
	}
	if err := p.expectSymbol(",", "and a number behind the condition"); err != nil {
		return nil, err
	}
	n, err := spaces(p).number("a number")
	if err != nil {
		return nil, err
	}
	if fuzzy {
		e, err = NewFuzzy(e, n)
	} else if n != float64(int(n)) {
		err = fmt.Errorf("%w: proximity(): between words are 0 to %d others, not %v", ErrCondition, MaxProximity, n)
	} else {
		e, err = NewProximity(e, int(n))
	}
	if err != nil {
		return nil, p.fail(start.offset, "%v", err).because(err)
	}
	return e, p.expectSymbol(")", "behind the number")
}
