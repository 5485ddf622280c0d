package text

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxTermBytes is the greatest length of a term. A longer word is several terms, one behind the other, each of as many
// whole characters as have room: so a phrase finds it, and a prefix of at most this length does.
const MaxTermBytes = 128

// Token is a word of a text.
type Token struct {
	// Term is what the word is stored and looked for as. It belongs to the Analyzer, until the call that
	// it was given to returns.
	Term []byte

	// Position counts the words of the text, from 0 on. Words that are left out, such as stop words, count, too.
	Position int

	// Start and End are the bytes of the text that the word was made of.
	Start, End int

	// First begins a word or a run of characters of which several terms are made, and Short is one of the terms at its end
	// that have fewer characters than the others. A word of one term is First, and not Short.
	First, Short bool
}

// Analyzer makes tokens of texts. See Find.
type Analyzer struct {
	name  string
	split splitter
	grams int             // of how many characters each term is; 0 for words
	stops map[string]bool // folded words that are left out
	stem  func(word string) string
	elide map[string]bool // what is left out in front of an apostrophe
}

// splitter calls fn with each word of a text and its kind; fn returns false to end.
type splitter func(text string, fn func(w word) bool)

// word is a part of a text that is to be made one or more terms.
type word struct {
	start, end int
	kind       kind
}

// kind is what becomes of a word.
type kind uint8

const (
	folded kind = iota // without regard to case and width
	exact              // as it is written
	joined             // of a script without spaces between words: pairs of its characters are terms
)

// revision is the version of what this package itself decides. Another one builds indexes anew.
const revision = 1

// tables names the tables of characters that are compiled in.
var tables = fmt.Sprintf("%d, Unicode %s and %s, word breaks 17", revision, unicode.Version, norm.Version)

// analyzers are those without parameters, by name.
var analyzers = func() map[string]*Analyzer {
	all := map[string]*Analyzer{
		"standard":   {split: splitWords},
		"simple":     {split: splitLetters},
		"whitespace": {split: splitSpaces},
		"keyword":    {split: splitNothing},
		"ngram":      {split: splitWords, grams: 3},

		"lucene":           {split: splitWords, stops: luceneStops},
		"stop":             {split: splitLetters, stops: luceneStops},
		"lower-whitespace": {split: inLowerCase(splitSpaces)},
		"lower-keyword":    {split: inLowerCase(splitNothing)},
	}
	for n := 2; n <= 6; n++ {
		all["ngram("+strconv.Itoa(n)+")"] = &Analyzer{split: splitWords, grams: n}
	}
	for language, stem := range stemmers {
		all[language] = &Analyzer{split: splitWords, stem: stem, stops: stopWords(language), elide: elisions[language]}
	}
	for name, a := range all {
		a.name = name
	}
	delete(all, "ngram(3)") // has the shorter name
	return all
}()

// Find returns an analyzer by its name, without regard to case:
//
//   - standard: words by the word boundaries of Unicode (UAX 29), in lower case, in form NFKC; of scripts that have no spaces between
//     words, pairs of characters
//   - simple: runs of letters, in lower case
//   - whitespace: what is between white space, as it is written
//   - keyword: the whole text, as it is written
//   - lucene: words as of standard, without those that Lucene's StandardAnalyzer leaves out
//   - stop: words as of simple, without the same ones
//   - lower-whitespace, lower-keyword: as of whitespace and keyword, in lower case
//   - ngram, ngram(2) to ngram(6): all parts of words with three characters, or as many as it says
//   - a language, such as english: words as of standard without the most frequent ones, cut to their stems by Snowball's algorithms
func Find(name string) (a *Analyzer, found bool) {
	a, found = analyzers[strings.ToLower(strings.TrimSpace(name))]
	if !found && strings.EqualFold(strings.TrimSpace(name), "ngram(3)") {
		return analyzers["ngram"], true
	}
	return a, found
}

// Names returns the names of all analyzers, sorted.
func Names() []string { return slices.Sorted(maps.Keys(analyzers)) }

// Name returns the name of the analyzer.
func (a *Analyzer) Name() string { return a.name }

// Version names all that decides which terms the analyzer makes of a text. Terms of two versions must not be mixed.
func (a *Analyzer) Version() string { return a.name + " " + tables }

// Each calls fn with the tokens of a text, in order, until fn returns false. It returns how many positions the text has.
func (a *Analyzer) Each(text string, fn func(Token) bool) (positions int) {
	t := tokens{a: a, text: text, fn: fn, wanted: true}
	a.split(text, t.add)
	t.flush()
	return t.position
}

// tokens makes tokens of words.
type tokens struct {
	a        *Analyzer
	text     string
	fn       func(Token) bool
	position int
	term     []byte // the current term, in memory that is used again
	wanted   bool   // fn has not returned false

	// Words of kind joined that touch each other are one run, of which pairs are made.
	run word
}

