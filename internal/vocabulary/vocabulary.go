// Package vocabulary finds words among those that an index of words has of a field: all that begin alike, in order; the most frequent ones of
// these; and those that are spelled nearly as another one. What there is comes from a [catalog.Vocabulary], so it is exact for a snapshot, and for
// what a transaction lays over it.
//
// All work is bounded: a list by its length, the others by [MaxTerms], beyond which they are a *query.LimitError.
package vocabulary

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/text"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// MaxTerms is how many terms of an index are looked at for one word to complete or to correct.
const MaxTerms = 100_000

// Source is a field of an index of words, as something sees it.
type Source struct {
	Vocabulary catalog.Vocabulary
	Field      int
	Reader     storage.Reader
	Changes    catalog.GroupChanges
	Pace       *query.Pace
	Keys       int64 // examined so far
}

// open opens the terms that are wanted, first of them at most; 0 for all.
func (s *Source) open(first int, wants func([]byte) bool) (catalog.Terms, error) {
	return s.Vocabulary.Terms(s.Reader, &catalog.TermOptions{Field: s.Field, Changes: s.Changes, Wants: wants, First: first, Spend: s.Pace.Spend, Err: s.Pace.Err})
}

// close ends the use of terms.
func (s *Source) close(t catalog.Terms, err error) error {
	s.Keys += t.Keys()
	return errs.First(err, t.Close())
}

// List returns the terms that begin with a prefix, folded as terms are, behind after, in their order, at most limit.
func (s *Source) List(prefix, after string, limit int) (list []query.Suggestion, err error) {
	prefix = s.Vocabulary.Analyzer(s.Field).FoldPrefix(prefix)
	from := []byte(prefix)
	if after != "" && after >= prefix {
		from = append([]byte(after), 0)
	}
	wants := func(term []byte) bool { return hasPrefix(term, prefix) && string(term) >= string(from) }
	t, err := s.open(limit, wants)
	if err != nil {
		return nil, err
	}
	err = each(t, from, func(term []byte) (next []byte, err error) {
		if !hasPrefix(term, prefix) || len(list) == limit {
			return nil, nil
		}
		word := query.Suggestion{Word: string(term)}
		next = append(term, 0)
		if word.Documents, err = t.Documents(); err == nil && word.Documents > 0 {
			list = append(list, word)
		}
		return next, err
	})
	return list, s.close(t, err)
}

// each calls fn with terms from a text on, until it returns nothing: else where the next one is.
func each(t catalog.Terms, from []byte, fn func(term []byte) (next []byte, err error)) error {
	for from != nil {
		term, err := t.Seek(from)
		if err != nil || term == nil {
			return err
		}
		if from, err = fn(slices.Clone(term)); err != nil {
			return err
		}
	}
	return nil
}

func hasPrefix(term []byte, prefix string) bool {
	return len(term) >= len(prefix) && string(term[:len(prefix)]) == prefix
}

// Answer returns what a Suggest asks for, which has been checked: for each of its words the best ones, each word once.
func (s *Source) Answer(o *query.Suggest) ([]query.Suggestion, error) {
	var all []query.Suggestion
	seen := make(map[string]bool)
	for _, word := range o.Words {
		find := s.correct
		if o.Complete {
			find = s.complete
		}
		found, err := find(word, o)
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			if !seen[one.Word] {
				seen[one.Word] = true
				all = append(all, one)
			}
		}
	}
	return all, nil
}

// counted counts the terms that are looked at.
type counted int

func (c *counted) next() error {
	if *c++; *c > MaxTerms {
		return fmt.Errorf("%w: %w", errs.ErrQuery, &query.LimitError{What: "words of the index that are looked at for a suggestion", Limit: MaxTerms, Actual: int(*c)})
	}
	return nil
}

// complete returns the terms that begin with a word.
func (s *Source) complete(word string, o *query.Suggest) ([]query.Suggestion, error) {
	prefix := s.Vocabulary.Analyzer(s.Field).FoldPrefix(word)
	b := best{size: cmp.Or(o.Options.Size, query.UsualSuggestions), alphabetic: o.Options.Alphabetic}
	t, err := s.open(0, func(term []byte) bool { return hasPrefix(term, prefix) })
	if err != nil {
		return nil, err
	}
	looked := new(counted)
	err = each(t, []byte(prefix), func(term []byte) ([]byte, error) {
		if !hasPrefix(term, prefix) {
			return nil, nil
		}
		n, err := t.Documents()
		b.add(query.Suggestion{Word: string(term), Documents: n})
		return append(term, 0), errs.First(err, looked.next())
	})
	return b.list, s.close(t, err)
}

// correct returns the terms that are spelled nearly as a word.
func (s *Source) correct(word string, o *query.Suggest) ([]query.Suggestion, error) {
	folded, n := s.Vocabulary.Analyzer(s.Field).Single(word)
	switch {
	case n == 0:
		return nil, nil // such as a word that is left out
	case n > 1:
		return nil, fmt.Errorf("%w: suggest(%s, %.100q): the analyzer %s makes several terms of it: ask for one word at a time, of an index of words", errs.ErrQuery, o.Field, word, s.Vocabulary.Analyzer(s.Field).Name())
	}
	speller := text.NewSpeller(folded, text.MaxDistance)
	b := best{size: cmp.Or(o.Options.Size, query.UsualSuggestions), alphabetic: o.Options.Alphabetic}
	t, err := s.open(0, func(term []byte) bool { d, _ := speller.Distance(term); return d <= text.MaxDistance })
	if err != nil {
		return nil, err
	}
	length, accuracy, looked := utf8.RuneCountInString(folded), cmp.Or(o.Options.Accuracy, query.UsualAccuracy), new(counted)
	err = each(t, []byte{}, func(term []byte) ([]byte, error) {
		if err := looked.next(); err != nil {
			return nil, err
		}
		d, hopeless := speller.Distance(term)
		if hopeless > 0 {
			return format.PrefixEnd(term[:hopeless]), nil
		}
		if d > 0 && d <= text.MaxDistance && 1-float64(d)/float64(max(length, utf8.RuneCount(term))) >= accuracy {
			n, err := t.Documents()
			if err != nil {
				return nil, err
			}
			b.add(query.Suggestion{Word: string(term), Documents: n, Distance: d})
		}
		return append(term, 0), nil
	})
	return b.list, s.close(t, err)
}

// best keeps the best suggestions, in their order.
type best struct {
	list       []query.Suggestion
	size       int
	alphabetic bool
}

// add adds a suggestion, unless no document has it.
func (b *best) add(one query.Suggestion) {
	if one.Documents == 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(b.list, one, b.compare)
	if at == b.size {
		return
	}
	if len(b.list) == b.size {
		b.list = b.list[:b.size-1]
	}
	b.list = slices.Insert(b.list, at, one)
}

// compare orders those with fewer changes first, then the more frequent ones.
func (b *best) compare(x, y query.Suggestion) int {
	frequency := cmp.Compare(y.Documents, x.Documents)
	if b.alphabetic {
		frequency = 0
	}
	return cmp.Or(cmp.Compare(x.Distance, y.Distance), frequency, cmp.Compare(x.Word, y.Word))
}
