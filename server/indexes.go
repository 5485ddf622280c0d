package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

const (
	typeIndexMissing  = raven + "Documents.Indexes.IndexDoesNotExistException"
	typeIndexInvalid  = raven + "Documents.Indexes.IndexInvalidException"
	typeIndexCreation = raven + "Documents.Indexes.IndexCreationException"
)

// Bounds of index definitions.
const (
	maxDefinitions     = 256 // of a database
	maxIndexFields     = 32  // of a definition
	maxIndexNameBytes  = 128
	maxMapBytes        = 16 << 10
	maxDefinitionBytes = 64 << 10
	maxIndexCommand    = 64              // definitions of a request
	indexBuildPatience = 5 * time.Second // wait of a request; the build then continues in the background
)

// definition is an index as a client has defined it: the JSON that it sent, and its
// fields. Each field is an index of package jay, named "NAME:FIELD".
type definition struct {
	Name       string
	Collection string
	Fields     []string
	LockMode   string
	Priority   string
	Given      json.RawMessage
}

// indexGiven has the members of a definition that the server uses.
type indexGiven struct {
	Name                           string
	Maps                           []string
	Reduce                         *string
	Fields                         map[string]*fieldGiven
	AdditionalSources              map[string]string
	AdditionalAssemblies           []json.RawMessage
	OutputReduceToCollection       *string
	PatternForOutputReduceToCollec *string `json:"PatternForOutputReduceToCollectionReferences"`
	LockMode                       *string
	Priority                       *string
}

type fieldGiven struct {
	Indexing    *string
	Analyzer    *string
	Suggestions *bool
	Spatial     json.RawMessage
	TermVector  *string
}

// notComputed is the error for a definition that computes something.
func notComputed(name, what string) error {
	return notSupported("index %.150q: %s: an index names the fields of one collection; indexes that compute, and full text, are not there yet", name, what)
}

// parseDefinition reads a definition.
func parseDefinition(text json.RawMessage) (d definition, err error) {
	if len(text) > maxDefinitionBytes { // all definitions of a database are read together
		return d, tooLarge("a definition has at most %d bytes", maxDefinitionBytes)
	}
	var given indexGiven
	if err := json.Unmarshal(text, &given); err != nil {
		return d, badRequest("a definition is not the JSON of one: %v", err)
	}
	name := given.Name
	switch {
	case name == "" || len(name) > maxIndexNameBytes || strings.ContainsAny(name, "\x00\r\n:"):
		return d, badRequest("the name of an index has 1 to %d bytes, without a colon and line breaks: %.150q", maxIndexNameBytes, name)
	case name[len(name)-1] == '/' || name[len(name)-1] == '|': // it would be the ID of the record, and ask for a generated one
		return d, badRequest("the name of an index must not end with '/' or '|': %.150q", name)
	case strings.HasPrefix(strings.ToLower(name), "auto/"):
		return d, badRequest("index %.150q: names of automatic indexes begin with Auto/", name)
	case len(given.Maps) == 0:
		return d, &problem{status: http.StatusBadRequest, kind: typeIndexInvalid, message: fmt.Sprintf("index %.150q has no map", name)}
	case len(given.Maps) > 1:
		return d, notComputed(name, "it has several maps")
	case given.Reduce != nil && *given.Reduce != "":
		return d, notComputed(name, "it has a reduce")
	case given.OutputReduceToCollection != nil || given.PatternForOutputReduceToCollec != nil:
		return d, notComputed(name, "it writes documents")
	case len(given.AdditionalSources) > 0 || len(given.AdditionalAssemblies) > 0:
		return d, notComputed(name, "it has code of its own")
	}
	for field, one := range given.Fields {
		if one == nil {
			continue
		}
		spatial := string(one.Spatial)
		switch {
		case one.Indexing != nil && !slices.Contains([]string{"", "Default", "Exact", "No"}, *one.Indexing):
			return d, notComputed(name, fmt.Sprintf("the field %.100q has the indexing %.50s", field, *one.Indexing))
		case one.Analyzer != nil && *one.Analyzer != "":
			return d, notComputed(name, fmt.Sprintf("the field %.100q has an analyzer", field))
		case one.Suggestions != nil && *one.Suggestions, one.TermVector != nil && *one.TermVector != "" && *one.TermVector != "No":
			return d, notComputed(name, fmt.Sprintf("the field %.100q has suggestions or term vectors", field))
		case spatial != "" && spatial != "null":
			return d, notComputed(name, fmt.Sprintf("the field %.100q is spatial", field))
		}
	}
	d = definition{Name: name, LockMode: "Unlock", Priority: "Normal"}
	if given.LockMode != nil && *given.LockMode != "" {
		d.LockMode = *given.LockMode
	}
	if given.Priority != nil && *given.Priority != "" {
		d.Priority = *given.Priority
	}
	if d.Collection, d.Fields, err = parseMap(name, given.Maps[0]); err != nil {
		return d, err
	}
	var compacted bytes.Buffer
	if err := json.Compact(&compacted, text); err != nil {
		return d, badRequest("a definition is not JSON: %v", err)
	}
	d.Given = compacted.Bytes()
	return d, nil
}

