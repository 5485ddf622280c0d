package main

// placed are changes of conditions on places and of the index that answers them.
var placed = []mutation{
	{
		name:  "places: documents without a place come first",
		edits: []edit{{"query/sortkey.go", "\treturn o.unknown()\n", "\treturn Value{}\n"}},
		tests: []tests{{"query", "TestPlace_Order"}},
	},
	{
		name:  "places: disjoint is true of what is no place",
		edits: []edit{{"query/place.go", "\treturn is && c.place.Holds(place)", "\treturn (is || v.kind > 0) && c.place.Holds(place)"}},
		tests: []tests{{"query", "TestPlace$"}},
	},
	{
		name:  "places: any latitude is one",
		edits: []edit{{"query/distance.go", "err := s.Check(); err != nil", "err := s.Check(); err != nil && len(v) > 2"}, {"internal/geo/spot.go", "return Value{Spot: s}, s.Check()", "return Value{Spot: s}, nil"}},
		tests: []tests{{"query", "TestPlace$"}},
	},
	{
		name:  "places: a box without an inside is an area",
		edits: []edit{{"internal/geo/relation.go", "func isFlat(b s2.Rect) bool { return ", "func isFlat(b s2.Rect) bool { return false && "}},
		tests: []tests{{"internal/geo", "TestBox_Flat"}},
	},
	{
		name:  "places: an area that has all of another one is not met",
		edits: []edit{{"internal/geo/relation.go", "return edgesMeet(a, b) || beginsIn(b, a)", "return edgesMeet(a, b)"}},
		tests: []tests{{"internal/geo", "TestBox_Triangle"}},
	},
	{
		name:  "places: cells above those of a shape are not looked up",
		edits: []edit{{"internal/places/answer.go", "c.asked.cells, ancestors(c.asked.cells)", "c.asked.cells, nil"}},
		tests: []tests{{"internal/places", "TestPlaces$"}},
	},
	{
		name:  "places: what a document had stays when it changes",
		edits: []edit{{"internal/places/stage.go", "\t\t\ttx.Delete(key.key)\n", "\t\t\t_ = key\n"}},
		tests: []tests{{"internal/places", "TestPlaces_Numbers$"}},
	},
	{
		name:  "places: keys of cells are not verified",
		edits: []edit{{"internal/places/stage.go", "\treturn add(keyFact(keyed{key, value}), -1)", "\treturn nil"}},
		tests: []tests{{"internal/places", "TestPlaces_Numbers$"}},
	},
	{
		name:  "places: a cell comes behind documents as near as it may have",
		edits: []edit{{"internal/places/nearest.go", "\t\treturn a.id == \"\"\n", "\t\treturn a.id != \"\"\n"}},
		tests: []tests{{"internal/places", "TestPlaces_Ties"}},
	},
	{
		name:  "places: what is nearest elsewhere is left out with a condition",
		edits: []edit{{"internal/places/nearest.go", "if n.others != nil || n.asked.mayHave(cell) {", "if n.asked.mayHave(cell) {"}},
		tests: []tests{{"internal/places", "TestPlaces_Several"}},
	},
	{
		name:  "places: a cell may have what is nearer than it is",
		edits: []edit{{"internal/geo/spot.go", "return max(0, metres(s2.CellFromCellID(id).Distance(t.at).Angle())-Slack)", "return 1.5 * metres(s2.CellFromCellID(id).Distance(t.at).Angle())"}},
		tests: []tests{{"internal/places", "TestPlaces_Nearest"}},
	},
	{
		name:  "places: the format does not rise",
		edits: []edit{{"internal/places/kind.go", "Kind{Open: open, Feature: storage.FeaturePlaces}", "Kind{Open: open}"}, {"internal/places/kind.go", "\t\"github.com/jaydb/jay/storage\"\n", ""}},
		tests: []tests{{"internal/places", "TestPlaces_Format"}},
	},
	{
		name:  "places: the place of a distance loses its conditions",
		edits: []edit{{"query/distance.go", "fields: x.fields, conditions: x.conditions, size", "fields: x.fields, conditions: x.conditions[:min(1, len(x.conditions))], size"}},
		tests: []tests{{"query", "TestDistance_Place"}},
	},
	{
		name:  "places: a place in quotes is a field",
		edits: []edit{{"query/rql_place.go", "\treturn inside.at(\"spatial\") != \"\"\n", "\treturn inside.at(\"spatial\") == \"none\"\n"}},
		tests: []tests{{"query", "TestPlace_Quoted"}},
	},
	{
		name:  "places: what follows a place in quotes is left out",
		edits: []edit{{"query/rql_place.go", "err == nil && p.tok.kind != tokenEnd {", "err == nil && p.tok.kind == tokenBad {"}},
		tests: []tests{{"query", "TestPlace_Quoted"}},
	},
	{
		name:  "definitions: places have no index",
		edits: []edit{{"server/internal/verbs/sides.go", "return slices.Concat(d.WordsIndexes(), d.placesIndexes(), d.vectorsIndexes())", "return slices.Concat(d.WordsIndexes(), d.placesIndexes()[:0], d.vectorsIndexes())"}},
		tests: []tests{{"server", "TestDefinitions_Places$"}},
	},
	{
		name:  "definitions: a place of several maps has the index of the first",
		edits: []edit{{"server/internal/verbs/sides.go", "if other.Fields[0] == field {", "if other.Fields[0] == field || n == 1 {"}},
		tests: []tests{{"server", "TestDefinitions_Places$"}},
	},
	{
		name:  "definitions: a field that is a place has an ordered index",
		edits: []edit{{"server/internal/verbs/words.go", " && !slices.Contains(d.Places, field) {", " && len(d.Places) >= 0 {"}},
		tests: []tests{{"server", "TestDefinitions_PlacesOfFields"}},
	},
	{
		name:  "definitions: places within bounds are all places",
		edits: []edit{{"server/internal/verbs/sides.go", "math.Abs(*one.given-one.whole) > 1e-9", "math.Abs(*one.given-one.whole) > 1e9"}},
		tests: []tests{{"server", "TestDefinitions_PlacesRefused"}},
	},
	{
		name:  "algebra: null or a place is a place",
		edits: []edit{{"server/internal/algebra/places.go", "c, yes, no = not(c), no, yes", "yes, no = no, yes"}},
		tests: []tests{{"server/internal/algebra", "TestTranslate$"}},
	},
	{
		name:  "places: which way a ring goes says what is inside",
		edits: []edit{{"internal/geo/place.go", "\t\tloop.Normalize()\n", ""}},
		tests: []tests{{"internal/places", "TestPlaces_Oracle"}},
	},
	{
		name:  "places: an area within another one is not within it",
		edits: []edit{{"internal/geo/place.go", "\t\tloop.Normalize()\n", "\t\tloop.Normalize()\n\t\tif len(rings) == 1 && loop.NumVertices() == 5 {\n\t\t\tloop.Invert()\n\t\t}\n"}},
		tests: []tests{{"internal/places", "TestPlaces_Oracle"}},
	},
	{
		name:  "places: what is around a cell is further away than it is",
		edits: []edit{{"internal/geo/spot.go", "return max(0, metres(s2.CellFromCellID(id).BoundaryDistance(t.at).Angle())-Slack)", "return 2 * metres(s2.CellFromCellID(id).BoundaryDistance(t.at).Angle())"}},
		tests: []tests{{"internal/places", "TestPlaces_Dense"}},
	},
	{
		name:  "places: documents of the cells above the target are not looked up",
		edits: []edit{{"internal/places/nearest.go", "\t\terr = n.severalAt(around)\n", ""}},
		tests: []tests{{"internal/places", "TestPlaces_Dense"}},
	},
	{
		name:  "places: tags of another struct make a pair",
		edits: []edit{{"internal/catalog/tags_places.go", "key := path[:strings.LastIndexByte(path, '.')+1] + \"\\x00\" + name", "key := path[:max(0, strings.IndexByte(path, '\\x00'))] + name"}},
		tests: []tests{{".", "TestEnsureIndexes_Places"}},
	},
	{
		name:  "places: tags have the longitude first",
		edits: []edit{{"internal/catalog/tags_places.go", "p.paths[0] + \", \" + p.paths[1]", "p.paths[1] + \", \" + p.paths[0]"}},
		tests: []tests{{".", "TestEnsureIndexes_Places"}},
	},
	{
		name:  "places: the command has the longitude first",
		edits: []edit{{"cmd/jay/index.go", "strings.TrimSpace(lat) + \", \" + strings.TrimSpace(lng)", "strings.TrimSpace(lng) + \", \" + strings.TrimSpace(lat)"}},
		tests: []tests{{"cmd/jay", "TestCreateIndex_Place"}},
	},
	{
		name:  "places: the command takes a place beside fields",
		edits: []edit{{"cmd/jay/index.go", "case c.Fields != nil || c.Kind != \"\" && c.Kind != \"places\":", "case c.Kind != \"\" && c.Kind != \"places\":"}},
		tests: []tests{{"cmd/jay", "TestCreateIndex_Place"}},
	},
	{
		name:  "expressions: what is computed is written over instants",
		edits: []edit{{"query/expression.go", "\tf := c.reader.reach(c.slots[field])\n\tswitch", "\tn := len(c.reader.dates)\n\tf := c.reader.reach(c.slots[field])\n\tc.reader.dates = c.reader.dates[:n]\n\tswitch"}},
		tests: []tests{{"query", "TestReader_ComputedBeforeInstants"}},
	},
}
