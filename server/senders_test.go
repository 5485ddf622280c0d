package server_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay/server"
)

// Ensure that who may only read cannot make a backup that is recorded, which would push
// out those of others.
func TestOwn_Backup_Reader(t *testing.T) {
	t.Parallel()
	h, tokens, _ := guarded(t)
	full := h.want(200, "GET", "/jay/v1/databases/a/backup", "", "Authorization", "Bearer "+tokens["writer"])
	if len(full.body) == 0 {
		t.Error("the backup is empty")
	}
	h.checkProblem(h.do("GET", "/jay/v1/databases/a/backup", "", "Authorization", "Bearer "+tokens["reader"]), 403, "AuthorizationException")
	h.checkProblem(h.do("GET", "/jay/v1/databases/a/backup?once=false", "", "Authorization", "Bearer "+tokens["reader"]), 403, "AuthorizationException")
	h.want(200, "GET", "/jay/v1/databases/a/backup?once=true", "", "Authorization", "Bearer "+tokens["reader"])
}

// Ensure that an operation ends when its sender loses the right to it, but not with the
// session of the browser that has begun it.
func TestOperations_EndWithTheirRight(t *testing.T) {
	t.Parallel()
	h, tokens, now := guarded(t)
	root := []string{"Authorization", "Bearer " + tokens["root"]}
	for i := range 3 {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=u/%d", i), `{"@metadata":{"@collection":"U"}}`, root...)
	}
	slow := func(headers ...string) string {
		t.Helper()
		return h.want(200, "PATCH", "/databases/a/queries?maxOpsPerSec=1", `{"Query":"from U update { this.x = 1 }"}`, headers...).text(t, "OperationId")
	}
	status := func(id string) string {
		t.Helper()
		return h.want(200, "GET", "/databases/a/operations/state?id="+id, "", root...).text(t, "Status")
	}
	login := h.want(201, "POST", "/jay/v1/session", "", "Authorization", "Bearer "+tokens["admin"])
	browser := []string{"Cookie", h.remember(login), "Origin", h.http.URL}
	withdrawn, kept := slow("Authorization", "Bearer "+tokens["writer"]), slow(browser...)
	h.want(204, "DELETE", "/jay/v1/session", "", browser...)
	if err := server.AccessOf(h.dir).Withdraw("writer"); err != nil {
		t.Fatal(err)
	}
	now.advance(2 * time.Second)
	h.s.EndStreams()
	await(t, "the end", func() bool { return status(withdrawn) == "Canceled" })
	if got := status(kept); got == "Canceled" || got == "Faulted" {
		t.Errorf("the operation of the session is %s", got)
	}
	h.want(204, "POST", "/databases/a/operations/kill?id="+kept, "", root...)
}

