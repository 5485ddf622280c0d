package server_test

import (
	"slices"
	"testing"
)

// pythonHeaders are the headers of RavenDB's client for Python. It has no etags before the
// first replies, and sends bodies without a content type.
const pythonHeaders = "User-Agent: python-requests/2.32.3\nAccept: */*\nAccept-Encoding: gzip, deflate\nConnection: keep-alive\nClient-Configuration-Etag: \"None\"\nTopology-Etag: \"None\"\nRaven-Client-Version: 7.0.0"

// needs reports members that an object of the reply lacks. The clients for Python raise a KeyError for them.
func (a answer) needs(t *testing.T, path []any, members ...string) {
	t.Helper()
	object, is := a.json(t, path...).(map[string]any)
	if !is {
		t.Fatalf("%v is no object: %s", path, a.body)
	}
	for _, member := range members {
		if _, found := object[member]; !found {
			t.Errorf("%v has no %s: %s", path, member, a.body)
		}
	}
}

// Ensure that RavenDB's client for Python can open a store, and create, read and delete a
// database: its record has two members by other names than RavenDB's, and it needs each member of
// the topology, and AutoIndexes.
func TestPython_Databases(t *testing.T) {
	t.Parallel()
	h := start(t)
	w := h.dial()
	a := w.say(200, "GET /cluster/topology?first-topology-update", pythonHeaders, "")
	a.needs(t, nil, "Leader", "NodeTag", "Topology", "Etag", "Status")
	a.needs(t, []any{"Topology"}, "Etag", "TopologyId", "Members", "Promotables", "Watchers", "LastNodeId")
	const record = `{"DatabaseName": "py", "Disabled": false, "Encrypted": false, "EtagForBackup": 0, "DeletionInProgress": null, "RollingIndexes": null, "DatabaseState": null, "LockMode": null, "Topology": null, ` +
		`"ConflictSolverConfig": null, "DocumentCompression": null, "Sorters": {}, "Analyzers": {}, "Indexes": {}, "IndexesHistory": null, "AutoIndexes": null, "Settings": {}, "Revisions": null, "TimeSeries": null, ` +
		`"RevisionsForConflicts": null, "Expiration": null, "Refresh": null, "PeriodicBackups": [], "ExternalReplications": [], "SinkPullReplications": [], "HubPullReplications": [], "RavenConnectionStrings": {}, ` +
		`"SqlConnectionStrings": {}, "OlapConnectionStrings": {}, "RavenEtls": [], "SqlEtls": [], "OlapEtls": [], "Client": null, "Studio": null, "TruncatedClusterTransactionCommand": 0}`
	topology := []string{"Members", "Promotables", "Rehabs", "DemotionReasons", "PromotablesStatus", "ReplicationFactor", "DynamicNodesDistribution", "Stamp", "DatabaseTopologyIdBase64", "PriorityOrder"}
	a = w.say(201, "PUT /admin/databases?name=py&replicationFactor=1", pythonHeaders+"\nContent-type: application/json", record)
	a.needs(t, nil, "RaftCommandIndex", "Name", "Topology", "NodesAddedTo")
	a.needs(t, []any{"Topology"}, topology...)
	a.needs(t, []any{"Topology", "Stamp"}, "Index", "Term", "LeadersTicks")
	a = w.say(200, "GET /topology?name=py&first-topology-update&applicationIdentifier=6f2b8c1e-7f0c-4f0b-9a57-0d1b2f6f1e11", pythonHeaders, "")
	a.needs(t, nil, "Etag")
	a.needs(t, []any{"Nodes", 0}, "Url", "Database", "ClusterTag", "ServerRole")
	a = w.say(200, "GET /admin/databases?name=py", pythonHeaders, "")
	a.needs(t, nil, "Etag")
	a.needs(t, []any{"AutoIndexes"})
	if names, _ := w.say(200, "GET /databases?start=0&pageSize=20&namesOnly=true", pythonHeaders, "").json(t, "Databases").([]any); !slices.Contains(names, any("py")) {
		t.Errorf("the databases are %v", names)
	}
	a = w.say(200, "DELETE /admin/databases?raft-request-id=0f4a", pythonHeaders+"\nContent-type: application/json", `{"DatabaseNames": ["py"], "HardDelete": true, "FromNodes": null, "TimeToWaitForConfirmation": null}`)
	a.needs(t, nil, "RaftCommandIndex", "PendingDeletes")
	equal(t, "missing", w.say(503, "GET /topology?name=py&first-topology-update", pythonHeaders, "").header.Get("Database-Missing"), "py")

	for _, extra := range []string{`"Nonsense": 1`, `"Nonsense": {"a": 1}`, `"Nonsense": true`} {
		w.say(400, "PUT /admin/databases?name=py&replicationFactor=1", pythonHeaders, `{"DatabaseName": "py", `+extra+`}`)
	}
}

