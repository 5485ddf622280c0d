package jay

import (
	"context"
	"fmt"
	"strings"

	"github.com/jaydb/jay/internal/errs"
)

// ID is the ID of a document that holds a T, so that an order's ID cannot be
// passed where a user's is wanted:
//
//	type Order struct {
//		ID       jay.ID[Order]
//		Customer jay.ID[User]
//	}
//
// It is a string in JSON and in databases, can be the ID field of a type, and
// converts to and from string. Which collection an ID belongs to is not
// checked until a document is loaded.
type ID[T any] string

// String returns the ID as it is.
func (id ID[T]) String() string { return string(id) }

// Load is Get for a typed ID.
func (c *Collection[T]) Load(ctx context.Context, id ID[T]) (*T, error) {
	return c.Get(ctx, string(id))
}

const hexDigits = "0123456789ABCDEF"

// EscapeID returns a form of id that goes through one segment of a URL's path
// unharmed, past proxies that resolve dots or decode %2F too: users/1-A becomes
// users~1-A. Letters, digits, '-', '_' and '.' stay, '/' becomes '~', every
// other byte '!' and two hex digits. UnescapeID is its inverse.
func EscapeID(id string) string {
	if id == "." || id == ".." {
		return strings.ReplaceAll(id, ".", "!2E")
	}
	var b strings.Builder
	for i := 0; i < len(id); i++ {
		switch c := id[i]; {
		case isPlain(c):
			b.WriteByte(c)
		case c == '/':
			b.WriteByte('~')
		default:
			b.Write([]byte{'!', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

// isPlain reports whether a byte stays as it is in an escaped ID.
func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.'
}

// UnescapeID returns the ID that EscapeID escaped, or ErrInvalidID for a text that
// EscapeID does not make: every ID has one escaped form.
func UnescapeID(escaped string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(escaped); i++ {
		switch c := escaped[i]; {
		case c == '~':
			b.WriteByte('/')
		case c == '!' && i+2 < len(escaped):
			b.WriteByte(unhex(escaped[i+1])<<4 | unhex(escaped[i+2]))
			i += 2
		default:
			b.WriteByte(c)
		}
	}
	id := b.String()
	if EscapeID(id) != escaped {
		return "", fmt.Errorf("unescape id %q: %w: not an escaped id", errs.Shorten(escaped), ErrInvalidID)
	}
	return id, nil
}

// unhex returns the value of a hex digit, or 0 for any other byte.
func unhex(c byte) byte {
	return byte(max(strings.IndexByte(hexDigits, c), 0))
}
