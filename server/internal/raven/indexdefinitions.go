package raven

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/algebra"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// indexGiven has the members of a definition. Those that the server does not support are
// there to be refused, unless they are empty, as those that it does not know.
type indexGiven struct {
	_ struct{} `unknown:"empty"`

	Name                           string
	Maps                           []string
	Reduce                         *string
	Fields                         serve.Object[*fieldGiven]
	Configuration                  serve.Object[*string]
	AdditionalSources              serve.Object[string]
	AdditionalAssemblies           []json.RawMessage
	OutputReduceToCollection       *string
	PatternForOutputReduceToCollec *string `json:"PatternForOutputReduceToCollectionReferences"`
	PatternReferencesCollection    *string `json:"PatternReferencesCollectionName"`
	CompoundFields                 []json.RawMessage
	ArchivedDataProcessingBehavior *string
	LockMode                       *string
	Priority                       *string
	State                          *string
	SourceType                     *string
	IndexSourceType                *string // the same in RavenDB's client for Python

	Type             json.RawMessage `ignored:"the map says it"`
	IndexType        json.RawMessage `ignored:"the map says it"`
	DeploymentMode   json.RawMessage `ignored:"an index is on one node"`
	ReduceOutputIdx  json.RawMessage `json:"ReduceOutputIndex" ignored:"no index writes documents"`
	SearchEngineType json.RawMessage `ignored:"fields are found alike by all engines"`
}

type fieldGiven struct {
	_ struct{} `unknown:"empty"`

	verbs.GivenField
	Spatial json.RawMessage

	Storage *string // of a computed member: whether rows take it from the index
}

// indexSettings are the settings of an index that may be given: those that change no
// answer, with any value, and others with the value that the server has anyway.
var indexSettings = map[string]string{
	"indexing.static.searchenginetype": "", "indexing.auto.searchenginetype": "", // fields are found alike by all engines
	"indexing.mapbatchsize": "", "indexing.maptimeoutinsec": "", // there are no batches
	"indexing.indexmissingfieldsasnull": "false", "indexing.indexemptyentries": "true",
}

// settingHolds reports whether a setting of an index may be given.
func settingHolds(name string, value *string) bool {
	only, known := indexSettings[strings.ToLower(name)]
	return known && (only == "" || value == nil || strings.EqualFold(*value, only))
}

// checkSettings refuses settings that the server would not heed.
func (given *indexGiven) checkSettings() error {
	for name, value := range given.Configuration {
		if !settingHolds(name, value) {
			text := "null"
			if value != nil {
				text = *value
			}
			return serve.NotSupported("index %.150q: the setting %.100s = %.100s is not there", given.Name, name, text)
		}
	}
	for _, one := range []struct {
		member  string
		value   *string
		allowed []string
	}{
		{"LockMode", given.LockMode, []string{"Unlock", "LockedIgnore", "LockedError"}}, {"Priority", given.Priority, []string{"Low", "Normal", "High"}},
		{"State", given.State, []string{"Normal"}}, {"SourceType", given.SourceType, []string{"None", "Documents"}}, {"IndexSourceType", given.IndexSourceType, []string{"None", "Documents"}}, {"ArchivedDataProcessingBehavior", given.ArchivedDataProcessingBehavior, nil},
	} {
		if one.value != nil && *one.value != "" && !slices.Contains(one.allowed, *one.value) {
			return serve.NotSupported("index %.150q: %s %.50q is not there", given.Name, one.member, *one.value)
		}
	}
	return nil
}

// notOffered is the error for a definition that asks for something that indexes do not have.
func notOffered(name, what string) error {
	return serve.NotSupported("index %.150q: %s, which is not there", name, what)
}

