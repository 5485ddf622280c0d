package script

import (
	"math"
	"strconv"
	"strings"
)

// method is a native that is called on a value.
type method func(r *run, place int, this value, args []value) (value, error)

func (m method) on(this value) *function {
	return &function{native: func(r *run, place int, args []value) (value, error) { return m(r, place, this, args) }}
}

// missingGlobals are names in JavaScript or RavenDB that are not supported.
var missingGlobals = map[string]bool{
	"RegExp": true, "Map": true, "Set": true, "Promise": true, "Symbol": true, "Reflect": true, "Proxy": true, "eval": true, "Function": true,
	"console": true, "require": true, "setTimeout": true, "cmpxchg": true, "incrementCounter": true, "deleteCounter": true, "counter": true, "timeseries": true,
	"attachments": true, "archived": true, "spatial": true, "loadPath": true, "include": true, "startsWith": true, "Error": true,
}

// missingMethods are methods of arrays and strings that are not supported.
var missingMethods = map[string]bool{
	"match": true, "matchAll": true, "search": true, "normalize": true, "localeCompare": true, "fill": true, "copyWithin": true, "reduceRight": true,
	"entries": true, "keys": true, "values": true, "codePointAt": true, "findLast": true, "findLastIndex": true, "toSorted": true, "toReversed": true, "toSpliced": true, "with": true,
	"toLocaleString": true, "toLocaleUpperCase": true, "toLocaleLowerCase": true, "isWellFormed": true, "toWellFormed": true,
}

func arg(args []value, i int) value {
	if i < len(args) {
		return args[i]
	}
	return undefined
}

// argInt returns an argument as a clamped whole number, or otherwise if it is undefined.
func argInt(args []value, i, otherwise int) int {
	v := arg(args, i)
	if v == undefined {
		return otherwise
	}
	f := number(v)
	switch {
	case math.IsNaN(f):
		return 0
	case f > math.MaxInt32:
		return math.MaxInt32
	case f < math.MinInt32:
		return math.MinInt32
	}
	return int(f)
}