// The supported forms of a map.
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
	if len(text) > maxMapBytes {
		return "", nil, tooLarge("index %.150q: a map has at most %d bytes", index, maxMapBytes)
	}
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
		return "", nil, notComputed(index, fmt.Sprintf("the map %.100q", oneLine(text)))
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
			return "", nil, notComputed(index, fmt.Sprintf("the member %.100q", oneLine(part)))
		}
		path := strings.Join(strings.FieldsFunc(m[5], func(r rune) bool { return r == '.' || r == ' ' || r == '\t' || r == '\r' || r == '\n' }), ".")
		name := m[1] + m[2] + m[3]
		if name == "" {
			name = path[strings.LastIndex(path, ".")+1:]
		}
		if name != path {
			return "", nil, notComputed(index, fmt.Sprintf("the member %.100q gives the field another name", oneLine(part)))
		}
		if seen[path] {
			return "", nil, badRequest("index %.150q names the field %.100q twice", index, path)
		}
		if seen[path] = true; len(seen) > maxIndexFields {
			return "", nil, tooLarge("index %.150q has more than %d fields", index, maxIndexFields)
		}
		fields = append(fields, path)
	}
	return collection, fields, nil
}

const definitionPrefix = "indexes/"

func (c *call) definitionID(name string) string {
	return definitionPrefix + c.database.key + "/" + strings.ToLower(name)
}

// findDefinition returns a definition, or nil.
func (c *call) findDefinition(name string) (*definition, error) {
	doc, err := c.s.databases.system.Get(c.ctx, c.definitionID(name))
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d := new(definition)
	return d, doc.Decode(d)
}