// parseDefinition reads a definition.
func parseDefinition(c *serve.Call, text json.RawMessage) (d verbs.Definition, err error) {
	if len(text) > maxDefinitionBytes { // all definitions of a database are read together
		return d, serve.TooLarge("a definition has at most %d bytes", maxDefinitionBytes)
	}
	var given indexGiven
	if err := c.PayFor(text, &given); err != nil {
		return d, err
	}
	if err := json.Unmarshal(text, &given); err != nil {
		return d, serve.BadRequest("a definition is not the JSON of one: %v", err)
	}
	name := given.Name
	switch {
	case name == "" || len(name) > maxIndexNameBytes || strings.ContainsAny(name, "\x00\r\n:"):
		return d, serve.BadRequest("the name of an index has 1 to %d bytes, without a colon and line breaks: %.150q", maxIndexNameBytes, name)
	case name[len(name)-1] == '/' || name[len(name)-1] == '|': // it would be the ID of the record, and ask for a generated one
		return d, serve.BadRequest("the name of an index must not end with '/' or '|': %.150q", name)
	case strings.HasPrefix(strings.ToLower(name), "auto/"):
		return d, serve.BadRequest("index %.150q: names of automatic indexes begin with Auto/", name)
	case len(given.Maps) == 0:
		return d, &serve.Problem{Status: http.StatusBadRequest, Kind: typeIndexInvalid, Message: fmt.Sprintf("index %.150q has no map", name)}
	case given.OutputReduceToCollection != nil || given.PatternForOutputReduceToCollec != nil || given.PatternReferencesCollection != nil:
		return d, notOffered(name, "it writes documents")
	case len(given.AdditionalSources) > 0 || len(given.AdditionalAssemblies) > 0:
		return d, notOffered(name, "it has code of its own")
	case len(given.CompoundFields) > 0:
		return d, notOffered(name, "it has compound fields")
	}
	if err := given.checkSettings(); err != nil {
		return d, err
	}
	var places []string // that the options name
	for field, one := range given.Fields {
		if one == nil {
			continue
		}
		switch {
		case one.Storage != nil && !slices.ContainsFunc([]string{"", "Yes", "No"}, func(s string) bool { return strings.EqualFold(s, *one.Storage) }):
			return d, serve.BadRequest("index %.150q: the field %.100q has the storage %.50q, which is Yes or No", name, field, *one.Storage)
		case one.Vector != nil && field == "__all_fields":
			return d, notOffered(name, "all fields are vectors")
		}
		if _, is, err := verbs.SpatialOf(one.Spatial); err != nil {
			return d, notOffered(name, fmt.Sprintf("the field %.100q has %v", field, err))
		} else if is && field == "__all_fields" {
			return d, notOffered(name, "all fields are places")
		} else if is {
			places = append(places, field)
		}
		if _, err := one.Option(); err != nil {
			return d, notOffered(name, fmt.Sprintf("the field %.100q has %v", field, err))
		}
	}
	d = verbs.Definition{Name: name, LockMode: "Unlock", Priority: "Normal"}
	if given.LockMode != nil && *given.LockMode != "" {
		d.LockMode = *given.LockMode
	}
	if given.Priority != nil && *given.Priority != "" {
		d.Priority = *given.Priority
	}
	if err := given.translate(c, &d); err != nil {
		return d, err
	}
	d.Places = append(d.Places, places...)
	slices.Sort(d.Places)
	d.Places = slices.Compact(d.Places)
	var compacted bytes.Buffer
	if err := json.Compact(&compacted, text); err != nil {
		return d, serve.BadRequest("a definition is not JSON: %v", err)
	}
	d.Given = compacted.Bytes()
	if field, is := d.SuggestsNothing(); is {
		return d, notOffered(name, fmt.Sprintf("the field %.100q has suggestions, and is computed, of elements of an array, of a reduce, or no field", field))
	}
	return d, nil
}

// translate reads the maps and the reduce. A map that names members becomes an index for each; what computes becomes the
// declaration of a computed index.
func (given *indexGiven) translate(c *serve.Call, d *verbs.Definition) error {
	reduce := given.reduceText()
	if len(given.Maps) > algebra.MaxMaps {
		return serve.TooLarge("index %.150q: a definition has at most %d maps", given.Name, algebra.MaxMaps)
	}
	for _, text := range append(given.Maps[:len(given.Maps):len(given.Maps)], reduce) {
		if len(text) > algebra.MaxTextBytes {
			return serve.TooLarge("index %.150q: a map, or a reduce, has at most %d bytes", given.Name, algebra.MaxTextBytes)
		}
	}
	if len(given.Maps) == 1 && reduce == "" {
		var err error
		d.Collection, d.Fields, err = parseMap(given.Name, given.Maps[0])
		if p, is := err.(*serve.Problem); !is || p.Kind != serve.TypeNotSupported {
			return err
		}
	}
	translated, err := algebra.Translate(given.Name, given.Maps, reduce)
	var at *algebra.Error
	if errors.As(err, &at) {
		return untranslated(given.Name, at)
	}
	if err != nil {
		return err
	}
	declared, err := jay.ComputedOf(c.DB).Canonical(translated.Computed)
	if err != nil { // the definition is one of RavenDB, and what it says is not there
		return serve.NotSupported("%s", serve.OneLine(strings.TrimPrefix(err.Error(), jay.ErrIndex.Error()+": ")))
	}
	d.Collection, d.Fields, d.Computed, d.Places = "", nil, &declared, translated.Places
	return given.create(d, translated.Created)
}

// create takes over the options of fields that the maps create.
func (given *indexGiven) create(d *verbs.Definition, created map[string]algebra.CreatedField) error {
	for name, one := range created {
		if one == (algebra.CreatedField{}) {
			continue
		}
		if given.Fields[name] != nil {
			return serve.NotSupported("index %.150q: the field %.100q has options in the definition, and others where a map creates it", given.Name, name)
		}
		f := verbs.CreatedField{Stored: one.Stored, GivenField: verbs.GivenField{Indexing: &one.Indexing, TermVector: &one.TermVector}}
		if _, err := f.Option(); err != nil {
			return notOffered(given.Name, fmt.Sprintf("the field %.100q has %v", name, err))
		}
		if d.Created == nil {
			d.Created = make(map[string]verbs.CreatedField)
		}
		if name == algebra.DynamicField {
			name = verbs.DynamicField
		}
		d.Created[name] = f
	}
	return nil
}

