package query

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/instant"
)

// Operators and functions are made known to expressions here: nothing but the tables refers to them.
func init() {
	operatorsOf = map[string]*function{
		"+": {name: "+", least: 2, most: 2, apply: plus},
		"-": {name: "-", least: 2, most: 2, apply: numeric('-')},
		"*": {name: "*", least: 2, most: 2, apply: numeric('*')},
		"/": {name: "/", least: 2, most: 2, apply: numeric('/')},
		"%": {name: "%", least: 2, most: 2, apply: numeric('%')},
	}
	functions = []*function{
		{name: "abs", least: 1, most: 1, apply: absolute},
		{name: "ceiling", least: 1, most: 1, apply: rounding(1)},
		{name: "coalesce", least: 2, most: maxOperands, choose: chooseFirst},
		{name: "concat", least: 2, most: maxOperands, takesNull: true, apply: concat},
		{name: "dateDiff", least: 3, most: 3, units: diffUnits, apply: dateDiff},
		{name: "datePart", least: 2, most: 2, units: partUnits, apply: partOf},
		{name: "dateTrunc", least: 2, most: 2, units: truncUnits, apply: dateTrunc},
		{name: "floor", least: 1, most: 1, apply: rounding(-1)},
		{name: "if", least: 1, most: 2, choose: chooseIf},
		{name: "join", least: 2, most: 2, choose: joinValues},
		{name: "length", least: 1, most: 1, apply: length},
		{name: "lower", least: 1, most: 1, apply: mapped(bytes.ToLower)},
		{name: "number", least: 1, most: 1, apply: toNumber},
		{name: "replace", least: 3, most: 3, apply: replace},
		{name: "round", least: 1, most: 2, apply: rounding(0)},
		{name: "substring", least: 2, most: 3, apply: substring},
		{name: "text", least: 1, most: 1, apply: toText},
		{name: "trim", least: 1, most: 1, apply: mapped(func(text []byte) []byte { return bytes.TrimFunc(text, unicode.IsSpace) })},
		{name: "upper", least: 1, most: 1, apply: mapped(bytes.ToUpper)},
	}
}

// wants returns the error for a value of a kind that an operand is not.
func wants(what string, v Value) error {
	if v.kind == KindTrue || v.kind == KindFalse {
		return fmt.Errorf("%s is wanted, not %v", what, v)
	}
	return fmt.Errorf("%s is wanted, not the %v %.60s", what, v.kind, v)
}

// numbers returns the numbers that v are.
func numbersOf(v []Value) (x [2]exact, err error) {
	for i, operand := range v {
		if operand.kind != KindNumber {
			return x, wants("a number", operand)
		}
		if x[i], err = exactOf(operand.raw); err != nil {
			return x, err
		}
	}
	return x, nil
}

// numeric returns an operator on two numbers.
func numeric(op byte) func(*computation, []Value) (Value, error) {
	return func(c *computation, v []Value) (Value, error) {
		if a, b, ok := smallOperands(v); ok {
			switch op {
			case '+':
				return c.integer(a + b), nil
			case '-':
				return c.integer(a - b), nil
			case '*':
				if p := a * b; a == 0 || p/a == b {
					return c.integer(p), nil
				}
			}
		}
		x, err := numbersOf(v)
		if err != nil {
			return Value{}, err
		}
		result, err := arithmetic(op, x[0], x[1])
		if err != nil {
			return Value{}, err
		}
		return result.value()
	}
}

// smallOperands returns two integers of at most 18 digits, whose sum and difference fit.
func smallOperands(v []Value) (a, b int64, ok bool) {
	if v[0].kind != KindNumber || v[1].kind != KindNumber {
		return 0, 0, false
	}
	if a, ok = smallInt(v[0].raw); ok {
		b, ok = smallInt(v[1].raw)
	}
	return a, b, ok
}

// integer returns an integer as a value.
func (c *computation) integer(n int64) Value {
	start := len(c.reader.dates)
	c.reader.dates = strconv.AppendInt(c.reader.dates, n, 10)
	return ValueOf(c.reader.dates[start:len(c.reader.dates):len(c.reader.dates)])
}

// plus adds numbers and joins texts.
func plus(c *computation, v []Value) (Value, error) {
	if v[0].kind == KindText && v[1].kind == KindText {
		return concat(c, v)
	}
	if v[0].kind == KindText || v[1].kind == KindText {
		return Value{}, fmt.Errorf("a number and a text have no sum: %.60s and %.60s; concat() joins them", v[0], v[1])
	}
	return numeric('+')(c, v)
}

func absolute(_ *computation, v []Value) (Value, error) {
	x, err := numbersOf(v)
	if err != nil {
		return Value{}, err
	}
	x[0].units.Abs(x[0].units)
	return x[0].value()
}

