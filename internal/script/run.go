package script

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
)

// Input is what a script is run on.
type Input struct {
	ID         string
	Document   []byte                     // JSON with its @metadata: this
	Args       json.RawMessage            // the object args; nil for an empty one
	Parameters map[string]json.RawMessage // the values of $name
	Names      []string                   // further names of the document, such as the alias of a query
	Limits     Limits

	// Take, if not nil, is called before the run takes memory, with a number of bytes. An
	// error ends the run, and is returned as it is.
	Take func(n int64) error
}

// Result is the result of a run.
type Result struct {
	Document []byte // as the script leaves it
	Changed  bool
	Output   []string // of output()
}

// Run runs the script on a document. Its error is an *Error, or that of ctx.
func (p *Program) Run(ctx context.Context, in Input, host Host) (Result, error) {
	result, err := p.run(ctx, in, host)
	return result, locate(err, p.source)
}

func (p *Program) run(ctx context.Context, in Input, host Host) (Result, error) {
	r := &run{ctx: ctx, host: host, id: in.ID, limits: in.Limits.orDefault(), take: in.Take}
	this, err := r.decode(in.Document)
	if err != nil {
		return Result{}, err
	}
	o, is := this.(*object)
	if !is {
		return Result{}, &Error{Message: "the document is no object"}
	}
	o.id = in.ID
	before, err := r.encode(nil, this, 0)
	if err != nil {
		return Result{}, err
	}
	top := &scope{names: map[string]value{"this": this, "args": newObject()}}
	for _, name := range in.Names {
		top.names[name] = this
	}
	if len(in.Args) > 0 {
		args, err := r.decode(in.Args)
		if err != nil {
			return Result{}, err
		}
		if _, is := args.(*object); is {
			top.names["args"] = args
		}
	}
	for name, text := range in.Parameters {
		v, err := r.decode(text)
		if err != nil {
			return Result{}, err
		}
		top.names["$"+name] = v
		if args, is := top.names["args"].(*object); is && len(in.Args) == 0 {
			args.set(name, v)
		}
	}
	for name, f := range globals {
		top.names[name] = f
	}
	for name, o := range namespaces {
		top.names[name] = o
	}
	program := &scope{outer: top, names: make(map[string]value)}
	for _, name := range p.vars { // those that the script was given are its parameters
		if given, found := top.names[name]; found {
			program.names[name] = given
		}
	}
	program.hoist(p.vars)
	if err := r.all(p.statements, program); err != nil {
		return Result{}, err
	}
	after, err := r.encode(nil, this, 0)
	return Result{Document: after, Changed: !bytes.Equal(before, after), Output: r.output}, err
}

// run is a run of a script.
type run struct {
	ctx     context.Context
	host    Host
	id      string
	limits  Limits
	calls   int  // depth of nested calls
	lenient bool // what is not there has no members, and no methods: see Projection.Run

	stringify bool // JSON.stringify encodes
	output    []string
	last      int // place of the last step that has one

	take       func(n int64) error // nil if nobody pays for memory
	used, paid int64               // bytes for which take was called, or will be
}

// payBytes is the least for which take is called.
const payBytes = 64 << 10

// pay pays for bytes that the run is about to take.
func (r *run) pay(n int64) error {
	if r.used += n; r.used <= r.paid || r.take == nil {
		return nil
	}
	more := max(r.used-r.paid, payBytes)
	if err := r.take(more); err != nil {
		return err
	}
	r.paid += more
	return nil
}

// step counts a step.
func (r *run) step(place int) error { return r.steps(place, 1) }

func (r *run) steps(place int, n int64) error {
	r.last = cmp.Or(place, r.last)
	if r.limits.Steps -= n; r.limits.Steps < 0 {
		return &Error{place: r.last, Message: "the script takes more steps than the most"}
	}
	if r.limits.Steps%1024 < n {
		return r.ctx.Err()
	}
	return nil
}

// allocate counts allocated bytes, and steps for touching them.
func (r *run) allocate(place int, n int64) error {
	if r.limits.Bytes -= n; r.limits.Bytes < 0 {
		return &Error{place: cmp.Or(place, r.last), Message: "the script takes more memory than the most"}
	}
	if err := r.pay(2 * n); err != nil { // maps and slices have room for more, and what they were copied from
		return err
	}
	return r.steps(place, n/64)
}

// reach counts a call of the host.
func (r *run) reach(place int) error {
	if r.limits.Calls--; r.limits.Calls < 0 {
		return &Error{place: place, Message: "the script reads and writes more documents than the most"}
	}
	return r.ctx.Err()
}

