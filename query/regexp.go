package query

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of regular expressions.
const (
	MaxRegexpBytes      = 1000    // in the text of one
	MaxRegexpStates     = 2000    // in the program of one; matching takes time proportional to states × text
	MaxAllRegexpStates  = 20_000  // in the programs of all in a query
	MaxRegexpCharacters = 4 << 20 // in the character ranges of all in a query: see rangesIn
)

// regexps compiles the regular expressions of one query and bounds their total
// cost.
type regexps struct {
	states     int
	characters int
}

// pattern is a compiled regular expression.
type pattern struct {
	*regexp.Regexp
	states int    // of its program
	prefix []byte // literal beginning of every match; empty if there is none or the pattern is anchored
}

// compile compiles a pattern, or refuses it if its program is too large. A
// refusal takes some tens of milliseconds at most: 1,000 bytes of text make up to
// 142,000 states.
func (all *regexps) compile(text string, folds bool) (*pattern, error) {
	if len(text) > MaxRegexpBytes {
		return nil, &LimitError{"bytes of a regular expression", MaxRegexpBytes, len(text)}
	}
	if all.characters += rangesIn(text); all.characters > MaxRegexpCharacters {
		return nil, &LimitError{"characters in the ranges of regular expressions", MaxRegexpCharacters, all.characters}
	}
	if folds {
		text = "(?i)" + text
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCondition, err)
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCondition, err)
	}
	states := len(program.Inst)
	if states > MaxRegexpStates {
		return nil, &LimitError{"states of a regular expression", MaxRegexpStates, states}
	}
	if all.states += states; all.states > MaxAllRegexpStates {
		return nil, &LimitError{"states of all regular expressions", MaxAllRegexpStates, all.states}
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCondition, err)
	}
	// LiteralPrefix of ^abc is abc, but a search for it would find it anywhere.
	prefix := ""
	if program.StartCond() == 0 {
		prefix, _ = compiled.LiteralPrefix()
	}
	return &pattern{compiled, states, []byte(prefix)}, nil
}

// rangesIn returns an upper bound on the number of characters in the ranges of a
// pattern that go beyond ASCII. With (?i), package syntax folds each character of
// a range while it parses: 14 bytes such as [B-\x{1e942}] cost it two
// milliseconds. A class such as \pL counts as 2,000 characters, which is about
// what it costs.
func rangesIn(text string) int {
	const lastWithCase, classCost = 0x1e943, 2000
	total := classCost * (strings.Count(text, `\p`) + strings.Count(text, `\P`))
	for {
		_, behind, found := strings.Cut(text, "-")
		if !found {
			return total
		}
		text = behind
		last, _ := utf8.DecodeRuneInString(behind)
		if digits, escaped := strings.CutPrefix(behind, `\x`); escaped {
			digits, _, _ = strings.Cut(strings.TrimPrefix(digits, "{"), "}")
			n, err := strconv.ParseUint(digits, 16, 32)
			if err != nil || n > utf8.MaxRune {
				n = lastWithCase // \xff without braces, or invalid: assume the worst
			}
			last = rune(n)
		}
		if last >= utf8.RuneSelf {
			total += min(int(last), lastWithCase)
		}
	}
}

// matchAtOnce is the product of characters and states up to which a text is
// matched without checking the Pace in between.
const matchAtOnce = 1 << 20

// match reports whether the pattern matches in text. It gives up when pace stops.
func (re *pattern) match(text []byte, pace *Pace) bool {
	if pace == nil || len(text) <= matchAtOnce/re.states {
		return pace.Spend(len(text)*re.states) && re.Match(text)
	}
	if len(re.prefix) > 0 {
		pace.Spend(len(text))
		i := bytes.Index(text, re.prefix)
		if i < 0 {
			return false
		}
		text = text[i:] // no match begins earlier, and the pattern tests nothing before its match
	}
	return re.MatchReader(&pacedText{text, re.states, pace}) && pace.Err() == nil
}

// pacedText reads a text character by character and returns io.EOF when the pace
// stops.
type pacedText struct {
	text   []byte
	states int
	pace   *Pace
}

// ReadRune implements io.RuneReader.
func (t *pacedText) ReadRune() (r rune, size int, err error) {
	if len(t.text) == 0 || !t.pace.Spend(t.states) {
		return 0, 0, io.EOF
	}
	r, size = utf8.DecodeRune(t.text)
	t.text = t.text[size:]
	return r, size, nil
}
