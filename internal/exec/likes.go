package exec

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/score"
	"github.com/jaydb/jay/internal/text"
	"github.com/jaydb/jay/query"
)

// likes makes searches of the conditions that ask for documents like another one.
type likes struct {
	r        *Run
	ctx      context.Context
	catalog  *catalog.Catalog
	resolved []string // the searches in RQL, for cursors
}

// prepare resolves the conditions of a run, before anything else looks at them. Pages after the first one have its words.
func (l *likes) prepare(ctx context.Context, r *Run, c *catalog.Catalog) error {
	l.r, l.ctx, l.catalog = r, ctx, c
	where, n, err := query.ResolveLikes(r.q.Where, l.resolve)
	if err != nil || n == 0 {
		return err
	}
	plain := *r.q
	plain.Where = where
	r.q = &plain
	return nil
}

// resolve returns the search of a condition.
func (l *likes) resolve(e query.MoreLike) (query.Expr, error) {
	if err := e.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	if len(l.resolved) == query.MaxLikes {
		return nil, fmt.Errorf("%w: %w", errs.ErrQuery, &query.LimitError{What: "moreLikeThis() in one query", Limit: query.MaxLikes, Actual: query.MaxLikes + 1})
	}
	var found query.Expr
	var err error
	if after := l.r.options.After; after == nil {
		found, err = l.choose(e)
	} else if at := len(l.resolved); at >= len(after.Likes) {
		err = fmt.Errorf("%w: not a cursor of Page: it has no words of moreLikeThis()", errs.ErrQuery)
	} else if found, err = query.ParseCondition(after.Likes[at], nil); err != nil {
		err = fmt.Errorf("%w: not a cursor of Page: %w", errs.ErrQuery, err)
	}
	if err != nil {
		return nil, err
	}
	l.resolved = append(l.resolved, query.FormatCondition(found))
	return found, nil
}

// teller is a word that may tell much of a document.
type teller struct {
	field  int // its place in fields
	term   string
	word   string // of the document, that the term was made of
	count  int
	weight float64
}

// likeField is a field whose words are looked at.
type likeField struct {
	query.Field
	analyzer *text.Analyzer
	tellers  []teller
}

// choose returns the search for the words that tell most of a document.
func (l *likes) choose(e query.MoreLike) (query.Expr, error) {
	l.r.pace.Begin(l.ctx)
	fields, err := l.fields(&e.Options)
	if err != nil {
		return nil, err
	}
	body := []byte(e.Document)
	if e.ID != "" {
		if body, err = l.read(e.ID, "document"); err != nil {
			return nil, err
		}
	}
	stops, err := l.stops(e.Options.StopWordsDocumentID)
	if err != nil {
		return nil, err
	}
	var all []teller
	for i := range fields {
		f := &fields[i]
		f.tellers = l.tellers(body, f, &e.Options, stops)
		if err := l.weigh(f, &e.Options); err != nil {
			return nil, err
		}
		for _, t := range f.tellers {
			t.field = i
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b teller) int { return cmp.Compare(b.weight, a.weight) })
	all = all[:min(len(all), cmp.Or(e.Options.MaximumQueryTerms, 25))]
	return conditionOf(e, fields, all), l.r.pace.Err()
}

// conditionOf returns the search for some words, the first of which tells most.
func conditionOf(e query.MoreLike, fields []likeField, all []teller) query.Expr {
	any := query.Or{}
	for i := range fields {
		var words []string
		for _, t := range all {
			if t.field != i {
				continue
			}
			word := escapeWord(t.word)
			if e.Options.Boost {
				boost := min(max(cmp.Or(e.Options.BoostFactor, 1)*t.weight/all[0].weight, 0.001), query.MaxBoost)
				word += "^" + strconv.FormatFloat(boost, 'f', 3, 64)
			}
			words = append(words, word)
		}
		if len(words) > 0 {
			any = append(any, query.Search{Field: fields[i].Field, Text: strings.Join(words, " "), Analyzer: fields[i].analyzer.Name()})
		}
	}
	if len(any) == 0 { // a search for nothing, which finds nothing, but may be scored
		return query.Search{Field: fields[0].Field, Analyzer: fields[0].analyzer.Name()}
	}
	if e.ID == "" {
		return any
	}
	itself := query.Compare{Field: query.Field{Meta: query.MetaID}, Op: query.Equal, Value: query.TextValue(e.ID), Fold: true}
	return query.And{any, query.Not{Expr: itself}}
}

