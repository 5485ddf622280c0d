package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// worded puts a definition with options of fields.
func (h *host) worded(name, maps, fields string) answer {
	return h.do("PUT", "/databases/a/admin/indexes", fmt.Sprintf(`{"Indexes":[{"Name":%q,"Maps":[%q],"Fields":%s}]}`, name, maps, fields))
}

// notes has documents with words.
func notes(t *testing.T) *host {
	h := start(t)
	h.create("a")
	for id, body := range map[string]string{
		"notes/1": `"Text":"The oak has fallen leaves","Code":"Ab-1","Kind":"Tree"`, "notes/2": `"Text":"Acorns of an OAK","Code":"ab-1","Kind":"Seed"`, "notes/3": `"Text":"a beech of the wood","Code":"x","Kind":"tree"`,
	} {
		h.want(201, "PUT", "/databases/a/docs?id="+id, `{`+body+`,"@metadata":{"@collection":"Notes"}}`)
	}
	return h
}

// asks returns the IDs of the answers of a query, in their order, and its whole answer.
func (h *host) asks(query string) (ids string, a answer) {
	h.t.Helper()
	a = h.want(200, "POST", "/databases/a/queries", query)
	var found struct {
		Results []struct {
			Metadata struct {
				ID string `json:"@id"`
			} `json:"@metadata"`
		}
	}
	if err := json.Unmarshal([]byte(a.body), &found); err != nil {
		h.t.Fatal(err)
	}
	for _, one := range found.Results {
		ids += strings.TrimPrefix(one.Metadata.ID, "notes/") + " "
	}
	return strings.TrimSpace(ids), a
}

