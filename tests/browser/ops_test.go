package browser_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// Ensure that an index is made by its dialog, that a wrong one says why where it was typed, and that
// it is dropped after a question.
func TestIndexes_CreateDrop(t *testing.T) {
	s := startStudio(t)
	s.putMany("Orders", 300, func(i int) (string, string) { return fmt.Sprintf("orders/%d", i), fmt.Sprintf(`{"Total":%d}`, i) })
	p := s.open("/studio/db/shop/indexes")
	p.see("There are no indexes.")
	p.press("n")
	d := p.in("dialog", "New index")
	d.fill("combobox", "Collection", "Orders")
	d.fill("combobox", "Field", "Total..x")
	p.allow("status of 400")
	p.press("Enter")
	p.see("Total..x") // the reason names it
	d.fill("combobox", "Field", "Total")
	d.choose("combobox", "Order", "descending")
	d.fill("textbox", "Only documents where", "Total > 10")
	d.click("button", "Create")
	p.wait("the index", func() bool {
		return strings.Contains(s.call("GET", "/jay/v1/databases/shop/indexes", "").text, `"fields":["-Total"],"where":"Total \u003e 10"`) || strings.Contains(s.call("GET", "/jay/v1/databases/shop/indexes", "").text, `"fields":["-Total"],"where":"Total > 10"`)
	})
	p.see("ready")
	p.click("button", "Drop *")
	p.in("dialog", "Drop *").click("button", "Drop the index")
	p.see("There are no indexes.")
}

// Ensure that a declaration of a computed index is previewed on a document and on several, digit by digit, before it is declared; that a
// mistake stays beside what was typed; and that the index is listed with its groups, size and errors, asked by its link, and dropped.
func TestIndexes_Computed(t *testing.T) {
	s := startStudio(t)
	s.put("orders/1", "Orders", `{"Customer":"ann","Total":1.10,"N":2}`)
	s.put("orders/2", "Orders", `{"Customer":"ann","Total":9007199254740993,"N":0}`)
	p := s.open("/studio/db/shop/indexes")
	p.see("There are no indexes.")
	p.press("m")
	d := p.in("dialog", "New computed index")
	d.fill("textbox", "Declaration", `{"name":"Orders/ByCustomer"`)
	p.see("expected , or }") // the editor says so first
	d.click("button", "Preview")
	p.see("The declaration is no JSON")
	d.fill("textbox", "Declaration", `{"name":"Orders/ByCustomer","maps":[{"collection":"Orders","select":[{"name":"Who","expression":"Customer"},{"name":"Total"},{"name":"Each","expression":"Total / N"}]}],`+
		`"reduce":{"groupBy":["Who"],"select":[{"name":"Who"},{"name":"Sum","expression":"sum(Total)"},{"name":"Mean","expression":"avg(Eech)"}]}}`)
	p.allow("status of 400")
	p.hide("expected , or }")
	d.click("button", "Create")
	p.see("there is no member") // which names the one that was meant
	d.fill("textbox", "Declaration", `{"name":"Orders/ByCustomer","maps":[{"collection":"Orders","select":[{"name":"Who","expression":"Customer"},{"name":"Total"},{"name":"Each","expression":"Total / N"}]}],`+
		`"reduce":{"groupBy":["Who"],"select":[{"name":"Who"},{"name":"Sum","expression":"sum(Total)"},{"name":"Mean","expression":"avg(Each)"}]}}`)
	d.fill("textbox", "Preview with document", "orders/1")
	d.click("button", "Preview")
	p.see(`{"Who":"ann","Total":1.10,"Each":0.55}`)
	p.see(`{"Who":"ann","Sum":1.1,"Mean":0.55}`)
	d.fill("textbox", "Preview with document", "")
	d.click("button", "Preview")
	p.see(`"Total":9007199254740993`)
	p.see("Total / N fails: /: a division by zero")
	p.see(`"Sum":9007199254740994.1`)
	p.auditEverywhere("preview of a computed index")
	if text := s.call("GET", "/jay/v1/databases/shop/indexes/computed", "").text; strings.Contains(text, "ByCustomer") {
		t.Errorf("a preview has made an index: %s", text)
	}
	d.click("button", "Create")
	p.lacks("dialog", "New computed index")
	p.see("map Orders select")
	p.see("ready")
	p.lacks("button", "Drop computed:*") // its parts are not among the others
	p.auditEverywhere("computed indexes")
	p.click("button", "Errors of Orders/ByCustomer")
	p.in("dialog", "Errors of *").find("link", "orders/2")
	p.press("Escape")
	p.click("link", "Orders/ByCustomer")
	p.see("9007199254740994.1")
	p.back()
	p.click("button", "Drop Orders/ByCustomer")
	p.in("dialog", "Drop *").click("button", "Drop the index")
	p.see("There are no indexes.")
}

