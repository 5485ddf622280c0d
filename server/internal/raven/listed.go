package raven

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// maxIndexErrors bounds the errors of an index that are listed, as RavenDB does.
const maxIndexErrors = 500

// listedIndex is an index as lists of clients have it: of a definition, or a computed one that a program has declared.
type listedIndex struct {
	name     string
	defined  *verbs.Definition // nil for an index of a program
	computed *jay.ComputedInfo // nil for one of fields, and for one that is not there
	stale    bool              // it is being built, or is not there
}

// listed returns the indexes of a name, or all of them if it is "": those of definitions by name, and then those of programs.
func listed(c *serve.Call, name string) (list []listedIndex, err error) {
	states, err := states(c)
	if err != nil {
		return nil, err
	}
	all, err := jay.ComputedOf(c.DB).List(c.Ctx)
	if err != nil {
		return nil, err
	}
	defined, err := verbs.Definitions(c)
	if err != nil {
		return nil, err
	}
	wanted := func(one string) bool { return name == "" || strings.EqualFold(name, one) }
	for _, d := range defined {
		if !wanted(d.Name) {
			continue
		}
		one := listedIndex{name: d.Name, defined: d, stale: stale(d, states)}
		if d.Computed != nil {
			if i := slices.IndexFunc(all, func(info jay.ComputedInfo) bool { return strings.EqualFold(info.Name, d.Name) }); i >= 0 {
				one.computed = &all[i]
			}
			one.stale = one.stale || one.computed == nil || isBuilt(one.computed)
		}
		list = append(list, one)
	}
	for _, info := range verbs.Programs(all, defined) {
		if wanted(info.Name) {
			list = append(list, listedIndex{name: info.Name, computed: &info, stale: isBuilt(&info)})
		}
	}
	return list, nil
}

