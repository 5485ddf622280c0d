package query

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/jaydb/jay/internal/instant"
	"github.com/jaydb/jay/internal/jsonpath"
)

// update = from { clause } "update" "{" { statement } "}" . Its clauses are where, order
// by, limit and offset.
func (p *parser) update() (*Update, error) {
	q := &Query{}
	if err := p.from(q); err != nil {
		return nil, err
	}
	if !q.Each.IsZero() {
		return nil, p.fail(0, "each does not go with update: documents are changed, not elements")
	}
	for last := clauseFrom; !p.tok.is("update"); {
		if p.tok.kind == tokenEnd {
			return nil, p.fail(p.tok.offset, "the query ends here, and changes nothing").expecting("update { }")
		}
		at := p.tok.offset
		next, err := p.clause(last)
		if err != nil {
			return nil, err
		}
		switch next {
		case clauseGroup, clauseSelect, clauseInclude:
			return nil, p.fail(at, "%s does not go with update: documents are changed, not answers", clauseNames[next])
		}
		if err := p.rest(q, next); err != nil {
			return nil, err
		}
		last = next
	}
	if err := p.resolve(q); err != nil {
		return nil, err
	}
	p.advance()
	u := updateParser{parser: p, uses: make(map[string][]parameterUse)}
	assignments, err := u.block()
	return &Update{q, assignments}, err
}

// updateParser parses the statements of an update. The tokens are those of a query,
// which are those of JavaScript where both have them: what differs is refused.
type updateParser struct {
	*parser
	assignments []Assignment
	end         int // offset after the last token
	literals    int // values in all statements
	bytes       int // JSON of the parameters in all statements
	nested      int // depth of a literal

	aliases []alias                   // values that are one in JavaScript, and two here
	uses    map[string][]parameterUse // of each parameter that is an object or an array
}

// parameterUse is a statement that a parameter is in, and what the statement changes.
type parameterUse struct {
	spot
	statement int
	twice     bool // in this statement
}

// spot is where a value is: at the path, or in what is there.
type spot struct {
	path   jsonpath.Path
	inside bool
}

// holds reports whether an object or array at the path changed may be a part of the
// value.
func (p spot) holds(changed jsonpath.Path) bool {
	return leadsInto(changed, p.path) && !(p.inside && changed.Len() == p.path.Len())
}

// maxAliases bounds the work of looking for values that are one in JavaScript.
const maxAliases = 1000

// alias are two places that hold one object or array in JavaScript, if what is there is
// one: a change inside it at the one place would show at the other.
type alias struct {
	a, b spot
	text string // the statement that made them one
}

// block = "{" { statement ( ";" | line end ) } "}" .
func (u *updateParser) block() ([]Assignment, error) {
	if err := u.expectSymbol("{", "behind update"); err != nil {
		return nil, err
	}
	for {
		for u.acceptSymbol(";") {
		}
		if u.tok.isSymbol("}") {
			break
		}
		if len(u.assignments) == MaxAssignments {
			return nil, u.fail(u.tok.offset, "too many statements: %d are the most", MaxAssignments)
		}
		start, aliases := u.tok.offset, u.aliases
		a, err := u.statement()
		if err != nil {
			return nil, err
		}
		for _, other := range aliases {
			if changed := a.changed(); other.a.holds(changed) || other.b.holds(changed) {
				return nil, u.shared(start, other.text)
			}
		}
		u.assignments = append(u.assignments, a)
		if !u.tok.isSymbol(";") && !u.tok.isSymbol("}") && !u.newLine() {
			return nil, u.endOfStatement()
		}
	}
	if len(u.assignments) == 0 {
		return nil, u.fail(u.tok.offset, "update { } changes nothing").expecting("a statement, such as this.Small = true")
	}
	u.advance()
	if u.tok.kind != tokenEnd {
		return nil, u.unexpected("the end behind update { }")
	}
	return u.assignments, nil
}

// newLine reports whether a line ends between the last token and tok.
func (u *updateParser) newLine() bool {
	return strings.ContainsAny(u.lex.text[u.end:u.tok.offset], "\n\r\u2028\u2029")
}

