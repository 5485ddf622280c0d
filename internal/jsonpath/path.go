// Package jsonpath implements Jay's path language. Patches, includes,
// projections, queries and indexes refer to values of a document by its paths.
//
//	Name                 the member Name of the document
//	Address.City         a member of a member
//	Lines[0].Qty         an element, counted from 0
//	Lines[].Product      every element
//	Address.'x.y'        names with dots, brackets, spaces or quotes
//	'it\'s'              stand in single quotes; \' and \\ are the escapes
//
// A path begins with a member, as a document is an object. [Parse] returns a
// [Path], [Get] and [Each] find its values in a body, and an [Extractor] finds
// the values of many paths in one pass over a body.
//
// # Strict and loose
//
// [Get] and [Each] are strict: a member step finds nothing in an array.
// [EachLoose] and [Extractor] are loose, as queries and indexes of RavenDB
// are: a member step on an array applies to every element, through nested arrays,
// so that Lines.Product and Lines[].Product reach the same values. Strict or
// loose, an index step or [] finds nothing in a value that is not an array.
//
// # Bodies
//
// Bodies are JSON that metadata.Scan accepted and compacted: valid, without
// white space, without repeated keys. Nothing is checked again. For other input
// the functions terminate, but their results have no meaning.
// Values are returned as raw JSON that shares memory with the body. Keys are
// compared unescaped, so a key written as "\u0061" is the member a.
//
// All functions are safe for concurrent use, and so are the methods of a Path
// and of an Extractor.
package jsonpath

import (
	"strconv"
	"unicode"
)

// Bounds of a path.
const (
	MaxSteps = 64          // steps in a path
	MaxBytes = 1024        // bytes in the text of a path
	MaxIndex = 999_999_999 // of an element
)

// StepKind is the kind of a step.
type StepKind uint8

const (
	Member StepKind = iota + 1 // into the member Step.Name of an object
	Index                      // into the element Step.Index of an array
	Every                      // into each element of an array
)

// Step is one step of a path.
type Step struct {
	Kind  StepKind
	Name  string // if Kind is Member; may be empty
	Index int    // if Kind is Index
}

// Path refers to a value of a document, or to many values if it has a [] step. It
// is immutable. Two paths are the same if their Strings are the same. The zero
// Path has no steps and refers to the body itself; Parse never returns it.
type Path struct {
	text  string // canonical
	steps []Step
}

// String returns the path in canonical form, with quotes only around names that
// need them. Parse accepts it.
func (p Path) String() string { return p.text }

// IsZero reports whether the path has no steps.
func (p Path) IsZero() bool { return len(p.steps) == 0 }

// Len returns the number of steps.
func (p Path) Len() int { return len(p.steps) }

// At returns step i, counted from 0, which must be less than Len.
func (p Path) At(i int) Step { return p.steps[i] }

// Root returns the name of the first member, such as @metadata, or "" if the
// path has no steps.
func (p Path) Root() string {
	if len(p.steps) == 0 {
		return ""
	}
	return p.steps[0].Name
}

// Prefix returns the path of the first n steps; n must be at most Len.
func (p Path) Prefix(n int) Path {
	return Path{textOf(p.steps[:n]), p.steps[:n:n]}
}

// Suffix returns the path without its first n steps; n must be at most Len. It may begin
// with a step that is no member.
func (p Path) Suffix(n int) Path {
	return Path{textOf(p.steps[n:]), p.steps[n:]}
}

// FansOut reports whether the path has a [] step, and so may have many values
// even if looked up strictly.
func (p Path) FansOut() bool {
	for _, s := range p.steps {
		if s.Kind == Every {
			return true
		}
	}
	return false
}

// AppendMember appends a member step to the text of a path, with a dot unless the
// text is empty, and with quotes around the name if it needs them.
func AppendMember(text []byte, name string) []byte {
	if len(text) > 0 {
		text = append(text, '.')
	}
	if plain(name) {
		return append(text, name...)
	}
	text = append(text, '\'')
	for i := range len(name) {
		if name[i] == '\'' || name[i] == '\\' {
			text = append(text, '\\')
		}
		text = append(text, name[i])
	}
	return append(text, '\'')
}

// AppendIndex appends an index step to the text of a path.
func AppendIndex(text []byte, index int) []byte {
	text = append(text, '[')
	text = strconv.AppendInt(text, int64(index), 10)
	return append(text, ']')
}

func appendStep(text []byte, s Step) []byte {
	switch s.Kind {
	case Index:
		return AppendIndex(text, s.Index)
	case Every:
		return append(text, "[]"...)
	}
	return AppendMember(text, s.Name)
}

// plain reports whether a name can stand without quotes.
func plain(name string) bool {
	for _, r := range name {
		if !plainRune(r) {
			return false
		}
	}
	return name != ""
}

func plainRune(r rune) bool {
	switch r {
	case '.', '[', ']', '\'', '"', '\\':
		return false
	}
	if r < unicode.MaxASCII {
		return r > ' '
	}
	return !unicode.IsSpace(r) && !unicode.IsControl(r)
}
