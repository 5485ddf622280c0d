package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/server"
)

// needed has what each endpoint needs: nothing, any valid credentials, or a right, in the
// database of its path or its name, else in all databases.
var needed = map[string][]string{
	"nobody": {
		"GET /healthz", "HEAD /healthz", "HEAD /readyz", "GET /readyz", "GET /jay/v1/invitation",
	},
	"anybody": {
		"POST /jay/v1/session", "GET /jay/v1/session", "DELETE /jay/v1/session", "POST /jay/v1/session/ticket", "GET /jay/v1/operations",
		"GET /jay/v1/cluster", "GET /cluster/topology", "GET /cluster/node-info", "GET /build/version", "GET /info/tcp", "GET /databases",
		"DELETE /admin/databases",
	},
	"read": {
		"GET /metrics", "GET /jay/v1/server", "GET /topology", "GET {D}/docs", "POST {D}/docs", "HEAD {D}/docs", "POST {D}/multi_get", "GET {D}/cmpxchg",
		"GET {D}/debug/identities", "GET {D}/stats", "GET {D}/collections/stats", "GET {D}/healthcheck", "GET {D}/configuration/client", "GET {D}/info/tcp",
		"POST {D}/queries", "GET {D}/queries", "GET {D}/streams/docs", "GET {D}/streams/queries", "POST {D}/streams/queries", "POST {J}/query",
		"POST {J}/explain", "GET {J}/collections", "GET {J}/indexes", "GET {J}/indexes/errors", "GET {J}/indexes/computed", "GET {J}/indexes/computed/errors", "POST {J}/indexes/computed/preview", "GET {J}/schemas", "GET {J}/schemas/rule", "POST {J}/schemas/check", "POST {J}/schemas/validate", "POST {J}/preview", "GET {J}/ids", "GET {J}/counters", "GET {J}/settings",
		"GET {J}/figures", "GET {J}/disk", "GET {J}/stats", "GET {J}/documents", "GET {J}/rows", "GET {J}/document", "GET {J}/revisions", "GET {J}/nextid",
		"GET {J}/fields", "POST {J}/export", "GET {J}/export", "GET {J}/backup", "POST {J}/follow", "GET {J}/standby", "GET {J}/look", "GET {J}/cluster", "GET {J}/changes", "GET {J}/live", "GET {D}/operations/next-operation-id",
		"GET {D}/operations/state", "GET {D}/operations", "GET {D}/changes", "GET {D}/attachments", "POST {D}/attachments", "HEAD {D}/attachments",
		"POST {D}/attachments/bulk", "GET {D}/revisions", "GET {D}/revisions/count", "GET {D}/revisions/config", "GET {D}/expiration/config",
		"GET {D}/refresh/config", "GET {D}/indexes", "GET {D}/indexes/stats", "GET {D}/indexes/status", "GET {D}/indexes/staleness", "GET {D}/indexes/errors", "GET {D}/indexes/terms", "GET {D}/indexes/suggest-index-merge",
		"POST {D}/indexes/has-changed",
	},
	"write": {
		"PUT {D}/docs", "DELETE {D}/docs", "POST {D}/bulk_docs", "PUT {D}/cmpxchg", "DELETE {D}/cmpxchg", "GET {D}/hilo/next", "PUT {D}/hilo/return",
		"POST {D}/identity/next", "POST {D}/identity/seed", "POST {J}/documents", "POST {J}/import", "GET {J}/import/rejects", "PATCH {D}/docs",
		"PATCH {D}/queries", "DELETE {D}/queries", "POST {D}/operations/kill", "POST {D}/bulk_insert", "PUT {D}/attachments", "DELETE {D}/attachments",
		"POST {D}/revisions/revert/docs",
	},
	"admin": {
		"PUT /admin/databases", // of the database that it names, or of all
		"GET /jay/v1/tokens", "POST /jay/v1/tokens", "DELETE /jay/v1/tokens", "GET /admin/databases", "PUT {D}/admin/configuration/client", "PUT {J}/indexes",
		"DELETE {J}/indexes", "PUT {J}/indexes/computed", "DELETE {J}/indexes/computed", "PUT {J}/schemas/rule", "DELETE {J}/schemas/rule", "POST {J}/collections/rename", "DELETE {J}/collections", "POST {J}/counters", "GET /operations/state", "POST /operations/kill",
		"POST /admin/compact", "POST {D}/admin/revisions/config", "POST {D}/admin/revisions/config/enforce", "POST {D}/admin/revisions/delete",
		"POST {D}/admin/expiration/config", "POST {D}/admin/refresh/config", "PUT {D}/indexes", "PUT {D}/admin/indexes", "DELETE {D}/indexes",
		"RESET {D}/indexes", "POST {D}/indexes/set-lock", "POST {D}/indexes/set-priority", "POST {D}/admin/indexes/start", "POST {D}/admin/indexes/enable", "POST {D}/admin/indexes/disable",
	},
}