// escapeWord returns a word as a search has it that means nothing but this.
func escapeWord(word string) string {
	var b strings.Builder
	for _, r := range word {
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// fields returns the fields that are looked at, each with the analyzer of an index that has it.
func (l *likes) fields(o *query.MoreLikeOptions) (fields []likeField, err error) {
	q := l.r.q
	for _, name := range o.Fields {
		path, err := jsonpath.Parse(name)
		if err != nil {
			return nil, fmt.Errorf("%w: moreLikeThis(): field %.100q: %w", errs.ErrQuery, name, err)
		}
		parsed := query.Field{Path: path}
		a, _ := text.Find(query.DefaultAnalyzer)
		if ix := WordsIndex(l.catalog, q.From, q.UseIndex, parsed); ix != nil && !q.NoIndex {
			a = ix.Keeper.(catalog.Vocabulary).Analyzer(FieldIn(ix, parsed))
		}
		fields = append(fields, likeField{Field: parsed, analyzer: a})
	}
	if len(fields) > 0 {
		return fields, nil
	}
	for _, ix := range l.catalog.All {
		v, is := ix.Keeper.(catalog.Vocabulary)
		if !is || q.NoIndex || len(ix.Fields) == 0 || WordsIndex(l.catalog, q.From, cmp.Or(q.UseIndex, ix.Info.Name), ix.Fields[0].Query()) != ix {
			continue
		}
		for i := range ix.Fields {
			fields = append(fields, likeField{Field: ix.Fields[i].Query(), analyzer: v.Analyzer(i)})
		}
		return fields, nil
	}
	return nil, fmt.Errorf("%w: moreLikeThis() without Fields looks at those of an index of kind text, and %s has none that is ready", errs.ErrNoIndex, q.From)
}

// read reads a document as the query sees it.
func (l *likes) read(id, what string) ([]byte, error) {
	folded := l.r.env.Rules.Fold(id)
	doc, err := facetRun{l.r}.setup(folded)
	if errors.Is(err, errs.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w: moreLikeThis(): the %s %.300q is not there", errs.ErrQuery, errs.ErrNotFound, what, id)
	}
	if err != nil {
		return nil, err
	}
	l.r.stats.documents++
	return doc.JSON(), nil
}

// stops returns the words that a document lists, in lower case.
func (l *likes) stops(id string) (map[string]bool, error) {
	if id == "" {
		return nil, nil
	}
	body, err := l.read(id, "document with stop words")
	if err != nil {
		return nil, err
	}
	var list struct{ StopWords []string }
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("%w: moreLikeThis(): the array StopWords of document %.300q: %w", errs.ErrQuery, id, err)
	}
	stops := make(map[string]bool)
	for _, w := range list.StopWords {
		stops[strings.ToLower(w)] = true
	}
	return stops, nil
}

// tellers returns the words of a field that a document has often enough, those that it has most often first, at most query.MaxLikeTerms.
func (l *likes) tellers(body []byte, f *likeField, o *query.MoreLikeOptions, stops map[string]bool) (list []teller) {
	at := make(map[string]int)
	left := cmp.Or(o.MaximumNumberOfTokensParsed, 5000)
	reader := query.NewReader([]query.Field{f.Field})
	reader.SetPace(&l.r.pace)
	reader.Reset(query.Doc{Body: body})
	reader.Each(0, func(v query.Value) bool {
		if v.Kind() != query.KindText {
			return true
		}
		s := v.Text()
		f.analyzer.Each(s, func(t text.Token) bool {
			left--
			if !l.r.pace.Spend(1 + t.End - t.Start) {
				return false
			}
			if i, seen := at[string(t.Term)]; seen {
				list[i].count++
			} else if word := s[t.Start:t.End]; isWanted(word, o) && !stops[strings.ToLower(word)] {
				if term, n := f.analyzer.Single(word); n == 1 && term == string(t.Term) { // else it would be looked for as another one
					at[term] = len(list)
					list = append(list, teller{term: term, word: word, count: 1})
				}
			}
			return left > 0
		})
		return left > 0
	})
	least := cmp.Or(o.MinimumTermFrequency, 2)
	list = slices.DeleteFunc(list, func(t teller) bool { return t.count < least })
	slices.SortStableFunc(list, func(a, b teller) int { return b.count - a.count })
	return list[:min(len(list), query.MaxLikeTerms)]
}

// isWanted reports whether a word is of a length that is asked for.
func isWanted(word string, o *query.MoreLikeOptions) bool {
	n := utf8.RuneCountInString(word)
	return len(word) <= query.MaxLikeWord && n >= o.MinimumWordLength && (o.MaximumWordLength == 0 || n <= o.MaximumWordLength)
}

// weigh finds out how frequent words are in all documents, and leaves out those that too few or too many have.
func (l *likes) weigh(f *likeField, o *query.MoreLikeOptions) error {
	if len(f.tellers) == 0 {
		return nil
	}
	words := make([]string, len(f.tellers))
	for i, t := range f.tellers {
		words[i] = escapeWord(t.word)
	}
	s, err := score.New(query.Search{Field: f.Field, Text: strings.Join(words, " "), Analyzer: f.analyzer.Name()})
	if err != nil {
		return err
	}
	if len(s.Searches[0].Parsed.Clauses) != len(f.tellers) {
		return fmt.Errorf("moreLikeThis(): %d words are %d clauses of %q", len(f.tellers), len(s.Searches[0].Parsed.Clauses), s.Searches[0].Text)
	}
	own := scoring{scores: s, rankers: rankersOf(l.r.q, l.catalog)}
	err = own.know(l.ctx, l.r)
	l.r.meta.scorer = nil
	if err != nil {
		return err
	}
	all := s.Frequencies[0]
	kept := f.tellers[:0]
	for i, t := range f.tellers {
		n := min(all.Found[i], all.Documents)
		if n < int64(cmp.Or(o.MinimumDocumentFrequency, 5)) || o.MaximumDocumentFrequency > 0 && n > int64(o.MaximumDocumentFrequency) ||
			o.MaximumDocumentFrequencyPercent > 0 && n*100 > all.Documents*int64(o.MaximumDocumentFrequencyPercent) {
			continue
		}
		t.weight = float64(t.count) * text.Rarity(all.Documents, n)
		kept = append(kept, t)
	}
	f.tellers = kept
	return nil
}
