package raven

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	{Method: "GET", Path: "{D}/indexes/stats", Run: indexesStats, Timed: true, Takes: "name"},
	{Method: "GET", Path: "{D}/indexes/status", Run: indexesStatus},
	{Method: "GET", Path: "{D}/indexes/staleness", Run: indexStaleness, Takes: "name"},
	{Method: "GET", Path: "{D}/indexes/errors", Run: indexesErrors, Takes: "name*"},
	{Method: "POST", Path: "{D}/indexes/has-changed", Run: indexHasChanged, Body: true, Needs: serve.ReadRight},
	{Method: "POST", Path: "{D}/indexes/set-lock", Run: setIndexLock, Body: true, Raft: true, Needs: serve.AdminRight},
	{Method: "POST", Path: "{D}/indexes/set-priority", Run: setIndexPriority, Body: true, Raft: true, Needs: serve.AdminRight},
	{Method: "GET", Path: "{D}/indexes/terms", Run: indexTerms, Timed: true, Takes: "field fromValue name pageSize start"},
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
	indexDropPatience  = 50 * time.Millisecond
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
	declared, err := verbs.FindComputed(c, d.Name)
	if err != nil {
		return err
	}
	if old == nil && declared != nil && d.Computed == nil {
		return serve.BadRequest("a program has declared a computed index of the name %.150q: drop it first", d.Name)
	}
	if old != nil && old.State == verbs.Disabled { // it stays so
		d.State = old.State
	}
	if old != nil && (old.Collection != d.Collection || !slices.Equal(old.Ordered(), d.Ordered()) || old.Computed != nil && d.Computed == nil || len(old.Sides()) > 0) {
		if err := dropIndexes(c, old, d); err != nil {
			return err
		}
	}
	// The record comes first. So a crash may leave a definition with incomplete indexes,
	// which a repeated request or a query detects, but never an index without a
	// definition.
	if err := c.DB.Definitions().Change(c.Ctx, d.Change()); err != nil {
		return err
	}
	if err := buildIndexes(c, d); err != nil {
		if c.Ctx.Err() != nil { // the client has gone; the build continues
			return err
		}
		return errors.Join(err, undefine(c, d, old, declared != nil))
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
// collection has too many indexes. It restores the previous one, if there was one. A computed index that was declared before was to be
// replaced, and has stayed.
func undefine(c *serve.Call, d, old *verbs.Definition, declared bool) error {
	if old != nil || !declared {
		if err := dropIndexes(c, d, old); err != nil {
			return err
		}
	}
	if old == nil {
		return c.DB.Definitions().Change(c.Ctx, d.Removal())
	}
	if err := c.DB.Definitions().Change(c.Ctx, old.Change()); err != nil {
		return err
	}
	return buildIndexes(c, old)
}

// buildIndexes creates the indexes of a definition. A long build continues after the
// request; meanwhile queries scan the documents.
func buildIndexes(c *serve.Call, d *verbs.Definition) error {
	if d.State != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.Ctx, indexBuildPatience)
	defer cancel()
	var err error
	if d.Computed != nil {
		err = jay.ComputedOf(c.DB).Ensure(ctx, *d.Computed, jay.ReplaceIndex())
	} else {
		var indexes []jay.Index
		for _, field := range d.Ordered() {
			indexes = append(indexes, jay.Index{Name: d.IndexName(field), Fields: []string{field}})
		}
		err = c.DB.EnsureIndexes(ctx, d.Collection, indexes)
	}
	if err == nil {
		err = d.EnsureSides(ctx, c.DB)
	}
	if errors.Is(err, context.DeadlineExceeded) && c.Ctx.Err() == nil {
		return nil
	}
	return err
}

