package raven

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
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// indexRoutes are the endpoints of indexes.
var indexRoutes = []*serve.Route{
	{Method: "GET", Path: "{D}/indexes", Run: getIndexes, Takes: "name namesOnly pageSize start"},
	{Method: "PUT", Path: "{D}/indexes", Run: putIndexes, Body: true, Raft: true, Needs: serve.AdminRight},
	{Method: "PUT", Path: "{D}/admin/indexes", Run: putIndexes, Body: true, Raft: true},
	{Method: "DELETE", Path: "{D}/indexes", Run: deleteIndex, Raft: true, Needs: serve.AdminRight, Takes: "name"},
	{Method: "RESET", Path: "{D}/indexes", Run: resetIndex, Needs: serve.AdminRight, Takes: "name"},
	{Method: "GET", Path: "{D}/indexes/stats", Run: indexesStats, Takes: "name"},
	{Method: "GET", Path: "{D}/indexes/status", Run: indexesStatus},
	{Method: "GET", Path: "{D}/indexes/errors", Run: indexesErrors, Takes: "name*"},
	{Method: "POST", Path: "{D}/indexes/has-changed", Run: indexHasChanged, Body: true, Needs: serve.ReadRight},
	{Method: "POST", Path: "{D}/indexes/set-lock", Run: setIndexLock, Body: true, Raft: true, Needs: serve.AdminRight},
	{Method: "POST", Path: "{D}/indexes/set-priority", Run: setIndexPriority, Body: true, Raft: true, Needs: serve.AdminRight},
	{Method: "POST", Path: "{D}/admin/indexes/start", Run: runningIndex, Takes: "name"},
	{Method: "POST", Path: "{D}/admin/indexes/enable", Run: runningIndex, Raft: true, Takes: "name"},
}

const (
	typeIndexInvalid  = serve.ExceptionPrefix + "Documents.Indexes.IndexInvalidException"
	typeIndexCreation = serve.ExceptionPrefix + "Documents.Indexes.IndexCreationException"
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

// indexGiven has the members of a definition. Those that the server does not support are
// there to be refused, unless they are empty.
type indexGiven struct {
	Name                           string
	Maps                           []string
	Reduce                         *string
	Fields                         map[string]*fieldGiven
	Configuration                  map[string]*string
	AdditionalSources              map[string]string
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

	Type             json.RawMessage `ignored:"the map says it"`
	IndexType        json.RawMessage `ignored:"the map says it"`
	DeploymentMode   json.RawMessage `ignored:"an index is on one node"`
	ReduceOutputIdx  json.RawMessage `json:"ReduceOutputIndex" ignored:"there is no reduce"`
	SearchEngineType json.RawMessage `ignored:"fields are found alike by all engines"`
}

type fieldGiven struct {
	Indexing    *string
	Analyzer    *string
	Suggestions *bool
	Spatial     json.RawMessage
	TermVector  *string
	Vector      json.RawMessage

	Storage json.RawMessage `ignored:"rows are made of documents"`
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
		{"State", given.State, []string{"Normal"}}, {"SourceType", given.SourceType, []string{"None", "Documents"}}, {"ArchivedDataProcessingBehavior", given.ArchivedDataProcessingBehavior, nil},
	} {
		if one.value != nil && *one.value != "" && !slices.Contains(one.allowed, *one.value) {
			return serve.NotSupported("index %.150q: %s %.50q is not there", given.Name, one.member, *one.value)
		}
	}
	return nil
}

