package metadata

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Empty is the collection of documents that name none.
const Empty = "@empty"

// MaxCollectionBytes is the greatest length of a collection's name, in bytes.
const MaxCollectionBytes = 512

// Given holds the content of a caller's @metadata.
type Given struct {
	Collection string // "" if it names none, or @empty
	Empty      bool   // it names @empty
	ID         string // @id, which a write ignores and an import may use
	Custom     []byte // an object with the keys that Parse keeps; nil if there are none
	Timed      bool   // Custom has @expires or @refresh: see ReadTimes
}

// role is how Parse treats a key of @metadata.
type role uint8

const (
	custom     role = iota // kept unchanged
	collection             // names the collection
	computed               // dropped on writing; Jay makes it on reading
	instants               // kept, and must be a point in time
	expires                // instants, kept under the name @expires
	typedText              // computed, and must be a string
)

// roles lists the keys that have a meaning; all others are custom. Names are
// compared byte for byte, so that @ID is a custom key. The older names are those
// that RavenDB rewrites or drops on import.
var roles = map[string]role{
	"@collection":                         collection,
	"Raven-Entity-Name":                   collection,
	"@expires":                            instants,
	"@refresh":                            instants,
	"@id":                                 typedText,
	"@flags":                              typedText,
	"@last-modified":                      typedText,
	"@change-vector":                      computed,
	"@etag":                               computed,
	"@index-score":                        computed,
	"@attachments":                        computed,
	"@counters":                           computed,
	"@timeseries":                         computed,
	"Raven-Expiration-Date":               expires,
	"Last-Modified":                       computed,
	"Raven-Last-Modified":                 computed,
	"Raven-Read-Only":                     computed,
	"Raven-Delete-Marker":                 computed,
	"Non-Authoritative-Information":       computed,
	"Raven-Document-Revision":             computed,
	"Raven-Document-Revision-Status":      computed,
	"Raven-Document-Parent-Revision":      computed,
	"Raven-Replication-Source":            computed,
	"Raven-Replication-Version":           computed,
	"Raven-Replication-History":           computed,
	"Raven-Replication-Conflict":          computed,
	"Raven-Replication-Conflict-Document": computed,
}

// Parse reads a @metadata object that Scan accepted. It drops computed keys, and @expires and
// @refresh if they are null. It returns an *Error if @collection, @id, @flags or @last-modified is
// not a string, if @expires or @refresh is not a point in time, or if the collection's name is
// invalid. The result shares no memory with raw.
func Parse(raw []byte) (Given, error) {
	var g Given
	var err error
	var kept bytes.Buffer
	gjson.ParseBytes(raw).ForEach(func(key, value gjson.Result) bool {
		name := key.String()
		r := roles[name]
		if (r == collection || r == typedText) && value.Type != gjson.String {
			if value.Type == gjson.Null && r == typedText { // as if it were missing
				return true
			}
			err = &Error{Rule: name + " in @metadata must be a string", Detail: fmt.Sprintf("it is %.40s", value.Raw)}
			return false
		}
		if r == expires {
			if gjson.GetBytes(raw, `\@expires`).Exists() {
				return true // the newer name wins
			}
			name, key.Raw = Expires, `"@expires"`
		}
		if r == instants || r == expires {
			if value.Type == gjson.Null {
				return true
			}
			value = inUTC(value)
			if _, ok := instantOf(value); !ok {
				err = &Error{Rule: name + " in @metadata must be a point in time, such as \"2026-01-01T00:00:00Z\"", Detail: fmt.Sprintf("it is %.60s", value.Raw)}
				return false
			}
			g.Timed = true
		}
		switch {
		case r == collection:
			if name == "@collection" || g.Collection == "" { // @collection wins over the older name
				g.Collection = value.String()
			}
		case name == "@id":
			g.ID = value.String()
		case r == custom, r == instants, r == expires:
			appendMember(&kept, key.Raw, value.Raw)
		}
		return true
	})
	if err != nil {
		return Given{}, err
	}

	if g.Collection == Empty {
		g.Collection, g.Empty = "", true
	}
	if kept.Len() > 0 {
		kept.WriteByte('}')
		g.Custom = appendCompact(nil, kept.Bytes())
	}
	return g, CheckCollection(g.Collection)
}

// appendMember appends a member to an object whose closing brace is not written.
func appendMember(b *bytes.Buffer, rawKey, rawValue string) {
	if b.Len() == 0 {
		b.WriteByte('{')
	} else {
		b.WriteByte(',')
	}
	b.WriteString(rawKey)
	b.WriteByte(':')
	b.WriteString(rawValue)
}

