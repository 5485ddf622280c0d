package server_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// javaHeaders are the headers of RavenDB's client for Java, without that which packs replies.
const javaHeaders = "Raven-Client-Version: 6.0.0\nClient-Configuration-Etag: \"0\"\nTopology-Etag: \"0\"\nUser-Agent: Apache-HttpClient/4.5.14 (Java/17.0.9)"

const javaJSON = javaHeaders + "\nContent-Type: application/json; charset=UTF-8"

// Ensure that RavenDB's client for Java can create a database and deploy an index: both have
// members that the server does not know, all of them empty.
func TestJava_Administration(t *testing.T) {
	t.Parallel()
	h := start(t)
	w := h.dial()
	const record = `{"DatabaseName":"jv","Disabled":false,"Settings":{},"ConflictSolverConfig":null,"DocumentsCompression":null,"Encrypted":false,"EtagForBackup":0,"DeletionInProgress":null,"RollingIndexes":null,"Topology":null,` +
		`"Sorters":{},"Analyzers":{},"Indexes":null,"AutoIndexes":null,"Revisions":null,"TimeSeries":null,"Expiration":null,"PeriodicBackups":[],"ExternalReplications":[],"SinkPullReplications":[],"HubPullReplications":[],` +
		`"RavenConnectionStrings":{},"SqlConnectionStrings":{},"OlapConnectionStrings":{},"RavenEtls":[],"SqlEtls":[],"OlapEtls":[],"Client":null,"Studio":null,"TruncatedClusterTransactionCommandsCount":0,"DatabaseState":null,` +
		`"LockMode":null,"IndexesHistory":null,"RevisionsForConflicts":null,"Refresh":null,"Integrations":null,"UnusedDatabaseIds":[],"QueueConnectionStrings":{},"QueueEtls":[],"Sharding":null,"DataArchival":null}`
	w.say(201, "PUT /admin/databases?name=jv&replicationFactor=1&raft-request-id=aa", javaJSON, record).needs(t, nil, "Name", "RaftCommandIndex", "Topology", "NodesAddedTo")

	const index = `{"Name":"Users/ByName","Priority":null,"State":null,"LockMode":null,"AdditionalSources":{},"CompoundFields":[],"AdditionalAssemblies":[],"Maps":["from u in docs.Users select new { u.name }"],"Reduce":null,` +
		`"Fields":{"name":{"Storage":null,"Indexing":"Search","TermVector":null,"Spatial":null,"Analyzer":null,"Suggestions":false,"Vector":null}},"Configuration":{},"SourceType":"Documents","ArchivedDataProcessingBehavior":null,` +
		`"Type":"Map","OutputReduceToCollection":null,"ReduceOutputIndex":null,"PatternForOutputReduceToCollectionReferences":null,"PatternReferencesCollectionName":null,"DeploymentMode":null,"SchemaDefinitions":null}`
	a := w.say(201, "PUT /databases/jv/admin/indexes?raft-request-id=bb", javaJSON, `{"Indexes":[`+index+`]}`)
	equal(t, "index", a.text(t, "Results", 0, "Index"), "Users/ByName")
	equal(t, "changed", w.say(200, "POST /databases/jv/indexes/has-changed", javaJSON, index).text(t, "Changed"), false)

	w.say(200, "POST /databases/jv/admin/revisions/config?raft-request-id=cc", javaJSON, `{"Default":{"MinimumRevisionsToKeep":5,"MinimumRevisionAgeToKeep":null,"Disabled":false,"PurgeOnDelete":false,"MaximumRevisionsToDeleteUponDocumentUpdate":null},"Collections":null}`)
	w.say(200, "POST /databases/jv/admin/expiration/config?raft-request-id=dd", javaJSON, `{"MaxItemsToProcess":null,"DeleteFrequencyInSec":60,"Disabled":false}`)
	w.say(200, "POST /databases/jv/admin/refresh/config?raft-request-id=ee", javaJSON, `{"Disabled":false,"RefreshFrequencyInSec":null,"MaxItemsToProcess":null}`)
	w.say(201, "PUT /databases/jv/admin/configuration/client?raft-request-id=ff", javaJSON, `{"Etag":0,"Disabled":false,"MaxNumberOfRequestsPerSession":10,"ReadBalanceBehavior":null,"LoadBalanceBehavior":null,"LoadBalancerContextSeed":null,"IdentityPartsSeparator":null}`)
}

