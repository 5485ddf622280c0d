package raven

import "github.com/jaydb/jay/server/internal/serve"

// Unheeded are accepted. All others that a route does not take are refused.
// docs/server/protocol.md has the same table.
var Unheeded = []serve.Unheeded{
	{Name: "queryHash", Paths: []string{"{D}/queries", "{D}/streams/queries"}, Reason: "the server reads the query"},
	{Name: "addTimeSeriesNames", Paths: []string{"{D}/queries", "{D}/streams/queries"}, Reason: "there are no time series"},
	{Name: "allowStale", Paths: []string{"{D}/queries"}, Reason: "queries are never stale"},
	{Name: "staleTimeout", Paths: []string{"{D}/queries"}, Reason: "queries are never stale"},
	{Name: "loadHash", Paths: []string{"{D}/docs"}, Reason: "the body has the IDs"},
	{Name: "waitForIndexesTimeout", Paths: []string{"{D}/bulk_docs"}, Reason: "a commit updates the indexes"},
	{Name: "waitForIndexThrow", Paths: []string{"{D}/bulk_docs"}, Reason: "a commit updates the indexes"},
	{Name: "waitForSpecificIndex", Paths: []string{"{D}/bulk_docs"}, Reason: "a commit updates the indexes"},
	{Name: "waitForReplicasTimeout", Paths: []string{"{D}/bulk_docs"}, Reason: "there are no replicas to wait for"},
	{Name: "block", Paths: []string{"{D}/cmpxchg"}, Reason: "a change is done when it is answered"},
	{Name: "clusterWide", Paths: []string{"{D}/admin/indexes/enable"}, Reason: "an index is on one node"},
	{Name: "applicationIdentifier", Paths: []string{"/topology"}, Reason: "the topology is the same for all"},
	{Name: "includePromotables", Paths: []string{"/topology"}, Reason: "there are none"},
	{Name: "private", Paths: []string{"/topology"}, Reason: "a node has one address"},
	{Name: "localUrl", Paths: []string{"/topology"}, Reason: "a node has one address"},
	{Name: "nodeTag", Paths: []string{"{D}/*", "/operations/state", "/operations/kill"}, Reason: "it is of the node that the client asks"},
	{Name: "throttleConnection", Paths: []string{"{D}/changes"}, Reason: "no change is held back"},
	{Name: "failure", Paths: []string{"{D}/stats"}, Reason: "it says why the client asks"},
	{Name: serve.DebugTag, Paths: []string{"/topology", "/cluster/topology", "{D}/stats", "{D}/indexes"}, Reason: "without a value; it says why the client asks, or is the size of a page without its `=`"},
}
