package algebra

import (
	"slices"
	"strconv"
	"strings"
)

func (t *translator) unaryOf(n *node, s *scope) (value, error) {
	if n.text == "!" {
		v, err := t.eval(n.kids[0], s)
		if err != nil {
			return v, err
		}
		c, err := t.negated(v)
		return value{shape: isCondition, kind: booleanKind, cond: c}, err
	}
	v, err := t.evalNumber(n.kids[0], s)
	switch {
	case err != nil:
		return v, err
	case v.constant && n.text == "-" && !strings.HasPrefix(v.text, "-"):
		v.text, v.raw = "-"+v.text, "-"+v.raw
		return v, nil
	case n.text == "+":
		if !t.script && v.kind == anyKind {
			return v, nil
		}
		return value{text: v.in(orderSum) + " + 0", order: orderSum, kind: v.kind, maybe: v.maybe}, nil
	}
	return value{text: "0 - " + v.in(orderProduct), order: orderSum, kind: v.kind, maybe: v.maybe}, nil
}

// negated returns the condition that v is false. In C# what is missing is neither true nor false.
func (t *translator) negated(v value) (condition, error) {
	if v.shape == isReference && !t.script {
		o, err := t.operand(v)
		return one("%s = false", o.text), err
	}
	c, err := t.condition(v)
	return not(c), err
}

// evalNumber evaluates an operand of arithmetic.
func (t *translator) evalNumber(n *node, s *scope) (value, error) {
	v, err := t.eval(n, s)
	if err != nil {
		return v, err
	}
	return t.asNumber(v)
}

// asNumber returns a value as an operand of arithmetic. In JavaScript what is null, or missing, counts as 0.
func (t *translator) asNumber(v value) (value, error) {
	v, err := t.operand(v)
	switch {
	case err != nil:
		return v, err
	case v.kind == unknownKind:
		return v, t.fail(v.at, "what kind of value this is is not known: cast it, or compute with it in a map")
	case v.kind == textKind || v.kind == booleanKind || v.kind == instantKind:
		return v, t.fail(v.at, "arithmetic takes numbers, and this is %s", kindNames[v.kind])
	case v.kind == nullKind:
		return v, t.fail(v.at, "arithmetic takes numbers, and this is null")
	case t.script && v.maybe:
		return value{at: v.at, text: "coalesce(" + v.text + ", 0)", kind: v.kind}, nil
	}
	return v, nil
}

var kindNames = map[kindOfValue]string{textKind: "a text", booleanKind: "true or false", instantKind: "a date"}

func (t *translator) binaryOf(n *node, s *scope) (value, error) {
	switch n.text {
	case "&&", "||":
		return t.both(n, s)
	case "??":
		return t.firstOf(n, s)
	case "==", "!=", "===", "!==", "<", ">", "<=", ">=":
		a, err := t.eval(n.kids[0], s)
		if err != nil {
			return a, err
		}
		b, err := t.eval(n.kids[1], s)
		if err != nil {
			return b, err
		}
		c, err := t.compare(n, n.text, a, b)
		return value{shape: isCondition, kind: booleanKind, cond: c}, err
	case "+":
		a, err := t.eval(n.kids[0], s)
		if err != nil {
			return a, err
		}
		b, err := t.eval(n.kids[1], s)
		if err != nil {
			return b, err
		}
		return t.plus(n, a, b)
	}
	a, err := t.evalNumber(n.kids[0], s)
	if err != nil {
		return a, err
	}
	b, err := t.evalNumber(n.kids[1], s)
	if err != nil {
		return b, err
	}
	return t.arithmetic(n, n.text, a, b)
}