// notComputed is the error for a definition that computes something.
func notComputed(name, what string) error {
	return serve.NotSupported("index %.150q: %s: an index names the fields of one collection; indexes that compute, and full text, are not there yet", name, what)
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
	case len(given.Maps) > 1:
		return d, notComputed(name, "it has several maps")
	case given.Reduce != nil && *given.Reduce != "":
		return d, notComputed(name, "it has a reduce")
	case given.OutputReduceToCollection != nil || given.PatternForOutputReduceToCollec != nil || given.PatternReferencesCollection != nil:
		return d, notComputed(name, "it writes documents")
	case len(given.AdditionalSources) > 0 || len(given.AdditionalAssemblies) > 0:
		return d, notComputed(name, "it has code of its own")
	case len(given.CompoundFields) > 0:
		return d, notComputed(name, "it has compound fields")
	}
	if err := given.checkSettings(); err != nil {
		return d, err
	}
	for field, one := range given.Fields {
		if one == nil {
			continue
		}
		spatial := string(one.Spatial)
		switch {
		case one.Indexing != nil && !slices.Contains([]string{"", "Default"}, *one.Indexing):
			return d, notComputed(name, fmt.Sprintf("the field %.100q has the indexing %.50s", field, *one.Indexing))
		case one.Analyzer != nil && *one.Analyzer != "":
			return d, notComputed(name, fmt.Sprintf("the field %.100q has an analyzer", field))
		case one.Suggestions != nil && *one.Suggestions, one.TermVector != nil && *one.TermVector != "" && *one.TermVector != "No":
			return d, notComputed(name, fmt.Sprintf("the field %.100q has suggestions or term vectors", field))
		case len(one.Vector) > 0 && string(one.Vector) != "null":
			return d, notComputed(name, fmt.Sprintf("the field %.100q is a vector", field))
		case spatial != "" && spatial != "null":
			return d, notComputed(name, fmt.Sprintf("the field %.100q is spatial", field))
		}
	}
	d = verbs.Definition{Name: name, LockMode: "Unlock", Priority: "Normal"}
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
		return d, serve.BadRequest("a definition is not JSON: %v", err)
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
		return "", nil, serve.TooLarge("index %.150q: a map has at most %d bytes", index, maxMapBytes)
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
		return "", nil, notComputed(index, fmt.Sprintf("the map %.100q", serve.OneLine(text)))
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
			return "", nil, notComputed(index, fmt.Sprintf("the member %.100q", serve.OneLine(part)))
		}
		path := strings.Join(strings.FieldsFunc(m[5], func(r rune) bool { return r == '.' || r == ' ' || r == '\t' || r == '\r' || r == '\n' }), ".")
		name := m[1] + m[2] + m[3]
		if name == "" {
			name = path[strings.LastIndex(path, ".")+1:]
		}
		if name != path {
			return "", nil, notComputed(index, fmt.Sprintf("the member %.100q gives the field another name", serve.OneLine(part)))
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

// putIndexes creates the indexes of definitions. A definition that exists unchanged is
// left alone.
func putIndexes(c *serve.Call) error {
	var request struct {
		Indexes []json.RawMessage `most:"64 400"` // maxIndexCommand
	}
	if err := c.Decode(&request); err != nil {
		return err
	}
	if n := len(request.Indexes); n == 0 || n > maxIndexCommand {
		return serve.BadRequest("Indexes has %d definitions: 1 to %d", n, maxIndexCommand)
	}
	var list []verbs.Definition
	for _, text := range request.Indexes { // check all before the first is created
		d, err := parseDefinition(c, text)
		if err != nil {
			return err
		}
		list = append(list, d)
	}
	results := []any{}
	for i := range list {
		if err := putIndex(c, &list[i]); err != nil {
			return err
		}
		index, err := commandIndex(c)
		if err != nil {
			return err
		}
		results = append(results, map[string]any{"Index": list[i].Name, "RaftCommandIndex": index})
	}
	return c.JSON(http.StatusCreated, map[string]any{"Results": results})
}

func putIndex(c *serve.Call, d *verbs.Definition) error {
	c.Server.Defining.Lock() // a lock for all: definitions are few, and changing one takes several writes
	defer c.Server.Defining.Unlock()
	old, err := verbs.FindDefinition(c, d.Name)
	if err != nil {
		return err
	}
	if old != nil {
		switch old.LockMode {
		case "LockedIgnore":
			return nil
		case "LockedError":
			return &serve.Problem{Status: http.StatusBadRequest, Kind: typeIndexCreation, Message: fmt.Sprintf("index %.150q is locked", d.Name)}
		}
	} else {
		all, err := verbs.Definitions(c)
		if err != nil {
			return err
		}
		if len(all) >= maxDefinitions {
			return serve.TooLarge("the database has %d index definitions, which is the most", len(all))
		}
	}
	if old != nil && (old.Collection != d.Collection || !slices.Equal(old.Fields, d.Fields)) {
		if err := dropFields(c, old, d); err != nil {
			return err
		}
	}
	// The record comes first. So a crash may leave a definition with incomplete indexes,
	// which a repeated request or a query detects, but never an index without a
	// definition.
	if err := c.DB.Definitions().Change(c.Ctx, d.Change()); err != nil {
		return err
	}
	if err := buildFields(c, d); err != nil {
		if c.Ctx.Err() != nil { // the client has gone; the build continues
			return err
		}
		return errors.Join(err, undefine(c, d, old))
	}
	kind := "IndexAdded"
	if old != nil {
		kind = "IndexUpdated"
	}
	c.Server.Hubs.PublishIndex(c.Database.Key, kind, d.Name)
	c.Server.Hubs.PublishIndex(c.Database.Key, "BatchCompleted", d.Name)
	return nil
}

// undefine undoes a definition that the database has refused, for example because the
// collection has too many indexes. It restores the previous one, if there was one.
func undefine(c *serve.Call, d, old *verbs.Definition) error {
	if err := dropFields(c, d, old); err != nil {
		return err
	}
	if old == nil {
		return c.DB.Definitions().Change(c.Ctx, d.Removal())
	}
	if err := c.DB.Definitions().Change(c.Ctx, old.Change()); err != nil {
		return err
	}
	return buildFields(c, old)
}

// buildFields creates the indexes of a definition. A long build continues after the
// request; meanwhile queries scan the documents.
func buildFields(c *serve.Call, d *verbs.Definition) error {
	ctx, cancel := context.WithTimeout(c.Ctx, indexBuildPatience)
	defer cancel()
	var indexes []jay.Index
	for _, field := range d.Fields {
		indexes = append(indexes, jay.Index{Name: d.IndexName(field), Fields: []string{field}})
	}
	err := c.DB.EnsureIndexes(ctx, d.Collection, indexes)
	if errors.Is(err, context.DeadlineExceeded) && c.Ctx.Err() == nil {
		return nil
	}
	return err
}

// dropFields drops the indexes of a definition that the next one, which may be nil, does
// not have.
func dropFields(c *serve.Call, d, next *verbs.Definition) error {
	for _, field := range d.Fields {
		if next != nil && next.Collection == d.Collection && slices.Contains(next.Fields, field) {
			continue
		}
		if err := c.DB.DropIndex(c.Ctx, d.Collection, d.IndexName(field)); err != nil && !errors.Is(err, jay.ErrNoIndex) && !errors.Is(err, jay.ErrIndex) {
			return err
		}
	}
	return nil
}

// indexParam returns the definition that the URL names, or nil.
func indexParam(c *serve.Call) (*verbs.Definition, error) {
	name := c.Params.Get("name")
	if name == "" {
		return nil, serve.BadRequest("the URL names no index: name is missing")
	}
	return verbs.FindDefinition(c, name)
}

// deleteIndex removes an index, if it is there.
func deleteIndex(c *serve.Call) error {
	c.Server.Defining.Lock()
	defer c.Server.Defining.Unlock()
	d, err := indexParam(c)
	if err != nil {
		return err
	}
	if d != nil {
		if err := dropFields(c, d, nil); err != nil {
			return err
		}
		if err := c.DB.Definitions().Change(c.Ctx, d.Removal()); err != nil {
			return err
		}
		c.Server.Hubs.PublishIndex(c.Database.Key, "IndexRemoved", d.Name)
	}
	return c.Empty(http.StatusNoContent)
}

// resetIndex builds an index anew.
func resetIndex(c *serve.Call) error {
	c.Server.Defining.Lock()
	defer c.Server.Defining.Unlock()
	d, err := indexParam(c)
	if err != nil {
		return err
	}
	if d == nil {
		return verbs.MissingIndex(c.Params.Get("name"))
	}
	if err := dropFields(c, d, nil); err != nil {
		return err
	}
	if err := buildFields(c, d); err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, map[string]any{"Index": d.Name})
}

