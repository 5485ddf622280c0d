package jsonpath

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrInvalid matches every *Error: errors.Is(err, ErrInvalid).
var ErrInvalid = errors.New("invalid path")

// Error is a syntax error in the text of a path.
type Error struct {
	Path     string // the text
	Offset   int    // of the error in Path, in bytes
	Expected string // what is valid there, such as "a member name"
}

// Error names the text, the offset and what is expected there.
func (e *Error) Error() string {
	return fmt.Sprintf("invalid path %.80q: %s expected at byte %d", e.Path, e.Expected, e.Offset)
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *Error) Is(target error) bool { return target == ErrInvalid }

// Parse parses the text of a path. Every error is an *Error.
func Parse(text string) (Path, error) {
	if len(text) > MaxBytes {
		return Path{}, &Error{text, MaxBytes, fmt.Sprintf("an end within %d bytes", MaxBytes)}
	}
	if !utf8.ValidString(text) {
		return Path{}, &Error{text, 0, "valid UTF-8"}
	}
	p := parser{text: text}
	if err := p.path(); err != nil {
		return Path{}, err
	}

	var canonical []byte
	for _, s := range p.steps {
		canonical = appendStep(canonical, s)
	}
	return Path{string(canonical), p.steps}, nil
}

// MustParse is Parse, but panics if the path is invalid. It is for paths that are
// constants, in tests above all.
func MustParse(text string) Path {
	p, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return p
}

// parser parses text, which is valid UTF-8.
type parser struct {
	text  string
	i     int
	steps []Step
}

func (p *parser) expected(what string) error { return &Error{p.text, p.i, what} }

func (p *parser) path() error {
	if err := p.member(); err != nil {
		return err
	}
	for p.i < len(p.text) {
		if len(p.steps) == MaxSteps {
			return p.expected(fmt.Sprintf("an end after %d steps", MaxSteps))
		}
		var err error
		switch p.text[p.i] {
		case '.':
			p.i++
			err = p.member()
		case '[':
			p.i++
			err = p.element()
		default:
			err = p.expected("a dot, a bracket or the end")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// member parses a name, in quotes or without.
func (p *parser) member() error {
	if p.i < len(p.text) && p.text[p.i] == '\'' {
		name, err := p.quoted()
		p.steps = append(p.steps, Step{Kind: Member, Name: name})
		return err
	}
	rest := p.text[p.i:]
	n := strings.IndexFunc(rest, func(r rune) bool { return !plainRune(r) })
	if n < 0 {
		n = len(rest)
	}
	if n == 0 {
		return p.expected("a member name")
	}
	p.steps = append(p.steps, Step{Kind: Member, Name: rest[:n]})
	p.i += n
	return nil
}

// quoted parses a name in single quotes.
func (p *parser) quoted() (string, error) {
	var name strings.Builder
	for p.i++; p.i < len(p.text); p.i++ {
		switch p.text[p.i] {
		case '\'':
			p.i++
			return name.String(), nil
		case '\\':
			p.i++
			if p.i == len(p.text) || p.text[p.i] != '\'' && p.text[p.i] != '\\' {
				return "", p.expected(`\' or \\`)
			}
		}
		name.WriteByte(p.text[p.i])
	}
	return "", p.expected("a closing quote")
}

// element parses what follows an opening bracket: digits or nothing, and the
// closing bracket.
func (p *parser) element() error {
	start, index := p.i, 0
	for p.i < len(p.text) && '0' <= p.text[p.i] && p.text[p.i] <= '9' {
		index = index*10 + int(p.text[p.i]-'0')
		p.i++
		if index > MaxIndex || p.i-start > 1 && p.text[start] == '0' {
			p.i = start
			return p.expected(fmt.Sprintf("an index from 0 to %d", MaxIndex))
		}
	}
	if p.i == len(p.text) || p.text[p.i] != ']' {
		return p.expected("a closing bracket")
	}
	step := Step{Kind: Index, Index: index}
	if p.i == start {
		step = Step{Kind: Every}
	}
	p.steps = append(p.steps, step)
	p.i++
	return nil
}
