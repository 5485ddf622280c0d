package algebra

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	noGenerate = "it is not there: CreateSpatialField makes a place"
	noOther    = "an entry is made of the document alone"
	noModel    = "vectors that a model of the server has made are not there"
	noClock    = "an entry is made of the document, and not of the time"
)

// refused has the functions of definitions that are no expressions of the document, and why.
var refused = map[string]string{
	"LoadCompareExchangeValue": noOther + ": compare-exchange values are not", "cmpxchg": noOther + ": compare-exchange values are not",
	"SpatialGenerate": noGenerate, "SpatialClustering": noGenerate,
	"this":           "the definition itself is no value",
	"AttachmentsFor": noOther + ": attachments are not", "attachmentsFor": noOther + ": attachments are not", "LoadAttachment": noOther, "LoadAttachments": noOther, "loadAttachment": noOther, "loadAttachments": noOther,
	"CounterNamesFor": noOther + ": counters are not", "counterNamesFor": noOther + ": counters are not", "TimeSeriesNamesFor": noOther, "timeSeriesNamesFor": noOther,
	"LoadVector": noModel, "loadVector": noModel,
	"Recurse": "a walk through a tree is not there", "recurse": "a walk through a tree is not there", "AsJson": "the document as a whole is no value", "AsDocument": "the document as a whole is no value",
	"TryConvert": "a conversion that depends on the value is not there", "boost": "boosts are for full text, which is not there",
	"Regex": "regular expressions are not there", "RegExp": "regular expressions are not there", "JSON": "JSON is not there",
	"DateTimeOffset": noClock, "DateOnly": noClock, "Guid": noOther, "Random": noOther, "Date": "new Date(x.member), and its getUTC functions, are there; others are not",
}

// call returns what a call gives.
func (t *translator) call(n *node, s *scope) (value, error) {
	f, args := n.kids[0], n.kids[1:]
	switch f.kind {
	case nodeName:
		if _, found := s.find(f.text); found {
			return value{}, t.fail(n.at, "%.100s is no function", f.text)
		}
		return t.global(n, f.text, args, s)
	case nodeMember:
	default:
		return value{}, t.fail(n.at, "this is no function")
	}
	if of := f.kids[0]; of.kind == nodeName {
		if _, found := s.find(of.text); !found {
			switch of.text {
			case "this": // the definition: this.LoadDocument(...)
				if !t.script {
					return t.global(n, f.text, args, s)
				}
			case "noTracking", "NoTracking":
				return value{}, t.fail(n.at, of.text+": "+noTracked, f.text)
			case "Math":
				return t.math(n, f.text, args, s)
			case "string", "String":
				return t.static(n, f.text, args, s)
			case "Enumerable", "DynamicEnumerable":
				if len(args) == 0 {
					return value{}, t.fail(n.at, "%s takes a list", f.text)
				}
				v, err := t.eval(args[0], s)
				if err != nil {
					return v, err
				}
				return t.method(n, v, f.text, args[1:], s)
			case "DateTime":
				if f.text == "Parse" && len(args) == 1 {
					return t.castOf(&node{kind: nodeCast, at: n.at, text: "instant", kids: args}, s)
				}
				return value{}, t.fail(n.at, "DateTime.%s is not there", f.text)
			case "Array":
				if t.reducing && f.text == "from" && len(args) == 1 {
					return t.eval(args[0], s)
				}
				return value{}, t.fail(n.at, "%s.%s is not there", of.text, f.text)
			case "Convert", "Object", "Number", "int", "decimal", "double", "long", "Int32", "Decimal":
				return value{}, t.fail(n.at, "%s.%s is not there", of.text, f.text)
			}
		}
	}
	v, err := t.eval(f.kids[0], s)
	if err != nil {
		return v, err
	}
	return t.method(&node{kind: nodeCall, at: f.at, kids: n.kids}, v, f.text, args, s)
}

