package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jaydb/jay/internal/text"
)

// Suggest asks for words of a field in an index of words: words that are spelled nearly like one of
// Words, or that begin with one of Words.
type Suggest struct {
	Name     string   // of the result
	Field    Field    // with the texts
	Words    []string // 1 to MaxSuggested; for each of them there are suggestions
	Complete bool     // words that begin with Words, the most frequent ones first
	Options  SuggestOptions
}

// SuggestOptions choose suggestions. The zero value means the defaults.
type SuggestOptions struct {
	Size       int     // the greatest number of suggestions for a word; 0 is UsualSuggestions
	Accuracy   float64 // the least share of a word that remains, from 0 to 1; not for a word to complete; 0 is UsualAccuracy
	Alphabetic bool    // suggestions with equal numbers of changes come in the order of the words; by default the most frequent ones come first
}

// Bounds of suggestions.
const (
	MaxSuggests      = 16   // suggest() and complete() of one query
	MaxSuggested     = 64   // words of one of them
	MaxSuggestions   = 1000 // for one word
	UsualSuggestions = 15
	UsualAccuracy    = 0.5
)

// ErrSuggest is returned for an invalid suggest() or complete().
var ErrSuggest = errors.New("query: invalid suggestion")

// Check returns ErrSuggest for an invalid Suggest.
func (s *Suggest) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s(%s): %s", ErrSuggest, s.function(), s.Field, fmt.Sprintf(format, args...))
	}
	switch {
	case s.Field.Meta != MetaNone || s.Field.Path.IsZero() || s.Field.Date != DateNone:
		return bad("it is of a field of documents with text")
	case len(s.Words) < 1 || len(s.Words) > MaxSuggested:
		return bad("%d words, there are 1 to %d", len(s.Words), MaxSuggested)
	case s.Options.Size < 0 || s.Options.Size > MaxSuggestions:
		return bad("PageSize %d, there are up to %d suggestions", s.Options.Size, MaxSuggestions)
	case !(s.Options.Accuracy >= 0 && s.Options.Accuracy <= 1):
		return bad("Accuracy %v, which is a number from 0 to 1", s.Options.Accuracy)
	}
	for _, w := range s.Words {
		if len(w) > text.MaxTermBytes {
			return bad("a word of %d bytes, %d are the most", len(w), text.MaxTermBytes)
		}
	}
	return nil
}

func (s *Suggest) function() string {
	if s.Complete {
		return "complete"
	}
	return "suggest"
}

// suggestOptions are the options as RavenDB's clients send them.
type suggestOptions struct {
	PageSize *int     `json:",omitempty"`
	Distance string   `json:",omitempty"`
	Accuracy *float64 `json:",omitempty"`
	SortMode string   `json:",omitempty"`
}

// ParseSuggestOptions parses options as RavenDB's clients send them: PageSize, Accuracy, SortMode,
// which is Popularity or None, and Distance, which is Levenshtein. It returns ErrSuggest for
// others.
func ParseSuggestOptions(raw []byte) (o SuggestOptions, err error) {
	var given suggestOptions
	if err := decodeOptions(raw, &given); err != nil {
		return o, fmt.Errorf("%w: options: %w", ErrSuggest, err)
	}
	switch given.Distance {
	case "", "None", "Default", "Levenshtein":
	default:
		return o, fmt.Errorf("%w: options: Distance %.50q: words are compared by Levenshtein, with changes of places", ErrSuggest, given.Distance)
	}
	switch given.SortMode {
	case "", "Popularity":
	case "None":
		o.Alphabetic = true
	default:
		return o, fmt.Errorf("%w: options: SortMode %.50q, and not Popularity or None", ErrSuggest, given.SortMode)
	}
	if given.PageSize != nil {
		if o.Size = *given.PageSize; o.Size < 1 {
			return o, fmt.Errorf("%w: options: PageSize %d", ErrSuggest, o.Size)
		}
	}
	if given.Accuracy != nil {
		o.Accuracy = *given.Accuracy
	}
	return o, nil
}

// json is the inverse of ParseSuggestOptions.
func (o SuggestOptions) json() []byte {
	var given suggestOptions
	if o.Size > 0 {
		given.PageSize = &o.Size
	}
	if o.Accuracy > 0 {
		given.Accuracy = &o.Accuracy
	}
	if o.Alphabetic {
		given.SortMode = "None"
	}
	return marshalOptions(given)
}

// printSuggest returns a Suggest as a query writes it.
func printSuggest(s Suggest) string {
	words := quote(s.Words[0])
	if len(s.Words) > 1 {
		quoted := make([]string, len(s.Words))
		for i, w := range s.Words {
			quoted[i] = quote(w)
		}
		words = "(" + strings.Join(quoted, ", ") + ")"
	}
	out := s.function() + "(" + s.Field.String() + ", " + words
	if s.Options != (SuggestOptions{}) {
		out += ", " + quote(string(s.Options.json()))
	}
	if out += ")"; s.Name != s.Field.String() {
		out += " as " + printName(s.Name)
	}
	return out
}