// endOfStatement returns the error for what follows a statement.
func (u *updateParser) endOfStatement() error {
	err := u.unexpected(`";", a new line or "}"`)
	if syntax, ok := err.(*SyntaxError); ok && u.tok.kind == tokenSymbol {
		syntax.Hint = "statements do not calculate: compute the value, and pass it as a parameter"
	}
	return err
}

// statement = ( "++" | "--" ) path | "delete" path | path ( "=" value | "+=" number |
// "-=" number | "++" | "--" | "." call ) .
func (u *updateParser) statement() (a Assignment, err error) {
	start := u.tok
	if sign, found := u.step(); found { // ++this.N
		a.Op, a.Value = AssignAdd, []byte(sign+"1")
		a.Path, _, err = u.target(false)
		return a, err
	}
	if u.tok.kind == tokenWord && u.tok.text == "delete" {
		u.advance()
		a.Op = AssignDelete
		if a.Path, _, err = u.target(false); err == nil && a.Path.At(a.Path.Len()-1).Kind == jsonpath.Index {
			err = u.fail(start.offset, "delete leaves a hole in an array, which JSON has not").hinting("pop() and shift() remove an element; edits of Query.Patch remove any")
		}
		return a, err
	}

	var method string
	if a.Path, method, err = u.target(true); err != nil {
		return a, err
	}
	if method != "" {
		return a, u.call(&a, method)
	}
	if !u.newLine() {
		if sign, found := u.step(); found {
			a.Op, a.Value = AssignAdd, []byte(sign+"1")
			return a, nil
		}
	}
	switch {
	case u.acceptSymbol("="):
		return a, u.assign(&a)
	case u.pair("+", "="):
		return a, u.add(&a, false)
	case u.pair("-", "="):
		return a, u.add(&a, true)
	}
	err = u.unexpected(`"=", "+=", "-=", "++", "--" or a call of push(), pop() or shift()`)
	if syntax, ok := err.(*SyntaxError); ok && u.tok.kind != tokenBad {
		syntax.Hint = refusedOperators[u.tok.text]
	}
	return a, err
}

// advance reads the next token, and keeps where the last one ended.
func (u *updateParser) advance() {
	u.end = u.tok.end
	u.parser.advance()
}

func (u *updateParser) acceptSymbol(symbol string) bool {
	if !u.tok.isSymbol(symbol) {
		return false
	}
	u.advance()
	return true
}

func (u *updateParser) expectSymbol(symbol, where string) error {
	if u.acceptSymbol(symbol) {
		return nil
	}
	return u.unexpected(strconv.Quote(symbol) + " " + where)
}

// pair accepts two symbols that stand together, such as + and = in +=.
func (u *updateParser) pair(first, second string) bool {
	next := u.peek()
	if !u.tok.isSymbol(first) || !next.isSymbol(second) || next.offset != u.tok.end {
		return false
	}
	u.advance()
	u.advance()
	return true
}

// step accepts ++ or --, and returns the sign of the 1 to add.
func (u *updateParser) step() (sign string, found bool) {
	if u.acceptSymbol("--") {
		return "-", true
	}
	return "", u.pair("+", "+")
}

// refusedOperators say what to write instead of an operator of JavaScript.
var refusedOperators = map[string]string{
	"==": "a condition stands in where; = assigns",
	"*":  "statements do not calculate: compute the value, and pass it as a parameter",
	"/":  "statements do not calculate: compute the value, and pass it as a parameter",
	"%":  "statements do not calculate: compute the value, and pass it as a parameter",
	"||": "a condition stands in where: write one update for each case",
	"&&": "a condition stands in where: write one update for each case",
	"?":  "a condition stands in where: write one update for each case",
}

