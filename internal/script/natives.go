package script

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// method is a native that is called on a value.
type method func(r *run, place int, this value, args []value) (value, error)

func (m method) on(this value) *function {
	return &function{native: func(r *run, place int, args []value) (value, error) { return m(r, place, this, args) }}
}

// missingGlobals are names in JavaScript or RavenDB that are not supported.
var missingGlobals = map[string]bool{
	"Date": true, "RegExp": true, "Map": true, "Set": true, "Promise": true, "Symbol": true, "Reflect": true, "Proxy": true, "eval": true, "Function": true,
	"console": true, "require": true, "setTimeout": true, "cmpxchg": true, "incrementCounter": true, "deleteCounter": true, "counter": true, "timeseries": true,
	"attachments": true, "archived": true, "spatial": true, "loadPath": true, "include": true, "startsWith": true, "Error": true,
}

// missingMethods are methods of arrays and strings that are not supported.
var missingMethods = map[string]bool{
	"match": true, "matchAll": true, "search": true, "normalize": true, "localeCompare": true, "fill": true, "copyWithin": true, "reduceRight": true,
	"entries": true, "keys": true, "values": true, "codePointAt": true,
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

// eachElement calls a function with the elements of an array, until fn returns false.
func (r *run) eachElement(place int, this value, args []value, what string, fn func(i int, element, result value) (bool, error)) error {
	a := this.(*array)
	f, err := r.argFunction(place, args, what)
	if err != nil {
		return err
	}
	for i := 0; i < len(a.elements); i++ { // the function may change the array
		element := a.elements[i]
		v, err := r.call(place, f, []value{element, int64(i), a})
		if err != nil {
			return err
		}
		if more, err := fn(i, element, v); !more || err != nil {
			return err
		}
	}
	return nil
}

var arrayMethods map[string]method
var textMethods map[string]method
var objectMethods map[string]method
var numberMethods map[string]method
var globals map[string]*function

func init() {
	arrayMethods = map[string]method{
		"push": func(r *run, place int, this value, args []value) (value, error) {
			a := this.(*array)
			a.elements = append(a.elements, args...)
			return int64(len(a.elements)), r.allocate(place, 16*int64(len(args))+int64(len(a.elements)/64))
		},
		"pop": func(r *run, place int, this value, args []value) (value, error) {
			a := this.(*array)
			if len(a.elements) == 0 {
				return undefined, nil
			}
			v := a.elements[len(a.elements)-1]
			a.elements = a.elements[:len(a.elements)-1]
			return v, nil
		},
		"shift": func(r *run, place int, this value, args []value) (value, error) {
			a := this.(*array)
			if len(a.elements) == 0 {
				return undefined, nil
			}
			v := a.elements[0]
			a.elements = slices.Delete(a.elements, 0, 1)
			return v, r.allocate(place, 16*int64(len(a.elements)))
		},
		"unshift": func(r *run, place int, this value, args []value) (value, error) {
			a := this.(*array)
			if err := r.allocate(place, 16*int64(len(a.elements)+len(args))); err != nil {
				return nil, err
			}
			a.elements = slices.Insert(a.elements, 0, args...)
			return int64(len(a.elements)), nil
		},
		"splice": func(r *run, place int, this value, args []value) (value, error) {
			a := this.(*array)
			if err := r.allocate(place, 32*int64(len(a.elements)+len(args))); err != nil {
				return nil, err
			}
			from := clamp(argInt(args, 0, 0), len(a.elements))
			count := len(a.elements) - from
			if len(args) > 1 {
				count = max(0, min(argInt(args, 1, 0), count))
			} else if len(args) == 0 {
				count = 0
			}
			removed := slices.Clone(a.elements[from : from+count])
			var more []value
			if len(args) > 2 {
				more = args[2:]
			}
			a.elements = slices.Replace(a.elements, from, from+count, more...)
			return &array{removed}, nil
		},
		"slice": func(r *run, place int, this value, args []value) (value, error) {
			a := this.(*array)
			from, to := clamp(argInt(args, 0, 0), len(a.elements)), clamp(argInt(args, 1, len(a.elements)), len(a.elements))
			if err := r.allocate(place, 16*int64(max(0, to-from))); err != nil || to <= from {
				return &array{}, err
			}
			return &array{slices.Clone(a.elements[from:to])}, nil
		},
		"concat": func(r *run, place int, this value, args []value) (value, error) {
			out := &array{slices.Clone(this.(*array).elements)}
			for _, v := range args {
				if a, is := v.(*array); is {
					out.elements = append(out.elements, a.elements...)
				} else {
					out.elements = append(out.elements, v)
				}
				if err := r.allocate(place, 16*int64(len(out.elements))); err != nil {
					return nil, err
				}
			}
			return out, r.allocate(place, 16*int64(len(out.elements)))
		},
		"reverse": func(r *run, place int, this value, args []value) (value, error) {
			a := this.(*array)
			slices.Reverse(a.elements)
			return a, r.steps(place, int64(len(a.elements)/16))
		},
		"indexOf": func(r *run, place int, this value, args []value) (value, error) {
			a := this.(*array)
			for i, v := range a.elements {
				if err := r.step(place); err != nil {
					return nil, err
				}
				same, err := r.same(place, v, arg(args, 0), identical)
				if err != nil {
					return nil, err
				}
				if same {
					return int64(i), nil
				}
			}
			return int64(-1), nil
		},
		"join": func(r *run, place int, this value, args []value) (value, error) {
			separator := ","
			if v := arg(args, 0); v != undefined {
				var err error
				if separator, err = r.text(v); err != nil {
					return nil, err
				}
			}
			return r.join(this.(*array), separator, 0)
		},
		"filter": func(r *run, place int, this value, args []value) (value, error) {
			out := &array{}
			return out, r.eachElement(place, this, args, "filter", func(_ int, element, result value) (bool, error) {
				if truth(result) {
					out.elements = append(out.elements, element)
				}
				return true, r.allocate(place, 16)
			})
		},
		"map": func(r *run, place int, this value, args []value) (value, error) {
			out := &array{}
			return out, r.eachElement(place, this, args, "map", func(_ int, _, result value) (bool, error) {
				out.elements = append(out.elements, result)
				return true, r.allocate(place, 16)
			})
		},
		"forEach": func(r *run, place int, this value, args []value) (value, error) {
			return undefined, r.eachElement(place, this, args, "forEach", func(int, value, value) (bool, error) { return true, nil })
		},
		"some": func(r *run, place int, this value, args []value) (value, error) {
			found := false
			err := r.eachElement(place, this, args, "some", func(_ int, _, result value) (bool, error) {
				found = truth(result)
				return !found, nil
			})
			return found, err
		},
		"every": func(r *run, place int, this value, args []value) (value, error) {
			all := true
			err := r.eachElement(place, this, args, "every", func(_ int, _, result value) (bool, error) {
				all = truth(result)
				return all, nil
			})
			return all, err
		},
		"find": func(r *run, place int, this value, args []value) (value, error) {
			found := undefined
			err := r.eachElement(place, this, args, "find", func(_ int, element, result value) (bool, error) {
				if truth(result) {
					found = element
				}
				return !truth(result), nil
			})
			return found, err
		},
		"findIndex": func(r *run, place int, this value, args []value) (value, error) {
			found := int64(-1)
			err := r.eachElement(place, this, args, "findIndex", func(i int, _, result value) (bool, error) {
				if truth(result) {
					found = int64(i)
				}
				return !truth(result), nil
			})
			return found, err
		},
		"reduce": func(r *run, place int, this value, args []value) (value, error) {
			a := this.(*array)
			f, err := r.argFunction(place, args, "reduce")
			if err != nil {
				return nil, err
			}
			i, sum := 0, arg(args, 1)
			if len(args) < 2 {
				if len(a.elements) == 0 {
					return nil, fail(place, "reduce of an empty array needs a first value")
				}
				i, sum = 1, a.elements[0]
			}
			for ; i < len(a.elements); i++ {
				if sum, err = r.call(place, f, []value{sum, a.elements[i], int64(i), a}); err != nil {
					return nil, err
				}
			}
			return sum, nil
		},
		"sort": sortArray,
	}
	arrayMethods["includes"] = func(r *run, place int, this value, args []value) (value, error) {
		i, err := arrayMethods["indexOf"](r, place, this, args)
		return i != int64(-1), err
	}
	initFlat()
	initTexts()
	initGlobals()
}

// sortArray sorts the elements, by their texts or by a function.
func sortArray(r *run, place int, this value, args []value) (value, error) {
	a := this.(*array)
	var failed error
	less := func(x, y value) int {
		if failed != nil {
			return 0
		}
		s, err := r.text(x)
		if err == nil {
			var t string
			if t, err = r.text(y); err == nil {
				failed = r.step(place)
				return strings.Compare(s, t)
			}
		}
		failed = err
		return 0
	}
	if arg(args, 0) != undefined {
		f, err := r.argFunction(place, args, "sort")
		if err != nil {
			return nil, err
		}
		less = func(x, y value) int {
			if failed != nil {
				return 0
			}
			v, err := r.call(place, f, []value{x, y})
			if failed = err; err != nil {
				return 0
			}
			switch n := number(v); {
			case n < 0:
				return -1
			case n > 0:
				return 1
			}
			return 0
		}
	}
	sorted := slices.Clone(a.elements)
	if err := r.allocate(place, 16*int64(len(sorted))); err != nil {
		return nil, err
	}
	slices.SortStableFunc(sorted, less)
	if failed == nil {
		a.elements = sorted
	}
	return a, failed
}

// textMethod returns a method of a string whose arguments are strings.
func textMethod(fn func(r *run, place int, this string, args []string) (value, error)) method {
	return func(r *run, place int, this value, args []value) (value, error) {
		text := this.(string)
		if err := r.allocate(place, int64(len(text))); err != nil {
			return nil, err
		}
		parts := make([]string, len(args))
		for i, v := range args {
			part, err := r.text(v)
			if err != nil {
				return nil, err
			}
			parts[i] = part
		}
		for len(parts) < 2 {
			parts = append(parts, "")
		}
		return fn(r, place, text, parts)
	}
}

// cut returns a method that cuts a string by positions.
func cut(bounds func(args []value, n int) (from, to int)) method {
	return func(r *run, place int, this value, args []value) (value, error) {
		units, err := r.units(place, this.(string))
		if err != nil {
			return nil, err
		}
		from, to := bounds(args, len(units))
		if to <= from {
			return "", nil
		}
		return string(utf16.Decode(units[from:to])), nil
	}
}

func initTexts() {
	textMethods = map[string]method{
		"toUpperCase": textMethod(func(_ *run, _ int, s string, _ []string) (value, error) { return strings.ToUpper(s), nil }),
		"toLowerCase": textMethod(func(_ *run, _ int, s string, _ []string) (value, error) { return strings.ToLower(s), nil }),
		"trim":        textMethod(func(_ *run, _ int, s string, _ []string) (value, error) { return strings.TrimSpace(s), nil }),
		"toString":    textMethod(func(_ *run, _ int, s string, _ []string) (value, error) { return s, nil }),
		"startsWith":  textMethod(func(_ *run, _ int, s string, a []string) (value, error) { return strings.HasPrefix(s, a[0]), nil }),
		"endsWith":    textMethod(func(_ *run, _ int, s string, a []string) (value, error) { return strings.HasSuffix(s, a[0]), nil }),
		"includes":    textMethod(func(_ *run, _ int, s string, a []string) (value, error) { return strings.Contains(s, a[0]), nil }),
		"indexOf": textMethod(func(_ *run, _ int, s string, a []string) (value, error) {
			return unitIndex(s, strings.Index(s, a[0])), nil
		}),
		"lastIndexOf": textMethod(func(_ *run, _ int, s string, a []string) (value, error) {
			return unitIndex(s, strings.LastIndex(s, a[0])), nil
		}),
		"split": func(r *run, place int, this value, args []value) (value, error) {
			text := this.(string)
			if arg(args, 0) == undefined {
				return &array{[]value{text}}, r.allocate(place, 32)
			}
			separator, err := r.text(args[0])
			if err != nil {
				return nil, err
			}
			if err := r.allocate(place, 17*int64(len(text))+64); err != nil {
				return nil, err
			}
			out := &array{}
			if text == "" && separator == "" {
				return out, nil
			}
			for _, part := range strings.Split(text, separator) {
				out.elements = append(out.elements, part)
			}
			return out, nil
		},
		"concat": textMethod(func(r *run, place int, s string, a []string) (value, error) {
			n := int64(len(s))
			for _, part := range a { // all parts may be the same large text
				n += int64(len(part))
			}
			if err := r.allocate(place, n); err != nil {
				return nil, err
			}
			return s + strings.Join(a, ""), nil
		}),
		"repeat": func(r *run, place int, this value, args []value) (value, error) {
			n := argInt(args, 0, 0)
			if n < 0 {
				return nil, fail(place, "repeat needs a number of times")
			}
			if err := r.allocate(place, int64(n)*int64(len(this.(string)))+int64(n)); err != nil {
				return nil, err
			}
			return strings.Repeat(this.(string), n), nil
		},
		"slice": cut(func(args []value, n int) (int, int) {
			return clamp(argInt(args, 0, 0), n), clamp(argInt(args, 1, n), n)
		}),
		"substring": cut(func(args []value, n int) (int, int) {
			from, to := max(0, min(argInt(args, 0, 0), n)), max(0, min(argInt(args, 1, n), n))
			return min(from, to), max(from, to)
		}),
		"substr": cut(func(args []value, n int) (int, int) {
			from := clamp(argInt(args, 0, 0), n)
			return from, from + max(0, min(argInt(args, 1, n), n-from))
		}),
		"charAt": cut(func(args []value, n int) (int, int) {
			i := argInt(args, 0, 0)
			if i < 0 || i >= n {
				return 0, 0
			}
			return i, i + 1
		}),
	}
	replace := func(all bool) method {
		return func(r *run, place int, this value, args []value) (value, error) {
			if _, is := arg(args, 1).(*function); is {
				return nil, &Error{place: place, Message: "replace with a function is not there", Missing: true}
			}
			return textMethod(func(r *run, place int, s string, a []string) (value, error) {
				if strings.Contains(a[1], "$") {
					return nil, &Error{place: place, Message: "replace with a pattern is not there", Missing: true}
				}
				n := 1
				if all {
					n = strings.Count(s, a[0])
				}
				if err := r.allocate(place, int64(len(s))+int64(n)*int64(len(a[1]))); err != nil {
					return nil, err
				}
				return strings.Replace(s, a[0], a[1], n), nil
			})(r, place, this, args)
		}
	}
	textMethods["replace"], textMethods["replaceAll"] = replace(false), replace(true)
	objectMethods = map[string]method{
		"toString": func(r *run, place int, this value, args []value) (value, error) { return r.text(this) },
		"hasOwnProperty": func(r *run, place int, this value, args []value) (value, error) {
			o, is := this.(*object)
			if !is {
				return false, nil
			}
			key, err := r.key(place, arg(args, 0))
			_, found := o.members[key]
			return found, err
		},
	}
	arrayMethods["toString"] = objectMethods["toString"]
	numberMethods = map[string]method{
		"toString": objectMethods["toString"],
		"toFixed": func(r *run, place int, this value, args []value) (value, error) {
			n := argInt(args, 0, 0)
			if n < 0 || n > 100 {
				return nil, fail(place, "toFixed needs 0 to 100 digits")
			}
			return strconv.FormatFloat(number(this), 'f', n, 64), nil
		},
	}
}

// unitIndex converts a position in bytes to one in UTF-16 units.
func unitIndex(s string, i int) int64 {
	if i < 0 {
		return -1
	}
	return int64(len(utf16.Encode([]rune(s[:i]))))
}

func native(fn func(r *run, place int, args []value) (value, error)) *function {
	return &function{native: fn}
}

// rounding returns a function that rounds a number, and leaves integers as they are.
func rounding(fn func(x float64) float64) *function {
	return native(func(_ *run, _ int, args []value) (value, error) {
		if n, is := integer(arg(args, 0)); is {
			return n, nil
		}
		return tidy(fn(number(arg(args, 0)))), nil
	})
}

func absolute(_ *run, _ int, args []value) (value, error) {
	if n, is := integer(arg(args, 0)); is && n != math.MinInt64 {
		return max(n, -n), nil
	}
	return tidy(math.Abs(number(arg(args, 0)))), nil
}

// tidy returns a whole number as an int64, and other numbers unchanged.
func tidy(f float64) value {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 && !(f == 0 && math.Signbit(f)) {
		return int64(f)
	}
	return f
}

// best returns Math.min or Math.max.
func best(operator string, none float64) *function {
	return native(func(r *run, place int, args []value) (value, error) {
		var found value = none
		for i, v := range args {
			if math.IsNaN(number(v)) {
				return math.NaN(), nil
			}
			better, err := r.compare(place, operator, v, found)
			if err != nil {
				return nil, err
			}
			if i == 0 || better == true {
				found = v
			}
		}
		return found, nil
	})
}

func initGlobals() {
	objectOf := func(names map[string]*function) *object {
		o := newObject()
		for name, f := range names {
			o.set(name, f)
		}
		return o
	}
	members := func(r *run, place int, v value) (*object, error) {
		o, is := v.(*object)
		if !is {
			return nil, fail(place, "an object is needed, and a %s is there", typeOf(v))
		}
		return o, r.allocate(place, 64*int64(len(o.names)))
	}
	list := func(fn func(o *object, name string) value) *function {
		return native(func(r *run, place int, args []value) (value, error) {
			o, err := members(r, place, arg(args, 0))
			if err != nil {
				return nil, err
			}
			out := &array{}
			for _, name := range o.names {
				out.elements = append(out.elements, fn(o, name))
			}
			return out, nil
		})
	}
	namespaces = map[string]*object{
		"Math": objectOf(map[string]*function{
			"floor": rounding(math.Floor), "ceil": rounding(math.Ceil), "abs": native(absolute), "trunc": rounding(math.Trunc),
			"round": rounding(func(x float64) float64 { return math.Floor(x + 0.5) }),
			"sqrt":  native(func(_ *run, _ int, args []value) (value, error) { return tidy(math.Sqrt(number(arg(args, 0)))), nil }),
			"pow": native(func(_ *run, _ int, args []value) (value, error) {
				return tidy(math.Pow(number(arg(args, 0)), number(arg(args, 1)))), nil
			}),
			"sign": native(func(_ *run, _ int, args []value) (value, error) {
				f := number(arg(args, 0))
				switch {
				case f > 0:
					return int64(1), nil
				case f < 0:
					return int64(-1), nil
				}
				return tidy(f), nil
			}),
			"max": best(">", math.Inf(-1)), "min": best("<", math.Inf(1)),
			"random": native(func(_ *run, place int, _ []value) (value, error) {
				return nil, &Error{place: place, Message: "Math.random is not there", Missing: true}
			}),
		}),
		"Object": objectOf(map[string]*function{
			"keys":   list(func(_ *object, name string) value { return name }),
			"values": list(func(o *object, name string) value { return o.members[name] }),
			"entries": list(func(o *object, name string) value {
				return &array{[]value{name, o.members[name]}}
			}),
			"assign": native(func(r *run, place int, args []value) (value, error) {
				to, err := members(r, place, arg(args, 0))
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
	globals = map[string]*function{
		"Number": native(func(_ *run, _ int, args []value) (value, error) {
			if v := arg(args, 0); isNumber(v) {
				return v, nil
			}
			return tidy(number(arg(args, 0))), nil
		}),
		"String":  native(func(r *run, _ int, args []value) (value, error) { return r.text(arg(args, 0)) }),
		"Boolean": native(func(_ *run, _ int, args []value) (value, error) { return truth(arg(args, 0)), nil }),
		"isNaN":   native(func(_ *run, _ int, args []value) (value, error) { return math.IsNaN(number(arg(args, 0))), nil }),
		"parseInt": native(func(r *run, place int, args []value) (value, error) {
			return r.parse(place, args, func(c byte, i int) bool { return c >= '0' && c <= '9' || i == 0 && (c == '-' || c == '+') })
		}),
		"parseFloat": native(func(r *run, place int, args []value) (value, error) {
			dot := false
			return r.parse(place, args, func(c byte, i int) bool {
				if c == '.' && !dot {
					dot = true
					return true
				}
				return c >= '0' && c <= '9' || i == 0 && (c == '-' || c == '+')
			})
		}),
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
	return o == namespaces["Math"] || o == namespaces["JSON"] || o == namespaces["Object"] || o == namespaces["Array"]
}

// parse parses the number at the beginning of a string.
func (r *run) parse(place int, args []value, takes func(c byte, i int) bool) (value, error) {
	text, err := r.text(arg(args, 0))
	if err != nil {
		return nil, err
	}
	if err := r.steps(place, int64(len(text))/64); err != nil {
		return nil, err
	}
	text = strings.TrimSpace(text)
	n := 0
	for n < len(text) && takes(text[n], n) {
		n++
	}
	f, err := strconv.ParseFloat(text[:n], 64)
	if err != nil {
		return math.NaN(), nil
	}
	return tidy(f), nil
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
