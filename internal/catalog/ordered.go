package catalog

import (
	"fmt"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/query"
)

// ordered is the Keeper of an ordered index: it has an entry for each combination of the
// values of its fields, in their order.
type ordered struct {
	ix       *Index
	computed []int // which of the fields are expressions; nil for none
}

// OptionStrict is the option that refuses a document for which an expression fails. Part of the on-disk format. Must not change.
const OptionStrict = "strict"

// Strictness is the option of a kind that computes.
func Strictness() Option { return OneOf(OptionStrict, "no", "yes") }

// openOrdered is Kind.Open of the ordered kind.
func openOrdered(ix *Index) (Keeper, error) {
	o := ordered{ix: ix}
	for i, f := range ix.Fields {
		if f.own != nil && f.own.Expression != nil {
			o.computed = append(o.computed, i)
		}
	}
	ix.Errors, ix.Strict = o.computed != nil, ix.Option(OptionStrict) == "yes"
	if ix.Strict && !ix.Errors {
		return nil, &index.OptionError{Index: ix.Info.Name, Collection: ix.Info.Collection, Option: OptionStrict, Value: "yes", Rule: "only an index of an expression, such as Price * Quantity, can be strict: the others fail for no document"}
	}
	return o, nil
}

// Computed implements Computer.
func (o ordered) Computed() []query.Field {
	fields := make([]query.Field, len(o.ix.Fields))
	for i, f := range o.ix.Fields {
		fields[i] = f.Query()
	}
	return fields
}

// Count implements Keeper.
func (o ordered) Count(d *Document) int { return d.x.combinations(d.index) }

// Bytes implements Keeper. Each value of a field occurs in as many entries as the other fields
// have combinations.
func (o ordered) Bytes(d *Document, count int, p Precision) int {
	slots := d.x.ci.slots[d.index]
	if p == Roughly {
		return (count + 1) * (EntryBytes + len(slots)*query.MaxKey)
	}
	total := count * EntryBytes
	if o.computed != nil {
		total += EntryBytes // of the note of an error
	}
	for _, slot := range slots {
		s := d.x.slot(slot)
		if p == Exactly {
			s.encode()
			total += count / len(s.values) * len(s.arena)
		} else {
			total += count / len(s.values) * s.bound
		}
	}
	return total
}

// Extract implements Keeper.
func (o ordered) Extract(d *Document, e *Entries) error {
	failed, err := o.failures(d)
	if err != nil {
		return err
	}
	for c := d.x.entryWalk(d.index); c.left > 0; {
		e.take(&c, d.chunk)
		if err := d.flushFull(e); err != nil {
			return err
		}
	}
	return e.NoteFailures(d, &failed)
}

// failures finds the expressions that fail for a document, and whether it is refused because of them.
func (o ordered) failures(d *Document) (failed Failures, err error) {
	for _, i := range o.computed {
		failed.Add(i, *o.ix.Fields[i].own, d.x.reader.Failed(d.slot(i)))
	}
	return failed, failed.refusal(o.ix)
}

// AppendID implements Decoder.
func (o ordered) AppendID(dst, key, value []byte) ([]byte, error) {
	return o.ix.AppendDecodedID(dst, key, value)
}

// Describe implements Keeper: it returns the values, and the ID if it is in the key.
func (o ordered) Describe(key []byte) string {
	if o.ix.Errors && IsError(key) {
		return DescribeError(key)
	}
	text, rest := []byte{'['}, key[5:]
	for i := range o.ix.Fields {
		if i > 0 {
			text = append(text, ',')
		}
		value, _ := query.DecodeKey(rest)
		var ok bool
		if rest, ok = query.SkipKey(rest); !ok {
			return Hex(key)
		}
		raw := string(value.Raw())
		if raw == "" {
			raw = "missing"
		}
		text = append(text, shortText(raw)...)
	}
	text = append(text, ']')
	if len(rest) == 0 {
		return string(text)
	}
	id, err := o.ix.AppendDecodedID(nil, key, nil)
	if err != nil {
		return Hex(key)
	}
	return fmt.Sprintf("%s of document %q", text, id[:min(len(id), maxShown)])
}

// maxShown is how many bytes of a key are shown.
const maxShown = 100

// Hex describes the key of an entry that cannot be decoded, for Keeper.Describe.
func Hex(key []byte) string {
	rest := key[5:]
	return fmt.Sprintf("%x", rest[:min(len(rest), maxShown)])
}

func shortText(s string) string {
	if len(s) > 60 {
		return Cut(s, 60) + "…"
	}
	return s
}
