package ids

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxBytes is the greatest length of an ID in bytes of UTF-8. It bounds the
// original and the case-folded ID. Rules can lower it: RavenDB has allowed 512
// since 4.2.
const MaxBytes = 2025

// DefaultSeparator stands between the parts of an ID that Jay makes.
const DefaultSeparator = "/"

// DefaultNodeTag is the node tag at the end of HiLo and server-side IDs, unless
// the database was created with another one.
const DefaultNodeTag = "A"

// ErrInvalid matches every *Error: errors.Is(err, ErrInvalid).
var ErrInvalid = errors.New("invalid id")

// ErrExhausted is returned when a counter has no number left below 1<<63.
var ErrExhausted = errors.New("numbers are exhausted")

// Error says which rule an ID breaks.
type Error struct {
	ID     string // the final ID, or the request if no final ID was made
	Rule   string // such as "at most 2025 bytes"
	Limit  int    // the limit in bytes; 0 if the rule has none
	Actual int    // the size in bytes if the rule has a limit, else the offset of the offending byte
}

// Error names the rule, the size or the offset, and the ID, which is cut after
// 80 bytes.
func (e *Error) Error() string {
	shown := fmt.Sprintf("%.80q", e.ID)
	if len(e.ID) > 80 {
		shown += "…"
	}
	if e.Limit > 0 {
		return fmt.Sprintf("invalid id %s: %s, it has %d", shown, e.Rule, e.Actual)
	}
	return fmt.Sprintf("invalid id %s: %s (byte %d)", shown, e.Rule, e.Actual)
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *Error) Is(target error) bool { return target == ErrInvalid }

// Rules are the restrictions that a database puts on its IDs. All but MaxBytes
// are fixed when the database is created.
type Rules struct {
	// Separator is one character other than '|', '\', white space and control
	// characters.
	Separator string
	// NodeTag is one to four upper-case ASCII letters, but not RAFT.
	NodeTag string
	// CaseSensitive makes IDs that differ only in case different IDs.
	CaseSensitive bool
	// MaxBytes limits the final ID, both original and case-folded, in bytes.
	MaxBytes int
}

// DefaultRules returns the rules of a database created without options.
func DefaultRules() Rules {
	return Rules{Separator: DefaultSeparator, NodeTag: DefaultNodeTag, MaxBytes: MaxBytes}
}

// Validate returns an error if a field of r is out of range.
func (r Rules) Validate() error {
	if err := CheckSeparator(r.Separator); err != nil {
		return err
	}
	if err := CheckNodeTag(r.NodeTag); err != nil {
		return err
	}
	if r.MaxBytes < 64 || r.MaxBytes > MaxBytes {
		return fmt.Errorf("the longest id must have between 64 and %d bytes, got %d", MaxBytes, r.MaxBytes)
	}
	return nil
}

// CheckSeparator returns an error if s cannot stand between the parts of an ID.
func CheckSeparator(s string) error {
	c, size := utf8.DecodeRuneInString(s)
	if size == 0 || size != len(s) || (c == utf8.RuneError && size == 1) {
		return fmt.Errorf("the separator must be one character, got %.100q", s)
	}
	if s == IdentityMark || s == `\` || isControl(s[0]) || strings.TrimSpace(s) == "" {
		return fmt.Errorf(`the separator must not be '|', '\', white space or a control character, got %.100q`, s)
	}
	return nil
}

// CheckNodeTag returns an error if s cannot be a node tag.
func CheckNodeTag(s string) error {
	if len(s) < 1 || len(s) > 4 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return fmt.Errorf("a node tag is one to four upper-case ASCII letters, got %.100q", s)
	}
	if s == "RAFT" {
		return errors.New("the node tag RAFT is reserved")
	}
	return nil
}

// Fold returns the key under which id is looked up: Fold(id), or id itself if
// IDs are case-sensitive.
func (r Rules) Fold(id string) string {
	if r.CaseSensitive {
		return id
	}
	return Fold(id)
}

// AppendFold appends r.Fold(id) to dst.
func (r Rules) AppendFold(dst []byte, id string) []byte {
	if r.CaseSensitive {
		return append(dst, id...)
	}
	return AppendFold(dst, id)
}

// Check returns an *Error if the final ID id breaks a rule.
func (r Rules) Check(id string) error {
	if id == "" {
		return &Error{ID: id, Rule: "must not be empty"}
	}
	if err := checkCharacters(id); err != nil {
		return err
	}
	return r.checkSize(id, len(id))
}

// checkSize checks size, the length in bytes of the final ID, of which id is the
// whole or the requested beginning. It also checks the length of the case-folded
// ID, which can be larger.
func (r Rules) checkSize(id string, size int) error {
	if size > r.MaxBytes {
		return r.tooLong(id, size)
	}
	if grown := size + FoldGrowth(id); !r.CaseSensitive && grown > r.MaxBytes {
		return r.tooLong(id, grown)
	}
	return nil
}

func (r Rules) tooLong(id string, size int) error {
	return &Error{ID: id, Rule: fmt.Sprintf("at most %d bytes of UTF-8", r.MaxBytes), Limit: r.MaxBytes, Actual: size}
}

// checkCharacters refuses control characters, backslashes and invalid UTF-8.
func checkCharacters(id string) error {
	ascii := true
	for i := 0; i < len(id); i++ {
		c := id[i]
		if isControl(c) {
			return &Error{ID: id, Rule: fmt.Sprintf("must not hold the control character U+%04X", c), Actual: i}
		}
		if c == '\\' {
			return &Error{ID: id, Rule: `must not hold the character \`, Actual: i}
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	if ascii || utf8.ValidString(id) {
		return nil
	}
	return &Error{ID: id, Rule: "must be valid UTF-8", Actual: firstInvalid(id)}
}

// firstInvalid returns the offset of the first byte of s that is not UTF-8.
func firstInvalid(s string) int {
	for i, c := range s {
		if c == utf8.RuneError { // or a U+FFFD that the text really has, of 3 bytes
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return len(s)
}

func isControl(c byte) bool { return c < 0x20 || c == 0x7f }