// reply returns the definition in the format of clients.
func reply(d *verbs.Definition) map[string]any {
	out := make(map[string]any)
	var given map[string]json.RawMessage
	if json.Unmarshal(d.Given, &given) == nil {
		for name, text := range given {
			out[name] = text
		}
	}
	out["Name"], out["LockMode"], out["Priority"], out["Type"], out["State"] = d.Name, d.LockMode, d.Priority, kind(d), "Normal"
	out["SourceType"] = "Documents"
	return out
}

func kind(d *verbs.Definition) string {
	var given indexGiven
	if json.Unmarshal(d.Given, &given) == nil && len(given.Maps) > 0 && strings.HasPrefix(strings.TrimSpace(given.Maps[0]), "map") {
		return "JavaScriptMap"
	}
	return "Map"
}

// getIndexes returns definitions.
func getIndexes(c *serve.Call) error {
	start, size, err := c.Params.Page()
	if err != nil {
		return err
	}
	namesOnly, err := c.Params.Flag("namesOnly")
	if err != nil {
		return err
	}
	var all []*verbs.Definition
	if name := c.Params.Get("name"); name != "" {
		d, err := verbs.FindDefinition(c, name)
		if err != nil {
			return err
		}
		if d == nil {
			return c.Empty(http.StatusNotFound)
		}
		all = []*verbs.Definition{d}
	} else if all, err = verbs.Definitions(c); err != nil {
		return err
	}
	all = all[min(start, len(all)):]
	results := []any{}
	for _, d := range all[:min(size, len(all))] {
		if namesOnly {
			results = append(results, d.Name)
			continue
		}
		results = append(results, reply(d))
	}
	return c.JSON(http.StatusOK, map[string]any{"Results": results})
}

