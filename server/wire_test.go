package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// Ensure that rows of a query name their document, that a sum has the name of its field,
// and that a query can be ordered by that, as RavenDB's clients ask for it.
func TestQueries_ColumnsOfClients(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for id, body := range map[string]string{"u/1": `{"name":"Ann","age":3,"odd":"\"@id\":\"x\"}","@metadata":{"@collection":"Users"}}`, "u/2": `{"name":"Bob","age":5,"@metadata":{"@collection":"Users"}}`, "u/3": `{"name":"Ann","age":4,"@metadata":{"@collection":"Users"}}`} {
		h.want(201, "PUT", "/databases/a/docs?id="+id, body)
	}
	for query, want := range map[string]string{
		"from Users where id() = 'u/1' select age, odd":                                                        `{"age":3,"odd":"\"@id\":\"x\"}","@metadata":{"@projection":true,"@id":"u/1"}}`,
		"from Users as u where u.age = 5 select u.age as \"it's\", u.none, id()":                               `{"it's":5,"none":null,"id()":"u/2","@metadata":{"@projection":true,"@id":"u/2"}}`,
		"from Users where age = 5 select id() as '@id'":                                                        `{"@id":"u/2","@metadata":{"@projection":true}}`,
		"from Users where age > 4 select distinct name":                                                        `{"name":"Bob","@metadata":{"@projection":true}}`,
		"from Users group by name order by age desc select key(), sum(age)":                                    `{"name":"Ann","age":7,"@metadata":{"@projection":true}},{"name":"Bob","age":5,"@metadata":{"@projection":true}}`,
		"from Users group by name order by age select name, sum(age) limit 1":                                  `{"name":"Bob","age":5,"@metadata":{"@projection":true}}`,
		"from Users group by age order by sum(age) select age, sum(age) limit 1":                               `{"age":3,"sum(age)":3,"@metadata":{"@projection":true}}`,
		"from Users as u where u.age * 2 > 7 and u.age < 5 select u.name + '!' as n, u.age / 2":                `{"n":"Ann!","age / 2":2,"@metadata":{"@projection":true,"@id":"u/3"}}`,
		"from Users group by lower(name) order by sum(age * 10) desc select key(), sum(age * 10) as n limit 1": `{"lower(name)":"ann","n":70,"@metadata":{"@projection":true}}`,
		"from Users group by name order by n select name, sum(age) as n, count() limit 1":                      `{"name":"Bob","n":5,"Count":1,"@metadata":{"@projection":true}}`,
	} {
		a := h.want(200, "POST", "/databases/a/queries", `{"Query":`+quote(query)+`}`)
		if !strings.HasPrefix(a.body, `{"Results":[`+want+`],`) {
			t.Errorf("%s: got %s, want %s", query, a.body, want)
		}
		a = h.want(200, "POST", "/databases/a/streams/queries", `{"Query":`+quote(query)+`}`)
		if !strings.HasSuffix(a.body, `"Results":[`+want+`]}`) {
			t.Errorf("%s streamed: got %s, want %s", query, a.body, want)
		}
	}
}

// Ensure that a query of an index that is missing is 404 without a body, alone and in a
// multi_get.
func TestQueries_MissingIndex(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	equal(t, "body", h.want(404, "POST", "/databases/a/queries", `{"Query":"from index 'Nope'"}`).body, "")
	a := h.want(200, "POST", "/databases/a/multi_get", `{"Requests":[{"Url":"/databases/a/queries","Method":"POST","Content":{"Query":"from index 'Nope'"}}]}`)
	equal(t, "nested", a.text(t, "Results", 0, "StatusCode")+a.text(t, "Results", 0, "Result"), "404<nil>")
}

// Ensure that every line break of JavaScript ends a statement of a patch.
func TestPatch_LineBreaks(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, text := range []string{`\r`, `\n`, `\r\n`, `\u2028`, `\u2029`} {
		h.want(201, "PUT", "/databases/a/docs?id=x", `{"n":[]}`)
		a := h.want(200, "PATCH", "/databases/a/docs?id=x", `{"Patch":{"Script":"this.n.push(1)`+text+`// no`+text+`this.n.push(2)"}}`)
		equal(t, text, a.text(t, "ModifiedDocument", "n"), "[1 2]")
		a = h.do("PATCH", "/databases/a/docs?id=x", `{"Patch":{"Script":"this.n = 1`+text+text+`throw 'x'"}}`)
		if !strings.Contains(a.body, "line 3") {
			t.Errorf("%s: got %s", text, a.body)
		}
	}
}