// Ensure that the options of fields in definitions of RavenDB's clients are what queries of the index go by, of fields and of what computes, and that the
// definition is echoed as it was sent.
func TestDefinitions_Words(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ kind, maps string }{
		{"fields", `from n in docs.Notes select new { n.Text, n.Code, n.Kind }`},
		{"computed", `from n in docs.Notes select new { n.Text, n.Code, n.Kind, Upper = n.Kind.ToUpper() }`},
	} {
		t.Run(test.kind, func(t *testing.T) {
			t.Parallel()
			h := notes(t)
			const fields = `{"Text":{"Indexing":"Search","Analyzer":"Lucene.Net.Analysis.Standard.StandardAnalyzer, Lucene.Net","Storage":"No","Suggestions":true,"TermVector":"WithPositionsAndOffsets"},"Code":{"Indexing":"Exact"},"Kind":{"Suggestions":true}}`
			if a := h.worded("Notes/ByText", test.maps, fields); a.status != 201 {
				t.Fatal(a.body)
			}
			if body := h.want(200, "GET", "/databases/a/indexes?name=Notes/ByText", "").body; !strings.Contains(body, fields) {
				t.Errorf("echoed as %s", body)
			}
			equal(t, "ready", h.want(200, "GET", "/databases/a/indexes/staleness?name=Notes/ByText", "").text(t, "IsStale"), "false")
			for where, want := range map[string]string{
				`search(Text, 'oak') order by score()`:                                        "2 1",
				`search(Text, 'the oak', and) order by score()`:                               "2 1", // the is no word
				`search(Text, 'the')`:                                                         "",
				`lucene(Text, 'oak AND (leaves OR acorns)') order by id()`:                    "1 2",
				`search(Text, 'oak', 'whitespace')`:                                           "1",
				`boost(search(Text, 'leaves'), 2) or search(Text, 'acorns') order by score()`: "1 2",
				`not search(Text, 'oak')`:                                                     "3",
				`Code = 'ab-1'`:                                                               "2",
				`Code in ('AB-1', 'Ab-1')`:                                                    "1",
				`startsWith(Code, 'a')`:                                                       "2",
				`Kind = 'tree' order by id()`:                                                 "1 3",
				`moreLikeThis(id() = 'notes/1', '{"Fields":["Text"],"MinimumTermFrequency":1,"MinimumDocumentFrequency":1}')`: "2",
			} {
				ids, a := h.asks(fmt.Sprintf(`{"Query":"from index 'Notes/ByText' where %s"}`, strings.ReplaceAll(where, `"`, `\"`)))
				if ids != want {
					t.Errorf("%s: got %s, want %s", where, ids, want)
				}
				equal(t, where, a.text(t, "IndexName"), "Notes/ByText")
			}
			ids, a := h.asks(`{"Query":"from index 'Notes/ByText' where search(Text, $p0) include highlight(Text, 18, 1), explanations()","QueryParameters":{"p0":"leaves"}}`)
			equal(t, "a parameter", ids, "1")
			equal(t, "highlights", a.text(t, "Highlightings", "Text", "notes/1", 0), "has fallen <b>leaves</b>")
			if why := a.text(t, "Explanations", "notes/1", 0); !strings.Contains(why, "rarity") {
				t.Errorf("explained as %s", why)
			}
			_, a = h.asks(`{"Query":"from index 'Notes/ByText' where search(Text, 'leaves') select Kind, id() as Which"}`)
			equal(t, "columns", a.text(t, "Results", 0, "Which"), "notes/1")
			_, a = h.asks(`{"Query":"from index 'Notes/ByText' select suggest(Text, 'acron')"}`)
			equal(t, "words that are suggested", a.text(t, "Results", 0, "Suggestions"), `[acorns]`)
			_, a = h.asks(`{"Query":"from index 'Notes/ByText' select suggest(Kind, 'treed')"}`)
			equal(t, "values that are suggested", a.text(t, "Results", 0, "Suggestions"), `[tree seed]`)
			equal(t, "terms", h.want(200, "GET", "/databases/a/indexes/terms?name=Notes/ByText&field=Text&pageSize=3&fromValue=beech", "").text(t, "Terms"), `[fallen has leaves]`)
			plan := h.want(200, "POST", "/databases/a/queries?debug=explain", `{"Query":"from index 'Notes/ByText' where search(Text, 'oak')"}`).body
			if !strings.Contains(plan, "words") {
				t.Errorf("the plan is %s", plan)
			}
			h.want(200, "POST", "/databases/a/streams/queries", `{"Query":"from index 'Notes/ByText' where search(Text, 'the oak', and)"}`)
			operation := h.want(200, "PATCH", "/databases/a/queries", `{"Query":{"Query":"from index 'Notes/ByText' where search(Text, 'the oak', and) update { this.Found = true }"}}`).text(t, "OperationId")
			h.await("a", operation)
			ids, _ = h.asks(`{"Query":"from Notes where Found = true order by id()"}`)
			equal(t, "patched", ids, "1 2")

			// Another definition of the name replaces the index of words, and none is left when it is dropped.
			words := func() string {
				all := h.want(200, "GET", "/jay/v1/databases/a/indexes", "").body
				if !strings.Contains(all, "::words") {
					return ""
				}
				for _, name := range []string{"whitespace", "lucene"} {
					if strings.Contains(all, name) {
						return name
					}
				}
				return all
			}
			equal(t, "analyzer", words(), "lucene")
			equal(t, "changed", h.want(200, "POST", "/databases/a/indexes/has-changed", fmt.Sprintf(`{"Name":"Notes/ByText","Maps":[%q],"Fields":{"Text":{"Analyzer":"WhitespaceAnalyzer"}}}`, test.maps)).text(t, "Changed"), "true")
			if a := h.worded("Notes/ByText", test.maps, `{"__all_fields":{"Analyzer":"WhitespaceAnalyzer"},"Code":{}}`); a.status != 201 {
				t.Fatal(a.body)
			}
			equal(t, "analyzer", words(), "whitespace")
			ids, _ = h.asks(`{"Query":"from index 'Notes/ByText' where search(Text, 'OAK')"}`)
			equal(t, "found with regard to case", ids, "2")
			h.want(204, "POST", "/databases/a/admin/indexes/disable?name=Notes/ByText", "")
			equal(t, "disabled", words(), "")
			h.want(204, "POST", "/databases/a/admin/indexes/enable?name=Notes/ByText", "")
			equal(t, "enabled", words(), "whitespace")
			h.want(204, "DELETE", "/databases/a/indexes?name=Notes/ByText", "")
			equal(t, "dropped", words(), "")
		})
	}
}

