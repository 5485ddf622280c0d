package jsonschema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/schema/jsonschema"
)

// suiteGroup is a schema of the suite with its tests.
type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// TestSuite: the tests of JSON Schema for the draft 2020-12 (testdata/suite), with the compiler as it is. A schema is refused if refusals says so, by
// a *schema.RuleError, and no other one is. The answer about each value is that of the suite, but for those in otherAnswers. A schema that is true or
// false is tried inside of an object.
func TestSuite(t *testing.T) {
	t.Parallel()
	refused, other, same, without := 0, 0, 0, 0
	seen := make(map[string]bool)
	root := os.DirFS("testdata/suite")
	err := fs.WalkDir(root, ".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(file) != ".json" {
			return err
		}
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		var groups []suiteGroup
		if err := json.Unmarshal(text, &groups); err != nil {
			return err
		}
		for _, g := range groups {
			name := strings.TrimSuffix(file, ".json") + ": " + g.Description
			part, refuses := refusals[name]
			v, err := jsonschema.New().Compile(g.Schema)
			if refuses {
				seen[name] = true
				refused++
				if rule := (*schema.RuleError)(nil); !errors.As(err, &rule) || !strings.Contains(err.Error(), part) {
					t.Errorf("%q: got %v, want a *schema.RuleError with %q", name, err, part)
				}
				if part != noObject {
					without += len(g.Tests)
					continue
				}
				v, err = jsonschema.New().Compile(fmt.Appendf(nil, `{"allOf":[%s]}`, g.Schema))
			}
			if err != nil {
				t.Errorf("%q: refused: %v", name, err)
				continue
			}
			for _, c := range g.Tests {
				one := name + ": " + c.Description
				want := c.Valid
				if _, differs := otherAnswers[one]; differs {
					seen[one] = true
					want = !want
					other++
				} else {
					same++
				}
				if found, n := v.Validate(c.Data, schema.MaxViolations); (n == 0) != want {
					t.Errorf("%q: got %d violations: %v", one, n, found)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range refusals {
		if !seen[name] {
			t.Errorf("the suite has no schema %q", name)
		}
	}
	for name := range otherAnswers {
		if !seen[name] {
			t.Errorf("the suite has no test %q", name)
		}
	}
	got := fmt.Sprintf("of %d answers %d are those of the suite; %d schemas are refused, and with them %d tests are left out", same+other, same, refused, without)
	const want = "of 1824 answers 1765 are those of the suite; 29 schemas are refused, and with them 58 tests are left out" // docs/schemas.md says so
	if got != want {
		t.Errorf("%s, and not: %s", got, want)
	}
}

// What a refused schema of the suite breaks, as its error says it.
const (
	remote   = "a schema refers to no other document" // $ref to a schema that would have to be loaded
	dialect  = "the dialect is"                       // a metaschema of its own, which would have to be loaded
	noObject = "it is a JSON object"                  // true or false: a rule is an object. Inside of a schema both are known
	escape   = "invalid escape sequence"              // a regular expression that RE2 does not have
)

// refusals are the schemas of the suite that are refused, on purpose, and what they break.
var refusals = map[string]string{
	`boolean_schema: boolean schema 'true'`:                                          noObject,
	`boolean_schema: boolean schema 'false'`:                                         noObject,
	`dynamicRef: strict-tree schema, guards against misspelled properties`:           remote,
	`dynamicRef: tests for implementation dynamic anchor and reference link`:         remote,
	`dynamicRef: $ref and $dynamicAnchor are independent of order - $defs first`:     remote,
	`dynamicRef: $ref and $dynamicAnchor are independent of order - $ref first`:      remote,
	`dynamicRef: $ref to $dynamicRef finds detached $dynamicAnchor`:                  remote,
	`optional/cross-draft: refs to historic drafts are processed as historic drafts`: remote,
	`refRemote: remote ref`:                                                                      remote,
	`refRemote: fragment within remote ref`:                                                      remote,
	`refRemote: anchor within remote ref`:                                                        remote,
	`refRemote: ref within remote ref`:                                                           remote,
	`refRemote: base URI change`:                                                                 remote,
	`refRemote: base URI change - change folder`:                                                 remote,
	`refRemote: base URI change - change folder in subschema`:                                    remote,
	`refRemote: root ref in remote ref`:                                                          remote,
	`refRemote: remote ref with ref to defs`:                                                     remote,
	`refRemote: Location-independent identifier in remote ref`:                                   remote,
	`refRemote: retrieved nested refs resolve relative to their URI not $id`:                     remote,
	`refRemote: remote HTTP ref with different $id`:                                              remote,
	`refRemote: remote HTTP ref with different URN $id`:                                          remote,
	`refRemote: remote HTTP ref with nested absolute ref`:                                        remote,
	`refRemote: $ref to $ref finds detached $anchor`:                                             remote,
	`optional/format-assertion: schema that uses custom metaschema with format-assertion: false`: dialect,
	`optional/format-assertion: schema that uses custom metaschema with format-assertion: true`:  dialect,
	`vocabulary: schema that uses custom metaschema with with no validation vocabulary`:          dialect,
	`vocabulary: ignore unrecognized optional vocabulary`:                                        dialect,
	`optional/ecmascript-regex: ECMA 262 regex escapes control codes with \c and upper letter`:   escape,
	`optional/ecmascript-regex: ECMA 262 regex escapes control codes with \c and lower letter`:   escape,
}

// Why an answer is not the one of the suite.
const (
	asserted  = "format is asserted: JSON Schema leaves it to the validator, and these tests are for one that does not"
	unchecked = "the formats idn-email and idn-hostname are annotations"
	re2       = "patterns are Go's regular expressions: \\s is the white space of ASCII, and \\a is the bell"
)

// otherAnswers are the tests of the suite whose answer is another one here, and why. All of them are optional in the suite, but for those that
// say that a format is only an annotation by default.
var otherAnswers = map[string]string{
	`format: email format: invalid email string is only an annotation by default`:                                                           asserted,
	`format: regex format: invalid regex string is only an annotation by default`:                                                           asserted,
	`format: ipv4 format: invalid ipv4 string is only an annotation by default`:                                                             asserted,
	`format: ipv6 format: invalid ipv6 string is only an annotation by default`:                                                             asserted,
	`format: hostname format: invalid hostname string is only an annotation by default`:                                                     asserted,
	`format: date format: invalid date string is only an annotation by default`:                                                             asserted,
	`format: date-time format: invalid date-time string is only an annotation by default`:                                                   asserted,
	`format: time format: invalid time string is only an annotation by default`:                                                             asserted,
	`format: json-pointer format: invalid json-pointer string is only an annotation by default`:                                             asserted,
	`format: relative-json-pointer format: invalid relative-json-pointer string is only an annotation by default`:                           asserted,
	`format: iri format: invalid iri string is only an annotation by default`:                                                               asserted,
	`format: iri-reference format: invalid iri-reference string is only an annotation by default`:                                           asserted,
	`format: uri format: invalid uri string is only an annotation by default`:                                                               asserted,
	`format: uri-reference format: invalid uri-reference string is only an annotation by default`:                                           asserted,
	`format: uri-template format: invalid uri-template string is only an annotation by default`:                                             asserted,
	`format: uuid format: invalid uuid string is only an annotation by default`:                                                             asserted,
	`format: duration format: invalid duration string is only an annotation by default`:                                                     asserted,
	`optional/ecmascript-regex: ECMA 262 \s matches whitespace: Line tabulation matches`:                                                    re2,
	`optional/ecmascript-regex: ECMA 262 \s matches whitespace: latin-1 non-breaking-space matches`:                                         re2,
	`optional/ecmascript-regex: ECMA 262 \s matches whitespace: zero-width whitespace matches`:                                              re2,
	`optional/ecmascript-regex: ECMA 262 \s matches whitespace: paragraph separator matches (line terminator)`:                              re2,
	`optional/ecmascript-regex: ECMA 262 \s matches whitespace: EM SPACE matches (Space_Separator)`:                                         re2,
	`optional/ecmascript-regex: ECMA 262 \S matches everything but whitespace: Line tabulation does not match`:                              re2,
	`optional/ecmascript-regex: ECMA 262 \S matches everything but whitespace: latin-1 non-breaking-space does not match`:                   re2,
	`optional/ecmascript-regex: ECMA 262 \S matches everything but whitespace: zero-width whitespace does not match`:                        re2,
	`optional/ecmascript-regex: ECMA 262 \S matches everything but whitespace: paragraph separator does not match (line terminator)`:        re2,
	`optional/ecmascript-regex: ECMA 262 \S matches everything but whitespace: EM SPACE does not match (Space_Separator)`:                   re2,
	`optional/ecmascript-regex: \a is not an ECMA 262 control escape: when used as a pattern`:                                               re2,
	`optional/format/idn-email: validation of an internationalized e-mail addresses: an invalid idn e-mail address`:                         unchecked,
	`optional/format/idn-email: validation of an internationalized e-mail addresses: an invalid e-mail address`:                             unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: illegal first char U+302E Hangul single dot tone mark`:       unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: contains illegal char U+302E Hangul single dot tone mark`:    unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: a host name with a component too long`:                       unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: invalid label, correct Punycode`:                             unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: invalid Punycode`:                                            unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: U-label contains "--" in the 3rd and 4th position`:           unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: U-label starts with a dash`:                                  unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: U-label ends with a dash`:                                    unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: U-label starts and ends with a dash`:                         unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: Begins with a Spacing Combining Mark`:                        unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: Begins with a Nonspacing Mark`:                               unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: Begins with an Enclosing Mark`:                               unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: Exceptions that are DISALLOWED, right-to-left chars`:         unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: Exceptions that are DISALLOWED, left-to-right chars`:         unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: MIDDLE DOT with no preceding 'l'`:                            unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: MIDDLE DOT with nothing preceding`:                           unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: MIDDLE DOT with no following 'l'`:                            unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: MIDDLE DOT with nothing following`:                           unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: Greek KERAIA not followed by Greek`:                          unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: Greek KERAIA not followed by anything`:                       unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: Hebrew GERESH not preceded by Hebrew`:                        unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: Hebrew GERESH not preceded by anything`:                      unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: Hebrew GERSHAYIM not preceded by Hebrew`:                     unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: Hebrew GERSHAYIM not preceded by anything`:                   unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: KATAKANA MIDDLE DOT with no Hiragana, Katakana, or Han`:      unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: KATAKANA MIDDLE DOT with no other characters`:                unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: Arabic-Indic digits mixed with Extended Arabic-Indic digits`: unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: ZERO WIDTH JOINER not preceded by Virama`:                    unchecked,
	`optional/format/idn-hostname: validation of internationalized host names: ZERO WIDTH JOINER not preceded by anything`:                  unchecked,
}
