package query

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/fold"
	"github.com/jaydb/jay/internal/instant"
)

// The parts of index keys. A part encodes one value in bytes that sort as the
// values do. Parts are concatenated: each is self-delimiting, and none is a
// prefix of another. A descending part is the ascending one with all bits
// inverted, which the highest bit of its first byte shows.
//
//	04                            missing
//	08                            null
//	0c                            false
//	10                            true
//	20 … 3a, number               numbers
//	40, text                      text
//	48, bytes                     an array, its JSON text
//	50, bytes                     an object, its JSON text
//	58, 9 bytes                   an instant
//
// An instant is the seconds since the beginning of the year 0, in UTC and without leap
// seconds, in 5 bytes, and the nanoseconds in 4, both big-endian.
//
// Numbers are 0.X₁X₂X₃… × 100^E, each X from 0 to 99, the first and the last
// not 0. X is the byte 2X+1, and 2X if it is the last, after "Key Encoding" of
// SQLite 4. The first byte holds sign and E:
//
//	20                            below zero, E > 10: inverted size and bytes of E, inverted Xs
//	21 … 2b                       below zero, E from 10 to 0: inverted Xs
//	2c                            below zero, E < 0: size and bytes of -E, inverted Xs
//	2d                            zero
//	2e                            above zero, E < 0: inverted size and bytes of -E, Xs
//	2f … 39                       above zero, E from 0 to 10: Xs
//	3a                            above zero, E > 10: size and bytes of E, Xs
//
// An exponent is its size in bytes, one byte, and its bytes, big-endian. Of
// more than 128 Xs the first 128 are kept, all as 2X+1, and followed by the
// first 8 bytes of the SHA-256 of all decimal digits.
//
// Bytes have 00 behind them; in them 00 is 01 01, and 01 is 01 02. Of more
// than 512 bytes, counted before that, the first 512 are kept, and followed
// not by 00 but by 01 03 and the first 8 bytes of the SHA-256 of all.
//
// Text is its folded form as bytes, and what turns that into the text itself:
// for each character that folding changed, from left to right, its distance
// in bytes of the folded form from the end of the last such character, and
// the character itself in UTF-8. The character is left out if it is a capital
// letter of ASCII: its folded form is ASCII and it is less than that. Text is cut
// by the length of its folded form; then the first 8 bytes of the SHA-256 of the
// text itself stand in place of what folding changed.
//
//	01 … 7d                       distance 0 … 124, the character is less than its folded form
//	7e, 2 bytes                   a longer distance, big-endian
//	80                            the end: no more characters that folding changed
//	82, 2 bytes                   distance above 60, inverted, the character is greater than its folded form
//	83 … bf                       distance 60 … 0
//
// So texts that fold to the same sort as the original texts do.
//
// Examples, ascending:
//
//	null          08
//	-1            2a fd                          E = 1, inverted 02
//	0             2d
//	0.5           2f 64                          E = 0: 50
//	0.001         2e fe fe 14                    E = -1: 10
//	1, 1.0, 1e0   30 02                          E = 1
//	12.5          30 19 64                       12, 50
//	1000          31 14                          E = 2: 10, 00
//	1e999         3a 02 01 f4 14                 E = 500: 10
//	"a"           40 61 00 80
//	"A"           40 61 00 01 80
//	"Ada L"       40 61 64 61 20 6c 00 01 04 80  A at 0, L 3 bytes on
//	"Äx"          40 c3 a4 78 00 01 c3 84 80
//	"K" (Kelvin)  40 6b 00 bf e2 84 aa 80
//	[1]           48 5b 31 5d 00
//	2026-01-01T00:00:00.5Z as an instant
//	              58 0e e2 ca 35 00 1d cd 65 00
//
// And descending:
//
//	null          f7
//	1             cf fd
//	"a"           bf 9e ff 7f
//
// Part of the on-disk format. Must not change.
const (
	tagMissing        = 0x04
	tagNull           = 0x08
	tagFalse          = 0x0c
	tagTrue           = 0x10
	tagNegativeLarge  = 0x20
	tagNegativeMedium = 0x2b // E = 0, and down from there
	tagNegativeSmall  = 0x2c
	tagZero           = 0x2d
	tagPositiveSmall  = 0x2e
	tagPositiveMedium = 0x2f // E = 0, and up from there
	tagPositiveLarge  = 0x3a
	tagText           = 0x40
	tagArray          = 0x48
	tagObject         = 0x50
	tagInstant        = 0x58

	tagDescending = 0x80 // the first byte of a descending part has this bit

	mediumExponent = 10 // the greatest E that is in the tag
)

// Bounds of a part. Part of the on-disk format. Must not change.
const (
	maxKeyBytes = 512 // of text or JSON text
	maxKeyPairs = 128 // of a number, two digits each
	keyHashSize = 8
)

// Escapes in bytes, and their end. Part of the on-disk format. Must not change.
const (
	keyEnd        = 0x00
	keyEscape     = 0x01
	escapedEnd    = 0x01
	escapedEscape = 0x02
	keyCut        = 0x03
)