// definitions returns the definitions of the database, in the order of their names.
func (c *call) definitions() (all []*definition, err error) {
	for doc, err := range c.s.databases.system.Documents(c.ctx, jay.Scan{Prefix: definitionPrefix + c.database.key + "/"}) {
		if err != nil {
			return nil, err
		}
		d := new(definition)
		if err := doc.Decode(d); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

func (d *definition) indexName(field string) string { return d.Name + ":" + field }

// putIndexes creates the indexes of definitions. A definition that exists unchanged is
// left alone.
func (c *call) putIndexes() error {
	var request struct{ Indexes []json.RawMessage }
	if err := c.decode(&request); err != nil {
		return err
	}
	if n := len(request.Indexes); n == 0 || n > maxIndexCommand {
		return badRequest("Indexes has %d definitions: 1 to %d", n, maxIndexCommand)
	}
	var list []definition
	for _, text := range request.Indexes { // check all before the first is created
		d, err := parseDefinition(text)
		if err != nil {
			return err
		}
		list = append(list, d)
	}
	results := []any{}
	for i := range list {
		if err := c.putIndex(&list[i]); err != nil {
			return err
		}
		index, err := c.s.databases.index(c.ctx)
		if err != nil {
			return err
		}
		results = append(results, map[string]any{"Index": list[i].Name, "RaftCommandIndex": index})
	}
	return c.json(http.StatusCreated, map[string]any{"Results": results})
}

func (c *call) putIndex(d *definition) error {
	c.s.defining.Lock() // a lock for all: definitions are few, and changing one takes several writes
	defer c.s.defining.Unlock()
	old, err := c.findDefinition(d.Name)
	if err != nil {
		return err
	}
	if old != nil {
		switch old.LockMode {
		case "LockedIgnore":
			return nil
		case "LockedError":
			return &problem{status: http.StatusBadRequest, kind: typeIndexCreation, message: fmt.Sprintf("index %.150q is locked", d.Name)}
		}
	} else {
		all, err := c.definitions()
		if err != nil {
			return err
		}
		if len(all) >= maxDefinitions {
			return tooLarge("the database has %d index definitions, which is the most", len(all))
		}
	}
	if old != nil && (old.Collection != d.Collection || !slices.Equal(old.Fields, d.Fields)) {
		if err := c.dropFields(old, d); err != nil {
			return err
		}
	}
	// The record comes first. So a crash may leave a definition with incomplete indexes,
	// which a repeated request or a query detects, but never an index without a
	// definition.
	if _, err := c.s.databases.system.Put(c.ctx, c.definitionID(d.Name), mustJSON(d), jay.InCollection("Indexes")); err != nil {
		return err
	}
	if err := c.buildFields(d); err != nil {
		if c.ctx.Err() != nil { // the client has gone; the build continues
			return err
		}
		return errors.Join(err, c.undefine(d, old))
	}
	kind := "IndexAdded"
	if old != nil {
		kind = "IndexUpdated"
	}
	c.s.hubs.publishIndex(c.database.key, kind, d.Name)
	c.s.hubs.publishIndex(c.database.key, "BatchCompleted", d.Name)
	return nil
}

// undefine undoes a definition that the database has refused, for example because the
// collection has too many indexes. It restores the previous one, if there was one.
func (c *call) undefine(d, old *definition) error {
	if err := c.dropFields(d, old); err != nil {
		return err
	}
	if old == nil {
		return c.s.databases.system.Delete(c.ctx, c.definitionID(d.Name))
	}
	if _, err := c.s.databases.system.Put(c.ctx, c.definitionID(d.Name), mustJSON(old), jay.InCollection("Indexes")); err != nil {
		return err
	}
	return c.buildFields(old)
}

// buildFields creates the indexes of a definition. A long build continues after the
// request; meanwhile queries scan the documents.
func (c *call) buildFields(d *definition) error {
	ctx, cancel := context.WithTimeout(c.ctx, indexBuildPatience)
	defer cancel()
	var indexes []jay.Index
	for _, field := range d.Fields {
		indexes = append(indexes, jay.Index{Name: d.indexName(field), Fields: []string{field}})
	}
	err := c.db.EnsureIndexes(ctx, d.Collection, indexes)
	if errors.Is(err, context.DeadlineExceeded) && c.ctx.Err() == nil {
		return nil
	}
	return err
}

// dropFields drops the indexes of a definition that the next one, which may be nil, does
// not have.
func (c *call) dropFields(d, next *definition) error {
	for _, field := range d.Fields {
		if next != nil && next.Collection == d.Collection && slices.Contains(next.Fields, field) {
			continue
		}
		if err := c.db.DropIndex(c.ctx, d.Collection, d.indexName(field)); err != nil && !errors.Is(err, jay.ErrNoIndex) && !errors.Is(err, jay.ErrIndex) {
			return err
		}
	}
	return nil
}

// indexParam returns the definition that the URL names, or nil.
func (c *call) indexParam() (*definition, error) {
	name := c.params.get("name")
	if name == "" {
		return nil, badRequest("the URL names no index: name is missing")
	}
	return c.findDefinition(name)
}

// deleteIndex removes an index, if it is there.
func (c *call) deleteIndex() error {
	c.s.defining.Lock()
	defer c.s.defining.Unlock()
	d, err := c.indexParam()
	if err != nil {
		return err
	}
	if d != nil {
		if err := c.dropFields(d, nil); err != nil {
			return err
		}
		if err := c.s.databases.system.Delete(c.ctx, c.definitionID(d.Name)); err != nil {
			return err
		}
		c.s.hubs.publishIndex(c.database.key, "IndexRemoved", d.Name)
	}
	return c.empty(http.StatusNoContent)
}

// resetIndex builds an index anew.
func (c *call) resetIndex() error {
	c.s.defining.Lock()
	defer c.s.defining.Unlock()
	d, err := c.indexParam()
	if err != nil {
		return err
	}
	if d == nil {
		return missingIndex(c.params.get("name"))
	}
	if err := c.dropFields(d, nil); err != nil {
		return err
	}
	if err := c.buildFields(d); err != nil {
		return err
	}
	return c.json(http.StatusCreated, map[string]any{"Index": d.Name})
}

func missingIndex(name string) *problem {
	return &problem{status: http.StatusBadRequest, kind: typeIndexMissing, message: fmt.Sprintf("there is no index %.150q", name)}
}

// reply returns the definition in the format of clients.
func (d *definition) reply() map[string]any {
	out := make(map[string]any)
	var given map[string]json.RawMessage
	if json.Unmarshal(d.Given, &given) == nil {
		for name, text := range given {
			out[name] = text
		}
	}
	out["Name"], out["LockMode"], out["Priority"], out["Type"], out["State"] = d.Name, d.LockMode, d.Priority, d.kind(), "Normal"
	out["SourceType"] = "Documents"
	return out
}

func (d *definition) kind() string {
	var given indexGiven
	if json.Unmarshal(d.Given, &given) == nil && len(given.Maps) > 0 && strings.HasPrefix(strings.TrimSpace(given.Maps[0]), "map") {
		return "JavaScriptMap"
	}
	return "Map"
}

// getIndexes returns definitions.
func (c *call) getIndexes() error {
	start, size, err := c.params.page()
	if err != nil {
		return err
	}
	namesOnly, err := c.params.flag("namesOnly")
	if err != nil {
		return err
	}
	var all []*definition
	if name := c.params.get("name"); name != "" {
		d, err := c.findDefinition(name)
		if err != nil {
			return err
		}
		if d == nil {
			return c.empty(http.StatusNotFound)
		}
		all = []*definition{d}
	} else if all, err = c.definitions(); err != nil {
		return err
	}
	all = all[min(start, len(all)):]
	results := []any{}
	for _, d := range all[:min(size, len(all))] {
		if namesOnly {
			results = append(results, d.Name)
			continue
		}
		results = append(results, d.reply())
	}
	return c.json(http.StatusOK, map[string]any{"Results": results})
}

// states returns the states of the database's own indexes, by their collections and names.
func (c *call) states() (map[[2]string]jay.IndexInfo, error) {
	list, err := c.db.Indexes(c.ctx, "")
	if err != nil {
		return nil, err
	}
	out := make(map[[2]string]jay.IndexInfo, len(list))
	for _, one := range list {
		out[[2]string{strings.ToLower(one.Collection), strings.ToLower(one.Name)}] = one
	}
	return out, nil
}

// stale reports whether some index of the definition is being built.
func (d *definition) stale(states map[[2]string]jay.IndexInfo) bool {
	return slices.ContainsFunc(d.Fields, func(field string) bool {
		one, found := states[[2]string{strings.ToLower(d.Collection), strings.ToLower(d.indexName(field))}]
		return !found || one.State != jay.IndexReady
	})
}

// indexesStats describes the indexes.
func (c *call) indexesStats() error {
	states, err := c.states()
	if err != nil {
		return err
	}
	collections, err := c.db.Collections(c.ctx)
	if err != nil {
		return err
	}
	count := make(map[string]int64)
	for _, one := range collections {
		count[strings.ToLower(one.Name)] = one.Documents
	}
	all, err := c.definitions()
	if err != nil {
		return err
	}
	now := c.s.opts.Now().UTC().Format(ravenTime)
	results := []any{}
	for _, d := range all {
		if name := c.params.get("name"); name != "" && !strings.EqualFold(name, d.Name) {
			continue
		}
		n := count[strings.ToLower(d.Collection)]
		results = append(results, map[string]any{
			"Name": d.Name, "IsStale": d.stale(states), "State": "Normal", "Status": "Running", "LockMode": d.LockMode, "Priority": d.Priority, "Type": d.kind(),
			"EntriesCount": n, "MapAttempts": n, "MapSuccesses": n, "MapErrors": 0, "ErrorsCount": 0, "IsInvalidIndex": false, "LastIndexingTime": now, "LastQueryingTime": nil,
			"CreatedTimestamp": now, "SourceType": "Documents", "ReduceAttempts": nil, "ReduceSuccesses": nil, "ReduceErrors": nil,
			"Collections": map[string]any{d.Collection: map[string]any{"LastProcessedDocumentEtag": 0, "LastProcessedTombstoneEtag": 0, "DocumentLag": 0, "TombstoneLag": 0}},
			"Memory":      map[string]any{"DiskSize": map[string]any{"SizeInBytes": 0, "HumaneSize": "0 Bytes"}},
		})
	}
	if name := c.params.get("name"); name != "" && len(results) == 0 {
		return c.empty(http.StatusNotFound)
	}
	return c.json(http.StatusOK, map[string]any{"Results": results})
}

// indexesStatus lists all indexes as running: a commit updates them.
func (c *call) indexesStatus() error {
	all, err := c.definitions()
	if err != nil {
		return err
	}
	list := []any{}
	for _, d := range all {
		list = append(list, map[string]any{"Name": d.Name, "Status": "Running"})
	}
	return c.json(http.StatusOK, map[string]any{"Status": "Running", "Indexes": list})
}

// indexesErrors lists no errors: a write that an index rejects fails itself.
func (c *call) indexesErrors() error {
	all, err := c.definitions()
	if err != nil {
		return err
	}
	names := c.params.all("name")
	list := []any{}
	for _, d := range all {
		if len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, d.Name) }) {
			list = append(list, map[string]any{"Name": d.Name, "Errors": []any{}})
		}
	}
	return c.json(http.StatusOK, map[string]any{"Results": list})
}

