package server_test

import (
	"strings"
	"testing"
)

// phpHeaders are the headers of RavenDB's client for PHP, without that which packs replies. Its etags
// are not in quotes.
const phpHeaders = "Raven-Client-Version: 5.2.0\nClient-Configuration-Etag: 0\nTopology-Etag: -2\nUser-Agent: Symfony HttpClient/Curl\nAccept: */*"

const phpJSON = phpHeaders + "\nContent-Type: application/json"

// Ensure that RavenDB's client for PHP can create a database: it writes its settings as a list if it
// has none, and a member in lower case.
func TestPHP_Databases(t *testing.T) {
	t.Parallel()
	h := start(t)
	w := h.dial()
	w.say(200, "GET /cluster/topology?first-topology-update", phpHeaders, "").needs(t, []any{"Topology"}, "LastNodeId", "TopologyId", "Etag", "Members", "Promotables", "Watchers")
	const record = `{"DatabaseName":"ph","Disabled":false,"Encrypted":false,"etagForBackup":0,"DeletionInProgress":null,"DatabaseState":"Normal","LockMode":"Unlock","Topology":null,"AutoIndexes":null,"settings":`
	a := w.say(201, "PUT /admin/databases?name=ph&replicationFactor=1&raft-request-id=1", phpJSON, record+`[]}`)
	a.needs(t, nil, "RaftCommandIndex", "Name", "Topology", "NodesAddedTo")
	equal(t, "settings", h.want(200, "GET", "/admin/databases?name=ph", "").text(t, "Settings"), "map[]")
	w.say(200, "GET /topology?name=ph&first-topology-update&applicationIdentifier=0f7c", phpHeaders, "").needs(t, []any{"Nodes", 0}, "Url", "Database", "ClusterTag", "ServerRole")
	w.say(400, "PUT /admin/databases?name=ph2&replicationFactor=1&raft-request-id=2", phpJSON, strings.ReplaceAll(record, `"ph"`, `"ph2"`)+`["a"]}`)
}

// Ensure that RavenDB's client for PHP can query, lazily too, and change by query: it writes
// parameters and headers as a list if there are none, and flags without a value if they are false.
func TestPHP_EmptyObjects(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	w := h.dial()
	w.say(201, "PUT /databases/a/docs?id=users%2F1-A", phpJSON, `{"name":"Ann","tags":[],"@metadata":{"@collection":"Users","Raven-PHP-Type":"M\\User"}}`)
	const query = `{"Query":"from 'Users'","QueryParameters":[]}`
	a := w.say(200, "POST /databases/a/queries?queryHash=17", phpJSON, query)
	a.needs(t, nil, "Results", "Includes", "IncludedPaths", "IsStale", "IndexTimestamp", "IndexName", "ResultEtag", "LastQueryTime", "NodeTag", "TotalResults", "SkippedResults", "DurationInMs")
	equal(t, "tags", a.text(t, "Results", 0, "tags"), "[]")
	equal(t, "with a parameter", w.say(200, "POST /databases/a/queries", phpJSON, `{"Query":"from 'Users' where name = $a","QueryParameters":{"a":"Ann"},"Start":0}`).text(t, "TotalResults"), 1)
	equal(t, "with spaces", w.say(200, "POST /databases/a/queries", phpJSON, `{"Query":"from 'Users'","QueryParameters" : [ ] }`).text(t, "TotalResults"), 1)
	w.say(200, "POST /databases/a/streams/queries", phpJSON, query)
	a = w.say(200, "POST /databases/a/multi_get", phpJSON, `{"Requests":[{"Url":"/databases/a/docs","Query":"?&id=users%2F1-A","Method":null,"Headers":[],"Content":null},`+
		`{"Url":"/databases/a/queries","Query":"queryHash=17","Method":"POST","Headers":[],"Content":`+query+`}]}`)
	for i := range 2 {
		a.needs(t, []any{"Results", i}, "StatusCode", "Headers", "Result")
		equal(t, "name", a.text(t, "Results", i, "Result", "Results", 0, "name"), "Ann")
	}
	for _, one := range []struct{ line, body string }{
		{"PATCH /databases/a/queries?allowStale=&details=", `{"Query":{"Query":"from Users update { this.n = 1 }","QueryParameters":[]}}`},
		{"DELETE /databases/a/queries?allowStale=&details=", `{"Query":"from Users where n = 1","QueryParameters":[]}`},
	} {
		a = w.say(200, one.line, phpJSON, one.body)
		a.needs(t, nil, "OperationId", "OperationNodeTag")
		h.operationEnds(a)
	}
	h.want(404, "GET", "/databases/a/docs?id=users%2F1-A", "")
	for _, parameters := range []string{`["a"]`, `[[]]`, `[`, `[}`, `"x"`, `1`} {
		w := h.dial()
		w.say(400, "POST /databases/a/queries", phpJSON, `{"Query":"from 'Users'","QueryParameters":`+parameters+`}`)
	}
	w.say(400, "POST /databases/a/queries", phpJSON, `{"Query":"from Users where n = $a","QueryParameters":{"a":1,"a":2}}`)
}

