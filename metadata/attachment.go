package metadata

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/errs"
)

// Bounds of the name and the content type of an attachment, in bytes.
const (
	MaxAttachmentNameBytes = 512
	MaxContentTypeBytes    = 256
)

// Attachment describes an attachment of a document, as @attachments lists it.
type Attachment struct {
	// Name is the name as it was given. Names of one document differ in more than
	// their case, unless IDs are case-sensitive.
	Name string
	// Hash is the SHA-256 of the content, in base64.
	Hash string
	// ContentType is the content type that the caller gave, such as "image/png", or "".
	ContentType string
	// Size is the number of bytes.
	Size int64
}

// ErrInvalidAttachment matches every *AttachmentError: errors.Is(err, ErrInvalidAttachment).
var ErrInvalidAttachment = errors.New("jay: invalid attachment")

// AttachmentError names the rule that an attachment breaks.
// errors.Is(err, ErrInvalidAttachment) is true.
type AttachmentError struct {
	ID     string // of the document
	Name   string
	Rule   string
	Limit  int64 // 0 if the rule has no limit
	Actual int64 // the size or number, if the rule has a limit; else the offset of the wrong byte
}

// Error names the rule and what broke it.
func (e *AttachmentError) Error() string {
	text := "jay: attachment " + strconv.Quote(errs.Shorten(e.Name))
	if e.ID != "" {
		text += " of " + strconv.Quote(errs.Shorten(e.ID))
	}
	text += ": " + e.Rule
	if e.Limit > 0 {
		text += fmt.Sprintf(": %d, at most %d", e.Actual, e.Limit)
	}
	return text
}

// Is makes errors.Is(err, ErrInvalidAttachment) true.
func (e *AttachmentError) Is(target error) bool { return target == ErrInvalidAttachment }

// CheckAttachment returns an *AttachmentError if an attachment cannot have this name or this
// content type: both must be valid UTF-8 without control characters, and the name must not be
// empty. A name is not a path: "../a" is a name like any other.
func CheckAttachment(id, name, contentType string) error {
	fail := func(rule string, limit, actual int) error {
		return &AttachmentError{ID: id, Name: name, Rule: rule, Limit: int64(limit), Actual: int64(actual)}
	}
	switch {
	case name == "":
		return fail("a name is not empty", 0, 0)
	case len(name) > MaxAttachmentNameBytes:
		return fail("bytes of its name", MaxAttachmentNameBytes, len(name))
	case len(contentType) > MaxContentTypeBytes:
		return fail("bytes of its content type", MaxContentTypeBytes, len(contentType))
	case !utf8.ValidString(name):
		return fail("a name is valid UTF-8", 0, 0)
	case !utf8.ValidString(contentType):
		return fail("a content type is valid UTF-8", 0, 0)
	}
	if i := controlCharacter(name); i >= 0 {
		return fail("a name has no control characters", 0, i)
	}
	if i := controlCharacter(contentType); i >= 0 {
		return fail("a content type has no control characters", 0, i)
	}
	return nil
}

// controlCharacter returns the offset of the first control character, or -1.
func controlCharacter(s string) int {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] == 0x7f {
			return i
		}
	}
	return -1
}

// appendAttachments appends the member @attachments, with a comma behind it.
func appendAttachments(dst []byte, all []Attachment) []byte {
	dst = append(dst, `"@attachments":[`...)
	for i, a := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"Name":`...)
		dst = AppendQuoted(dst, a.Name)
		dst = append(dst, `,"Hash":`...)
		dst = AppendQuoted(dst, a.Hash)
		dst = append(dst, `,"ContentType":`...)
		dst = AppendQuoted(dst, a.ContentType)
		dst = append(dst, `,"Size":`...)
		dst = strconv.AppendInt(dst, a.Size, 10)
		dst = append(dst, '}')
	}
	return append(dst, "],"...)
}