// indexHasChanged replies whether a definition differs from the stored one.
func (c *call) indexHasChanged() error {
	d, err := parseDefinition(c.body)
	if err != nil {
		return err
	}
	old, err := c.findDefinition(d.Name)
	if err != nil {
		return err
	}
	changed := old == nil || old.Collection != d.Collection || !slices.Equal(old.Fields, d.Fields) || !reflect.DeepEqual(mapsOf(old), mapsOf(&d))
	return c.json(http.StatusOK, map[string]any{"Changed": changed})
}

func mapsOf(d *definition) []string {
	var given indexGiven
	if json.Unmarshal(d.Given, &given) != nil {
		return nil
	}
	return given.Maps
}

// setIndexes changes definitions.
func (c *call) setIndexes(member string, allowed []string, set func(d *definition, value string)) error {
	var request struct {
		IndexNames []string
		Mode       string
		Priority   string
	}
	if err := c.decode(&request); err != nil {
		return err
	}
	value := request.Mode + request.Priority
	if !slices.Contains(allowed, value) {
		return badRequest("%s must be one of %s, not %.100q", member, strings.Join(allowed, ", "), value)
	}
	if n := len(request.IndexNames); n == 0 || n > maxDefinitions {
		return badRequest("IndexNames has %d names: 1 to %d", n, maxDefinitions)
	}
	c.s.defining.Lock()
	defer c.s.defining.Unlock()
	var b jay.Batch
	for _, name := range request.IndexNames {
		d, err := c.findDefinition(name)
		if err != nil {
			return err
		}
		if d == nil {
			return missingIndex(name)
		}
		set(d, value)
		b.Put(c.definitionID(d.Name), mustJSON(d), jay.InCollection("Indexes"))
	}
	if _, err := c.s.databases.system.Apply(c.ctx, &b); err != nil {
		return err
	}
	return c.empty(http.StatusNoContent)
}