// refusedWords say what to write instead of a word that begins a statement of
// JavaScript, or a function that RavenDB has in its patches.
var refusedWords = map[string]string{
	"if": "a condition stands in where: write one update for each case", "else": "a condition stands in where: write one update for each case",
	"switch": "a condition stands in where: write one update for each case",
	"for":    "there are no loops: an edit with [], such as jay.Set(\"Lines[].Qty\", 1), changes every element",
	"while":  "there are no loops: an edit with [], such as jay.Set(\"Lines[].Qty\", 1), changes every element",
	"var":    "there are no variables: write the value where it is used, or pass it as a parameter",
	"let":    "there are no variables: write the value where it is used, or pass it as a parameter",
	"const":  "there are no variables: write the value where it is used, or pass it as a parameter",
	"return": "statements return nothing", "throw": "statements throw nothing: a condition stands in where",
	"try": "statements throw nothing", "function": "there are no functions",
	"put": "put() is not there: write documents in Go, in a transaction", "del": "del() is not there: Query.Delete deletes what a query finds",
	"load": "load() is not there: read documents in Go, in a transaction", "id": "id() is not there: pass the value as a parameter",
	"args": "a parameter is written $name", "output": "output() is not there", "getmetadata": "the metadata cannot be changed",
}

// refusedMethods say what to write instead of a method of JavaScript.
var refusedMethods = map[string]string{
	"unshift": "only push() adds elements", "splice": "pop() and shift() remove elements; edits of Query.Patch remove any",
	"filter": "an edit with jay.Remove or jay.RemoveWhere removes elements", "map": "there are no functions", "foreach": "there are no functions",
	"sort": "sort in Go", "concat": "push() takes several values",
}

// target = ( "this" | alias ) { "." name | "[" ( text | digits ) "]" } . With calls, a
// name in front of a parenthesis is a method, and not a part of the path.
func (u *updateParser) target(calls bool) (path jsonpath.Path, method string, err error) {
	start := u.tok
	if start.kind != tokenWord || start.text != "this" && (u.alias == "" || start.text != u.alias) {
		err := u.unexpected("this")
		if syntax, ok := err.(*SyntaxError); ok && start.kind == tokenWord {
			syntax.Hint = refusedWords[strings.ToLower(start.text)]
			if syntax.Hint == "" {
				syntax.Hint = "the document is this: this." + start.text
			}
		}
		return path, "", err
	}
	u.advance()
	var steps []jsonpath.Step
	for {
		switch {
		case u.tok.isSymbol("."):
			u.advance()
			name := u.tok
			if name.kind != tokenWord || strings.HasPrefix(name.text, "@") {
				return path, "", u.unexpected(`a name behind "."; other names stand in brackets and quotes, as in this['a b']`)
			}
			if u.peek().isSymbol("(") {
				if !calls || len(steps) == 0 {
					return path, "", u.noMethod(name)
				}
				u.advance()
				path, err = u.pathOf(start, steps)
				return path, name.text, err
			}
			steps = append(steps, jsonpath.Step{Kind: jsonpath.Member, Name: name.text})
			u.advance()
		case u.tok.isSymbol("["):
			step, err := u.bracket()
			if err != nil {
				return path, "", err
			}
			steps = append(steps, step)
		case len(steps) == 0:
			return path, "", u.fail(start.offset, "the document as a whole cannot be changed").expecting("a member of it, such as this.Small")
		default:
			path, err = u.pathOf(start, steps)
			return path, "", err
		}
		if err := u.checkStep(start, steps); err != nil {
			return path, "", err
		}
	}
}

// bracket = "[" ( text | digits ) "]" .
func (u *updateParser) bracket() (s jsonpath.Step, err error) {
	u.advance()
	at := u.tok
	switch at.kind {
	case tokenText:
		if err := u.checkText(at); err != nil {
			return s, err
		}
		s = jsonpath.Step{Kind: jsonpath.Member, Name: at.text}
	case tokenNumber:
		index, err := strconv.ParseUint(at.text, 10, 64)
		if err != nil || index > jsonpath.MaxIndex {
			return s, u.fail(at.offset, "unexpected %s", at).expecting("an element's number from 0 to " + strconv.Itoa(jsonpath.MaxIndex))
		}
		s = jsonpath.Step{Kind: jsonpath.Index, Index: int(index)}
	default:
		err := u.unexpected("the number of an element or a name in quotes behind [")
		if syntax, ok := err.(*SyntaxError); ok && u.tok.isSymbol("]") {
			syntax.Hint = refusedWords["for"]
		}
		return s, err
	}
	u.advance()
	return s, u.expectSymbol("]", "behind "+at.String())
}

