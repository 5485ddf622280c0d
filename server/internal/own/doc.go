// Package own has the endpoints of Jay's own API under /jay/v1, beyond RavenDB's protocol:
// queries with cursors, indexes, the report on IDs, figures, imports and exports, and changes
// as events. The studio is built on it. Each endpoint is a function of serve.Call, in a
// file that begins with its routes; routes.go joins them.
package own