// Ensure that ForceRevisionCreationStrategy: Before keeps what a PUT replaces, and only that.
func TestBatch_ForceRevisionBefore(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	put := func(status int, id, strategy string) answer {
		t.Helper()
		return h.want(status, "POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PUT","Id":"`+id+`","Document":{"n":2},"ForceRevisionCreationStrategy":"`+strategy+`"}]}`)
	}
	h.want(201, "PUT", "/databases/a/docs?id=x", `{"n":1}`)
	put(201, "x", "Before")
	a := h.want(200, "GET", "/databases/a/revisions?id=x", "")
	equal(t, "revisions", a.text(t, "TotalResults")+" "+a.text(t, "Results", 0, "n"), "1 1")
	h.checkProblem(put(400, "new", "Before"), 400, "BadRequestException")
	h.want(404, "GET", "/databases/a/docs?id=new", "")
	h.checkProblem(put(400, "x", "After"), 400, "BadRequestException")
	equal(t, "revisions", h.want(200, "GET", "/databases/a/revisions/count?id=x", "").text(t, "RevisionsCount"), 1)
	put(201, "x", "None")
	equal(t, "revisions", h.want(200, "GET", "/databases/a/revisions/count?id=x", "").text(t, "RevisionsCount"), 1)
}

// Ensure that a batch whose ForceRevisionCreation names no document is refused as a whole, like
// any other batch, also if a command of the batch itself deletes the document.
func TestBatch_ForceRevisionOfMissing(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=x", `{"n":1}`)
	batch := func(status int, first, forced string) answer {
		t.Helper()
		return h.want(status, "POST", "/databases/a/bulk_docs", `{"Commands":[`+first+`,{"Type":"ForceRevisionCreation","Id":"`+forced+`"}]}`)
	}
	h.checkProblem(batch(400, `{"Type":"PUT","Id":"new","Document":{}}`, "none"), 400, "DocumentDoesNotExistException")
	h.want(404, "GET", "/databases/a/docs?id=new", "")
	h.checkProblem(batch(400, `{"Type":"DELETE","Id":"x"}`, "x"), 400, "DocumentDoesNotExistException")
	h.want(200, "GET", "/databases/a/docs?id=x", "")
	equal(t, "revisions", h.want(200, "GET", "/databases/a/revisions/count?id=x", "").text(t, "RevisionsCount"), 0)

	equal(t, "created", batch(201, `{"Type":"PUT","Id":"new","Document":{}}`, "new").text(t, "Results", 1, "RevisionCreated"), true)
	equal(t, "revisions", h.want(200, "GET", "/databases/a/revisions/count?id=new", "").text(t, "RevisionsCount"), 1)
}

// Ensure that statistics name the indexes that clients have defined, and not what each is
// made of.
func TestStats_DefinedIndexes(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	equal(t, "none", h.want(200, "GET", "/databases/a/stats", "").text(t, "LastIndexingTime"), "<nil>")
	h.want(201, "PUT", "/databases/a/admin/indexes", `{"Indexes":[{"Name":"U/NA","Maps":["from u in docs.Users select new { u.n, u.a, u.b }"]}]}`)
	h.want(201, "PUT", "/jay/v1/databases/a/indexes", `{"collection":"Users","index":{"name":"own","fields":["n"]}}`)
	a := h.want(200, "GET", "/databases/a/stats", "")
	equal(t, "indexes", a.text(t, "CountOfIndexes")+" "+a.text(t, "Indexes", 0, "Name")+" "+a.text(t, "Indexes", 0, "Type")+" "+a.text(t, "Indexes", 1, "Name"), "2 U/NA Map Users/own")
	if a.text(t, "LastIndexingTime") == "<nil>" {
		t.Error("no LastIndexingTime")
	}
	equal(t, "changed", h.want(200, "POST", "/databases/a/indexes/has-changed", `{"Name":"U/NA","Maps":["from users"]}`).text(t, "Changed"), true)
}

// Ensure that a cluster-wide transaction makes no keys of compare-exchange values, as it
// makes no IDs.
func TestClusterWide_KeysWithoutNumber(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, key := range []string{"company|", "company/"} {
		a := h.clusterBatch(400, `{"Type":"CompareExchangePUT","Id":"`+key+`","Index":0,"Document":{"Object":1}}`)
		if !strings.Contains(a.body, "cannot end with '|' or '/' as part of cluster transaction") {
			t.Errorf("got %s", a.body)
		}
	}
	equal(t, "stored", h.want(200, "GET", "/databases/a/cmpxchg", "").text(t, "Results"), "[]")
}

// Ensure that an index definition with a setting that the server would not heed is refused.
func TestIndexes_UnheededSettings(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	put := func(status int, member string) answer {
		t.Helper()
		return h.want(status, "PUT", "/databases/a/admin/indexes", `{"Indexes":[{"Name":"X","Maps":["from u in docs.Users select new { u.n }"],`+member+`}]}`)
	}
	for _, member := range []string{
		`"Configuration":{"Indexing.IndexMissingFieldsAsNull":"true"}`, `"Configuration":{"Indexing.Analyzers.Default":"x"}`, `"Fields":{"n":{"Indexing":"No"}}`,
		`"State":"Disabled"`, `"SourceType":"Counters"`, `"LockMode":"Open"`, `"CompoundFields":[["a","b"]]`, `"ArchivedDataProcessingBehavior":"ExcludeArchived"`, `"Fields":{"n":{"Vector":{"SourceEmbeddingType":"Text"}}}`, `"Fields":{"n":{"Vector":{"SourceEmbeddingType":"Int8","DestinationEmbeddingType":"Single"}}}`, `"Fields":{"n":{"Vector":{"Dimensions":9000}}}`, `"Fields":{"n":{"Vector":{},"Indexing":"Search"}}`,
	} {
		h.checkProblem(put(501, member), 501, "NotSupportedException")
	}
	for _, member := range []string{`"Nonsense":1`, `"Fields":{"n":{"Nonsense":1}}`, `"name":"Y"`} {
		h.checkProblem(put(400, member), 400, "BadRequestException")
	}
	equal(t, "none", h.want(200, "GET", "/databases/a/indexes", "").text(t, "Results"), "[]")
	put(201, `"Configuration":{"Indexing.Static.SearchEngineType":"Lucene","Indexing.IndexMissingFieldsAsNull":"False"},"State":"Normal","Type":"Map","LockMode":"Unlock"`)
}

// Ensure that a body with a member that is not known, or there twice, is refused and
// changes nothing.
func TestBodies_UnknownMembers(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.seed()
	before := h.state()
	for _, test := range []struct{ method, path, body string }{
		{"POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PUT","Type":"DELETE","Id":"kept/1","Document":{}}]}`},
		{"POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PUT","Id":"kept/1","id":"x","Document":{}}]}`},
		{"POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PUT","Id":"kept/1","Document":{},"IfMissing":true}]}`},
		{"POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PUT","Id":"kept/1","Document":{}}],"Mode":1}`},
		{"PATCH", "/databases/a/docs?id=kept/1", `{"Patch":{"Script":"this.n = 2","Params":{}}}`},
		{"POST", "/databases/a/queries", `{"Query":"from Kept","Take":1}`},
		{"DELETE", "/databases/a/queries", `{"Query":"from Kept","Limit":1}`},
		{"POST", "/databases/a/admin/revisions/config", `{"Default":{"Disabled":false,"KeepAll":true}}`},
		{"POST", "/databases/a/admin/revisions/config", `{"Collections":{"Kept":{"MinimumRevisionsToKeep":1}},"collections":{}}`},
		{"PUT", "/jay/v1/databases/a/indexes", `{"collection":"Kept","Index":{"fields":["n"]},"index":{"fields":["m"]}}`},
		{"DELETE", "/admin/databases", `{"DatabaseNames":["a"],"Hard":true}`},
	} {
		h.checkProblem(h.do(test.method, test.path, test.body), 400, "BadRequestException")
	}
	h.checkProblem(h.do("POST", "/databases/a/admin/revisions/config", `{"Default":{"Disabled":false,"MaximumRevisionsToDeleteUponDocumentUpdate":1}}`), 501, "NotSupportedException")
	h.checkProblem(h.do("POST", "/databases/a/admin/revisions/config/enforce", `{"Collections":["Kept"]}`), 501, "NotSupportedException")
	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from Kept","ProjectionBehavior":"FromIndex"}`), 501, "NotSupportedException")
	h.want(200, "POST", "/databases/a/queries", `{"Query":"from Kept","WaitForNonStaleResults":true,"WaitForNonStaleResultsTimeout":"00:00:15","DisableCaching":true,"SkipDuplicateChecking":false,"ProjectionBehavior":"Default"}`)
	h.checkProblem(h.do("POST", "/databases/a/bulk_insert?id="+h.operationID(), `[{"Id":"x","Type":"PUT","Type":"PUT","Document":{}}]`), 400, "BadRequestException")
	h.checkProblem(h.do("POST", "/databases/a/bulk_insert?id="+h.operationID(), `[{"Id":"x","Type":"PUT","Document":{},"Extra":1}]`), 400, "BadRequestException")
	equal(t, "state", h.state(), before)
}

