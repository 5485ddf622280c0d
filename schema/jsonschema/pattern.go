package jsonschema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/jaydb/jay/schema"
	lib "github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of a pattern. docs/limits.md has them.
const (
	maxPatternBytes = 1000
	maxPatternSize  = 10_000 // instructions of the compiled pattern: a text takes at most so many steps for each of its characters
)

// patterns compiles the patterns of a schema, and notes the first that is refused.
type patterns struct{ refused *schema.RuleError }

// compile is a lib.RegexpEngine.
func (p *patterns) compile(pattern string) (lib.Regexp, error) {
	re, rule := compilePattern(pattern)
	if rule == "" {
		return re, nil
	}
	if p.refused == nil {
		p.refused = &schema.RuleError{Rule: rule, Value: pattern}
	}
	return nil, errors.New(rule)
}

// compilePattern compiles a pattern, or returns the rule that it breaks.
func compilePattern(pattern string) (re *regexp.Regexp, rule string) {
	if len(pattern) > maxPatternBytes {
		return nil, fmt.Sprintf("a pattern has at most %d bytes, not %d", maxPatternBytes, len(pattern))
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, whatIsMissing(pattern, err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, whatIsMissing(pattern, err)
	}
	if n := len(program.Inst); n > maxPatternSize {
		return nil, fmt.Sprintf("a pattern has at most %d instructions, with its repetitions written out, not %d", maxPatternSize, n)
	}
	if re, err = regexp.Compile(pattern); err != nil {
		return nil, whatIsMissing(pattern, err)
	}
	return re, ""
}

// missing are the parts of ECMA's regular expressions that RE2 does not have, by what Go says of them.
var missing = map[string]string{
	"(?=": "lookahead", "(?!": "lookahead", "(?<": "lookbehind", "(?<=": "lookbehind", "(?<!": "lookbehind",
}

// whatIsMissing names what a pattern has that Go's regular expressions do not.
func whatIsMissing(pattern string, err error) string {
	const rule = "a pattern is a regular expression of Go (RE2), which has no "
	var wrong *syntax.Error
	if !errors.As(err, &wrong) {
		return "a pattern is a regular expression of Go (RE2): " + err.Error()
	}
	for n := min(4, len(wrong.Expr)); n >= 3; n-- {
		if name := missing[wrong.Expr[:n]]; name != "" {
			return rule + name
		}
	}
	if e := wrong.Expr; wrong.Code == syntax.ErrInvalidEscape && len(e) > 1 && (e[1] >= '1' && e[1] <= '9' || e[1] == 'k') {
		return rule + "back-references"
	}
	return fmt.Sprintf("a pattern is a regular expression of Go (RE2): %s: `%s`", wrong.Code, wrong.Expr)
}