// plus adds numbers and joins texts. A text that is known makes a text of the other operand.
func (t *translator) plus(n *node, a, b value) (value, error) {
	a, err := t.operand(a)
	if err != nil {
		return a, err
	}
	if b, err = t.operand(b); err != nil {
		return b, err
	}
	if a.kind == textKind || b.kind == textKind {
		return joined(append(t.partsOf(a), t.partsOf(b)...)), nil
	}
	if a, err = t.asNumber(a); err != nil {
		return a, err
	}
	if b, err = t.asNumber(b); err != nil {
		return b, err
	}
	v, err := t.arithmetic(n, "+", a, b)
	if a.kind == anyKind && b.kind == anyKind { // two texts are joined
		v.kind = anyKind
	}
	return v, err
}

func joined(parts []string) value {
	if len(parts) == 1 {
		parts = append(parts, "''")
	}
	v := call("concat", textKind, false, parts...)
	v.parts = parts
	return v
}

// partsOf returns the operands that a value is in a text that is joined: null is nothing in C#, and a word in
// JavaScript.
func (t *translator) partsOf(v value) []string {
	switch {
	case v.parts != nil:
		return v.parts
	case v.kind == nullKind && t.script:
		return []string{"'null'"}
	case v.kind == booleanKind && !t.script && v.constant:
		return []string{map[string]string{"true": "'True'", "false": "'False'"}[v.raw]}
	case v.kind == booleanKind && !t.script:
		return []string{"if(" + v.in(orderOne) + " = true, 'True', 'False')"}
	case t.script && v.maybe:
		return []string{"coalesce(" + v.text + ", 'null')"}
	}
	return []string{v.text}
}

func isWhole(k kindOfValue) bool { return k == integerKind }

// arithmetic returns an operation on numbers. A quotient of integers is one in C#.
func (t *translator) arithmetic(n *node, op string, a, b value) (value, error) {
	order := orderProduct
	if op == "+" || op == "-" {
		order = orderSum
	}
	kind := numberKind
	if !t.script {
		switch {
		case isWhole(a.kind) && isWhole(b.kind):
			kind = integerKind
		case a.kind == decimalKind || b.kind == decimalKind:
			kind = decimalKind
		case a.kind == anyKind || b.kind == anyKind:
			if a.kind == anyKind && b.kind != numberKind || b.kind == anyKind && a.kind != numberKind {
				kind = anyKind
			}
		}
	}
	v := value{at: n.at, order: order, kind: kind, maybe: a.maybe || b.maybe}
	if op == "/" && !t.script && kind == integerKind {
		v.text = "(" + a.in(orderSum) + " - " + modulo(a, b) + ") / " + b.in(orderOne)
		return v, nil
	}
	v.text = a.in(order) + " " + op + " " + b.in(order+1)
	if op == "/" && !t.script && kind == anyKind { // integers if the document has integers
		if t.reducing && t.entry == 0 {
			return v, nil
		}
		both := whole(a)
		both = and(both, whole(b))
		v.text = "if(" + both.in(orderOr) + ", (" + a.in(orderSum) + " - " + modulo(a, b) + ") / " + b.in(orderOne) + ", " + v.text + ")"
		v.order = 0
	}
	return v, nil
}

func modulo(a, b value) string { return a.in(orderProduct) + " % " + b.in(orderOne) }

// whole returns the condition that a number is an integer.
func whole(v value) condition {
	if isWhole(v.kind) {
		return condition{}
	}
	return one("%s %% 1 = 0", v.in(orderProduct))
}

