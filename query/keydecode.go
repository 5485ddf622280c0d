package query

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/instant"
)

// SkipKey returns what follows the first part of key. It returns false if key
// does not begin with a part that AppendKey made.
func SkipKey(key []byte) (rest []byte, ok bool) {
	r := newKeyReader(key)
	r.skip()
	if r.broken {
		return nil, false
	}
	return key[r.i:], true
}

// DecodeKey returns the value of the first part of key, in memory of its own.
// Exact reports that it equals the value that AppendKey encoded; of a truncated
// value only the beginning is left. If Recoverable is true of the encoded value,
// DecodeKey returns its JSON text byte for byte. Otherwise numbers come back as
// encoding/json writes them (1 for 1.0), and text with only those escapes that
// JSON demands. For bytes that are not a part DecodeKey returns missing, which
// is not exact.
func DecodeKey(key []byte) (v Value, exact bool) {
	r := newKeyReader(key)
	v, exact = r.decode()
	if r.broken {
		return Value{}, false
	}
	return v, exact
}

// AppendDecoded appends the JSON text of the value that DecodeKey returns,
// nothing for missing. Rest is what follows the first part of key. It returns
// false if key does not begin with a part. It allocates nothing for numbers and
// for ASCII text without escapes.
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
	case tag == tagInstant && len(key) > instant.KeySize:
		var part [instant.KeySize]byte
		for i := range part {
			part[i] = key[1+i] ^ r.mask
		}
		quoted, ok := instant.AppendDecoded(append(dst, '"'), part[:])
		if !ok {
			return dst, nil, false
		}
		return append(quoted, '"'), key[1+instant.KeySize:], true
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

// DecodeKeyAt is DecodeKey with memory for the value, which it appends to dst, and with what
// follows the part. It returns false if key does not begin with a part.
func DecodeKeyAt(dst, key []byte) (v Value, grown, rest []byte, ok bool) {
	start := len(dst)
	grown, rest, ok = AppendDecoded(dst, key)
	raw := grown[start:]
	switch {
	case !ok || len(raw) == 0:
		return Value{}, grown, rest, ok
	case newKeyReader(key).peek() == tagInstant:
		return canonicalInstant(raw), grown, rest, true
	}
	return ValueOf(raw), grown, rest, true
}

// appendASCII appends the text of the part as a JSON string, if it is ASCII
// without escapes. Otherwise it returns dst unchanged and false; r.i then has no
// meaning.
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
	// Restore the original case: the changes are the distances of the letters
	// that folding has lowered.
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

// Recoverable reports whether DecodeKey returns the JSON text of v byte for byte.
// Only then is an index entry covering: the value can be read from its key,
// without the document.
func Recoverable(v Value) bool {
	switch v.kind {
	case KindNumber:
		if n, small := smallInt(v.raw); small {
			return n != 0 || len(v.raw) == 1
		}
		if _, _, small := smallDecimal(v.raw); small {
			return true
		}
		n := parseNumber(v.raw)
		if (n.len()+1)/2 >= maxKeyPairs { // may be truncated
			return false
		}
		var buf [2*maxKeyPairs + 32]byte
		return bytes.Equal(v.raw, n.append(buf[:0]))
	case KindText:
		if v.plain || bytes.IndexByte(v.raw, '\\') < 0 {
			return len(v.raw) <= maxKeyBytes/3 || !cutText(v) // folding less than triples a text
		}
		return !cutText(v) && bytes.Equal(v.raw, TextValue(v.Text()).Raw())
	case KindArray, KindObject:
		return len(v.raw) <= maxKeyBytes
	}
	return true
}

// cutText reports whether v is too long for a part.
func cutText(v Value) bool {
	_, truncated := AppendKey(nil, v, false)
	return truncated
}

// keyReader reads the bytes of a part as those of an ascending one.
type keyReader struct {
	key    []byte
	i      int
	mask   byte // 0xff if the part is descending
	broken bool // the bytes are not a part, or end too early
}

func newKeyReader(key []byte) *keyReader {
	r := &keyReader{key: key}
	if len(key) > 0 && key[0]&tagDescending != 0 {
		r.mask = 0xff
	}
	return r
}

// next returns the next byte, 0 after the end.
func (r *keyReader) next() byte {
	if r.i >= len(r.key) {
		r.broken = true
		return 0
	}
	c := r.key[r.i] ^ r.mask
	r.i++
	return c
}

// peek returns the next byte without consuming it, 0 after the end.
func (r *keyReader) peek() byte {
	if r.i >= len(r.key) {
		return 0
	}
	return r.key[r.i] ^ r.mask
}

// advance skips n bytes.
func (r *keyReader) advance(n int) {
	if r.i += n; r.i > len(r.key) {
		r.i, r.broken = len(r.key), true
	}
}

// skip consumes a part.
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
	case tagInstant:
		r.advance(instant.KeySize)
	default:
		r.number(tag, nil)
	}
}

// skipBytes consumes bytes with their end mark, and their hash if they were cut.
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

// bytes reads bytes, unescaped, and skips their hash if they were cut.
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

// change reads what precedes a character that folding changed. Change is
// caseLess or caseGreater with the distance of the character, or caseEnd if there
// are no more.
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

// rune reads the character that follows change; nil if it was left out, as that
// of an ASCII capital is.
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
	case tagInstant:
		var key [instant.KeySize]byte
		for i := range key {
			key[i] = r.next()
		}
		raw, ok := instant.AppendDecoded(append(make([]byte, 0, instant.MaxLen+len(`""`)), '"'), key[:])
		r.broken = r.broken || !ok
		return canonicalInstant(append(raw, '"')), true
	default:
		var digits [2 * maxKeyPairs]byte
		n, exact := r.number(tag, digits[:0])
		if r.broken {
			return Value{}, false
		}
		return Value{raw: n.append(nil), kind: KindNumber}, exact
	}
}

// unfold reads how a text differs from its folded form, and returns the text.
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

// number reads the number that follows a tag. It appends the digits to digits,
// or skips them if digits is nil.
func (r *keyReader) number(tag byte, digits []byte) (n number, exact bool) {
	if tag < tagNegativeLarge || tag > tagPositiveLarge {
		r.broken = true
		return number{}, false
	}
	if tag < tagZero { // negative: mirrored and inverted, see appendNumberKey
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
		pair := r.next() // 2X+1, or 2X for the last, with X below 100
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

// sized reads an exponent that appendSized wrote.
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

// validPrefix returns the length of text without an incomplete character at its
// end.
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
