package algebra

// folding translates reduce of JavaScript: what a function makes of a sum, or of a text, and of each entry.
type folding struct {
	*translator
	sum  string // the first parameter
	text bool   // it begins with a text
}

// onlyFolds says which functions of reduce there are.
const onlyFolds = "a reduce adds to what is there, from a number or a text: (sum, x) => sum + x.n, 0; also by ?:, -, Math.max and Math.min, with the sum itself otherwise"

// folded returns what values.reduce((sum, x) => sum + x.n, 0) gives.
func (t *translator) folded(n *node, of value, args []*node, s *scope) (value, error) {
	if len(args) != 2 {
		return of, t.fail(n.at, onlyFolds)
	}
	from, err := t.eval(args[1], s)
	if err != nil {
		return from, err
	}
	if from.shape != isScalar || !from.constant || from.kind != numberKind && from.kind != textKind {
		return from, t.fail(args[1].at, onlyFolds)
	}
	f, err := t.function(args[0], "reduce", 2)
	if err != nil {
		return of, err
	}
	body := f.returned()
	if body == nil || len(f.names) != 2 || of.rows.distinct {
		return of, t.fail(f.at, onlyFolds)
	}
	fold := folding{t, f.names[0], from.kind == textKind}
	return fold.of(body, of, from, s.with(f.names[0], value{shape: isNothing}).with(f.names[1], of.rows.item))
}

// isSum reports whether a node is the sum itself.
func (t folding) isSum(n *node) bool { return n.kind == nodeName && n.text == t.sum }

// of returns what a body makes of all entries.
func (t folding) of(n *node, of, from value, s *scope) (value, error) {
	switch {
	case n.kind == nodeChoice && (t.isSum(n.kids[1]) || t.isSum(n.kids[2])):
		return t.chosen(n, of, from, s)
	case n.kind == nodeBinary && n.text == "-" && t.isSum(n.kids[0]) && !t.text:
		v, err := t.added(n, n.kids[1:], of, s)
		if err != nil {
			return v, err
		}
		return t.arithmetic(n, "-", from, v)
	case n.kind == nodeBinary && n.text == "+":
		return t.plusOf(n, of, from, s)
	case n.kind == nodeCall && len(n.kids) == 3 && n.kids[0].kind == nodeMember && n.kids[0].kids[0].kind == nodeName && n.kids[0].kids[0].text == "Math":
		return t.extreme(n, of, from, s)
	}
	return of, t.fail(n.at, onlyFolds)
}

// chosen returns what a body makes of the entries that satisfy a condition, if it leaves the sum as it is for the others.
func (t folding) chosen(n *node, of, from value, s *scope) (value, error) {
	g := gathering{t.translator}
	v, err := g.ofEntry(n.kids[0], s)
	c := condition{}
	if err == nil {
		c, err = g.isTrue(v)
	}
	if err != nil {
		return v, err
	}
	body := n.kids[1]
	if t.isSum(body) {
		body, c = n.kids[2], not(c)
	}
	r := copied(of.rows)
	r.where = and(r.where, c)
	return t.of(body, value{shape: isRows, rows: r}, from, s)
}

// plusOf returns what a body adds: sum + a + b, or a + sum for a number.
func (t folding) plusOf(n *node, of, from value, s *scope) (value, error) {
	if kids := n.kids; t.isSum(kids[1]) && !t.text {
		n = &node{kind: nodeBinary, at: n.at, text: "+", kids: []*node{kids[1], kids[0]}}
	}
	var parts []*node
	left := n
	for ; left.kind == nodeBinary && left.text == "+"; left = left.kids[0] {
		parts = append([]*node{left.kids[1]}, parts...)
	}
	if !t.isSum(left) {
		return of, t.fail(n.at, onlyFolds)
	}
	v, err := t.added(n, parts, of, s)
	if err != nil {
		return v, err
	}
	switch {
	case t.text && from.raw != "":
		return joined([]string{from.text, v.text}), nil
	case t.text || from.raw == "0":
		return v, nil
	}
	return t.arithmetic(n, "+", from, v)
}

// added returns the sum of what is added for each entry, or the text of them.
func (t folding) added(n *node, parts []*node, of value, s *scope) (value, error) {
	item, err := t.item(n, parts, s)
	if err != nil {
		return item, err
	}
	r := copied(of.rows)
	r.item = item
	rows := value{shape: isRows, at: n.at, rows: r}
	if t.text {
		return gathering{t.translator}.joined(n.at, rows, textConstant("", n.at))
	}
	return t.aggregate(n, rows, "Sum", nil, s)
}

// item returns what is added for one entry.
func (t folding) item(n *node, parts []*node, s *scope) (item value, err error) {
	t.entry++
	defer func() { t.entry-- }()
	var texts []string
	for i, part := range parts {
		v, err := t.eval(part, s)
		if err == nil && t.text {
			if v, err = t.operand(v); err == nil {
				texts = append(texts, t.partsOf(v)...)
			}
		} else if err == nil && i > 0 {
			v, err = t.plus(n, item, v)
		}
		if err != nil {
			return v, err
		}
		item = v
	}
	if t.text {
		item = joined(texts)
	}
	return item, nil
}

// extreme returns what Math.max(sum, x.n) makes, from a number.
func (t folding) extreme(n *node, of, from value, s *scope) (value, error) {
	which := map[string]string{"max": "Max", "min": "Min"}[n.kids[0].text]
	args := n.kids[1:]
	if t.isSum(args[1]) {
		args = []*node{args[1], args[0]}
	}
	if which == "" || !t.isSum(args[0]) || t.text {
		return of, t.fail(n.at, onlyFolds)
	}
	item, err := gathering{t.translator}.ofEntry(args[1], s)
	if err != nil {
		return item, err
	}
	r := copied(of.rows)
	r.item = item
	v, err := t.aggregate(n, value{shape: isRows, rows: r}, which, nil, s)
	if err != nil {
		return v, err
	}
	beyond := " > "
	if which == "Min" {
		beyond = " < "
	}
	return value{text: "if(" + v.text + beyond + from.text + ", " + v.text + ", " + from.text + ")", kind: numberKind}, nil
}