// Ensure that an address brings a declaration, as a query suggests one.
func TestIndexes_Suggested(t *testing.T) {
	s := startStudio(t)
	s.put("orders/1", "Orders", `{}`)
	p := s.open("/studio/db/shop/indexes?collection=Orders&fields=Status,-Total")
	p.in("dialog", "New index").click("button", "Create")
	p.wait("the index", func() bool {
		return strings.Contains(s.call("GET", "/jay/v1/databases/shop/indexes", "").text, `"fields":["Status","-Total"]`)
	})
	p.see("Status,-Total")
}

// Ensure that identities are drawn, set, and counted on, with every digit of numbers beyond 2^53.
func TestIDs_Identity(t *testing.T) {
	s := startStudio(t)
	s.want(201, "PUT", "/databases/shop/docs?id=invoices|", `{"@metadata":{"@collection":"Invoices"}}`)
	s.want(201, "PUT", "/databases/shop/docs?id=invoices/special", `{"@metadata":{"@collection":"Specials"}}`)
	p := s.open("/studio/db/shop/ids")
	p.see("Documents of 2 collections have IDs that begin with")
	p.find("image", "Numbers of invoices|: used 1")
	p.click("button", "Set invoices|")
	p.in("dialog", "Set invoices|").fill("textbox", "Last used number", "9007199254740993")
	p.press("Enter")
	p.see("The last used number is 9,007,199,254,740,993.")
	p.find("image", "Numbers of invoices|: used 1, without a document 9,007,199,254,740,992")
	p.click("button", "Next number of invoices|")
	p.see("9,007,199,254,740,994")
	p.wait("the number", func() bool {
		return strings.Contains(s.call("GET", "/databases/shop/debug/identities", "").text, "9007199254740994")
	})

	// The field of the bar chooses prefixes, and the address keeps it.
	p.press("/")
	p.insert("none")
	p.press("Enter")
	p.see("No sequence begins so.")
	p.reload()
	p.see("No sequence begins so.")
}

// Ensure that changes of another client come as they happen, that rows wait behind a pill while one
// looks at them, and that a filter leaves out the others.
func TestChanges_Live(t *testing.T) {
	s := startStudio(t)
	p := s.open("/studio/db/shop/changes")
	p.see("live")
	s.put("orders/<script>alert(1)</script>", "Orders", `{}`)
	p.see("orders/<script>alert(1)</script>")
	s.want(204, "DELETE", "/databases/shop/docs?id="+url.QueryEscape("orders/<script>alert(1)</script>"), "")
	p.see("deleted")

	p.press("p")
	p.see("paused")
	for i := range 3 {
		s.put(fmt.Sprintf("orders/new%d", i), "Orders", `{}`)
	}
	p.see("3 newer")
	p.hide("orders/new1")
	p.click("button", "3 newer")
	p.see("orders/new1")
	p.press("p")
	p.see("live")

	p.fill("textbox", "Prefix", "users/")
	p.press("Enter")
	p.wait("the address", func() bool { return strings.Contains(p.address(), "prefix=users%2F") })
	p.see("live")
	s.put("orders/other", "Orders", `{}`)
	s.put("users/ann", "Users", `{}`)
	p.see("users/ann")
	p.hide("orders/other")
	p.reload()
	p.see("live")
	if got := p.value("textbox", "Prefix"); got != "users/" {
		t.Errorf("the filter is gone: %q", got)
	}
}