// global calls a function that is of no value.
func (t *translator) global(n *node, name string, args []*node, s *scope) (value, error) {
	if reason := refused[name]; reason != "" {
		return value{}, t.fail(n.at, "%s: %s", name, reason)
	}
	if t.reducing && t.script && name == "groupBy" {
		of, err := t.name(&node{at: n.at, text: "results"}, nil)
		if err != nil {
			return of, err
		}
		return t.methodOfRows(n, of, name, args, s)
	}
	switch name {
	case "CreateSpatialField", "createSpatialField":
		return places{t}.made(n, name, args, s)
	case "CreateVector", "createVector":
		return vectors{t}.made(n, name, args, s)
	case "CreateField", "createField":
		return creating{t}.made(n, name, args, s)
	case "LoadDocument", "load":
		return loader{t}.loaded(n, name, args, s)
	case "id", "getMetadata", "metadataFor", "MetadataFor", "String":
	default:
		return value{}, t.fail(n.at, "the function %.100s is not there", name)
	}
	if len(args) != 1 {
		return value{}, t.fail(n.at, "%s takes one value", name)
	}
	v, err := t.eval(args[0], s)
	if err != nil {
		return v, err
	}
	if name == "String" {
		if v, err = t.operand(v); err != nil {
			return v, err
		}
		return joined(t.partsOf(v)), nil
	}
	if v.shape != isReference || v.root != ofDocument || len(v.path) > 0 || t.inner > 0 {
		return v, t.fail(n.at, "%s is of the document", name)
	}
	if name == "id" {
		return value{text: "id()", kind: textKind}, nil
	}
	return t.reference(v, step{name: "@metadata", index: -1})
}

// method calls a function of a value.
func (t *translator) method(n *node, of value, name string, args []*node, s *scope) (value, error) {
	if name == "Boost" || name == "boost" {
		return of, t.fail(n.at, "boosts are for full text, which is not there")
	}
	switch of.shape {
	case isGroups:
		return t.methodOfGroups(n, of, name, args, s)
	case isGroup:
		return t.methodOfGroup(n, of, name, args, s)
	case isRows:
		if t.reducing && !of.rows.source {
			return t.methodOfGroup(n, of, name, args, s)
		}
		return t.methodOfRows(n, of, name, args, s)
	case isReference:
		switch {
		case of.root == ofRow:
			return t.methodOfText(n, of, name, args, s)
		case len(of.path) == 1 && of.path[0].name == "@metadata" && name == "Value" && len(args) == 1 && args[0].kind == nodeText:
			return t.reference(of, step{name: args[0].text, index: -1})
		case len(of.path) == 0 && of.root == ofDocument:
			return of, t.fail(n.at, "the document has no function %.100s", name)
		case of.kind == instantKind:
			return t.methodOfInstant(n, of, name, args)
		}
		if v, found, err := t.methodOfArray(n, of, name, args, s); found {
			return v, err
		}
	case isScalar, isCondition, isMeasure:
	default:
		return of, t.fail(n.at, "this has no function %.100s", name)
	}
	return t.methodOfText(n, of, name, args, s)
}

// methodsOfDate are the parts of a Date that do not depend on the zone of the server.
var methodsOfDate = map[string]string{"getUTCFullYear": "datePart('year', %s)", "getUTCMonth": "datePart('month', %s) - 1", "getUTCDate": "datePart('day', %s)", "getUTCHours": "datePart('hour', %s)",
	"getUTCMinutes": "datePart('minute', %s)", "getUTCSeconds": "datePart('second', %s)", "getUTCMilliseconds": "datePart('millisecond', %s)", "getUTCDay": "datePart('weekday', %s) %% 7"}

func (t *translator) methodOfInstant(n *node, of value, name string, args []*node) (value, error) {
	format := methodsOfDate[name]
	if !t.script || format == "" || len(args) > 0 {
		reason := "is not there"
		if strings.HasPrefix(name, "get") && methodsOfDate["getUTC"+strings.TrimPrefix(name, "get")] != "" {
			reason = "depends on the zone of the server: getUTC" + strings.TrimPrefix(name, "get") + " does not"
		}
		return of, t.fail(n.at, "%.100s of a date %s", name, reason)
	}
	order := 0
	switch name {
	case "getUTCMonth":
		order = orderSum
	case "getUTCDay":
		order = orderProduct
	}
	return value{text: fmt.Sprintf(format, of.pathText()), order: order, kind: numberKind}, nil
}

// cases are the functions of texts without arguments.
var cases = map[string]string{"ToLower": "lower", "ToLowerInvariant": "lower", "ToUpper": "upper", "ToUpperInvariant": "upper", "Trim": "trim", "toLowerCase": "lower", "toUpperCase": "upper", "trim": "trim"}