// states returns the states of the database's own indexes, by their collections and names.
func states(c *serve.Call) (map[[2]string]jay.IndexInfo, error) {
	list, err := c.DB.Indexes(c.Ctx, "")
	if err != nil {
		return nil, err
	}
	out := make(map[[2]string]jay.IndexInfo, len(list))
	for _, one := range list {
		out[[2]string{strings.ToLower(one.Collection), strings.ToLower(one.Name)}] = one
	}
	return out, nil
}

// stateKey is the key in states of the index of a field.
func stateKey(d *verbs.Definition, field string) [2]string {
	return [2]string{strings.ToLower(d.Collection), strings.ToLower(d.IndexName(field))}
}

// stale reports whether some index of the definition is being built.
func stale(d *verbs.Definition, states map[[2]string]jay.IndexInfo) bool {
	return slices.ContainsFunc(d.Fields, func(field string) bool {
		one, found := states[stateKey(d, field)]
		return !found || one.State != jay.IndexReady
	})
}

// indexesStats describes the indexes.
func indexesStats(c *serve.Call) error {
	states, err := states(c)
	if err != nil {
		return err
	}
	collections, err := c.DB.Collections(c.Listing(c.Ctx))
	if err != nil {
		return err
	}
	count := make(map[string]int64)
	for _, one := range collections {
		count[strings.ToLower(one.Name)] = one.Documents
	}
	all, err := verbs.Definitions(c)
	if err != nil {
		return err
	}
	now := c.Server.Options.Now().UTC().Format(serve.RavenTime)
	results := []any{}
	for _, d := range all {
		if name := c.Params.Get("name"); name != "" && !strings.EqualFold(name, d.Name) {
			continue
		}
		n := count[strings.ToLower(d.Collection)]
		results = append(results, map[string]any{
			"Name": d.Name, "IsStale": stale(d, states), "State": "Normal", "Status": "Running", "LockMode": d.LockMode, "Priority": d.Priority, "Type": kind(d),
			"EntriesCount": n, "MapAttempts": n, "MapSuccesses": n, "MapErrors": 0, "ErrorsCount": 0, "IsInvalidIndex": false, "LastIndexingTime": now, "LastQueryingTime": nil,
			"CreatedTimestamp": now, "SourceType": "Documents", "ReduceAttempts": nil, "ReduceSuccesses": nil, "ReduceErrors": nil,
			"Collections": map[string]any{d.Collection: map[string]any{"LastProcessedDocumentEtag": 0, "LastProcessedTombstoneEtag": 0, "DocumentLag": 0, "TombstoneLag": 0}},
			"Memory":      map[string]any{"DiskSize": map[string]any{"SizeInBytes": 0, "HumaneSize": "0 Bytes"}},
		})
	}
	if name := c.Params.Get("name"); name != "" && len(results) == 0 {
		return c.Empty(http.StatusNotFound)
	}
	return c.JSON(http.StatusOK, map[string]any{"Results": results})
}

