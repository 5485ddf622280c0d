package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// MoreLike is true of documents that share the typical words of another document: words that occur
// often in that document, and in few others. A query resolves a MoreLike at its beginning, to a
// search for these words. A MoreLike has no meaning elsewhere. The answers do not include the
// document itself.
type MoreLike struct {
	ID       string // of the document; "" for Document
	Document string // a JSON object
	Options  MoreLikeOptions
}

func (MoreLike) expr() {}

func (MoreLike) on() (Field, bool) { return Field{}, false }

func (e MoreLike) mapFields(func(Field) (Field, error)) (Expr, error) { return e, nil }

func (e MoreLike) measure(s Size) Size {
	s.Searches++
	s.Bytes += len(e.Document)
	return s
}

func (MoreLike) looksAtValues() bool { return false }

func (e MoreLike) refold(func(Field, bool) bool) Expr { return e }

func (MoreLike) complete(_ *compiler, to condition, _ bool) (condition, error) {
	return to, fmt.Errorf("%w: moreLikeThis() stands in the condition of a query for documents, and not on elements, on groups, or where documents are tested one by one", ErrCondition)
}

// MoreLikeOptions choose the words of a MoreLike, and of which fields. The zero value means the
// defaults: the fields are those of an index of words.
type MoreLikeOptions struct {
	Fields                          []string // up to MaxLikeFields; none is those of an index of words
	MinimumTermFrequency            int      // how often the document has a word at least; 0 is 2
	MinimumDocumentFrequency        int      // how many documents have it at least; 0 is 5
	MaximumDocumentFrequency        int      // and at most; 0 is no bound
	MaximumDocumentFrequencyPercent int      // and at most, in percent of all; 0 is no bound
	MinimumWordLength               int      // in characters
	MaximumWordLength               int      // in characters; 0 is MaxLikeWord
	MaximumQueryTerms               int      // how many words are searched for at most, up to MaxLikeTerms; 0 is 25
	MaximumNumberOfTokensParsed     int      // how many words of each field are looked at, from the first on, up to MaxLikeTokens; 0 is 5,000
	Boost                           bool     // words count for scores by how typical they are, not equally
	BoostFactor                     float64  // the weight of the most typical word, with Boost; 0 is 1
	StopWordsDocumentID             string   // of a document with words to leave out, in the array StopWords; "" for none
}

// Bounds of a MoreLike.
const (
	MaxLikes      = 4 // of one condition
	MaxLikeFields = 16
	MaxLikeTerms  = 256
	MaxLikeTokens = 100_000
	MaxLikeWord   = 64       // bytes
	MaxLikeBytes  = 16 << 20 // of a document that is given
)

// likeOptions are the options as RavenDB's clients send them.
type likeOptions struct {
	Fields                             []string `json:",omitempty"`
	MinimumTermFrequency               *int     `json:",omitempty"`
	MinimumDocumentFrequency           *int     `json:",omitempty"`
	MaximumDocumentFrequency           *int     `json:",omitempty"`
	MaximumDocumentFrequencyPercentage *int     `json:",omitempty"`
	MinimumWordLength                  *int     `json:",omitempty"`
	MaximumWordLength                  *int     `json:",omitempty"`
	MaximumQueryTerms                  *int     `json:",omitempty"`
	MaximumNumberOfTokensParsed        *int     `json:",omitempty"`
	Boost                              *bool    `json:",omitempty"`
	BoostFactor                        *float64 `json:",omitempty"`
	StopWordsDocumentId                *string  `json:",omitempty"`
}

// numbers returns the options that are numbers, as they are kept and as they are sent.
func (o *MoreLikeOptions) numbers(given *likeOptions) map[*int]**int {
	return map[*int]**int{
		&o.MinimumTermFrequency:            &given.MinimumTermFrequency,
		&o.MinimumDocumentFrequency:        &given.MinimumDocumentFrequency,
		&o.MaximumDocumentFrequency:        &given.MaximumDocumentFrequency,
		&o.MaximumDocumentFrequencyPercent: &given.MaximumDocumentFrequencyPercentage,
		&o.MinimumWordLength:               &given.MinimumWordLength,
		&o.MaximumWordLength:               &given.MaximumWordLength,
		&o.MaximumQueryTerms:               &given.MaximumQueryTerms,
		&o.MaximumNumberOfTokensParsed:     &given.MaximumNumberOfTokensParsed,
	}
}

// ParseMoreLikeOptions parses options as RavenDB's clients send them. A least frequency of 0 is one
// of 1 there. It returns ErrCondition for others.
func ParseMoreLikeOptions(raw []byte) (o MoreLikeOptions, err error) {
	var given likeOptions
	if err := decodeOptions(raw, &given); err != nil {
		return o, fmt.Errorf("%w: options of moreLikeThis(): %w", ErrCondition, err)
	}
	for _, least := range []*int{given.MinimumTermFrequency, given.MinimumDocumentFrequency} {
		if least != nil && *least == 0 {
			*least = 1
		}
	}
	for to, from := range o.numbers(&given) {
		if *from != nil {
			*to = **from
		}
	}
	if o.MaximumDocumentFrequency == 1<<31-1 { // which is none in the C# client
		o.MaximumDocumentFrequency = 0
	}
	o.Fields = given.Fields
	if given.Boost != nil {
		o.Boost = *given.Boost
	}
	if given.BoostFactor != nil {
		o.BoostFactor = *given.BoostFactor
	}
	if given.StopWordsDocumentId != nil {
		o.StopWordsDocumentID = *given.StopWordsDocumentId
	}
	return o, nil
}