// cutter passes connections on to a server, and cuts them.
type cutter struct {
	l net.Listener

	most int64 // bytes that a connection passes on to the server, before it waits for the end; 0 for all

	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

// cut puts a cutter between the browser and the server.
func (s *studio) cut(most int64) (c *cutter, direct *studio) {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	direct = &studio{t: s.t, s: s.s, url: s.url, token: s.token}
	to := strings.TrimPrefix(s.url, "http://")
	c = &cutter{l: l, most: most}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			c.pass(in, to)
		}
	}()
	s.t.Cleanup(func() { l.Close(); c.set(true) })
	s.url = "http://" + l.Addr().String()
	return c, direct
}

func (c *cutter) pass(in net.Conn, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		in.Close()
		return
	}
	out, err := net.Dial("tcp", to)
	if err != nil {
		in.Close()
		return
	}
	c.conns = append(c.conns, in, out)
	go func() {
		if c.most == 0 {
			_, _ = io.Copy(out, in)
			out.Close()
			return
		}
		_, _ = io.CopyN(out, in, c.most) // and no more: what follows waits until the connection ends
	}()
	go func() { _, _ = io.Copy(in, out); in.Close() }()
}

// set cuts all connections and takes no more, or takes them again.
func (c *cutter) set(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
	if down {
		for _, one := range c.conns {
			one.Close()
		}
		c.conns = nil
	}
}

// Ensure that a feed goes on behind the last change when its connection has broken, and misses none.
func TestChanges_Interrupted(t *testing.T) {
	s := startStudio(t)
	c, direct := s.cut(0)
	p := s.open("/studio/db/shop/changes")
	p.allow("net::ERR")
	p.see("live")
	direct.put("orders/before", "Orders", `{}`)
	p.see("orders/before")
	c.set(true)
	p.see("interrupted")
	for i := range 20 {
		direct.put(fmt.Sprintf("orders/meanwhile%d", i), "Orders", `{}`)
	}
	c.set(false)
	p.see("21 seen")
	p.see("live")
	p.see("orders/meanwhile0")
}

// Ensure that a feed which cannot go on says so, and does not pass over what is missing.
func TestChanges_Gone(t *testing.T) {
	s := startStudio(t)
	s.put("orders/0", "Orders", `{}`)
	c, _ := s.cut(0)
	p := s.open("/studio/db/shop/changes")
	p.allow("net::ERR", "status of 410")
	p.see("live")
	c.set(true)
	p.see("interrupted")
	p.eval(`(() => { const real = window.fetch; window.fetch = (path, options) => String(path).includes('/changes') ? Promise.resolve(new Response('{"Message":"gone","reason":"records of deletions up to etag 812 were removed","oldest":"812"}', {status: 410})) : real(path, options); })()`, nil)
	p.see("Changes are missing here.")
	p.see("up to etag 812")
	p.find("button", "Begin again with all documents")
}

// file writes a file for an upload.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Ensure that files are imported one after the other, with what was stored and what was rejected, and
// that no digit changes.
func TestImport_Files(t *testing.T) {
	s := startStudio(t)
	var lines strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&lines, `{"N":9007199254740993,"P":1.10,"@metadata":{"@id":"orders/%d","@collection":"Orders"}}`+"\n", i)
		if i == 1500 {
			lines.WriteString("{\"bad\":1}\n")
		}
	}
	p := s.open("/studio/db/shop/io")
	dir := p.downloads()
	p.upload("#import-files", file(t, "orders.ndjson", lines.String()), file(t, "users.csv", "@id,@collection,Age:number\nusers/1,Users,1.50\n"))
	p.see("3,000 documents")
	p.see("1 rejected")
	p.see("1 document,")
	if got := s.stored("orders/2999"); !strings.Contains(got, `"N":9007199254740993,"P":1.10`) {
		t.Errorf("got %s", got)
	}
	if got := s.stored("users/1"); !strings.Contains(got, `"Age":1.50`) {
		t.Errorf("got %s", got)
	}
	p.click("link", "Download 1 reject")
	if got := p.downloaded(dir, "rejects.ndjson"); got != "{\"bad\":1}\n" {
		t.Errorf("rejects: %q", got)
	}
	p.eval(`document.querySelector('.problems').open = true`, nil)
	p.see("line 1502")
}