// methodOfText calls a function of a text.
func (t *translator) methodOfText(n *node, of value, name string, args []*node, s *scope) (value, error) {
	v, err := t.operand(of)
	if err != nil {
		return v, err
	}
	var given []value
	for _, a := range args {
		arg, err := t.eval(a, s)
		if err == nil {
			arg, err = t.operand(arg)
		}
		if err != nil {
			return arg, err
		}
		given = append(given, arg)
	}
	if script := strings.ToLower(name[:1]) == name[:1]; script != t.script {
		return v, t.fail(n.at, "the function %.100s is not there", name)
	}
	if name == "ToString" || name == "toString" {
		return t.asText(n, of, v, given)
	}
	if v.kind != anyKind && v.kind != textKind && !(name == "Equals" && len(given) == 1) {
		return v, t.fail(n.at, "%.100s is of texts", name)
	}
	if f := cases[name]; f != "" && len(given) == 0 {
		return call(f, textKind, v.maybe, v.text), nil
	}
	switch name {
	case "StartsWith", "startsWith", "EndsWith", "endsWith", "Contains", "includes":
		if len(given) != 1 || !given[0].constant || given[0].kind != textKind {
			return v, t.fail(n.at, "%s takes a constant text", name)
		}
		f := map[string]string{"s": "startsWith", "e": "endsWith", "c": "contains", "i": "contains"}[strings.ToLower(name[:1])]
		return value{shape: isCondition, kind: booleanKind, cond: one("exact(%s(%s, %s))", f, v.text, given[0].text)}, nil
	case "Equals":
		if len(given) != 1 {
			return v, t.fail(n.at, "Equals takes one value: case always matters")
		}
		c, err := t.compare(n, "==", of, given[0])
		return value{shape: isCondition, kind: booleanKind, cond: c}, err
	case "Replace", "replaceAll":
		if len(given) == 2 && given[0].kind == textKind && given[0].raw != "" && given[1].kind == textKind && given[1].constant {
			return call("replace", textKind, v.maybe, v.text, given[0].text, given[1].text), nil
		}
		return v, t.fail(n.at, "%s takes two constant texts, of which the first is not empty", name)
	case "replace":
		return v, t.fail(n.at, "replace changes the first place only, which RQL does not: write replaceAll")
	case "concat":
		parts := t.partsOf(v)
		for _, g := range given {
			parts = append(parts, t.partsOf(g)...)
		}
		return joined(parts), nil
	case "Substring", "substring", "slice", "substr", "charAt":
		return t.substring(n, v, name, given)
	}
	return v, t.fail(n.at, "the function %.100s is not there", name)
}

// asText returns a value as a text.
func (t *translator) asText(n *node, of, v value, given []value) (value, error) {
	switch {
	case len(given) > 0:
		return v, t.fail(n.at, "a format is not there")
	case of.shape == isCondition && !t.script:
		return value{text: "if(" + of.cond.in(orderOr) + ", 'True', 'False')", kind: textKind}, nil
	case v.kind == textKind:
		return v, nil
	case v.kind == instantKind:
		return v, t.fail(n.at, "the text of a date depends on the culture: name the member")
	case v.kind == anyKind && !t.script && of.shape == isReference:
		return value{text: "if(type(" + v.text + ") = 'boolean', if(" + v.text + " = true, 'True', 'False'), text(" + v.text + "))", kind: textKind, maybe: true}, nil
	}
	return call("text", textKind, v.maybe, v.text), nil
}

// substring returns a part of a text, by constants.
func (t *translator) substring(n *node, v value, name string, given []value) (value, error) {
	var at []int
	for _, g := range given {
		i, err := strconv.Atoi(g.raw)
		if !g.constant || !isNumber(g.kind) || err != nil || i < 0 || i > 1<<20 {
			return v, t.fail(g.at, "%s takes constant numbers from 0", name)
		}
		at = append(at, i)
	}
	switch {
	case name == "charAt" && len(at) == 0:
		at = []int{0, 1}
	case name == "charAt" && len(at) == 1:
		at = append(at, 1)
	case len(at) == 0 || len(at) > 2:
		return v, t.fail(n.at, "%s takes one or two numbers", name)
	case len(at) == 2 && (name == "substring" || name == "slice"):
		if name == "substring" && at[1] < at[0] { // JavaScript swaps them
			at[0], at[1] = at[1], at[0]
		}
		at[1] = max(at[1]-at[0], 0)
	}
	operands := []string{v.text}
	for _, i := range at {
		operands = append(operands, strconv.Itoa(i))
	}
	return call("substring", textKind, v.maybe, operands...), nil
}