// Ensure that changes by query and patches without a condition do not fail because others
// change the same documents.
func TestByQuery_Contended(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for i := range 20 {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=u/%d", i), `{"n":0,"@metadata":{"@collection":"U"}}`)
	}
	var ids []string
	var all sync.WaitGroup
	for range 8 {
		ids = append(ids, h.want(200, "PATCH", "/databases/a/queries", `{"Query":"from U update { this.n++ }"}`).text(t, "OperationId"))
		all.Go(func() {
			if a := h.do("PATCH", "/databases/a/docs?id=u/7", `{"Patch":{"Script":"this.n++"}}`); a.status != 200 {
				t.Errorf("a patch: %d %s", a.status, a.body)
			}
		})
		all.Go(func() {
			if a := h.do("POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PATCH","Id":"u/7","Patch":{"Script":"this.n++"}}]}`); a.status != 201 {
				t.Errorf("a batch: %d %s", a.status, a.body)
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		await(t, "the end", func() bool {
			a := h.want(200, "GET", "/databases/a/operations/state?id="+id, "")
			if strings.Contains(a.body, "Faulted") {
				t.Fatal(a.body)
			}
			return a.text(t, "Status") == "Completed"
		})
	}
	equal(t, "patches", h.want(200, "GET", "/databases/a/docs?id=u/7", "").text(t, "Results", 0, "n"), 24)
	equal(t, "changes", h.want(200, "GET", "/databases/a/docs?id=u/8", "").text(t, "Results", 0, "n"), 8)
}

// Ensure that the commands of one sender drop no stored replies of another.
func TestResults_OfOneSender(t *testing.T) {
	t.Parallel()
	h, tokens, _ := guarded(t, func(o *server.Options) { o.MaxRememberedResults = 4 })
	put := func(who, id, body string) string {
		t.Helper()
		return h.want(201, "PUT", "/databases/a/indexes?raft-request-id="+id, body, "Authorization", "Bearer "+tokens[who]).body
	}
	const index = `{"Indexes":[{"Name":"i","Maps":["from d in docs.U select new { d.n }"]}]}`
	first := put("root", "one", index)
	for i := range 8 {
		put("admin", fmt.Sprint("many-", i), index)
	}
	h.want(204, "DELETE", "/databases/a/indexes?name=i", "", "Authorization", "Bearer "+tokens["root"])
	equal(t, "the reply", put("root", "one", index), first)
	h.want(404, "GET", "/databases/a/indexes?name=i", "", "Authorization", "Bearer "+tokens["root"])
}

// remember returns the cookie of the session that a reply has begun. Later requests with it
// have the other half of the session, too.
func (h *host) remember(a answer) (cookie string) {
	cookie, _, _ = strings.Cut(a.header.Get("Set-Cookie"), ";")
	h.keys.Store(cookie, a.text(h.t, "Key"))
	return cookie
}

// Ensure that the cookie of a session, which a browser sends to all ports of a host, is of
// no use without the half that the page keeps, and neither is that.
func TestSession_Halves(t *testing.T) {
	t.Parallel()
	h, tokens, now := guarded(t)
	root := []string{"Authorization", "Bearer " + tokens["root"]}
	h.want(201, "PUT", "/databases/a/docs?id=x", `{}`, root...)
	h.want(201, "PUT", "/databases/a/attachments?id=x&name=f", "content", root...)
	login := h.want(201, "POST", "/jay/v1/session", "", root...)
	cookie, key, origin := h.remember(login), login.text(t, "Key"), h.http.URL
	other := h.remember(h.want(201, "POST", "/jay/v1/session", "", root...))
	otherKey, _ := h.keys.Load(other)
	for what, headers := range map[string][]string{
		"the cookie": {"Cookie", cookie, "Jay-Session-Key", "", "Origin", origin}, "the key": {"Jay-Session-Key", key, "Origin", origin},
		"the key of another": {"Cookie", cookie, "Jay-Session-Key", otherKey.(string), "Origin", origin},
	} {
		for _, r := range [][]string{
			{"GET", "/jay/v1/session", ""}, {"GET", "/databases/a/docs?id=x", ""}, {"PUT", "/databases/a/docs?id=x", `{}`}, {"POST", "/jay/v1/tokens", `{"name":"evil","rights":{"*":"admin"}}`},
			{"POST", "/jay/v1/session/ticket", `{"Path":"/databases/a/docs?id=x"}`}, {"DELETE", "/jay/v1/session", ""}, {"GET", "/databases/a/changes", ""}, {"GET", "/jay/v1/databases/a/changes?untilCaughtUp=true", ""},
		} {
			if a := h.do(r[0], r[1], r[2], headers...); a.status != 401 {
				t.Errorf("%s %s with %s alone: status %d %s", r[0], r[1], what, a.status, a.body)
			}
		}
	}
	h.want(200, "GET", "/jay/v1/session", "", "Cookie", cookie)

	// A ticket is for one GET of one URL, with its cookie.
	const path = "/databases/a/attachments?id=x&name=f"
	ticket := func(path string) string {
		t.Helper()
		return h.want(201, "POST", "/jay/v1/session/ticket", `{"Path":"`+path+`"}`, "Cookie", cookie, "Origin", origin).text(t, "Ticket")
	}
	get := func(status int, path, cookie string) answer {
		t.Helper()
		return h.want(status, "GET", path, "", "Cookie", cookie, "Jay-Session-Key", "")
	}
	of := path + "&ticket=" + ticket(path)
	get(401, of, other)
	h.want(401, "GET", of, "")
	equal(t, "content", get(200, of, cookie).body, "content")
	get(401, of, cookie)
	get(401, "/databases/a/docs?id=x&ticket="+ticket(path), cookie)
	h.want(401, "PUT", path+"&ticket="+ticket(path), "x", "Cookie", cookie, "Jay-Session-Key", "", "Origin", origin)
	late := path + "&ticket=" + ticket(path)
	get(200, "/jay/v1/session?ticket="+ticket("/jay/v1/session"), cookie)
	now.advance(2 * time.Minute)
	get(401, late, cookie)
	h.checkProblem(h.do("POST", "/jay/v1/session/ticket", `{"Path":"x"}`, "Cookie", cookie, "Origin", origin), 400, "BadRequestException")
	h.checkProblem(h.do("POST", "/jay/v1/session/ticket", `{"Path":"/x"}`, root...), 400, "BadRequestException")
}

// Ensure that a cookie that another program has read is of no use to the holder of another
// token either: it gets no ticket for the session, and does not end it.
func TestSession_HalfBesideAToken(t *testing.T) {
	t.Parallel()
	h, tokens, _ := guarded(t)
	cookie := h.remember(h.want(201, "POST", "/jay/v1/session", "", "Authorization", "Bearer "+tokens["root"]))
	other := []string{"Authorization", "Bearer " + tokens["reader"], "Cookie", cookie, "Jay-Session-Key", ""}
	h.checkProblem(h.do("POST", "/jay/v1/session/ticket", `{"Path":"/databases/b/docs?id=x"}`, other...), 400, "BadRequestException")
	h.do("DELETE", "/jay/v1/session", "", other...)
	h.want(200, "GET", "/jay/v1/session", "", "Cookie", cookie)
	h.want(204, "DELETE", "/jay/v1/session", "", "Cookie", cookie, "Origin", h.http.URL)
	h.want(401, "GET", "/jay/v1/session", "", "Cookie", cookie)
}

// Ensure that the log shows no ticket, of a download or of an invitation.
func TestLog_NoTickets(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	var mu sync.Mutex
	h, _, _ := guarded(t, func(o *server.Options) {
		o.Logger = slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return text.Write(b)
		}), nil))
	})
	path, err := h.s.Invite(server.ReadRight)
	if err != nil {
		t.Fatal(err)
	}
	_, ticket, _ := strings.Cut(path, "ticket=")
	h.want(403, "GET", path, "", "Host", "evil.example") // it is still good
	h.want(401, "GET", "/databases/a/docs?id=x&ticket="+ticket+"&x=y", "")
	mu.Lock()
	defer mu.Unlock()
	if strings.Contains(text.String(), ticket) || !strings.Contains(text.String(), "ticket=…&x=y") {
		t.Errorf("got %s", text.String())
	}
}

// writerFunc is a function that is an io.Writer.
type writerFunc func(b []byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Ensure that HEAD says the length of what GET replies with, or none.
func TestHead_Length(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=x", `{}`)
	h.want(201, "PUT", "/databases/a/attachments?id=x&name=f", "content")
	for path, want := range map[string]string{"/databases/a/docs?id=x": "", "/databases/a/attachments?id=x&name=f": "7", "/healthz": "15", "/readyz": "18"} {
		a := h.want(200, "HEAD", path, "")
		if got := a.header.Get("Content-Length"); got != want {
			t.Errorf("%s: length %q, want %q", path, got, want)
		}
	}
	equal(t, "health", len(h.want(200, "GET", "/healthz", "").body), 15)
}
