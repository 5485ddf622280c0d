package server_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jaydb/jay/server"
)

// Ensure that each type of command refuses each member that it does not heed, and that
// nothing of the batch is written.
func TestBatch_EachMemberOfEachCommand(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.seed()
	before := h.state()
	members := map[string]string{
		"Id": `"kept/1"`, "ChangeVector": `""`, "OriginalChangeVector": `""`, "Index": `0`, "Document": `{}`, "IdPrefixed": `true`, "ForceRevisionCreationStrategy": `"Before"`, "Patch": `{"Script":"this.n = 2"}`,
		"PatchIfMissing": `{"Script":"this.n = 3"}`, "CreateIfMissing": `{}`, "ReturnDocument": `true`, "Ids": `[{"Id":"kept/1"}]`, "Name": `"f"`, "ContentType": `"x/y"`, "DestinationId": `"x"`, "DestinationName": `"g"`,
		"Counters": `{}`, "TimeSeries": `{}`, "From": `1`, "To": `1`, "FromEtl": `true`,
	}
	for kind, heeded := range map[string]string{
		"PUT": "Id ChangeVector OriginalChangeVector Document ForceRevisionCreationStrategy", "DELETE": "Id ChangeVector OriginalChangeVector IdPrefixed", "PATCH": "Id ChangeVector Patch PatchIfMissing CreateIfMissing ReturnDocument",
		"BatchPATCH": "Ids Patch PatchIfMissing", "CompareExchangePUT": "Id Index Document", "CompareExchangeDELETE": "Id Index", "AttachmentPUT": "Id Name ChangeVector ContentType", "AttachmentDELETE": "Id Name ChangeVector",
		"AttachmentCOPY": "Id Name ChangeVector DestinationId DestinationName", "AttachmentMOVE": "Id Name ChangeVector DestinationId DestinationName", "ForceRevisionCreation": "Id",
	} {
		for member, value := range members {
			if strings.Contains(" "+heeded+" ", " "+member+" ") {
				continue
			}
			for _, mode := range []string{"SingleNode", "ClusterWide"} {
				a := h.do("POST", "/databases/a/bulk_docs", `{"TransactionMode":"`+mode+`","Commands":[{"Type":"PUT","Id":"other","Document":{}},{"Type":"`+kind+`","`+member+`":`+value+`}]}`)
				if a.status != 400 || !strings.Contains(a.body, "a command of type "+kind+" has no ") {
					t.Errorf("%s of %s: %d %s", member, kind, a.status, a.body)
				}
			}
		}
	}
	h.checkProblem(h.do("POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PATCH","Id":"new","Patch":{"Script":"this.n = 2"},"PatchIfMissing":{"Script":"this.n = 3"},"CreateIfMissing":{"n":4}}]}`), 400, "BadRequestException")
	h.checkProblem(h.do("POST", "/databases/a/bulk_docs", `{"TransactionMode":"ClusterWide","Commands":[{"Type":"PUT","Id":"kept/1","Document":{},"ForceRevisionCreationStrategy":"Before"}]}`), 501, "NotSupportedException")
	equal(t, "state", h.state(), before)
	h.want(201, "POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PUT","Id":"kept/1","ChangeVector":null,"OriginalChangeVector":"A:1-x","Document":{},"Name":null,"Patch":null,"IdPrefixed":false,"ForceRevisionCreationStrategy":"None"}]}`)
}

// Ensure that a database record, and a client configuration, with a member that would have
// no effect is refused and makes no database.
func TestDatabases_UnheededMembers(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, record := range []string{`{"LockMode":"PreventDeletesError"}`, `{"Revisions":{"Default":{"Disabled":false}}}`, `{"Client":{"MaxNumberOfRequestsPerSession":3}}`, `{"Settings":{"Databases.QueryTimeoutInSec":"1"}}`,
		`{"DocumentsCompression":{"CompressRevisions":true}}`, `{"disabled":true}`, `{"Sorters":{"x":{}}}`, `{"DatabaseState":"RestoreInProgress"}`} {
		h.checkProblem(h.do("PUT", "/admin/databases?name=b", record), 501, "NotSupportedException")
	}
	for _, record := range []string{`{"Nonsense":1}`, `{"Disabled":true,"Disabled":false}`, `{"Disabled":"true"}`} {
		h.checkProblem(h.do("PUT", "/admin/databases?name=b", record), 400, "BadRequestException")
	}
	h.checkProblem(h.do("PUT", "/admin/databases?name=b&replicationFactor=0", `{}`), 400, "BadRequestException")
	h.want(404, "GET", "/admin/databases?name=b", "")
	h.want(201, "PUT", "/admin/databases?name=b", `{"DatabaseName":"b","LockMode":"Unlock","Revisions":null,"Sorters":{},"PeriodicBackups":[],"Encrypted":false,"ConflictSolverConfig":{"ResolveToLatest":true},"expiration":{"Disabled":false}}`)
	h.wantJSON("/databases/b/expiration/config", `{"Disabled":false}`)
	equal(t, "kept", h.want(200, "GET", "/admin/databases?name=b", "").text(t, "ConflictSolverConfig", "ResolveToLatest"), true)

	for _, configuration := range []string{`{"Nonsense":1}`, `{"MaxNumberOfRequestsPerSession":0}`, `{"MaxNumberOfRequestsPerSession":"7"}`, `{"ReadBalanceBehavior":"Any"}`, `{"LoadBalanceBehavior":"Any"}`} {
		h.checkProblem(h.do("PUT", "/databases/a/admin/configuration/client", configuration), 400, "BadRequestException")
	}
	h.checkProblem(h.do("PUT", "/databases/a/admin/configuration/client", `{"IdentityPartsSeparator":"-"}`), 501, "NotSupportedException")
	equal(t, "none", h.want(200, "GET", "/databases/a/configuration/client", "").text(t, "Configuration"), "<nil>")
	h.want(201, "PUT", "/databases/a/admin/configuration/client", `{"etag":3,"Disabled":false,"IdentityPartsSeparator":"/","ReadBalanceBehavior":"RoundRobin","LoadBalanceBehavior":null,"LoadBalancerContextSeed":5}`)
}