// Ensure that a request about several documents that names a wrong one changes none.
func TestRevisions_AllOrNone(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(200, "POST", "/databases/a/admin/revisions/config", `{"Default":{"Disabled":false}}`)
	revert := ""
	for i := range 8 {
		path := "/databases/a/docs?id=r/" + string(rune('0'+i))
		old := h.want(201, "PUT", path, `{"n":1,"@metadata":{"@collection":"R","by":"Ann"}}`).text(t, "ChangeVector")
		h.want(201, "PUT", path, `{"n":2}`)
		revert += `"r/` + string(rune('0'+i)) + `":"` + old + `",`
	}
	h.checkProblem(h.do("POST", "/databases/a/revisions/revert/docs", `{"IdToChangeVector":{`+revert+`"none":"A:1-x"}}`), 400, "BadRequestException")
	for i := range 8 {
		equal(t, "not reverted", h.want(200, "GET", "/databases/a/docs?id=r/"+string(rune('0'+i)), "").text(t, "Results", 0, "n"), 2)
	}
	h.want(204, "POST", "/databases/a/revisions/revert/docs", `{"IdToChangeVector":{`+strings.TrimSuffix(revert, ",")+`}}`)
	a := h.want(200, "GET", "/databases/a/docs?id=r/3", "")
	equal(t, "reverted", a.text(t, "Results", 0, "n")+a.text(t, "Results", 0, "@metadata", "by")+a.text(t, "Results", 0, "@metadata", "@collection"), "1AnnR")
	h.checkProblem(h.do("POST", "/databases/a/admin/revisions/delete", `{"DocumentIds":["r/0","","r/1"]}`), 400, "BadRequestException")
	equal(t, "kept", h.want(200, "GET", "/databases/a/revisions/count?id=r/0", "").text(t, "RevisionsCount"), 3)
}

