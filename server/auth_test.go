package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// guarded starts a server that needs credentials, with a token of each right in the
// database a. The database b is there, too.
func guarded(t *testing.T, change ...func(o *server.Options)) (h *host, tokens map[string]string, now *clock) {
	t.Helper()
	now, tokens = newClock(), make(map[string]string)
	dir := t.TempDir()
	for name, rights := range map[string]server.Rights{
		"root": {"*": server.AdminRight}, "reader": {"a": server.ReadRight}, "writer": {"A": server.WriteRight}, "admin": {"a": server.AdminRight, "new": server.AdminRight},
	} {
		var err error
		if tokens[name], err = server.AccessOf(dir).CreateToken(name, rights, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	h = startIn(t, dir, append(change, func(o *server.Options) { o.Authenticate, o.Now = true, now.Now })...)
	for _, name := range []string{"a", "b"} {
		h.want(201, "PUT", "/admin/databases?name="+name, `{}`, "Authorization", "Bearer "+tokens["root"])
	}
	return h, tokens, now
}

// Ensure that each right allows what it should and nothing more, for every endpoint.
func TestAuth_Rights(t *testing.T) {
	t.Parallel()
	h, tokens, _ := guarded(t)
	for _, test := range []struct {
		method, path, body string
		least              string // of reader, writer, admin, root; "any" for each token
	}{
		{"GET", "/databases/a/docs?id=x", "", "reader"},
		{"HEAD", "/databases/a/docs?id=x", "", "reader"},
		{"POST", "/databases/a/docs", `{"Ids":["x"]}`, "reader"},
		{"POST", "/databases/a/queries", `{"Query":"from Users"}`, "reader"},
		{"POST", "/databases/a/streams/queries", `{"Query":"from Users"}`, "reader"},
		{"GET", "/databases/a/streams/docs", "", "reader"},
		{"POST", "/databases/a/multi_get", `{"Requests":[]}`, "reader"},
		{"GET", "/databases/A/stats", "", "reader"},
		{"GET", "/databases/a/cmpxchg", "", "reader"},
		{"GET", "/topology?name=a", "", "reader"},
		{"PUT", "/databases/a/docs?id=x", `{}`, "writer"},
		{"DELETE", "/databases/a/docs?id=x", "", "writer"},
		{"POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"DELETE","Id":"x"}]}`, "writer"},
		{"GET", "/databases/a/hilo/next?tag=users", "", "writer"},
		{"PUT", "/databases/a/hilo/return?tag=users&end=32&last=1", "", "writer"},
		{"POST", "/databases/a/identity/next?name=users", "", "writer"},
		{"PUT", "/databases/a/cmpxchg?key=k&index=9", `{"Object":1}`, "writer"},
		{"POST", "/jay/v1/databases/a/query", `{"Query":"from Users"}`, "reader"},
		{"PUT", "/jay/v1/databases/a/indexes", `{}`, "admin"},
		{"DELETE", "/jay/v1/databases/a/indexes?collection=A&name=x", "", "admin"},
		{"GET", "/jay/v1/databases/a/changes?untilCaughtUp=true", "", "reader"},
		{"GET", "/jay/v1/databases/a/live?query=from+As&untilCaughtUp=true", "", "reader"},
		{"GET", "/jay/v1/databases/a/backup?once=true", "", "reader"},
		{"POST", "/jay/v1/databases/a/import", " ", "writer"},
		{"GET", "/jay/v1/databases/a/import/rejects?operation=1", "", "writer"},
		{"GET", "/jay/v1/databases/a/export", "", "reader"},
		{"GET", "/jay/v1/databases/a/figures", "", "reader"},
		{"GET", "/jay/v1/databases/a/settings", "", "reader"},
		{"GET", "/jay/v1/databases/a/disk", "", "reader"},
		{"POST", "/jay/v1/databases/a/preview", `{}`, "reader"},
		{"POST", "/jay/v1/databases/a/counters", `{}`, "admin"},
		{"POST", "/jay/v1/databases/a/collections/rename", `{}`, "admin"},
		{"DELETE", "/jay/v1/databases/a/collections", "", "admin"},
		{"GET", "/jay/v1/server", "", "root"},
		{"GET", "/jay/v1/operations", "", "any"},
		{"GET", "/jay/v1/tokens", "", "root"},
		{"POST", "/jay/v1/tokens", `{}`, "root"},
		{"DELETE", "/jay/v1/tokens?name=none", "", "root"},
		{"GET", "/databases/a/changes", "", "reader"},
		{"GET", "/databases/a/attachments?id=x&name=x", "", "reader"},
		{"POST", "/databases/a/attachments/bulk", `{}`, "reader"},
		{"PUT", "/databases/a/attachments?id=x&name=x", "x", "writer"},
		{"PATCH", "/databases/a/docs?id=x", `{}`, "writer"},
		{"PATCH", "/databases/a/queries", `{}`, "writer"},
		{"DELETE", "/databases/a/queries", `{}`, "writer"},
		{"POST", "/databases/a/bulk_insert?id=1", "[]", "writer"},
		{"GET", "/databases/a/operations", "", "reader"},
		{"POST", "/databases/a/operations/kill?id=1", "", "writer"},
		{"GET", "/operations/state?id=1", "", "root"},
		{"POST", "/admin/compact", `{}`, "root"},
		{"POST", "/databases/a/revisions/revert/docs", `{}`, "writer"},
		{"POST", "/databases/a/admin/revisions/delete", `{}`, "admin"},
		{"POST", "/databases/a/admin/expiration/config", `{}`, "admin"},
		{"PUT", "/databases/a/indexes", `{}`, "admin"},
		{"DELETE", "/databases/a/indexes?name=x", "", "admin"},
		{"RESET", "/databases/a/indexes?name=x", "", "admin"},
		{"POST", "/databases/a/indexes/has-changed", `{}`, "reader"},
		{"POST", "/databases/a/indexes/set-lock", `{}`, "admin"},
		{"POST", "/databases/a/indexes/set-priority", `{}`, "admin"},
		{"PUT", "/databases/a/admin/configuration/client", `{}`, "admin"},
		{"GET", "/admin/databases?name=a", "", "admin"},
		{"PUT", "/admin/databases?name=new", `{}`, "admin"},
		{"PUT", "/admin/databases", `{"DatabaseName":"other"}`, "root"},
		{"DELETE", "/admin/databases", `{"DatabaseNames":["new","b"],"HardDelete":true}`, "root"},
		{"GET", "/databases/b/docs?id=x", "", "root"},
		{"GET", "/databases/none/docs?id=x", "", "root"},
		{"GET", "/topology?name=b", "", "root"},
		{"GET", "/topology", "", "root"},
		{"GET", "/metrics", "", "root"},
		{"GET", "/cluster/topology", "", "any"},
		{"GET", "/cluster/node-info", "", "any"},
		{"GET", "/build/version", "", "any"},
		{"GET", "/info/tcp", "", "any"},
		{"GET", "/databases", "", "any"},
		{"GET", "/jay/v1/session", "", "any"},
	} {
		name := test.method + " " + test.path
		allowed := test.least == "any"
		for _, who := range []string{"reader", "writer", "admin", "root"} {
			allowed = allowed || who == test.least
			a := h.do(test.method, test.path, test.body, "Authorization", "Bearer "+tokens[who])
			if denied := a.status == 401 || a.status == 403; denied == allowed {
				t.Errorf("%s as %s: status %d: %s", name, who, a.status, a.body)
			}
			if a.status == 403 && a.body != "" {
				h.checkProblem(a, 403, "AuthorizationException")
			}
		}
		a := h.do(test.method, test.path, test.body)
		if a.status != 401 || a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s without a token: status %d: %s", name, a.status, a.body)
		}
	}
	equal(t, "health", h.want(200, "GET", "/healthz", "").status, 200)
	equal(t, "names", h.want(200, "GET", "/databases?namesOnly=true", "", "Authorization", "bearer  "+tokens["reader"]).body, `{"Databases":["a"]}`)

	// A database that is not there looks like one without rights.
	hidden := h.want(403, "GET", "/databases/b/stats", "", "Authorization", "Bearer "+tokens["reader"]).body
	missing := h.want(403, "GET", "/databases/c/stats", "", "Authorization", "Bearer "+tokens["reader"]).body
	equal(t, "hidden", strings.ReplaceAll(hidden, "/b/", "/c/"), missing)
}

// Ensure that every endpoint without a right of its own needs one, so that a new one is not
// open by mistake.
func TestAuth_EveryRoute(t *testing.T) {
	t.Parallel()
	h, _, _ := guarded(t)
	for _, r := range server.Routes() {
		if r.Refused != "" || r.Path == "/healthz" || r.Path == "/readyz" {
			continue
		}
		path := strings.NewReplacer("{D}", "/databases/a", "{J}", "/jay/v1/databases/a").Replace(r.Path)
		if a := h.do(r.Method, path, ""); a.status != 401 {
			t.Errorf("%s %s without a token: status %d", r.Method, r.Path, a.status)
		}
	}
}

// Ensure that credentials that are not valid are refused, all in the same way.
func TestAuth_Refused(t *testing.T) {
	t.Parallel()
	h, tokens, now := guarded(t)
	expiring, err := server.AccessOf(h.dir).CreateToken("expiring", server.Rights{"*": server.ReadRight}, now.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	now.advance(2 * time.Second)
	h.want(200, "GET", "/databases", "", "Authorization", "Bearer "+expiring)
	now.advance(time.Hour)
	for _, header := range []string{
		"Bearer", "Bearer ", "Bearer " + tokens["root"][:20], "Bearer " + tokens["root"] + "x", "Basic " + tokens["root"], tokens["root"], "Bearer " + expiring,
		"Bearer " + strings.Repeat("x", 10_000),
	} {
		h.checkProblem(h.do("GET", "/databases", "", "Authorization", header), 401, "AuthorizationException")
	}
	h.checkProblem(h.do("GET", "/databases", "", "Cookie", "jay-session=x"), 401, "AuthorizationException")
	h.checkProblem(h.do("POST", "/databases/a/docs", strings.Repeat("x", 100_000)), 401, "AuthorizationException")

	// The file keeps hashes only.
	text, err := os.ReadFile(filepath.Join(h.dir, "access.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range tokens {
		if strings.Contains(string(text), token) || strings.Contains(string(text), strings.TrimPrefix(token, "jay_")) {
			t.Errorf("the file holds the token of %s", name)
		}
	}
	if info, err := os.Stat(filepath.Join(h.dir, "access.json")); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the file can be read by others: %v, %v", info.Mode(), err)
	}
}

// Ensure that a running server notices what is granted and withdrawn, and goes on with what
// it has if the file is damaged.
func TestAuth_Reload(t *testing.T) {
	t.Parallel()
	h, tokens, now := guarded(t)
	access := server.AccessOf(h.dir)
	h.want(200, "GET", "/databases", "", "Authorization", "Bearer "+tokens["reader"])
	if err := access.Withdraw("READER"); err != nil {
		t.Fatal(err)
	}
	late, err := access.CreateToken("late", server.Rights{"b": server.ReadRight}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	now.advance(2 * time.Second)
	h.want(401, "GET", "/databases", "", "Authorization", "Bearer "+tokens["reader"])
	h.want(200, "GET", "/databases/b/stats", "", "Authorization", "Bearer "+late)

	good, err := os.ReadFile(filepath.Join(h.dir, "access.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "{", `{"version":2,"grants":[]}`, `{"version":1,"grants":[{"rights":{"a":"all"}}]}`} {
		if err := os.WriteFile(filepath.Join(h.dir, "access.json"), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		now.advance(2 * time.Second)
		h.want(200, "GET", "/databases/b/stats", "", "Authorization", "Bearer "+late)
		if _, err := access.List(); err == nil {
			t.Errorf("%q is no error", bad)
		}
		if _, err := access.CreateToken("x", server.Rights{"a": server.ReadRight}, time.Time{}); err == nil {
			t.Errorf("%q was replaced", bad)
		}
	}
	if err := os.WriteFile(filepath.Join(h.dir, "access.json"), good, 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := access.List()
	if err != nil || len(list) != 4 || list[3].Name != "late" {
		t.Errorf("got %v, %v", list, err)
	}
}

// Ensure that sockets and streams end when their sender loses the right to them, or its
// token expires, and that those of others go on.
func TestAuth_StreamsEnd(t *testing.T) {
	t.Parallel()
	h, tokens, now := guarded(t)
	expiring, err := server.AccessOf(h.dir).CreateToken("expiring", server.Rights{"a": server.ReadRight}, now.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	now.advance(2 * time.Second)
	withdrawn, expired, kept := h.listen(tokens["reader"]), h.listen(expiring), h.listen(tokens["writer"])
	var feeds []io.Reader
	for _, path := range []string{"changes", "live?query=from+As"} {
		r, err := http.NewRequest("GET", h.http.URL+"/jay/v1/databases/a/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+tokens["reader"])
		feed, err := h.http.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer feed.Body.Close()
		feeds = append(feeds, feed.Body)
	}
	h.s.EndStreams()
	for _, l := range []*listener{withdrawn, expired, kept} {
		l.command("watch-docs", "null")
	}
	if err := server.AccessOf(h.dir).Withdraw("reader"); err != nil {
		t.Fatal(err)
	}
	now.advance(2 * time.Hour)
	h.s.EndStreams()
	for _, l := range []*listener{withdrawn, expired} {
		if _, err := l.next(); websocket.CloseStatus(err) != websocket.StatusGoingAway {
			t.Errorf("got %v, want the end of the socket", err)
		}
	}
	for _, feed := range feeds {
		_, _ = io.ReadAll(feed) // it ends
	}
	h.want(201, "PUT", "/databases/a/docs?id=x", `{}`, "Authorization", "Bearer "+tokens["root"])
	equal(t, "a socket with the right", kept.want("DocumentChange")["Id"], "x")
}

// Ensure that grants that cannot be are refused, and that one process at a time changes the
// file.
func TestAccess_Refused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	access := server.AccessOf(dir)
	some := server.Rights{"a": server.ReadRight}
	for name, rights := range map[string]server.Rights{"": some, "a b": some, strings.Repeat("n", 129): some, "none": {}, "zero": {"a": server.NoRight}, "beyond": {"a": 9}, "outside": {"../a": server.ReadRight}} {
		if _, err := access.CreateToken(name, rights, time.Time{}); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("%.20q %v: got %v", name, rights, err)
		}
	}
	if _, err := access.CreateToken("one", some, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := access.CreateToken("ONE", some, time.Time{}); !errors.Is(err, jay.ErrExists) {
		t.Errorf("a name twice: got %v", err)
	}
	if err := access.Withdraw("two"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if err := access.AllowSubject("s", "", some); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "access.json.new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := access.Withdraw("one"); !errors.Is(err, jay.ErrLocked) {
		t.Errorf("while another process changes it: got %v", err)
	}
	if list, err := access.List(); err != nil || len(list) != 1 {
		t.Errorf("got %v, %v", list, err)
	}
}

// Ensure that a browser gets a cookie that scripts and other sites cannot use, and that it
// ends with its token, its time or by itself.
func TestAuth_Session(t *testing.T) {
	t.Parallel()
	h, tokens, now := guarded(t)
	login := func(who string) string {
		t.Helper()
		a := h.want(201, "POST", "/jay/v1/session", "", "Authorization", "Bearer "+tokens[who])
		cookie := a.header.Get("Set-Cookie")
		for _, part := range []string{"HttpOnly", "SameSite=Strict", "Path=/"} {
			if !strings.Contains(cookie, part) {
				t.Errorf("the cookie lacks %s: %s", part, cookie)
			}
		}
		if strings.Contains(cookie, tokens[who]) {
			t.Error("the cookie holds the token")
		}
		return h.remember(a)
	}
	cookie := login("writer")
	origin := h.http.URL
	equal(t, "name", h.want(200, "GET", "/jay/v1/session", "", "Cookie", cookie).text(t, "Name"), "writer")
	h.want(404, "GET", "/databases/a/docs?id=x", "", "Cookie", cookie)
	h.want(201, "PUT", "/databases/a/docs?id=x", `{}`, "Cookie", cookie, "Origin", origin)
	h.want(201, "PUT", "/databases/a/docs?id=x", `{}`, "Cookie", cookie, "Sec-Fetch-Site", "same-origin")
	for _, headers := range [][]string{{"Cookie", cookie}, {"Cookie", cookie, "Origin", "https://evil.example"}, {"Cookie", cookie, "Origin", "null"}, {"Cookie", cookie, "Sec-Fetch-Site", "none"}, {"Cookie", cookie, "Sec-Fetch-Site", "same-site"}} {
		h.checkProblem(h.do("PUT", "/databases/a/docs?id=y", `{}`, headers...), 403, "AuthorizationException")
	}
	h.want(404, "GET", "/databases/a/docs?id=y", "", "Cookie", cookie)
	h.want(403, "PUT", "/databases/a/admin/configuration/client", `{}`, "Cookie", cookie, "Origin", origin)

	h.want(204, "DELETE", "/jay/v1/session", "", "Cookie", cookie, "Origin", origin)
	h.want(401, "GET", "/databases", "", "Cookie", cookie)
	cookie = login("writer")
	now.advance(13 * time.Hour)
	h.want(401, "GET", "/databases", "", "Cookie", cookie)
	cookie = login("writer")
	if err := server.AccessOf(h.dir).Withdraw("writer"); err != nil {
		t.Fatal(err)
	}
	now.advance(2 * time.Second)
	h.want(401, "GET", "/databases", "", "Cookie", cookie)
	h.want(401, "POST", "/jay/v1/session", "")
}

// Ensure that a server without authentication has no sessions, and says so.
func TestAuth_None(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.checkProblem(h.do("POST", "/jay/v1/session", ""), 400, "BadRequestException")
	equal(t, "rights", h.want(200, "GET", "/jay/v1/session", "").text(t, "Rights", "*"), "admin")
	h.want(204, "DELETE", "/jay/v1/session", "")
}

// authority signs certificates.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

var serial = big.NewInt(1)

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	pair := a.issue("authority", func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	})
	a.key, a.cert = pair.PrivateKey.(*ecdsa.PrivateKey), pair.Leaf
	return a
}

// issue returns a certificate that a has signed, or one that has signed itself.
func (a *authority) issue(name string, change func(*x509.Certificate)) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"jay.example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(c)
	}
	parent, signer := c, key
	if a.key != nil {
		parent, signer = a.cert, a.key
	}
	raw, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
}

// write writes a certificate and its key to files.
func (a *authority) write(pair tls.Certificate, certificate, key string) {
	a.t.Helper()
	raw, err := x509.MarshalECPrivateKey(pair.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		a.t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, key: {Type: "EC PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
}

// Ensure that a server on an address that others can reach takes TLS and credentials: of a
// token, a certificate by its thumbprint, and one by its name; and that it takes a new
// certificate of its own without a restart.
func TestServe_TLS(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), &clock{now: time.Now()}
	ca, other := newAuthority(t), newAuthority(t)
	certificate, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := ca.issue("first", nil)
	ca.write(first, certificate, key)
	data := filepath.Join(dir, "data")
	access := server.AccessOf(data)
	token, err := access.CreateToken("token", server.Rights{"*": server.AdminRight}, time.Time{})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	pinned, named, stranger, expired := (&authority{t: t}).issue("pinned", nil), ca.issue("named", nil), other.issue("named", nil), ca.issue("named", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	must(access.AllowCertificate("pinned", pinned.Leaf, server.Rights{"a": server.ReadRight}))
	must(access.AllowSubject("named", "named", server.Rights{"a": server.WriteRight}))
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	roots.AddCert(other.cert)
	clients := x509.NewCertPool()
	clients.AddCert(ca.cert)

	s, err := server.Open(server.Options{Data: data, TLSCertificate: certificate, TLSKey: key, ClientCAs: clients, Now: now.Now})
	must(err)
	l, err := net.Listen("tcp", "0.0.0.0:0")
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	address := "127.0.0.1:" + port

	ask := func(host string, pair *tls.Certificate, method, path, body string, headers ...string) (status int, text string, serial *x509.Certificate) {
		t.Helper()
		config := &tls.Config{RootCAs: roots, ServerName: "jay.example"}
		if pair != nil {
			config.Certificates = []tls.Certificate{*pair}
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		r, err := http.NewRequest(method, "https://"+address+path, strings.NewReader(body))
		must(err)
		r.Host = host
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		reply, err := client.Do(r)
		must(err)
		defer reply.Body.Close()
		read, err := io.ReadAll(reply.Body)
		must(err)
		return reply.StatusCode, string(read), reply.TLS.PeerCertificates[0]
	}
	check := func(what string, want int, pair *tls.Certificate, method, path, body string, headers ...string) {
		t.Helper()
		if status, text, _ := ask("jay.example", pair, method, path, body, headers...); status != want {
			t.Errorf("%s: status %d, want %d: %s", what, status, want, text)
		}
	}
	check("create", 201, nil, "PUT", "/admin/databases?name=a", `{}`, "Authorization", "Bearer "+token)
	check("nobody", 401, nil, "GET", "/databases/a/stats", "")
	check("pinned reads", 200, &pinned, "GET", "/databases/a/stats", "")
	check("pinned writes", 403, &pinned, "PUT", "/databases/a/docs?id=x", `{}`)
	check("named writes", 201, &named, "PUT", "/databases/a/docs?id=x", `{}`)
	check("a stranger of the same name", 401, &stranger, "GET", "/databases/a/stats", "")
	check("an expired one", 401, &expired, "GET", "/databases/a/stats", "")
	if status, _, _ := ask("evil.example", nil, "GET", "/databases", "", "Authorization", "Bearer "+token); status != 403 {
		t.Errorf("a host that the certificate does not name: status %d", status)
	}
	if _, text, _ := ask("jay.example", &named, "GET", "/topology?name=a", ""); !strings.Contains(text, `"Url":"https://jay.example"`) {
		t.Errorf("got %s", text)
	}
	_, _, seen := ask("jay.example", nil, "POST", "/jay/v1/session", "", "Authorization", "Bearer "+token)
	equal(t, "certificate", seen.Subject.CommonName, "first")

	// HTTP without TLS gets no answer from the databases.
	if reply, err := http.Get("http://" + address + "/databases"); err == nil {
		if reply.Body.Close(); reply.StatusCode != 400 {
			t.Errorf("without TLS: status %d", reply.StatusCode)
		}
	}

	ca.write(ca.issue("second", nil), certificate, key)
	now.advance(2 * time.Second)
	_, _, seen = ask("jay.example", nil, "GET", "/healthz", "")
	equal(t, "a new certificate", seen.Subject.CommonName, "second")
	must(os.WriteFile(certificate, []byte("damaged"), 0o600))
	now.advance(2 * time.Second)
	_, _, seen = ask("jay.example", nil, "GET", "/healthz", "")
	equal(t, "a damaged certificate", seen.Subject.CommonName, "second")

	cancel()
	must(<-served)
}

// Ensure that a server refuses to listen on an address that others can reach without TLS
// and credentials, unless an option says so.
func TestServe_Address(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	files := t.TempDir()
	certificate, key := filepath.Join(files, "cert.pem"), filepath.Join(files, "key.pem")
	ca.write(ca.issue("x", nil), certificate, key)
	for i, test := range []struct {
		token   bool
		options server.Options
		serves  bool
	}{
		{false, server.Options{}, false},
		{true, server.Options{}, false},
		{false, server.Options{TLSCertificate: certificate, TLSKey: key}, false},
		{true, server.Options{TLSCertificate: certificate, TLSKey: key}, true},
		{true, server.Options{NoEncryption: true}, true},
		{false, server.Options{NoEncryption: true}, false},
		{false, server.Options{AnyoneMayReadAndWrite: true}, true},
		{true, server.Options{TLSCertificate: certificate, TLSKey: filepath.Join(files, "none")}, false},
	} {
		o := test.options
		o.Data = t.TempDir()
		if test.token {
			if _, err := server.AccessOf(o.Data).CreateToken("x", server.Rights{"*": server.ReadRight}, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		s, err := server.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		if test.serves {
			cancel() // it ends at once
		}
		if err := s.Serve(ctx, l); test.serves != (err == nil) || err != nil && !errors.Is(err, jay.ErrOption) {
			t.Errorf("case %d: got %v", i, err)
		}
		cancel()
	}
	for _, o := range []server.Options{{TLSCertificate: certificate}, {TLSKey: key}, {ClientCAs: x509.NewCertPool()}} {
		o.Data = t.TempDir()
		if _, err := server.Open(o); !errors.Is(err, jay.ErrOption) {
			t.Errorf("%+v: got %v", o, err)
		}
	}
	if _, err := server.ReadCertificates(key); !errors.Is(err, jay.ErrOption) {
		t.Errorf("a file without a certificate: got %v", err)
	}
	if all, err := server.ReadCertificates(certificate); err != nil || len(all) != 1 {
		t.Errorf("got %v, %v", all, err)
	}
}