// indexesStatus lists all indexes as running: a commit updates them.
func indexesStatus(c *serve.Call) error {
	all, err := verbs.Definitions(c)
	if err != nil {
		return err
	}
	list := []any{}
	for _, d := range all {
		list = append(list, map[string]any{"Name": d.Name, "Status": "Running"})
	}
	return c.JSON(http.StatusOK, map[string]any{"Status": "Running", "Indexes": list})
}

// indexesErrors lists no errors: a write that an index rejects fails itself.
func indexesErrors(c *serve.Call) error {
	all, err := verbs.Definitions(c)
	if err != nil {
		return err
	}
	names := c.Params.All("name")
	list := []any{}
	for _, d := range all {
		if len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, d.Name) }) {
			list = append(list, map[string]any{"Name": d.Name, "Errors": []any{}})
		}
	}
	return c.JSON(http.StatusOK, map[string]any{"Results": list})
}

// indexHasChanged replies whether a definition differs from the stored one.
func indexHasChanged(c *serve.Call) error {
	d, err := parseDefinition(c, c.Body)
	if p, is := err.(*serve.Problem); is && p.Kind == serve.TypeNotSupported { // so it is not the one that is there
		return c.JSON(http.StatusOK, map[string]any{"Changed": true})
	}
	if err != nil {
		return err
	}
	old, err := verbs.FindDefinition(c, d.Name)
	if err != nil {
		return err
	}
	var given indexGiven
	if err := json.Unmarshal(d.Given, &given); err != nil {
		return err
	}
	changed := old == nil || given.LockMode != nil && d.LockMode != old.LockMode || given.Priority != nil && d.Priority != old.Priority || old.Collection != d.Collection || !slices.Equal(old.Fields, d.Fields) || !reflect.DeepEqual(mapsOf(old), mapsOf(&d))
	return c.JSON(http.StatusOK, map[string]any{"Changed": changed})
}

func mapsOf(d *verbs.Definition) []string {
	var given indexGiven
	if json.Unmarshal(d.Given, &given) != nil {
		return nil
	}
	return given.Maps
}

// setIndexes changes definitions.
func setIndexes(c *serve.Call, member string, allowed []string, set func(d *verbs.Definition, value string)) error {
	var request struct {
		IndexNames []string `most:"256 400"` // maxDefinitions
		Mode       string
		Priority   string
	}
	if err := c.Decode(&request); err != nil {
		return err
	}
	value, other := request.Mode, request.Priority
	if member == "Priority" {
		value, other = other, value
	}
	if other != "" {
		return serve.BadRequest("the request takes IndexNames and %s", member)
	}
	if !slices.Contains(allowed, value) {
		return serve.BadRequest("%s must be one of %s, not %.100q", member, strings.Join(allowed, ", "), value)
	}
	if n := len(request.IndexNames); n == 0 || n > maxDefinitions {
		return serve.BadRequest("IndexNames has %d names: 1 to %d", n, maxDefinitions)
	}
	c.Server.Defining.Lock()
	defer c.Server.Defining.Unlock()
	var changes []jay.DefinitionChange
	for _, name := range request.IndexNames {
		d, err := verbs.FindDefinition(c, name)
		if err != nil {
			return err
		}
		if d == nil {
			return verbs.MissingIndex(name)
		}
		set(d, value)
		changes = append(changes, d.Change())
	}
	if err := c.DB.Definitions().Change(c.Ctx, changes...); err != nil {
		return err
	}
	return c.Empty(http.StatusNoContent)
}

func setIndexLock(c *serve.Call) error {
	return setIndexes(c, "Mode", []string{"Unlock", "LockedIgnore", "LockedError"}, func(d *verbs.Definition, value string) { d.LockMode = value })
}

// setIndexPriority stores a priority, which has no effect.
func setIndexPriority(c *serve.Call) error {
	return setIndexes(c, "Priority", []string{"Low", "Normal", "High"}, func(d *verbs.Definition, value string) { d.Priority = value })
}

// runningIndex replies that indexes run: they always do.
func runningIndex(c *serve.Call) error {
	if name := c.Params.Get("name"); name != "" {
		d, err := verbs.FindDefinition(c, name)
		if err != nil {
			return err
		}
		if d == nil {
			return verbs.MissingIndex(name)
		}
	}
	return c.Empty(http.StatusNoContent)
}
