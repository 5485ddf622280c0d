package query

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// SkipKey returns what follows the part that key begins with. It returns
// false if key does not begin with a part that AppendKey made.
func SkipKey(key []byte) (rest []byte, ok bool) {
	r := newKeyReader(key)
	r.skip()
	if r.broken {
		return nil, false
	}
	return key[r.i:], true
}

// DecodeKey returns the value of the part that key begins with, in memory of
// its own. Exact tells that it equals the value that AppendKey was given; of
// one that was cut only the beginning is left. Its JSON text is the one that
// was given if Recoverable says so; else numbers come back in the form that
// encoding/json would give them (1 for 1.0), and text with no escapes but
// those that JSON demands. What is not a part decodes to missing, not exact.
func DecodeKey(key []byte) (v Value, exact bool) {
	r := newKeyReader(key)
	v, exact = r.decode()
	if r.broken {
		return Value{}, false
	}
	return v, exact
}

// AppendDecoded appends the JSON text that DecodeKey gives for the part that
// key begins with, nothing for missing, and returns what follows the part. It
// returns false if key does not begin with a part. It allocates nothing for
// ASCII text without escapes and for numbers.
func AppendDecoded(dst, key []byte) (text, rest []byte, ok bool) {
	r := keyReader{key: key}
	if len(key) > 0 && key[0]&tagDescending != 0 {
		r.mask = 0xff
	}
	switch tag := r.peek(); {
	case tag == tagText:
		if quoted, plain := r.appendASCII(dst); plain {
			return quoted, key[r.i:], true
		}
	case tag >= tagNegativeLarge && tag <= tagPositiveLarge && tag != tagZero:
		r.i++
		var digits [2 * maxKeyPairs]byte
		n, _ := r.number(tag, digits[:0])
		if r.broken {
			return dst, nil, false
		}
		return n.append(dst), key[r.i:], true
	}
	r.i = 0
	v, _ := r.decode()
	if r.broken {
		return dst, nil, false
	}
	if !v.IsMissing() {
		dst = v.AppendJSON(dst)
	}
	return dst, key[r.i:], true
}

// appendASCII appends the text of the part, in quotes. It returns false, and
// dst as it was, if the text is not the plainest there is.
func (r *keyReader) appendASCII(dst []byte) ([]byte, bool) {
	start := len(dst)
	dst = append(dst, '"')
	i := 1
	for ; ; i++ {
		if i >= len(r.key) {
			return dst[:start], false
		}
		c := r.key[i] ^ r.mask
		if c == keyEnd {
			break
		}
		if c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return dst[:start], false
		}
		dst = append(dst, c)
	}
	r.i = i + 1
	for at := start + 1; ; at++ {
		change, distance := r.change()
		switch {
		case r.broken:
			r.broken = false
			return dst[:start], false
		case change == caseEnd:
			return append(dst, '"'), true
		}
		if at += distance; at >= len(dst) || change != caseLess || dst[at] < 'a' || dst[at] > 'z' || r.peek() >= 0xc0 {
			return dst[:start], false
		}
		dst[at] -= 'a' - 'A'
	}
}

// Recoverable tells whether DecodeKey gives the very JSON text of v back, so
// that an index that holds v's key can answer for the document.
func Recoverable(v Value) bool {
	switch v.kind {
	case KindNumber:
		if n, small := smallInt(v.raw); small {
			return n != 0 || len(v.raw) == 1
		}
		n := parseNumber(v.raw)
		if (n.len()+1)/2 >= maxKeyPairs {
			return false
		}
		var buf [2*maxKeyPairs + 32]byte
		return bytes.Equal(v.raw, n.append(buf[:0]))
	case KindText:
		if v.plain || bytes.IndexByte(v.raw, '\\') < 0 {
			return len(v.raw) <= maxKeyBytes/3 || !cutText(v)
		}
		return !cutText(v) && bytes.Equal(v.raw, TextValue(v.Text()).Raw())
	case KindArray, KindObject:
		return len(v.raw) <= maxKeyBytes
	}
	return true
}

func cutText(v Value) bool {
	_, truncated := AppendKey(nil, v, false)
	return truncated
}

// keyReader reads a part, turned round if it is descending.
type keyReader struct {
	key    []byte
	i      int
	mask   byte // 0xff if the part is descending
	broken bool // the key ended too early, or was none
}

func newKeyReader(key []byte) *keyReader {
	r := &keyReader{key: key}
	if len(key) > 0 && key[0]&tagDescending != 0 {
		r.mask = 0xff
	}
	return r
}

// next returns the next byte, 0 behind the end.
func (r *keyReader) next() byte {
	if r.i >= len(r.key) {
		r.broken = true
		return 0
	}
	c := r.key[r.i] ^ r.mask
	r.i++
	return c
}

// peek returns the next byte without going on, 0 behind the end.
func (r *keyReader) peek() byte {
	if r.i >= len(r.key) {
		return 0
	}
	return r.key[r.i] ^ r.mask
}

func (r *keyReader) advance(n int) {
	if r.i += n; r.i > len(r.key) {
		r.i, r.broken = len(r.key), true
	}
}

// skip goes behind the part.
func (r *keyReader) skip() {
	switch tag := r.next(); tag {
	case tagMissing, tagNull, tagFalse, tagTrue, tagZero:
	case tagText:
		if r.skipBytes() {
			r.advance(keyHashSize)
			return
		}
		for !r.broken {
			if change, _ := r.change(); change == caseEnd {
				return
			}
			r.rune()
		}
	case tagArray, tagObject:
		r.skipBytes()
	default:
		r.number(tag, nil)
	}
}