// untranslated is the error for a definition that cannot be declared. A text that is not of its language is a compilation error, as RavenDB
// has it.
func untranslated(name string, at *algebra.Error) error {
	if !at.Syntax {
		return serve.NotSupported("index %.150q: %v", name, at)
	}
	property := "Maps"
	if at.Part == "reduce" {
		property = "Reduce"
	}
	return &serve.Problem{Status: http.StatusBadRequest, Kind: typeIndexCompilation, Message: fmt.Sprintf("index %.150q does not compile: %v", name, at),
		Fields: map[string]any{"IndexDefinitionProperty": property, "ProblematicText": at.Text}}
}

// The forms of a map that names members of a collection.
const mapName = `[\pL_][\pL\pN_]*`

var (
	mapQuery    = regexp.MustCompile(`(?s)^from\s+(` + mapName + `)\s+in\s+docs(?:\.(` + mapName + `)|\["([^"\\]+)"\])\s+select\s+new\s*\{(.*)\}$`)
	mapSelect   = regexp.MustCompile(`(?s)^docs(?:\.(` + mapName + `)|\["([^"\\]+)"\])\s*\.\s*Select\s*\(\s*\(?\s*(` + mapName + `)\s*\)?\s*=>\s*new\s*\{(.*)\}\s*\)$`)
	mapArrow    = regexp.MustCompile(`(?s)^map\s*\(\s*(?:'([^'\\]+)'|"([^"\\]+)")\s*,\s*\(?\s*(` + mapName + `)\s*\)?\s*=>\s*\(\s*\{(.*)\}\s*\)\s*\)$`)
	mapFunction = regexp.MustCompile(`(?s)^map\s*\(\s*(?:'([^'\\]+)'|"([^"\\]+)")\s*,\s*(?:\(?\s*(` + mapName + `)\s*\)?\s*=>|function\s*(?:` + mapName + `)?\s*\(\s*(` + mapName + `)\s*\))\s*\{\s*return\s*\{(.*)\}\s*;?\s*\}\s*\)$`)
	mapMember   = regexp.MustCompile(`^(?:(?:(` + mapName + `)|'([^'\\]+)'|"([^"\\]+)")\s*[=:]\s*)?(` + mapName + `)\s*\.\s*(` + mapName + `(?:\s*\.\s*` + mapName + `)*)$`)
)

// parseMap parses a map that lists fields: a query or Select in C#, or an arrow or a
// function in JavaScript.
func parseMap(index, text string) (collection string, fields []string, err error) {
	text = strings.TrimRight(strings.TrimSpace(text), "; \t\r\n")
	var variable, members string
	if m := mapQuery.FindStringSubmatch(text); m != nil {
		variable, collection, members = m[1], m[2]+m[3], m[4]
	} else if m := mapSelect.FindStringSubmatch(text); m != nil {
		collection, variable, members = m[1]+m[2], m[3], m[4]
	} else if m := mapArrow.FindStringSubmatch(text); m != nil {
		collection, variable, members = m[1]+m[2], m[3], m[4]
	} else if m := mapFunction.FindStringSubmatch(text); m != nil {
		collection, variable, members = m[1]+m[2], m[3]+m[4], m[5]
	} else {
		return "", nil, notOffered(index, fmt.Sprintf("the map %.100q", serve.OneLine(text)))
	}
	seen := make(map[string]bool)
	parts := strings.Split(members, ",")
	if n := len(parts); n > 1 && strings.TrimSpace(parts[n-1]) == "" {
		parts = parts[:n-1]
	}
	for _, part := range parts {
		part = strings.TrimSpace(part)
		m := mapMember.FindStringSubmatch(part)
		if m == nil || m[4] != variable {
			return "", nil, notOffered(index, fmt.Sprintf("the member %.100q", serve.OneLine(part)))
		}
		path := strings.Join(strings.FieldsFunc(m[5], func(r rune) bool { return r == '.' || r == ' ' || r == '\t' || r == '\r' || r == '\n' }), ".")
		name := m[1] + m[2] + m[3]
		if name == "" {
			name = path[strings.LastIndex(path, ".")+1:]
		}
		if name != path {
			return "", nil, notOffered(index, fmt.Sprintf("the member %.100q gives the field another name", serve.OneLine(part)))
		}
		if seen[path] {
			return "", nil, serve.BadRequest("index %.150q names the field %.100q twice", index, path)
		}
		if seen[path] = true; len(seen) > maxIndexFields {
			return "", nil, serve.TooLarge("index %.150q has more than %d fields", index, maxIndexFields)
		}
		fields = append(fields, path)
	}
	return collection, fields, nil
}
