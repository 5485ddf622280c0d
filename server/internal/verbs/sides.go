package verbs

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/query"
)

// placesName ends the names of indexes of places. A number follows from the second one of a collection.
const placesName = "::places"

// Sides returns the indexes that the definition has beside those of its values.
func (d *Definition) Sides() []SideIndex {
	return slices.Concat(d.WordsIndexes(), d.placesIndexes(), d.vectorsIndexes())
}

// placesIndexes returns an index of places for each member that is one, in each collection of the maps. Elements of arrays have none: queries look at
// documents.
func (d *Definition) placesIndexes() (list []SideIndex) {
	d.eachMember(func(m index.Map, one index.Member) {
		if m.Collection == "" || m.Each != "" || !slices.Contains(d.Places, one.Name) {
			return
		}
		path, is := pathOf(m, one)
		if !is {
			if f, err := query.ParseExpression(one.Expression); err != nil || !f.IsPoint() || f.Loads() {
				return
			}
			path = one.Expression
		}
		list = appendSide(list, m.Collection, path, jay.Index{Name: d.Name + placesName, Kind: "places"})
	})
	return list
}

// appendSide appends an index of one field, unless the collection has it in the list. From the second one of a collection on, a number ends the name.
func appendSide(list []SideIndex, collection, field string, ix jay.Index) []SideIndex {
	n := 1
	for _, other := range list {
		if !strings.EqualFold(other.Collection, collection) {
			continue
		}
		if other.Fields[0] == field {
			return list
		}
		n++
	}
	if n > 1 {
		ix.Name += fmt.Sprint(n)
	}
	ix.Fields = []string{field}
	return append(list, SideIndex{Collection: collection, Index: ix})
}

// vectorsName ends the names of indexes of vectors, as placesName does.
const vectorsName = "::vectors"

// vectorsIndexes returns an index of vectors for each member that is one of numbers, and whose dimensions the definition says, in each collection of the maps. Of other
// forms, and of elements of arrays, there are none: queries look at documents. Documents with other vectors are not refused, as RavenDB refuses none.
func (d *Definition) vectorsIndexes() (list []SideIndex) {
	options := d.Options()
	d.eachMember(func(m index.Map, one index.Member) {
		o := options.Of(one.Name)
		path, is := pathOf(m, one)
		if is && m.Collection != "" && o.Form == "f32" && o.Dimensions > 0 {
			list = appendSide(list, m.Collection, path, jay.Index{Name: d.Name + vectorsName, Kind: "vectors",
				Options: map[string]string{"dimensions": fmt.Sprint(o.Dimensions), "strict": "no"}})
		}
	})
	return list
}

// EnsureSides makes sure that the indexes of words, places and vectors are there. One of another declaration is replaced.
func (d *Definition) EnsureSides(ctx context.Context, db *jay.DB) error {
	for _, one := range d.Sides() {
		if err := db.EnsureIndex(ctx, one.Collection, one.Index, jay.ReplaceIndex()); err != nil {
			return err
		}
	}
	return nil
}

// GivenSpatial has the options of a place as clients send them. Answers are exact in Jay, so what only says how an index is made may be anything.
type GivenSpatial struct {
	Type         *string
	Strategy     *string
	MaxTreeLevel *int
	MinX, MaxX   *float64
	MinY, MaxY   *float64
	Units        *string
}

// maxTreeLevel is the most that RavenDB has, of its two trees.
const maxTreeLevel = 50

// Check refuses options that would change answers. The error says which there are not.
func (g *GivenSpatial) Check() error {
	for _, one := range []struct {
		what, given string
		only        []string
	}{
		{"the type", textOf(g.Type), []string{"Geography"}},
		{"the strategy", textOf(g.Strategy), []string{"GeohashPrefixTree", "QuadPrefixTree"}},
		{"the units", textOf(g.Units), []string{"Kilometers"}},
	} {
		if one.given != "" && !slices.ContainsFunc(one.only, func(s string) bool { return strings.EqualFold(s, one.given) }) {
			hint := ""
			if one.what == "the units" {
				hint = ": a query may name miles"
			}
			return fmt.Errorf("%s %.50s of places, and not %s%s", one.what, one.given, strings.Join(one.only, " or "), hint)
		}
	}
	if g.MaxTreeLevel != nil && (*g.MaxTreeLevel < 0 || *g.MaxTreeLevel > maxTreeLevel) {
		return fmt.Errorf("the level %d of places, and not one from 0 to %d", *g.MaxTreeLevel, maxTreeLevel)
	}
	for _, one := range []struct {
		what  string
		given *float64
		whole float64
	}{{"MinX", g.MinX, -180}, {"MaxX", g.MaxX, 180}, {"MinY", g.MinY, -90}, {"MaxY", g.MaxY, 90}} {
		if one.given != nil && *one.given != 0 && math.Abs(*one.given-one.whole) > 1e-9 {
			return fmt.Errorf("the bound %s = %v of places, and not %v: places are all over the earth", one.what, *one.given, one.whole)
		}
	}
	return nil
}

// SpatialOf reads the options of a place; given is false if there are none.
func SpatialOf(text json.RawMessage) (g GivenSpatial, given bool, err error) {
	if len(text) == 0 || string(text) == "null" {
		return g, false, nil
	}
	if err := json.Unmarshal(text, &g); err != nil {
		return g, true, fmt.Errorf("options of places that are none: %w", err)
	}
	return g, true, g.Check()
}
