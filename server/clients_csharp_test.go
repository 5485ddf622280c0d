package server_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/klauspost/compress/zstd"
)

// csharpHeaders are the headers of RavenDB's client for .NET.
const csharpHeaders = "Raven-Client-Version: 7.0.0.0\nAccept-Encoding: gzip, zstd\nClient-Configuration-Etag: \"0\"\nTopology-Etag: \"0\""

// packed packs a text as a client does.
func packed(t *testing.T, encoding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if encoding == "zstd" {
		var err error
		if w, err = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Ensure that the server unpacks what RavenDB's clients pack: up to version 6 with gzip, from 7 on
// with zstd. This holds for whole bodies, for the first part of one with attachments, for a bulk
// insert and for an attachment.
func TestCSharp_PackedBodies(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, encoding := range []string{"gzip", "zstd"} {
		w := h.dial()
		headers := csharpHeaders + "\nContent-Encoding: " + encoding
		id := "users/" + encoding
		command := `{"Id":"` + id + `","ChangeVector":null,"Document":{"Name":"Ann","@metadata":{"@collection":"Users"}},"Type":"PUT"}`
		w.say(201, "POST /databases/a/bulk_docs?", headers, packed(t, encoding, `{"Commands":[`+command+`]}`))
		a := w.say(200, "POST /databases/a/queries?queryHash=1", headers, packed(t, encoding, `{"Query":"from Users where id() = $p0","QueryParameters":{"p0":"`+id+`"}}`))
		equal(t, "found", a.text(t, "Results", 0, "Name"), "Ann")

		const boundary = "93d0d3d4-93ab-4b0c-b9a1-77c1f6a4a0b5"
		body := "--" + boundary + "\r\nContent-Encoding: " + encoding + "\r\n\r\n" +
			packed(t, encoding, `{"Commands":[`+command+`,{"Id":"`+id+`","Name":"note","ContentType":"text/plain","ChangeVector":null,"Type":"AttachmentPUT"}]}`) +
			"\r\n--" + boundary + "\r\nCommand-Type: AttachmentStream\r\n\r\nas it is\r\n--" + boundary + "--\r\n"
		a = w.say(201, "POST /databases/a/bulk_docs?", csharpHeaders+"\nContent-Type: multipart/mixed; boundary=\""+boundary+"\"", body)
		equal(t, "stored", a.text(t, "Results", 1, "Size"), 8)
		equal(t, "attachment", w.say(200, "GET /databases/a/attachments?id="+id+"&name=note", csharpHeaders, "").body, "as it is")

		w.say(201, "PUT /databases/a/attachments?id="+id+"&name=packed", headers, packed(t, encoding, "unpacked"))
		equal(t, "attachment", w.say(200, "GET /databases/a/attachments?id="+id+"&name=packed", csharpHeaders, "").body, "unpacked")

		operation := h.operationID()
		h.dial().say(200, "POST /databases/a/bulk_insert?id="+operation+"&skipOverwriteIfUnchanged=false", headers, packed(t, encoding, `[{"Id":"bulk/`+encoding+`","Type":"PUT","Document":{"n":1}},{"Type":"HeartBeat"}]`))
		h.want(200, "GET", "/databases/a/docs?id=bulk/"+encoding, "")

		h.dial().say(400, "POST /databases/a/queries", headers, "no packed body")
		h.dial().say(400, "POST /databases/a/queries", headers, packed(t, encoding, strings.Repeat(" ", 1000))[:12])
	}
	h.dial().say(415, "POST /databases/a/queries", csharpHeaders+"\nContent-Encoding: br", "{}")
	h.dial().say(415, "PUT /databases/a/attachments?id=users/gzip&name=x", csharpHeaders+"\nContent-Encoding: br", "{}")
}

// Ensure that packed bodies are bounded: by their size when they are unpacked, and by the memory
// that a zstd stream asks for.
func TestCSharp_PackedBounds(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, encoding := range []string{"gzip", "zstd"} {
		headers := csharpHeaders + "\nContent-Encoding: " + encoding
		h.dial().say(413, "POST /databases/a/queries", headers, packed(t, encoding, `{"Query":"from Users"`+strings.Repeat(" ", 17<<20)+`}`))
	}
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(16<<20))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, strings.Repeat(`"long" `, 4<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if a := h.dial().say(413, "POST /databases/a/queries", csharpHeaders+"\nContent-Encoding: zstd", b.String()); !strings.Contains(a.body, "window") {
		t.Errorf("a large window: %s", a.body)
	}
}

// Ensure that RavenDB's client for .NET can create a database: its record has members that the
// server does not know, which are empty.
func TestCSharp_Database(t *testing.T) {
	t.Parallel()
	h := start(t)
	w := h.dial()
	const record = `{"DatabaseName":"net","Disabled":false,"Encrypted":false,"EtagForBackup":0,"DeletionInProgress":null,"RollingIndexes":null,"DatabaseState":"Normal","LockMode":"Unlock","Topology":null,"Sharding":null,` +
		`"ConflictSolverConfig":null,"DocumentsCompression":null,"Sorters":{},"Analyzers":{},"Indexes":null,"IndexesHistory":null,"AutoIndexes":null,"Settings":{},"Revisions":null,"TimeSeries":null,"RevisionsForConflicts":null,` +
		`"Expiration":null,"Refresh":null,"DataArchival":null,"Integrations":null,"PeriodicBackups":[],"ExternalReplications":[],"SinkPullReplications":[],"HubPullReplications":[],"RavenConnectionStrings":{},` +
		`"SqlConnectionStrings":{},"OlapConnectionStrings":{},"ElasticSearchConnectionStrings":{},"QueueConnectionStrings":{},"RavenEtls":[],"SqlEtls":[],"ElasticSearchEtls":[],"OlapEtls":[],"QueueEtls":[],"QueueSinks":[],` +
		`"Client":null,"Studio":null,"TruncatedClusterTransactionCommandsCount":0,"UnusedDatabaseIds":[]}`
	for _, one := range []struct{ encoding, body string }{{"gzip", packed(t, "gzip", record)}, {"zstd", packed(t, "zstd", strings.ReplaceAll(record, `"net"`, `"net7"`))}} {
		name := map[string]string{"gzip": "net", "zstd": "net7"}[one.encoding]
		a := w.say(201, "PUT /admin/databases?name="+name+"&replicationFactor=1&raft-request-id=1f0a"+name, csharpHeaders+"\nContent-Encoding: "+one.encoding, one.body)
		equal(t, "name", a.text(t, "Name"), name)
	}
}

// Ensure that RavenDB's client for .NET can watch changes: its URL is in lower case, with a parameter
// that says how the messages come. Before it caches answers it waits for the first message, then
// watches what the message allows.
func TestCSharp_Changes(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("Shop")
	conn, _, err := websocket.Dial(t.Context(), h.http.URL+"/databases/shop/changes?throttleconnection=false", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	l := &listener{t: t, conn: conn}
	m, err := l.next()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "features", fmt.Sprint(m), "map[AggressiveCachingChange:false TopologyChange:true]")
	l.command("watch-topology-change", `""`)
	h.want(200, "GET", "/topology?name=Shop&watch-topology-change", "")
	l.command("watch-docs", `null`)
	l.command("watch-indexes", `null`)
	h.want(201, "PUT", "/databases/Shop/docs?id=users/1-A", `{}`)
	equal(t, "document", l.want("DocumentChange")["Type"], "Put")
	h.want(201, "PUT", "/databases/Shop/indexes", `{"Indexes":[{"Name":"ByN","Maps":["from doc in docs.Users select new { doc.n }"]}]}`)
	equal(t, "index", l.want("IndexChange")["Type"], "IndexAdded")
}

// askedByCSharp sends a query of RavenDB's client for .NET, and returns the reply.
func (h *host) askedByCSharp(text, parameters string) answer {
	h.t.Helper()
	return h.want(200, "POST", "/databases/a/queries?queryHash=1&addTimeSeriesNames=true", `{"Query":`+quote(text)+`,"QueryParameters":`+parameters+`}`)
}

// Ensure that RavenDB's clients can ask for members whose names have hyphens, which they do not put in
// quotes, in each clause and by each endpoint that takes a query.
func TestCSharp_Hyphens(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for id, body := range map[string]string{"users/1": `{"first-name":"Ann","home":{"zip-code":8000},"friend-id":"users/2","@metadata":{"@collection":"Users"}}`, "users/2": `{"first-name":"Bo","home":{"zip-code":3000},"@metadata":{"@collection":"Users"}}`} {
		h.want(201, "PUT", "/databases/a/docs?id="+id, body)
	}
	for text, want := range map[string]string{
		"from 'Users' where first-name = $p0":                                                              "users/1",
		"from 'Users' where (home.zip-code > $p1) and (exists(first-name))":                                "users/1",
		"from 'Users' as u where u.home.zip-code = $p1 order by first-name desc":                           "users/2",
		"from 'Users' where startsWith(first-name, $p0) order by home.zip-code as long desc select id()":   "users/1",
		"from 'Users' as u where u.first-name = $p0 select { Id : id(u), X : u.home['zip-code'] - 1 - 2 }": "users/1",
	} {
		a := h.askedByCSharp(text, `{"p0":"Ann","p1":3000}`)
		equal(t, "answers to "+text, a.text(t, "TotalResults"), 1)
		if !strings.Contains(a.body, want) {
			t.Errorf("%s: %s", text, a.body)
		}
	}
	a := h.askedByCSharp("from 'Users' where first-name = $p0 select first-name, home.zip-code include friend-id", `{"p0":"Ann"}`)
	equal(t, "row", a.text(t, "Results", 0, "first-name"), "Ann")
	equal(t, "included", a.text(t, "Includes", "users/2", "first-name"), "Bo")
	equal(t, "groups", h.askedByCSharp("from 'Users' group by home.zip-code order by home.zip-code select home.zip-code as zip, count() as Count", `{}`).text(t, "Results", 0, "zip"), 3000)
	equal(t, "a subtraction", h.askedByCSharp("from 'Users' where home.zip-code - 1 = 2999", `{}`).text(t, "TotalResults"), 1)

	if a := h.want(200, "POST", "/databases/a/streams/queries?format=jsonl", `{"Query":"from 'Users' where first-name = 'Ann'"}`); !strings.Contains(a.body, "users/1") {
		t.Errorf("a stream: %s", a.body)
	}
	h.operationEnds(h.want(200, "PATCH", "/databases/a/queries?allowStale=true&details=false", `{"Query":{"Query":"from 'Users' where first-name = 'Ann' update { this.n = this.home['zip-code']-1 }"}}`))
	equal(t, "patched", h.want(200, "GET", "/databases/a/docs?id=users/1", "").text(t, "Results", 0, "n"), 7999)
	h.operationEnds(h.want(200, "DELETE", "/databases/a/queries?allowStale=true&details=false", `{"Query":"from 'Users' where first-name = 'Ann'"}`))
	h.want(404, "GET", "/databases/a/docs?id=users/1", "")
	h.want(200, "GET", "/databases/a/docs?id=users/2", "")
}

// Ensure that LINQ queries can name their variable order: the client for .NET puts an alias that is a
// keyword in quotes, also in front of a path, but not in JavaScript.
func TestCSharp_QuotedAlias(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for id, body := range map[string]string{"orders/1": `{"Company":"companies/1","Lines":[{"Price":25,"Quantity":4}],"@metadata":{"@collection":"Orders"}}`, "orders/2": `{"Company":"companies/2","order":{"Company":"companies/1"},"@metadata":{"@collection":"Orders"}}`, "companies/1": `{"Name":"Oak"}`} {
		h.want(201, "PUT", "/databases/a/docs?id="+id, body)
	}
	for text, want := range map[string]string{
		"from 'Orders' as 'order' where 'order'.Company = $p0 select { Total : order.Lines.map(function(l){return l.Price*l.Quantity;}).reduce(function(a, b) { return a + b; }, 0) }": `"Total":100`,
		"from 'Orders' as 'order' where 'order'.Company = $p0 order by 'order'.Company load 'order'.Company as c select { Id : id(order), Name : c.Name }":                             `"Name":"Oak"`,
		"from 'Orders' as 'order' where 'order'.Company = $p0 select 'order'.Company, id('order')":                                                                                     `"Company":"companies/1"`,
		"from 'Orders' as 'order' where 'order'.Company = $p0 include 'order'.Company":                                                                                                 `"Includes":{"companies/1"`,
		"from 'Orders' as o where 'order'.Company = $p0":                                                                                                                               `"order":{"Company":"companies/1"}`,
		"from 'Orders' where 'order'.Company = $p0 include timings()":                                                                                                                  `"order":{"Company":"companies/1"}`,
		"from 'Orders' as 'order' where 'order'.Company = $p0 select { Id : id(order) } include timings()":                                                                             `"Id":"orders/1"`,
	} {
		a := h.askedByCSharp(text, `{"p0":"companies/1"}`)
		equal(t, "answers to "+text, a.text(t, "TotalResults"), 1)
		if !strings.Contains(a.body, want) {
			t.Errorf("%s: %s", text, a.body)
		}
	}
}

// Ensure that projections of LINQ queries are answered: the client for .NET writes them in JavaScript,
// with Date.parse for each member that is a time, and with functions of RavenDB.
func TestCSharp_Projections(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=users/1", `{"Name":"Jerry","Birthday":"1942-08-01T00:00:00.0000000","Left":null,"Roles":["a","c","b"],"Details":[{"Number":19},{"Number":-25},{"Number":null}],"Data":{"x":["x1","x2"],"y":["y1"]},"@metadata":{"@collection":"Users"}}`)
	for expression, want := range map[string]string{
		`new Date(Date.parse(u.Birthday))`:                                                                                                `"1942-08-01T00:00:00.000Z"`,
		`new Date(Date.parse(u.Birthday)).getFullYear()`:                                                                                  `1942`,
		`new Date(Date.parse(u.Birthday)).getMonth()+1`:                                                                                   `8`,
		`new Date(Date.parse(u.Left))`:                                                                                                    `null`,
		`new Date(Date.parse(u.None)).getDate()`:                                                                                          `null`,
		`(Date.parse("1942-08-02T00:00:00Z") - Date.parse(u.Birthday)) / (1000*60*60*24)`:                                                 `1`,
		`u.Roles.reduce(function(a, b) { return Raven_Max(a, b);})`:                                                                       `"c"`,
		`u.Roles.reduce(function(a, b) { return Raven_Min(a, b);})`:                                                                       `"a"`,
		`u.Details.map(function(d){return d.Number;}).reduce(function(a, b) { return Raven_Max(a, b);}, 0)`:                               `19`,
		`u.Details.map(function(d){return d.Number;}).reduce(function(a, b) { return Raven_Min(a, b);}, 0)`:                               `-25`,
		`Object.getOwnPropertyNames(u.Data).map(function(k){return u.Data[k]}).reduce(function(a, b) { return a.concat(b);},[])`:          `["x1","x2","y1"]`,
		`u.Roles.slice().reverse().find(function(x){return x!=="b";})`:                                                                    `"c"`,
		`u.Roles.filter((value, index) => u.Roles.indexOf(value) == index)`:                                                               `["a","c","b"]`,
		`u.Roles.reduce(function(_obj, _cur) {_obj[(function(a){return a;})(_cur)] = (function(a){return a+a;})(_cur);return _obj;}, {})`: `{"a":"aa","c":"cc","b":"bb"}`,
	} {
		a := h.askedByCSharp("from 'Users' as u select { X : "+expression+" }", `{}`)
		if !strings.HasPrefix(a.body, `{"Results":[{"X":`+want+`,"@metadata":`) {
			t.Errorf("%s: %s", expression, a.body)
		}
	}
	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from 'Users' as u select { X : Date.now() }"}`), 400, "InvalidQueryException")

	// The client sets the ID of a projection's object from the metadata.
	const one = "from 'Users' as u select { Name : u.Name }"
	equal(t, "ID", h.askedByCSharp(one, `{}`).text(t, "Results", 0, "@metadata", "@id"), "users/1")
	if a := h.want(200, "POST", "/databases/a/streams/queries?format=jsonl", `{"Query":"`+one+`"}`); !strings.Contains(a.body, `{"Item":{"Name":"Jerry","@metadata":{"@projection":true,"@id":"users/1"}}}`) {
		t.Errorf("a stream: %s", a.body)
	}
	if a := h.askedByCSharp("from 'Users' as u select distinct { Name : u.Name }", `{}`); strings.Contains(a.body, "@id") {
		t.Errorf("distinct rows: %s", a.body)
	}
}

// Ensure that a LINQ query can load a document whose ID is in one that it loads: the client for .NET
// begins the path with the name of the first.
func TestCSharp_NestedLoads(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for id, body := range map[string]string{
		"users/1":     `{"Name":"Jerry","DetailId":"detail/1","FriendId":"users/2","friend":{"DetailId":"detail/1"},"@metadata":{"@collection":"Users"}}`,
		"users/2":     `{"Name":"Bob","DetailId":"detail/2","FriendId":"users/9","@metadata":{"@collection":"Users"}}`,
		"detail/1":    `{"Number":1}`,
		"detail/2":    `{"Number":2}`,
		"companies/1": `{"Employees":["users/1","users/9","users/2"],"@metadata":{"@collection":"Companies"}}`,
	} {
		h.want(201, "PUT", "/databases/a/docs?id="+id, body)
	}
	const users = "from 'Users' as user "
	for text, want := range map[string]string{
		users + "where user.Name = 'Jerry' load user.DetailId as detail, user.FriendId as friend, friend.DetailId as friendsDetail select { Mine : detail.Number, Friends : friendsDetail.Number }": `{"Mine":1,"Friends":2}`,
		users + "where user.Name = 'Bob' load user.FriendId as friend, friend.DetailId as d, d.X as x select { D : d, X : x }":                                                                      `{"D":null,"X":null}`,
		users + "where user.Name = 'Jerry' load user.FriendId as friend, user.friend.DetailId as d select { D : d.Number }":                                                                         `{"D":1}`,
		users + "where user.Name = 'Jerry' load user.FriendId as friend, user.friend.DetailId as d select { D : d.Number } include timings()":                                                       `{"D":1}`,
		users + "load user.FriendId as friend, friend.DetailId as d where d.Number = 2 select { N : user.Name }":                                                                                    `{"N":"Jerry"}`,
		"from 'Companies' as c load c.Employees as e[], e.DetailId as d[] select { D : d.map(function(x){return x.Number;}) }":                                                                      `{"D":[1,2]}`,
		"from 'Companies' as c load c.Employees as e, e.FriendId as f, f.DetailId as d select { D : d.Number } include timings()":                                                                   `{"D":2}`,
	} {
		a := h.askedByCSharp(text, `{}`)
		if want = strings.TrimSuffix(want, "}"); !strings.HasPrefix(a.body, `{"Results":[`+want+`,"@metadata":{"@projection":true,"@id":"`) {
			t.Errorf("%s: %s", text, a.body)
		}
	}
	for _, text := range []string{users + "load load(user.FriendId).DetailId as d select { D : d.Number }", users + "load user.FriendId as f, f as g select { D : g.Number }"} {
		h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":`+quote(text)+`}`), 400, "InvalidQueryException")
	}
}

// Ensure that commands of the client for .NET that the server does not carry out are refused with 501
// and a reason, and not for their members, and so are the endpoints of one document.
func TestCSharp_Refused(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=users/1", `{}`)
	for command, says := range map[string]string{
		`{"Id":"users/","ChangeVector":null,"Type":"DELETE","IdPrefixed":true}`:                                                          "prefix",
		`{"Id":"users/1","JsonPatch":{"Operations":[{"op":"replace","path":"/n","value":3}]},"Type":"JsonPatch","ReturnDocument":false}`: "JSON Patch",
		`{"Type":"BatchTrackChanges","TrackedEntities":{"users/1":"A:1-x"}}`:                                                             "ChangeVector",
		`{"Id":"users/1","Name":"a","NewName":"b","ChangeVector":null,"Type":"AttachmentRENAME"}`:                                        "AttachmentMOVE",
	} {
		a := h.do("POST", "/databases/a/bulk_docs?", `{"Commands":[{"Id":"users/2","Type":"PUT","Document":{}},`+command+`]}`)
		h.checkProblem(a, 501, "NotSupportedException")
		if !strings.Contains(a.text(t, "Message"), says) {
			t.Errorf("%s: %s", command, a.body)
		}
	}
	h.want(404, "GET", "/databases/a/docs?id=users/2", "")
	h.checkProblem(h.do("POST", "/databases/a/bulk_docs?", `{"Commands":[{"Id":"users/2","Type":"PUT","Document":{},"NewName":"b"}]}`), 400, "BadRequestException")
	h.checkProblem(h.do("GET", "/databases/a/docs/size?id=users%2F1", ""), 501, "NotSupportedException")
	h.checkProblem(h.do("PATCH", "/databases/a/json-patch?id=users%2F1", `{"Operations":[]}`), 501, "NotSupportedException")
}

// Ensure that the details of a change by query have the types of which the clients for .NET and PHP make
// objects: without one they fail with an exception, after the change.
func TestCSharp_Details(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=users/1", `{"n":1,"@metadata":{"@collection":"Users"}}`)
	for _, one := range []struct{ method, body, kind, status string }{
		{"PATCH", `{"Query":{"Query":"from 'Users' update { this.n = 2 }"}}`, "PatchDetails", "Patched"},
		{"PATCH", `{"Query":{"Query":"from 'Users' update { this.n = 2 }"}}`, "PatchDetails", "NotModified"},
		{"DELETE", `{"Query":"from 'Users'"}`, "DeleteDetails", "Deleted"},
	} {
		a := h.want(200, one.method, "/databases/a/queries?allowStale=true&details=true", one.body)
		a = h.ended("/databases/a/operations/state?id=" + a.text(t, "OperationId"))
		equal(t, "detail", a.text(t, "Result", "Details", 0, "$type"), "Raven.Client.Documents.Operations.BulkOperationResult+"+one.kind+", Raven.Client")
		equal(t, "detail", a.text(t, "Result", "Details", 0, "Id")+a.text(t, "Result", "Details", 0, "Status"), "users/1"+one.status)
	}
}
