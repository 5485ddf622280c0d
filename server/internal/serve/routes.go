package serve

// Routes lists the endpoints of the server itself, which belong to no dialect.
// docs/server/endpoints.md has the same table.
var Routes = []*Route{
	{Method: "GET", Path: "/healthz", Run: (*Call).healthz, free: true},
	{Method: "HEAD", Path: "/healthz", Run: (*Call).healthz, free: true},
	{Method: "HEAD", Path: "/readyz", Run: (*Call).readyz, free: true},
	{Method: "GET", Path: "/readyz", Run: (*Call).readyz, free: true},
	{Method: "GET", Path: "/metrics", Run: (*Call).getMetrics, Needs: ReadRight},
	{Method: "POST", Path: "/jay/v1/session", Run: (*Call).beginSession, Open: true},
	{Method: "GET", Path: invitationPath, Run: (*Call).acceptInvitation, invites: true, Takes: "ticket"},
	{Method: "GET", Path: "/jay/v1/session", Run: (*Call).getSession, Open: true},
	{Method: "DELETE", Path: "/jay/v1/session", Run: (*Call).endSession, Open: true},
	{Method: "POST", Path: "/jay/v1/session/ticket", Run: (*Call).makeTicket, Open: true, Body: true},
}
