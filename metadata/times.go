package metadata

import (
	"bytes"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay/internal/instant"
)

// The members of @metadata with the times at which a document expires or is refreshed. The names
// are RavenDB's.
const (
	Expires = "@expires" // when it is deleted
	Refresh = "@refresh" // when it gets a new version, without this member
)

// Times are the instants at which a document expires and is refreshed. A zero instant means never.
type Times struct {
	Expires time.Time
	Refresh time.Time
}

// ReadTimes returns the instants in custom metadata, in UTC. It ignores values that are not
// instants, because older versions of Jay stored them unchecked.
func ReadTimes(custom []byte) (t Times) {
	gjson.ParseBytes(custom).ForEach(func(key, value gjson.Result) bool {
		switch key.String() {
		case Expires:
			t.Expires, _ = instantOf(value)
		case Refresh:
			t.Refresh, _ = instantOf(value)
		}
		return true
	})
	return t
}

// instantOf returns the instant that a value of JSON is. The first of January of the
// year 1, which is what an unset time becomes in JSON, is none.
func instantOf(value gjson.Result) (time.Time, bool) {
	if value.Type != gjson.String {
		return time.Time{}, false
	}
	t, ok := instant.Parse([]byte(value.String()))
	return t, ok && !t.IsZero()
}

// localLen is the length of a date as RavenDB's client for Node writes it: seven digits of a
// second, and no offset.
const localLen = len("2006-01-02T15:04:05.0000000")

// inUTC returns a value of JSON, and for a date without an offset, of seven digits, the one
// in UTC, which RavenDB takes it for. It is stored so.
func inUTC(value gjson.Result) gjson.Result {
	if text := value.String(); value.Type == gjson.String && len(text) == localLen && text[localLen-8] == '.' && strings.Trim(text[localLen-7:], "0123456789") == "" {
		value.Str = text + "Z"
		value.Raw = `"` + value.Str + `"`
	}
	return value
}

// Times returns the instants at which the document expires and is refreshed.
func (h *Header) Times() Times {
	if !h.Timed {
		return Times{}
	}
	return ReadTimes(h.Custom)
}

// IsExpired reports whether the document has expired at the instant at.
func (h *Header) IsExpired(at time.Time) bool {
	if !h.Timed {
		return false
	}
	t := ReadTimes(h.Custom)
	return !t.Expires.IsZero() && !t.Expires.After(at)
}

// SetTime returns custom metadata in which the member name, which is Expires or Refresh, has the
// instant at. If at is zero, the result lacks the member. SetTime returns nil if the result has no
// members, and an error for an instant outside of the years 0 to 9999. It does not change custom.
func SetTime(custom []byte, name string, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	gjson.ParseBytes(custom).ForEach(func(key, value gjson.Result) bool {
		if key.String() != name {
			appendMember(&out, key.Raw, value.Raw)
		}
		return true
	})
	if !at.IsZero() {
		var room [instant.MaxLen + 2]byte
		text, err := instant.Append(append(room[:0], '"'), at)
		if err != nil {
			return nil, err
		}
		appendMember(&out, `"`+name+`"`, string(append(text, '"')))
	}
	if out.Len() == 0 {
		return nil, nil
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