// article returns a word with its article.
func article(word string) string {
	if strings.ContainsRune("aeiou", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}

// clamp returns the position of 0 to n that i stands for; a negative i counts from the
// end.
func clamp(i, n int) int {
	if i < 0 {
		i += n
	}
	return max(0, min(i, n))
}

func (r *run) argFunction(place int, args []value, what string) (*function, error) {
	f, is := arg(args, 0).(*function)
	if !is {
		return nil, fail(place, "%s needs a function", what)
	}
	return f, nil
}

var arrayMethods map[string]method
var textMethods map[string]method
var objectMethods map[string]method
var numberMethods map[string]method
var globals map[string]*function

func init() {
	initArrays()
	initObjects()
	initTexts()
	initGlobals()
}

func initObjects() {
	objectMethods = map[string]method{
		"toString": func(r *run, place int, this value, args []value) (value, error) { return r.text(this) },
		"hasOwnProperty": func(r *run, place int, this value, args []value) (value, error) {
			key, err := r.key(place, arg(args, 0))
			switch o := this.(type) {
			case *object:
				_, found := o.members[key]
				return found, err
			case *array:
				i, is := position(key)
				return is && i < len(o.elements) || key == "length", err
			}
			return false, err
		},
	}
	arrayMethods["toString"], arrayMethods["hasOwnProperty"] = objectMethods["toString"], objectMethods["hasOwnProperty"]
	numberMethods = map[string]method{
		"toString": numberToString,
		"toFixed":  toFixed,
	}
}

// eachMember calls fn with the members of an object, or the elements of an array or a text.
func (r *run) eachMember(place int, of value, fn func(name string, v value)) error {
	switch o := of.(type) {
	case *object:
		if err := r.allocate(place, 64*int64(len(o.names))); err != nil {
			return err
		}
		for _, name := range o.names {
			fn(name, o.members[name])
		}
		return nil
	case nil, undefinedType:
		return fail(place, "an object is needed, and there is %s", typeOf(of))
	case *array:
		if err := r.allocate(place, 64*int64(len(o.elements))); err != nil {
			return err
		}
		for i, v := range o.elements {
			fn(strconv.Itoa(i), v)
		}
	case string:
		units, err := r.units(place, o)
		if err == nil {
			err = r.allocate(place, 64*int64(len(units)))
		}
		if err != nil {
			return err
		}
		for i := range units {
			fn(strconv.Itoa(i), textOf(units[i:i+1]))
		}
	}
	return nil
}

func native(fn func(r *run, place int, args []value) (value, error)) *function {
	return &function{native: fn}
}

func initGlobals() {
	objectOf := func(names map[string]*function) *object {
		o := newObject()
		for name, f := range names {
			o.set(name, f)
		}
		return o
	}
	list := func(fn func(name string, v value) value) *function {
		return native(func(r *run, place int, args []value) (value, error) {
			out := &array{}
			return out, r.eachMember(place, arg(args, 0), func(name string, v value) { out.elements = append(out.elements, fn(name, v)) })
		})
	}
	namespaces = map[string]*object{
		"Math": objectOf(map[string]*function{
			"floor": rounding(math.Floor), "ceil": rounding(math.Ceil), "abs": native(absolute), "trunc": rounding(math.Trunc),
			"round": rounding(round), "sign": native(sign),
			"sqrt": native(func(_ *run, _ int, args []value) (value, error) { return tidy(math.Sqrt(number(arg(args, 0)))), nil }),
			"pow": native(func(_ *run, _ int, args []value) (value, error) {
				return tidy(power(number(arg(args, 0)), number(arg(args, 1)))), nil
			}),
			"max": best(">", math.Inf(-1)), "min": best("<", math.Inf(1)),
			"random": native(func(_ *run, place int, _ []value) (value, error) {
				return nil, &Error{place: place, Message: "Math.random is not there", Missing: true}
			}),
		}),
		"Object": objectOf(map[string]*function{
			"keys":    list(func(name string, _ value) value { return name }),
			"values":  list(func(_ string, v value) value { return v }),
			"entries": list(func(name string, v value) value { return &array{[]value{name, v}} }),
			"assign": native(func(r *run, place int, args []value) (value, error) {
				to, is := arg(args, 0).(*object)
				if !is {
					return nil, fail(place, "Object.assign needs an object, and there is %s", article(typeOf(arg(args, 0))))
				}
				var err error
				for _, from := range args[min(1, len(args)):] {
					if err == nil {
						err = r.assignAll(place, to, from)
					}
				}
				return to, err
			}),
		}),
		"JSON": objectOf(jsonMethods()),
		"Array": objectOf(map[string]*function{
			"isArray": native(func(_ *run, _ int, args []value) (value, error) {
				_, is := arg(args, 0).(*array)
				return is, nil
			}),
		}),
	}
	namespaces["Date"] = objectOf(map[string]*function{
		"parse": native(parseMilliseconds),
		"now": native(func(_ *run, place int, _ []value) (value, error) {
			return nil, &Error{place: place, Message: "Date.now is not there", Missing: true}
		}),
	})
	namespaces["Object"].set("getOwnPropertyNames", namespaces["Object"].members["keys"])
	globals = map[string]*function{
		"Number": native(func(_ *run, _ int, args []value) (value, error) {
			if len(args) == 0 {
				return int64(0), nil
			}
			if v := args[0]; isNumber(v) {
				return v, nil
			}
			return tidy(number(arg(args, 0))), nil
		}),
		"String": native(func(r *run, _ int, args []value) (value, error) {
			if len(args) == 0 {
				return "", nil
			}
			return r.text(args[0])
		}),
		"Boolean":      native(func(_ *run, _ int, args []value) (value, error) { return truth(arg(args, 0)), nil }),
		"isNaN":        native(func(_ *run, _ int, args []value) (value, error) { return math.IsNaN(number(arg(args, 0))), nil }),
		"parseInt":     native(parseInt),
		"parseFloat":   native(parseFloat),
		"Raven_Max":    better(">"),
		"Raven_Min":    better("<"),
		"id":           native(func(r *run, place int, args []value) (value, error) { return r.idOf(place, args) }),
		"getMetadata":  native(metadataOf),
		"lastModified": native(lastModified),
		"output":       native(output),
		"load":         native(load),
		"put":          native(put),
		"del":          native(del),
	}
}

// namespaces are the globals that are objects.
var namespaces map[string]*object

// namespace reports whether an object is one of namespaces, which all runs share.
func namespace(o *object) bool {
	return o == namespaces["Math"] || o == namespaces["JSON"] || o == namespaces["Object"] || o == namespaces["Array"] || o == namespaces["Date"]
}

// maxOutput bounds the lines of output.
const maxOutput = 1000

func output(r *run, place int, args []value) (value, error) {
	if len(r.output) == maxOutput {
		return nil, fail(place, "the script has more than %d lines of output", maxOutput)
	}
	v := arg(args, 0)
	text, is := v.(string)
	if !is {
		raw, err := r.encode(nil, v, 0)
		if err != nil {
			return nil, err
		}
		text = string(raw)
	}
	r.output = append(r.output, text)
	return undefined, r.allocate(place, int64(len(text)))
}

func (r *run) idOf(place int, args []value) (value, error) {
	o, is := arg(args, 0).(*object)
	switch {
	case len(args) == 0:
		return r.id, nil
	case !is:
		return nil, nil
	case o.id != "":
		return o.id, nil
	}
	return nil, nil
}

func metadataOf(r *run, place int, args []value) (value, error) {
	o, is := arg(args, 0).(*object)
	if !is {
		return nil, fail(place, "getMetadata needs a document")
	}
	meta, is := o.get("@metadata").(*object)
	if !is && namespace(o) {
		return nil, fail(place, "getMetadata needs a document")
	}
	if !is {
		meta = newObject()
		o.set("@metadata", meta)
	}
	return meta, nil
}

func lastModified(r *run, place int, args []value) (value, error) {
	meta, err := metadataOf(r, place, args)
	if err != nil {
		return nil, err
	}
	return meta.(*object).get("@last-modified"), nil
}

// load returns a document, or several.
func load(r *run, place int, args []value) (value, error) {
	list, is := arg(args, 0).(*array)
	if !is {
		return loadOne(r, place, arg(args, 0))
	}
	if err := r.allocate(place, 64*int64(len(list.elements))); err != nil {
		return nil, err
	}
	out := &array{}
	for _, id := range list.elements {
		v, err := loadOne(r, place, id)
		if err != nil {
			return nil, err
		}
		out.elements = append(out.elements, v)
	}
	return out, nil
}

// loadOne returns a document, or null for a value that is no ID. It does not descend into
// arrays, which could contain themselves.
func loadOne(r *run, place int, of value) (value, error) {
	id, is := of.(string)
	if !is || id == "" {
		return nil, nil
	}
	if err := r.reach(place); err != nil {
		return nil, err
	}
	text, err := r.host.Load(id)
	if err != nil {
		return nil, hostError(place, err)
	}
	if text == nil {
		return nil, nil
	}
	v, err := r.decode(text)
	if o, is := v.(*object); is {
		o.id = id
	}
	return v, err
}

func hostError(place int, err error) error {
	return &Error{place: place, Message: err.Error(), Cause: err}
}

// put stores a document.
func put(r *run, place int, args []value) (value, error) {
	id, is := arg(args, 0).(string)
	if _, document := arg(args, 1).(*object); !is || !document {
		return nil, fail(place, "put needs an ID and an object")
	}
	version := ""
	if v := arg(args, 2); v != nil && v != undefined {
		var is bool
		if version, is = v.(string); !is {
			return nil, fail(place, "the change vector of put must be text")
		}
	}
	if err := r.reach(place); err != nil {
		return nil, err
	}
	text, err := r.encode(nil, args[1], 0)
	if err != nil {
		return nil, err
	}
	stored, err := r.host.Put(id, text, version)
	if err != nil {
		return nil, hostError(place, err)
	}
	return stored, nil
}

// del deletes a document.
func del(r *run, place int, args []value) (value, error) {
	id, is := arg(args, 0).(string)
	if !is || id == "" {
		return nil, fail(place, "del needs an ID")
	}
	if err := r.reach(place); err != nil {
		return nil, err
	}
	found, err := r.host.Delete(id)
	if err != nil {
		return nil, hostError(place, err)
	}
	return found, nil
}
