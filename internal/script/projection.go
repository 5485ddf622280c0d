package script

import (
	"context"
	"encoding/json"
	"strings"
)

// Projection is a parsed projection: functions, and an expression that makes an object of a document. It is immutable, and safe for
// concurrent use.
type Projection struct {
	source     string // of all: places of errors are in it
	functions  []node
	result     node
	parameters []string
}

// ProjectionParser parses the parts of a projection that are in a text of another language, each where it begins. Offsets of
// errors are those in that text.
type ProjectionParser struct {
	Source string
	made   Projection
	names  map[string]bool // of functions
}

// Function parses "name(parameters) { ... }", which begins at the offset, and returns the offset of its end.
func (p *ProjectionParser) Function(at int) (end int, err error) {
	name := at
	for name < len(p.Source) && p.Source[name] != '(' {
		name++
	}
	if name == len(p.Source) {
		return 0, p.fail(at, "a function has a name, parameters in parentheses and a body in braces")
	}
	_, n, err := lexPart(p.Source[name:], name, true)
	if err != nil {
		return 0, locate(err, p.Source)
	}
	body := name + n
	body += len(p.Source[body:]) - len(strings.TrimLeft(p.Source[body:], " \t\r\n"))
	if body == len(p.Source) || p.Source[body] != '{' {
		return 0, p.fail(body, "the body of a function is in braces")
	}
	if _, n, err = lexPart(p.Source[body:], body, true); err != nil {
		return 0, locate(err, p.Source)
	}
	end = body + n
	inner, err := p.parser(at, end)
	if err != nil {
		return 0, err
	}
	first := inner.tok()
	text, err := inner.name()
	if err == nil && p.names[text] { // one of the language may be hidden, as RavenDB's clients call theirs output
		err = &Error{place: first.place, Message: "there is a function " + text + " already"}
	}
	if err != nil {
		return 0, locate(err, p.Source)
	}
	f, err := inner.functionRest(first)
	if err != nil {
		return 0, locate(err, p.Source)
	}
	if p.names == nil {
		p.names = make(map[string]bool)
	}
	p.names[text] = true
	p.made.functions = append(p.made.functions, &declare{place: first.place, name: text, value: f})
	return end, nil
}

// Result parses the object "{ ... }" or the call "name(...)" that begins at the offset, and returns the offset of its end.
func (p *ProjectionParser) Result(at int) (end int, err error) {
	open := at
	for open < len(p.Source) && p.Source[open] != '(' && p.Source[open] != '{' {
		open++
	}
	if open == len(p.Source) {
		return 0, p.fail(at, "a projection is an object in braces, or the call of a function")
	}
	_, n, err := lexPart(p.Source[open:], open, true)
	if err != nil {
		return 0, locate(err, p.Source)
	}
	end = open + n
	inner, err := p.parser(at, end)
	if err != nil {
		return 0, err
	}
	if p.made.result, err = inner.assignment(); err == nil && inner.tok().kind != endOfScript {
		err = inner.unexpected("the projection ends here")
	}
	return end, locate(err, p.Source)
}

// parser returns a parser of a part of the source.
func (p *ProjectionParser) parser(from, to int) (*parser, error) {
	tokens, err := lex(p.Source[from:to], from)
	if err != nil {
		return nil, locate(err, p.Source)
	}
	for _, t := range tokens {
		p.parameter(t)
	}
	return &parser{tokens: tokens}, nil
}

// parameter notes the parameters that a token names.
func (p *ProjectionParser) parameter(t token) {
	switch {
	case t.kind == word && len(t.text) > 1 && t.text[0] == '$':
		p.made.parameters = append(p.made.parameters, t.text[1:])
	case t.kind == template:
		for _, part := range holes(t.text) {
			if tokens, err := lex(t.text[part[0]:part[1]], 0); err == nil {
				for _, t := range tokens {
					p.parameter(t)
				}
			}
		}
	}
}

// holes returns where the expressions of a template begin and end.
func holes(text string) (out [][2]int) {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case strings.HasPrefix(text[i:], "${"):
			j := holeEnd(text, i)
			if j < 0 {
				return out
			}
			out = append(out, [2]int{i + 2, j})
			i = j
		}
	}
	return out
}

func (p *ProjectionParser) fail(at int, message string) error {
	return locate(&Error{place: at + 1, Message: message}, p.Source)
}

// Projection returns the projection of the parts that were parsed.
func (p *ProjectionParser) Projection() *Projection {
	p.made.source = p.Source
	made := p.made
	return &made
}

// Parameters returns the names that the parts have behind a $, some of them more than once.
func (p *Projection) Parameters() []string { return p.parameters }