// both returns && and ||. In JavaScript they are one of their operands, which is seen where the result is no condition.
func (t *translator) both(n *node, s *scope) (value, error) {
	a, err := t.eval(n.kids[0], s)
	if err != nil {
		return a, err
	}
	b, err := t.eval(n.kids[1], s)
	if err != nil {
		return b, err
	}
	if t.reducing && n.text == "||" && a.shape == isReference && b.constant && b.raw == "0" { // of a sum
		return a, nil
	}
	conditions := a.kind == booleanKind && b.kind == booleanKind || !t.script
	if conditions {
		return t.logical(n.text, a, b)
	}
	c, err := t.condition(a)
	if err != nil {
		return a, err
	}
	if b.shape == isObject || b.shape == isRows {
		if n.text == "&&" {
			return t.chosen(n.at, c, b, value{shape: isNothing})
		}
		return b, t.fail(n.at, "|| of an object is not there")
	}
	if a.isLoaded() && n.text == "&&" { // without the document it is null
		a = value{at: a.at, text: "null", kind: nullKind, constant: true, maybe: true, cond: c}
	}
	x, err := t.operand(a)
	if err != nil {
		return a, err
	}
	y, err := t.operand(b)
	if err != nil {
		return b, err
	}
	if n.text == "&&" {
		x, y = y, x
	}
	v := value{text: "if(" + c.in(orderOr) + ", " + x.text + ", " + y.text + ")", kind: common(x, y), maybe: y.maybe || n.text == "&&" && x.maybe}
	// As a condition it is not computed first: the result is true where its operands are.
	l, err := t.logical(n.text, a, b)
	v.cond = l.cond
	return v, err
}

func (t *translator) logical(op string, a, b value) (value, error) {
	x, err := t.condition(a)
	if err != nil {
		return a, err
	}
	y, err := t.condition(b)
	if err != nil {
		return b, err
	}
	v := value{shape: isCondition, kind: booleanKind, cond: and(x, y)}
	if op == "||" {
		v.cond = or(x, y)
	}
	return v, nil
}

// common returns the kind that two values have.
func common(a, b value) kindOfValue {
	switch {
	case a.kind == b.kind:
		return a.kind
	case a.kind == unknownKind, b.kind == unknownKind:
		return unknownKind
	case a.kind == nullKind:
		return b.kind
	case b.kind == nullKind:
		return a.kind
	}
	return anyKind
}

// firstOf returns a ?? b.
func (t *translator) firstOf(n *node, s *scope) (value, error) {
	a, err := t.eval(n.kids[0], s)
	if err == nil {
		a, err = t.operand(a)
	}
	if err != nil {
		return a, err
	}
	b, err := t.eval(n.kids[1], s)
	if err == nil {
		b, err = t.operand(b)
	}
	if err != nil {
		return b, err
	}
	return call("coalesce", common(a, b), b.maybe, a.text, b.text), nil
}

// choiceOf returns c ? a : b.
func (t *translator) choiceOf(n *node, s *scope) (value, error) {
	of, err := t.eval(n.kids[0], s)
	if err != nil {
		return of, err
	}
	c, err := t.condition(of)
	if err != nil {
		return of, err
	}
	yes, err := t.eval(n.kids[1], s)
	if err != nil {
		return yes, err
	}
	no, err := t.eval(n.kids[2], s)
	if err != nil {
		return no, err
	}
	return t.chosen(n.at, c, yes, no)
}

// chosen returns one of two values, by a condition.
func (t *translator) chosen(at int, c condition, yes, no value) (value, error) {
	entries := func(v value) bool { return v.shape == isObject || v.shape == isRows }
	if entries(yes) || entries(no) || yes.shape == isNothing && no.shape == isNothing {
		return t.chosenEntry(at, c, yes, no)
	}
	if yes.shape == isCondition && no.shape == isCondition {
		return value{shape: isCondition, kind: booleanKind, cond: or(and(c, yes.cond), and(not(c), no.cond))}, nil
	}
	if yes.shape == isPlace || no.shape == isPlace {
		return places{t}.chosen(at, c, yes, no)
	}
	a, err := t.operand(yes)
	if err != nil {
		return a, err
	}
	b, err := t.operand(no)
	if err != nil {
		return b, err
	}
	return value{at: at, text: "if(" + c.in(orderOr) + ", " + a.text + ", " + b.text + ")", kind: common(a, b), maybe: a.maybe || b.maybe}, nil
}

