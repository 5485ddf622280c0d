package own

import "github.com/jaydb/jay/server/internal/serve"

// Routes lists the endpoints of Jay's own API. docs/server.md has the same table.
var Routes = []*serve.Route{
	{Method: "GET", Path: "/jay/v1/server", Run: getServer, Needs: serve.ReadRight},
	{Method: "GET", Path: "/jay/v1/operations", Run: getOperations, Open: true, Takes: "database id pageSize"},
	{Method: "GET", Path: "/jay/v1/tokens", Run: getTokens},
	{Method: "POST", Path: "/jay/v1/tokens", Run: makeToken, Body: true},
	{Method: "DELETE", Path: "/jay/v1/tokens", Run: withdrawToken, Takes: "name"},

	{Method: "GET", Path: "/jay/v1/cluster", Run: getServers, Open: true},

	{Method: "POST", Path: "{J}/query", Run: queryPage, Timed: true, Body: true, Needs: serve.ReadRight},
	{Method: "POST", Path: "{J}/explain", Run: explain, Timed: true, Body: true, Needs: serve.ReadRight},
	{Method: "GET", Path: "{J}/collections", Run: getCollections},
	{Method: "GET", Path: "{J}/indexes", Run: getIndexes, Takes: "collection"},
	{Method: "PUT", Path: "{J}/indexes", Run: putIndex, Begins: "build an index", Body: true, Needs: serve.AdminRight, Takes: "background"},
	{Method: "DELETE", Path: "{J}/indexes", Run: dropIndex, Needs: serve.AdminRight, Takes: "collection name"},
	{Method: "POST", Path: "{J}/collections/rename", Run: renameCollection, Begins: "rename a collection", Body: true, Needs: serve.AdminRight},
	{Method: "DELETE", Path: "{J}/collections", Run: dropCollection, Begins: "drop a collection", Needs: serve.AdminRight, Takes: "name"},
	{Method: "POST", Path: "{J}/preview", Run: preview, Timed: true, Body: true, Needs: serve.ReadRight},
	{Method: "GET", Path: "{J}/ids", Run: getIDs, Timed: true},
	{Method: "GET", Path: "{J}/counters", Run: getCounters},
	{Method: "POST", Path: "{J}/counters", Run: raiseCounters, Body: true, Needs: serve.AdminRight},
	{Method: "GET", Path: "{J}/settings", Run: getSettings},
	{Method: "GET", Path: "{J}/figures", Run: getFigures},
	{Method: "GET", Path: "{J}/disk", Run: getDisk},
	{Method: "GET", Path: "{J}/stats", Run: getStats},
	{Method: "GET", Path: "{J}/documents", Run: getDocuments, Takes: "after collection pageSize reverse startsWith"},
	{Method: "GET", Path: "{J}/rows", Run: getRows, Timed: true, Takes: "after at collection column* from order pageSize reverse startsWith"},
	{Method: "POST", Path: "{J}/documents", Run: storeDocument, Body: true, Stores: true, Takes: "collection"},
	{Method: "GET", Path: "{J}/document", Run: getDocument, Takes: "id"},
	{Method: "GET", Path: "{J}/revisions", Run: getRevisions, Takes: "before changeVector id pageSize"},
	{Method: "GET", Path: "{J}/nextid", Run: getNextID, Takes: "collection hilo id"},
	{Method: "GET", Path: "{J}/fields", Run: getFields, Takes: "collection"},
	{Method: "POST", Path: "{J}/export", Run: exportRows, Body: true, Stream: true, Needs: serve.ReadRight},
	{Method: "POST", Path: "{J}/import", Run: runImport, Begins: "import", Stream: true, Upload: true, Takes: "collection delimiter format id idColumn idPrefix infer insert name operation rejects"},
	{Method: "GET", Path: "{J}/import/rejects", Run: getRejects, Needs: serve.WriteRight, Takes: "operation"},
	{Method: "GET", Path: "{J}/export", Run: download, Begins: "export", Stream: true, Takes: "bare collection compression delimiter format id* operation parameters query spreadsheet startsWith"},
	{Method: "GET", Path: "{J}/backup", Run: backup, Begins: "backup", Stream: true, Takes: "once operation since"},
	{Method: "GET", Path: "{J}/cluster", Run: getNodes, Agreed: true},
	{Method: "GET", Path: "{J}/changes", Run: getChanges, Stream: true, Socket: true, Takes: "collection id* positions prefix since untilCaughtUp"},
}
