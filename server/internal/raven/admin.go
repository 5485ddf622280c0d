package raven

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/jaydb/jay/server/internal/serve"
)

// databaseRoutes are the endpoints that list, make and delete databases.
var databaseRoutes = []*serve.Route{
	{Method: "GET", Path: "/databases", Run: listDatabases, Open: true, Takes: "name namesOnly pageSize start"},
	{Method: "GET", Path: "/admin/databases", Run: getDatabase, Reads: true, Named: true, Takes: "name"},
	{Method: "PUT", Path: "/admin/databases", Run: createDatabase, Body: true, Raft: true, Open: true, Takes: "name replicationFactor"},
	{Method: "DELETE", Path: "/admin/databases", Run: deleteDatabases, Body: true, Raft: true, Open: true},
}

// maxRecordBytes bounds the database record that a client sends.
const maxRecordBytes = 1 << 20

// listDatabases lists the databases by name.
func listDatabases(c *serve.Call) error {
	start, size, err := c.Params.Page()
	if err != nil {
		return err
	}
	namesOnly, err := c.Params.Flag("namesOnly")
	if err != nil {
		return err
	}
	names := slices.DeleteFunc(c.Server.Databases.List(), func(name string) bool { return !c.Who.May(name, serve.ReadRight) })
	if name, found := c.Params.Find("name"); found {
		names = slices.DeleteFunc(names, func(other string) bool { return !strings.EqualFold(name, other) })
	}
	names = names[min(start, len(names)):]
	names = names[:min(size, len(names))]
	if namesOnly {
		return c.JSON(http.StatusOK, map[string]any{"Databases": names})
	}
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = map[string]any{"Name": name, "DatabaseName": name, "Disabled": false, "IsAdmin": true, "IsEncrypted": false, "LockMode": "Unlock", "NodesTopology": nodesTopology(c, name)}
	}
	return c.JSON(http.StatusOK, map[string]any{"Databases": list})
}

// nodesTopology is the topology of a database in RavenDB's list of databases.
func nodesTopology(c *serve.Call, name string) any {
	node := map[string]any{"NodeTag": c.Server.Tag(name), "NodeUrl": baseURL(c)}
	return map[string]any{"Members": []any{node}, "Promotables": []any{}, "Rehabs": []any{}}
}

// databaseTopology is the topology in a database record. RavenDB's client for Python needs each
// member.
func databaseTopology(c *serve.Call, name string) any {
	return map[string]any{"Members": []string{c.Server.Tag(name)}, "Promotables": []string{}, "Rehabs": []string{}, "ReplicationFactor": 1, "DynamicNodesDistribution": false, "Stamp": map[string]any{"Index": 1, "Term": 1, "LeadersTicks": 0},
		"PredefinedMentors": map[string]string{}, "DemotionReasons": map[string]string{}, "PromotablesStatus": map[string]string{}, "PriorityOrder": []string{}, "DatabaseTopologyIdBase64": nil}
}

// getDatabase returns RavenDB's record of a database. A missing one is 404 here, since
// the reply is about the database itself.
func getDatabase(c *serve.Call) error {
	name := c.Params.Get("name")
	r, etag, err := c.Server.Databases.RecordOf(name)
	if p, is := err.(*serve.Problem); is && p.Kind == serve.TypeDatabaseMissing {
		p.Status = http.StatusNotFound
	}
	if err != nil {
		return err
	}
	opened, err := c.Server.Databases.Acquire(c.Ctx, name)
	if err != nil {
		return err
	}
	defer c.Server.Databases.Release(opened)
	reply := map[string]any{"ConflictSolverConfig": nil, "Settings": map[string]string{}, "AutoIndexes": map[string]string{}} // the client for Python needs AutoIndexes
	for field, value := range r.Given {
		reply[field] = value
	}
	for _, d := range []*serve.Due{&serve.Expiration, &serve.Refresh} {
		stored, err := d.Stored(c.Ctx, opened.DB)
		if err != nil {
			return err
		}
		if stored != nil { // else as it was given
			reply[d.Member] = stored.Value
		}
	}
	for field, value := range map[string]any{"DatabaseName": r.Name, "Disabled": false, "Encrypted": false, "DatabaseState": "Normal", "LockMode": "Unlock",
		"EtagForBackup": 0, "Etag": etag, "Topology": databaseTopology(c, name)} {
		reply[field] = value
	}
	return c.JSON(http.StatusOK, reply)
}