// checkStep refuses what no path of a document can have.
func (u *updateParser) checkStep(start token, steps []jsonpath.Step) error {
	last := steps[len(steps)-1]
	switch {
	case len(steps) > jsonpath.MaxSteps:
		return u.fail(start.offset, "the path is too long: %d steps are the most", jsonpath.MaxSteps)
	case len(steps) == 1 && last.Kind == jsonpath.Index:
		return u.fail(start.offset, "the document is an object, and has no elements")
	case len(steps) == 1 && last.Name == metadataMember:
		return u.fail(start.offset, "@metadata is not a part of the body, and cannot be changed").hinting("DB.RenameCollection changes the collection of all documents")
	case last.Kind == jsonpath.Member && last.Name == protoMember:
		return u.fail(start.offset, "%s is no member in JavaScript", protoMember)
	}
	return nil
}

// protoMember is the name of what JavaScript takes for an object's prototype.
const protoMember = "__proto__"

// noMethod returns the error for a call that is not there.
func (u *updateParser) noMethod(name token) error {
	return u.fail(name.offset, "there is no function %s() here", name.text).expecting("push(), pop() or shift() of an array").
		hinting(refusedMethods[strings.ToLower(name.text)])
}

// call parses the arguments of a method of an array.
func (u *updateParser) call(a *Assignment, method string) error {
	name := token{text: method, offset: u.end - len(method)}
	switch method {
	case "push":
		a.Op = AssignPush
	case "pop":
		a.Op = AssignPop
	case "shift":
		a.Op = AssignShift
	default:
		return u.noMethod(name)
	}
	u.advance() // the parenthesis
	if a.Op != AssignPush {
		return u.expectSymbol(")", "behind "+method+"(")
	}
	var err error
	a.Value, err = u.elements(nil, a, ")")
	return err
}

// assign parses what is behind =.
func (u *updateParser) assign(a *Assignment) (err error) {
	if u.tok.kind == tokenWord && (u.tok.text == "this" || u.alias != "" && u.tok.text == u.alias) {
		return u.copy(a)
	}
	a.Op = AssignValue
	a.Value, err = u.value(nil, a)
	return err
}

// copy parses a path behind =.
func (u *updateParser) copy(a *Assignment) (err error) {
	start := u.tok
	a.Op = AssignPath
	if a.From, _, err = u.target(false); err != nil {
		return err
	}
	last := stepName(a.Path.At(a.Path.Len() - 1))
	switch {
	case last == "-" || strings.Trim(last, "0123456789") == "": // of an array, perhaps
		return u.fail(start.offset, "an element cannot be a copy of another value").hinting("pass the value as a parameter, or copy it to a member")
	case leadsInto(a.Path, a.From):
		return u.fail(start.offset, "a value cannot become a part of itself")
	}
	u.aliases = append(u.aliases, alias{spot{path: a.Path}, spot{path: a.From}, u.lex.text[start.offset:u.end]})
	return nil
}

// add parses the number behind += or -=.
func (u *updateParser) add(a *Assignment, negative bool) error {
	at := u.tok
	a.Op = AssignAdd
	if at.kind == tokenWord && (at.text == "this" || at.text == u.alias) || at.kind == tokenText {
		return u.fail(at.offset, "only a number or a parameter can be added").hinting("text is not joined, nor are fields added: pass the value as a parameter")
	}
	raw, err := u.value(nil, a)
	if err != nil {
		return err
	}
	if kindOf(raw) != KindNumber {
		return u.fail(at.offset, "only a number can be added, and %s is none", at)
	}
	if a.Value = raw; negative {
		if a.Value = bytes.TrimPrefix(raw, []byte("-")); len(a.Value) == len(raw) {
			a.Value = append([]byte("-"), raw...)
		}
	}
	return nil
}