// Ensure that RavenDB's client for Java can save what it saves in sessions. It takes each
// ModifiedDocument for an object, so a patch that returns no document must have none, not null.
func TestJava_Batches(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	w := h.dial()
	batch := func(commands string) answer {
		t.Helper()
		return w.say(201, "POST /databases/a/bulk_docs?", javaJSON, `{"Commands":[`+commands+`]}`)
	}
	a := batch(`{"Id":"users/1-A","ChangeVector":null,"Document":{"name":"Ann","@metadata":{"@collection":"Users","Raven-Java-Type":"m.User"}},"Type":"PUT"},{"Id":"users/2-A","ChangeVector":null,"Type":"DELETE","Document":null}`)
	a.needs(t, []any{"Results", 0}, "Type", "@id", "@change-vector", "@last-modified", "@collection")
	a.needs(t, []any{"Results", 1}, "Type", "Id", "Deleted")

	for script, status := range map[string]string{"this.name = args.val_0;": "Patched", "this.name = this.name": "NotModified"} {
		a = batch(`{"Id":"users/1-A","ChangeVector":null,"Patch":{"Script":"` + script + `","Values":{"val_0":"Bo"}},"Type":"PATCH"}`)
		equal(t, "status", a.text(t, "Results", 0, "PatchStatus"), status)
		if strings.Contains(a.body, "ModifiedDocument") {
			t.Errorf("a patch returns a document that nobody asked for: %s", a.body)
		}
	}
	a = batch(`{"Id":"users/1-A","ChangeVector":null,"Patch":{"Script":"this.name = args.val_0;","Values":{"val_0":"Co"}},"Type":"PATCH","ReturnDocument":true}`)
	equal(t, "returned", a.text(t, "Results", 0, "ModifiedDocument", "name"), "Co")
	a.needs(t, []any{"Results", 0}, "Id", "ChangeVector", "LastModified")
	a = batch(`{"Id":"users/8-A","ChangeVector":null,"Patch":{"Script":"this.n = 1","Values":{}},"Type":"PATCH","CreateIfMissing":{"a":1,"@metadata":{"@collection":"Users"}}}`)
	equal(t, "status", a.text(t, "Results", 0, "PatchStatus"), "Created")
	a = batch(`{"Id":"users/9-A","ChangeVector":null,"Patch":{"Script":"this.n = 1","Values":{}},"Type":"PATCH","ReturnDocument":true}`)
	equal(t, "status", a.text(t, "Results", 0, "PatchStatus"), "DocumentDoesNotExist")

	a = batch(`{"Id":"users/1-A","Type":"ForceRevisionCreation"}`)
	equal(t, "revision", a.text(t, "Results", 0, "RevisionCreated"), true)
	a.needs(t, []any{"Results", 0}, "@id", "@change-vector", "@last-modified")

	a = w.say(201, "POST /databases/a/bulk_docs?", javaJSON, `{"Commands":[{"Id":"users/20-A","ChangeVector":null,"Document":{"name":"Ann","@metadata":{"@collection":"Users"}},"Type":"PUT"},{"Id":"k","Document":{"Object":"x"},"Index":0,"Type":"CompareExchangePUT"}],"TransactionMode":"ClusterWide"}`)
	a.needs(t, nil, "TransactionIndex")
	equal(t, "key", a.text(t, "Results", 1, "Key"), "k")
	if _, is := a.json(t, "Results", 1, "Index").(json.Number); !is {
		t.Errorf("an index that is no number: %s", a.body)
	}
}

