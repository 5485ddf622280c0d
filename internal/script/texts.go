package script

import (
	"math"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A text is UTF-8. JavaScript counts and cuts texts by UTF-16 units, and half of a pair is a text there, too: it has the three
// bytes here that UTF-8 would have for it, with which no document is stored. When two halves meet again, they are a
// character again.

const (
	firstHalf, secondHalf = 0xd800, 0xdc00
	afterHalves           = 0xe000
)

// halfAt returns the half of a pair that begins at a byte of a text, or 0.
func halfAt(text string, i int) rune {
	if i+2 < len(text) && text[i] == 0xed && text[i+1] >= 0xa0 && text[i+1] <= 0xbf {
		return rune(text[i]&0xf)<<12 | rune(text[i+1]&0x3f)<<6 | rune(text[i+2]&0x3f)
	}
	return 0
}

// characterAt returns the character, or the half of one, that begins at a byte of a text, and its bytes.
func characterAt(text string, i int) (rune, int) {
	if half := halfAt(text, i); half != 0 {
		return half, 3
	}
	return utf8.DecodeRuneInString(text[i:])
}

// glue returns x and y, one after the other.
func glue(x, y string) string {
	if n := len(x) - 3; n >= 0 {
		a, b := halfAt(x, n), halfAt(y, 0)
		if a >= firstHalf && a < secondHalf && b >= secondHalf {
			return x[:n] + string(utf16.DecodeRune(a, b)) + y[3:]
		}
	}
	return x + y
}

// mend makes characters of the pairs of halves in a text.
func mend(text string) string {
	for i := 0; i+5 < len(text); i++ {
		at := strings.IndexByte(text[i:], 0xed)
		if at < 0 {
			return text
		}
		i += at
		a := halfAt(text, i)
		if b := halfAt(text, i+3); a >= firstHalf && a < secondHalf && b >= secondHalf {
			return text[:i] + string(utf16.DecodeRune(a, b)) + mend(text[i+6:])
		}
	}
	return text
}

// units returns the UTF-16 units of a string, by which JavaScript counts.
func (r *run) units(place int, text string) ([]uint16, error) {
	if err := r.allocate(place, 2*int64(len(text))); err != nil {
		return nil, err
	}
	units := make([]uint16, 0, len(text))
	for i := 0; i < len(text); {
		c, size := characterAt(text, i)
		i += size
		if c >= firstHalf && c < afterHalves {
			units = append(units, uint16(c))
		} else {
			units = utf16.AppendRune(units, c)
		}
	}
	return units, nil
}

// textOf returns the text of UTF-16 units.
func textOf(units []uint16) string {
	var out strings.Builder
	for i := 0; i < len(units); i++ {
		c := rune(units[i])
		switch {
		case c < firstHalf || c >= afterHalves:
			out.WriteRune(c)
		case c < secondHalf && i+1 < len(units) && units[i+1] >= secondHalf && units[i+1] < afterHalves:
			out.WriteRune(utf16.DecodeRune(c, rune(units[i+1])))
			i++
		default:
			out.Write([]byte{0xed, 0x80 | byte(c>>6)&0x3f, 0x80 | byte(c)&0x3f})
		}
	}
	return out.String()
}

// unitCount returns how many UTF-16 units a text has.
func unitCount(text string) int {
	n := 0
	for i := 0; i < len(text); {
		c, size := characterAt(text, i)
		i += size
		if n++; c > 0xffff {
			n++
		}
	}
	return n
}

// byteAt returns the byte at which a unit of a text begins, or the character after it if it is the second half of one.
func byteAt(text string, unit int) int {
	i := 0
	for ; unit > 0 && i < len(text); unit-- {
		c, size := characterAt(text, i)
		if i += size; c > 0xffff {
			unit--
		}
	}
	return i
}

// compareTexts compares texts by their UTF-16 units, as JavaScript does.
func compareTexts(x, y string) int {
	i := 0
	for i < len(x) && i < len(y) && x[i] == y[i] {
		i++
	}
	if i == len(x) || i == len(y) {
		return len(x) - len(y)
	}
	for i > 0 && !utf8.RuneStart(x[i]) {
		i--
	}
	a, _ := characterAt(x, i)
	b, _ := characterAt(y, i)
	first := func(c rune) rune {
		if c > 0xffff {
			c, _ = utf16.EncodeRune(c)
		}
		return c
	}
	if f, g := first(a), first(b); f != g {
		return int(f - g)
	}
	return int(a - b)
}

// textMethod returns a method of a string whose arguments are strings, and at least least of them: those that are not given
// are undefined, as in JavaScript.
func textMethod(least int, fn func(r *run, place int, this string, args []string) (value, error)) method {
	return func(r *run, place int, this value, args []value) (value, error) {
		text := this.(string)
		if err := r.allocate(place, int64(len(text))); err != nil {
			return nil, err
		}
		parts := make([]string, max(least, len(args)))
		for i := range parts {
			part, err := r.text(arg(args, i))
			if err != nil {
				return nil, err
			}
			parts[i] = part
		}
		return fn(r, place, text, parts)
	}
}

// search returns a method that looks for a text from a position on, or up to one. fn is called with the text, what is looked for and
// the position in UTF-16 units, from 0 to length, which is otherwise if none is given. It returns a unit or -1.
func search(fn func(text, part string, position int) value, atEnd bool) method {
	return func(r *run, place int, this value, args []value) (value, error) {
		text := this.(string)
		if err := r.allocate(place, int64(len(text))); err != nil {
			return nil, err
		}
		part, err := r.text(arg(args, 0))
		if err != nil {
			return nil, err
		}
		n := unitCount(text)
		otherwise := 0
		if atEnd {
			otherwise = n
		}
		return fn(text, part, max(0, min(argInt(args, 1, otherwise), n))), nil
	}
}

// indexIn returns the first unit of a part in a text, from a unit on, or -1.
func indexIn(text, part string, from int) int64 {
	if part == "" {
		return int64(from)
	}
	start := byteAt(text, from)
	i := strings.Index(text[start:], part)
	if i < 0 {
		return -1
	}
	return int64(unitCount(text[:start+i]))
}

// lastIndexOf is that of texts.
func lastIndexOf(r *run, place int, this value, args []value) (value, error) {
	if f := number(arg(args, 1)); math.IsNaN(f) { // what is no number is the end here, and 0 elsewhere
		args = args[:min(1, len(args))]
	}
	return search(func(text, part string, position int) value {
		if part == "" {
			return int64(position)
		}
		i := strings.LastIndex(text[:min(len(text), byteAt(text, position)+len(part))], part)
		if i < 0 {
			return int64(-1)
		}
		return int64(unitCount(text[:i]))
	}, true)(r, place, this, args)
}

// cut returns a method that cuts a string by positions.
func cut(bounds func(args []value, n int) (from, to int)) method {
	return func(r *run, place int, this value, args []value) (value, error) {
		units, err := r.units(place, this.(string))
		if err != nil {
			return nil, err
		}
		from, to := bounds(args, len(units))
		if to <= from {
			return "", nil
		}
		return textOf(units[from:to]), nil
	}
}

// split is that of texts.
func split(r *run, place int, this value, args []value) (value, error) {
	text, out := this.(string), &array{}
	most := uint32(math.MaxUint32)
	if v := arg(args, 1); v != undefined {
		most = toUint32(number(v))
	}
	separator, err := r.text(arg(args, 0))
	if err == nil {
		err = r.allocate(place, 17*int64(len(text))+64)
	}
	if err != nil || most == 0 {
		return out, err
	}
	if arg(args, 0) == undefined {
		return &array{[]value{text}}, nil
	}
	if separator == "" {
		units, err := r.units(place, text)
		if err != nil {
			return nil, err
		}
		for i := range units[:min(len(units), int(most))] {
			out.elements = append(out.elements, textOf(units[i:i+1]))
		}
		return out, nil
	}
	for part := range strings.SplitSeq(text, separator) {
		if uint32(len(out.elements)) == most {
			break
		}
		out.elements = append(out.elements, part)
	}
	return out, nil
}

// repeat is that of texts.
func repeat(r *run, place int, this value, args []value) (value, error) {
	n := argInt(args, 0, 0)
	if n < 0 || math.IsInf(number(arg(args, 0)), 0) {
		return nil, fail(place, "repeat needs a number of times")
	}
	if err := r.allocate(place, int64(n)*int64(len(this.(string)))+int64(n)); err != nil {
		return nil, err
	}
	return mend(strings.Repeat(this.(string), n)), nil
}

// replace returns the method that replaces the first or all occurrences of a text.
func replace(all bool) method {
	return func(r *run, place int, this value, args []value) (value, error) {
		if _, is := arg(args, 1).(*function); is {
			return nil, &Error{place: place, Message: "replace with a function is not there", Missing: true}
		}
		return textMethod(2, func(r *run, place int, s string, a []string) (value, error) {
			if strings.Contains(a[1], "$") {
				return nil, &Error{place: place, Message: "replace with a pattern is not there", Missing: true}
			}
			n := 1
			if all {
				n = strings.Count(s, a[0])
			}
			if err := r.allocate(place, int64(len(s))+int64(n)*int64(len(a[1]))); err != nil {
				return nil, err
			}
			return mend(strings.Replace(s, a[0], a[1], n)), nil
		})(r, place, this, args)
	}
}

// pad returns a method that makes a text as long as its argument says.
func pad(atStart bool) method {
	return func(r *run, place int, this value, args []value) (value, error) {
		text, with := this.(string), " "
		if v := arg(args, 1); v != undefined {
			var err error
			if with, err = r.text(v); err != nil {
				return nil, err
			}
		}
		have, err := r.units(place, text)
		if err != nil {
			return nil, err
		}
		lacks := argInt(args, 0, 0) - len(have)
		if lacks <= 0 || with == "" {
			return text, nil
		}
		if err := r.allocate(place, 4*int64(lacks)+int64(len(with))); err != nil {
			return nil, err
		}
		units, err := r.units(place, with)
		if err != nil {
			return nil, err
		}
		filler := make([]uint16, 0, lacks)
		for len(filler) < lacks {
			filler = append(filler, units[:min(len(units), lacks-len(filler))]...)
		}
		if atStart {
			return textOf(append(filler, have...)), nil
		}
		return textOf(append(have, filler...)), nil
	}
}

// codeAt is charCodeAt.
func codeAt(r *run, place int, this value, args []value) (value, error) {
	units, err := r.units(place, this.(string))
	if err != nil {
		return nil, err
	}
	if i := argInt(args, 0, 0); i >= 0 && i < len(units) {
		return int64(units[i]), nil
	}
	return math.NaN(), nil
}

func initTexts() {
	trim := func(fn func(string, func(rune) bool) string) method {
		return textMethod(0, func(_ *run, _ int, s string, _ []string) (value, error) { return fn(s, isSpace), nil })
	}
	textMethods = map[string]method{
		"toUpperCase": textMethod(0, func(_ *run, _ int, s string, _ []string) (value, error) { return strings.ToUpper(s), nil }), // as upper() of RQL
		"toLowerCase": textMethod(0, func(_ *run, _ int, s string, _ []string) (value, error) { return strings.ToLower(s), nil }),
		"trim":        trim(strings.TrimFunc),
		"trimStart":   trim(strings.TrimLeftFunc),
		"trimEnd":     trim(strings.TrimRightFunc),
		"padStart":    pad(true),
		"padEnd":      pad(false),
		"charCodeAt":  codeAt,
		"toString":    textMethod(0, func(_ *run, _ int, s string, _ []string) (value, error) { return s, nil }),
		"startsWith": search(func(text, part string, from int) value {
			return part == "" || strings.HasPrefix(text[byteAt(text, from):], part)
		}, false),
		"endsWith": search(func(text, part string, to int) value {
			return part == "" || strings.HasSuffix(text[:byteAt(text, to)], part)
		}, true),
		"includes":    search(func(text, part string, from int) value { return indexIn(text, part, from) >= 0 }, false),
		"indexOf":     search(func(text, part string, from int) value { return indexIn(text, part, from) }, false),
		"lastIndexOf": lastIndexOf,
		"split":       split,
		"concat": textMethod(0, func(r *run, place int, s string, a []string) (value, error) {
			n := int64(len(s))
			for _, part := range a { // all parts may be the same large text
				n += int64(len(part))
			}
			if err := r.allocate(place, n); err != nil {
				return nil, err
			}
			return mend(s + strings.Join(a, "")), nil
		}),
		"repeat": repeat,
		"slice": cut(func(args []value, n int) (int, int) {
			return clamp(argInt(args, 0, 0), n), clamp(argInt(args, 1, n), n)
		}),
		"substring": cut(func(args []value, n int) (int, int) {
			from, to := max(0, min(argInt(args, 0, 0), n)), max(0, min(argInt(args, 1, n), n))
			return min(from, to), max(from, to)
		}),
		"substr": cut(func(args []value, n int) (int, int) {
			from := clamp(argInt(args, 0, 0), n)
			return from, from + max(0, min(argInt(args, 1, n), n-from))
		}),
		"charAt": cut(func(args []value, n int) (int, int) {
			i := argInt(args, 0, 0)
			if i < 0 || i >= n {
				return 0, 0
			}
			return i, i + 1
		}),
		"replace":    replace(false),
		"replaceAll": replace(true),
	}
}
