// Package instant decides how a point in time is written in JSON and which texts are
// points in time.
//
// An instant is a whole number of nanoseconds in the years 0 to 9999 of UTC. Its
// canonical spelling is RavenDB's, in UTC with seven digits of a second:
//
//	2026-01-01T00:00:00.5000000Z
//
// It has nine digits if seven are not enough. Any date-time of RFC 3339 is read: with
// an offset, with T and Z in lower case, with any number of digits, of which those
// after the ninth are cut off as package time does, and with the leap second
// 23:59:60 UTC, which is the first second of the next day, as in POSIX. A text without
// an offset is no instant, but for [AppendUTC], nor is one that lies outside of the years 0 to 9999 in UTC.
package instant

import (
	"encoding/binary"
	"fmt"
	"time"
)

// YearError is returned for a time outside of the years 0 to 9999 in UTC, which RFC 3339
// cannot spell.
type YearError struct {
	Year int // of the time
}

// Error says the rule and the year.
func (e *YearError) Error() string {
	return fmt.Sprintf("a time must lie in the years 0 to 9999 of UTC: this one is in the year %d", e.Year)
}

// MaxLen is the length of the longest canonical spelling.
const MaxLen = len("2026-01-01T00:00:00.000000000Z")

const (
	shortLen = len("2026-01-01T00:00:00.0000000Z")

	secondsPerDay = 24 * 60 * 60

	// yearZero is the beginning of the year 0 in seconds since 1970.
	yearZero = -62_167_219_200

	// seconds is how many seconds the years 0 to 9999 have.
	seconds = 315_569_520_000
)

// Append appends the canonical spelling of t, or returns a *YearError.
func Append(dst []byte, t time.Time) ([]byte, error) {
	second := t.Unix() - yearZero
	if second < 0 || second >= seconds {
		return dst, &YearError{t.UTC().Year()}
	}
	return appendParts(dst, second, t.Nanosecond()), nil
}

// AppendText appends the canonical spelling of a text. It returns false, and dst as it
// was, if the text is no instant.
func AppendText(dst, text []byte) ([]byte, bool) {
	second, nano, ok := parse(text, false)
	if !ok {
		return dst, false
	}
	return appendParts(dst, second, nano), true
}

// AppendUTC is AppendText for texts that may lack an offset and are in UTC then, and that may have a
// blank for the T, as SQL writes them.
func AppendUTC(dst, text []byte) ([]byte, bool) {
	second, nano, ok := parse(text, true)
	if !ok {
		return dst, false
	}
	return appendParts(dst, second, nano), true
}

// Parse returns the instant that a text is, in UTC. It returns false if the text is no
// instant.
func Parse(text []byte) (time.Time, bool) {
	second, nano, ok := parse(text, false)
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(second+yearZero, int64(nano)).UTC(), true
}

// appendParts appends the instant with this number of seconds since the year 0.
func appendParts(dst []byte, second int64, nano int) []byte {
	year, month, day := date(int(second / secondsPerDay))
	clock := int(second % secondsPerDay)

	dst = appendDigits(dst, year, 4)
	dst = appendDigits(append(dst, '-'), month, 2)
	dst = appendDigits(append(dst, '-'), day, 2)
	dst = appendDigits(append(dst, 'T'), clock/3600, 2)
	dst = appendDigits(append(dst, ':'), clock/60%60, 2)
	dst = appendDigits(append(dst, ':'), clock%60, 2)
	if nano%100 == 0 {
		dst = appendDigits(append(dst, '.'), nano/100, 7)
	} else {
		dst = appendDigits(append(dst, '.'), nano, 9)
	}
	return append(dst, 'Z')
}

// appendDigits appends n in this many digits.
func appendDigits(dst []byte, n, digits int) []byte {
	start := len(dst)
	for range digits {
		dst = append(dst, '0')
	}
	for i := len(dst) - 1; i >= start; i-- {
		dst[i] = '0' + byte(n%10)
		n /= 10
	}
	return dst
}

// IsCanonical reports whether a text is the canonical spelling of an instant.
func IsCanonical(text []byte) bool {
	switch {
	case len(text) == MaxLen && text[MaxLen-2] == '0' && text[MaxLen-3] == '0', // seven digits are enough
		len(text) != MaxLen && len(text) != shortLen,
		text[10] != 'T', text[17] == '6', text[19] != '.', text[len(text)-1] != 'Z':
		return false
	}
	_, _, ok := parse(text, false)
	return ok
}

// KeySize is the size of an instant in an index key. Part of the on-disk format. Must
// not change.
const KeySize = 9

// AppendKey appends a canonical text as KeySize bytes that sort as instants do: the
// seconds since the year 0 in 5 bytes and the nanoseconds in 4, both big-endian. Part
// of the on-disk format. Must not change.
func AppendKey(dst, canonical []byte) []byte {
	second, nano, ok := parse(canonical, false)
	if !ok {
		panic(fmt.Sprintf("instant: a value holds %.60q, which is none", canonical))
	}
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], uint64(second))
	dst = append(dst, key[3:]...)
	return binary.BigEndian.AppendUint32(dst, uint32(nano))
}

