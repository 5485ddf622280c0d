package inspect

import (
	"bytes"
	"strconv"

	"github.com/jaydb/jay/ids"
)

// isGUID reports whether an ID has the form of a UUID.
func isGUID(id []byte) bool {
	if len(id) != 36 {
		return false
	}
	for i, c := range id {
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F':
		default:
			return false
		}
	}
	return true
}

// cutNodeTag cuts '-' and one to four letters off the end of a folded ID.
func (in *inspection) cutNodeTag(id []byte) (rest, nodeTag []byte) {
	letters := "abcdefghijklmnopqrstuvwxyz"
	if in.db.Env.Rules.CaseSensitive {
		letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	}
	rest = bytes.TrimRight(id, letters)
	if n := len(id) - len(rest); n < 1 || n > 4 || !bytes.HasSuffix(rest, []byte("-")) {
		return id, nil
	}
	return rest[:len(rest)-1], id[len(rest):]
}

// shapeOf parses a folded ID.
func (in *inspection) shapeOf(id []byte) idShape {
	if isGUID(id) {
		return idShape{strategy: ids.GUID}
	}
	rest, nodeTag := in.cutNodeTag(id)
	start := len(bytes.TrimRight(rest, "0123456789"))
	if prefix, digits := rest[:start], rest[start:]; len(digits) > 0 && bytes.HasSuffix(prefix, in.separator) {
		n, err := strconv.ParseInt(string(digits), 10, 64)
		switch {
		case nodeTag != nil && len(digits) == serverSideDigits && err == nil:
			return idShape{prefix: prefix, strategy: ids.ServerSide, nodeTag: nodeTag}
		case err != nil || digits[0] == '0':
		case nodeTag != nil:
			return idShape{prefix: prefix, strategy: ids.HiLo, number: n, nodeTag: nodeTag}
		default:
			return idShape{prefix: prefix, strategy: ids.Identity, number: n}
		}
	}
	s := idShape{strategy: ids.Semantic}
	if i := bytes.LastIndex(id, in.separator); i >= 0 {
		s.prefix = id[:i+len(in.separator)]
	}
	return s
}

// idShape is the form of an ID.
type idShape struct {
	prefix   []byte
	strategy ids.Strategy
	number   int64  // of HiLo and Identity
	nodeTag  []byte // of HiLo and ServerSide, folded
}

// serverSideDigits is how many digits a server-side ID has.
const serverSideDigits = 19