func (c *call) setIndexLock() error {
	return c.setIndexes("Mode", []string{"Unlock", "LockedIgnore", "LockedError"}, func(d *definition, value string) { d.LockMode = value })
}

// setIndexPriority stores a priority, which has no effect.
func (c *call) setIndexPriority() error {
	return c.setIndexes("Priority", []string{"Low", "Normal", "High"}, func(d *definition, value string) { d.Priority = value })
}

// runningIndex replies that indexes run: they always do.
func (c *call) runningIndex() error {
	if name := c.params.get("name"); name != "" {
		d, err := c.findDefinition(name)
		if err != nil {
			return err
		}
		if d == nil {
			return missingIndex(name)
		}
	}
	return c.empty(http.StatusNoContent)
}

// indexInQuery finds the index that a query names.
var indexInQuery = regexp.MustCompile(`(?is)^(\s*from\s+)index\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s'"]+))`)

// fromIndex rewrites a query of an index as one of its collection, with the same results.
func (c *call) fromIndex(text string) (string, error) {
	m := indexInQuery.FindStringSubmatchIndex(text)
	if m == nil {
		return text, nil
	}
	name := ""
	for i := 4; i < 10; i += 2 {
		if m[i] >= 0 {
			name = text[m[i]:m[i+1]]
		}
	}
	name = strings.NewReplacer(`\'`, `'`, `\"`, `"`, `\\`, `\`).Replace(name)
	d, err := c.findDefinition(name)
	if err != nil {
		return "", err
	}
	if d == nil {
		return "", missingIndex(name)
	}
	c.index = d.Name
	return text[m[2]:m[3]] + "'" + strings.ReplaceAll(d.Collection, "'", `\'`) + "'" + text[m[1]:], nil
}
