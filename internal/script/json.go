package script

import "encoding/json"

// jsonMethods are the functions of JSON.
func jsonMethods() map[string]*function {
	return map[string]*function{
		"stringify": native(func(r *run, place int, args []value) (value, error) {
			if arg(args, 1) != undefined && arg(args, 1) != nil || arg(args, 2) != undefined {
				return nil, &Error{place: place, Message: "JSON.stringify with a replacer or with blanks is not there", Missing: true}
			}
			switch arg(args, 0).(type) {
			case undefinedType, *function:
				return undefined, nil
			}
			lenient := r.lenient
			r.lenient = false // members that are undefined are left out
			defer func() { r.lenient = lenient }()
			raw, err := r.encode(nil, arg(args, 0), 0)
			return string(raw), err
		}),
		"parse": native(func(r *run, place int, args []value) (value, error) {
			text, err := r.text(arg(args, 0))
			if err != nil {
				return nil, err
			}
			if !json.Valid([]byte(text)) {
				return nil, fail(place, "JSON.parse: %.100q is no JSON", text)
			}
			return r.decode([]byte(text))
		}),
	}
}

// flatten appends the elements of an array, with those of arrays in it, to a depth.
func (r *run) flatten(place int, to *array, from []value, depth int) error {
	for _, v := range from {
		if inner, is := v.(*array); is && depth > 0 {
			if err := r.flatten(place, to, inner.elements, depth-1); err != nil {
				return err
			}
			continue
		}
		to.elements = append(to.elements, v)
		if err := r.allocate(place, 16); err != nil {
			return err
		}
	}
	return r.step(place)
}

// initFlat adds the methods that flatten arrays.
func initFlat() {
	arrayMethods["flat"] = func(r *run, place int, this value, args []value) (value, error) {
		out := &array{}
		return out, r.flatten(place, out, this.(*array).elements, min(argInt(args, 0, 1), maxNesting))
	}
	arrayMethods["flatMap"] = func(r *run, place int, this value, args []value) (value, error) {
		out := &array{}
		return out, r.eachElement(place, this, args, "flatMap", func(_ int, _, result value) (bool, error) {
			return true, r.flatten(place, out, []value{result}, 1)
		})
	}
	arrayMethods["at"] = func(_ *run, _ int, this value, args []value) (value, error) {
		a, i := this.(*array), argInt(args, 0, 0)
		if i < 0 {
			i += len(a.elements)
		}
		if i < 0 || i >= len(a.elements) {
			return undefined, nil
		}
		return a.elements[i], nil
	}
}