// skipBytes goes behind bytes, and behind their hash if they were cut.
func (r *keyReader) skipBytes() (cut bool) {
	for !r.broken {
		switch r.next() {
		case keyEnd:
			return false
		case keyEscape:
			if r.next() == keyCut {
				r.advance(keyHashSize)
				return true
			}
		}
	}
	return false
}

// bytes reads bytes, and goes behind their hash if they were cut.
func (r *keyReader) bytes() (text []byte, cut bool) {
	for !r.broken {
		c := r.next()
		switch c {
		case keyEnd:
			return text, false
		case keyEscape:
			escaped := r.next()
			if escaped == keyCut {
				r.advance(keyHashSize)
				return text, true
			}
			c = escaped - escapedEnd + keyEnd
		}
		text = append(text, c)
	}
	return nil, false
}

// change reads what precedes a character that folding changed: its distance,
// and caseLess, caseGreater or, if there are no more, caseEnd.
func (r *keyReader) change() (change byte, distance int) {
	switch c := r.next(); {
	case c == caseEnd:
		return caseEnd, 0
	case c == caseLessLong:
		return caseLess, int(r.next())<<8 | int(r.next())
	case c == caseGreaterLong:
		return caseGreater, int(^r.next())<<8 | int(^r.next())
	case c > caseGreaterLong && c <= caseGreater:
		return caseGreater, int(caseGreater - c)
	case c >= caseLess && c < caseLessLong:
		return caseLess, int(c - caseLess)
	}
	r.broken = true
	return caseEnd, 0
}

// rune reads the character behind change, nil if there is none.
func (r *keyReader) rune() []byte {
	first := r.peek()
	size := 0
	switch {
	case first < 0xc0:
		return nil
	case first < 0xe0:
		size = 2
	case first < 0xf0:
		size = 3
	default:
		size = 4
	}
	text := make([]byte, 0, utf8.UTFMax)
	for range size {
		text = append(text, r.next())
	}
	return text
}

// decode reads the part.
func (r *keyReader) decode() (v Value, exact bool) {
	switch tag := r.next(); tag {
	case tagMissing:
		return Value{}, true
	case tagNull:
		return ValueOf([]byte("null")), true
	case tagFalse:
		return ValueOf([]byte("false")), true
	case tagTrue:
		return ValueOf([]byte("true")), true
	case tagZero:
		return ValueOf([]byte("0")), true
	case tagText:
		folded, cut := r.bytes()
		if cut {
			r.advance(keyHashSize)
			return plainText(folded[:validPrefix(folded)]), false
		}
		return plainText(r.unfold(folded)), true
	case tagArray, tagObject:
		raw, cut := r.bytes()
		return Value{raw: raw, kind: KindArray + Kind(tag-tagArray)/(tagObject-tagArray)}, !cut
	default:
		var digits [2 * maxKeyPairs]byte
		n, exact := r.number(tag, digits[:0])
		if r.broken {
			return Value{}, false
		}
		return Value{raw: n.append(nil), kind: KindNumber}, exact
	}
}

// unfold reads how a text differs from its folded form and returns the text.
func (r *keyReader) unfold(folded []byte) []byte {
	var text []byte
	for !r.broken {
		change, distance := r.change()
		if change == caseEnd {
			if text == nil {
				return folded
			}
			return append(text, folded...)
		}
		if distance >= len(folded) {
			break
		}
		text = append(text, folded[:distance]...)
		folded = folded[distance:]

		_, size := utf8.DecodeRune(folded)
		if character := r.rune(); character != nil {
			text = append(text, character...)
		} else {
			text = append(text, folded[0]-('a'-'A'))
		}
		folded = folded[size:]
	}
	r.broken = true
	return nil
}

// number reads the number behind a tag. Its digits are kept only if there is
// a slice for them.
func (r *keyReader) number(tag byte, digits []byte) (n number, exact bool) {
	if tag < tagNegativeLarge || tag > tagPositiveLarge {
		r.broken = true
		return number{}, false
	}
	if tag < tagZero {
		n.neg = true
		tag = tagNegativeMedium + tagPositiveMedium - tag
		r.mask = ^r.mask
	}
	var exponent int64
	switch tag {
	case tagPositiveLarge:
		exponent = int64(r.sized())
	case tagPositiveSmall:
		r.mask = ^r.mask
		exponent = -int64(r.sized())
		r.mask = ^r.mask
	default:
		exponent = int64(tag - tagPositiveMedium)
	}
	n.exp = 2 * exponent

	for pairs := 1; !r.broken; pairs++ {
		pair := r.next()
		r.broken = r.broken || pair > 199
		if digits != nil {
			digits = append(digits, '0'+pair/2/10, '0'+pair/2%10)
		}
		exact = pair%2 == 0
		if exact {
			break
		}
		if pairs == maxKeyPairs {
			r.advance(keyHashSize)
			break
		}
	}
	n.tail = digits
	return n.normal(), exact
}

// sized reads an exponent.
func (r *keyReader) sized() uint64 {
	size := r.next()
	if size == 0 || size > 8 {
		r.broken = true
		return 0
	}
	var buf [8]byte
	for i := range size {
		buf[8-size+i] = r.next()
	}
	return binary.BigEndian.Uint64(buf[:])
}

// validPrefix returns the length of text without a character at its end that
// was cut apart.
func validPrefix(text []byte) int {
	for i := len(text); i > 0 && i > len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i-1]) {
			if utf8.FullRune(text[i-1:]) {
				return len(text)
			}
			return i - 1
		}
	}
	return len(text)
}
