package ids

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxBytes is the most that an ID may have, in bytes of UTF-8, original and
// folded. Rules can lower it: RavenDB has allowed 512 since 4.2.
const MaxBytes = 2025

// DefaultSeparator stands between the parts of an ID that Jay makes.
const DefaultSeparator = "/"

// DefaultNodeTag ends the IDs that carry a node tag.
const DefaultNodeTag = "A"

// ErrInvalid is what every *Error is: errors.Is(err, ErrInvalid).
var ErrInvalid = errors.New("invalid id")

// ErrExhausted is returned when a counter has no number left below 1<<63.
var ErrExhausted = errors.New("numbers are exhausted")

// Error says which rule an ID breaks.
type Error struct {
	ID     string // the final ID, or the request if it came to none
	Rule   string // what is asked of an ID, such as "at most 2025 bytes"
	Limit  int    // the limit in bytes, if the rule has one
	Actual int    // the size in bytes, if the rule has a limit; else the byte offset of what is wrong
}

// Error names the rule, the value and the ID, shortened if it is long.
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

// Rules are what a database asks of its IDs. They are fixed when the database
// is created, but for MaxBytes.
type Rules struct {
	// Separator is one character, any but '|', '\' and control characters.
	Separator string
	// NodeTag is one to four upper-case ASCII letters, but not RAFT.
	NodeTag string
	// CaseSensitive keeps IDs apart that differ only in case.
	CaseSensitive bool
	// MaxBytes limits the final ID, original and folded.
	MaxBytes int
}

// DefaultRules are those of a database created without options.
func DefaultRules() Rules {
	return Rules{Separator: DefaultSeparator, NodeTag: DefaultNodeTag, MaxBytes: MaxBytes}
}

// Validate tells whether the rules themselves are sound.
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

// CheckSeparator tells whether s can stand between the parts of an ID.
func CheckSeparator(s string) error {
	c, size := utf8.DecodeRuneInString(s)
	if size == 0 || size != len(s) || (c == utf8.RuneError && size == 1) {
		return fmt.Errorf("the separator must be one character, got %q", s)
	}
	if s == IdentityMark || s == `\` || isControl(s[0]) || strings.TrimSpace(s) == "" {
		return fmt.Errorf(`the separator must not be '|', '\', white space or a control character, got %q`, s)
	}
	return nil
}

// CheckNodeTag tells whether s can be a node tag.
func CheckNodeTag(s string) error {
	if len(s) < 1 || len(s) > 4 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return fmt.Errorf("a node tag is one to four upper-case ASCII letters, got %q", s)
	}
	if s == "RAFT" {
		return errors.New("the node tag RAFT is reserved")
	}
	return nil
}

// Fold returns the form under which id is looked up: Fold(id), or id itself
// if IDs are case-sensitive.
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

// Check returns an *Error if id, a final ID, breaks a rule.
func (r Rules) Check(id string) error {
	if id == "" {
		return &Error{ID: id, Rule: "must not be empty"}
	}
	if err := checkCharacters(id); err != nil {
		return err
	}
	return r.checkSize(id, len(id))
}

// checkSize checks size, the bytes of id as it will be stored, and the size
// of the folded id, which can be larger.
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

// checkCharacters refuses what no ID may hold.
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

func firstInvalid(s string) int {
	for i, c := range s {
		if c == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return len(s)
}

func isControl(c byte) bool { return c < 0x20 || c == 0x7f }
