// Package groups is the kind of index that keeps the number of documents of each group, and sums of their numbers: in
// the commit that changes a document, by additions, so that the writers of a group do not meet. docs/format.md
// describes its keys, docs/aggregates.md its use.
package groups

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Name is the name of the kind in declarations. Part of the on-disk format. Must not change.
const Name = "groups"

// MaxSums bounds the sums of one index.
const MaxSums = 8

// The option of the kind. Part of the on-disk format. Must not change.
const (
	optionSums     = "sums"
	optionEach     = "each"
	optionFunction = "function"
	optionOnly     = "only"
	none           = "-" // the default: documents are counted, and nothing is summed
)

// Kind is the kind.
var Kind = catalog.Kind{
	Open:    open,
	Field:   parseField,
	Feature: storage.FeatureKeptSums,
	Options: []catalog.Option{{
		Name:    optionSums,
		Default: none,
		Rule:    fmt.Sprintf("1 to %d different fields or expressions of numbers, separated by commas, such as Total, Price * Quantity; - for none", MaxSums),
		Check:   canonicalSums,
	}, optionOfElements(), optionOfFunction(), optionOfOnly(), catalog.Strictness()},
}

// optionOfElements is the option of the array whose elements count.
func optionOfElements() catalog.Option {
	return catalog.Option{
		Name:    optionEach,
		Default: none,
		Rule:    "the path of an array and a name for its elements, each of which counts as a document, such as Lines as line; - for none",
		Check:   func(text string) (string, bool) { return canonicalEach(text, false) },
	}
}

// optionOfFunction is the option of the function whose entries count.
func optionOfFunction() catalog.Option {
	return catalog.Option{
		Name:    optionFunction,
		Default: none,
		Rule:    "a Go function with its version, and a name for its entries, each of which counts as a document, such as function('orders/lines', '2') as line, and then no array; - for none",
		Check:   func(text string) (string, bool) { return canonicalEach(text, true) },
	}
}

// optionOfOnly is the option of the condition on elements.
func optionOfOnly() catalog.Option {
	return catalog.Option{
		Name:    optionOnly,
		Default: none,
		Rule:    "a condition in RQL on the elements of each, which looks at no metadata and at nothing that cannot be kept, such as line.Quantity > 0; - for none",
		Check:   canonicalOnly,
	}
}

// keeper is the Keeper of an index.
type keeper struct {
	ix      *catalog.Index
	kind    string // its name
	members []query.Field
	sums    []query.Field
	fan     query.Each
	only    query.Expr // on elements; nil for none
	readers *sync.Pool // of *reader
	fillers *sync.Pool // of *filler

	computed []int // which of the members, and of the sums behind them, are expressions
}

// open is catalog.Kind.Open.
func open(ix *catalog.Index) (catalog.Keeper, error) {
	k, err := openKeeper(ix, Name, optionSums)
	if err != nil {
		return nil, err
	}
	if len(k.members) == 0 { // a record that is damaged
		return k, nil
	}
	return k, k.setReaders()
}

// openKeeper returns the keeper of an index of a kind with an option that has fields beside the members.
func openKeeper(ix *catalog.Index, kind, fields string) (keeper, error) {
	k := keeper{ix: ix, kind: kind}
	refused := func(option, why string) (keeper, error) {
		return k, &index.OptionError{Index: ix.Info.Name, Collection: ix.Info.Collection, Kind: kind, Option: option, Value: ix.Info.Options[option], Rule: why}
	}
	for _, option := range []string{optionEach, optionFunction} {
		text := ix.Option(option)
		if text == none {
			continue
		}
		if !k.fan.IsZero() {
			return refused(option, "its elements are those of each already: one of the two is -")
		}
		k.fan, _ = query.ParseEach(text) // the catalog has checked it, and the others
	}
	if k.fan.Check() != nil {
		return k, &index.FunctionError{Index: ix.Info.Name, Collection: ix.Info.Collection, Function: k.fan.Function, Version: k.fan.Version}
	}
	if !k.fan.IsZero() && ix.Info.Where != "" {
		where, err := query.ParseCondition(ix.Info.Where, nil)
		if err != nil {
			return k, fmt.Errorf("index %q: where: %w", ix.Info.Name, err)
		}
		if where, err = k.fan.Condition(where); err == nil && query.IsOfElement(where) {
			return refused(optionEach, "the Where of the index is on documents, and names an element: conditions on elements are the option "+optionOnly)
		}
	}
	for _, f := range ix.Fields {
		member, err := k.fan.Field(f.Query())
		if err != nil {
			return k, fmt.Errorf("%w: %w", errs.ErrIndex, err)
		}
		k.members = append(k.members, member)
	}
	parse := query.ParseExpression
	if kind == EndsName {
		parse = parseValue
	}
	sums, _ := parseFields(ix.Option(fields), parse)
	for _, f := range sums {
		if why := notKept(f); why != "" {
			return refused(fields, why)
		}
		sum, err := k.fan.Field(f)
		if err != nil {
			return refused(fields, err.Error())
		}
		k.sums = append(k.sums, sum)
	}
	if text := ix.Option(optionOnly); text != none {
		if k.fan.IsZero() {
			return refused(optionOnly, "it is on the elements of each, and there is none: a condition on documents is the Where of the index")
		}
		only, _ := query.ParseCondition(text, nil)
		var err error
		if k.only, err = k.fan.Condition(only); err != nil {
			return refused(optionOnly, err.Error())
		}
		if _, err := query.Compile(k.only); err != nil {
			return refused(optionOnly, err.Error())
		}
	}
	return k, k.setComputed()
}