// Ensure that options of single requests that were accepted without effect are heeded or
// refused.
func TestOptions_HeededOrRefused(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=u/1", `{"name":"Ann","@metadata":{"@collection":"Users"}}`)
	h.want(201, "PUT", "/databases/a/attachments?id=u/1&name=f", "aaa")
	const definition = `"Name":"U","Maps":["from u in docs.Users select new { u.name }"]`
	h.want(201, "PUT", "/databases/a/admin/indexes", `{"Indexes":[{`+definition+`}]}`)
	before := h.state()
	const nothing = `{"Commands":[{"Type":"DELETE","Id":"none"}]}`
	for _, c := range []struct {
		status             int
		method, path, body string
	}{
		{400, "POST", "bulk_docs?numberOfReplicasToWaitFor=x&throwOnTimeoutInWaitForReplicas=false", nothing},
		{400, "POST", "bulk_docs?throwOnTimeoutInWaitForReplicas=maybe", nothing},
		{400, "POST", "bulk_docs?disableAtomicDocumentWrites=true", nothing},
		{501, "POST", "bulk_docs?numberOfReplicasToWaitFor=1", nothing},
		{201, "POST", "bulk_docs?numberOfReplicasToWaitFor=1&throwOnTimeoutInWaitForReplicas=False", nothing},
		{201, "POST", "bulk_docs?numberOfReplicasToWaitFor=majority&throwOnTimeoutInWaitForReplicas=true", nothing},
		{400, "GET", "docs?id=u/1&txMode=Any", ""},
		{200, "GET", "docs?id=u/1&txMode=SingleNode&nodeTag=a", ""},
		{501, "GET", "docs?id=u/1&nodeTag=B", ""},
		{400, "POST", "attachments?id=u/1&name=f", `{"Type":"Document","ChangeVector":"A:1-x"}`},
		{200, "POST", "attachments?id=u/1&name=f", `{"Type":"Document","ChangeVector":null}`},
		{400, "POST", "indexes/set-lock", `{"IndexNames":["U"],"Priority":"LockedError"}`},
		{400, "POST", "indexes/set-priority", `{"IndexNames":["U"],"Priority":"High","Mode":"High"}`},
	} {
		a := h.do(c.method, "/databases/a/"+c.path, c.body)
		if a.status != c.status {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, a.status, a.body)
		}
	}
	h.checkProblem(h.do("PUT", "/databases/a/attachments?id=u/1&name=f", "packed", "Content-Encoding", "br"), 415, "UnsupportedContentTypeException")
	equal(t, "state", h.state(), before)
	h.want(201, "PUT", "/databases/a/attachments?id=u/1&name=f", "aaa", "Content-Encoding", "identity")

	equal(t, "metadata", h.want(200, "POST", "/databases/a/queries?metadataOnly=true", `{"Query":"from Users select name"}`).text(t, "Results"), "[map[@metadata:map[@id:u/1 @projection:true]]]")
	for member, changed := range map[string]bool{`"LockMode":"LockedError"`: true, `"Priority":"High"`: true, `"LockMode":"Unlock"`: false, `"Priority":null`: false} {
		equal(t, member, h.want(200, "POST", "/databases/a/indexes/has-changed", `{`+definition+`,`+member+`}`).text(t, "Changed"), changed)
	}
	a := h.want(200, "POST", "/databases/a/multi_get", `{"Requests":[{"Url":"/databases/a/queries","Query":"?pageSize=1","Content":{"Query":"from Users"}},{"Url":"/databases/a/stats","Content":{}},
		{"Url":"/databases/a/stats","Query":"?nodeTag=B"},{"Url":"/databases/a/queries","Content":{"Query":"from Users"}},{"Url":"/databases/a/docs","Content":{"Ids":["u/1"]}}]}`)
	for i, status := range []int{400, 400, 501, 200, 200} {
		equal(t, fmt.Sprint("request ", i), a.text(t, "Results", i, "StatusCode"), status)
	}
	for _, element := range []string{`{"Id":"b/1","Type":"PUT","Document":{},"Name":"x"}`, `{"Id":"b/1","Type":"PUT","Document":{},"ContentLength":3}`, `{"Id":"b/1","Type":"HeartBeat"}`, `{"Id":"u/1","Type":"AttachmentPUT","Name":"g","ContentLength":0,"Document":{}}`} {
		h.checkProblem(h.do("POST", "/databases/a/bulk_insert?id="+h.operationID(), `[`+element+`]`), 400, "BadRequestException")
	}
	h.want(200, "POST", "/databases/a/bulk_insert?id="+h.operationID(), `[{"Id":"b/1","Type":"PUT","Document":{},"ContentType":null}]`)
}