// Ensure that words are searched in entries of several maps, of elements and of a reduce, where an index of words has them and where documents are looked at.
func TestDefinitions_Words_Entries(t *testing.T) {
	t.Parallel()
	h := notes(t)
	h.want(201, "PUT", "/databases/a/docs?id=trees/1", `{"Name":"Oak","Lines":[{"Note":"the ripe acorn"},{"Note":"a leaf"}],"@metadata":{"@collection":"Trees"}}`)
	for _, test := range []struct{ maps, reduce, where, want string }{
		{"from n in docs.Notes select new { Text = n.Text }\n---\nfrom t in docs.Trees select new { Text = t.Name }", "", "search(Text, 'the oak', and) order by id()", "1 2 trees/1"},
		{"from t in docs.Trees from l in t.Lines select new { Text = l.Note }", "", "search(Text, 'the acorn', and)", "trees/1"},
		{"from t in docs.Trees from l in t.Lines select new { Text = l.Note }", "", "search(Text, 'ripe leaf', and)", ""},
	} {
		maps := strings.Split(test.maps, "\n---\n")
		body, err := json.Marshal(map[string]any{"Indexes": []any{map[string]any{"Name": "X", "Maps": maps, "Fields": map[string]any{"Text": map[string]any{"Indexing": "Search"}}}}})
		if err != nil {
			t.Fatal(err)
		}
		h.want(201, "PUT", "/databases/a/admin/indexes", string(body))
		ids, _ := h.asks(`{"Query":"from index 'X' where ` + test.where + `"}`)
		equal(t, test.maps+test.where, ids, test.want)
		if len(maps) > 1 {
			equal(t, "terms", h.want(200, "GET", "/databases/a/indexes/terms?name=X&field=Text&pageSize=3", "").text(t, "Terms"), "[acorns beech fallen]")
		}
	}
	body, err := json.Marshal(map[string]any{"Indexes": []any{map[string]any{"Name": "X", "Maps": []string{"from n in docs.Notes select new { n.Text, Count = 1 }"},
		"Reduce": "from r in results group r by r.Text into g select new { Text = g.Key, Count = g.Sum(x => x.Count) }", "Fields": map[string]any{"Text": map[string]any{"Indexing": "Search"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	h.want(201, "PUT", "/databases/a/admin/indexes", string(body))
	equal(t, "results", h.want(200, "POST", "/databases/a/queries", `{"Query":"from index 'X' where search(Text, 'the oak', and)"}`).text(t, "TotalResults"), 2)
}

// Ensure that options of fields which are not there are refused by name, and leave no definition.
func TestDefinitions_Words_Refused(t *testing.T) {
	t.Parallel()
	h := notes(t)
	for fields, says := range map[string]string{
		`{"Text":{"Analyzer":"MyCompany.MyAnalyzer, MyCompany"}}`:       "code in C#",
		`{"Text":{"Indexing":"No"}}`:                                    "the indexing No",
		`{"Text":{"Indexing":"Default","Analyzer":"StandardAnalyzer"}}`: "which has no words",
		`{"Text":{"Indexing":"Exact","Analyzer":"StandardAnalyzer"}}`:   "which has no words",
		`{"Text":{},"Kind":{"Suggestions":true}}`:                       `field "Kind" has suggestions`,
		`{"Text":{"Indexing":"Search","TermVector":"Sometimes"}}`:       "the term vector Sometimes",
	} {
		a := h.worded("X", `from n in docs.Notes select new { n.Text }`, fields)
		if a.status != 501 || !strings.Contains(a.text(t, "Message"), says) || !strings.Contains(a.text(t, "Message"), `the field "`) {
			t.Errorf("%s is %d: %s", fields, a.status, a.body)
		}
	}
	equal(t, "none", h.want(200, "GET", "/databases/a/indexes", "").text(t, "Results"), "[]")
}

// Ensure that a query through Jay's own interface names every index that a client may name, and goes by the options of its fields.
func TestDefinitions_Words_Own(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ kind, maps string }{
		{"fields", `from n in docs.Notes select new { n.Text, n.Code }`},
		{"computed", `from n in docs.Notes select new { n.Text, n.Code, Upper = n.Code.ToUpper() }`},
	} {
		t.Run(test.kind, func(t *testing.T) {
			t.Parallel()
			h := notes(t)
			if a := h.worded("Notes/ByText", test.maps, `{"Text":{"Indexing":"Search","Analyzer":"StandardAnalyzer"},"Code":{"Indexing":"Exact"}}`); a.status != 201 {
				t.Fatal(a.body)
			}
			asks := func(path, query string) answer {
				return h.do("POST", "/jay/v1/databases/a/"+path, fmt.Sprintf(`{"query":%q,"parameters":{"p":"the oak"}}`, query))
			}
			for where, want := range map[string]int{`search(Text, $p, and)`: 2, `search(Text, 'the')`: 0, `search(Text, 'oak', 'whitespace')`: 1, `Code = 'ab-1'`: 1} {
				a := asks("query", `from index 'Notes/ByText' where `+where)
				if a.status != 200 {
					t.Fatal(a.body)
				}
				if got := strings.Count(a.body, `"Text":`); got != want {
					t.Errorf("%s: %d answers: %s", where, got, a.body)
				}
			}
			equal(t, "plan", asks("explain", `from index 'Notes/ByText' where search(Text, $p, and) limit 1`).text(t, "returned"), "1")
			h.checkProblem(asks("query", `from index 'None' where Code = 'x'`), 400, "IndexDoesNotExistException")
			h.want(204, "POST", "/databases/a/admin/indexes/disable?name=Notes/ByText", "")
			h.checkProblem(asks("query", `from index 'Notes/ByText'`), 400, "BadRequestException")
		})
	}
}