// CheckCollection returns an *Error if name cannot be the name of a collection:
// it must be valid UTF-8 without control characters, of at most
// MaxCollectionBytes. The empty name stands for @empty.
func CheckCollection(name string) error {
	if len(name) > MaxCollectionBytes {
		return &Error{Rule: fmt.Sprintf("a collection's name has at most %d bytes", MaxCollectionBytes), Limit: MaxCollectionBytes, Actual: len(name)}
	}
	for i := 0; i < len(name); i++ {
		if name[i] < 0x20 || name[i] == 0x7f {
			return &Error{Rule: "a collection's name has no control characters", Detail: fmt.Sprintf("%.100q", name), Offset: i}
		}
	}
	if !utf8.ValidString(name) {
		return &Error{Rule: "a collection's name must be valid UTF-8", Detail: fmt.Sprintf("%.100q", name)}
	}
	return nil
}

// Metadata is what Jay stores about a document in addition to its body.
type Metadata struct {
	// ID is the document's ID in the case in which it was last written.
	ID string
	// Collection is the name that the document was saved with, or "@empty".
	Collection string
	// ChangeVector names this version of the document, such as
	// "A:7-kKRSXHCbUUOAD9V3vs1NPA". Compare it only for equality.
	ChangeVector string
	// Etag is the number of the write. Etags rise over the whole database.
	Etag uint64
	// LastModified is the time of the write in UTC, to 100 ns.
	LastModified time.Time
	// Custom is a JSON object with the caller's own metadata, or nil.
	Custom json.RawMessage
	// Attachments are the document's attachments, in the order of their names.
	Attachments []Attachment
	// Flags is @flags: what the document has in addition to its body, and whether it is a revision.
	Flags Flags
}

// Flags says what a document has in addition to its body, and whether it is a revision: RavenDB's
// @flags. Jay sets it. Writes ignore @flags in a document.
type Flags uint8

const (
	// HasRevisions is set for a document whose revisions are kept, and for its revisions.
	HasRevisions Flags = 1 << iota
	// HasAttachments is set for a document with attachments.
	HasAttachments
	// Revision is set for a revision: an older or the newest version of a document.
	Revision
	// DeleteRevision is set for the revision that the deletion of a document has left.
	DeleteRevision
)

// flagNames are the names of the flags in RavenDB, in the order in which they are
// listed.
var flagNames = [...]string{"HasRevisions", "HasAttachments", "Revision", "DeleteRevision"}

// String returns the flags as @flags has them, such as "HasRevisions, Revision".
func (f Flags) String() string { return string(f.append(nil)) }

func (f Flags) append(dst []byte) []byte {
	first := true
	for i, name := range flagNames {
		if f&(1<<i) == 0 {
			continue
		}
		if !first {
			dst = append(dst, ", "...)
		}
		dst, first = append(dst, name...), false
	}
	return dst
}

// timeFormat is RavenDB's format of a time: UTC, seven digits of fraction.
const timeFormat = "2006-01-02T15:04:05.0000000Z"

// AppendDocument appends the document in the form in which RavenDB returns it: the body with
// @metadata as its last member.
func AppendDocument(dst, body []byte, m *Metadata) []byte {
	dst = append(dst, body[:len(body)-1]...)
	if len(body) > 2 {
		dst = append(dst, ',')
	}
	dst = append(dst, `"@metadata":{`...)
	if len(m.Custom) > 2 {
		dst = append(dst, m.Custom[1:len(m.Custom)-1]...)
		dst = append(dst, ',')
	}
	if len(m.Attachments) > 0 {
		dst = appendAttachments(dst, m.Attachments)
	}
	if m.Collection != Empty && m.Collection != "" {
		dst = append(dst, `"@collection":`...)
		dst = AppendQuoted(dst, m.Collection)
		dst = append(dst, ',')
	}
	dst = append(dst, `"@change-vector":`...)
	dst = AppendQuoted(dst, m.ChangeVector)
	if m.Flags != 0 {
		dst = append(dst, `,"@flags":"`...)
		dst = append(m.Flags.append(dst), '"')
	}
	dst = append(dst, `,"@id":`...)
	dst = AppendQuoted(dst, m.ID)
	dst = append(dst, `,"@last-modified":"`...)
	dst = m.LastModified.AppendFormat(dst, timeFormat)
	return append(dst, `"}}`...)
}

// AppendTime appends t in RavenDB's format.
func AppendTime(dst []byte, t time.Time) []byte { return t.UTC().AppendFormat(dst, timeFormat) }

// AppendQuoted appends s, valid UTF-8 without control characters, as a JSON
// string.
func AppendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		if c := s[i]; c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '"')
}
