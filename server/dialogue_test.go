package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// wire is a connection that sends requests as they are written down.
type wire struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	host string
}

func (h *host) dial() *wire {
	h.t.Helper()
	host := strings.TrimPrefix(h.http.URL, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { conn.Close() })
	return &wire{h.t, conn, bufio.NewReader(conn), host}
}

// say sends a request line, headers and a body, and returns the reply.
func (w *wire) say(status int, line, headers, body string) answer {
	w.t.Helper()
	text := line + " HTTP/1.1\r\nHost: " + w.host + "\r\n" + strings.ReplaceAll(strings.TrimSpace(headers), "\n", "\r\n") + "\r\n"
	if body != "" || strings.HasPrefix(line, "P") {
		text += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	if _, err := io.WriteString(w.conn, text+"\r\n"+body); err != nil {
		w.t.Fatal(err)
	}
	method, _, _ := strings.Cut(line, " ")
	reply, err := http.ReadResponse(w.in, &http.Request{Method: method})
	if err != nil {
		w.t.Fatalf("%s: %v", line, err)
	}
	defer reply.Body.Close()
	read, err := io.ReadAll(reply.Body)
	if err != nil {
		w.t.Fatalf("%s: %v", line, err)
	}
	if reply.StatusCode != status {
		w.t.Fatalf("%s: status %d, want %d: %s", line, reply.StatusCode, status, read)
	}
	return answer{reply.StatusCode, reply.Header, string(read)}
}

// Ensure that what RavenDB's client for Go sends, from opening a store to closing it, is
// answered as it expects. Its requests are written down as they are on the wire.
func TestDialogue_Go(t *testing.T) {
	t.Parallel()
	h := start(t)
	w := h.dial()
	const headers = "User-Agent: ravendb-go-client/4.0.0\nRaven-Client-Version: 4.0.0\nTopology-Etag: \"0\"\nClient-Configuration-Etag: \"0\"\nAccept-Encoding: gzip"
	const withBody = headers + "\nContent-Type: application/json; charset=UTF-8"

	w.say(200, "GET /cluster/topology", "User-Agent: ravendb-go-client/4.0.0\nRaven-Client-Version: 4.0.0\nTopology-Etag: \"0\"", "")
	w.say(201, "PUT /admin/databases?name=test_db_1&replicationFactor=1", withBody, `{"DatabaseName":"test_db_1","Disabled":false,"DataDirectory":"","Settings":{},"ConflictSolverConfig":null,"Encrypted":false,"EtagForBackup":0,"DatabaseTopology":null}`)
	a := w.say(200, "GET /topology?name=test_db_1", headers, "")
	equal(t, "url", a.text(t, "Nodes", 0, "Url"), h.http.URL)
	a = w.say(201, "GET /databases/test_db_1/hilo/next?tag=users&lastBatchSize=0&lastRangeAt=&identityPartsSeparator=/&lastMax=0", headers, "")
	equal(t, "high", a.text(t, "High"), 32)
	a = w.say(201, "POST /databases/test_db_1/bulk_docs", withBody, `{"Commands":[{"Id":"users/1-A","ChangeVector":null,"Type":"PUT","Document":{"name":"John","@metadata":{"@collection":"Users","Raven-Go-Type":"tests.User"}}}]}`)
	version := a.text(t, "Results", 0, "@change-vector")
	known := headers + "\nKnown-Raft-Index: 0"
	a = w.say(200, "GET /databases/test_db_1/docs?&id=users%2F1-A", known, "")
	equal(t, "etag", a.header.Get("ETag"), `"`+version+`"`)
	w.say(304, "GET /databases/test_db_1/docs?&id=users%2F1-A", known+"\nIf-None-Match: \""+version+"\"", "")
	w.say(304, "HEAD /databases/test_db_1/docs?id=users%2F1-A", known+"\nIf-None-Match: "+version, "")
	w.say(404, "GET /databases/test_db_1/docs?&id=users%2F2-A", known, "")
	w.say(404, "GET /databases/test_db_1/docs?&id=users%2F2-A", known+"\nIf-None-Match: \"404 response\"", "")
	a = w.say(201, "PUT /databases/test_db_1/docs?id=users%2Fa+b&c=d", withBody, `{"name":"odd"}`)
	equal(t, "id", a.text(t, "Id"), "users/a+b&c=d")
	w.say(409, "DELETE /databases/test_db_1/docs?id=users%2Fa+b&c=d", withBody+"\nIf-Match: \"A:1-x\"", "")
	w.say(204, "DELETE /databases/test_db_1/docs?id=users%2Fa+b&c=d", withBody, "")
	a = w.say(200, "POST /databases/test_db_1/multi_get", withBody, `{"Requests":[{"Url":"/databases/test_db_1/docs","Query":"?&id=users%2F1-A","Method":null,"Headers":{},"Content":null}]}`)
	equal(t, "lazy", a.text(t, "Results", 0, "Result", "Results", 0, "name"), "John")
	w.say(200, "GET /databases/test_db_1/stats", headers, "")
	w.say(204, "PUT /databases/test_db_1/hilo/return?tag=users&end=32&last=1", headers, "")
	w.say(200, "DELETE /admin/databases", withBody, `{"DatabaseNames":["test_db_1"],"HardDelete":true,"FromNodes":null,"TimeToWaitForConfirmation":null}`)
	a = w.say(503, "GET /databases/test_db_1/docs?&id=x", headers, "")
	equal(t, "missing", a.header.Get("Database-Missing"), "test_db_1")
}

// Ensure the same for what only RavenDB's client for Node sends.
func TestDialogue_Node(t *testing.T) {
	t.Parallel()
	h := start(t)
	w := h.dial()
	const headers = "Accept: */*\nRaven-Client-Version: 5.4.0\nTopology-Etag: \"0\"\nClient-Configuration-Etag: 0\nUser-Agent: node-fetch/1.0 (+https://github.com/bitinn/node-fetch)\nAccept-Encoding: gzip,deflate\nConnection: keep-alive"
	const withBody = headers + "\nContent-Type: application/json"

	w.say(200, "GET /cluster/topology?first-topology-update", headers, "")
	w.say(201, "PUT /admin/databases?name=db&replicationFactor=1&raft-request-id=59ed9c94-b6a6-4c42-a0a0-6a1d50c1d6a1", withBody+"\nETag: \"undefined\"",
		`{"DatabaseName":"db","Disabled":false,"Settings":{"Indexing.Static.SearchEngineType":"Lucene","Indexing.Auto.SearchEngineType":"Lucene"}}`)
	w.say(200, "GET /topology?name=db&first-topology-update&applicationIdentifier=59ed9c94-b6a6-4c42-a0a0-6a1d50c1d6a1", headers, "")
	a := w.say(200, "GET /databases/db/configuration/client", headers, "")
	if !strings.Contains(a.body, `"Etag":-2`) {
		t.Errorf("got %s", a.body)
	}
	w.say(201, "GET /databases/db/hilo/next?lastBatchSize=0&tag=users&lastRangeAt=0001-02-01T00%3A00%3A00.0000000&identityPartsSeparator=/&lastMax=0", headers, "")
	a = w.say(201, "POST /databases/db/bulk_docs?", withBody, `{"Commands":[{"Type":"PUT","Id":"users/1-A","Document":{"name":"x","@metadata":{"@collection":"Users","Raven-Node-Type":"User","@nested-object-types":{"a":"date"}}},"ForceRevisionCreationStrategy":"None"}]}`)
	version := a.text(t, "Results", 0, "@change-vector")
	w.say(304, "HEAD /databases/db/docs?id=users%2F1-A", headers+"\nIf-None-Match: "+version, "")
	w.say(304, "GET /databases/db/docs?&id=users%2F9-A", headers+"\nIf-None-Match: \"404 Response\"", "")
	a = w.say(200, "GET /databases/db/docs?&id=users%2F1-A", headers, "")
	equal(t, "nested", a.text(t, "Results", 0, "@metadata", "@nested-object-types"), "map[a:date]")
	if _, sent := a.header["Refresh-Topology"]; sent {
		t.Error("any value of Refresh-Topology is true to this client")
	}
	w.say(200, "POST /databases/db/identity/next?name=users%7C&raft-request-id=59ed9c94-b6a6-4c42-a0a0-6a1d50c1d6a2", headers, "")
	w.say(204, "PUT /databases/db/hilo/return?tag=users&end=32&last=1", headers, "")
}
