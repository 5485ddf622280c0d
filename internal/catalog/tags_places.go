package catalog

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/errs"
)

// placesKind is the kind of the indexes that the tags "place", "latitude" and "longitude" declare: that of package places.
const placesKind = "places"

// pair is a place of two numbers, of which a tag is still to come, or both have come.
type pair struct {
	key    string // the struct that they are in, and the name of their index
	fields [2]string
	paths  [2]string // of the latitude and of the longitude
}

// halves are the tags of a pair.
var halves = [2]string{"latitude", "longitude"}

// isList returns 1 for a type whose values are lists in JSON, and 0 for others.
func isList(t reflect.Type) int {
	if t = codec.Pointed(t); t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		return 1
	}
	return 0
}

// isNumeric reports whether a field has a number, or a pointer to one.
func isNumeric(t reflect.Type) bool {
	t = codec.Pointed(t)
	k := t.Kind()
	return k >= reflect.Int && k <= reflect.Uint64 || k == reflect.Float32 || k == reflect.Float64 || t == reflect.TypeFor[json.Number]()
}

// putPlace adds an index of the places of a field, or half of a pair.
func (t *tagged) putPlace(f reflect.StructField, kind, name, path string) error {
	wrong := func(why string) error {
		return fmt.Errorf("%w: field %s: %q in its jay tag: %s", errs.ErrIndex, f.Name, kind, why)
	}
	if kind == "place" {
		if codec.IsTimeType(f.Type) || isNumeric(f.Type) {
			return wrong("a place is a text of WKT or an object of GeoJSON; two numbers have latitude and longitude")
		}
		t.indexes, t.names = append(t.indexes, index.Index{Name: name, Kind: placesKind, Fields: []string{path}}), append(t.names, []string{path})
		return nil
	}
	switch {
	case !isNumeric(f.Type):
		return wrong("it is of a number")
	case t.lists > 0:
		return wrong("each element of a list has one: its place is a text of WKT or an object of GeoJSON")
	}
	half := 0
	if kind == halves[1] {
		half = 1
	}
	key := path[:strings.LastIndexByte(path, '.')+1] + "\x00" + name
	p := t.pairOf(key)
	if p.fields[half] != "" {
		return wrong("the field " + p.fields[half] + " has it, too: pairs have names, such as " + kind + "=home")
	}
	p.fields[half], p.paths[half] = f.Name, path
	if p.fields[0] != "" && p.fields[1] != "" {
		point := "spatial.point(" + p.paths[0] + ", " + p.paths[1] + ")"
		t.indexes, t.names = append(t.indexes, index.Index{Name: name, Kind: placesKind, Fields: []string{point}}), append(t.names, []string{point})
	}
	return nil
}

// pairOf returns the pair of a key, or a new one.
func (t *tagged) pairOf(key string) *pair {
	for _, p := range t.pairs {
		if p.key == key {
			return p
		}
	}
	t.pairs = append(t.pairs, &pair{key: key})
	return t.pairs[len(t.pairs)-1]
}

// checkPairs refuses a latitude without a longitude, and the other way round.
func (t *tagged) checkPairs() error {
	for _, p := range t.pairs {
		for i, name := range p.fields {
			if name == "" {
				return fmt.Errorf("%w: field %s: %q in its jay tag: no field of the struct has %s", errs.ErrIndex, p.fields[1-i], halves[1-i], halves[i])
			}
		}
	}
	return nil
}