// static calls a function of string.
func (t *translator) static(n *node, name string, args []*node, s *scope) (value, error) {
	var given []value
	for _, a := range args {
		v, err := t.eval(a, s)
		if err != nil {
			return v, err
		}
		given = append(given, v)
	}
	switch {
	case name == "Join" && len(given) == 2 && given[1].shape == isRows && t.reducing && !given[1].rows.source:
		return gathering{t}.joined(n.at, given[1], given[0])
	case name == "Concat" && len(given) > 0:
		var parts []string
		for _, g := range given {
			o, err := t.operand(g)
			if err != nil {
				return o, err
			}
			parts = append(parts, t.partsOf(o)...)
		}
		return joined(parts), nil
	case (name == "IsNullOrEmpty" || name == "IsNullOrWhiteSpace") && len(given) == 1:
		o, err := t.operand(given[0])
		if err != nil {
			return o, err
		}
		text := o.text
		if name == "IsNullOrWhiteSpace" {
			text = "trim(" + text + ")"
		}
		return value{shape: isCondition, kind: booleanKind, cond: or(t.absent(given[0]), one("exact(%s = '')", text))}, nil
	case name == "Equals" && len(given) == 2:
		c, err := t.compare(n, "==", given[0], given[1])
		return value{shape: isCondition, kind: booleanKind, cond: c}, err
	}
	return value{}, t.fail(n.at, "string.%.100s is not there", name)
}

// math calls a function of Math.
func (t *translator) math(n *node, name string, args []*node, s *scope) (value, error) {
	if t.reducing {
		if t.script && (name == "max" || name == "min") && len(args) == 1 && args[0].kind == nodeSpread {
			of, err := t.eval(args[0].kids[0], s)
			if err != nil {
				return of, err
			}
			return t.aggregate(n, of, map[string]string{"max": "Max", "min": "Min"}[name], nil, s)
		}
	}
	if script := strings.ToLower(name[:1]) == name[:1]; script != t.script || len(args) == 0 {
		return value{}, t.fail(n.at, "Math.%.100s is not there", name)
	}
	v, err := t.evalNumber(args[0], s)
	if err != nil {
		return v, err
	}
	kind := v.kind
	if kind == anyKind && t.script {
		kind = numberKind
	}
	if f := map[string]string{"abs": "abs", "floor": "floor", "ceiling": "ceiling", "ceil": "ceiling"}[strings.ToLower(name)]; f != "" && len(args) == 1 {
		return call(f, kind, v.maybe, v.text), nil
	}
	switch {
	case name == "round" && len(args) == 1: // halves go up
		return call("floor", kind, v.maybe, v.in(orderSum)+" + 0.5"), nil
	case (name == "Truncate" || name == "trunc") && len(args) == 1:
		return truncated(v, kind), nil
	case name == "Round":
		return t.round(n, v, args[1:])
	}
	return v, t.fail(n.at, "Math.%.100s is not there", name)
}

// truncated returns a number without its decimals.
func truncated(v value, kind kindOfValue) value {
	return value{text: v.in(orderSum) + " - " + v.in(orderProduct) + " % 1", order: orderSum, kind: kind, maybe: v.maybe}
}

// round rounds as C# does: a half to the even number, unless it is said to go away from zero.
func (t *translator) round(n *node, v value, args []*node) (value, error) {
	decimals, away := 0, false
	if len(args) > 0 && args[0].kind == nodeNumber {
		d, err := strconv.Atoi(args[0].text)
		if err != nil || d > 28 {
			return v, t.fail(args[0].at, "a number has at most 28 decimals")
		}
		decimals, args = d, args[1:]
	}
	if len(args) > 0 && args[0].kind == nodeMember && args[0].kids[0].text == "MidpointRounding" && slices.Contains([]string{"AwayFromZero", "ToEven"}, args[0].text) {
		away, args = args[0].text == "AwayFromZero", args[1:]
	}
	if len(args) > 0 {
		return v, t.fail(n.at, "Math.Round takes a number, its decimals, and MidpointRounding.AwayFromZero or ToEven")
	}
	if away {
		return call("round", v.kind, v.maybe, v.text, strconv.Itoa(decimals)), nil
	}
	// x.5 is between two integers: that which is twice an integer is even.
	units, unit := v.in(orderProduct), "1"
	if decimals > 0 {
		units, unit = v.in(orderProduct)+" * 1"+strings.Repeat("0", decimals), "0."+strings.Repeat("0", decimals-1)+"1"
	}
	text := "if(abs(" + units + " % 1) = 0.5, round(" + units + " * 0.5) * 2 * " + unit + ", round(" + v.text + ", " + strconv.Itoa(decimals) + "))"
	return value{text: text, kind: v.kind, maybe: v.maybe}, nil
}

