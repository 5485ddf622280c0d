package verify

import (
	"strconv"
	"strings"
)

// Kinds of numbers at the end of an ID.
const (
	noNumber   = iota
	identityNo // users/17
	hiloNo     // users/17-A
	serverNo   // users/0000000000000000017-A
)

// serverDigits is how many digits a server-side ID has.
const serverDigits = 19

// numberOf returns the number at the end of a folded ID, as this database would make it,
// and the prefix before it, with its separator.
func (v *verifier) numberOf(id string) (prefix string, kind int, n int64) {
	rest, own := id, false
	if i := strings.LastIndexByte(id, '-'); i >= 0 && v.nodeTags[id[i+1:]] {
		rest, own = id[:i], true
	}
	start := len(strings.TrimRight(rest, "0123456789"))
	prefix, digits := rest[:start], rest[start:]
	if digits == "" || !strings.HasSuffix(prefix, v.separator) || v.separator == "" {
		return "", noNumber, 0
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil:
		return "", noNumber, 0
	case own && len(digits) == serverDigits:
		return prefix, serverNo, n
	case digits[0] == '0':
		return "", noNumber, 0
	case own:
		return prefix, hiloNo, n
	}
	return prefix, identityNo, n
}