// AppendTimeKey appends t as AppendKey does. A time before the year 0 has the key of its
// beginning, and one behind the year 9999 a key behind all others.
func AppendTimeKey(dst []byte, t time.Time) []byte {
	second, nano := t.Unix()-yearZero, t.Nanosecond()
	if second < 0 {
		second, nano = 0, 0
	} else if second >= seconds {
		second, nano = seconds, 0
	}
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], uint64(second))
	dst = append(dst, key[3:]...)
	return binary.BigEndian.AppendUint32(dst, uint32(nano))
}

// DecodeTimeKey returns the instant of a key of KeySize bytes, in UTC. It returns false
// for bytes that AppendKey does not make.
func DecodeTimeKey(key []byte) (time.Time, bool) {
	if len(key) != KeySize {
		return time.Time{}, false
	}
	var wide [8]byte
	copy(wide[3:], key[:5])
	second, nano := binary.BigEndian.Uint64(wide[:]), binary.BigEndian.Uint32(key[5:])
	if second >= seconds || nano >= 1e9 {
		return time.Time{}, false
	}
	return time.Unix(int64(second)+yearZero, int64(nano)).UTC(), true
}

// AppendDecoded appends the canonical text of a key of KeySize bytes. It returns false
// for bytes that AppendKey does not make.
func AppendDecoded(dst, key []byte) ([]byte, bool) {
	var wide [8]byte
	copy(wide[3:], key[:5])
	second, nano := binary.BigEndian.Uint64(wide[:]), binary.BigEndian.Uint32(key[5:KeySize])
	if second >= seconds || nano >= 1e9 {
		return dst, false
	}
	return appendParts(dst, int64(second), int(nano)), true
}

// parse reads a date-time of RFC 3339 as the seconds since the year 0 and the
// nanoseconds. With utc it may lack an offset, and have a blank for the T.
func parse(text []byte, utc bool) (second int64, nano int, ok bool) {
	const shortest = len("2026-01-01T00:00:00")
	if len(text) < shortest || text[4] != '-' || text[7] != '-' || text[10]|0x20 != 't' && !(utc && text[10] == ' ') || text[13] != ':' || text[16] != ':' {
		return 0, 0, false
	}
	p := digits{text: text, ok: true}
	year := p.two(0)*100 + p.two(2)
	month, day, hour, minute, sec := p.two(5), p.two(8), p.two(11), p.two(14), p.two(17)
	if !p.ok || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || sec > 60 {
		return 0, 0, false
	}

	i := shortest
	if i < len(text) && text[i] == '.' {
		first := i + 1
		unit := 100_000_000
		for i = first; i < len(text) && text[i]-'0' <= 9; i++ {
			nano += int(text[i]-'0') * unit // 0 for those after the ninth
			unit /= 10
		}
		if i == first {
			return 0, 0, false
		}
	}
	offset, ok := 0, utc
	if i < len(text) {
		offset, ok = zone(text[i:])
	}
	second = int64(days(year, month, day))*secondsPerDay + int64(hour*3600+minute*60+sec-offset)
	if sec == 60 && second%secondsPerDay != 0 { // a leap second is the last of a day of UTC
		return 0, 0, false
	}
	return second, nano, ok && second >= 0 && second < seconds
}

// zone reads the offset of a date-time, in seconds.
func zone(text []byte) (offset int, ok bool) {
	if len(text) == 1 {
		return 0, text[0]|0x20 == 'z'
	}
	if len(text) != len("+00:00") || text[0] != '+' && text[0] != '-' || text[3] != ':' {
		return 0, false
	}
	p := digits{text: text, ok: true}
	hour, minute := p.two(1), p.two(4)
	if offset = hour*3600 + minute*60; text[0] == '-' {
		offset = -offset
	}
	return offset, p.ok && hour <= 23 && minute <= 59
}

// digits reads numbers out of a text.
type digits struct {
	text []byte
	ok   bool // so far all were digits
}

// two returns the number of two digits at i.
func (d *digits) two(i int) int {
	a, b := d.text[i]-'0', d.text[i+1]-'0'
	d.ok = d.ok && a <= 9 && b <= 9
	return 10*int(a) + int(b)
}

// daysIn returns the length of a month of the Gregorian calendar.
func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// Years are counted from March here, so that a leap day is the last day of its year,
// and from 400 years before the year 0, so that nothing is negative.
const (
	daysPer400 = 146_097
	january0   = 146_037 // days from the first of March of the year -400 to the first of January of the year 0
)

// days returns the days from the first of January of the year 0.
func days(year, month, day int) int {
	year += 400
	if month -= 3; month < 0 {
		month += 12
		year--
	}
	return 365*year + year/4 - year/100 + year/400 + (153*month+2)/5 + day - 1 - january0
}

// date is the inverse of days.
func date(n int) (year, month, day int) {
	n += january0
	century400 := n / daysPer400
	n %= daysPer400
	years := (n - n/1460 + n/36524 - n/(daysPer400-1)) / 365
	n -= 365*years + years/4 - years/100
	month = (5*n + 2) / 153
	day = n - (153*month+2)/5 + 1
	if year, month = 400*century400+years-400, month+3; month > 12 {
		year, month = year+1, month-12
	}
	return year, month, day
}