// dropIndexes drops the indexes of a definition that the next one, which may be nil, does
// not have. A computed index is replaced by that of the next one.
func dropIndexes(c *serve.Call, d, next *verbs.Definition) error {
	gone := func(err error) bool { return errors.Is(err, jay.ErrNoIndex) || errors.Is(err, jay.ErrIndex) }
	if d.Computed != nil && (next == nil || next.Computed == nil) {
		if err := jay.ComputedOf(c.DB).Drop(c.Ctx, d.Name); err != nil && !gone(err) {
			return err
		}
	}
	var kept []verbs.SideIndex
	var ordered []string
	if next != nil {
		kept, ordered = next.Sides(), next.Ordered()
	}
	for _, side := range d.Sides() {
		if slices.ContainsFunc(kept, func(k verbs.SideIndex) bool {
			return k.Name == side.Name && strings.EqualFold(k.Collection, side.Collection)
		}) {
			continue
		}
		if err := c.DB.DropIndex(c.Ctx, side.Collection, side.Name); err != nil && !gone(err) {
			return err
		}
	}
	for _, field := range d.Ordered() {
		if next != nil && next.Collection == d.Collection && slices.Contains(ordered, field) {
			continue
		}
		if err := c.DB.DropIndex(c.Ctx, d.Collection, d.IndexName(field)); err != nil && !gone(err) {
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
		if err := dropIndexes(c, d, nil); err != nil {
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
		return c.Empty(http.StatusNoContent)
	}
	declared, err := verbs.FindComputed(c, c.Params.Get("name"))
	if err != nil {
		return err
	}
	if declared != nil {
		if err := jay.ComputedOf(c.DB).Drop(c.Ctx, declared.Name); err != nil && !errors.Is(err, jay.ErrIndex) {
			return err
		}
		c.Server.Hubs.PublishIndex(c.Database.Key, "IndexRemoved", declared.Name)
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
	name := c.Params.Get("name")
	declared, err := verbs.FindComputed(c, name)
	if err != nil {
		return err
	}
	switch {
	case d == nil && declared == nil:
		return missingOrAutomatic(c, name, "is not reset: DELETE drops it, and queries make it again")
	case d == nil:
		name, err = declared.Name, redeclare(c, declared.Computed)
	case d.Computed != nil && d.State == "" && declared != nil: // its maps may be of another collection by now, which was renamed
		name, err = d.Name, redeclare(c, declared.Computed)
	default:
		name, err = d.Name, rebuild(c, d)
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, map[string]any{"Index": name})
}

// rebuild drops the indexes of a definition and builds them anew. One that is faulty is not so any more, unless documents refuse it again.
func rebuild(c *serve.Call, d *verbs.Definition) error {
	if err := dropIndexes(c, d, nil); err != nil {
		return err
	}
	if d.State != verbs.Faulty {
		return buildIndexes(c, d)
	}
	d.State, d.Fault = "", ""
	if err := buildIndexes(c, d); err != nil {
		return err
	}
	return c.DB.Definitions().Change(c.Ctx, d.Change())
}

// redeclare drops a computed index, and declares it again. It does not wait until the entries are gone: queries of the index are refused
// meanwhile.
func redeclare(c *serve.Call, declared jay.Computed) error {
	for {
		ctx, cancel := context.WithTimeout(c.Ctx, indexDropPatience)
		err := jay.ComputedOf(c.DB).Drop(ctx, declared.Name)
		cancel()
		if err != nil && c.Ctx.Err() != nil || err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, jay.ErrIndex) {
			return err
		}
		if still, err := verbs.FindComputed(c, declared.Name); err != nil {
			return err
		} else if still == nil {
			return buildIndexes(c, &verbs.Definition{Name: declared.Name, Computed: &declared})
		}
	}
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
	name := c.Params.Get("name")
	all, err := listed(c, name)
	if err != nil {
		return err
	}
	var list []map[string]any
	for _, one := range all {
		list = append(list, one.reply())
	}
	automatic, err := verbs.Automatic(c)
	if err != nil {
		return err
	}
	for _, ix := range automatic {
		if name == "" || strings.EqualFold(verbs.AutomaticName(ix), name) {
			list = append(list, automaticReply(ix))
		}
	}
	if name != "" && len(list) == 0 {
		return c.Empty(http.StatusNotFound)
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

// indexesStats describes the indexes.
func indexesStats(c *serve.Call) error {
	collections, err := c.DB.Collections(c.Listing(c.Ctx))
	if err != nil {
		return err
	}
	all, err := listed(c, c.Params.Get("name"))
	if err != nil {
		return err
	}
	results := []any{}
	for _, one := range all {
		stats, err := one.stats(c, collections)
		if err != nil {
			return err
		}
		results = append(results, stats)
	}
	if c.Params.Get("name") != "" && len(results) == 0 {
		return c.Empty(http.StatusNotFound)
	}
	return c.JSON(http.StatusOK, map[string]any{"Results": results})
}

// indexesStatus lists all indexes as running: a commit updates them.
func indexesStatus(c *serve.Call) error {
	all, err := listed(c, "")
	if err != nil {
		return err
	}
	list := []any{}
	for _, one := range all {
		list = append(list, map[string]any{"Name": one.name, "Status": one.status()})
	}
	return c.JSON(http.StatusOK, map[string]any{"Status": "Running", "Indexes": list})
}

// indexStaleness replies whether an index is being built. Queries answer from documents meanwhile.
func indexStaleness(c *serve.Call) error {
	name := c.Params.Get("name")
	all, err := listed(c, name)
	switch {
	case err != nil:
		return err
	case name == "":
		return serve.BadRequest("the URL names no index: name is missing")
	case len(all) > 0:
		return c.JSON(http.StatusOK, map[string]any{"IsStale": all[0].stale, "StalenessReasons": all[0].reasons()})
	}
	ix, err := verbs.FindAutomatic(c, name)
	switch {
	case err != nil:
		return err
	case ix == nil:
		return verbs.MissingIndex(name)
	}
	return c.JSON(http.StatusOK, map[string]any{"IsStale": ix.State != jay.IndexReady, "StalenessReasons": []string{}})
}

// indexesErrors lists the documents for which expressions of indexes fail. A write that an index rejects fails itself.
func indexesErrors(c *serve.Call) error {
	all, err := listed(c, "")
	if err != nil {
		return err
	}
	names := c.Params.All("name")
	list := []any{}
	for _, one := range all {
		if len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, one.name) }) {
			continue
		}
		failures, err := one.errors(c)
		if err != nil {
			return err
		}
		list = append(list, map[string]any{"Name": one.name, "Errors": failures})
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
	changed := old == nil
	if !changed {
		if changed, err = differs(c, old, &d); err != nil {
			return err
		}
	}
	return c.JSON(http.StatusOK, map[string]any{"Changed": changed})
}

// differs reports whether a definition is another one than the one that is there, or than the computed index of its name: another program may
// have declared that.
func differs(c *serve.Call, old, d *verbs.Definition) (bool, error) {
	var given, was indexGiven
	if err := json.Unmarshal(d.Given, &given); err != nil {
		return false, err
	}
	if err := json.Unmarshal(old.Given, &was); err != nil {
		return false, err
	}
	switch {
	case given.LockMode != nil && d.LockMode != old.LockMode, given.Priority != nil && d.Priority != old.Priority,
		old.Collection != d.Collection, !slices.Equal(old.Fields, d.Fields), !maps.Equal(old.Options(), d.Options()), !slices.Equal(was.Maps, given.Maps), was.reduceText() != given.reduceText():
		return true, nil
	case d.Computed == nil:
		return old.Computed != nil, nil
	case !sameStorage(old, d):
		return true, nil
	case old.State != "":
		return !reflect.DeepEqual(old.Computed, d.Computed), nil
	}
	declared, err := verbs.FindComputed(c, d.Name)
	if declared != nil && declared.Next != nil {
		declared = declared.Next
	}
	if declared == nil || err != nil {
		return true, err
	}
	now := declared.Computed
	now.Name = d.Computed.Name // its case does not matter
	return !reflect.DeepEqual(now, *d.Computed), nil
}

// sameStorage reports whether two definitions store the same members.
func sameStorage(a, b *verbs.Definition) bool {
	ofA, ofB := a.Stores(), b.Stores()
	for _, m := range b.Computed.Maps[0].Select {
		if ofA(m.Name) != ofB(m.Name) {
			return false
		}
	}
	return true
}

// reduceText returns the text of the reduce, "" for none.
func (given *indexGiven) reduceText() string {
	if given.Reduce == nil {
		return ""
	}
	return strings.TrimSpace(*given.Reduce)
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
			return missingOrAutomatic(c, name, "has no "+member)
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
		if _, err := verbs.FindIndex(c, name); err != nil {
			return err
		}
	}
	return c.Empty(http.StatusNoContent)
}