// suggests parses the suggestions of a select.
type suggests struct{ *parser }

// begins reports whether select has suggestions.
func (p suggests) begins() bool {
	return (p.tok.is("suggest") || p.tok.is("complete")) && p.atCall()
}

// all = suggest { "," suggest } . They are of all documents of a collection.
func (p suggests) all(q *Query) error {
	at := p.tok.offset
	if q.Where != nil || len(q.GroupBy) > 0 || len(q.OrderBy) > 0 || q.Distinct {
		return p.fail(at, "suggestions are of all words of a collection, and a query with them has no where, group by, order by or distinct")
	}
	if q.From == "" && q.Index == "" || !q.Each.IsZero() {
		return p.fail(at, "suggestions are of the words of a collection").expecting("from Articles select suggest(Title, 'acron')")
	}
	return p.list("suggestions", func() error {
		if !p.begins() {
			return p.fail(p.tok.offset, "suggestions stand alone in select").expecting("suggest() or complete()")
		}
		return p.one(q)
	})
}

// suggest = ( "suggest" | "complete" ) "(" field "," words [ "," options ] ")" [ "as" name ] .
// words   = text | "(" text { "," text } ")" .
func (p suggests) one(q *Query) (err error) {
	at := p.tok.offset
	s := Suggest{Complete: p.tok.is("complete")}
	p.advance()
	p.advance()
	if s.Field, err = p.field("the field of " + s.function() + "()"); err != nil {
		return err
	}
	if err := p.expectSymbol(",", "and a word behind the field"); err != nil {
		return err
	}
	if s.Words, err = p.words(); err != nil {
		return err
	}
	if p.acceptSymbol(",") {
		at := p.tok.offset
		raw, err := beside(p).options(s.function()+"()", `'{"PageSize":5}'`)
		if err == nil {
			s.Options, err = ParseSuggestOptions(raw)
		}
		if err != nil {
			return p.refused(at, err)
		}
	}
	if err := p.expectSymbol(")", "behind the options of "+s.function()+"()"); err != nil {
		return err
	}
	if s.Name = s.Field.String(); p.accept("as") {
		if s.Name, err = p.name("a name for the suggestions"); err != nil {
			return err
		}
	}
	if err := s.Check(); err != nil {
		return p.refused(at, err)
	}
	if len(q.Suggests) == MaxSuggests {
		return p.fail(at, "too many suggestions: %d are the most", MaxSuggests)
	}
	q.Suggests = append(q.Suggests, s)
	return nil
}

// refused returns a syntax error for an error of suggestions.
func (p suggests) refused(at int, err error) error {
	if !errors.Is(err, ErrSuggest) {
		return err
	}
	return p.fail(at, "%s", strings.TrimPrefix(err.Error(), ErrSuggest.Error()+": ")).because(err)
}

// words parses one word or several.
func (p suggests) words() (words []string, err error) {
	const expected = "a word"
	several := p.acceptSymbol("(")
	for more := true; more; more = several && p.acceptSymbol(",") {
		at := p.tok
		values, err := p.values(expected)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if !isText(v) {
				return nil, p.fail(at.offset, "unexpected %s, which is not text", at).expecting(expected)
			}
			words = append(words, v.Text())
		}
		if len(words) > MaxSuggested {
			return nil, p.fail(at.offset, "too many words: %d are the most", MaxSuggested)
		}
	}
	if several {
		return words, p.expectSymbol(")", "behind the words")
	}
	return words, nil
}

// Suggestion is a word that is suggested.
type Suggestion struct {
	Word      string `json:"word"`
	Documents int64  `json:"documents"` // that have it
	Distance  int    `json:"distance"`  // how many changes turn the given word into it; 0 for a word to complete
}

// suggested is the result of a Suggest: RavenDB's, and beside it what is known of the words.
type suggested struct {
	Name        string
	Suggestions []string
	Documents   []int64
	Distances   []int
}

// AppendSuggestions appends the result of a Suggest as an object: its Name and its Suggestions,
// which are the words, and of each of them how many Documents have it, and its Distances.
func AppendSuggestions(dst []byte, name string, all []Suggestion) []byte {
	result := suggested{name, []string{}, []int64{}, []int{}}
	for _, s := range all {
		result.Suggestions = append(result.Suggestions, s.Word)
		result.Documents = append(result.Documents, s.Documents)
		result.Distances = append(result.Distances, s.Distance)
	}
	return append(dst, marshalOptions(result)...)
}

// ParseSuggestions is the inverse of AppendSuggestions.
func ParseSuggestions(raw []byte) ([]Suggestion, error) {
	var result suggested
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, err
	}
	if len(result.Documents) != len(result.Suggestions) || len(result.Distances) != len(result.Suggestions) {
		return nil, fmt.Errorf("%w: lists of several lengths", ErrSuggest)
	}
	all := make([]Suggestion, len(result.Suggestions))
	for i, word := range result.Suggestions {
		all[i] = Suggestion{word, result.Documents[i], result.Distances[i]}
	}
	return all, nil
}