// Differences between a text and its folded form. Part of the on-disk format.
// Must not change.
const (
	caseLess        = 0x01 // plus the distance
	caseLessLong    = 0x7e
	caseEnd         = 0x80
	caseGreaterLong = 0x82
	caseGreater     = 0xbf // minus the distance

	maxLess    = caseLessLong - 1 - caseLess
	maxGreater = caseGreater - caseGreaterLong - 1
)

// MaxKey is the greatest number of bytes that AppendKey appends. The worst case
// is a text whose every character folds to one byte: each takes that byte, one
// byte of distance and up to three bytes for itself.
const MaxKey = 1 + 5*maxKeyBytes + 2

// KeyBound returns an upper bound on the number of bytes that AppendKey appends for v. It depends
// only on the length of v.
func (v Value) KeyBound() int {
	const others = 16 // tag, exponent, end and hash
	return min(MaxKey, 5*len(v.raw)+others)
}

// AppendKey appends v to dst as a part of an index key. The parts of two
// values compare, as bytes, as the values do, or the other way round if
// descending; the bytes are described in key.go. Equal values have the same
// parts.
//
// Truncated reports that v is too long for a part: text above 512 bytes, a
// number above 256 digits, an array or object above 512 bytes of JSON. The part
// then holds the beginning of v and a hash. Different truncated values with the
// same beginning sort in no meaningful order; their parts are equal only if the
// hashes collide.
func AppendKey(dst []byte, v Value, descending bool) (key []byte, truncated bool) {
	start := len(dst)
	switch v.kind {
	case KindMissing:
		dst = append(dst, tagMissing)
	case KindNull:
		dst = append(dst, tagNull)
	case KindFalse:
		dst = append(dst, tagFalse)
	case KindTrue:
		dst = append(dst, tagTrue)
	case KindNumber:
		dst, truncated = appendNumberKey(dst, v.raw)
	case KindText:
		var buf [128]byte
		dst, truncated = appendTextKey(append(dst, tagText), v.text(buf[:]))
	case KindArray:
		dst, truncated = appendBytes(append(dst, tagArray), v.raw)
	case KindObject:
		dst, truncated = appendBytes(append(dst, tagObject), v.raw)
	case KindInstant:
		dst = instant.AppendKey(append(dst, tagInstant), v.raw[1:len(v.raw)-1])
	}
	if descending {
		invert(dst[start:])
	}
	return dst, truncated
}

// IsMissingPart reports whether the first part of key encodes a missing value.
func IsMissingPart(key []byte) bool {
	return len(key) > 0 && (key[0] == tagMissing || ^key[0] == tagMissing)
}

// IsNullPart reports whether the first part of key encodes missing or null. Groups treat the two as
// one value.
func IsNullPart(key []byte) bool {
	return IsMissingPart(key) || len(key) > 0 && (key[0] == tagNull || ^key[0] == tagNull)
}

func invert(key []byte) {
	for i := range key {
		key[i] = ^key[i]
	}
}

// appendBytes appends text, escaped and with its end mark. Text of more than
// maxKeyBytes is cut and ends with a hash.
func appendBytes(dst, text []byte) (key []byte, truncated bool) {
	if len(text) > maxKeyBytes {
		dst = appendEscaped(dst, text[:maxKeyBytes])
		dst = append(dst, keyEscape, keyCut)
		return appendHash(dst, text), true
	}
	return append(appendEscaped(dst, text), keyEnd), false
}

// appendEscaped appends text with 00 as 01 01 and 01 as 01 02.
func appendEscaped(dst, text []byte) []byte {
	for len(text) > 0 {
		n := 0
		for n < len(text) && text[n] > keyEscape {
			n++
		}
		dst = append(dst, text[:n]...)
		if n == len(text) {
			break
		}
		dst = append(dst, keyEscape, escapedEnd+text[n]-keyEnd)
		text = text[n+1:]
	}
	return dst
}

// appendHash appends the first keyHashSize bytes of the SHA-256 of the parts.
func appendHash(dst []byte, parts ...[]byte) []byte {
	h := sha256.New()
	for _, part := range parts {
		h.Write(part)
	}
	var sum [sha256.Size]byte
	return append(dst, h.Sum(sum[:0])[:keyHashSize]...)
}

// appendTextKey appends the folded form of text and how it differs from that.
func appendTextKey(dst, text []byte) (key []byte, truncated bool) {
	start := len(dst)
	same := true
	for i, c := range text {
		if c >= utf8.RuneSelf || c <= keyEscape || i == maxKeyBytes {
			return appendOtherTextKey(dst[:start], text)
		}
		same = same && fold.Byte(c) == c
		dst = append(dst, fold.Byte(c))
	}
	dst = append(dst, keyEnd)
	if same {
		return append(dst, caseEnd), false
	}
	return appendCase(dst, text), false
}

// appendOtherTextKey is appendTextKey for text that is not ASCII, is long, or
// has bytes to escape.
func appendOtherTextKey(dst, text []byte) (key []byte, truncated bool) {
	var buf [2 * maxKeyBytes]byte
	folded := fold.Append(buf[:0], text)
	if dst, truncated = appendBytes(dst, folded); truncated {
		return appendHash(dst, text), true
	}
	if bytes.Equal(text, folded) {
		return append(dst, caseEnd), false
	}
	return appendCase(dst, text), false
}

