package server

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// maxRecordBytes bounds the database record that a client sends.
const maxRecordBytes = 1 << 20

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// listDatabases lists the databases by name.
func (c *call) listDatabases() error {
	start, size, err := c.params.page()
	if err != nil {
		return err
	}
	namesOnly, err := c.params.flag("namesOnly")
	if err != nil {
		return err
	}
	names := slices.DeleteFunc(c.s.databases.list(), func(name string) bool { return !c.who.may(name, ReadRight) })
	if name, found := c.params.find("name"); found {
		names = slices.DeleteFunc(names, func(other string) bool { return !strings.EqualFold(name, other) })
	}
	names = names[min(start, len(names)):]
	names = names[:min(size, len(names))]
	if namesOnly {
		return c.json(http.StatusOK, map[string]any{"Databases": names})
	}
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = map[string]any{"Name": name, "DatabaseName": name, "Disabled": false, "IsAdmin": true, "IsEncrypted": false, "LockMode": "Unlock", "NodesTopology": nodesTopology(c)}
	}
	return c.json(http.StatusOK, map[string]any{"Databases": list})
}

// nodesTopology is the topology of a database in RavenDB's list of databases.
func nodesTopology(c *call) any {
	node := map[string]any{"NodeTag": c.s.opts.tag(), "NodeUrl": c.url()}
	return map[string]any{"Members": []any{node}, "Promotables": []any{}, "Rehabs": []any{}}
}

// databaseTopology is the topology in a database record.
func databaseTopology(c *call) any {
	return map[string]any{"Members": []string{c.s.opts.tag()}, "Promotables": []string{}, "Rehabs": []string{}, "ReplicationFactor": 1, "DynamicNodesDistribution": false, "Stamp": map[string]any{"Index": 1, "Term": 1, "LeadersTicks": 0}}
}

// getDatabase returns RavenDB's record of a database. A missing one is 404 here, since
// the reply is about the database itself.
func (c *call) getDatabase() error {
	name := c.params.get("name")
	r, etag, err := c.s.databases.recordOf(name)
	if p, is := err.(*problem); is && p.kind == typeDatabaseMissing {
		p.status = http.StatusNotFound
	}
	if err != nil {
		return err
	}
	reply := map[string]any{"ConflictSolverConfig": nil, "Settings": map[string]string{}}
	for field, value := range r.Given {
		reply[field] = value
	}
	for field, value := range map[string]any{"DatabaseName": r.Name, "Disabled": false, "Encrypted": false, "DatabaseState": "Normal", "LockMode": "Unlock",
		"EtagForBackup": 0, "Etag": etag, "Topology": databaseTopology(c)} {
		reply[field] = value
	}
	return c.json(http.StatusOK, reply)
}

// createDatabase creates a database. The members of its record are stored but have no
// effect; a record that asks for features that the server lacks is refused.
func (c *call) createDatabase() error {
	if len(c.body) > maxRecordBytes {
		return tooLarge("a database record has at most %d bytes", maxRecordBytes)
	}
	given := make(map[string]json.RawMessage)
	if len(c.body) > 0 {
		if err := c.decode(&given); err != nil {
			return err
		}
	}
	name := c.params.get("name")
	var inRecord string
	if text, found := given["DatabaseName"]; found && json.Unmarshal(text, &inRecord) != nil {
		return badRequest("DatabaseName must be text")
	}
	if name == "" {
		name = inRecord
	}
	if inRecord != "" && inRecord != name {
		return badRequest("the URL names the database %.140q, and its record %.140q", name, inRecord)
	}
	if err := c.who.need(name, AdminRight); err != nil {
		return err
	}
	if err := checkRecord(given); err != nil {
		return err
	}
	for _, own := range []string{"DatabaseName", "DatabaseTopology", "Topology", "Etag"} {
		delete(given, own)
	}
	etag, err := c.s.databases.create(c.ctx, name, newID(), given)
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, map[string]any{"RaftCommandIndex": etag, "Name": name, "Topology": databaseTopology(c), "NodesAddedTo": []string{c.url()}})
}

// checkRecord refuses a record that asks for what the server does not support.
func checkRecord(given map[string]json.RawMessage) error {
	for member, reason := range map[string]string{"Encrypted": "encryption is not there", "Disabled": "a database cannot be disabled yet", "Sharding": "sharding is not there"} {
		if text := string(given[member]); text != "" && text != "false" && text != "null" {
			return notSupported("the database record has %s: %s", member, reason)
		}
	}
	if text := string(given["DataDirectory"]); text != "" && text != "null" && text != `""` {
		return notSupported("the database record has a DataDirectory: databases are in the server's data directory")
	}
	return nil
}

// deleteDatabases deletes databases, one after the other.
func (c *call) deleteDatabases() error {
	var request struct {
		DatabaseNames []string
		HardDelete    bool
	}
	if err := c.decode(&request); err != nil {
		return err
	}
	if len(request.DatabaseNames) == 0 {
		return badRequest("DatabaseNames names no database")
	}
	for _, name := range request.DatabaseNames { // check all names before the first deletion
		if err := c.who.need(name, AdminRight); err != nil {
			return err
		}
		if _, _, err := c.s.databases.recordOf(name); err != nil {
			return notThere(err)
		}
	}
	for _, name := range request.DatabaseNames {
		err := c.s.databases.drop(c.ctx, name, request.HardDelete)
		if err == nil {
			err = c.s.clients.forget(c.ctx, name)
		}
		if err == nil && request.HardDelete {
			key, _ := checkName(name) // valid, as drop has accepted it
			c.s.operations.forget(key)
			c.s.rejects.forget(key)
		}
		if err != nil {
			return notThere(err)
		}
	}
	index, err := c.s.databases.index(c.ctx)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"RaftCommandIndex": index, "PendingDeletes": []string{}})
}

// notThere turns the error of a missing database into a bad request, so that clients do
// not take the node to be down.
func notThere(err error) error {
	if p, is := err.(*problem); is && p.kind == typeDatabaseMissing {
		p.status, p.headers = http.StatusBadRequest, nil
	}
	return err
}
