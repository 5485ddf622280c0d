package raven

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// maxTerms is the largest number of different values that a list of terms is made of.
const maxTerms = 100_000

// indexed is the collection and the fields of an index that a request names: a definition, or an automatic index.
type indexed struct {
	name, collection string
	fields           []string
}

// findIndexed returns the index that a request names.
func findIndexed(c *serve.Call, name string) (found indexed, err error) {
	d, err := verbs.FindDefinition(c, name)
	if err != nil {
		return found, err
	}
	if d != nil {
		return indexed{d.Name, d.Collection, d.Fields}, d.CheckEnabled()
	}
	ix, err := verbs.FindAutomatic(c, name)
	if err != nil {
		return found, err
	}
	if ix == nil {
		return found, verbs.MissingIndex(name)
	}
	return indexed{verbs.AutomaticName(*ix), ix.Collection, verbs.AutomaticFields(*ix)}, nil
}

// indexTerms replies with the values of a field of an index, each once, in the order of their texts.
func indexTerms(c *serve.Call) error {
	_, size, err := c.Params.Page()
	if err != nil {
		return err
	}
	ix, err := findIndexed(c, c.Params.Get("name"))
	if err != nil {
		return err
	}
	field := c.Params.Get("field")
	if !slices.Contains(ix.fields, field) {
		return serve.BadRequest("index %.150q has no field %.100q: it has %.500s", ix.name, field, strings.Join(ix.fields, ", "))
	}
	terms, err := termsOf(c, ix, field)
	if err != nil {
		return err
	}
	if from := c.Params.Get("fromValue"); from != "" { // the page behind it
		i, found := slices.BinarySearch(terms, from)
		if found {
			i++
		}
		terms = terms[i:]
	}
	terms = terms[:min(size, len(terms))]
	h := fnv.New64a()
	for _, term := range terms {
		fmt.Fprintln(h, term)
	}
	return c.JSON(http.StatusOK, map[string]any{"Terms": terms, "ResultEtag": int64(h.Sum64() >> 1), "IndexName": ix.name})
}

// termsOf returns the different values of a field as RavenDB's texts, sorted.
func termsOf(c *serve.Call, ix indexed, field string) ([]string, error) {
	path, collection := pathInQuery(field), escapeQuery(ix.collection)
	terms := []string{}
	err := c.DB.View(c.Ctx, func(tx *jay.Tx) error {
		groups, err := tx.RQL(fmt.Sprintf("from '%s' group by %s where exists(%s) select %s as Term limit %d", collection, path, path, path, maxTerms+1), nil)
		if err != nil {
			return err
		}
		for row, err := range groups.Iter(c.Reading(c.Ctx, 1)) {
			if err != nil {
				return err
			}
			if len(terms) == maxTerms {
				return serve.TooLarge("the field %.100q has more than %d different values, of which no list is made", field, maxTerms)
			}
			if err := c.Take(2 * (int64(len(row.JSON)) + 64)); err != nil {
				return err
			}
			if term, found := termOf(row.JSON); found {
				terms = append(terms, term)
			}
		}
		nulls, err := tx.RQL(fmt.Sprintf("from '%s' where %s = null", collection, path), nil) // an empty array is in the group of null, too
		if err != nil {
			return err
		}
		n, err := nulls.Limit(1).Count(c.Reading(c.Ctx, 1))
		if n > 0 {
			terms = append(terms, "NULL_VALUE")
		}
		return err
	})
	slices.Sort(terms)
	return slices.Compact(terms), err
}

// termOf returns the term that RavenDB makes of a value that is not null.
func termOf(row json.RawMessage) (term string, found bool) {
	var value struct{ Term json.RawMessage }
	var text string
	switch {
	case json.Unmarshal(row, &value) != nil || string(value.Term) == "null" || value.Term == nil:
		return "", false
	case json.Unmarshal(value.Term, &text) != nil:
		return string(value.Term), true
	case text == "":
		return "EMPTY_STRING", true
	}
	return strings.ToLower(text), true
}

// pathInQuery returns a path as a query has it: each name in quotes, as it may be a keyword.
func pathInQuery(path string) string {
	names := strings.Split(path, ".")
	for i, name := range names {
		names[i] = "'" + escapeQuery(name) + "'"
	}
	return strings.Join(names, ".")
}

func escapeQuery(name string) string {
	return strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(name)
}

// disableIndex takes an index out of commits and queries: its entries are gone, its definition stays.
func disableIndex(c *serve.Call) error { return switchIndex(c, "Disabled") }

// enableIndex builds a disabled index anew.
func enableIndex(c *serve.Call) error { return switchIndex(c, "") }