// createDatabase creates a database. A record that asks for features that the server lacks
// is refused.
func createDatabase(c *serve.Call) error {
	if len(c.Body) > maxRecordBytes {
		return serve.TooLarge("a database record has at most %d bytes", maxRecordBytes)
	}
	var given databaseGiven
	if len(c.Body) > 0 {
		if err := c.Decode(&given); err != nil {
			return err
		}
	}
	name, inRecord := c.Params.Get("name"), ""
	if given.DatabaseName != nil {
		inRecord = *given.DatabaseName
	}
	if name == "" {
		name = inRecord
	}
	if inRecord != "" && inRecord != name {
		return serve.BadRequest("the URL names the database %.140q, and its record %.140q", name, inRecord)
	}
	if err := c.Who.Need(name, serve.AdminRight); err != nil {
		return err
	}
	copies, err := c.Params.Count("replicationFactor", 1)
	if err != nil {
		return err
	}
	if copies == 0 {
		return serve.BadRequest("replicationFactor must be above 0")
	}
	if copies > 1 {
		return serve.NotSupported("PUT /admin/databases: replicationFactor=%d: a database is on one node", copies)
	}
	if err := given.check(); err != nil {
		return err
	}
	etag, err := c.Server.Databases.Create(c.Ctx, name, serve.NewID(), given.kept())
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, map[string]any{"RaftCommandIndex": etag, "Name": name, "Topology": databaseTopology(c, name), "NodesAddedTo": []string{baseURL(c)}})
}

// deleteDatabases deletes databases, one after the other.
func deleteDatabases(c *serve.Call) error {
	var request struct {
		DatabaseNames []string
		HardDelete    bool
		FromNodes     []string

		TimeToWaitForConfirmation json.RawMessage `ignored:"a deletion is done when it is answered"`
	}
	if err := c.Decode(&request); err != nil {
		return err
	}
	if len(request.DatabaseNames) == 0 {
		return serve.BadRequest("DatabaseNames names no database")
	}
	if len(request.FromNodes) > 0 {
		return serve.NotSupported("FromNodes is not there: a database is on one node")
	}
	var names []string
	seen := make(map[string]bool)
	for _, name := range request.DatabaseNames { // check all names before the first deletion
		if err := c.Who.Need(name, serve.AdminRight); err != nil {
			return err
		}
		key, err := serve.CheckName(name)
		if err != nil {
			return err
		}
		if _, _, err := c.Server.Databases.RecordOf(name); err == nil && !seen[key] { // one that is gone is deleted already
			names = append(names, name)
		}
		seen[key] = true
	}
	for _, name := range names {
		err := c.Server.Databases.Drop(c.Ctx, name, request.HardDelete)
		if err == nil && request.HardDelete {
			key, _ := serve.CheckName(name) // valid, as drop has accepted it
			c.Server.Operations.Forget(key)
			c.Server.Rejects.Forget(key)
		}
		if err != nil {
			return notThere(err)
		}
	}
	index, err := c.Server.Databases.Index(c.Ctx)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"RaftCommandIndex": index, "PendingDeletes": []string{}})
}

// notThere turns the error of a missing database into a bad request, so that clients do
// not take the node to be down.
func notThere(err error) error {
	if p, is := err.(*serve.Problem); is && p.Kind == serve.TypeDatabaseMissing {
		p.Status, p.Headers = http.StatusBadRequest, nil
	}
	return err
}