// Ensure that a configuration of revisions with a collection in two spellings is an error
// that RavenDB's clients show as a RavenException, and changes nothing.
func TestRevisions_CollectionTwice(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	a := h.want(400, "POST", "/databases/a/admin/revisions/config", `{"Collections":{"users":{"Disabled":false},"USERS":{"Disabled":false}}}`)
	equal(t, "type", a.text(t, "Type"), "System.InvalidOperationException")
	h.want(404, "GET", "/databases/a/revisions/config", "")
}

// Ensure that a command of a changes socket with a member or a Param that has no effect is an
// error, and that the socket goes on.
func TestChanges_UnheededMembers(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	l := h.listen()
	for _, command := range []string{`{"CommandId":1,"Command":"watch-docs","Param":"u/1"}`, `{"CommandId":1,"Command":"watch-docs","Collection":"Users"}`, `{"CommandId":1,"Command":"watch-doc","Param":"u/1","Params":["u/2"]}`,
		`{"CommandId":1,"Command":"watch-docs","Command":"unwatch-docs"}`} {
		l.send(command)
		l.want("Error")
	}
	l.send(`{"CommandId":2,"Command":"watch-docs","Param":"","Params":null}`)
	l.want("Confirm")
}

// Ensure that a body is refused, and nothing done, on each route that reads none.
func TestBody_OfRoutesWithoutOne(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.seed()
	before := h.state()
	n := 0
	for _, r := range server.Routes() {
		if r.Refused != "" || r.Body || r.Upload {
			continue
		}
		n++
		path := strings.NewReplacer("{D}", "/databases/a", "{J}", "/jay/v1/databases/a").Replace(r.Path)
		a := h.do(r.Method, path, `{}`)
		if a.status != 400 || r.Method != "HEAD" && !strings.Contains(a.body, r.Method+" "+r.Path+" takes no body") {
			t.Errorf("%s %s: %d %s", r.Method, r.Path, a.status, a.body)
		}
	}
	if n < 50 {
		t.Errorf("only %d routes read no body", n)
	}
	chunked := func(body string) string {
		return "POST /databases/a/identity/next?name=u HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + body
	}
	if a := h.raw(chunked("2\r\n{}\r\n0\r\n\r\n"), false); !strings.Contains(a, " 400 ") || !strings.Contains(a, "takes no body") {
		t.Errorf("in chunks: %s", a)
	}
	equal(t, "state", h.state(), before)
	if a := h.raw(chunked("0\r\n\r\n"), false); !strings.Contains(a, " 200 ") {
		t.Errorf("an empty one in chunks: %s", a)
	}
}

// Ensure that a name that is there twice in a map is refused like a member that is there twice,
// however it is spelled.
func TestBody_NamesTwice(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, parameters := range []string{`{"n":1,"n":2}`, `{"n":1,"\u006e":2}`} {
		a := h.do("POST", "/databases/a/queries", `{"Query":"from Users where n = $n","QueryParameters":`+parameters+`}`)
		h.checkProblem(a, 400, "BadRequestException")
		if !strings.Contains(a.body, "n\\\" of QueryParameters is there twice") {
			t.Errorf("%s: %s", parameters, a.body)
		}
	}
	h.want(200, "POST", "/databases/a/queries", `{"Query":"from Users where n = $n","QueryParameters":{"n":1,"N":2}}`)

	const twice = `{"Disabled":true,"Disabled":false}`
	for _, a := range []answer{
		h.do("GET", "/jay/v1/databases/a/export?query="+url.QueryEscape("from Users where n = $n")+"&parameters="+url.QueryEscape(`{"n":1,"n":2}`), ""),
		h.do("POST", "/databases/a/admin/expiration/config", twice),
		h.do("PUT", "/admin/databases?name=b", `{"Expiration":`+twice+`}`),
	} {
		h.checkProblem(a, 400, "BadRequestException")
		if !strings.Contains(a.body, "\\\" is there twice") {
			t.Error(a.body)
		}
	}
}
