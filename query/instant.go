package query

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/jaydb/jay/internal/instant"
)

// InstantValue returns a time as a value of KindInstant, to compare with a field that
// is read as a date. It returns ErrValue for a time outside of the years 0 to 9999 of
// UTC.
func InstantValue(t time.Time) (Value, error) {
	text, err := instant.Append([]byte{'"'}, t)
	if err != nil {
		return Value{}, fmt.Errorf("%w: %w", ErrValue, err)
	}
	return canonicalInstant(append(text, '"')), nil
}

// InstantOf returns the instant that a text spells, as RFC 3339 has it. Null and
// instants it returns as they are. For any other value it returns ErrValue.
func InstantOf(v Value) (Value, error) { return Field{}.instantOf(v) }

// instantOf is InstantOf for a value that is compared with f.
func (f Field) instantOf(v Value) (Value, error) {
	switch v.kind {
	case KindNull, KindInstant:
		return v, nil
	case KindText:
		var buf [64]byte
		if text, ok := f.appendInstant([]byte{'"'}, v.text(buf[:])); ok {
			return canonicalInstant(append(text, '"')), nil
		}
	}
	return Value{}, fmt.Errorf("%w: a date is compared with a time, or with text of RFC 3339 such as 2026-01-31T00:00:00Z, not with %.60s", ErrValue, v)
}

// Dated prepares the values of a comparison with f. A value of KindInstant makes f a field that is
// read as a date; values that are compared with such a field become instants, in place. It returns
// ErrValue for a value that is not an instant and for a field that cannot be read as a date, and
// ErrCondition for a part of a date that is compared with anything but text.
func Dated(f *Field, values []Value) error {
	isInstant := func(v Value) bool { return v.kind == KindInstant }
	if f.isNumber() {
		if slices.ContainsFunc(values, isInstant) {
			return fmt.Errorf("%w: %s is a number, and is compared with a time", ErrValue, f)
		}
		return nil
	}
	if f.Date == DateNone {
		if !slices.ContainsFunc(values, isInstant) {
			return nil
		}
		if !f.mayBeDate() {
			return fmt.Errorf("%w: %s is no date, and is compared with a time", ErrValue, f)
		}
		f.Date = DateInstant
	}
	if f.Date == DateInstant {
		for i, v := range values {
			var err error
			if values[i], err = f.instantOf(v); err != nil {
				return err
			}
		}
	}
	return checkDate(In{Field: *f, Values: values}, *f)
}

// isNumber reports whether a field is a function of groups that is a number, whatever its field is read as.
func (f Field) isNumber() bool {
	return f.Func == FuncCount || f.Func == FuncCountDistinct || f.Func == FuncSum || f.Func == FuncAvg
}

// Time returns the time of a value of KindInstant, in UTC, and the zero time for any
// other.
func (v Value) Time() time.Time {
	if v.kind != KindInstant {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, string(v.raw[1:len(v.raw)-1]))
	if err != nil {
		panic(fmt.Sprintf("query: a value of KindInstant is %s", v.raw))
	}
	return t
}

// canonicalInstant returns the instant with this canonical spelling, in quotes. It
// shares its memory.
func canonicalInstant(quoted []byte) Value { return Value{raw: quoted, kind: KindInstant} }

// compareInstants compares by time: canonical spellings sort so but for their end.
func compareInstants(v, w Value) int {
	return bytes.Compare(v.raw[:len(v.raw)-len(`Z"`)], w.raw[:len(w.raw)-len(`Z"`)])
}

// dated returns what a field that is read as a date makes of a value: missing for what
// is neither null nor an instant. Altered reports that the result is not the text of the
// value. A text that the value does not have is appended to memory, which the
// result then shares.
func (f *Field) dated(memory []byte, v Value) (result Value, altered bool, grown []byte) {
	switch v.kind {
	case KindNull:
		return v, false, memory
	case KindText:
	default:
		return Value{}, true, memory
	}
	quoted := v.raw
	if altered = v.plain || !instant.IsCanonical(quoted[1:len(quoted)-1]); altered {
		start := len(memory)
		var buf [64]byte
		var ok bool
		memory = append(memory, '"')
		if memory, ok = f.appendInstant(memory, v.text(buf[:])); !ok {
			return Value{}, true, memory[:start]
		}
		memory = append(memory, '"')
		quoted = memory[start:len(memory):len(memory)]
	}
	if f.Date == DateInstant {
		return canonicalInstant(quoted), altered, memory
	}
	text := quoted[1 : len(quoted)-1]
	if f.Zone != nil {
		start := len(memory)
		var ok bool
		if memory, ok = f.Zone.appendLocal(memory, text); !ok {
			return Value{}, true, memory[:start]
		}
		text = memory[start:len(memory):len(memory)]
	}
	return plainText(text[:dateLengths[f.Date]]), true, memory
}

// appendInstant appends the canonical spelling of a text, as f reads it. It returns false, and dst as
// it was, if the text is no instant.
func (f *Field) appendInstant(dst, text []byte) ([]byte, bool) {
	if f.UTC {
		return instant.AppendUTC(dst, text)
	}
	return instant.AppendText(dst, text)
}

// dateLengths are the lengths of the parts of a canonical spelling, from its beginning.
var dateLengths = [...]int{DateYear: len("2026"), DateMonth: len("2026-01"), DateDay: len("2026-01-31"), DateHour: len("2026-01-31T23")}

// dateNames are the functions of parts in RQL.
var dateNames = [...]string{DateYear: "year", DateMonth: "month", DateDay: "day", DateHour: "hour"}

// datePart returns the part that a function's name stands for, or DateNone.
func datePart(t token) Date {
	for d := DateYear; int(d) < len(dateNames); d++ {
		if t.is(dateNames[d]) {
			return d
		}
	}
	return DateNone
}