// value = text | number | "true" | "false" | "null" | parameter | array | object . It is
// appended as JSON. It is part of the statement a, whose path is known.
func (u *updateParser) value(dst []byte, a *Assignment) ([]byte, error) {
	at := u.tok
	if u.literals++; u.literals > MaxUpdateValues {
		return nil, u.fail(at.offset, "too many values: %d are the most", MaxUpdateValues)
	}
	switch {
	case at.kind == tokenParameter:
		return u.parameterValue(dst, a)
	case at.isSymbol("["):
		u.advance()
		return u.elements(dst, a, "]")
	case at.isSymbol("{"):
		return u.object(dst, a)
	case at.kind == tokenText:
		if err := u.checkText(at); err != nil {
			return nil, err
		}
		dst = TextValue(at.text).AppendJSON(dst)
	case at.kind == tokenNumber:
		if v := ValueOf([]byte(at.text)); checkNumber(v) != nil {
			return nil, u.fail(at.offset, "%s is beyond what a number can be", at)
		}
		dst = append(dst, at.text...)
	case at.kind == tokenWord && slices.Contains([]string{"true", "false", "null"}, at.text):
		dst = append(dst, at.text...)
	default:
		return nil, u.notJSON()
	}
	u.advance()
	return dst, nil
}

// notJSON returns the error for a token in place of a value.
func (u *updateParser) notJSON() error {
	err := u.unexpected("a text, a number, true, false, null, [ ], { } or a parameter")
	syntax, ok := err.(*SyntaxError)
	if !ok || u.tok.kind == tokenBad {
		return err
	}
	switch word := u.tok.text; {
	case word == "undefined":
		syntax.Hint = "delete removes a member: delete this.Old"
	case word == "NaN", word == "Infinity":
		syntax.Hint = "JSON has no such number"
	case word == "this", word == u.alias && u.tok.kind == tokenWord:
		syntax.Hint = "a path stands alone behind =: pass the value as a parameter"
	case word == "new", word == "Date":
		syntax.Hint = "pass the time as a parameter"
	case strings.EqualFold(word, "true"), strings.EqualFold(word, "false"), strings.EqualFold(word, "null"):
		syntax.Hint = "JavaScript has them in lower case"
	case u.tok.kind == tokenWord:
		syntax.Hint = "text stands in quotes, and a field is this." + word
	default:
		syntax.Hint = "statements do not calculate: compute the value, and pass it as a parameter"
	}
	return err
}

