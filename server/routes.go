package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// route is one endpoint.
type route struct {
	method  string
	path    string // "{D}" stands for /databases/{db}, "{J}" for /jay/v1/databases/{db}
	run     func(c *call) error
	params  func(raw string) (params, error) // parses the query; nil for parseParams
	body    bool                             // it has a body
	parts   bool                             // the body may be multipart
	lazy    bool                             // it may be part of a multi_get
	raft    bool                             // its reply is stored by raft-request-id, in the server's own database
	once    bool                             // its result is stored by raft-request-id, in the commit of the command
	free    bool                             // served under any load and for any host; reveals nothing
	stream  bool                             // it writes its reply itself
	socket  bool                             // it becomes a websocket
	agreed  bool                             // it needs the majority of a cluster
	named   bool                             // the parameter name has the name of its database
	invites bool                             // it needs only a ticket
	open    bool                             // any sender with credentials may call it; run checks the rights
	needs   Right                            // see right

	refused string // why it is not supported, if run is nil
}

// routes lists the supported endpoints, and those of RavenDB that are refused with a
// reason. docs/server.md has the same table.
var routes = []*route{
	{method: "GET", path: "/healthz", run: (*call).healthz, free: true},
	{method: "GET", path: "/readyz", run: (*call).readyz, free: true},

	{method: "GET", path: "/metrics", run: (*call).getMetrics, needs: ReadRight},
	{method: "POST", path: "/jay/v1/session", run: (*call).beginSession, open: true},
	{method: "GET", path: invitationPath, run: (*call).acceptInvitation, invites: true},
	{method: "GET", path: "/jay/v1/session", run: (*call).getSession, open: true},
	{method: "DELETE", path: "/jay/v1/session", run: (*call).endSession, open: true},
	{method: "GET", path: "/jay/v1/server", run: (*call).ownServer, needs: ReadRight},
	{method: "GET", path: "/jay/v1/operations", run: (*call).ownOperations, open: true},
	{method: "GET", path: "/jay/v1/tokens", run: (*call).ownTokens},
	{method: "POST", path: "/jay/v1/tokens", run: (*call).ownMakeToken, body: true},
	{method: "DELETE", path: "/jay/v1/tokens", run: (*call).ownWithdrawToken},

	{method: "GET", path: "/jay/v1/cluster", run: (*call).ownServers, open: true},
	{method: "GET", path: "/topology", run: (*call).topology, named: true, needs: ReadRight},
	{method: "GET", path: "/cluster/topology", run: (*call).clusterTopology, open: true},
	{method: "GET", path: "/cluster/node-info", run: (*call).nodeInfo, open: true},
	{method: "GET", path: "/build/version", run: (*call).buildVersion, open: true},
	{method: "GET", path: "/info/tcp", run: (*call).tcpInfo, open: true},
	{method: "GET", path: "/databases", run: (*call).listDatabases, open: true},
	{method: "GET", path: "/admin/databases", run: (*call).getDatabase, named: true},
	{method: "PUT", path: "/admin/databases", run: (*call).createDatabase, body: true, raft: true, open: true},
	{method: "DELETE", path: "/admin/databases", run: (*call).deleteDatabases, body: true, raft: true, open: true},

	{method: "GET", path: "{D}/docs", run: (*call).getDocuments, lazy: true},
	{method: "POST", path: "{D}/docs", run: (*call).getDocuments, body: true, lazy: true, needs: ReadRight},
	{method: "HEAD", path: "{D}/docs", run: (*call).headDocument},
	{method: "PUT", path: "{D}/docs", run: (*call).putDocument, body: true, params: parseWriteParams},
	{method: "DELETE", path: "{D}/docs", run: (*call).deleteDocument, params: parseWriteParams},
	{method: "POST", path: "{D}/bulk_docs", run: (*call).bulkDocs, body: true, parts: true, once: true},
	{method: "POST", path: "{D}/multi_get", body: true, needs: ReadRight}, // run is set below, as it refers to routes
	{method: "GET", path: "{D}/cmpxchg", run: (*call).getExchanges, agreed: true, lazy: true},
	{method: "PUT", path: "{D}/cmpxchg", run: (*call).putExchange, agreed: true, body: true, once: true, params: parseExchangeParams},
	{method: "DELETE", path: "{D}/cmpxchg", run: (*call).deleteExchange, agreed: true, once: true, params: parseExchangeParams},
	{method: "GET", path: "{D}/hilo/next", run: (*call).hiloNext, needs: WriteRight},
	{method: "PUT", path: "{D}/hilo/return", run: (*call).hiloReturn},
	{method: "POST", path: "{D}/identity/next", run: (*call).identityNext, agreed: true, once: true},
	{method: "POST", path: "{D}/identity/seed", run: (*call).identitySeed, agreed: true, once: true},
	{method: "GET", path: "{D}/debug/identities", run: (*call).identities, agreed: true},
	{method: "GET", path: "{D}/stats", run: (*call).stats, lazy: true},
	{method: "GET", path: "{D}/collections/stats", run: (*call).collectionStats, lazy: true},
	{method: "GET", path: "{D}/healthcheck", run: (*call).healthcheck},
	{method: "GET", path: "{D}/configuration/client", run: (*call).clientConfiguration},
	{method: "PUT", path: "{D}/admin/configuration/client", run: (*call).putClientConfiguration, body: true, raft: true},
	{method: "GET", path: "{D}/info/tcp", run: (*call).tcpInfo},

	{method: "POST", path: "{D}/queries", run: (*call).query, body: true, lazy: true, needs: ReadRight},
	{method: "GET", path: "{D}/queries", run: (*call).query, lazy: true},
	{method: "GET", path: "{D}/streams/docs", run: (*call).streamDocuments, stream: true},
	{method: "GET", path: "{D}/streams/queries", run: (*call).streamQuery, stream: true},
	{method: "POST", path: "{D}/streams/queries", run: (*call).streamQuery, body: true, stream: true, needs: ReadRight},

	{method: "POST", path: "{J}/query", run: (*call).ownPage, body: true, needs: ReadRight},
	{method: "POST", path: "{J}/explain", run: (*call).ownExplain, body: true, needs: ReadRight},
	{method: "GET", path: "{J}/collections", run: (*call).ownCollections},
	{method: "GET", path: "{J}/indexes", run: (*call).ownIndexes},
	{method: "PUT", path: "{J}/indexes", run: (*call).ownPutIndex, body: true, needs: AdminRight},
	{method: "DELETE", path: "{J}/indexes", run: (*call).ownDropIndex, needs: AdminRight},
	{method: "POST", path: "{J}/collections/rename", run: (*call).ownRenameCollection, body: true, needs: AdminRight},
	{method: "DELETE", path: "{J}/collections", run: (*call).ownDropCollection, needs: AdminRight},
	{method: "POST", path: "{J}/preview", run: (*call).ownPreview, body: true, needs: ReadRight},
	{method: "GET", path: "{J}/ids", run: (*call).ownIDs},
	{method: "GET", path: "{J}/counters", run: (*call).ownCounters},
	{method: "POST", path: "{J}/counters", run: (*call).ownRaiseCounters, body: true, needs: AdminRight},
	{method: "GET", path: "{J}/settings", run: (*call).ownSettings},
	{method: "GET", path: "{J}/figures", run: (*call).ownFigures},
	{method: "GET", path: "{J}/disk", run: (*call).ownDisk},
	{method: "GET", path: "{J}/stats", run: (*call).ownStats},
	{method: "GET", path: "{J}/documents", run: (*call).ownDocuments},
	{method: "GET", path: "{J}/rows", run: (*call).ownRows},
	{method: "POST", path: "{J}/documents", run: (*call).ownStore, body: true},
	{method: "GET", path: "{J}/document", run: (*call).ownDocument},
	{method: "GET", path: "{J}/revisions", run: (*call).ownRevisions},
	{method: "GET", path: "{J}/nextid", run: (*call).ownNextID},
	{method: "GET", path: "{J}/fields", run: (*call).ownFields},
	{method: "POST", path: "{J}/export", run: (*call).ownExport, body: true, stream: true, needs: ReadRight},
	{method: "POST", path: "{J}/import", run: (*call).ownImport, stream: true},
	{method: "GET", path: "{J}/import/rejects", run: (*call).ownRejects, needs: WriteRight},
	{method: "GET", path: "{J}/export", run: (*call).ownDownload, stream: true},
	{method: "GET", path: "{J}/backup", run: (*call).ownBackup, stream: true},
	{method: "GET", path: "{J}/cluster", run: (*call).ownNodes, agreed: true},
	{method: "GET", path: "{J}/changes", run: (*call).ownChanges, stream: true},

	{method: "PATCH", path: "{D}/docs", run: (*call).patchDocument, body: true},
	{method: "PATCH", path: "{D}/queries", run: (*call).patchByQuery, body: true},
	{method: "DELETE", path: "{D}/queries", run: (*call).deleteByQuery, body: true},
	{method: "GET", path: "{D}/operations/next-operation-id", run: (*call).nextOperationID},
	{method: "GET", path: "{D}/operations/state", run: (*call).operationState},
	{method: "POST", path: "{D}/operations/kill", run: (*call).killOperation},
	{method: "GET", path: "{D}/operations", run: (*call).listOperations},
	{method: "GET", path: "/operations/state", run: (*call).operationState},
	{method: "POST", path: "/operations/kill", run: (*call).killOperation},
	{method: "POST", path: "/admin/compact", run: (*call).compact, body: true},
	{method: "POST", path: "{D}/bulk_insert", run: (*call).bulkInsert, stream: true},
	{method: "GET", path: "{D}/changes", run: (*call).changes, socket: true},

	{method: "GET", path: "{D}/attachments", run: (*call).getAttachment, stream: true},
	{method: "POST", path: "{D}/attachments", run: (*call).getAttachment, body: true, stream: true, needs: ReadRight},
	{method: "HEAD", path: "{D}/attachments", run: (*call).headAttachment},
	{method: "PUT", path: "{D}/attachments", run: (*call).putAttachment, stream: true},
	{method: "DELETE", path: "{D}/attachments", run: (*call).deleteAttachment},
	{method: "POST", path: "{D}/attachments/bulk", run: (*call).bulkAttachments, body: true, stream: true, needs: ReadRight},
	{method: "GET", path: "{D}/revisions", run: (*call).getRevisions, lazy: true},
	{method: "GET", path: "{D}/revisions/count", run: (*call).revisionsCount},
	{method: "GET", path: "{D}/revisions/config", run: (*call).revisionsConfig},
	{method: "POST", path: "{D}/admin/revisions/config", run: (*call).putRevisionsConfig, body: true, raft: true},
	{method: "POST", path: "{D}/admin/revisions/config/enforce", run: (*call).enforceRevisions, body: true},
	{method: "POST", path: "{D}/admin/revisions/delete", run: (*call).deleteRevisions, body: true},
	{method: "POST", path: "{D}/revisions/revert/docs", run: (*call).revertRevisions, body: true},
	{method: "GET", path: "{D}/expiration/config", run: (*call).expirationConfig},
	{method: "POST", path: "{D}/admin/expiration/config", run: (*call).putExpirationConfig, body: true, raft: true},
	{method: "GET", path: "{D}/refresh/config", run: (*call).refreshConfig},
	{method: "POST", path: "{D}/admin/refresh/config", run: (*call).putRefreshConfig, body: true, raft: true},

	{method: "GET", path: "{D}/indexes", run: (*call).getIndexes},
	{method: "PUT", path: "{D}/indexes", run: (*call).putIndexes, body: true, raft: true, needs: AdminRight},
	{method: "PUT", path: "{D}/admin/indexes", run: (*call).putIndexes, body: true, raft: true},
	{method: "DELETE", path: "{D}/indexes", run: (*call).deleteIndex, raft: true, needs: AdminRight},
	{method: "RESET", path: "{D}/indexes", run: (*call).resetIndex, needs: AdminRight},
	{method: "GET", path: "{D}/indexes/stats", run: (*call).indexesStats},
	{method: "GET", path: "{D}/indexes/status", run: (*call).indexesStatus},
	{method: "GET", path: "{D}/indexes/errors", run: (*call).indexesErrors},
	{method: "POST", path: "{D}/indexes/has-changed", run: (*call).indexHasChanged, body: true, needs: ReadRight},
	{method: "POST", path: "{D}/indexes/set-lock", run: (*call).setIndexLock, body: true, raft: true, needs: AdminRight},
	{method: "POST", path: "{D}/indexes/set-priority", run: (*call).setIndexPriority, body: true, raft: true, needs: AdminRight},
	{method: "POST", path: "{D}/admin/indexes/start", run: (*call).runningIndex},
	{method: "POST", path: "{D}/admin/indexes/enable", run: (*call).runningIndex, raft: true},

	{method: "POST", path: "{D}/admin/indexes/stop", refused: indexesRun},
	{method: "POST", path: "{D}/admin/indexes/disable", refused: indexesRun},
	{method: "GET", path: "{D}/indexes/terms", refused: "the terms of an index are not there; group by the field"},
	{method: "GET", path: "{D}/subscriptions", refused: subscriptions},
	{method: "PUT", path: "{D}/subscriptions", refused: subscriptions},
	{method: "GET", path: "/info/remote-task/tcp", refused: subscriptions},
	{method: "PUT", path: "/admin/configuration/client", refused: "a client configuration for all databases is not there; each database has its own"},
	{method: "GET", path: "{D}/counters", refused: "counters beside documents are not there; keep a number in the document"},
	{method: "POST", path: "{D}/counters", refused: "counters beside documents are not there; keep a number in the document"},
	{method: "GET", path: "{D}/timeseries", refused: "time series are not there; keep documents with a date"},
	{method: "POST", path: "{D}/timeseries", refused: "time series are not there; keep documents with a date"},
}