// isBuilt reports whether a computed index is being built or replaced.
func isBuilt(info *jay.ComputedInfo) bool {
	return info.State == jay.IndexBuilding || info.Next != nil
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

// stateKeys are the keys in states of the indexes of the fields of a definition, and of those of its words, places and vectors.
func stateKeys(d *verbs.Definition) (keys [][2]string) {
	key := func(collection, name string) [2]string {
		return [2]string{strings.ToLower(collection), strings.ToLower(name)}
	}
	for _, field := range d.Ordered() {
		keys = append(keys, key(d.Collection, d.IndexName(field)))
	}
	for _, side := range d.Sides() {
		keys = append(keys, key(side.Collection, side.Name))
	}
	return keys
}

// stale reports whether some index of the fields of a definition, of its words, places or vectors, is being built.
func stale(d *verbs.Definition, states map[[2]string]jay.IndexInfo) bool {
	return d.State != "" || slices.ContainsFunc(stateKeys(d), func(key [2]string) bool {
		one, found := states[key]
		return !found || one.State != jay.IndexReady
	})
}

// isFaulty reports whether documents have refused the index.
func (ix *listedIndex) isFaulty() bool { return ix.defined != nil && ix.defined.State == verbs.Faulty }

// state returns the state of the index as clients name it.
func (ix *listedIndex) state() string {
	if ix.defined == nil {
		return "Normal"
	}
	return cmp.Or(ix.defined.State, "Normal")
}

// status returns the status of the index as clients name it.
func (ix *listedIndex) status() string {
	switch {
	case ix.isFaulty():
		return "Faulty"
	case ix.defined == nil:
		return "Running"
	}
	return cmp.Or(ix.defined.State, "Running")
}

// reasons says why the index is stale.
func (ix *listedIndex) reasons() []string {
	switch {
	case !ix.stale:
		return []string{}
	case ix.isFaulty():
		return []string{ix.defined.Fault}
	case ix.defined != nil && ix.defined.State != "":
		return []string{"it is disabled"}
	case ix.declared() != nil && ix.computed == nil:
		return []string{"it is not there any more, and is built when a query asks it"}
	}
	return []string{"it is being built; queries answer from documents meanwhile"}
}

// modes returns the lock mode and the priority.
func (ix *listedIndex) modes() (lock, priority string) {
	if ix.defined == nil {
		return "Unlock", "Normal"
	}
	return ix.defined.LockMode, ix.defined.Priority
}

// declared returns what the index computes, or nil.
func (ix *listedIndex) declared() *jay.Computed {
	switch {
	case ix.computed != nil:
		return &ix.computed.Computed
	case ix.defined != nil:
		return ix.defined.Computed
	}
	return nil
}

// kind returns the type of the index as clients name it.
func (ix *listedIndex) kind() string {
	name := "Map"
	var given indexGiven
	if ix.defined != nil && json.Unmarshal(ix.defined.Given, &given) == nil && len(given.Maps) > 0 && strings.HasPrefix(strings.TrimSpace(given.Maps[0]), "map") {
		name = "JavaScriptMap"
	}
	if d := ix.declared(); d != nil && d.Reduce != nil {
		name += "Reduce"
	}
	return name
}

// reply returns the definition in the format of clients.
func (ix *listedIndex) reply() map[string]any {
	out := emptyDefinition()
	var given map[string]json.RawMessage
	if ix.defined == nil {
		out["Maps"], out["Reduce"] = textsOf(&ix.computed.Computed)
	} else if json.Unmarshal(ix.defined.Given, &given) == nil {
		for name, text := range given {
			if string(text) != "null" && !serve.IsEmptyList(text) { // else as if it was not given
				out[name] = text
			}
		}
	}
	out["LockMode"], out["Priority"] = ix.modes()
	out["Name"], out["Type"], out["State"], out["SourceType"] = ix.name, ix.kind(), ix.state(), "Documents"
	return out
}

// emptyDefinition returns the members of a definition that RavenDB always sends, and that its
// client for Python needs.
func emptyDefinition() map[string]any {
	return map[string]any{
		"AdditionalAssemblies": []any{}, "AdditionalSources": map[string]any{}, "CompoundFields": []any{}, "Configuration": map[string]any{}, "Fields": map[string]any{}, "Maps": []string{}, "Reduce": nil,
		"OutputReduceToCollection": nil, "PatternForOutputReduceToCollectionReferences": nil, "PatternReferencesCollectionName": nil, "ReduceOutputIndex": nil,
	}
}

// textsOf returns the maps and the reduce of an index that a program has declared, in the words of RQL.
func textsOf(d *jay.Computed) (maps []string, reduce any) {
	members := func(list []index.Member) string {
		var texts []string
		for _, m := range list {
			if m.Expression == "" {
				texts = append(texts, m.Name)
				continue
			}
			texts = append(texts, m.Expression+" as "+m.Name)
		}
		return " select " + strings.Join(texts, ", ")
	}
	maps = []string{}
	for _, m := range d.Maps {
		text := "from " + cmp.Or(m.Collection, "@all_docs")
		if m.Each != "" {
			text += " each " + m.Each + " as " + m.As
		}
		if m.Where != "" {
			text += " where " + m.Where
		}
		maps = append(maps, text+members(m.Select))
	}
	if d.Reduce != nil {
		reduce = "group by " + strings.Join(d.Reduce.GroupBy, ", ") + members(d.Reduce.Select)
	}
	return maps, reduce
}

// sources returns the collections of the index.
func (ix *listedIndex) sources() (names []string) {
	d := ix.declared()
	if d == nil {
		return []string{ix.defined.Collection}
	}
	for _, m := range d.Maps {
		if name := cmp.Or(m.Collection, "@all_docs"); !slices.ContainsFunc(names, func(other string) bool { return strings.EqualFold(other, name) }) {
			names = append(names, name)
		}
	}
	return names
}

// stats returns the statistics of the index.
func (ix *listedIndex) stats(c *serve.Call, collections []jay.CollectionCount) (map[string]any, error) {
	now := c.Server.Options.Now().UTC().Format(serve.RavenTime)
	documents, lags := int64(0), make(map[string]any)
	for _, name := range ix.sources() {
		for _, one := range collections {
			if name == "@all_docs" || strings.EqualFold(one.Name, name) {
				documents += one.Documents
			}
		}
		lags[name] = map[string]any{"LastProcessedDocumentEtag": 0, "LastProcessedTombstoneEtag": 0, "DocumentLag": 0, "TombstoneLag": 0}
	}
	entries, failed, err := ix.figures(c, documents)
	if err != nil {
		return nil, err
	}
	lock, priority := ix.modes()
	out := map[string]any{ // RavenDB's client for Python needs each member; rates and outputs are not counted
		"Name": ix.name, "IsStale": ix.stale, "State": ix.state(), "Status": ix.status(), "LockMode": lock, "Priority": priority, "Type": ix.kind(),
		"EntriesCount": entries, "MapAttempts": documents, "MapSuccesses": max(documents-failed, 0), "MapErrors": failed, "ErrorsCount": failed, "IsInvalidIndex": ix.isFaulty(), "LastIndexingTime": now, "LastQueryingTime": nil,
		"CreatedTimestamp": now, "SourceType": "Documents", "ReduceAttempts": nil, "ReduceSuccesses": nil, "ReduceErrors": nil, "MapReferenceAttempts": nil, "MapReferenceSuccesses": nil, "MapReferenceErrors": nil,
		"ReduceOutputCollection": nil, "ReduceOutputReferencePattern": nil, "PatternReferencesCollectionName": nil, "MappedPerSecondRate": 0, "ReducedPerSecondRate": 0, "MaxNumberOfOutputsPerDocument": 0,
		"Collections": lags, "Memory": map[string]any{"DiskSize": map[string]any{"SizeInBytes": 0, "HumaneSize": "0 Bytes"}},
	}
	if d := ix.declared(); d != nil && d.Reduce != nil {
		out["ReduceAttempts"], out["ReduceSuccesses"], out["ReduceErrors"] = entries, entries, 0
	}
	return out, nil
}

// figures returns the number of entries, and of failures of expressions. An index of fields has an entry of each document.
func (ix *listedIndex) figures(c *serve.Call, documents int64) (entries, failed int64, err error) {
	switch {
	case ix.declared() == nil:
		return documents, 0, nil
	case ix.computed == nil || ix.computed.Unknown != "":
		return 0, 0, nil
	}
	for _, part := range ix.computed.Parts {
		failed += part.Errors
	}
	q, err := c.DB.RQL("from index "+serve.Quote(ix.computed.Name), nil)
	if err == nil {
		entries, err = q.Count(c.Reading(c.Ctx, 1))
	}
	if errors.Is(err, jay.ErrNoIndex) { // it was dropped meanwhile
		err = nil
	}
	return entries, failed, err
}

// errors returns the first errors of the index in the format of clients.
func (ix *listedIndex) errors(c *serve.Call) ([]any, error) {
	list := []any{}
	if ix.computed == nil {
		return list, nil
	}
	failures, err := jay.ComputedOf(c.DB).Errors(c.Ctx, ix.computed.Name, maxIndexErrors)
	if errors.Is(err, jay.ErrIndex) { // it was dropped meanwhile
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	for _, one := range failures[:min(len(failures), maxIndexErrors)] {
		if err := c.Take(4 * int64(len(one.ID)+len(one.Field)+len(one.Reason)+256)); err != nil {
			return nil, err
		}
		at, err := writtenAt(c, one.ID)
		if err != nil {
			return nil, err
		}
		list = append(list, map[string]any{"Timestamp": at, "Document": one.ID, "Action": "Map", "Error": "Failed to execute mapping function on " + one.ID + ": " + one.Field + ": " + one.Reason})
	}
	return list, nil
}

// writtenAt returns when the version of a document was written, and with it its error.
func writtenAt(c *serve.Call, id string) (string, error) {
	doc, err := c.DB.Get(c.Ctx, id)
	if serve.IsMissing(err) { // it has expired, or was deleted meanwhile
		return c.Server.Options.Now().UTC().Format(serve.RavenTime), nil
	}
	if err != nil {
		return "", err
	}
	return doc.Metadata().LastModified.UTC().Format(serve.RavenTime), nil
}