func switchIndex(c *serve.Call, state string) error {
	if _, err := c.Params.Flag("clusterWide"); err != nil {
		return err
	}
	c.Server.Defining.Lock()
	defer c.Server.Defining.Unlock()
	name := c.Params.Get("name")
	d, err := indexParam(c)
	if err != nil {
		return err
	}
	if d == nil {
		return missingOrAutomatic(c, name, "is not disabled: DELETE drops it")
	}
	if state == "" && d.State == "" {
		return c.Empty(http.StatusNoContent)
	}
	d.State = state
	if state != "" {
		// The state comes first: a crash leaves a disabled definition whose indexes nobody asks, and the next request drops them.
		if err := c.DB.Definitions().Change(c.Ctx, d.Change()); err != nil {
			return err
		}
		if err := dropFields(c, d, nil); err != nil {
			return err
		}
	} else {
		if err := buildFields(c, d); err != nil {
			return err
		}
		if err := c.DB.Definitions().Change(c.Ctx, d.Change()); err != nil {
			return err
		}
	}
	c.Server.Hubs.PublishIndex(c.Database.Key, "IndexUpdated", d.Name)
	return c.Empty(http.StatusNoContent)
}

// missingOrAutomatic is the error for a name of no definition, where an automatic index does not have what is asked for.
func missingOrAutomatic(c *serve.Call, name, lacks string) error {
	ix, err := verbs.FindAutomatic(c, name)
	switch {
	case err != nil:
		return err
	case ix != nil:
		return serve.NotSupported("index %.150q is automatic, and %s", name, lacks)
	}
	return verbs.MissingIndex(name)
}

// suggestMerges replies with definitions that one could replace: several of a collection, and those whose fields another one has.
func suggestMerges(c *serve.Call) error {
	all, err := verbs.Definitions(c)
	if err != nil {
		return err
	}
	suggestions := []any{}
	done := make(map[string]bool)
	for _, d := range all {
		key := strings.ToLower(d.Collection)
		if done[key] {
			continue
		}
		done[key] = true
		same := slices.DeleteFunc(slices.Clone(all), func(other *verbs.Definition) bool { return !strings.EqualFold(other.Collection, d.Collection) })
		if suggestion := suggestMerge(same); suggestion != nil {
			suggestions = append(suggestions, suggestion)
		}
	}
	return c.JSON(http.StatusOK, map[string]any{"Suggestions": suggestions, "Unmergables": map[string]any{}, "Errors": []any{}})
}

// suggestMerge suggests what becomes of the definitions of a collection, or returns nil.
func suggestMerge(same []*verbs.Definition) any {
	if len(same) < 2 {
		return nil
	}
	names, fields := []string{}, []string{}
	for _, d := range same {
		names = append(names, d.Name)
		for _, f := range d.Fields {
			if !slices.Contains(fields, f) {
				fields = append(fields, f)
			}
		}
	}
	for _, d := range same { // one that has the fields of all
		if len(d.Fields) == len(fields) {
			others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == d.Name })
			return map[string]any{"CanMerge": []any{}, "CanDelete": others, "Collection": d.Collection, "MergedIndex": nil, "SurpassingIndex": d.Name}
		}
	}
	if len(fields) > maxIndexFields {
		return nil
	}
	var members []string
	for _, f := range fields {
		members = append(members, string(serve.MustJSON(f))+": doc."+f)
	}
	merged := map[string]any{"Name": nil, "Maps": []string{fmt.Sprintf("map(%s, doc => ({ %s }))", serve.MustJSON(same[0].Collection), strings.Join(members, ", "))}, "Fields": map[string]any{}, "LockMode": "Unlock", "Priority": "Normal", "State": "Normal"}
	return map[string]any{"CanMerge": names, "CanDelete": []any{}, "Collection": same[0].Collection, "MergedIndex": merged, "SurpassingIndex": nil}
}

// automaticReply returns an automatic index in the format of clients.
func automaticReply(ix jay.IndexInfo) map[string]any {
	fields := make(map[string]any)
	for _, f := range verbs.AutomaticFields(ix) {
		fields[f] = map[string]any{"Indexing": "Default", "Storage": "No"}
	}
	return map[string]any{"Name": verbs.AutomaticName(ix), "LockMode": "Unlock", "Priority": "Normal", "State": "Normal", "Type": "AutoMap", "SourceType": "Documents", "Fields": fields,
		"Maps": []string{ix.Collection + ":[" + strings.Join(verbs.AutomaticFields(ix), ", ") + "]"}}
}