// castOf casts a value of C#. A number that is not there is 0, unless the type has null.
func (t *translator) castOf(n *node, s *scope) (value, error) {
	v, err := t.eval(n.kids[0], s)
	if err != nil {
		return v, err
	}
	to, nullable := strings.CutSuffix(n.text, "?")
	if to == "any" {
		return v, nil
	}
	if v.shape == isReference && v.root == ofRow {
		v.kind = map[string]kindOfValue{"integer": integerKind, "decimal": decimalKind, "double": numberKind}[to]
		return v, nil
	}
	if to == "instant" {
		if v.shape != isReference || len(v.path) == 0 {
			return v, t.fail(n.at, "a date is a member")
		}
		v.kind = instantKind
		return v, nil
	}
	o, err := t.operand(v)
	if err != nil {
		return o, err
	}
	if v.kind == nullKind && v.constant {
		return v, nil
	}
	fits := o.kind == anyKind || o.kind == nullKind || isNumber(o.kind) && (to == "integer" || to == "decimal" || to == "double") || o.kind == textKind && to == "text" || o.kind == booleanKind && to == "boolean"
	if !fits {
		return o, t.fail(n.at, "there is no cast from this kind of value to %s", strings.NewReplacer("text", "string", "boolean", "bool", "integer", "a number").Replace(to))
	}
	zero := func() {
		if o.maybe && !nullable {
			o = call("coalesce", o.kind, false, o.text, "0")
		}
	}
	switch to {
	case "integer":
		if o.kind == integerKind && !o.maybe {
			return o, nil
		}
		zero()
		return truncated(o, integerKind), nil
	case "decimal":
		zero()
		o.kind = decimalKind
		return o, nil
	case "double":
		o.kind = numberKind
		return o, nil
	case "text":
		o.kind = textKind
		return o, nil
	case "boolean":
		if o.maybe && !nullable {
			return call("coalesce", booleanKind, false, o.text, "false"), nil
		}
		if v.shape == isCondition {
			return v, nil
		}
		o.kind = booleanKind
		return o, nil
	}
	return o, t.fail(n.at, "there is no cast to %s", n.text)
}

// templateOf joins the parts of a template.
func (t *translator) templateOf(n *node, s *scope) (value, error) {
	var parts []string
	for _, kid := range n.kids {
		if kid.kind == nodeText && kid.text == "" {
			continue
		}
		v, err := t.eval(kid, s)
		if err == nil {
			v, err = t.operand(v)
		}
		if err != nil {
			return v, err
		}
		parts = append(parts, t.partsOf(v)...)
	}
	if len(parts) == 0 {
		return textConstant("", n.at), nil
	}
	return joined(parts), nil
}

// newOf makes a date.
func (t *translator) newOf(n *node, s *scope) (value, error) {
	if t.script {
		if n.text == "Set" {
			return gathering{t}.set(n, s)
		}
		if n.text == "Date" && len(n.kids) == 1 {
			v, err := t.eval(n.kids[0], s)
			if err == nil && v.shape == isReference && len(v.path) > 0 {
				v.kind = instantKind
				return v, nil
			}
			return v, t.fail(n.at, "a Date is made of a member of the document")
		}
		if n.text == "Date" {
			return value{}, t.fail(n.at, "%s", noClock)
		}
		return value{}, t.fail(n.at, "new %.100s is not there", n.text)
	}
	if n.text != "DateTime" || len(n.kids) < 3 || len(n.kids) > 7 {
		return value{}, t.fail(n.at, "new %.100s is not there", n.text)
	}
	parts := make([]int, 7)
	for i, kid := range n.kids {
		d, err := strconv.Atoi(kid.text)
		if kid.kind != nodeNumber || err != nil || d > 9999 {
			return value{}, t.fail(kid.at, "a date is made of constant numbers")
		}
		parts[i] = d
	}
	text := fmt.Sprintf("%04d-%02d-%02dT%02d:%02d:%02d.%03d0000Z", parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6])
	v := textConstant(text, n.at)
	v.kind = instantKind
	return v, nil
}
