package metadata

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/jsonpath"
)

// ErrInvalid matches every *Error: errors.Is(err, ErrInvalid).
var ErrInvalid = errs.ErrInvalid

// Error says which rule a document breaks, and where.
type Error struct {
	Rule   string // such as "keys must not repeat"
	Detail string // what was found; may be empty
	Offset int    // byte offset in the JSON passed to Scan
	Limit  int    // the limit; 0 if the rule has none
	Actual int    // the size or depth, if the rule has a limit
}

// Error names the rule, what was found and the offset.
func (e *Error) Error() string {
	text := "invalid document: " + e.Rule
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Limit > 0 {
		text += fmt.Sprintf(", it has %d", e.Actual)
	}
	return fmt.Sprintf("%s (byte %d)", text, e.Offset)
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *Error) Is(target error) bool { return target == ErrInvalid }

// Limits bound what Scan accepts.
type Limits struct {
	MaxBytes int // of the JSON passed to Scan, white space included
	MaxDepth int // of nested objects and arrays; the document itself is at depth 1

	// AnyExponent accepts numbers with exponents beyond 10^15, which older versions may have stored.
	// The default is to refuse them.
	AnyExponent bool
}

// Scanned is a document that Scan accepted.
type Scanned struct {
	// Body is the JSON object without insignificant white space, @metadata and dropped members. It
	// shares memory with the input if Scan removed nothing.
	Body []byte
	// Metadata is the @metadata object, unchanged; nil if there is none. It
	// shares memory with the input.
	Metadata []byte
}

// byteOrderMark is written by some editors in front of UTF-8.
var byteOrderMark = []byte("\xef\xbb\xbf")

// metadataKey is the member of a document that holds its metadata.
const metadataKey = "@metadata"

// Scan checks that src is one JSON object within limits, in valid UTF-8 and
// without repeated keys, and splits it into body and metadata. It makes one pass
// over src. The body lacks the top-level members named in drop. Every error is
// an *Error.
//
// Escaped surrogates must come in pairs, in keys and in values. Readers of JSON
// turn a lone one, such as \ud800, into U+FFFD, so that two values that differ
// only in lone surrogates would read as the same.
//
// Repeated keys are refused at any depth, since readers disagree about them:
// encoding/json takes the last, gjson the first.
func Scan(src []byte, limits Limits, drop ...string) (Scanned, error) {
	if len(src) > limits.MaxBytes {
		return Scanned{}, &Error{Rule: fmt.Sprintf("at most %d bytes", limits.MaxBytes), Limit: limits.MaxBytes, Actual: len(src), Offset: limits.MaxBytes}
	}
	s := scanners.Get().(*scanner)
	defer s.release()
	s.src, s.limits, s.drop = src, limits, drop
	return s.document()
}

var scanners = sync.Pool{New: func() any { return new(scanner) }}

// scanner is a recursive-descent scanner of src. Its slices are reused.
type scanner struct {
	src    []byte
	limits Limits
	drop   []string

	i       int
	spaced  bool     // white space between tokens was seen
	keys    []key    // of all open objects, outermost object first
	escaped [][]byte // keys that are written with escapes, unescaped
	members []member // of the document itself
	cut     bool     // a member is left out of the body
	meta    []byte   // the @metadata object
}

// key is an object key: its fingerprint, and the offsets of its text in src. The
// text of a key with escapes is escaped[start], and its end is -1. A key holds no
// pointer, so that the garbage collector does not scan the slice of keys.
type key struct {
	print      uint64
	start, end int
}

// textOf returns the unescaped text of a key.
func (s *scanner) textOf(k key) []byte {
	if k.end < 0 {
		return s.escaped[k.start]
	}
	return s.src[k.start:k.end]
}

// member is a top-level member of the document.
type member struct {
	start, end int  // offsets in src, from the key to the end of the value
	cut        bool // left out of the body
}

// manyKeys is the number of keys in one object from which a map is faster than
// comparing their fingerprints one by one.
const manyKeys = 48

func (s *scanner) release() {
	*s = scanner{keys: s.keys[:0], members: s.members[:0]}
	scanners.Put(s)
}

func (s *scanner) fail(rule, detail string) error {
	return &Error{Rule: rule, Detail: detail, Offset: s.i}
}

// expected returns the error for an unexpected byte or the end of the input.
func (s *scanner) expected(what string) error {
	if s.i >= len(s.src) {
		return s.fail("must be well-formed JSON", "it ends where "+what+" is expected")
	}
	return s.fail("must be well-formed JSON", fmt.Sprintf("%q where %s is expected", s.src[s.i], what))
}