// rounding returns round, floor or ceiling: see exact.rounded.
func rounding(how int) func(*computation, []Value) (Value, error) {
	return func(_ *computation, v []Value) (Value, error) {
		x, err := numbersOf(v[:1])
		if err != nil {
			return Value{}, err
		}
		decimals := int64(0)
		if len(v) > 1 {
			if decimals, err = whole("the number of decimals", v[1], -maxDigits, maxDigits); err != nil {
				return Value{}, err
			}
		}
		return x[0].rounded(decimals, how).value()
	}
}

// whole returns a whole number within bounds.
func whole(what string, v Value, least, most int64) (int64, error) {
	if v.kind == KindNumber {
		if n, small := smallInt(canonical(v).raw); small && n >= least && n <= most {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%s is a whole number from %d to %d, not %.60s", what, least, most, v)
}

// appendText appends a scalar as text: a number as it is written in rows, null and what is missing as nothing.
func appendText(dst []byte, v Value) ([]byte, error) {
	switch v.kind {
	case KindMissing, KindNull:
		return dst, nil
	case KindText:
		return append(dst, v.text(nil)...), nil
	case KindInstant:
		return append(dst, v.raw[1:len(v.raw)-1]...), nil
	case KindArray, KindObject:
		return dst, wants("a text, a number, true or false", v)
	}
	return append(dst, canonical(v).raw...), nil
}

func concat(c *computation, v []Value) (Value, error) {
	start := len(c.reader.dates)
	for _, part := range v {
		var err error
		if c.reader.dates, err = appendText(c.reader.dates, part); err != nil {
			return Value{}, err
		}
		if n := len(c.reader.dates) - start; n > MaxComputedBytes {
			return Value{}, &LimitError{"bytes of a computed text", MaxComputedBytes, n}
		}
	}
	c.reader.pace.Spend(len(c.reader.dates) - start)
	return c.textFrom(start), nil
}

func toText(c *computation, v []Value) (Value, error) { return concat(c, v) }

// toNumber reads a text that is a number in JSON's notation.
func toNumber(_ *computation, v []Value) (Value, error) {
	switch v[0].kind {
	case KindNumber:
		return v[0], nil
	case KindText:
		if text := v[0].text(nil); isNumber(text) {
			n := ValueOf(text)
			return n, checkNumber(n)
		}
	}
	return Value{}, wants("the text of a number", v[0])
}

// textOf returns the text that v is.
func textOf(v Value) ([]byte, error) {
	if v.kind != KindText {
		return nil, wants("a text", v)
	}
	return v.text(nil), nil
}

// mapped returns a function of a text.
func mapped(fn func([]byte) []byte) func(*computation, []Value) (Value, error) {
	return func(c *computation, v []Value) (Value, error) {
		text, err := textOf(v[0])
		if err != nil {
			return Value{}, err
		}
		c.reader.pace.Spend(len(text))
		return plainText(fn(text)), nil
	}
}

func length(c *computation, v []Value) (Value, error) {
	text, err := textOf(v[0])
	if err != nil {
		return Value{}, err
	}
	c.reader.pace.Spend(len(text))
	return c.integer(int64(utf8.RuneCount(text))), nil
}

func replace(c *computation, v []Value) (Value, error) {
	var texts [3][]byte
	for i := range texts {
		var err error
		if texts[i], err = textOf(v[i]); err != nil {
			return Value{}, err
		}
	}
	text, from, to := texts[0], texts[1], texts[2]
	if len(from) == 0 {
		return Value{}, fmt.Errorf("the text that is replaced is empty")
	}
	c.reader.pace.Spend(len(text))
	if n := len(text) + bytes.Count(text, from)*(len(to)-len(from)); n > MaxComputedBytes {
		return Value{}, &LimitError{"bytes of a computed text", MaxComputedBytes, n}
	}
	return plainText(bytes.ReplaceAll(text, from, to)), nil
}

// substring returns the characters from one on, all or so many. Where there are fewer, it has those.
func substring(c *computation, v []Value) (Value, error) {
	text, err := textOf(v[0])
	if err != nil {
		return Value{}, err
	}
	const most = 1 << 30
	from, err := whole("the first character", v[1], 0, most)
	count := int64(most)
	if err == nil && len(v) > 2 {
		count, err = whole("the number of characters", v[2], 0, most)
	}
	if err != nil {
		return Value{}, err
	}
	c.reader.pace.Spend(len(text))
	text = text[offsetOf(text, from):]
	return plainText(text[:offsetOf(text, count)]), nil
}

// offsetOf returns the offset of the n-th character, or the length of a text that has fewer.
func offsetOf(text []byte, n int64) int {
	at := 0
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at
}

// The units of dateDiff, datePart and dateTrunc.
var (
	diffUnits  = []string{"day", "hour", "minute", "second", "millisecond"}
	diffLength = []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second, time.Millisecond}
	partUnits  = []string{"year", "quarter", "month", "week", "day", "weekday", "dayOfYear", "hour", "minute", "second", "millisecond"}
	truncUnits = []string{"year", "quarter", "month", "week", "day", "hour", "minute", "second"}
)

// timeOf returns the time that a value is, in UTC.
func timeOf(v Value) (time.Time, error) {
	i, err := InstantOf(v)
	if err != nil || i.kind != KindInstant {
		return time.Time{}, wants("a date of RFC 3339, such as 2026-01-31T00:00:00Z,", v)
	}
	return i.Time(), nil
}

// dateDiff returns how many whole units lie between two instants, towards zero.
func dateDiff(c *computation, v []Value) (Value, error) {
	from, err := timeOf(v[1])
	if err != nil {
		return Value{}, err
	}
	to, err := timeOf(v[2])
	if err != nil {
		return Value{}, err
	}
	// The years from 0 to 9999 do not fit into a Duration.
	unit := diffLength[slices.Index(diffUnits, v[0].Text())]
	seconds, nanos := to.Unix()-from.Unix(), int64(to.Nanosecond()-from.Nanosecond())
	if seconds > 0 && nanos < 0 {
		seconds, nanos = seconds-1, nanos+int64(time.Second)
	} else if seconds < 0 && nanos > 0 {
		seconds, nanos = seconds+1, nanos-int64(time.Second)
	}
	if unit >= time.Second {
		return c.integer(seconds / int64(unit/time.Second)), nil
	}
	return c.integer(seconds*int64(time.Second/unit) + nanos/int64(unit)), nil
}

// partOf returns a part of an instant, a number. Weeks are those of ISO 8601; a weekday is from 1, Monday, to 7.
func partOf(c *computation, v []Value) (Value, error) {
	t, err := timeOf(v[1])
	if err != nil {
		return Value{}, err
	}
	n := 0
	switch v[0].Text() {
	case "year":
		n = t.Year()
	case "quarter":
		n = (int(t.Month()) + 2) / 3
	case "month":
		n = int(t.Month())
	case "week":
		_, n = t.ISOWeek()
	case "day":
		n = t.Day()
	case "weekday":
		n = (int(t.Weekday())+6)%7 + 1
	case "dayOfYear":
		n = t.YearDay()
	case "hour":
		n = t.Hour()
	case "minute":
		n = t.Minute()
	case "second":
		n = t.Second()
	case "millisecond":
		n = t.Nanosecond() / int(time.Millisecond)
	}
	return c.integer(int64(n)), nil
}

// dateTrunc returns the beginning of the unit that an instant is in, as text of RFC 3339. Weeks begin on Monday.
func dateTrunc(_ *computation, v []Value) (Value, error) {
	t, err := timeOf(v[1])
	if err != nil {
		return Value{}, err
	}
	year, month, day := t.Date()
	switch v[0].Text() {
	case "year":
		t = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
	case "quarter":
		t = time.Date(year, (month-1)/3*3+1, 1, 0, 0, 0, 0, time.UTC)
	case "month":
		t = time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	case "week":
		t = time.Date(year, month, day-(int(t.Weekday())+6)%7, 0, 0, 0, 0, time.UTC)
	case "day":
		t = time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	case "hour":
		t = t.Truncate(time.Hour)
	case "minute":
		t = t.Truncate(time.Minute)
	case "second":
		t = t.Truncate(time.Second)
	}
	text, err := instant.Append(nil, t)
	return plainText(text), err
}

// chooseFirst computes coalesce.
func chooseFirst(c *computation, o *operation) (v Value, err error) {
	for _, operand := range o.operands {
		if v, err = c.value(operand); err != nil || v.kind > KindNull {
			return v, err
		}
	}
	return v, nil
}

// chooseIf computes if.
func chooseIf(c *computation, o *operation) (Value, error) {
	m := c.matchers[o.condition]
	m.SetPace(c.reader.pace)
	m.reader.inherited = c.reader.spent
	chosen := o.operands[1:]
	if m.Match(c.reader.doc) {
		chosen = o.operands
	}
	if c.reader.doc.version == 0 { // the next element of a fan-out finds what was read of the document
		m.reader.Reset(Doc{}) // holds nothing of a large document
	}
	if len(chosen) == 0 {
		return Value{}, nil
	}
	return c.value(chosen[0])
}

// joinValues computes join: the texts of all values of a field, with another text between them.
// Null is nothing. Without a value there is no text.
func joinValues(c *computation, o *operation) (Value, error) {
	between, err := c.value(o.operands[1])
	if err != nil || between.kind <= KindNull {
		return between, err
	}
	separator, err := textOf(between)
	var text []byte // the values may be in the memory of the reader
	n := 0
	add := func(v Value) bool {
		if n++; n > 1 {
			text = append(text, separator...)
		}
		if text, err = appendText(text, v); err == nil && len(text) > MaxComputedBytes {
			err = &LimitError{"bytes of a computed text", MaxComputedBytes, len(text)}
		}
		return err == nil
	}
	switch of := o.operands[0]; {
	case err != nil:
	case of.function == nil && of.field >= 0:
		c.reader.Each(c.slots[of.field], add)
	default:
		var v Value
		if v, err = c.value(of); err != nil || v.kind <= KindNull {
			return v, err
		}
		add(v)
	}
	if err == nil && n == 0 {
		return Value{}, c.reader.pace.Err()
	}
	return c.charged(o, plainText(text), err)
}