// Ensure that RavenDB's client for PHP can deploy an index, and that others can read it: what it
// writes as an empty list is an empty object for them.
func TestPHP_Indexes(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	w := h.dial()
	definition := func(name, maps, kind, fields string) string {
		return `{"LockMode":null,"AdditionalSources":[],"AdditionalAssemblies":[],"Maps":["` + maps + `"],"Reduce":null,"Fields":` + fields + `,"Configuration":[],"SourceType":"Documents","Type":"` + kind + `",` +
			`"OutputReduceToCollection":null,"ReduceOutputIndex":null,"PatternForOutputReduceToCollectionReferences":null,"PatternReferencesCollectionName":null,"DeploymentMode":null,"Name":"` + name + `","Priority":null,"State":null}`
	}
	plain := definition("Plain", "from u in docs.Users select new { u.name }", "Map", "[]")
	equal(t, "index", w.say(201, "PUT /databases/a/admin/indexes?raft-request-id=3", phpJSON, `{"Indexes":[`+plain+`]}`).text(t, "Results", 0, "Index"), "Plain")
	equal(t, "changed", w.say(200, "POST /databases/a/indexes/has-changed", phpJSON, plain).text(t, "Changed"), false)
	script := definition("Script", "map('Users', u => ({ name: u.name }))", "JavaScriptMap", `{"name":{"Storage":null,"Indexing":"Search","TermVector":null,"Spatial":null,"Analyzer":null,"Suggestions":false}}`)
	equal(t, "index", w.say(201, "PUT /databases/a/indexes?raft-request-id=4", phpJSON, `{"Indexes":[`+script+`]}`).text(t, "Results", 0, "Index"), "Script")
	for _, name := range []string{"Plain", "Script"} {
		a := h.want(200, "GET", "/databases/a/indexes?name="+name, "")
		for _, member := range []string{"AdditionalSources", "Fields", "Configuration"} {
			if _, is := a.json(t, "Results", 0, member).(map[string]any); !is {
				t.Errorf("%s of %s is no object: %s", member, name, a.body)
			}
		}
	}
}

// Ensure that RavenDB's client for PHP can save a session with attachments: the parts of its body have
// the type of text, and none names itself a stream.
func TestPHP_Batches(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	w := h.dial()
	const main = `{"Commands":[{"Id":"users\/1-A","ChangeVector":null,"Type":"PUT","Document":{"name":"Ann","@metadata":{"@collection":"Users","Raven-PHP-Type":"M\\User"}}},{"Id":"users\/1-A","Name":"a.txt","ContentType":"text\/plain","ChangeVector":null,"Type":"AttachmentPUT"}]}`
	part := func(name, content string) string {
		return "--k3AbC_-9\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + content + "\r\n"
	}
	a := w.say(201, "POST /databases/a/bulk_docs?", phpHeaders+"\nContent-Type: multipart/form-data; boundary=k3AbC_-9", part("main", main)+part("attachment1", "Größe")+"--k3AbC_-9--\r\n")
	a.needs(t, []any{"Results", 1}, "Id", "Name", "DocumentChangeVector", "ChangeVector", "ContentType", "Hash", "Size")
	a = w.say(200, "GET /databases/a/attachments?id=users%2F1-A&name=a.txt", phpHeaders, "")
	equal(t, "content", a.body, "Größe")

	a = w.say(201, "POST /databases/a/bulk_docs?", phpJSON, `{"Commands":[{"Id":"users\/1-A","ChangeVector":null,"Patch":{"Script":"this.n = 6","Values":null},"Type":"PATCH"}]}`)
	equal(t, "status", a.text(t, "Results", 0, "PatchStatus"), "Patched")
	a = w.say(200, "PATCH /databases/a/docs?id=users%2F1-A", phpJSON, `{"Patch":{"Script":"this.n = 5","Values":null},"PatchIfMissing":null}`)
	a.needs(t, nil, "Status", "ModifiedDocument", "OriginalDocument", "ChangeVector", "Collection", "LastModified")
	a = w.say(201, "POST /databases/a/bulk_docs?&disableAtomicDocumentWrites=false&raft-request-id=5", phpJSON, `{"Commands":[{"Id":"users\/2-A","ChangeVector":null,"Type":"PUT","Document":{"@metadata":{"@collection":"Users"}}},{"Id":"k","Document":{"Object":"x"},"Index":0,"Type":"CompareExchangePUT"}],"TransactionMode":"ClusterWide"}`)
	a.needs(t, nil, "TransactionIndex")
	a.needs(t, []any{"Results", 1}, "Key", "Index")
	w.say(201, "GET /databases/a/hilo/next?tag=users&lastBatchSize=0&lastRangeAt=&identityPartsSeparator=%2F&lastMax=", phpHeaders, "").needs(t, nil, "Prefix", "Low", "High", "LastSize", "ServerTag", "LastRangeAt")
}