// Ensure that RavenDB's client for Python can deploy, read and describe an index: it has members of
// a definition that other clients do not have, all of them null, and needs each member of the reply.
func TestPython_Indexes(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	w := h.dial()
	w.say(201, "PUT /databases/a/docs?id=users/1-A", pythonHeaders, `{"name": "Ann", "@metadata": {"@collection": "Users"}}`)
	const members = `"Priority": null, "State": null, "LockMode": null, "AdditionalSources": null, "AdditionalAssemblies": null, "Reduce": null, "Configuration": {}, "OutputReduceToCollection": null, "ReduceOutputIndex": null, ` +
		`"PatternForOutputReduceToCollectionReferences": null, "PatternReferencesCollectionName": null, "DeploymentMode": null, `
	for name, rest := range map[string]string{
		"Plain":    `"Fields": {}, "IndexSourceType": null, "IndexType": null`,
		"Detected": `"Fields": {}, "IndexSourceType": "Documents", "IndexType": "Map", "SchemaDefinitions": null`,
		"Options": `"Fields": {"name": {"Storage": null, "Indexing": "Search", "TermVector": null, "Spatial": null, "Vector": null, "Analyzer": null, "Suggestions": null}}, ` +
			`"IndexSourceType": null, "IndexType": null, "SchemaDefinitions": null`,
	} {
		a := w.say(201, "PUT /databases/a/admin/indexes", pythonHeaders+"\nContent-type: application/json", `{"Indexes": [{"Name": "`+name+`", `+members+`"Maps": ["from u in docs.Users select new { u.name }"], `+rest+`}]}`)
		equal(t, "index", a.text(t, "Results", 0, "Index"), name)
		w.say(200, "POST /databases/a/indexes/has-changed", pythonHeaders, `{"Configuration": {}, "Fields": {"name": {"storage": null, "indexing": null, "term_vector": null, "spatial": null, "vector": null, "analyzer": null, "suggestions": null}}, `+
			`"LockMode": null, "Maps": ["from u in docs.Users select new { u.name }"], "Name": "`+name+`", "OutputReduceToCollection": null, "Priority": null, "Reduce": null, "SourceType": "Documents", "Type": null}`)
	}
	h.want(201, "PUT", "/databases/a/indexes", `{"Indexes":[{"Name":"Other","Maps":["map('Users', u => ({ name: u.name }))"]}]}`) // by another client
	for _, name := range []string{"Plain", "Detected", "Options", "Other"} {
		a := w.say(200, "GET /databases/a/indexes?name="+name, pythonHeaders, "")
		a.needs(t, []any{"Results", 0}, "Name", "Priority", "State", "LockMode", "AdditionalSources", "AdditionalAssemblies", "Maps", "Fields", "Reduce", "Configuration", "OutputReduceToCollection", "ReduceOutputIndex",
			"PatternForOutputReduceToCollectionReferences", "PatternReferencesCollectionName")
		for _, list := range []string{"AdditionalAssemblies", "Maps"} { // the client goes over them
			if _, is := a.json(t, "Results", 0, list).([]any); !is {
				t.Errorf("%s of %s: %s", list, name, a.body)
			}
		}
		a.needs(t, []any{"Results", 0, "Fields"})
		a = w.say(200, "GET /databases/a/indexes/stats?name="+name, pythonHeaders, "")
		a.needs(t, []any{"Results", 0}, "Name", "MapAttempts", "MapSuccesses", "MapErrors", "MapReferenceAttempts", "MapReferenceSuccesses", "MapReferenceErrors", "ReduceAttempts", "ReduceSuccesses", "ReduceErrors",
			"ReduceOutputCollection", "ReduceOutputReferencePattern", "PatternReferencesCollectionName", "MappedPerSecondRate", "ReducedPerSecondRate", "MaxNumberOfOutputsPerDocument", "Collections", "LastQueryingTime",
			"State", "Priority", "CreatedTimestamp", "LastIndexingTime", "IsStale", "LockMode", "Type", "Status", "EntriesCount", "ErrorsCount", "SourceType")
		a.needs(t, []any{"Results", 0, "Collections", "Users"}, "LastProcessedDocumentEtag", "LastProcessedTombstoneEtag", "DocumentLag", "TombstoneLag")
	}
	w.say(204, "POST /databases/a/admin/indexes/disable?name=Plain&clusterWide=False", pythonHeaders, "")
	w.say(204, "POST /databases/a/admin/indexes/enable?name=Plain&clusterWide=False", pythonHeaders, "")
	a := w.say(200, "GET /databases/a/indexes/terms?name=Plain&field=name&fromValue=&pageSize=", pythonHeaders, "")
	equal(t, "terms", a.text(t, "Terms"), "[ann]")
	a = w.say(200, "GET /databases/a/indexes/errors?&name=Plain&name=Other", pythonHeaders, "")
	equal(t, "errors of indexes", a.text(t, "Results", 0, "Errors"), "[]")
	a = w.say(200, "GET /databases/a/indexes/status", pythonHeaders, "")
	a.needs(t, []any{"Indexes", 0}, "Name", "Status")
	w.say(204, "POST /databases/a/indexes/set-lock", pythonHeaders, `{"IndexNames": ["Plain"], "Mode": "LockedIgnore"}`)
	w.say(204, "POST /databases/a/indexes/set-priority", pythonHeaders, `{"IndexNames": ["Plain"], "Priority": "High"}`)
	a = w.say(200, "GET /databases/a/stats", pythonHeaders, "")
	a.needs(t, []any{"SizeOnDisk"}, "SizeInBytes", "HumaneSize")
	a.needs(t, []any{"TempBuffersSizeOnDisk"}, "SizeInBytes", "HumaneSize")
	a.needs(t, []any{"Indexes", 0}, "LockMode", "Name")
	a = w.say(200, "GET /databases/a/indexes?start=0&pageSize10%20", pythonHeaders, "") // as the client writes it
	a.needs(t, []any{"Results", 3}, "Name")
	a = w.say(200, "GET /databases/a/indexes?start=0&pageSize=10&namesOnly=true", pythonHeaders, "")
	equal(t, "names", a.text(t, "Results"), "[Detected Options Other Plain]")
	w.say(204, "DELETE /databases/a/indexes?name=Plain", pythonHeaders, "")

	for _, rest := range []string{`"IndexSourceType": "Counters"`, `"Nonsense": 1`, `"Fields": {"name": {"Nonsense": true}}`} {
		a := h.do("PUT", "/databases/a/admin/indexes", `{"Indexes": [{"Name": "No", "Maps": ["from u in docs.Users select new { u.name }"], `+rest+`}]}`)
		if a.status != 400 && a.status != 501 {
			t.Errorf("%s: %d %s", rest, a.status, a.body)
		}
	}
}