// json is the inverse of ParseMoreLikeOptions.
func (o MoreLikeOptions) json() []byte {
	given := likeOptions{Fields: o.Fields}
	for from, to := range o.numbers(&given) {
		if n := *from; n != 0 {
			*to = &n
		}
	}
	if o.Boost {
		given.Boost = &o.Boost
	}
	if o.BoostFactor != 0 {
		given.BoostFactor = &o.BoostFactor
	}
	if o.StopWordsDocumentID != "" {
		given.StopWordsDocumentId = &o.StopWordsDocumentID
	}
	return marshalOptions(given)
}

// Check returns ErrCondition for an invalid MoreLike.
func (e MoreLike) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: moreLikeThis(): %s", ErrCondition, fmt.Sprintf(format, args...))
	}
	o := &e.Options
	switch {
	case (e.ID == "") == (e.Document == ""):
		return bad("it is of a document that has an ID, or that is given as JSON")
	case len(e.Document) > MaxLikeBytes:
		return bad("a document of %d bytes, %d are the most", len(e.Document), MaxLikeBytes)
	case e.Document != "" && (!json.Valid([]byte(e.Document)) || strings.TrimLeft(e.Document, " \t\r\n")[0] != '{'):
		return bad("the document is a JSON object, or id() = and an ID")
	case len(o.Fields) > MaxLikeFields:
		return bad("%d fields, %d are the most", len(o.Fields), MaxLikeFields)
	case o.MaximumQueryTerms > MaxLikeTerms:
		return bad("MaximumQueryTerms %d, %d are the most", o.MaximumQueryTerms, MaxLikeTerms)
	case o.MaximumNumberOfTokensParsed > MaxLikeTokens:
		return bad("MaximumNumberOfTokensParsed %d, %d are the most", o.MaximumNumberOfTokensParsed, MaxLikeTokens)
	case o.MaximumDocumentFrequencyPercent > 100:
		return bad("MaximumDocumentFrequencyPercentage %d", o.MaximumDocumentFrequencyPercent)
	case !(o.BoostFactor >= 0 && o.BoostFactor <= MaxBoost):
		return bad("BoostFactor %v, which is a number above 0 and up to %d", o.BoostFactor, MaxBoost)
	}
	for n := range o.numbers(new(likeOptions)) {
		if *n < 0 {
			return bad("%d, and no number of its options is below 0", *n)
		}
	}
	return nil
}

func (e MoreLike) write(b *strings.Builder) {
	b.WriteString("moreLikeThis(")
	if e.ID != "" {
		b.WriteString("id() = " + quote(e.ID))
	} else {
		b.WriteString(quote(e.Document))
	}
	if options := string(e.Options.json()); options != "{}" {
		b.WriteString(", " + quote(options))
	}
	b.WriteString(")")
}

// ResolveLikes returns a condition with each MoreLike replaced by the result of fn, and the number
// of MoreLikes. The depth of e must be within the bounds.
func ResolveLikes(e Expr, fn func(MoreLike) (Expr, error)) (_ Expr, n int, err error) {
	if !hasLikes(e) {
		return e, 0, nil
	}
	e, err = MapConditions(e, func(e Expr) (Expr, error) {
		if m, is := e.(MoreLike); is {
			n++
			return fn(m)
		}
		return e, nil // an ElemMatch among them, which Compile refuses
	})
	return e, n, err
}

var errLike = errors.New("it is like another document")

// hasLikes reports whether a condition has a MoreLike.
func hasLikes(e Expr) bool {
	return walk(e, func(e Expr, _ int) error {
		if _, is := e.(MoreLike); is {
			return errLike
		}
		return nil
	}) != nil
}

// likes parses moreLikeThis().
type likes struct{ *parser }

// like = "moreLikeThis" "(" ( "id" "(" ")" "=" text | text ) [ "," options ] ")" .
func (p likes) condition() (Expr, error) {
	at := p.tok.offset
	p.advance()
	p.advance()
	var e MoreLike
	var err error
	if p.tok.is("id") && p.atCall() {
		p.advance()
		p.advance()
		if err := p.expectSymbol(")", "behind id("); err != nil {
			return nil, err
		}
		if !p.acceptSymbol("=") && !p.acceptSymbol("==") {
			return nil, p.unexpected(`"=" and the ID of a document`)
		}
		e.ID, err = p.textValue("the ID of a document")
	} else if p.tok.kind == tokenText || p.tok.kind == tokenParameter {
		e.Document, err = p.textValue("a document as JSON")
	} else {
		err = p.unexpected("id() = and the ID of a document, or one as JSON")
	}
	if err != nil {
		return nil, err
	}
	if p.acceptSymbol(",") {
		at := p.tok.offset
		raw, err := beside(p).options("moreLikeThis()", `'{"MinimumTermFrequency":1}'`)
		if err != nil {
			return nil, err
		}
		if e.Options, err = ParseMoreLikeOptions(raw); err != nil {
			return nil, p.fail(at, "%v", err).because(err)
		}
	}
	if err := e.Check(); err != nil {
		return nil, p.fail(at, "%v", err).because(err)
	}
	return e, p.expectSymbol(")", "behind the options of moreLikeThis()")
}