const (
	indexesRun    = "indexes cannot be stopped: each write is in them when it is committed"
	subscriptions = "subscriptions are not there: they need a protocol of their own over TCP"
)

// byPath has the routes by their paths in lower case.
var byPath = make(map[string][]*route)

func init() {
	for _, r := range routes {
		if r.path == "{D}/multi_get" {
			r.run = (*call).multiGet
		}
		if r.params == nil {
			r.params = parseParams
		}
		byPath[strings.ToLower(r.path)] = append(byPath[strings.ToLower(r.path)], r)
	}
}

// findRoute returns the route of a path, which is escaped, and the name of the database
// in it. Paths are compared without regard to case.
func findRoute(method, path string) (r *route, database string, err error) {
	lookup, below := path, "{D}/"
	rest, found := cutPrefixFold(path, "/databases/")
	if !found {
		below = "{J}/"
		rest, found = cutPrefixFold(path, "/jay/v1/databases/")
	}
	if found {
		name, endpoint, found := strings.Cut(rest, "/")
		if !found {
			return nil, "", noRoute(method, path, nil)
		}
		if database, err = url.PathUnescape(name); err != nil {
			return nil, "", badRequest("the URL has an invalid escape in %.100q", name)
		}
		lookup = below + endpoint
	}
	candidates := byPath[strings.ToLower(lookup)]
	i := slices.IndexFunc(candidates, func(r *route) bool { return r.method == method })
	if i < 0 {
		return nil, "", noRoute(method, path, candidates)
	}
	if r = candidates[i]; r.run == nil {
		return nil, "", notSupported("%s %s: %s", method, r.path, r.refused)
	}
	return r, database, nil
}

func cutPrefixFold(s, prefix string) (rest string, found bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// noRoute is the error for an unknown path, or for an unknown method of a path.
func noRoute(method, path string, others []*route) error {
	p := &problem{status: http.StatusBadRequest, kind: typeRoute}
	p.message = badRequest("There is no handler for path: %s %.200s", method, path).message
	if len(others) > 0 {
		var methods []string
		for _, r := range others {
			methods = append(methods, r.method)
		}
		p.headers = map[string]string{"Allow": strings.Join(methods, ", ")}
		p.message += "; the path takes " + strings.Join(methods, ", ")
	}
	return p
}
