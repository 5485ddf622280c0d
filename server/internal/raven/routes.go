package raven

import (
	"slices"

	"github.com/jaydb/jay/server/internal/serve"
)

// Routes lists the supported endpoints of RavenDB, and those that are refused with a
// reason. Each list stands beside its functions. docs/server/endpoints.md has the same table.
var Routes = slices.Concat(
	topologyRoutes,
	databaseRoutes,
	documentRoutes,
	batchRoutes,
	multiGetRoutes,
	exchangeRoutes,
	counterRoutes,
	statsRoutes,
	configurationRoutes,
	queryRoutes,
	streamRoutes,
	patchRoutes,
	operationRoutes,
	compactRoutes,
	bulkInsertRoutes,
	changeRoutes,
	attachmentRoutes,
	revisionRoutes,
	dueRoutes,
	indexRoutes,
	refusedRoutes,
)

// refusedRoutes are endpoints of RavenDB that the server does not have, each with the reason.
var refusedRoutes = []*serve.Route{
	{Method: "POST", Path: "{D}/admin/indexes/stop", Refused: indexesRun},
	{Method: "DELETE", Path: "{D}/indexes/errors", Refused: "an index error belongs to a document, and is removed when the document changes; DELETE {D}/indexes deletes the index"},
	{Method: "POST", Path: "{D}/indexes/replace", Refused: "a new definition replaces the former one when its index is built, without a request"},
	{Method: "GET", Path: "{D}/indexes/progress", Refused: "each commit updates the indexes; GET {D}/indexes/staleness says whether one is being built, and {J}/indexes how far"},
	{Method: "GET", Path: "{D}/subscriptions", Refused: subscriptions},
	{Method: "PUT", Path: "{D}/subscriptions", Refused: subscriptions},
	{Method: "GET", Path: "/info/remote-task/tcp", Refused: subscriptions},
	{Method: "PUT", Path: "/admin/configuration/client", Refused: "a client configuration for all databases is not there; each database has its own"},
	{Method: "GET", Path: "{D}/revisions/bin", Refused: "the documents that were deleted and have revisions are not listed; read the revisions of an ID"},
	{Method: "GET", Path: "{D}/stats/detailed", Refused: "detailed statistics are not there; GET {J}/stats and {J}/disk have figures"},
	{Method: "GET", Path: "{D}/collections/stats/detailed", Refused: "sizes of collections are at GET {J}/stats"},
	{Method: "POST", Path: "/admin/databases/disable", Refused: "a database cannot be disabled yet"},
	{Method: "POST", Path: "/admin/databases/enable", Refused: "a database cannot be disabled yet"},
	{Method: "GET", Path: "{D}/docs/size", Refused: "sizes of documents are not there; ask for the document"},
	{Method: "PATCH", Path: "{D}/json-patch", Refused: "JSON Patch is not there; change the document with a script, by PATCH {D}/docs"},
	{Method: "POST", Path: "{D}/studio/sample-data", Refused: "sample data are not there"},
	{Method: "GET", Path: "{D}/admin/connection-strings", Refused: noTasks},
	{Method: "PUT", Path: "{D}/admin/connection-strings", Refused: noTasks},
	{Method: "POST", Path: "{D}/admin/periodic-backup", Refused: noTasks},
	{Method: "POST", Path: "{D}/smuggler/export", Refused: "use GET {J}/export"},
	{Method: "POST", Path: "{D}/smuggler/import", Refused: "use POST {J}/import"},
	{Method: "POST", Path: "{D}/admin/timeseries/config", Refused: "time series are not there; keep documents with a date"},
	{Method: "PUT", Path: "{D}/admin/sorters", Refused: "sorters of one's own are not there"},
	{Method: "GET", Path: "/admin/logs/configuration", Refused: "the log is set when the server starts"},
	{Method: "POST", Path: "/admin/logs/configuration", Refused: "the log is set when the server starts"},
	{Method: "GET", Path: "{D}/counters", Refused: "counters beside documents are not there; keep a number in the document"},
	{Method: "POST", Path: "{D}/counters", Refused: "counters beside documents are not there; keep a number in the document"},
	{Method: "GET", Path: "{D}/timeseries", Refused: "time series are not there; keep documents with a date"},
	{Method: "POST", Path: "{D}/timeseries", Refused: "time series are not there; keep documents with a date"},
}

const (
	indexesRun = "indexing does not stop: each write is in the indexes when it is committed; admin/indexes/disable takes an index out of commits and queries"
	noTasks    = "tasks of the server are not there; jay backup and GET {J}/backup make backups"
)