// WithParameters returns a text in which JSON stands in place of the names behind a $, by a function that returns the JSON of one. The
// text is a part of a projection that was parsed.
func WithParameters(text string, of func(name string) []byte) string {
	tokens, err := lex(text, 0)
	if err != nil {
		return text
	}
	var out strings.Builder
	last := 0
	for i, t := range tokens {
		start := t.place - 1
		switch {
		case t.kind == word && len(t.text) > 1 && t.text[0] == '$' && (i == 0 || tokens[i-1].text != "." && tokens[i-1].text != "?."):
			out.WriteString(text[last:start])
			if raw := of(t.text[1:]); raw != nil {
				out.WriteString("(" + string(raw) + ")")
			} else {
				out.WriteString(t.text)
			}
			last = start + len(t.text)
		case t.kind == template:
			out.WriteString(text[last : start+1])
			from := 0
			for _, hole := range holes(t.text) {
				out.WriteString(t.text[from:hole[0]] + WithParameters(t.text[hole[0]:hole[1]], of))
				from = hole[1]
			}
			out.WriteString(t.text[from:])
			last = start + 1 + len(t.text)
		}
	}
	out.WriteString(text[last:])
	return out.String()
}

// Projected is what a projection is run on.
type Projected struct {
	ID         string
	Document   []byte // JSON with its @metadata: this, and Alias
	Alias      string // "" for none
	Parameters map[string]json.RawMessage
	Loaded     []Loaded
	Limits     Limits
	Take       func(n int64) error // see Input
}

// Loaded is a name for documents that a query loads beside its own.
type Loaded struct {
	Name string
	IDs  []string // "" for a value that is no ID
	List bool     // the name is an array of documents; otherwise it is the first one, or null
}

// Run returns the object that the projection makes of a document, as JSON. Members that are undefined are null in it, as those of a column
// that reaches nothing. What is not there has no members, and no methods: o.Address.City is undefined where there is no Address, and
// o.Lines.map(...) where there are no Lines. left is what the run has left of its limits. Its error is an *Error, or that of ctx.
func (p *Projection) Run(ctx context.Context, in Projected, host Host) (result []byte, left Limits, err error) {
	r := &run{ctx: ctx, host: host, id: in.ID, limits: in.Limits.orDefault(), take: in.Take, lenient: true}
	result, err = r.project(p, in)
	return result, r.limits, locate(err, p.source)
}

func (r *run) project(p *Projection, in Projected) ([]byte, error) {
	this, err := r.decode(in.Document)
	if err != nil {
		return nil, err
	}
	o, is := this.(*object)
	if !is {
		return nil, &Error{Message: "the document is no object"}
	}
	o.id = in.ID
	top := &scope{names: map[string]value{"this": this}}
	if in.Alias != "" {
		top.names[in.Alias] = this
	}
	for name, f := range globals {
		if !writing[name] {
			top.names[name] = f
		}
	}
	for name, o := range namespaces {
		top.names[name] = o
	}
	for name, raw := range in.Parameters {
		if top.names["$"+name], err = r.decode(raw); err != nil {
			return nil, err
		}
	}
	if err := r.load(top, in.Loaded); err != nil {
		return nil, err
	}
	inner := &scope{outer: top, names: make(map[string]value)}
	for _, f := range p.functions {
		if _, err := f.eval(r, inner); err != nil {
			return nil, err
		}
	}
	v, err := p.result.eval(r, inner)
	if err != nil {
		return nil, err
	}
	if _, is := v.(*object); !is {
		return nil, fail(p.place(), "a projection makes an object of each document, and not %s", r.described(v))
	}
	return r.encode(nil, v, 0)
}

// place is where the result begins, as far as it is known.
func (p *Projection) place() int {
	switch n := p.result.(type) {
	case *call:
		return n.place
	case *objectNode:
		return n.place
	}
	return 0
}

// described names a value that is no object.
func (r *run) described(v value) string {
	switch v.(type) {
	case nil:
		return "null"
	case undefinedType:
		return "undefined"
	case *array:
		return "an array"
	}
	return "a " + typeOf(v)
}

// load gives names to the documents that a query loads.
func (r *run) load(top *scope, list []Loaded) error {
	for _, l := range list {
		all := &array{}
		for _, id := range l.IDs {
			v, err := loadOne(r, 0, id)
			if err != nil {
				return err
			}
			all.elements = append(all.elements, v)
		}
		switch {
		case l.List:
			top.names[l.Name] = all
		case len(all.elements) > 0:
			top.names[l.Name] = all.elements[0]
		default:
			top.names[l.Name] = nil
		}
	}
	return nil
}

// writing are the globals that a projection does not have.
var writing = map[string]bool{"put": true, "del": true, "output": true}

// orDefault returns the limits with the defaults in place of those that are 0.
func (l Limits) orDefault() Limits {
	if l.Steps == 0 {
		l.Steps = DefaultLimits.Steps
	}
	if l.Bytes == 0 {
		l.Bytes = DefaultLimits.Bytes
	}
	if l.Calls == 0 {
		l.Calls = DefaultLimits.Calls
	}
	return l
}
