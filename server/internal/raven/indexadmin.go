package raven

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// maxTerms is the largest number of different values that a list of terms is made of.
const maxTerms = 100_000

// indexTerms replies with the values of a field of an index, each once, in the order of their texts.
func indexTerms(c *serve.Call) error {
	_, size, err := c.Params.Page()
	if err != nil {
		return err
	}
	ix, err := verbs.FindIndex(c, c.Params.Get("name"))
	if err != nil {
		return err
	}
	fields, terms := ix.Fields, []string(nil)
	if ix.Computed != nil {
		fields = verbs.Results(ix.Computed.Computed)
	}
	field := c.Params.Get("field")
	if !slices.Contains(fields, field) && ix.Computed != nil && ix.Computed.Creates() {
		return serve.BadRequest("index %.150q has no field %.100q with a constant name, and lists no terms of fields whose names are in documents: it has %.500s", ix.Name, field, strings.Join(fields, ", "))
	}
	if !slices.Contains(fields, field) {
		return serve.BadRequest("index %.150q has no field %.100q: it has %.500s", ix.Name, field, strings.Join(fields, ", "))
	}
	if words, searched, err := termsOfWords(c, ix.Defined, field); err != nil {
		return err
	} else if searched {
		return termsReply(c, ix.Name, words, size)
	}
	if ix.Computed != nil {
		terms, err = termsOfMember(c, ix.Computed.Name, field)
	} else {
		terms, err = termsOf(c, ix, field)
	}
	if err != nil {
		return err
	}
	return termsReply(c, ix.Name, terms, size)
}

// termsReply replies with a page of terms, which are sorted.
func termsReply(c *serve.Call, name string, terms []string, size int) error {
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
	return c.JSON(http.StatusOK, map[string]any{"Terms": terms, "ResultEtag": int64(h.Sum64() >> 1), "IndexName": name})
}

// termsOfWords returns the terms of a field whose words are searched, sorted. Searched is false for another field, and for one that no index has.
func termsOfWords(c *serve.Call, d *verbs.Definition, field string) (terms []string, searched bool, err error) {
	terms = []string{}
	searched, err = d.EachTerm(c.Reading(c.Ctx, 1), c.DB, field, func(term string) error {
		if len(terms) == maxTerms {
			return serve.TooLarge("the field %.100q has more than %d different words, of which no list is made", field, maxTerms)
		}
		terms = append(terms, term)
		return c.Take(2 * (int64(len(term)) + 64))
	})
	slices.Sort(terms)
	return slices.Compact(terms), searched, err
}

// termsOf returns the different values of a field as RavenDB's texts, sorted.
func termsOf(c *serve.Call, ix verbs.Index, field string) ([]string, error) {
	path, collection := pathInQuery(field), serve.Quote(ix.Collection)
	terms := []string{}
	err := c.DB.View(c.Ctx, func(tx *jay.Tx) error {
		groups, err := tx.RQL(fmt.Sprintf("from %s group by %s where exists(%s) select %s as Term limit %d", collection, path, path, path, maxTerms+1), nil)
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
		nulls, err := tx.RQL(fmt.Sprintf("from %s where %s = null", collection, path), nil) // an empty array is in the group of null, too
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

// termsOfMember returns the different values of a member of a computed index, those of the elements of arrays among them, as RavenDB's
// texts, sorted.
func termsOfMember(c *serve.Call, name, member string) ([]string, error) {
	path, from := serve.Quote(member), "from index "+serve.Quote(name)
	found := make(map[string]bool)
	add := func(term string) error {
		if found[term] {
			return nil
		}
		if len(found) == maxTerms {
			return serve.TooLarge("the field %.100q has more than %d different values, of which no list is made", member, maxTerms)
		}
		found[term] = true
		return c.Take(2 * (int64(len(term)) + 64))
	}
	err := c.DB.View(c.Ctx, func(tx *jay.Tx) error {
		values, err := tx.RQL(from+" select distinct "+path+" as Term", nil)
		if err != nil {
			return err
		}
		for row, err := range values.Iter(c.Reading(c.Ctx, 1)) {
			if err != nil {
				return err
			}
			if err := eachTerm(row.JSON, add); err != nil {
				return err
			}
		}
		nulls, err := tx.RQL(from+" where "+path+" = null", nil)
		if err != nil {
			return err
		}
		n, err := nulls.Limit(1).Count(c.Reading(c.Ctx, 1))
		if n > 0 && err == nil {
			err = add("NULL_VALUE")
		}
		return err
	})
	return slices.Sorted(maps.Keys(found)), err
}

// eachTerm calls fn with the terms of a value: of an array those of its elements.
func eachTerm(row json.RawMessage, fn func(term string) error) error {
	var value struct{ Term []json.RawMessage }
	if json.Unmarshal(row, &value) != nil { // it is no array
		if term, found := termOf(row); found {
			return fn(term)
		}
		return nil
	}
	for _, one := range value.Term {
		if err := eachTerm(serve.MustJSON(map[string]json.RawMessage{"Term": one}), fn); err != nil {
			return err
		}
	}
	return nil
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
		names[i] = serve.Quote(name)
	}
	return strings.Join(names, ".")
}

// disableIndex takes an index out of commits and queries: its entries are gone, its definition stays.
func disableIndex(c *serve.Call) error { return switchIndex(c, verbs.Disabled) }

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
	d.State, d.Fault = state, ""
	if state != "" && d.Computed != nil {
		declared, err := verbs.FindComputed(c, d.Name)
		if err != nil {
			return err
		}
		if declared != nil { // its maps may be of another collection by now, which was renamed
			d.Computed = &declared.Computed
		}
	}
	if state != "" {
		// The state comes first: a crash leaves a disabled definition whose indexes nobody asks, and the next request drops them.
		if err := c.DB.Definitions().Change(c.Ctx, d.Change()); err != nil {
			return err
		}
		if err := dropIndexes(c, d, nil); err != nil {
			return err
		}
	} else {
		if err := buildIndexes(c, d); err != nil {
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
	declared, err := verbs.FindComputed(c, name)
	switch {
	case err != nil:
		return err
	case declared != nil:
		return serve.NotSupported("index %.150q was declared by a program, and %s", name, lacks)
	}
	return verbs.MissingIndex(name)
}

// suggestMerges replies with definitions that one could replace: several of a collection, and those whose fields another one has.
func suggestMerges(c *serve.Call) error {
	all, err := verbs.Definitions(c)
	if err != nil {
		return err
	}
	suggestions, unmergable := []any{}, make(map[string]string)
	for _, d := range all {
		if d.Computed != nil {
			unmergable[d.Name] = "it computes, and indexes are merged that list fields"
		} else if len(d.Options()) > 0 {
			unmergable[d.Name] = "its fields have options, and indexes are merged that list fields"
		}
	}
	all = slices.DeleteFunc(all, func(d *verbs.Definition) bool { return unmergable[d.Name] != "" })
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
	return c.JSON(http.StatusOK, map[string]any{"Suggestions": suggestions, "Unmergables": unmergable, "Errors": []any{}})
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
	out := emptyDefinition()
	maps.Copy(out, map[string]any{"Name": verbs.AutomaticName(ix), "LockMode": "Unlock", "Priority": "Normal", "State": "Normal", "Type": "AutoMap", "SourceType": "Documents", "Fields": fields,
		"Maps": []string{ix.Collection + ":[" + strings.Join(verbs.AutomaticFields(ix), ", ") + "]"}})
	return out
}