// Ensure that an import that is cancelled says what is stored already.
func TestImport_Cancel(t *testing.T) {
	s := startStudio(t)
	_, direct := s.cut(5 << 20) // the rest of the file does not come
	body := strings.Repeat("x", 2000)
	var lines strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&lines, `{"T":%q,"@metadata":{"@id":"orders/%d","@collection":"Orders"}}`+"\n", body, i)
	}
	p := s.open("/studio/db/shop/io")
	p.allow("net::ERR", "status of 500")
	p.upload("#import-files", file(t, "orders.ndjson", lines.String()))
	p.see("2,000 documents")
	p.click("button", "Cancel the import of orders.ndjson")
	p.see("documents are stored already, and stay.")
	p.see("cancelled")
	p.see(grouped(direct, "Orders") + " documents are stored already")
}

// grouped returns how many documents a collection has, as the pages write numbers.
func grouped(s *studio, collection string) string {
	text := s.want(200, "GET", "/databases/shop/collections/stats", "").text
	_, rest, _ := strings.Cut(text, `"`+collection+`":`)
	n := 0
	_, _ = fmt.Sscan(rest, &n)
	out := fmt.Sprint(n)
	for i := len(out) - 3; i > 0; i -= 3 {
		out = out[:i] + "," + out[i:]
	}
	return out
}

// Ensure that an export is a file of the browser, in which no text is a formula unless that
// is asked for.
func TestExport_File(t *testing.T) {
	s := startStudio(t)
	s.put("orders/1", "Orders", `{"N":9007199254740993,"P":1.10}`)
	s.put("orders/=1", "Orders", `{"N":-1,"P":0,"T":"=1+1"}`)
	s.put("users/1", "Users", `{}`)
	p := s.open("/studio/db/shop/io")
	dir := p.downloads()
	p.choose("combobox", "What", "Orders")
	p.choose("combobox", "Format", "CSV")
	p.click("button", "Export")
	p.see("exported")
	if got := p.downloaded(dir, "*.csv"); got != "@id,@collection,N:number,P:number,T\norders/1,Orders,9007199254740993,1.10,\norders/=1,Orders,-1,0,'=1+1\n" {
		t.Errorf("got %q", got)
	}
	p.click("checkbox", "For a spreadsheet*")
	dir = p.downloads()
	p.click("button", "Export")
	if got := p.downloaded(dir, "*.csv"); !strings.Contains(got, "orders/=1,Orders,-1,0,=1+1\n") {
		t.Errorf("as it is: got %q", got)
	}
}

// Ensure that a patch is seen before it is done, stores nothing until it is run, and changes no digit.
func TestPatch_PreviewRun(t *testing.T) {
	s := startStudio(t)
	s.putMany("Orders", 300, func(i int) (string, string) {
		return fmt.Sprintf("orders/%03d", i), fmt.Sprintf(`{"Total":%d,"P":1.10,"N":9007199254740993}`, i)
	})
	p := s.open("/studio/db/shop/patch")
	p.fill("textbox", "Query and script", "from Orders where Total >= 100 update { this.Large = true }")
	p.press("Control+Enter")
	p.see("200 documents would be patched")
	p.see(`"Large": true`)
	p.see(`"N": 9007199254740993`)
	if strings.Contains(s.stored("orders/100"), "Large") {
		t.Fatal("the preview has stored something")
	}
	p.click("button", "Run on 200 documents*")
	p.in("dialog", "Run *").click("button", "Run")
	p.see("200 documents were visited")
	if got := s.stored("orders/100"); !strings.Contains(got, `"P":1.10,"N":9007199254740993`) || !strings.Contains(got, `"Large":true`) {
		t.Errorf("got %s", got)
	}
	if strings.Contains(s.stored("orders/099"), "Large") {
		t.Error("another document was changed")
	}

	// With parameters, whose digits stay.
	p.fill("textbox", "Query and script", "from Orders where Total < $least update { this.Exact = $big }")
	p.fill("textbox", "$least", "1")
	p.fill("textbox", "$big", "9007199254740995")
	p.press("Control+Enter")
	p.see("1 document would be patched")
	p.see(`"Exact": 9007199254740995`)
	p.click("button", "Run on 1 document …")
	p.in("dialog", "Run *").click("button", "Run")
	p.see("1 document was visited")
	if got := s.stored("orders/000"); !strings.Contains(got, `"Exact":9007199254740995`) {
		t.Errorf("got %s", got)
	}

	// An error stands where it happened, and a preview is void when the text changes.
	p.allow("status of 501", "status of 400")
	p.fill("textbox", "Query and script", "from Orders update { this.At = new Date() }")
	p.press("Control+Enter")
	p.see("new Date() of the present time is not there")
	if p.find("button", "Run …").properties["disabled"] != "true" {
		t.Error("a run without a preview is possible")
	}
}

