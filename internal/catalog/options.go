package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/spelling"
)

// Bounds of the options of an index.
const (
	MaxOptions = 16   // of one index
	MaxOption  = 1000 // bytes of a value
)

// Option is an option of a kind of indexes.
type Option struct {
	Name string

	// Default is the value of an index that is declared without the option. It is part of the
	// on-disk format, as declarations are stored without it: it must not change. An option without one must be given.
	Default string

	// Check returns the canonical spelling of a value, by which declarations are compared, or false for a
	// value that the option cannot have. Rule says in words what it accepts.
	Check func(value string) (canonical string, ok bool)
	Rule  string
}

// OneOf returns an option that is one of some words. The first of them is the default.
func OneOf(name string, words ...string) Option {
	return Option{Name: name, Default: words[0], Rule: "one of " + strings.Join(words, ", "), Check: func(value string) (string, bool) {
		return value, slices.Contains(words, value)
	}}
}

// Option returns the value of an option of the index's kind: its own, or the default. It panics if
// the kind has no such option.
func (ix *Index) Option(name string) string {
	if value, given := ix.Info.Options[name]; given {
		return value
	}
	i := slices.IndexFunc(ix.options, func(o Option) bool { return o.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("jay: an index of kind %q has no option %q", ix.Info.Kind, name))
	}
	return ix.options[i].Default
}

// canonical returns the options of a declaration in canonical form, without those that have
// their defaults, or nil if there are none left. Otherwise it returns an *index.OptionError.
func (k Kind) canonical(ix index.Index, collection string) (map[string]string, error) {
	bad := func(name, rule string) error {
		return &index.OptionError{Index: ix.Name, Collection: collection, Kind: ix.Kind, Option: name, Value: ix.Options[name], Rule: rule}
	}
	names := slices.Sorted(maps.Keys(ix.Options))
	if len(names) > MaxOptions {
		return nil, bad(names[MaxOptions], fmt.Sprintf("an index has at most %d options", MaxOptions))
	}
	kept := make(map[string]string)
	for _, name := range names {
		at := slices.IndexFunc(k.Options, func(o Option) bool { return o.Name == name })
		if at < 0 {
			return nil, &index.OptionError{Index: ix.Name, Collection: collection, Kind: ix.Kind, Option: name, Value: ix.Options[name], Rule: k.has(name), Unknown: true}
		}
		if value := ix.Options[name]; len(value) > MaxOption || !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' }) {
			return nil, bad(name, fmt.Sprintf("at most %d bytes of UTF-8 without control characters", MaxOption))
		}
		value, ok := k.Options[at].Check(ix.Options[name])
		if !ok {
			return nil, bad(name, k.Options[at].Rule)
		}
		kept[name] = value
	}
	for _, o := range k.Options {
		switch value, given := kept[o.Name]; {
		case !given && o.Default == "":
			return nil, bad(o.Name, "it must be given: "+o.Rule)
		case given && value == o.Default:
			delete(kept, o.Name)
		}
	}
	if len(kept) == 0 {
		return nil, nil
	}
	return kept, nil
}

// has says which options there are, and which of them name may have meant.
func (k Kind) has(name string) string {
	if len(k.Options) == 0 {
		return "the kind has no options"
	}
	var names []string
	for _, o := range k.Options {
		names = append(names, o.Name)
	}
	text := "the options of the kind are " + strings.Join(names, ", ")
	if near := spelling.Nearest(name, names); near != "" {
		text += fmt.Sprintf(": did you mean %q?", near)
	}
	return text
}