// add takes the next word of the text.
func (t *tokens) add(w word) bool {
	if t.run.end > t.run.start {
		if w.kind == joined && w.start == t.run.end {
			t.run.end = w.end
			return t.wanted
		}
		t.flush()
	}
	switch {
	case w.kind == joined:
		t.run = w
	case t.a.grams > 0:
		t.addGrams(w, t.a.grams)
	default:
		t.addWord(w)
	}
	return t.wanted
}

// flush adds the pairs of a run.
func (t *tokens) flush() {
	if t.run.end > t.run.start {
		run := t.run
		t.run = word{}
		t.addGrams(run, max(t.a.grams, 2))
	}
}

// addWord adds the term of a word, if it is none of those that are left out, or the terms of a long one.
func (t *tokens) addWord(w word) {
	text := t.text[w.start:w.end]
	if w.kind == exact {
		t.term = append(t.term[:0], text...)
	} else {
		t.term = appendFolded(t.term[:0], text)
	}
	if t.a.elide != nil {
		t.term = elide(t.term, t.a.elide)
	}
	if t.a.stops[string(t.term)] {
		t.position++
		return
	}
	if t.a.stem != nil && len(t.term) <= MaxTermBytes {
		t.term = append(t.term[:0], t.a.stem(string(t.term))...)
	}
	first := true
	for rest := t.term; len(rest) > 0 && t.wanted; first = false {
		n := cut(rest, MaxTermBytes)
		t.emit(Token{Term: rest[:n], Start: w.start, End: w.end, First: first})
		rest = rest[n:]
	}
}

// addGrams adds what n characters in a row of a word or a run there are, and at its end those of fewer: so each part of a word,
// however short, is a term or the beginning of one.
func (t *tokens) addGrams(w word, n int) {
	// Only the bytes of the next n characters are looked at for each term: a character may become several ones, and several one,
	// so that terms are made of characters of the text and then folded.
	starts := make([]int, 0, n+1)
	next := w.start
	for range n {
		if next < w.end {
			starts = append(starts, next)
			next = nextCharacter(t.text, next, w.end)
		}
	}
	for len(starts) > 0 && t.wanted {
		t.term = appendFolded(t.term[:0], t.text[starts[0]:next])
		t.emit(Token{Term: t.term[:cut(t.term, MaxTermBytes)], Start: starts[0], End: next, First: starts[0] == w.start, Short: len(starts) < n})
		starts = append(starts[:0], starts[1:]...)
		if next < w.end {
			starts = append(starts, next)
			next = nextCharacter(t.text, next, w.end)
		}
	}
}

// nextCharacter returns where the character behind the one at i begins: marks belong to the letter before them, and so do the sound marks of
// katakana of half width.
func nextCharacter(text string, i, end int) int {
	_, size := utf8.DecodeRuneInString(text[i:end])
	for i += size; i < end; i += size {
		var r rune
		if r, size = utf8.DecodeRuneInString(text[i:end]); !unicode.IsMark(r) && r != 'ﾞ' && r != 'ﾟ' {
			break
		}
	}
	return i
}

func (t *tokens) emit(token Token) {
	token.Position = t.position
	t.wanted = t.wanted && t.fn(token)
	t.position++
}

// cut returns how many of the first bytes of term, at most limit, are whole characters.
func cut(term []byte, limit int) int {
	if len(term) <= limit {
		return len(term)
	}
	n := limit
	for n > limit-utf8.UTFMax && !utf8.RuneStart(term[n]) {
		n--
	}
	return n
}

// appendFolded appends a word without regard to case and width: in lower case, in form NFKC. Invalid UTF-8 is one
// replacement character for each byte.
func appendFolded(dst []byte, text string) []byte {
	i := 0
	for ; i < len(text) && text[i] < utf8.RuneSelf; i++ {
		b := text[i]
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		dst = append(dst, b)
	}
	if i == len(text) {
		return dst
	}
	composed := text
	if !norm.NFKC.IsNormalString(text) {
		composed = norm.NFKC.String(text)
	}
	start := len(dst) - i
	dst = dst[:start]
	changed := false
	for _, r := range composed {
		switch {
		case r == 'ß' || r == 'ẞ':
			dst = append(dst, "ss"...)
		case r == 'ς':
			dst = append(dst, "σ"...)
		case r == '’': // the apostrophe that word processors write
			dst = append(dst, '\'')
		default:
			lower := unicode.ToLower(r)
			changed = changed || lower != r
			dst = utf8.AppendRune(dst, lower)
		}
	}
	// Lower case of a composed letter may be one that composes further.
	if changed && !norm.NFKC.IsNormal(dst[start:]) {
		again := norm.NFKC.Bytes(dst[start:])
		dst = append(dst[:start], again...)
	}
	return dst
}
