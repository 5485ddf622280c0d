package codec

import "reflect"

// maxElements is how many pointers and lists are followed to what they hold: a type may be one of itself, as type T []T is.
const maxElements = 100

// Element returns what a value of t holds behind pointers, slices and arrays, or the first type on the way there for which stops is true; nil stops
// nowhere. Of a type that is a list of itself it returns such a list.
func Element(t reflect.Type, stops func(reflect.Type) bool) reflect.Type {
	for n := 0; n < maxElements && (stops == nil || !stops(t)); n++ {
		if k := t.Kind(); k != reflect.Pointer && k != reflect.Slice && k != reflect.Array {
			break
		}
		t = t.Elem()
	}
	return t
}

// Pointed returns what t points to, through any number of pointers. Of a type that is a pointer to itself it returns such a pointer.
func Pointed(t reflect.Type) reflect.Type {
	return Element(t, func(t reflect.Type) bool { return t.Kind() != reflect.Pointer })
}