// appendCase appends how text differs from its folded form.
func appendCase(dst, text []byte) []byte {
	distance := 0
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			i++
			if fold.Byte(c) == c {
				distance++
				continue
			}
			dst = appendLess(dst, distance)
			distance = 0
			continue
		}

		r, size := utf8.DecodeRune(text[i:])
		folded := r
		if r != utf8.RuneError {
			folded = fold.Rune(r)
		}
		switch {
		case r == folded:
			distance += size
		case r < folded:
			dst = utf8.AppendRune(appendLess(dst, distance), r)
			distance = 0
		default:
			dst = utf8.AppendRune(appendGreater(dst, distance), r)
			distance = 0
		}
		i += size
	}
	return append(dst, caseEnd)
}

func appendLess(dst []byte, distance int) []byte {
	if distance <= maxLess {
		return append(dst, caseLess+byte(distance))
	}
	return binary.BigEndian.AppendUint16(append(dst, caseLessLong), uint16(distance))
}

func appendGreater(dst []byte, distance int) []byte {
	if distance <= maxGreater {
		return append(dst, caseGreater-byte(distance))
	}
	return binary.BigEndian.AppendUint16(append(dst, caseGreaterLong), ^uint16(distance))
}

// appendNumberKey appends a JSON number with its tag.
func appendNumberKey(dst, raw []byte) (key []byte, truncated bool) {
	if n, small := smallInt(raw); small {
		return appendIntKey(dst, n, 0), false
	}
	if n, pairs, small := smallDecimal(raw); small {
		return appendIntKey(dst, n, pairs), false
	}
	return appendParsedKey(dst, parseNumber(raw))
}

// appendParsedKey is appendNumberKey for a number however it is written.
func appendParsedKey(dst []byte, n number) (key []byte, truncated bool) {
	if n.sign() == 0 {
		return append(dst, tagZero), false
	}
	// In base 100, an odd decimal exponent leaves one digit for the first pair.
	exponent, first := n.exp/2, 0
	if n.exp%2 != 0 {
		first = -1
		if n.exp > 0 {
			exponent++
		}
	}
	start := len(dst) + 1
	dst = appendExponent(dst, exponent)
	dst, truncated = n.appendPairs(dst, first)
	if n.neg { // mirror the tag around zero, and invert the rest
		dst[start-1] = tagNegativeMedium + tagPositiveMedium - dst[start-1]
		invert(dst[start:])
	}
	return dst, truncated
}

// appendExponent appends the tag of a number above zero, and the exponent if
// it is not in the tag.
func appendExponent(dst []byte, exponent int64) []byte {
	switch {
	case exponent > mediumExponent:
		return appendSized(append(dst, tagPositiveLarge), uint64(exponent))
	case exponent >= 0:
		return append(dst, tagPositiveMedium+byte(exponent))
	}
	dst = append(dst, tagPositiveSmall)
	start := len(dst)
	dst = appendSized(dst, uint64(-exponent))
	invert(dst[start:])
	return dst
}

// appendSized appends n as its size in bytes, one byte, and its bytes,
// big-endian.
func appendSized(dst []byte, n uint64) []byte {
	var buf [8]byte
	binary.BigEndian.PutUint64(buf[:], n)
	digits := bytes.TrimLeft(buf[:], "\x00")
	return append(append(dst, byte(len(digits))), digits...)
}

// appendPairs appends the digits from index first on, two at a time; a first of
// -1 adds a leading zero.
func (n number) appendPairs(dst []byte, first int) (key []byte, truncated bool) {
	pairs := (n.len() - first + 1) / 2
	for i := range min(pairs, maxKeyPairs) {
		at := first + 2*i
		var pair byte
		if at >= 0 {
			pair = 10 * n.at(at)
		}
		dst = append(dst, 2*(pair+n.at(at+1))+1)
	}
	if pairs > maxKeyPairs {
		return appendHash(dst, n.head, n.tail), true
	}
	dst[len(dst)-1]-- // the last pair is even
	return dst, false
}

// appendIntKey is appendNumberKey for n / 100^fraction, where n has at most 18 digits, and more than
// the fraction.
func appendIntKey(dst []byte, n int64, fraction int) []byte {
	if n == 0 {
		return append(dst, tagZero)
	}
	negative := n < 0
	if negative {
		n = -n
	}
	var pairs [10]byte
	i := len(pairs)
	for ; n > 0; n /= 100 {
		i--
		pairs[i] = 2*byte(n%100) + 1
	}

	exponent := byte(len(pairs) - i - fraction)
	last := len(pairs) - 1
	for pairs[last] == 1 { // pairs of zeros at the end
		last--
	}
	pairs[last]-- // the last pair is even
	if negative {
		dst = append(dst, tagNegativeMedium-exponent)
		invert(pairs[i : last+1])
	} else {
		dst = append(dst, tagPositiveMedium+exponent)
	}
	return append(dst, pairs[i:last+1]...)
}