// Ensure that a deletion by query shows what it would delete, and asks.
func TestPatch_Delete(t *testing.T) {
	s := startStudio(t)
	s.putMany("Orders", 20, func(i int) (string, string) { return fmt.Sprintf("orders/%02d", i), fmt.Sprintf(`{"Total":%d}`, i) })
	p := s.open("/studio/db/shop/patch?delete=true")
	p.fill("textbox", "Query and script", "from Orders where Total < 5")
	p.press("Control+Enter")
	p.see("5 documents would be deleted")
	p.click("button", "Delete 5 documents*")
	p.in("dialog", "Delete 5 documents?").click("button", "Delete")
	p.see("5 documents were deleted")
	if s.stored("orders/04") != "" || s.stored("orders/05") == "" {
		t.Error("the wrong documents were deleted")
	}
}

// Ensure that an operation of another client is listed while it runs, and can be cancelled.
func TestOperations_Cancel(t *testing.T) {
	s := startStudio(t)
	s.putMany("Orders", 300, func(i int) (string, string) { return fmt.Sprintf("orders/%03d", i), `{"n":1}` })
	s.want(200, "PATCH", "/databases/shop/queries?maxOpsPerSec=1", `{"Query":{"Query":"from Orders update { this.Slow = true }"}}`)
	p := s.open("/studio/db/shop/operations")
	p.see("under way")
	p.see("from Orders")
	p.click("button", "Cancel: patch by query")
	p.see("cancelled")
	p.lacks("button", "Cancel: patch by query")
}

// Ensure that charts say in words what they draw, and follow what happens.
func TestStatistics_Live(t *testing.T) {
	s := startStudio(t)
	s.put("orders/1", "Orders", `{}`)
	p := s.open("/studio/db/shop/statistics")
	p.find("link", "Orders")
	p.wait("writes in the chart", func() bool {
		s.put("orders/2", "Orders", `{}`)
		var said string
		p.eval(`document.querySelector('.chart-lines desc').textContent`, &said)
		return strings.Contains(said, "writes: now ") && !strings.Contains(said, "most 0.0/s. transactions")
	})
	p.find("image", "On disk: *")
}

// Ensure that the page of statistics shows how the memory is divided, and what is used of each share.
func TestStatistics_Memory(t *testing.T) {
	s := startStudio(t)
	s.put("orders/1", "Orders", `{}`)
	p := s.open("/studio/db/shop/statistics")
	p.find("heading", "Shares of the memory")
	p.find("table", "Shares of the memory")
	for _, share := range []string{"blocks", "write buffers", "documents", "heads", "work", "garbage"} {
		p.find("cell", share)
	}
	var rows [][]string
	p.wait("the shares", func() bool {
		p.eval(`[...document.querySelectorAll('table')].filter((t) => t.caption?.textContent === 'Shares of the memory').flatMap((t) => [...t.tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent)))`, &rows)
		return len(rows) >= 6
	})
	for _, row := range rows {
		if unknown := row[1] == "–"; unknown != (row[0] == "garbage") || row[2] == "0 bytes" {
			t.Errorf("a share is %q", row)
		}
	}
	p.see("The bound of the memory is ")
}