func fail(place int, format string, args ...any) error {
	return &Error{place: place, Message: fmt.Sprintf(format, args...)}
}

// at adds the line to an error without one.
func at(place int, err error) error {
	var e *Error
	if errors.As(err, &e) && e.place == 0 {
		e.place = place
	}
	return err
}

type scope struct {
	outer    *scope
	names    map[string]value
	fixed    map[string]bool // names of constants; nil for none
	function bool            // of the script or of the body of a function: var declares here
}

// fix makes a name of the scope a constant.
func (s *scope) fix(name string) {
	if s.fixed == nil {
		s.fixed = make(map[string]bool)
	}
	s.fixed[name] = true
}

// ofFunction returns the scope in which var declares.
func (s *scope) ofFunction() *scope {
	for !s.function && s.outer != nil {
		s = s.outer
	}
	return s
}

// hoist declares the variables of a function, which are there before its statements run. Parameters keep their values.
func (s *scope) hoist(vars []string) {
	s.function = true
	for _, name := range vars {
		if _, found := s.names[name]; !found {
			s.names[name] = undefined
		}
	}
}

func (s *scope) find(name string) (*scope, bool) {
	for ; s != nil; s = s.outer {
		if _, found := s.names[name]; found {
			return s, true
		}
	}
	return nil, false
}

func (r *run) inner(s *scope) (*scope, error) {
	return &scope{outer: s, names: make(map[string]value)}, r.allocate(0, 64)
}

// jump is the result of a statement that is left early.
type jump struct {
	kind  string
	value value
	place int
}

// all runs the statements of a script.
func (r *run) all(statements []node, s *scope) error {
	v, err := runAll(r, statements, s)
	if err != nil {
		return err
	}
	if j, is := v.(*jump); is && j.kind == "throw" {
		return r.thrown(j)
	}
	return nil
}

func (r *run) thrown(j *jump) error {
	text, err := r.text(j.value)
	if err != nil {
		return err
	}
	return fail(j.place, "the script throws %.200s", text)
}