// Ensure that a stream of a query with include is refused before its first byte.
func TestStreams_IncludeRefused(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for i := range 4 { // more than a buffer of the reply holds
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=o/%d", i), `{"c":"o/1","pad":"`+strings.Repeat("x", 100_000)+`","@metadata":{"@collection":"Orders"}}`)
	}
	h.checkProblem(h.do("POST", "/databases/a/streams/queries", `{"Query":"from Orders include c"}`), 501, "NotSupportedException")
}

// Ensure that a stream of an index that is not there is 404 without a body, from which
// clients make their exception, as for a query.
func TestStreams_MissingIndex(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	equal(t, "body", h.want(404, "POST", "/databases/a/streams/queries", `{"Query":"from index 'Nope'"}`).body, "")
}

// Ensure that a command in a batch with a member that only others have is refused, and that
// nothing of the batch is written.
func TestBatch_MembersOfOtherCommands(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, command := range []string{`{"Type":"PUT","Id":"c/2","Document":{},"Index":1}`, `{"Type":"DELETE","Id":"c/1","Document":{"a":1}}`} {
		h.checkProblem(h.do("POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PUT","Id":"c/1","Document":{}},`+command+`]}`), 400, "BadRequestException")
		h.want(404, "GET", "/databases/a/docs?id=c/1", "")
	}
	h.want(201, "POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"DELETE","Id":"c/1","Document":null,"Index":null}]}`)
}