// document scans the whole of src.
func (s *scanner) document() (Scanned, error) {
	s.space()
	start := s.i
	s.spaced = false
	if s.i >= len(s.src) || s.src[s.i] != '{' {
		if s.i < len(s.src) && bytes.IndexByte([]byte(`["-0123456789tfn`), s.src[s.i]) >= 0 {
			return Scanned{}, s.fail("must be a JSON object", "another kind of value was given")
		}
		if bytes.HasPrefix(s.src[s.i:], byteOrderMark) {
			return Scanned{}, s.fail("must be well-formed JSON", "it begins with a byte order mark (EF BB BF): leave that out")
		}
		return Scanned{}, s.expected("a JSON object")
	}
	if err := s.object(1); err != nil {
		return Scanned{}, err
	}
	end := s.i
	inner := s.spaced // before the white space that may follow the document
	s.space()
	if s.i < len(s.src) {
		return Scanned{}, s.fail("must be one JSON object", "more follows after its end")
	}

	out := Scanned{Metadata: s.meta, Body: s.src[start:end]}
	if s.cut || inner {
		out.Body = s.rebuild()
	}
	return out, nil
}

// rebuild returns an object of the kept members, without white space.
func (s *scanner) rebuild() []byte {
	out := make([]byte, 0, len(s.src))
	out = append(out, '{')
	for _, m := range s.members {
		if m.cut {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = appendCompact(out, s.src[m.start:m.end])
	}
	return append(out, '}')
}

// appendCompact appends valid JSON without its white space.
func appendCompact(dst, src []byte) []byte {
	for i := 0; i < len(src); {
		switch c := src[i]; {
		case isSpace(c):
			i++
		case c == '"':
			end := i + 1
			for src[end] != '"' {
				if src[end] == '\\' {
					end++
				}
				end++
			}
			dst = append(dst, src[i:end+1]...)
			i = end + 1
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// space skips white space.
func (s *scanner) space() {
	if s.i < len(s.src) && s.src[s.i] > ' ' { // compact JSON has none
		return
	}
	for s.i < len(s.src) && isSpace(s.src[s.i]) {
		s.i++
		s.spaced = true
	}
}

// value scans a value inside an object or array at depth.
func (s *scanner) value(depth int) error {
	if s.i >= len(s.src) {
		return s.expected("a value")
	}
	switch c := s.src[s.i]; {
	case c == '"':
		if end := plain(s.src, s.i+1); end >= 0 {
			s.i = end + 1
			return nil
		}
		_, _, err := s.text()
		return err
	case c == '{':
		return s.object(depth + 1)
	case c == '[':
		return s.array(depth + 1)
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	}
	return s.expected("a value")
}

func (s *scanner) checkDepth(depth int) error {
	if depth <= s.limits.MaxDepth {
		return nil
	}
	return &Error{Rule: fmt.Sprintf("at most %d levels deep", s.limits.MaxDepth), Limit: s.limits.MaxDepth, Actual: depth, Offset: s.i}
}

// object scans an object at depth, from its opening brace.
func (s *scanner) object(depth int) error {
	if err := s.checkDepth(depth); err != nil {
		return err
	}
	first := len(s.keys)         // the keys of this object follow those of the outer ones
	var seen map[string]struct{} // used once the object has manyKeys keys
	s.i++
	s.space()
	if s.i < len(s.src) && s.src[s.i] == '}' {
		s.i++
		return nil
	}
	for {
		start := s.i
		if s.i >= len(s.src) || s.src[s.i] != '"' {
			return s.expected("a key")
		}
		// The key: most are plain, and their text is a part of src.
		var text []byte
		k := key{start: start + 1, end: plain(s.src, start+1)}
		if k.end >= 0 {
			text, s.i = s.src[k.start:k.end], k.end+1
		} else {
			var escaped bool
			var err error
			if text, escaped, err = s.text(); err != nil {
				return err
			}
			k.end = s.i - 1
			if escaped {
				text = unescape(text)
				k.start, k.end = len(s.escaped), -1
				s.escaped = append(s.escaped, text)
			}
		}
		// A repeated key has the same fingerprint; equal ones are rare otherwise.
		k.print = s.fingerprint(text, start+1)
		if len(s.keys)-first < manyKeys {
			for _, other := range s.keys[first:] {
				if other.print == k.print && bytes.Equal(s.textOf(other), text) {
					return repeated(text, start)
				}
			}
			s.keys = append(s.keys, k)
		} else {
			var err error
			if seen, err = s.enterMany(text, first, seen, start); err != nil {
				return err
			}
		}

		if s.i >= len(s.src) || s.src[s.i] != ':' {
			if s.space(); s.i >= len(s.src) || s.src[s.i] != ':' {
				return s.expected("a colon")
			}
		}
		s.i++
		s.space()
		valueStart := s.i
		if err := s.value(depth); err != nil {
			return err
		}
		if depth == 1 {
			if err := s.member(text, start, valueStart); err != nil {
				return err
			}
		}

		s.space()
		if s.i >= len(s.src) {
			return s.expected("a comma or the end of the object")
		}
		c := s.src[s.i]
		if c != ',' && c != '}' {
			return s.expected("a comma or the end of the object")
		}
		s.i++
		if c == '}' {
			s.keys = s.keys[:first]
			return nil
		}
		s.space()
	}
}

// enterMany adds a key to seen, the keys of an object that has many, or refuses
// one that is in it already. A nil seen is made from the keys from first on.
func (s *scanner) enterMany(text []byte, first int, seen map[string]struct{}, start int) (map[string]struct{}, error) {
	if seen == nil {
		seen = make(map[string]struct{}, 2*manyKeys)
		for _, k := range s.keys[first:] {
			seen[string(s.textOf(k))] = struct{}{}
		}
	}
	if _, found := seen[string(text)]; found {
		return seen, repeated(text, start)
	}
	seen[string(text)] = struct{}{}
	return seen, nil
}

func repeated(text []byte, start int) error {
	return &Error{Rule: "keys must not repeat within an object", Detail: fmt.Sprintf("%.60q is there twice", text), Offset: start}
}

// fingerprint hashes the length, the first 8 and the last 8 bytes of a key. The
// fingerprint of a key of less than 8 bytes is exact. If the key is a part of
// src at offset at, it is loaded as one word together with the bytes after it.
func (s *scanner) fingerprint(text []byte, at int) uint64 {
	n := len(text)
	if n >= 8 {
		return uint64(n)<<56 ^ binary.LittleEndian.Uint64(text) ^ binary.LittleEndian.Uint64(text[n-8:])*0x9e3779b97f4a7c15
	}
	print := uint64(n) << 56
	if n > 0 && at+8 <= len(s.src) && &s.src[at] == &text[0] {
		return print | binary.LittleEndian.Uint64(s.src[at:])&(1<<(8*n)-1)
	}
	for i, c := range text {
		print |= uint64(c) << (8 * i)
	}
	return print
}

// member records a top-level member whose value has just been scanned.
func (s *scanner) member(name []byte, start, valueStart int) error {
	m := member{start: start, end: s.i}
	switch {
	case string(name) == metadataKey:
		if s.src[valueStart] != '{' {
			return &Error{Rule: "@metadata must be a JSON object", Detail: fmt.Sprintf("it is %.40s", s.src[valueStart:s.i]), Offset: valueStart}
		}
		s.meta = s.src[valueStart:s.i]
		m.cut = true
	case len(s.drop) > 0 && slices.Contains(s.drop, string(name)):
		m.cut = true
	}
	s.cut = s.cut || m.cut
	s.members = append(s.members, m)
	return nil
}

// array scans an array at depth, from its opening bracket.
func (s *scanner) array(depth int) error {
	if err := s.checkDepth(depth); err != nil {
		return err
	}
	s.i++
	s.space()
	if s.i < len(s.src) && s.src[s.i] == ']' {
		s.i++
		return nil
	}
	for {
		if err := s.value(depth); err != nil {
			return err
		}
		s.space()
		if s.i >= len(s.src) {
			return s.expected("a comma or the end of the array")
		}
		c := s.src[s.i]
		if c != ',' && c != ']' {
			return s.expected("a comma or the end of the array")
		}
		s.i++
		if c == ']' {
			return nil
		}
		s.space()
	}
}

// plain returns the offset of the closing quote of the string whose text begins
// at i. It returns -1 if the string has escapes, control characters or bytes
// beyond ASCII, or lies near the end of src: text scans those.
func plain(src []byte, i int) int {
	for i+8 <= len(src) {
		if special := specials(binary.LittleEndian.Uint64(src[i:])); special != 0 {
			if i += bits.TrailingZeros64(special) >> 3; src[i] == '"' {
				return i
			}
			return -1
		}
		i += 8
	}
	return -1
}

// text scans a string and returns what is between its quotes.
func (s *scanner) text() (inside []byte, escaped bool, err error) {
	src := s.src // a local stays in registers
	start := s.i + 1
	ascii := true
	i := start
	for {
		// Skip ordinary bytes, eight at a time.
		for i+8 <= len(src) {
			special := specials(binary.LittleEndian.Uint64(src[i:]))
			if special != 0 {
				i += bits.TrailingZeros64(special) >> 3
				break
			}
			i += 8
		}
		if i >= len(src) {
			s.i = i
			return nil, false, s.expected("the end of a string")
		}
		c := src[i]
		if c == '"' {
			break
		}
		if c < 0x20 {
			s.i = i
			return nil, false, s.fail("must be well-formed JSON", fmt.Sprintf("control character %q inside a string", c))
		}
		if c == '\\' {
			escaped = true
			s.i = i
			if i, err = s.escape(i); err != nil {
				return nil, false, err
			}
			continue
		}
		i++
		if c >= utf8.RuneSelf {
			ascii = false
			for i < len(src) && src[i] >= utf8.RuneSelf {
				i++ // text outside ASCII is too dense for words to gain anything
			}
		}
	}
	s.i = i + 1
	if inside = src[start:i]; !ascii && !utf8.Valid(inside) {
		s.i = start + validPrefix(inside)
		return nil, false, s.fail("must be valid UTF-8", fmt.Sprintf("byte 0x%02x", src[s.i]))
	}
	return inside, escaped, nil
}

// specials sets the top bit of each byte of word that is special inside a
// string: quotes, backslashes, control characters and bytes beyond ASCII. Only
// the lowest bit that is set is reliable; borrows may set higher ones wrongly.
// The method is that of Bit Twiddling Hacks, "Determine if a word has a byte
// less than n".
func specials(word uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote, backslash := word^ones*'"', word^ones*'\\'
	return ((quote - ones) | (backslash - ones) | (word - ones*0x20) | word) & tops
}

// escape checks the escape at i and returns the offset after it.
func (s *scanner) escape(i int) (int, error) {
	if i+1 < len(s.src) {
		switch s.src[i+1] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			return i + 2, nil
		case 'u':
			if i+6 <= len(s.src) && isHex(s.src[i+2:i+6]) {
				return s.surrogates(i)
			}
		}
	}
	return 0, s.fail("must be well-formed JSON", "an escape that JSON does not have")
}

// surrogates returns the offset after the escape \u1234 at i, or after the pair
// of escapes at i that encodes a character beyond U+FFFF.
func (s *scanner) surrogates(i int) (int, error) {
	if s.src[i+2]|0x20 != 'd' || s.src[i+3] < '8' {
		return i + 6, nil
	}
	if high := s.src[i+3]|0x20 < 'c'; high && i+12 <= len(s.src) {
		low := s.src[i+6 : i+12]
		if low[0] == '\\' && low[1] == 'u' && low[2]|0x20 == 'd' && low[3]|0x20 >= 'c' && isHex(low[2:]) {
			return i + 12, nil
		}
	}
	return 0, s.fail("surrogates must come in pairs", fmt.Sprintf("%s is half of a character", s.src[i:i+6]))
}

// isHex reports whether all of digits are hexadecimal.
func isHex(digits []byte) bool {
	for _, c := range digits {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			return false
		}
	}
	return true
}

// validPrefix returns the offset of the first byte of b that is not UTF-8.
func validPrefix(b []byte) int {
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(b)
}

// unescape returns the text of a key that is written with escapes.
func unescape(inside []byte) []byte {
	var text string
	if json.Unmarshal(append(append([]byte{'"'}, inside...), '"'), &text) != nil {
		return inside // cannot happen: the escapes were checked
	}
	return []byte(text)
}

// number scans a number. After each part, end > i if the part has digits; a part
// without digits leaves end at i, where a digit is expected.
func (s *scanner) number() error {
	src, i := s.src, s.i // locals stay in registers
	if src[i] == '-' {
		i++
	}
	end := i + 1 // no digit follows a leading 0
	if i >= len(src) || src[i] != '0' {
		end = digits(src, i)
	}
	if end > i && end < len(src) && src[end] == '.' {
		i = end + 1
		end = digits(src, i)
	}
	if end > i && end < len(src) && (src[end] == 'e' || src[end] == 'E') {
		i = end + 1
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		end = digits(src, i)
		if end-i > jsonpath.SafeDigits && !s.limits.AnyExponent && jsonpath.IsBeyond(src[s.i:end]) {
			return s.fail("numbers must have exponents from -10^15 to 10^15", fmt.Sprintf("%.60s", src[s.i:end]))
		}
	}
	s.i = end
	if end == i {
		return s.expected("a digit")
	}
	return nil
}

// digits returns the offset after the digits at i, which is i if there are none.
func digits(src []byte, i int) int {
	for i < len(src) && '0' <= src[i] && src[i] <= '9' {
		i++
	}
	return i
}

func (s *scanner) literal(word string) error {
	if bytes.HasPrefix(s.src[s.i:], []byte(word)) {
		s.i += len(word)
		return nil
	}
	return s.expected(word)
}