// Ensure that RavenDB's client for Python can save with options: it writes a second question
// mark in front of them.
func TestPython_BatchOptions(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	w := h.dial()
	const body = `{"Commands": [{"Id": "users/1-A", "ChangeVector": null, "Document": {"name": "Ann", "@metadata": {"@collection": "Users", "Raven-Python-Type": "users.User"}}, "Type": "PUT"}, {"Id": "users/2-A", "ChangeVector": null, "Type": "DELETE"}]}`
	for _, options := range []string{"", "?&waitForIndexesTimeout=00:00:15&waitForIndexThrow=true", "?&waitForIndexesTimeout=00:00:15&waitForIndexThrow=false&waitForSpecificIndex=b'Users/ByName'",
		"?&waitForReplicasTimeout=00:00:15&throwOnTimeoutInWaitForReplicas=true&numberOfReplicasToWaitFor=majority"} {
		a := w.say(201, "POST /databases/a/bulk_docs?"+options, pythonHeaders, body)
		a.needs(t, []any{"Results", 0}, "Type", "@id", "@change-vector")
		a.needs(t, []any{"Results", 1}, "Type", "Id")
	}
	a := w.say(201, "POST /databases/a/bulk_docs?&disableAtomicDocumentWrites=false", pythonHeaders,
		`{"Commands": [{"Id": "users/3-A", "ChangeVector": null, "Document": {"name": "Cyd", "@metadata": {"@collection": "Users"}}, "Type": "PUT"}, {"Id": "names/cyd", "Document": {"Object": "users/3-A"}, "Index": 0, "Type": "CompareExchangePUT"}], "TransactionMode": "ClusterWide"}`)
	a.needs(t, nil, "TransactionIndex")
	a.needs(t, []any{"Results", 1}, "Key", "Index")
	w.say(400, "POST /databases/a/bulk_docs??&nonsense=1", pythonHeaders, body)
}

// Ensure that RavenDB's client for Python can change by query: it sends all members of a query,
// some of which others leave out.
func TestPython_ByQuery(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	w := h.dial()
	for _, id := range []string{"users/1-A", "users/2-A"} {
		w.say(201, "PUT /databases/a/docs?id="+id, pythonHeaders, `{"n": 1, "@metadata": {"@collection": "Users"}}`)
	}
	const members = `"QueryParameters": null, "ProjectionBehavior": null, "Start": null, "WaitForNonStaleResults": null, "WaitForNonStaleResultsTimeout": null, "SkipDuplicateChecking": null, "DisableCaching": null`
	for _, one := range []struct{ line, body string }{
		{"PATCH /databases/a/queries?allowStale=True&maxOpsPerSec=&details=False", `{"Query": {"PageSize": 2147483647, "PageSizeSet": false, "Query": "from Users update { this.n = 2 }", ` + members + `}}`},
		{"DELETE /databases/a/queries?allowStale=True&maxOpsPerSec=&details=False&staleTimeout=0:00:15", `{"PageSize": 1, "PageSizeSet": true, "Query": "from Users where n = 2", ` + members + `}`},
	} {
		a := w.say(200, one.line, pythonHeaders, one.body)
		a.needs(t, nil, "OperationId", "OperationNodeTag")
		h.operationEnds(a)
	}
	a := w.say(200, "POST /databases/a/queries?queryHash=17", pythonHeaders, `{"Query": "from Users where n = $p0", "QueryParameters": {"p0": 2}}`)
	equal(t, "left", a.text(t, "TotalResults"), 1)
}
