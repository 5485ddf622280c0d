package raven

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
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
	{Method: "GET", Path: "{D}/indexes/terms", Run: indexTerms, Takes: "field fromValue name pageSize start"},
	{Method: "GET", Path: "{D}/indexes/suggest-index-merge", Run: suggestMerges},
	{Method: "POST", Path: "{D}/admin/indexes/start", Run: runningIndex, Takes: "name"},
	{Method: "POST", Path: "{D}/admin/indexes/enable", Run: enableIndex, Raft: true, Takes: "clusterWide name"},
	{Method: "POST", Path: "{D}/admin/indexes/disable", Run: disableIndex, Raft: true, Takes: "clusterWide name"},
}

const (
	typeIndexInvalid     = serve.ExceptionPrefix + "Documents.Indexes.IndexInvalidException"
	typeIndexCompilation = serve.ExceptionPrefix + "Documents.Compilation.IndexCompilationException"
	typeIndexCreation    = serve.ExceptionPrefix + "Documents.Indexes.IndexCreationException"
)

// Bounds of index definitions.
const (
	maxDefinitions     = 256 // of a database
	maxIndexFields     = 32  // of a definition
	maxIndexNameBytes  = 128
	maxDefinitionBytes = 64 << 10
	maxIndexCommand    = 64              // definitions of a request
	indexBuildPatience = 5 * time.Second // wait of a request; the build then continues in the background
)

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
	if old != nil { // a disabled index stays so
		d.State = old.State
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
	if d.State != "" {
		return nil
	}
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
		return c.Empty(http.StatusNoContent)
	}
	ix, err := verbs.FindAutomatic(c, c.Params.Get("name"))
	if err != nil {
		return err
	}
	if ix != nil {
		if err := c.DB.DropIndex(c.Ctx, ix.Collection, ix.Name); err != nil && !errors.Is(err, jay.ErrNoIndex) {
			return err
		}
		c.Server.Hubs.PublishIndex(c.Database.Key, "IndexRemoved", verbs.AutomaticName(*ix))
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
		return missingOrAutomatic(c, c.Params.Get("name"), "is not reset: DELETE drops it, and queries make it again")
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
	out["Name"], out["LockMode"], out["Priority"], out["Type"], out["State"] = d.Name, d.LockMode, d.Priority, kind(d), stateOf(d)
	out["SourceType"] = "Documents"
	return out
}

// stateOf returns the state of an index as clients name it.
func stateOf(d *verbs.Definition) string { return cmp.Or(d.State, "Normal") }

// statusOf returns the status of an index as clients name it.
func statusOf(d *verbs.Definition) string { return cmp.Or(d.State, "Running") }

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
			return getAutomatic(c, name)
		}
		all = []*verbs.Definition{d}
	} else if all, err = verbs.Definitions(c); err != nil {
		return err
	}
	var list []map[string]any
	for _, d := range all {
		list = append(list, reply(d))
	}
	if c.Params.Get("name") == "" {
		automatic, err := verbs.Automatic(c)
		if err != nil {
			return err
		}
		for _, ix := range automatic {
			list = append(list, automaticReply(ix))
		}
	}
	list = list[min(start, len(list)):]
	results := []any{}
	for _, one := range list[:min(size, len(list))] {
		if namesOnly {
			results = append(results, one["Name"])
			continue
		}
		results = append(results, one)
	}
	return c.JSON(http.StatusOK, map[string]any{"Results": results})
}

// getAutomatic returns the automatic index of a name.
func getAutomatic(c *serve.Call, name string) error {
	ix, err := verbs.FindAutomatic(c, name)
	if err != nil {
		return err
	}
	if ix == nil {
		return c.Empty(http.StatusNotFound)
	}
	return c.JSON(http.StatusOK, map[string]any{"Results": []any{automaticReply(*ix)}})
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
	return d.State != "" || slices.ContainsFunc(d.Fields, func(field string) bool {
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
			"Name": d.Name, "IsStale": stale(d, states), "State": stateOf(d), "Status": statusOf(d), "LockMode": d.LockMode, "Priority": d.Priority, "Type": kind(d),
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
		list = append(list, map[string]any{"Name": d.Name, "Status": statusOf(d)})
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
	if p, is := err.(*serve.Problem); is && (p.Kind == serve.TypeNotSupported || p.Kind == typeIndexCompilation) { // so it is not the one that is there
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

// runningIndex replies that indexes run: they do, unless they are disabled.
func runningIndex(c *serve.Call) error {
	if name := c.Params.Get("name"); name != "" {
		if _, err := findIndexed(c, name); err != nil {
			return err
		}
	}
	return c.Empty(http.StatusNoContent)
}