// Ensure that a backup is downloaded, that the page says what it contained, and that it can be
// restored.
func TestBackup_Download(t *testing.T) {
	s := startStudio(t)
	s.put("orders/1", "Orders", `{"N":9007199254740993}`)
	s.put("orders/2", "Orders", `{}`)
	p := s.open("/studio/db/shop/backup")
	dir := p.downloads()
	p.click("button", "Make a backup")
	p.see("2 documents, up to etag 2")
	text := p.downloaded(dir, "shop-*.backup")
	to := filepath.Join(t.TempDir(), "restored")
	if _, err := jay.Restore(t.Context(), to, jay.RestoreOptions{CopyTag: "B"}, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	db, err := jay.Open(to, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	doc, err := db.Get(context.Background(), "orders/1")
	if err != nil || string(doc.Body()) != `{"N":9007199254740993}` {
		t.Errorf("got %v, %v", doc, err)
	}

	// One that follows it has what has changed since.
	s.put("orders/3", "Orders", `{}`)
	p.eval(`document.querySelector('.backup-form select').selectedIndex = 1`, nil)
	p.click("button", "Make a backup")
	p.see("1 document, up to etag 3")
}

// Ensure that a rule of revisions is made and removed.
func TestSettings_Revisions(t *testing.T) {
	s := startStudio(t)
	p := s.open("/studio/db/shop/settings")
	p.see("No revisions are kept.")
	p.click("button", "New rule")
	d := p.in("dialog", "New rule")
	d.fill("textbox", "Collection", "Orders")
	d.fill("textbox", "Keep at least", "10")
	d.fill("textbox", "Keep for", "14")
	d.click("button", "Save")
	p.see("10 of each document for 14 days")
	p.wait("the rule", func() bool {
		return strings.Contains(s.call("GET", "/databases/shop/revisions/config", "").text, `"Orders":{"Disabled":false,"MinimumRevisionsToKeep":10,"MinimumRevisionAgeToKeep":"14.00:00:00"`)
	})
	p.click("button", "Remove the rule of Orders")
	p.in("dialog", "Remove the rule?").click("button", "Remove")
	p.see("No revisions are kept.")
}

// Ensure that a token is made, shown once, works, and is withdrawn; and that a token that may only
// read sees no buttons that change something.
func TestSettings_Tokens(t *testing.T) {
	data := t.TempDir()
	root, err := server.AccessOf(data).CreateToken("root", server.Rights{"*": server.AdminRight}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, func(o *server.Options) { o.Data, o.Authenticate = data, true })
	s.token = root
	s.create("shop")
	s.put("orders/1", "Orders", `{}`)
	p := s.open("/studio/db/shop/settings?part=tokens")
	p.allow("status of 401")
	p.in("dialog", "Sign in").fill("textbox", "Token", root)
	p.press("Enter")
	p.see("root")
	p.click("button", "New token")
	d := p.in("dialog", "New token")
	d.fill("textbox", "Name", "ann")
	d.click("button", "Make it")
	p.see("Copy it now:")
	var token string
	p.eval(`document.querySelector('.secret code').textContent`, &token)
	if a := s.call("GET", "/databases/shop/stats", "", "Authorization", "Bearer "+token); a.status != http.StatusOK {
		t.Errorf("the token does not work: %d %s", a.status, a.text)
	}
	if a := s.call("PUT", "/databases/shop/docs?id=x", "{}", "Authorization", "Bearer "+token); a.status != http.StatusForbidden {
		t.Errorf("the token may write: %d", a.status)
	}
	p.click("button", "I have copied it")
	p.see("shop: read")
	p.hide(token)

	p.click("button", "Withdraw ann")
	p.in("dialog", "Withdraw ann?").click("button", "Withdraw")
	p.see("ann is withdrawn.")
	p.wait("the end of the token", func() bool {
		return s.call("GET", "/databases/shop/stats", "", "Authorization", "Bearer "+token).status == http.StatusUnauthorized
	})
}

// Ensure that a token that may only read is shown nothing that changes something.
func TestOps_ReadOnly(t *testing.T) {
	data := t.TempDir()
	root, err := server.AccessOf(data).CreateToken("root", server.Rights{"*": server.AdminRight}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := server.AccessOf(data).CreateToken("reader", server.Rights{"shop": server.ReadRight}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, func(o *server.Options) { o.Data, o.Authenticate = data, true })
	s.token = root
	s.create("shop")
	s.want(201, "PUT", "/databases/shop/docs?id=invoices|", `{}`)
	s.want(201, "PUT", "/jay/v1/databases/shop/indexes", `{"collection":"Orders","index":{"fields":["n"]}}`)
	p := s.open("/studio/db/shop/indexes")
	p.allow("status of 401")
	p.in("dialog", "Sign in").fill("textbox", "Token", reader)
	p.press("Enter")
	p.see("ready")
	p.lacks("button", "New index")
	p.lacks("button", "Drop *")
	p.visit("/studio/db/shop/ids")
	p.see("invoices|")
	p.lacks("button", "Set *")
	p.visit("/studio/db/shop/io")
	p.see("To import needs the right write")
	p.visit("/studio/db/shop/settings?part=tokens")
	p.see("Tokens are for those who administer the server.")
	p.visit("/studio/db/shop/operations")
	p.lacks("button", "Compact*")
	p.visit("/studio/db/shop/patch")
	p.fill("textbox", "Query and script", "from @all_docs update { this.x = 1 }")
	p.press("Control+Enter")
	p.see("would be patched")
	if p.find("button", "Run on *").properties["disabled"] != "true" {
		t.Error("one who may only read can run a patch")
	}
}

// Ensure that no page is wider than the screen of a telephone.
func TestOps_Narrow(t *testing.T) {
	s := startStudio(t)
	seedOps(s)
	p := s.open("/studio/db/shop/indexes")
	p.viewport(360, 740)
	for _, path := range []string{"indexes", "ids", "changes?from=start", "io", "patch?preview=1&q=from%20Orders%20update%20%7B%20this.x%20%3D%201%20%7D", "statistics", "operations", "backup", "settings", "settings?part=server", "settings?part=tokens", "settings?part=collections"} {
		p.visit("/studio/db/shop/" + path)
		p.wait(path+" to fit", func() bool {
			var wide bool
			p.eval(`document.querySelector('#page').scrollWidth > document.querySelector('#page').clientWidth`, &wide)
			return !wide
		})
	}
}

// seedOps fills the shop with what the pages of operations show.
func seedOps(s *studio) {
	s.putMany("Orders", 1200, func(i int) (string, string) {
		return fmt.Sprintf("orders/%d", i), fmt.Sprintf(`{"Status":%q,"Total":%d.50,"Customer":"customers/%d","Lines":[{"Product":"products/1","Price":1.10}],"Big":9007199254740993}`, []string{"open", "paid", "sent"}[i%3], i%400, i%50)
	})
	for range 30 {
		s.want(201, "PUT", "/databases/shop/docs?id=invoices|", `{"@metadata":{"@collection":"Invoices"}}`)
	}
	for range 5 {
		s.want(201, "POST", "/jay/v1/databases/shop/documents?collection=Customers", `{"Name":"Ann"}`)
	}
	s.want(204, "DELETE", "/databases/shop/docs?id=invoices/7", "")
	s.want(200, "POST", "/databases/shop/identity/seed?name=invoices|&value=40", "")
	s.want(201, "PUT", "/databases/shop/docs?id=orders/special", `{"@metadata":{"@collection":"Specials"}}`)
	s.want(201, "PUT", "/jay/v1/databases/shop/indexes", `{"collection":"Orders","index":{"fields":["Status","-Total"]}}`)
	s.want(201, "PUT", "/jay/v1/databases/shop/indexes", `{"collection":"Orders","index":{"fields":["Customer"],"where":"Status = 'open'"}}`)
	s.want(201, "PUT", "/jay/v1/databases/shop/indexes", `{"collection":"Customers","index":{"fields":["Address.City","Email"],"unique":true,"name":"by mail"}}`)
	s.want(200, "POST", "/databases/shop/admin/revisions/config", `{"Default":null,"Collections":{"Invoices":{"MinimumRevisionsToKeep":10,"MinimumRevisionAgeToKeep":"14.00:00:00"}}}`)
	s.want(200, "PATCH", "/databases/shop/queries", `{"Query":{"Query":"from Orders where Total > 390 update { this.Large = true }"}}`)
	s.want(200, "PATCH", "/databases/shop/queries", `{"Query":{"Query":"from Orders where Total > 390 update { throw 'no' }"}}`)
	s.want(200, "POST", "/admin/compact", `{"DatabaseName":"shop"}`)
}
