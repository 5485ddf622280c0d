package jsonpath

// Get returns the raw value at the path, or the first of its values if the path
// has a [] step. It is strict: see the package documentation. The value shares
// memory with the body.
func Get(body []byte, p Path) (raw []byte, found bool) {
	if !p.FansOut() {
		return reach(body, p.steps)
	}
	Each(body, p, func(value []byte) bool {
		raw, found = value, true
		return false
	})
	return raw, found
}

// Each calls fn with every value at the path, in document order, until fn returns
// false. It is strict: a member step finds nothing in an array. The values are raw
// and share memory with the body.
func Each(body []byte, p Path, fn func(raw []byte) bool) { each(body, p.steps, false, fn) }

// EachLoose is Each, but a member step on an array applies to every element, also
// of nested arrays, as in queries and indexes. An array at the end of the path is
// one value.
func EachLoose(body []byte, p Path, fn func(raw []byte) bool) { each(body, p.steps, true, fn) }

// reach returns the value at the end of steps, none of which is Every.
func reach(value []byte, steps []Step) ([]byte, bool) {
	for _, s := range steps {
		var found bool
		if value, found = step(value, s); !found {
			return nil, false
		}
	}
	return value, true
}

// step takes one step that leads to at most one value.
func step(value []byte, s Step) ([]byte, bool) {
	if s.Kind == Member {
		return FindMember(value, s.Name)
	}
	for i, element := range Elements(value) {
		if i == s.Index {
			return element, true
		}
	}
	return nil, false
}

// FindMember returns the raw value of a member of an object.
func FindMember(object []byte, name string) (value []byte, found bool) {
	if len(object) == 0 || object[0] != '{' {
		return nil, false
	}
	for i := 1; i < len(object) && object[i] == '"'; i++ {
		colon, escapes := keyEnd(object, i)
		end := Skip(object, colon+1)
		if end > len(object) {
			return nil, false
		}
		same := !escapes && string(object[i+1:colon-1]) == name || escapes && sameKey(object[i:colon], name)
		if same {
			return object[colon+1 : end], true
		}
		i = end
	}
	return nil, false
}

// each calls fn with the values that steps lead to from value. It returns false if
// fn did.
func each(value []byte, steps []Step, loose bool, fn func(raw []byte) bool) bool {
	for n, s := range steps {
		if KindOf(value) == Array && (s.Kind == Every || loose && s.Kind == Member) {
			rest := steps[n:] // a member step applies to each element
			if s.Kind == Every {
				rest = steps[n+1:]
			}
			for _, element := range Elements(value) {
				if !each(element, rest, loose, fn) {
					return false
				}
			}
			return true
		}
		if s.Kind == Every {
			return true
		}
		var found bool
		if value, found = step(value, s); !found {
			return true
		}
	}
	return fn(value)
}