// condition returns a value as a condition.
func (t *translator) condition(v value) (condition, error) {
	switch {
	case v.shape == isCondition:
		return v.cond, nil
	case v.shape == isScalar && v.cond.text != "":
		return v.cond, nil
	case v.shape == isScalar && v.constant:
		truth := v.raw == "true" && v.kind == booleanKind
		if t.script && v.kind != booleanKind {
			n, err := strconv.ParseFloat(v.raw, 64)
			truth = v.kind == textKind && v.raw != "" || v.kind == numberKind && (err != nil || n != 0)
		}
		return condition{never: !truth}, nil
	case v.shape == isReference && len(v.path) == 0 && v.root != ofElement && t.script:
		return condition{}, nil
	case v.isLoaded() && t.script:
		return v.exists(), nil
	case v.shape == isMeasure && t.script:
		return t.compare(&node{at: v.at}, ">", v, value{at: v.at, text: "0", raw: "0", kind: numberKind, constant: true})
	}
	o, err := t.operand(v)
	if err != nil {
		return condition{}, err
	}
	if !t.script || o.kind == booleanKind {
		if !slices.Contains([]kindOfValue{anyKind, booleanKind}, o.kind) || o.order > 0 {
			return condition{}, t.fail(v.at, "a condition is true or false")
		}
		return one("%s = true", o.text), nil
	}
	if isNumber(o.kind) && !o.maybe {
		return one("%s != 0", o.text), nil
	}
	if o.kind == textKind && !o.maybe {
		return one("exact(%s != '')", o.text), nil
	}
	c := condition{text: "exists(" + o.text + ") and not exact(" + o.text + " in (null, false, 0, ''))", order: orderAnd}
	if v.shape == isReference && (len(v.path) == 0 || v.path[0].name != "@metadata") {
		c = or(one("type(%s) = 'array'", o.text), c)
	}
	return c, nil
}

func isNumber(k kindOfValue) bool { return k == numberKind || k == integerKind || k == decimalKind }

// absent returns the condition that a value is missing or null.
func (t *translator) absent(v value) condition {
	o, err := t.operand(v)
	switch {
	case err != nil || o.kind == nullKind:
		return condition{}
	case !o.maybe:
		return condition{never: true}
	}
	return condition{text: "not exists(" + o.text + ") or " + o.text + " = null", order: orderOr}
}

// flipped has the comparisons with the operands in the other order.
var flipped = map[string]string{"<": ">", ">": "<", "<=": ">=", ">=": "<="}

// compare returns a comparison.
func (t *translator) compare(n *node, op string, a, b value) (condition, error) {
	if a.shape == isScalar && a.constant {
		if b.shape == isScalar && b.constant {
			return condition{}, t.fail(n.at, "two constants are compared")
		}
		if other := flipped[op]; other != "" {
			op = other
		}
		a, b = b, a
	}
	if a.shape == isMeasure || b.shape == isMeasure {
		return t.compareMeasure(n, op, a, b)
	}
	if b.kind == nullKind && b.constant {
		return t.compareNull(n, op, a, b)
	}
	negative := op == "!=" || op == "!=="
	if negative || op == "==" || op == "===" {
		c, err := t.equal(n, op, a, b)
		if negative {
			c = not(c)
		}
		return c, err
	}
	x, err := t.operand(a)
	if err != nil {
		return condition{}, err
	}
	y, err := t.operand(b)
	if err != nil {
		return condition{}, err
	}
	if x.kind == booleanKind || y.kind == booleanKind {
		return condition{}, t.fail(n.at, "true and false are not below or above another")
	}
	if t.script && x.kind != textKind && y.kind != textKind { // what is null counts as 0
		if x.maybe && !(y.constant && !zeroIs(op, y.raw)) {
			x.text = "coalesce(" + x.text + ", 0)"
		}
		if y.maybe {
			y.text = "coalesce(" + y.text + ", 0)"
		}
	}
	return related(a, x, y, op), nil
}

// zeroIs reports whether 0 is below or above a number, as an operator says.
func zeroIs(op, number string) bool {
	n, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil:
		return true
	case op == "<":
		return 0 < n
	case op == "<=":
		return 0 <= n
	case op == ">":
		return 0 > n
	}
	return 0 >= n
}

