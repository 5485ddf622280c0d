package script

import (
	"math"
	"slices"
)

// eachElement calls a function with the elements of an array, until fn returns false. What the function adds is not reached, and what it has removed is
// skipped.
func (r *run) eachElement(place int, this value, args []value, what string, fn func(i int, element, result value) (bool, error)) error {
	a := this.(*array)
	f, err := r.argFunction(place, args, what)
	if err != nil {
		return err
	}
	for i := range len(a.elements) {
		if i >= len(a.elements) {
			return nil
		}
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

// firstElement returns the first element for which a function returns a true value, and its place; undefined and -1 if there is none. What the function
// adds is not reached, and what it has removed is undefined.
func (r *run) firstElement(place int, this value, args []value, what string) (i int, element value, err error) {
	a := this.(*array)
	f, err := r.argFunction(place, args, what)
	if err != nil {
		return -1, undefined, err
	}
	for i := range len(a.elements) {
		element := undefined
		if i < len(a.elements) {
			element = a.elements[i]
		}
		v, err := r.call(place, f, []value{element, int64(i), a})
		if err != nil || truth(v) {
			return i, element, err
		}
	}
	return -1, undefined, nil
}

// sortArray sorts the elements, by their texts or by a function. Those that are undefined come last.
func sortArray(r *run, place int, this value, args []value) (value, error) {
	a := this.(*array)
	var failed error
	compare := func(x, y value) (int, error) {
		s, err := r.text(x)
		if err != nil {
			return 0, err
		}
		t, err := r.text(y)
		if err != nil {
			return 0, err
		}
		return compareTexts(s, t), r.step(place)
	}
	if arg(args, 0) != undefined {
		f, err := r.argFunction(place, args, "sort")
		if err != nil {
			return nil, err
		}
		compare = func(x, y value) (int, error) {
			v, err := r.call(place, f, []value{x, y})
			switch n := number(v); {
			case n < 0:
				return -1, err
			case n > 0:
				return 1, err
			}
			return 0, err
		}
	}
	sorted := slices.Clone(a.elements)
	if err := r.allocate(place, 16*int64(len(sorted))); err != nil {
		return nil, err
	}
	slices.SortStableFunc(sorted, func(x, y value) (n int) {
		switch {
		case failed != nil || x == undefined && y == undefined:
			return 0
		case x == undefined:
			return 1
		case y == undefined:
			return -1
		}
		n, failed = compare(x, y)
		return n
	})
	if failed == nil {
		a.elements = sorted
	}
	return a, failed
}

// index returns the first place from one on at which an array has a value, or -1.
func (r *run) index(place int, a *array, v value, from int, compare func(a, b value) bool) (int, error) {
	for i := from; i < len(a.elements); i++ {
		if err := r.step(place); err != nil {
			return 0, err
		}
		if same, err := r.same(place, a.elements[i], v, compare); same || err != nil {
			return i, err
		}
	}
	return -1, nil
}

// elements returns what for and ... take one by one: the elements of an array, or the characters of a text. The array keeps its own.
func (r *run) elements(place int, of value) ([]value, error) {
	switch of := of.(type) {
	case *array:
		return of.elements, nil
	case string:
		if err := r.allocate(place, 16*int64(len(of))); err != nil {
			return nil, err
		}
		var list []value
		for i := 0; i < len(of); {
			_, size := characterAt(of, i)
			list = append(list, of[i:i+size])
			i += size
		}
		return list, nil
	}
	return nil, fail(place, "%s has no elements", article(typeOf(of)))
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

func initArrays() {
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
			i, err := r.index(place, a, arg(args, 0), clamp(argInt(args, 1, 0), len(a.elements)), identical)
			return int64(i), err
		},
		"lastIndexOf": func(r *run, place int, this value, args []value) (value, error) {
			a := this.(*array)
			to := len(a.elements)
			if len(args) > 1 {
				if to = argInt(args, 1, 0); to < 0 {
					to += len(a.elements)
				}
				to = min(to+1, len(a.elements))
			}
			for i := to - 1; i >= 0; i-- {
				if same, err := r.same(place, a.elements[i], arg(args, 0), identical); same || err != nil {
					return int64(i), err
				}
				if err := r.step(place); err != nil {
					return nil, err
				}
			}
			return int64(-1), nil
		},
		"includes": func(r *run, place int, this value, args []value) (value, error) {
			a := this.(*array)
			i, err := r.index(place, a, arg(args, 0), clamp(argInt(args, 1, 0), len(a.elements)), func(x, y value) bool {
				return identical(x, y) || isNumber(x) && isNumber(y) && math.IsNaN(number(x)) && math.IsNaN(number(y))
			})
			return i >= 0, err
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
			n := len(this.(*array).elements)
			if err := r.allocate(place, 16*int64(n)); err != nil {
				return nil, err
			}
			out := &array{slices.Repeat([]value{undefined}, n)}
			return out, r.eachElement(place, this, args, "map", func(i int, _, result value) (bool, error) {
				out.elements[i] = result
				return true, nil
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
			_, element, err := r.firstElement(place, this, args, "find")
			return element, err
		},
		"findIndex": func(r *run, place int, this value, args []value) (value, error) {
			i, _, err := r.firstElement(place, this, args, "findIndex")
			return int64(i), err
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