// Ensure that RavenDB's client for Java can write and read attachments. It names each part of a
// batch, and reads several attachments at once: what follows the last brace of the descriptions
// is the first content.
func TestJava_Attachments(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	w := h.dial()
	w.say(201, "PUT /databases/a/docs?id=users/1-A", javaJSON, `{"name":"Ann","@metadata":{"@collection":"Users"}}`)
	const boundary = "iS7OaQn3iZ0t6bU1"
	part := func(headers, name, content string) string {
		return "--" + boundary + "\r\n" + headers + "Content-Disposition: form-data; name=\"" + name + "\"\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: binary\r\n\r\n" + content + "\r\n"
	}
	body := part("", `main"; filename="main`, `{"Commands":[{"Id":"users/1-A","Name":"a.txt","ContentType":null,"ChangeVector":null,"Type":"AttachmentPUT"},{"Id":"users/1-A","Name":"b.txt","ContentType":"text/plain","ChangeVector":null,"Type":"AttachmentPUT"}]}`) +
		part("Command-Type: AttachmentStream\r\n", "attachment1", "\nhello") + part("Command-Type: AttachmentStream\r\n", "attachment2", "world") + "--" + boundary + "--\r\n"
	a := w.say(201, "POST /databases/a/bulk_docs?", javaHeaders+"\nContent-Type: multipart/form-data; boundary="+boundary, body)
	for i := range 2 {
		a.needs(t, []any{"Results", i}, "Type", "Id", "Name", "ChangeVector", "ContentType", "Hash", "Size", "DocumentChangeVector")
	}
	a = w.say(200, "GET /databases/a/attachments?id=users%2F1-A&name=b.txt", javaHeaders, "")
	equal(t, "content", a.body, "world")
	equal(t, "headers", a.header.Get("Content-Type")+a.header.Get("Attachment-Size"), "text/plain5")
	if a.header.Get("Attachment-Hash") == "" || !strings.HasPrefix(a.header.Get("ETag"), `"A:`) {
		t.Errorf("headers of an attachment: %v", a.header)
	}
	w.say(404, "GET /databases/a/attachments?id=users%2F1-A&name=none", javaHeaders, "")

	const several = `"Attachments":[{"DocumentId":"users/1-A","Name":"a.txt"},{"DocumentId":"users/1-A","Name":"none"},{"DocumentId":"users/1-A","Name":"b.txt"}]}`
	a = w.say(200, "POST /databases/a/attachments/bulk", javaJSON, `{"AttachmentType":"Document",`+several)
	var head struct{ AttachmentsMetadata []map[string]any }
	d := json.NewDecoder(strings.NewReader(a.body))
	if err := d.Decode(&head); err != nil {
		t.Fatal(err)
	}
	equal(t, "contents", a.body[d.InputOffset():], "\nhelloworld")
	if len(head.AttachmentsMetadata) != 2 {
		t.Fatalf("the descriptions are %v", head.AttachmentsMetadata)
	}
	for _, member := range []string{"Name", "Hash", "ContentType", "Size", "ChangeVector", "DocumentId"} {
		if _, found := head.AttachmentsMetadata[0][member]; !found {
			t.Errorf("a description without %s: %v", member, head.AttachmentsMetadata[0])
		}
	}
	h.checkProblem(h.do("POST", "/databases/a/attachments/bulk", `{"AttachmentType":"Revision",`+several), 501, "NotSupportedException")

	batch := func(status int, command string) answer {
		t.Helper()
		return w.say(status, "POST /databases/a/bulk_docs?", javaJSON, `{"Commands":[`+command+`]}`)
	}
	a = batch(201, `{"Id":"users/1-A","Name":"a.txt","DestinationId":"users/1-A","DestinationName":"c.txt","ChangeVector":null,"Type":"AttachmentCOPY"}`)
	a.needs(t, []any{"Results", 0}, "Type", "Id", "Name", "ChangeVector", "ContentType", "Hash", "Size", "DocumentChangeVector")
	batch(201, `{"Id":"users/1-A","Name":"c.txt","DestinationId":"users/1-A","DestinationName":"d.txt","ChangeVector":null,"Type":"AttachmentMOVE"}`)
	batch(201, `{"Id":"users/1-A","Name":"d.txt","ChangeVector":null,"Type":"AttachmentDELETE"}`)
}