// Ensure that each endpoint lets in those with the right that it needs, and nobody else:
// without credentials, with some that are not valid any more, with half a session, with a
// right in another database, with a lesser one. An endpoint without a row in needed fails.
func TestAuth_EveryRouteAndSender(t *testing.T) {
	t.Parallel()
	h, tokens, now := guarded(t)
	a := server.AccessOf(h.dir)
	levels := map[string]int{"nobody": -1, "anybody": 0, "read": 1, "write": 2, "admin": 3}
	type sender struct {
		name                  string
		headers               []string
		database, server, any int // its levels; any is -1 if its credentials are not valid
	}
	var senders []sender
	for _, one := range []struct {
		name             string
		rights           server.Rights
		expires          time.Time
		database, server int
	}{
		{"read", server.Rights{"a": server.ReadRight}, time.Time{}, 1, 0}, {"write", server.Rights{"a": server.WriteRight}, time.Time{}, 2, 0},
		{"all-read", server.Rights{"*": server.ReadRight}, time.Time{}, 1, 1}, {"all-write", server.Rights{"*": server.WriteRight}, time.Time{}, 2, 2},
		{"elsewhere", server.Rights{"b": server.AdminRight}, time.Time{}, 0, 0}, {"over", server.Rights{"*": server.AdminRight}, now.Now().Add(time.Minute), -1, -1},
		{"withdrawn", server.Rights{"*": server.AdminRight}, time.Time{}, -1, -1},
	} {
		token, err := a.CreateToken(one.name, one.rights, one.expires)
		if err != nil {
			t.Fatal(err)
		}
		senders = append(senders, sender{one.name, []string{"Authorization", "Bearer " + token}, one.database, one.server, min(one.database, 0)})
	}
	if err := a.Withdraw("withdrawn"); err != nil {
		t.Fatal(err)
	}
	now.advance(time.Hour)
	login := h.want(201, "POST", "/jay/v1/session", "", "Authorization", "Bearer "+tokens["root"])
	cookie, key := h.remember(login), login.text(t, "Key")
	senders = append(senders, sender{"none", nil, -1, -1, -1},
		sender{"half a session", []string{"Cookie", cookie, "Jay-Session-Key", "", "Origin", h.http.URL}, -1, -1, -1}, sender{"the other half", []string{"Jay-Session-Key", key, "Origin", h.http.URL}, -1, -1, -1},
		sender{"admin", []string{"Authorization", "Bearer " + tokens["admin"]}, 3, 0, 0}, sender{"root", []string{"Authorization", "Bearer " + tokens["root"]}, 3, 3, 0})

	rows := make(map[string]string)
	for right, list := range needed {
		for _, name := range list {
			rows[name] = right
		}
	}
	for _, r := range server.Routes() {
		if r.Refused != "" {
			continue
		}
		name := r.Method + " " + r.Path
		right, found := rows[name]
		if !found {
			t.Errorf("%s: no row says what it needs", name)
			continue
		}
		delete(rows, name)
		path := strings.NewReplacer("{D}", "/databases/a", "{J}", "/jay/v1/databases/a").Replace(r.Path)
		switch r.Path {
		case "{J}/changes":
			path += "?untilCaughtUp=true"
		case "{J}/live":
			path += "?query=from+As&untilCaughtUp=true"
		case "{J}/backup":
			path += "?once=true" // one that is recorded needs write: see TestOwn_Backup_Reader
		}
		if right == "nobody" {
			if a := h.do(r.Method, path, ""); a.status == 403 || a.status == 401 && r.Path != "/jay/v1/invitation" {
				t.Errorf("%s without credentials: status %d %s", name, a.status, a.body)
			}
			continue
		}
		for _, s := range senders {
			has := s.database
			if r.Path[0] == '/' {
				has = s.server
			}
			want := 0
			switch {
			case s.any < 0:
				want = 401
			case has < levels[right]:
				want = 403
			}
			a := h.do(r.Method, path, "", s.headers...)
			if got := a.status; want != 0 && got != want || want == 0 && (got == 401 || got == 403) {
				t.Errorf("%s as %s: status %d, want %d (0 is neither 401 nor 403): %s", name, s.name, got, want, a.body)
			}
		}
	}
	for name := range rows {
		t.Errorf("%s is no endpoint", name)
	}
}