// setReaders makes the pools of what reads documents.
func (k *keeper) setReaders() error {
	if _, err := query.NewShares(k.members, k.sums); err != nil {
		return fmt.Errorf("%w: %w", errs.ErrIndex, err)
	}
	of := *k
	k.fillers = &sync.Pool{New: func() any { return new(filler) }}
	k.readers = &sync.Pool{New: func() any { return of.newReader() }}
	return nil
}

// setComputed finds the expressions, and whether documents for which they fail are noted, or refused.
func (k *keeper) setComputed() error {
	for i, f := range k.Computed() {
		if f.Expression != nil {
			k.computed = append(k.computed, i)
		}
	}
	ix := k.ix
	computes := k.computed != nil || k.fan.IsFunction()
	ix.Errors, ix.Strict = ix.Errors && computes, ix.Option(catalog.OptionStrict) == "yes"
	if ix.Strict && !computes {
		return &index.OptionError{Index: ix.Info.Name, Collection: ix.Info.Collection, Kind: k.kind, Option: catalog.OptionStrict, Value: "yes", Rule: "only an index with an expression, such as Price * Quantity, can be strict: the others fail for no document"}
	}
	return nil
}

// IsNarrow implements catalog.Narrow. The entries of a function come from a body of any form.
func (k keeper) IsNarrow() bool { return !k.fan.IsFunction() }

// Computed implements catalog.Computer.
func (k keeper) Computed() []query.Field { return slices.Concat(k.members, k.sums) }

// parseField parses a member of groups, for catalog.Kind.Field: a field of the body, also as date or as utc, or an expression.
func parseField(text string) (query.Field, error) {
	if strings.HasPrefix(text, "-") {
		return query.Field{}, fmt.Errorf("%.100q: groups have no order of their own: leave the sign out, and write 0 - X for an expression", text)
	}
	path, as := catalog.CutDate(text)
	f, err := query.ParseExpression(path)
	if err != nil {
		return f, err
	}
	if as != "" {
		if f.Date != query.DateNone || f.Meta != query.MetaNone {
			return f, fmt.Errorf("%.100q: only a field of the body is read%s", text, as)
		}
		f.Date, f.UTC = query.DateInstant, as == catalog.AsUTC
	}
	if why := notKept(f); why != "" {
		return f, fmt.Errorf("%.100q: %s", text, why)
	}
	return f, nil
}

// notKept says why a member or a sum cannot be kept, or is "". A constant can: a number is added for each document.
func notKept(f query.Field) string {
	if f.IsConstant() {
		return ""
	}
	return catalog.NotKept(f)
}

// parseSums parses the option: the fields, in the order of the text. It returns false for one that is not valid.
func parseSums(text string) (sums []query.Field, ok bool) {
	return parseFields(text, query.ParseExpression)
}

// parseFields parses fields that commas separate, each by parse.
func parseFields(text string, parse func(string) (query.Field, error)) (sums []query.Field, ok bool) {
	if text == none {
		return nil, true
	}
	rest := strings.Split(text, ",")
	for len(rest) > 0 {
		found := false
		for n := 1; n <= len(rest) && !found; n++ { // a comma may also be in parentheses, or in quotes
			f, err := parse(strings.Join(rest[:n], ","))
			if found = err == nil; found {
				sums, rest = append(sums, f), rest[n:]
			}
		}
		if !found || len(sums) > MaxSums {
			return nil, false
		}
	}
	for i, f := range sums {
		if slices.ContainsFunc(sums[:i], func(g query.Field) bool { return g.String() == f.String() }) {
			return nil, false
		}
	}
	return sums, true
}

// canonicalSums is the Check of the option.
func canonicalSums(text string) (canonical string, ok bool) {
	text = strings.TrimSpace(text)
	sums, ok := parseSums(text)
	if !ok || len(sums) == 0 {
		return text, ok
	}
	return fieldsText(sums), true
}

func fieldsText(fields []query.Field) string {
	texts := make([]string, len(fields))
	for i, f := range fields {
		texts[i] = f.String()
	}
	return strings.Join(texts, ", ")
}

// canonicalEach is the Check of the options of elements.
func canonicalEach(text string, function bool) (canonical string, ok bool) {
	if text = strings.TrimSpace(text); text == none {
		return text, true
	}
	e, err := query.ParseEach(text)
	return e.String(), err == nil && e.IsFunction() == function
}

// canonicalOnly is the Check of the option.
func canonicalOnly(text string) (canonical string, ok bool) {
	if text = strings.TrimSpace(text); text == none {
		return text, true
	}
	e, err := query.ParseCondition(text, nil)
	if err != nil {
		return text, false
	}
	for _, f := range query.Fields(e) {
		if catalog.NotKept(f) != "" {
			return text, false
		}
	}
	return query.FormatCondition(e), true
}

// LoadedFields implements catalog.Loader.
func (k keeper) LoadedFields() (query.Each, []query.Field) {
	return k.fan, append(k.Computed(), query.Fields(k.only)...)
}
