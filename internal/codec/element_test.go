package codec_test

import (
	"reflect"
	"testing"

	"github.com/jaydb/jay/internal/codec"
)

type loop *loop

// Ensure that what a type holds is found behind pointers and lists, up to a type that stops, and that a type that holds itself has an end.
func TestElement(t *testing.T) {
	t.Parallel()
	isList := func(t reflect.Type) bool { return t.Kind() == reflect.Slice }
	for _, test := range []struct {
		name      string
		got, want reflect.Type
	}{
		{"pointers and lists", codec.Element(reflect.TypeFor[*[]*[2]int](), nil), reflect.TypeFor[int]()},
		{"a type that stops", codec.Element(reflect.TypeFor[*[]*int](), isList), reflect.TypeFor[[]*int]()},
		{"no map", codec.Element(reflect.TypeFor[[]map[string]int](), nil), reflect.TypeFor[map[string]int]()},
		{"a list of itself", codec.Element(reflect.TypeFor[list](), nil), reflect.TypeFor[list]()},
		{"pointers", codec.Pointed(reflect.TypeFor[**[]int]()), reflect.TypeFor[[]int]()},
		{"a pointer to itself", codec.Pointed(reflect.TypeFor[loop]()), reflect.TypeFor[loop]()},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, test.got, test.want)
		}
	}
}
