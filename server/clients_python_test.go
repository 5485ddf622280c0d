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