func runAll(r *run, statements []node, s *scope) (value, error) {
	for _, n := range statements { // functions are hoisted
		if d, is := n.(*declare); is {
			if _, is := d.value.(*functionNode); is {
				if _, err := d.eval(r, s); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, n := range statements {
		v, err := n.eval(r, s)
		if err != nil {
			return nil, err
		}
		if j, is := v.(*jump); is {
			return j, nil
		}
	}
	return nil, nil
}

// The nodes.
type (
	block               struct{ statements []node }
	expressionStatement struct{ expression node }
	declarations        struct{ list []node }
	declare             struct {
		place int
		name  string
		value node
		kind  string // var, let, const or function
	}
	jumpStatement struct {
		kind  string
		value node
		place int
	}
	ifNode struct {
		condition, yes, no node
		expression         bool
	}
	loop struct {
		place                       int
		init, condition, step, body node
		after                       bool // the condition is checked after the body
		each                        bool // each round has variables of its own, as functions keep them
	}
	each struct {
		place      int
		name, kind string
		keys       bool
		over, body node
	}
	literal  struct{ value value }
	variable struct {
		place int
		name  string
	}
	member struct {
		place        int
		object, name node
		optional     bool
	}
	call struct {
		place     int
		function  node
		arguments []node
		spread    []bool
		optional  bool // behind ?.
	}
	newDate struct {
		place     int
		arguments []node
	}
	assign struct {
		place         int
		operator      string
		target, value node
	}
	increment struct {
		place  int
		by     string
		target node
		before bool
	}
	deleteNode struct{ member *member }
	chain      struct{ node node } // of members and calls with a ?.
	unary      struct {
		place    int
		operator string
		operand  node
	}
	binary struct {
		place       int
		operator    string
		left, right node
	}
	functionNode struct {
		place      int
		parameters []string
		defaults   map[string]node // of parameters
		body       node
		arrow      bool
		vars       []string // declared by var in the body, outside other functions
	}
	arrayNode struct {
		place    int
		elements []node
		spread   []bool
	}
	objectMember struct {
		name, value node
		spread      bool
	}
	objectNode struct {
		place   int
		members []objectMember
	}
	templateNode struct {
		place int
		parts []node
	}
)

func (n *block) eval(r *run, s *scope) (value, error) {
	inner, err := r.inner(s)
	if err != nil {
		return nil, err
	}
	return runAll(r, n.statements, inner)
}

func (n *expressionStatement) eval(r *run, s *scope) (value, error) {
	_, err := n.expression.eval(r, s)
	return nil, err
}

func (n *declarations) eval(r *run, s *scope) (value, error) { return runAll(r, n.list, s) }

func (n *declare) eval(r *run, s *scope) (value, error) {
	v := undefined
	if n.value != nil {
		var err error
		if v, err = n.value.eval(r, s); err != nil {
			return nil, err
		}
	}
	if n.kind == "var" {
		if n.value == nil {
			return nil, nil // the function has it already
		}
		s = s.ofFunction()
	}
	s.names[n.name] = v
	if n.kind == "const" {
		s.fix(n.name)
	}
	return nil, r.allocate(n.place, 32)
}

func (n *jumpStatement) eval(r *run, s *scope) (value, error) {
	j := &jump{kind: n.kind, value: undefined, place: n.place}
	if n.value != nil {
		var err error
		if j.value, err = n.value.eval(r, s); err != nil {
			return nil, err
		}
	}
	return j, r.step(n.place)
}

func (n *ifNode) eval(r *run, s *scope) (value, error) {
	if err := r.step(0); err != nil {
		return nil, err
	}
	v, err := n.condition.eval(r, s)
	switch {
	case err != nil:
		return nil, err
	case truth(v):
		return n.yes.eval(r, s)
	case n.no != nil:
		return n.no.eval(r, s)
	}
	return nil, nil
}

func (n *loop) eval(r *run, s *scope) (value, error) {
	inner, err := r.inner(s)
	if err != nil {
		return nil, err
	}
	if n.init != nil {
		if _, err := n.init.eval(r, inner); err != nil {
			return nil, err
		}
	}
	for first := true; ; first = false {
		if err := r.step(n.place); err != nil {
			return nil, err
		}
		if n.condition != nil && !(first && n.after) {
			v, err := n.condition.eval(r, inner)
			if err != nil {
				return nil, err
			}
			if !truth(v) {
				return nil, nil
			}
		}
		v, err := n.body.eval(r, inner)
		if err != nil {
			return nil, err
		}
		if j, is := v.(*jump); is {
			if j.kind == "break" {
				return nil, nil
			} else if j.kind != "continue" {
				return j, nil
			}
		}
		if n.each {
			names := maps.Clone(inner.names)
			if inner, err = r.inner(s); err != nil {
				return nil, err
			}
			inner.names = names
		}
		if n.step != nil {
			if _, err := n.step.eval(r, inner); err != nil {
				return nil, err
			}
		}
	}
}

func (n *each) eval(r *run, s *scope) (value, error) {
	over, err := n.over.eval(r, s)
	if err != nil {
		return nil, err
	}
	next, err := n.next(r, over)
	if err != nil {
		return nil, err
	}
	for {
		v, more := next()
		if !more {
			return nil, nil
		}
		inner, err := r.inner(s)
		if err != nil {
			return nil, err
		}
		if n.kind == "var" {
			inner.ofFunction().names[n.name] = v
		} else {
			inner.names[n.name] = v
		}
		if n.kind == "const" {
			inner.fix(n.name)
		}
		if v, err = n.body.eval(r, inner); err != nil {
			return nil, err
		}
		if j, is := v.(*jump); is {
			if j.kind == "break" {
				return nil, nil
			} else if j.kind != "continue" {
				return j, nil
			}
		}
	}
}

// next returns a function that returns what is walked, one after the other: with in the names that were there, but for those that are
// removed before their turn; with of the elements, also those that come meanwhile.
func (n *each) next(r *run, over value) (func() (value, bool), error) {
	i := -1
	if a, is := over.(*array); is && !n.keys {
		return func() (value, bool) {
			if i++; i < len(a.elements) {
				return a.elements[i], true
			}
			return nil, false
		}, nil
	}
	var list []value
	still := func(value) bool { return true }
	switch o := over.(type) {
	case *object:
		if !n.keys {
			return nil, fail(n.place, "an object cannot be walked with of: use Object.keys(), Object.values() or in")
		}
		still = func(name value) bool { _, found := o.members[name.(string)]; return found }
		if err := r.eachMember(n.place, o, func(name string, _ value) { list = append(list, name) }); err != nil {
			return nil, err
		}
	case *array:
		still = func(name value) bool { i, _ := position(name); return i < len(o.elements) }
		if err := r.eachMember(n.place, o, func(name string, _ value) { list = append(list, name) }); err != nil {
			return nil, err
		}
	case string:
		elements, err := r.elements(n.place, o)
		if err != nil {
			return nil, err
		}
		for i, v := range elements {
			if n.keys {
				v = strconv.Itoa(i)
			}
			list = append(list, v)
		}
	case nil, undefinedType:
		if !n.keys {
			return nil, fail(n.place, "what is walked is not there")
		}
	default:
		if !n.keys {
			return nil, fail(n.place, "%s cannot be walked", article(typeOf(over)))
		}
	}
	return func() (value, bool) {
		for i++; i < len(list); i++ {
			if still(list[i]) {
				return list[i], true
			}
		}
		return nil, false
	}, nil
}

func (n *literal) eval(r *run, s *scope) (value, error) { return n.value, r.step(0) }

func (n *variable) eval(r *run, s *scope) (value, error) {
	in, found := s.find(n.name)
	if !found {
		if what := missingGlobals[n.name]; what {
			return nil, &Error{place: n.place, Message: n.name + " is not there", Missing: true}
		}
		return nil, fail(n.place, "%s is not defined", n.name)
	}
	return in.names[n.name], r.step(n.place)
}

// evalKey evaluates the object and the name of a member expression.
func (n *member) evalKey(r *run, s *scope) (object value, name value, err error) {
	if object, err = n.object.eval(r, s); err != nil {
		return nil, nil, err
	}
	if object == ended || n.optional && (object == nil || object == undefined) {
		return ended, nil, nil
	}
	name, err = n.name.eval(r, s)
	return object, name, err
}

func (n *member) eval(r *run, s *scope) (value, error) {
	object, name, err := n.evalKey(r, s)
	if err != nil {
		return nil, err
	}
	if object == ended {
		return ended, nil
	}
	return r.member(n.place, object, name)
}

// ended is the value of the rest of a chain whose ?. stands after what is not there. The chain is undefined then.
var ended value = endedType{}

type endedType struct{}

func (n *chain) eval(r *run, s *scope) (value, error) {
	v, err := n.node.eval(r, s)
	if v == ended {
		v = undefined
	}
	return v, err
}

// member reads a member of a value.
func (r *run) member(place int, of, name value) (value, error) {
	if err := r.step(place); err != nil {
		return nil, err
	}
	switch o := of.(type) {
	case *object:
		key, err := r.key(place, name)
		if err != nil {
			return nil, err
		}
		if v, found := o.members[key]; found {
			return v, nil
		}
		if m, found := objectMethods[key]; found {
			return m.on(of), nil
		}
		return undefined, nil
	case *array:
		if i, is := position(name); is {
			if i < len(o.elements) {
				return o.elements[i], nil
			}
			return undefined, nil
		}
		key, err := r.key(place, name)
		if err != nil {
			return nil, err
		}
		if key == "length" {
			return int64(len(o.elements)), nil
		}
		if m, found := arrayMethods[key]; found {
			return m.on(of), nil
		}
		if missingMethods[key] {
			return nil, &Error{place: place, Message: "the method " + key + " of an array is not there", Missing: true}
		}
		return undefined, nil
	case string:
		if i, is := position(name); is {
			units, err := r.units(place, o)
			if err != nil {
				return nil, err
			}
			if i < len(units) {
				return textOf(units[i : i+1]), nil
			}
			return undefined, nil
		}
		key, err := r.key(place, name)
		if err != nil {
			return nil, err
		}
		if key == "length" {
			units, err := r.units(place, o)
			return int64(len(units)), err
		}
		if m, found := textMethods[key]; found {
			return m.on(of), nil
		}
		if missingMethods[key] {
			return nil, &Error{place: place, Message: "the method " + key + " of a text is not there", Missing: true}
		}
		return undefined, nil
	case nil, undefinedType:
		if r.lenient {
			return undefined, nil
		}
		key, err := r.key(place, name)
		if err != nil {
			return nil, err
		}
		text, _ := r.text(of)
		return nil, fail(place, "%s has no member %.100s", text, key)
	case *function:
		return undefined, nil
	case *date:
		key, err := r.key(place, name)
		if err != nil {
			return nil, err
		}
		if m, found := dateMethods[key]; found {
			return m.on(of), nil
		}
		if strings.HasPrefix(key, "set") || strings.HasPrefix(key, "to") || key == "getTimezoneOffset" {
			return nil, &Error{place: place, Message: "the method " + key + " of a date is not there", Missing: true}
		}
		return undefined, nil
	}
	key, err := r.key(place, name)
	if err != nil {
		return nil, err
	}
	if m, found := numberMethods[key]; found && isNumber(of) {
		return m.on(of), nil
	}
	if key == "toString" {
		return objectMethods[key].on(of), nil
	}
	return undefined, nil
}

// position returns the index of an element that a value stands for.
func position(v value) (int, bool) {
	switch v := v.(type) {
	case string:
		if v == "" || len(v) > 9 || len(v) > 1 && v[0] == '0' {
			return 0, false
		}
		for i := range len(v) {
			if v[i] < '0' || v[i] > '9' {
				return 0, false
			}
		}
		n, err := strconv.Atoi(v)
		return n, err == nil
	case json.Number, int64:
		n, is := integer(v)
		return int(n), is && n >= 0 && n < math.MaxInt32
	case float64:
		return int(v), v >= 0 && v < math.MaxInt32 && v == math.Trunc(v)
	}
	return 0, false
}

// store assigns to a variable or a member.
func (r *run) store(place int, target node, s *scope, v value) error {
	switch t := target.(type) {
	case *variable:
		in, found := s.find(t.name)
		switch {
		case !found:
			in = s // as in JavaScript's sloppy mode, but local to the block
			for in.outer != nil && in.outer.outer != nil {
				in = in.outer
			}
			if err := r.allocate(place, 32); err != nil {
				return err
			}
		case in.outer == nil:
			return fail(place, "%s cannot be assigned to", t.name)
		case in.fixed[t.name]:
			return fail(place, "%s is a constant", t.name)
		}
		in.names[t.name] = v
		return nil
	case *member:
		of, name, err := t.evalKey(r, s)
		if err != nil {
			return err
		}
		return r.setMember(place, of, name, v)
	}
	return fail(place, "the left side cannot be assigned to")
}

// maxHole bounds the elements that an assignment beyond the end of an array adds.
const maxHole = 100_000

func (r *run) setMember(place int, of, name, v value) error {
	if err := r.allocate(place, 48); err != nil {
		return err
	}
	key, err := r.key(place, name)
	if err != nil {
		return err
	}
	switch o := of.(type) {
	case *object:
		if namespace(o) {
			return fail(place, "%.100s of a namespace cannot be set", key)
		}
		if key == "__proto__" {
			return fail(place, "__proto__ cannot be assigned to")
		}
		if err := r.allocate(place, int64(len(key))); err != nil {
			return err
		}
		o.set(key, v)
		return nil
	case *array:
		if key == "length" {
			n, is := position(v)
			if !is || n > len(o.elements) {
				return fail(place, "the length of an array can only be made less")
			}
			o.elements = o.elements[:n]
			return nil
		}
		i, is := position(name)
		if !is {
			return fail(place, "an array has no member %.100s", key)
		}
		if i > len(o.elements)+maxHole {
			return fail(place, "the array has no element %d", i)
		}
		for len(o.elements) <= i {
			if err := r.allocate(place, 16); err != nil {
				return err
			}
			o.elements = append(o.elements, undefined)
		}
		o.elements[i] = v
		return nil
	}
	text, _ := r.text(of)
	return fail(place, "%.100s has no members: %.100s cannot be set", text, key)
}

func (n *assign) eval(r *run, s *scope) (value, error) {
	if err := r.step(n.place); err != nil {
		return nil, err
	}
	if n.operator == "" {
		v, err := n.value.eval(r, s)
		if err != nil {
			return nil, err
		}
		return v, r.store(n.place, n.target, s, v)
	}
	before, err := n.target.eval(r, s)
	if err != nil {
		return nil, err
	}
	v, decided, err := r.operate(n.place, n.operator, before, n.value, s)
	if err != nil || decided {
		return v, err
	}
	return v, r.store(n.place, n.target, s, v)
}

func (n *increment) eval(r *run, s *scope) (value, error) {
	before, err := n.target.eval(r, s)
	if err != nil {
		return nil, err
	}
	if !isNumber(before) {
		before = tidy(number(before))
	}
	after, err := r.calculate(n.place, n.by[:1], before, int64(1))
	if err != nil {
		return nil, err
	}
	if err := r.store(n.place, n.target, s, after); err != nil {
		return nil, err
	}
	if n.before {
		return after, nil
	}
	return before, nil
}

func (n *deleteNode) eval(r *run, s *scope) (value, error) {
	of, name, err := n.member.evalKey(r, s)
	if err != nil {
		return nil, err
	}
	key, err := r.key(n.member.place, name)
	if err != nil {
		return nil, err
	}
	switch o := of.(type) {
	case *object:
		if namespace(o) {
			return nil, fail(n.member.place, "%.100s of a namespace cannot be deleted", key)
		}
		if err := r.steps(n.member.place, 1+int64(len(o.names))/16); err != nil {
			return nil, err
		}
		o.remove(key)
		return true, nil
	case *array:
		if i, is := position(name); is && i < len(o.elements) {
			o.elements[i] = undefined
		}
		return true, nil
	case nil, undefinedType:
		return nil, fail(n.member.place, "there is no object that could have %.100s", key)
	}
	return true, nil
}

func (n *unary) eval(r *run, s *scope) (value, error) {
	if v, is := n.operand.(*variable); is && n.operator == "typeof" {
		if _, found := s.find(v.name); !found {
			return "undefined", nil
		}
	}
	v, err := n.operand.eval(r, s)
	if err != nil {
		return nil, err
	}
	switch n.operator {
	case "!":
		return !truth(v), nil
	case "typeof":
		return typeOf(v), nil
	case "-":
		if i, is := integer(v); is && i != 0 && i != math.MinInt64 {
			return -i, nil
		}
		return -number(v), nil
	}
	if isNumber(v) {
		return v, nil
	}
	return number(v), nil
}

// short returns the value of a logical operator if its left side decides it.
func short(operator string, left value) (value, bool) {
	switch operator {
	case "&&":
		return left, !truth(left)
	case "||":
		return left, truth(left)
	case "??":
		return left, left != nil && left != undefined
	}
	return nil, false
}

func (n *binary) eval(r *run, s *scope) (value, error) {
	if err := r.step(n.place); err != nil {
		return nil, err
	}
	left, err := n.left.eval(r, s)
	if err != nil {
		return nil, err
	}
	v, _, err := r.operate(n.place, n.operator, left, n.right, s)
	return v, err
}

// operate applies an operator to a value and a node. The node is evaluated only if the
// left side does not decide the result.
func (r *run) operate(place int, operator string, left value, right node, s *scope) (v value, decided bool, err error) {
	if v, decided := short(operator, left); decided {
		return v, true, nil
	}
	if v, err = right.eval(r, s); err != nil {
		return nil, false, err
	}
	switch operator {
	case "&&", "||", "??":
		return v, false, nil
	}
	v, err = r.calculate(place, operator, left, v)
	return v, false, err
}

// calculate applies an operator to two values.
func (r *run) calculate(place int, operator string, a, b value) (value, error) {
	switch operator {
	case "===":
		return r.same(place, a, b, identical)
	case "!==":
		same, err := r.same(place, a, b, identical)
		return !same, err
	case "==", "!=":
		a, b, err := r.comparable(a, b)
		if err != nil {
			return nil, err
		}
		same, err := r.same(place, a, b, equal)
		return same == (operator == "=="), err
	case "in":
		key, err := r.key(place, a)
		if err != nil {
			return nil, err
		}
		switch o := b.(type) {
		case *object:
			_, found := o.members[key]
			return found, nil
		case *array:
			i, is := position(a)
			return is && i < len(o.elements), nil
		}
		return nil, fail(place, "in needs an object on its right side")
	case "+":
		if !plain(a) || !plain(b) {
			x, err := r.text(a)
			if err != nil {
				return nil, err
			}
			y, err := r.text(b)
			if err != nil {
				return nil, err
			}
			if err := r.allocate(place, int64(len(x)+len(y))); err != nil {
				return nil, err
			}
			return glue(x, y), nil
		}
	case "<", ">", "<=", ">=":
		return r.compare(place, operator, a, b)
	}
	x, xi := integer(a)
	y, yi := integer(b)
	if xi && yi {
		if v, exact := whole(operator, x, y); exact {
			return v, nil
		}
	}
	f, g := number(a), number(b)
	switch operator {
	case "+":
		return f + g, nil
	case "-":
		return f - g, nil
	case "*":
		return f * g, nil
	case "/":
		return f / g, nil
	}
	return math.Mod(f, g), nil
}

// same compares two values, and counts the bytes touched.
func (r *run) same(place int, a, b value, compare func(a, b value) bool) (bool, error) {
	if x, is := a.(string); is {
		if y, is := b.(string); is && len(x) == len(y) {
			if err := r.steps(place, int64(len(x))/64); err != nil {
				return false, err
			}
		}
	}
	return compare(a, b), nil
}

// key converts the name of a member to text, and counts the bytes touched by the look-up.
func (r *run) key(place int, name value) (string, error) {
	key, err := r.text(name)
	if err == nil {
		err = r.steps(place, int64(len(key))/64)
	}
	return key, err
}

// plain reports whether + adds a value as a number, and does not concatenate it.
func plain(v value) bool {
	switch v.(type) {
	case nil, undefinedType, bool, json.Number, int64, float64:
		return true
	}
	return false
}

// whole calculates with integers. It returns false if the result is not an integer.
func whole(operator string, x, y int64) (value, bool) {
	switch operator {
	case "+":
		sum := x + y
		return sum, (sum > x) == (y > 0)
	case "-":
		difference := x - y
		return difference, (difference < x) == (y > 0)
	case "*":
		if x == 0 || y == 0 {
			return int64(0), x >= 0 && y >= 0
		}
		product := x * y
		return product, product/y == x && !(x == -1 && y == math.MinInt64) && !(y == -1 && x == math.MinInt64)
	case "/":
		if y != 0 && x != 0 && x%y == 0 && !(y == -1 && x == math.MinInt64) {
			return x / y, true
		}
	case "%":
		if y != 0 && x >= 0 {
			return x % y, true
		}
	}
	return nil, false
}

// comparable returns the operands of ==, of which one that is an object becomes a text if the other one is none.
func (r *run) comparable(a, b value) (value, value, error) {
	kind := func(v value) int {
		switch v.(type) {
		case nil, undefinedType:
			return 0
		case bool, string, json.Number, int64, float64:
			return 1
		}
		return 2
	}
	var err error
	switch {
	case kind(a) == 1 && kind(b) == 2:
		b, err = r.text(b)
	case kind(a) == 2 && kind(b) == 1:
		a, err = r.text(a)
	}
	return a, b, err
}

func (r *run) compare(place int, operator string, a, b value) (value, error) {
	for _, v := range []*value{&a, &b} {
		switch (*v).(type) {
		case *array, *object, *function:
			text, err := r.text(*v)
			if err != nil {
				return nil, err
			}
			*v = text
		}
	}
	x, xt := a.(string)
	y, yt := b.(string)
	less, more := false, false
	if xt && yt {
		if err := r.steps(place, int64(min(len(x), len(y)))/64); err != nil {
			return nil, err
		}
		order := compareTexts(x, y)
		less, more = order < 0, order > 0
	} else if i, is := integer(a); is {
		if j, is := integer(b); is {
			less, more = i < j, i > j
		} else {
			less, more = number(a) < number(b), number(a) > number(b)
		}
	} else {
		less, more = number(a) < number(b), number(a) > number(b)
	}
	same := !less && !more
	if !xt || !yt {
		same = same && !math.IsNaN(number(a)) && !math.IsNaN(number(b))
	}
	switch operator {
	case "<":
		return less, nil
	case ">":
		return more, nil
	case "<=":
		return less || same, nil
	}
	return more || same, nil
}

func (n *functionNode) eval(r *run, s *scope) (value, error) {
	return &function{parameters: n.parameters, defaults: n.defaults, body: n.body, arrow: n.arrow, vars: n.vars, scope: s}, r.allocate(n.place, 64)
}

func (n *arrayNode) eval(r *run, s *scope) (value, error) {
	a := &array{}
	for i, e := range n.elements {
		v, err := e.eval(r, s)
		if err != nil {
			return nil, err
		}
		more := []value{v}
		if n.spread[i] {
			if more, err = r.elements(n.place, v); err != nil {
				return nil, err
			}
		}
		if err := r.allocate(n.place, 16*int64(len(more))+16); err != nil {
			return nil, err
		}
		a.elements = append(a.elements, more...)
	}
	return a, r.allocate(n.place, 32)
}

func (n *objectNode) eval(r *run, s *scope) (value, error) {
	o := newObject()
	for _, m := range n.members {
		v, err := m.value.eval(r, s)
		if err != nil {
			return nil, err
		}
		if m.spread {
			if err := r.assignAll(n.place, o, v); err != nil {
				return nil, err
			}
			continue
		}
		name, err := m.name.eval(r, s)
		if err != nil {
			return nil, err
		}
		if err := r.setMember(n.place, o, name, v); err != nil {
			return nil, err
		}
	}
	return o, r.allocate(n.place, 64)
}

// assignAll copies the members of an object.
func (r *run) assignAll(place int, to *object, from value) error {
	switch from := from.(type) {
	case nil, undefinedType:
		return nil
	case *object:
		for _, name := range append([]string(nil), from.names...) {
			if err := r.setMember(place, to, name, from.members[name]); err != nil {
				return err
			}
		}
		return nil
	}
	var failed error
	err := r.eachMember(place, from, func(name string, v value) {
		if failed == nil {
			failed = r.setMember(place, to, name, v)
		}
	})
	return cmp.Or(err, failed)
}

func (n *templateNode) eval(r *run, s *scope) (value, error) {
	out := ""
	for _, part := range n.parts {
		v, err := part.eval(r, s)
		if err != nil {
			return nil, err
		}
		text, err := r.text(v)
		if err != nil {
			return nil, err
		}
		if err := r.allocate(n.place, int64(len(out)+len(text))); err != nil {
			return nil, err
		}
		out = glue(out, text)
	}
	return out, nil
}

func (n *call) eval(r *run, s *scope) (value, error) {
	f, of, nothing, err := n.callee(r, s)
	if err != nil || nothing {
		return undefined, err
	}
	if f == ended {
		return ended, nil
	}
	if f == undefined || f == nil {
		if n.optional {
			return ended, nil
		}
		name := "it"
		if m, is := n.function.(*member); is {
			if l, is := m.name.(*literal); is {
				name, _ = r.text(l.value)
			}
		}
		return nil, fail(n.place, "%.100s is no function", name)
	}
	fn, is := f.(*function)
	if !is {
		return nil, fail(n.place, "a %s is no function", typeOf(f))
	}
	args, err := n.values(r, s)
	if err != nil {
		return nil, err
	}
	return r.callOn(n.place, of, fn, args)
}

// callee evaluates what is called, and of what it is a member. It reports whether that is a method of something that is not there, which gives undefined: behind
// a ?., and in a lenient run.
func (n *call) callee(r *run, s *scope) (f, of value, nothing bool, err error) {
	m, is := n.function.(*member)
	if !is {
		f, err = n.function.eval(r, s)
		return f, undefined, false, err
	}
	of, name, err := m.evalKey(r, s)
	if err != nil {
		return nil, nil, false, err
	}
	if of == ended {
		return ended, nil, false, nil
	}
	if (of == nil || of == undefined) && r.lenient {
		return nil, nil, true, nil
	}
	f, err = r.member(m.place, of, name)
	return f, of, false, err
}

// values evaluates the arguments.
func (n *call) values(r *run, s *scope) ([]value, error) {
	args := make([]value, 0, len(n.arguments))
	for i, a := range n.arguments {
		v, err := a.eval(r, s)
		if err != nil {
			return nil, err
		}
		if !n.spread[i] {
			args = append(args, v)
			continue
		}
		list, err := r.elements(n.place, v)
		if err == nil {
			err = r.allocate(n.place, 16*int64(len(list)))
		}
		if err != nil {
			return nil, err
		}
		args = append(args, list...)
	}
	return args, nil
}

// call calls a function of no object: in it, this is what it is around the function.
func (r *run) call(place int, f *function, args []value) (value, error) {
	return r.callOn(place, undefined, f, args)
}

// callOn calls a function that is a member of an object, which is this in it unless it is an arrow.
func (r *run) callOn(place int, of value, f *function, args []value) (value, error) {
	if err := r.allocate(place, 64); err != nil {
		return nil, err
	}
	if r.calls++; r.calls > maxCalls {
		return nil, fail(place, "functions call each other too deep: %d levels are the most", maxCalls)
	}
	defer func() { r.calls-- }()
	if f.native != nil {
		v, err := f.native(r, place, args)
		return v, at(place, err)
	}
	inner, err := r.inner(f.scope)
	if err != nil {
		return nil, err
	}
	if of != undefined && !f.arrow {
		inner.names["this"] = of
	}
	for i, name := range f.parameters {
		inner.names[name] = undefined
		if i < len(args) {
			inner.names[name] = args[i]
		}
		if otherwise := f.defaults[name]; otherwise != nil && inner.names[name] == undefined {
			if inner.names[name], err = otherwise.eval(r, inner); err != nil {
				return nil, err
			}
		}
	}
	inner.hoist(f.vars)
	v, err := f.body.eval(r, inner)
	if err != nil {
		return nil, err
	}
	if _, is := f.body.(*block); !is {
		return v, nil
	}
	j, is := v.(*jump)
	switch {
	case !is:
		return undefined, nil
	case j.kind == "throw":
		return nil, r.thrown(j)
	}
	return j.value, nil
}