// Ensure that the ID of a command that was carried out is refused with another body, and
// that it still answers the same one, also after a restart.
func TestResults_OtherBody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	const path = "/admin/databases?raft-request-id=one"
	first := h.want(201, "PUT", path, `{"DatabaseName":"a"}`)
	for range 2 {
		h.checkProblem(h.do("PUT", path, `{"DatabaseName":"b"}`), 422, "BadRequestException")
		equal(t, "again", h.want(201, "PUT", path, `{"DatabaseName":"a"}`).text(t, "RaftCommandIndex"), first.text(t, "RaftCommandIndex"))
		equal(t, "databases", h.want(200, "GET", "/databases?namesOnly=true", "").text(t, "Databases"), "[a]")
		h.stop()
		h = startIn(t, dir)
	}
}

// Ensure that a parameter that would have no effect is refused, and that those that clients
// send without effect are accepted.
func TestParams_Refused(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.want(201, "PUT", "/admin/databases?name=a&replicationFactor=1", `{}`)
	h.want(201, "PUT", "/databases/a/docs?id=c/1", `{}`)
	for _, c := range []struct{ method, path, body, message string }{
		{"GET", "docs?id=c/1&metadatOnly=true", "", `no parameter "metadatOnly"; it takes cmpxchg, counter`},
		{"GET", "docs?id=c/1&start=1", "", "start has no effect with id"},
		{"GET", "docs?id=c/1&startsWith=c", "", "startsWith has no effect with id"},
		{"GET", "docs?matches=1", "", "matches has no effect without startsWith"},
		{"GET", "docs?startsWith=c/&start=0&start=1", "", "takes the parameter start once"},
		{"PUT", "docs?id=c/2&raft-request-id=one", "{}", `no parameter "raft-request-id"; it takes id`},
		{"DELETE", "docs?id=c/1&raft-request-id=one", "", `no parameter "raft-request-id"; it takes id`},
		{"GET", "cmpxchg?key=a&start=1", "", "start has no effect with key"},
		{"GET", "revisions?id=c/1&changeVector=A:1", "", "id has no effect with changeVector"},
		{"POST", "queries?pageSize=1", `{"Query":"from c"}`, `no parameter "pageSize"; it takes debug, diagnostics, metadataOnly`},
		{"GET", "collections/stats?x", "", "it takes none"},
		{"PATCH", "queries?ignoreMaxStepsForScript=true", `{}`, "no parameter"},
	} {
		a := h.do(c.method, "/databases/a/"+c.path, c.body)
		h.checkProblem(a, 400, "BadRequestException")
		if message := a.text(t, "Message"); !strings.Contains(message, c.message) {
			t.Errorf("%s %s: %s", c.method, c.path, message)
		}
	}
	h.checkProblem(h.do("PUT", "/admin/databases?name=b&replicationFactor=3", `{}`), 501, "NotSupportedException")
	h.want(404, "GET", "/admin/databases?name=b", "")
	h.want(200, "GET", "/databases/a/docs?id=c/1", "")
	h.want(404, "GET", "/databases/a/docs?id=c/2", "")
	for _, path := range []string{"/topology?name=a&first-topology-update&applicationIdentifier=1", "/cluster/topology?timer-callback", "/databases/a/stats?failure=check", "/databases/a/docs?&id=c/1"} {
		h.want(200, "GET", path, "")
	}
	h.want(200, "POST", "/databases/a/queries?queryHash=1&addTimeSeriesNames=true", `{"Query":"from c"}`)
	h.want(201, "POST", "/databases/a/bulk_docs?waitForIndexesTimeout=1&waitForSpecificIndex=a&waitForSpecificIndex=b", `{"Commands":[{"Type":"DELETE","Id":"c/9"}]}`)
}

// quote returns text as JSON.
func quote(text string) string { return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"` }