// elements parses values and commas up to the end symbol, and appends them as an array.
func (u *updateParser) elements(dst []byte, a *Assignment, end string) ([]byte, error) {
	if err := u.nest(); err != nil {
		return nil, err
	}
	defer u.unnest()
	dst = append(dst, '[')
	for first := true; !u.tok.isSymbol(end); first = false {
		if !first {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = u.value(dst, a); err != nil {
			return nil, err
		}
		if !u.acceptSymbol(",") {
			break
		}
	}
	return append(dst, ']'), u.expectSymbol(end, "behind the values")
}

// object = "{" [ name ":" value { "," name ":" value } ] "}" .
func (u *updateParser) object(dst []byte, a *Assignment) ([]byte, error) {
	if err := u.nest(); err != nil {
		return nil, err
	}
	defer u.unnest()
	u.advance()
	dst = append(dst, '{')
	names := make(map[string]bool)
	for !u.tok.isSymbol("}") {
		name := u.tok
		switch {
		case name.kind == tokenText:
			if err := u.checkText(name); err != nil {
				return nil, err
			}
		case name.kind != tokenWord || strings.HasPrefix(name.text, "@"):
			return nil, u.unexpected("the name of a member")
		}
		if names[name.text] || name.text == protoMember {
			return nil, u.fail(name.offset, "the member %s cannot be there, or not twice", name)
		}
		if len(names) > 0 {
			dst = append(dst, ',')
		}
		names[name.text] = true
		u.advance()
		if err := u.expectSymbol(":", "behind the name of a member"); err != nil {
			return nil, err
		}
		dst = append(TextValue(name.text).AppendJSON(dst), ':')
		var err error
		if dst, err = u.value(dst, a); err != nil {
			return nil, err
		}
		if !u.acceptSymbol(",") {
			break
		}
	}
	return append(dst, '}'), u.expectSymbol("}", "behind the members")
}

func (u *updateParser) nest() error {
	if u.nested++; u.nested > MaxTextDepth {
		return u.fail(u.tok.offset, "values are nested too deep: %d levels are the most", MaxTextDepth)
	}
	return nil
}

func (u *updateParser) unnest() { u.nested-- }

// parameterValue appends the value of a parameter as JSON.
func (u *updateParser) parameterValue(dst []byte, a *Assignment) ([]byte, error) {
	at := u.tok
	value, err := u.parser.parameter()
	if err != nil {
		return nil, err
	}
	u.end = at.end
	var raw []byte
	switch v := value.(type) {
	case Value:
		raw = v.Raw()
	case string:
		var text Value
		text, err = textValue(v)
		raw = text.Raw()
	default:
		raw, err = instant.Marshal(value)
	}
	if err == nil && kindOf(raw) == KindMissing {
		err = ErrValue
	}
	if err != nil {
		return nil, u.fail(at.offset, "%s is not JSON: %v", at, err).because(err)
	}
	if u.bytes += len(raw); u.bytes > MaxUpdateBytes {
		return nil, u.fail(at.offset, "the parameters are too large: %d bytes of JSON are the most, and one counts wherever it stands", MaxUpdateBytes)
	}
	if k := kindOf(raw); k == KindObject || k == KindArray {
		if err := u.noteUse(at, a); err != nil {
			return nil, err
		}
	}
	return append(dst, raw...), nil
}

// noteUse notes a parameter that is an object or an array: in JavaScript it is one value
// at all places, and none of them may be changed before it is used again, or at the same
// time.
func (u *updateParser) noteUse(at token, a *Assignment) error {
	uses := u.uses[at.text]
	here := parameterUse{spot: spot{a.Path, u.nested > 0}, statement: len(u.assignments)}
	for i := range uses {
		other := &uses[i]
		if other.statement == here.statement {
			if other.twice {
				return nil // the pairs of places are noted
			}
			other.twice = true
		}
		for _, later := range u.assignments[min(other.statement+1, len(u.assignments)):] {
			if other.holds(later.changed()) {
				return u.shared(at.offset, "$"+at.text)
			}
		}
		if other.statement < here.statement && other.holds(a.changed()) {
			return u.shared(at.offset, "$"+at.text)
		}
		if len(u.aliases) == maxAliases {
			return u.fail(at.offset, "$%s and others that are objects or arrays are used too often: make updates of their own", at.text)
		}
		u.aliases = append(u.aliases, alias{here.spot, other.spot, "$" + at.text})
	}
	if n := len(uses); n == 0 || uses[n-1].statement < here.statement {
		u.uses[at.text] = append(uses, here)
	}
	return nil
}

// checkText refuses a text that JavaScript would read in another way.
func (u *updateParser) checkText(at token) error {
	source := u.lex.text[at.offset:at.end]
	quote, inside := source[:1], source[1:len(source)-1]
	if strings.ContainsAny(inside, "\n\r") {
		return u.fail(at.offset, "a text in JavaScript has one line").hinting(`write \n for a new line`)
	}
	for i := 0; i < len(inside); i++ {
		switch {
		case inside[i] == '\\':
			i++
		case inside[i:i+1] == quote:
			return u.fail(at.offset, "a quote in a text is not doubled in JavaScript").hinting(`write \` + quote)
		}
	}
	return nil
}

// shared returns the error for a statement that changes a value which is at another
// place as well in JavaScript, where an assignment does not copy objects and arrays.
func (u *updateParser) shared(offset int, text string) error {
	return u.fail(offset, "in JavaScript this would also change what %.60s was assigned to", text).
		hinting("change it before it is assigned, or in another update")
}

// changed returns the object or array that the assignment changes.
func (a *Assignment) changed() jsonpath.Path {
	switch a.Op {
	case AssignPush, AssignPop, AssignShift:
		return a.Path
	}
	return a.Path.Prefix(a.Path.Len() - 1)
}

// leadsInto reports whether a path is that of another one, or of something inside it. An element and a
// member of its number are the same in JavaScript.
func leadsInto(inner, outer jsonpath.Path) bool {
	if inner.Len() < outer.Len() {
		return false
	}
	for i := range outer.Len() {
		if stepName(inner.At(i)) != stepName(outer.At(i)) {
			return false
		}
	}
	return true
}

func stepName(s jsonpath.Step) string {
	if s.Kind == jsonpath.Index {
		return strconv.Itoa(s.Index)
	}
	return s.Name
}