// related writes a comparison.
func related(a, x, y value, op string) condition {
	left := x.text
	if a.shape == isReference && y.kind == instantKind && y.constant {
		left = asUTC(a)
	}
	if isNumber(y.kind) {
		return one("%s %s %s", left, op, y.text)
	}
	return one("exact(%s %s %s)", left, op, y.text)
}

// compareNull compares with null. What is missing is null.
func (t *translator) compareNull(n *node, op string, a, b value) (condition, error) {
	if t.script && b.raw == "undefined" && len(op) == 3 {
		return condition{}, t.fail(n.at, "what is missing is null: write %s null", op[:2])
	}
	if _, err := t.operand(a); err != nil && a.shape != isReference {
		return condition{}, err
	}
	if a.isLoaded() {
		switch op {
		case "==", "===":
			return not(a.exists()), nil
		case "!=", "!==":
			return a.exists(), nil
		}
	}
	if a.shape == isReference && len(a.path) == 0 && a.root == ofDocument {
		return condition{never: op == "==" || op == "==="}, nil
	}
	switch op {
	case "==", "===":
		return t.absent(a), nil
	case "!=", "!==":
		return not(t.absent(a)), nil
	}
	return condition{}, t.fail(n.at, "nothing is below or above null")
}

// equal returns a = b.
func (t *translator) equal(n *node, op string, a, b value) (condition, error) {
	if b.kind == booleanKind && b.constant && a.shape == isCondition {
		if b.raw == "false" {
			return not(a.cond), nil
		}
		return a.cond, nil
	}
	x, err := t.operand(a)
	if err != nil {
		return condition{}, err
	}
	y, err := t.operand(b)
	if err != nil {
		return condition{}, err
	}
	if t.script && len(op) == 2 && !(y.constant && y.kind == textKind && !looksNumeric(y.raw)) {
		return condition{}, t.fail(n.at, "%s converts its operands: write %s=", op, op)
	}
	same := related(a, x, y, "=")
	if x.maybe && y.maybe {
		same = or(same, and(t.absent(a), t.absent(b)))
	}
	return same, nil
}

// looksNumeric reports whether JavaScript may take a text for a number.
func looksNumeric(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || strings.ContainsAny(text[:1], "0123456789+-.I")
}

// compareMeasure compares a length or a count with a number.
func (t *translator) compareMeasure(n *node, op string, a, b value) (condition, error) {
	if b.shape != isScalar || !b.constant || !isNumber(b.kind) || strings.ContainsAny(b.raw, ".eE-") {
		return condition{}, t.fail(n.at, "a length is compared with a whole number, from 0")
	}
	if t.script && len(op) == 2 && (op == "==" || op == "!=") {
		return condition{}, t.fail(n.at, "%s converts its operands: write %s=", op, op)
	}
	path := a.pathText()
	if t.inner > 0 && a.root != ofInner {
		return condition{}, t.fail(n.at, "a condition on the elements of an array asks nothing of the document around it")
	}
	negative := op == "!=" || op == "!=="
	if negative || len(op) == 3 || op == "==" {
		op = "="
	}
	c := one("size(%s) %s %s", path, op, b.raw)
	if a.text == "Length" || a.text == "length" {
		c = or(c, and(one("type(%s) = 'string'", path), one("length(%s) %s %s", path, op, b.raw)))
	}
	if !a.called {
		member := pathText(a.root, append(a.path[:len(a.path):len(a.path)], step{name: a.text, index: -1}))
		c = or(c, and(one("type(%s) = 'object'", path), one("%s %s %s", member, op, b.raw)))
	} else if zero, _ := strconv.ParseFloat(b.raw, 64); op == "=" && zero == 0 || op != "=" && zeroIs(op, b.raw) {
		c = or(c, condition{text: "not exists(" + path + ") or " + path + " = null", order: orderOr}) // null has no elements
	}
	if negative {
		c = not(c)
	}
	return c, nil
}
