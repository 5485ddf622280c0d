package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/server"
)

// next asks for the number of an operation of a database.
func (h *host) next(db string, headers ...string) string {
	h.t.Helper()
	return h.want(200, "GET", "/databases/"+db+"/operations/next-operation-id", "", headers...).text(h.t, "Id")
}

// await waits for the end of an operation.
func (h *host) await(db, id string) answer {
	h.t.Helper()
	for {
		a := h.want(200, "GET", "/databases/"+db+"/operations/state?id="+id, "")
		if a.text(h.t, "Status") != "InProgress" {
			return a
		}
		time.Sleep(time.Millisecond)
	}
}

// killer calls kill at the end of the first write.
type killer struct {
	kill func()
	once sync.Once
}

func (k *killer) Begin(ctx context.Context, _ *jay.Operation) context.Context { return ctx }

func (k *killer) End(_ context.Context, o *jay.Operation) {
	if o.Verb != "batch" && o.Verb != "put" || k.kill == nil {
		return
	}
	k.once.Do(func() {
		k.kill()
		time.Sleep(50 * time.Millisecond) // net/http may notice the deadline meanwhile
	})
}

// Ensure that the connection of an import that was killed while it stored its last batch takes no
// further requests: every one would be cancelled.
func TestOwn_Import_KilledAtTheEnd(t *testing.T) {
	t.Parallel()
	k := new(killer)
	h := start(t, func(o *server.Options) { o.Database.Observer = k })
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=x", `{}`)
	id := h.operationID()
	k.kill = func() {
		reply, err := http.Post(h.http.URL+"/databases/a/operations/kill?id="+id, "", nil)
		if err != nil {
			t.Errorf("kill: %v", err)
			return
		}
		_ = reply.Body.Close()
		equal(t, "kill", reply.StatusCode, 204)
	}
	h.want(200, "POST", "/jay/v1/databases/a/import?operation="+id, `{"@metadata":{"@id":"i/1"}}`)
	for range 3 {
		h.want(200, "GET", "/databases/a/docs?id=x", "")
	}
}

// Ensure that what an export writes comes back by an import, in every format and packed in
// every way: IDs, collections, and every digit.
func TestOwn_Export_Import(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=users/ann", `{"N":9007199254740993,"P":1.10,"T":"<script>\"é,\n","In":{"X":[1,2.50]},"@metadata":{"@collection":"Users","Note":"x"}}`)
	h.want(201, "PUT", "/databases/a/docs?id=logs|", `{"@metadata":{"@collection":"Logs"}}`)
	i := 0
	for _, format := range []string{"ndjson", "json", "csv", "extjson", "ravendbdump"} {
		for _, compression := range []string{"", "gzip", "zstd"} {
			i++
			copied := fmt.Sprintf("copy%d", i)
			h.create(copied)
			a := h.want(200, "GET", "/jay/v1/databases/a/export?format="+format+"&compression="+compression, "")
			if disposition := a.header.Get("Content-Disposition"); !strings.HasPrefix(disposition, `attachment; filename="a-documents.`) {
				t.Errorf("%s: got %s", format, disposition)
			}
			done := h.want(200, "POST", "/jay/v1/databases/"+copied+"/import?format="+format, a.body)
			equal(t, format+" imported", done.text(t, "documents"), 2)
			got := h.want(200, "GET", "/databases/"+copied+"/docs?id=users/ann", "")
			for _, part := range []string{`"N":9007199254740993`, `"P":1.10`, `"T":"<script>\"é,\n"`, `"In":{"X":[1,2.50]}`, `"@collection":"Users"`, `"Note":"x"`} {
				if !strings.Contains(got.body, part) {
					t.Errorf("%s %s lacks %s: %s", format, compression, part, got.body)
				}
			}
			if format != "csv" && format != "extjson" { // those have no counters
				equal(t, format+" identity", h.want(200, "POST", "/databases/"+copied+"/identity/next?name=logs|", "").text(t, "NewIdentityValue"), 2)
			}
		}
	}
	h.idle()
}

// Ensure that an export is of what was asked for, all as of one moment, and that what makes no
// sense is refused.
func TestOwn_Export_Parts(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for i := range 3 {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=as/%d", i), fmt.Sprintf(`{"n":%d,"@metadata":{"@collection":"As"}}`, i))
	}
	h.want(201, "PUT", "/databases/a/docs?id=b", `{}`)
	lines := func(query string) (ids []string) {
		for line := range strings.Lines(h.want(200, "GET", "/jay/v1/databases/a/export?"+query, "").body) {
			_, rest, _ := strings.Cut(line, `"@id":"`)
			id, _, _ := strings.Cut(rest, `"`)
			ids = append(ids, id)
		}
		return ids
	}
	equal(t, "all", lines(""), "[ as/0 as/1 as/2 b]") // the first line has the counters
	equal(t, "collection", lines("collection=As"), "[as/0 as/1 as/2]")
	equal(t, "prefix", lines("startsWith=as/"), "[as/0 as/1 as/2]")
	equal(t, "ids", lines("id=as/2&id=none&id=b"), "[as/2 b]")
	equal(t, "query", lines("query="+url.QueryEscape("from 'As' where n > $n order by n desc")+"&parameters="+url.QueryEscape(`{"n":0}`)), "[as/2 as/1]")
	equal(t, "nothing", h.want(200, "GET", "/jay/v1/databases/a/export?format=json&collection=None", "").body, "[]\n")
	equal(t, "selected", h.want(200, "GET", "/jay/v1/databases/a/export?query="+url.QueryEscape("from 'As' where n = 2 select n"), "").body, "{\"n\":2}\n")
	for _, bad := range []string{"format=xml", "compression=zip", "delimiter=%22", "delimiter=ab", "query=from", "collection=As&id=b", "query=from+'As'&id=b", "parameters=1&query=from+'As'", "operation=x", "operation=1", "format=ravendbdump&query=from+'As'+select+n"} {
		h.checkProblem(h.do("GET", "/jay/v1/databases/a/export?"+bad, ""), 400, map[bool]string{true: "InvalidQueryException", false: "BadRequestException"}[bad == "query=from"])
	}
	id := h.next("a")
	h.want(200, "GET", "/jay/v1/databases/a/export?operation="+id, "")
	equal(t, "operation", h.await("a", id).text(t, "Result", "documents"), 4)
	h.idle()
}

// Ensure that bad records are kept where that is asked for, say why, and can be fetched, and
// that all others are stored.
func TestOwn_Import_Rejects(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/jay/v1/databases/a/indexes", `{"collection":"As","index":{"fields":["u"],"unique":true}}`)
	id := h.next("a")
	var body strings.Builder
	for i := range 2100 { // more than two batches
		switch i {
		case 7:
			body.WriteString("{\"@metadata\":{\n\"@id\":7}}\n")
		case 1003:
			fmt.Fprintf(&body, `{"u":1,"@metadata":{"@id":"as/%d","@collection":"As"}}`+"\n", i)
		case 2000:
			body.WriteString(`{"u":tru,"@metadata":{"@id":"as/2000"}}` + "\n")
		default:
			fmt.Fprintf(&body, `{"u":%d,"@metadata":{"@id":"as/%d","@collection":"As"}}`+"\n", i, i)
		}
	}
	a := h.want(200, "POST", "/jay/v1/databases/a/import?rejects=3&operation="+id, body.String())
	equal(t, "stored", a.text(t, "documents"), 2097)
	equal(t, "rejected", a.text(t, "rejected"), 3)
	equal(t, "places", a.text(t, "problems", 0, "place")+", "+a.text(t, "problems", 1, "place")+", "+a.text(t, "problems", 2, "place"), "line 8, record 1004 (line 1005), record 2001 (line 2002)") // record 8 has two lines
	state := h.await("a", id)
	equal(t, "operation", state.text(t, "Status")+" "+state.text(t, "Result", "documents")+" "+state.text(t, "Progress", "read"), fmt.Sprintf("Completed 2097 %d", body.Len()))
	kept := h.want(200, "GET", "/jay/v1/databases/a/import/rejects?operation="+id, "")
	equal(t, "rejects", kept.body, "{\"@metadata\":{ \"@id\":7}}\n{\"u\":1,\"@metadata\":{\"@id\":\"as/1003\",\"@collection\":\"As\"}}\n{\"u\":tru,\"@metadata\":{\"@id\":\"as/2000\"}}\n")

	// One more than was asked for ends the import; what was stored stays.
	id = h.next("a")
	a = h.do("POST", "/jay/v1/databases/a/import?rejects=1&operation="+id, `{"@metadata":{"@id":"b"}} {} {"@metadata":{"@id":"c"}} {}`)
	h.checkProblem(a, 413, "RequestTooLargeException")
	equal(t, "stored before", a.text(t, "documents")+a.text(t, "rejected"), "21")
	equal(t, "status", h.await("a", id).text(t, "Status"), "Faulted")
	for _, bad := range []string{"rejects=1", "rejects=10001&operation=" + h.next("a"), "rejects=-1", "format=sqlite", "insert=perhaps", "infer=x", "delimiter=%22&format=csv"} {
		h.checkProblem(h.do("POST", "/jay/v1/databases/a/import?"+bad, "{}"), 400, "BadRequestException")
	}
	h.checkProblem(h.do("GET", "/jay/v1/databases/a/import/rejects?operation=1", ""), 404, "BadRequestException")
}

// Ensure that the rejects that are kept are bounded, and take memory of the server that comes
// back.
func TestOwn_Import_RejectsBounded(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	h := start(t)
	h.create("a")
	_, before := h.s.CheckLoad()
	large := `{"t":"` + strings.Repeat("x", 3<<20) + `"} `
	a := h.do("POST", "/jay/v1/databases/a/import?rejects=10&operation="+h.next("a"), large+large+large)
	h.checkProblem(a, 413, "RequestTooLargeException")
	equal(t, "rejected", a.text(t, "rejected"), 2)
	for range 8 { // the rejects of the first import go
		h.want(200, "POST", "/jay/v1/databases/a/import?rejects=1&operation="+h.next("a"), "{}")
	}
	if _, bytes := h.s.CheckLoad(); bytes-before > 8*(64<<10) {
		t.Errorf("%d bytes are taken", bytes-before)
	}
	h.want(200, "DELETE", "/admin/databases", `{"DatabaseNames":["a"],"HardDelete":true}`)
	if _, bytes := h.s.CheckLoad(); bytes != 0 {
		t.Errorf("%d bytes are taken by rejects of a database that is gone", bytes)
	}
}

// Ensure that documents go where the parameters say, that what belongs to them is stored, and
// that what Jay does not know is refused or counted.
func TestOwn_Import_Places(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	imports := func(query, body string) answer { return h.do("POST", "/jay/v1/databases/a/import?"+query, body) }
	equal(t, "hilo", imports("collection=Users", `[{"n":1},{"n":2}]`).text(t, "documents"), 2)
	h.want(200, "GET", "/databases/a/docs?id=users/1-A", "")
	equal(t, "identity", imports("collection=Users&id=orders|", `{"n":1}`).text(t, "documents"), 1)
	equal(t, "collection", h.want(200, "GET", "/databases/a/docs?id=orders/1", "").text(t, "Results", 0, "@metadata", "@collection"), "Users")
	equal(t, "its own", imports("collection=Users", `{"@metadata":{"@collection":"Others"}}`).text(t, "documents"), 1)
	h.want(200, "GET", "/databases/a/docs?id=others/1-A", "")
	equal(t, "csv", imports("format=csv&collection=Rows&idColumn=k&idPrefix=rows/&delimiter=tab&infer=true", "k\tv\n7\t1.50\n").text(t, "documents"), 1)
	if row := h.want(200, "GET", "/databases/a/docs?id=rows/7", "").body; !strings.Contains(row, `"v":1.50`) {
		t.Errorf("got %s", row)
	}
	h.checkProblem(imports("insert=true", `{"@metadata":{"@id":"rows/7"}}`), 409, "ConcurrencyException")
	h.checkProblem(imports("", `{"@metadata":{"@jay":"attachment"},"version":1}`), 400, "BadRequestException")
	h.checkProblem(imports("", `{"@metadata":"jay revision 1: {}"}`), 400, "BadRequestException")
	h.checkProblem(imports("", `{"@metadata":"jay revision 2: {}"}`), 400, "BadRequestException")
	h.checkProblem(imports("", `[{"@metadata":{"@id":"x"}}] {}`), 400, "BadRequestException")
	h.checkProblem(imports("format=csv", "a,b\n1\n"), 400, "BadRequestException")
	h.checkProblem(imports("format=ravendbdump", "nonsense"), 400, "BadRequestException")
	h.checkProblem(imports("", "\x1f\x8b\x08\x00"), 400, "BadRequestException")
	h.checkProblem(imports("", "\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff"), 400, "BadRequestException")
	dump := `{"BuildVersion":54000,"Docs":[{"@metadata":{"@export-type":"Attachment"},"Hash":"h","Size":5,"Tag":"t"}hello,{"@metadata":{"@id":"d/1","@collection":"Ds","@attachments":[{"Name":"x","Hash":"h","ContentType":"","Size":5}]}}],"Identities":[{"Key":"ds|","Value":"41"}],"CompareExchange":[{"Key":"k","Value":"{\"Object\":7}"}],"Counters":[{},{}]}`
	a := imports("format=ravendbdump", dump)
	equal(t, "left out", a.text(t, "documents")+a.text(t, "attachments")+a.text(t, "leftOut"), "11map[Counters:2]")
	equal(t, "content", h.want(200, "GET", "/databases/a/attachments?id=d/1&name=x", "").body, "hello")
	equal(t, "value", h.want(200, "GET", "/databases/a/cmpxchg?key=k", "").text(t, "Results", 0, "Value", "Object"), 7)
	equal(t, "identity of the dump", h.want(200, "POST", "/databases/a/identity/next?name=ds|", "").text(t, "NewIdentityValue"), 42)
}

// Ensure that an export has the attachments and revisions of what it is of, and none if only
// documents are asked for; and that those of a query have no revisions.
func TestOwn_Export_Belongings(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(200, "POST", "/databases/a/admin/revisions/config", `{"Collections":{"As":{}}}`)
	for i := range 2 {
		h.want(201, "PUT", "/databases/a/docs?id=as/1", fmt.Sprintf(`{"n":%d,"@metadata":{"@collection":"As"}}`, i))
	}
	h.want(201, "PUT", "/databases/a/docs?id=bs/1", `{"@metadata":{"@collection":"Bs"}}`)
	h.want(201, "PUT", "/databases/a/attachments?id=bs/1&name=x&contentType=text/plain", "hello")
	// What an export has: counters, the configuration, revisions, documents, attachments.
	parts := func(query string) string {
		text := h.want(200, "GET", "/jay/v1/databases/a/export?"+query, "").body
		var has strings.Builder
		for i, mark := range []string{`"@jay":"counters"`, `"jay revisions configuration`, `"jay revision 1: `, `"@id":"`, `"@jay":"attachment"`, `"aGVsbG8="`, `"@attachments"`} {
			if n := strings.Count(text, mark); n > 0 {
				fmt.Fprintf(&has, "%c%d", "cfrdabn"[i], n)
			}
		}
		return has.String()
	}
	equal(t, "all", parts(""), "c1f1r1d2a1b1n1")
	equal(t, "array", parts("format=json"), "c1f1r1d2a1b1n1")
	equal(t, "bare", parts("bare=true"), "c1d2")
	equal(t, "collection", parts("collection=As"), "f1r1d1")
	equal(t, "another collection", parts("collection=Bs"), "f1d1a1b1n1")
	equal(t, "prefix", parts("startsWith=bs/"), "d1a1b1n1")
	equal(t, "IDs", parts("id=bs/1&id=as/1"), "d2a1b1n1")
	equal(t, "query", parts("query="+url.QueryEscape("from 'Bs'")), "d1a1b1n1")
	dump := h.want(200, "GET", "/jay/v1/databases/a/export?format=ravendbdump&bare=true", "").body
	if strings.Contains(dump, "RevisionDocuments") || strings.Contains(dump, `"@attachments"`) || strings.Contains(dump, `"Attachment"`) {
		t.Errorf("a bare dump has %s", dump)
	}
	id := h.next("a")
	h.want(200, "GET", "/jay/v1/databases/a/export?format=csv&operation="+id, "")
	equal(t, "left out", h.await("a", id).text(t, "Result", "leftOut"), "map[attachments:1 revisions:1]")
	h.checkProblem(h.do("GET", "/jay/v1/databases/a/export?bare=perhaps", ""), 400, "BadRequestException")
}

// Ensure that settings of a database are imported only for a sender who may change them.
func TestOwn_Import_Settings(t *testing.T) {
	t.Parallel()
	h, tokens, _ := guarded(t)
	const lines = `{"@metadata":"jay revisions configuration 1","default":{}}
{"@metadata":{"@id":"x"}}
{"@metadata":"jay subscription 1","name":"all","query":"from Users","maxFailures":1,"retryDelayNs":1000000000}
`
	imported := func(who string) string {
		return h.want(200, "POST", "/jay/v1/databases/a/import", lines, "Authorization", "Bearer "+tokens[who]).body
	}
	settings := func() string {
		return h.want(200, "GET", "/jay/v1/databases/a/settings", "", "Authorization", "Bearer "+tokens["root"]).text(t, "revisions")
	}
	equal(t, "a writer", imported("writer"), `{"documents":1,"leftOut":{"configuration of revisions":1,"subscriptions":1}}`)
	equal(t, "settings", settings(), "<nil>")
	equal(t, "an admin", imported("admin"), `{"documents":1}`)
	if got := settings(); got == "<nil>" {
		t.Errorf("the configuration is not imported: %s", got)
	}
}

// Ensure that a document that is too large is refused with its place, or rejected, and that
// those behind it are stored then.
func TestOwn_Import_TooLarge(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *server.Options) { o.MaxBodyBytes = 1 << 20 })
	h.create("a")
	lines := `{"@metadata":{"@id":"a"}}` + "\n" + `{"t":"` + strings.Repeat("x", 3<<20) + `","@metadata":{"@id":"b"}}` + "\n" + `{"@metadata":{"@id":"c"}}` + "\n"
	a := h.do("POST", "/jay/v1/databases/a/import", lines)
	h.checkProblem(a, 413, "RequestTooLargeException")
	if message := a.text(t, "Message"); !strings.HasPrefix(message, "line 2: ") || !strings.Contains(message, "at most 1048576 bytes") {
		t.Errorf("got %s", message)
	}
	equal(t, "before it", a.text(t, "documents"), 1)
	id := h.next("a")
	equal(t, "rejected", h.want(200, "POST", "/jay/v1/databases/a/import?rejects=1&operation="+id, lines).text(t, "documents"), 2)
	kept := h.want(200, "GET", "/jay/v1/databases/a/import/rejects?operation="+id, "").body
	equal(t, "kept", len(kept), 3<<20+len(`{"t":"","@metadata":{"@id":"b"}}`)+1)
}

// Ensure that contents of a dump that wait for their document are bounded, and so are their
// hashes.
func TestOwn_Import_Contents(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	content := func(hash string, size int) string {
		return fmt.Sprintf(`{"Docs":[{"@metadata":{"@export-type":"Attachment"},"Hash":"%s","Size":%d,"Tag":"t"}hello]}`, hash, size)
	}
	for name, c := range map[string]struct{ dump, want string }{
		"size": {content("h", 1<<30+1), "at most 1073741824 bytes together"},
		"hash": {content(strings.Repeat("h", 257), 5), "at most 256 bytes"},
		"end":  {content("h", 1<<20), "the dump ends where"},
		"many": {`{"Docs":[{"@metadata":{"@id":"x","@attachments":[` + strings.Repeat("{},", 10_000) + `{}]}}]}`, "a document has at most 10000"},
	} {
		a := h.want(400, "POST", "/jay/v1/databases/a/import?format=ravendbdump", c.dump)
		if !strings.Contains(a.body, c.want) {
			t.Errorf("%s: got %s, want %q", name, a.body, c.want)
		}
	}
	h.idle()
}

// Ensure that a killed import says what it has stored.
func TestOwn_Import_Killed(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	id := h.next("a")
	r, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		request, _ := http.NewRequest("POST", h.http.URL+"/jay/v1/databases/a/import?operation="+id, r)
		if reply, err := h.http.Client().Do(request); err == nil {
			reply.Body.Close()
		}
	}()
	for i := range 1001 { // one more than a batch has
		fmt.Fprintf(w, `{"@metadata":{"@id":"as/%d"}}`+"\n", i)
	}
	for h.do("GET", "/databases/a/docs?id=as/0", "").status != 200 {
		time.Sleep(time.Millisecond)
	}
	h.want(204, "POST", "/databases/a/operations/kill?id="+id, "")
	state := h.await("a", id)
	equal(t, "state", state.text(t, "Status")+" "+state.text(t, "Progress", "documents")+" "+state.text(t, "Result", "documents"), "Canceled 1000 1000")
	w.Close()
	<-ended
	h.idle()
}

// Ensure that a preview shows what a change would do, and does nothing.
func TestOwn_Preview(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for i := range 5 {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=as/%d", i), fmt.Sprintf(`{"n":%d,"p":1.10,"big":9007199254740993,"@metadata":{"@collection":"As"}}`, i))
	}
	before := h.want(200, "GET", "/databases/a/stats", "").text(t, "LastDatabaseEtag")
	preview := func(body string) answer { return h.do("POST", "/jay/v1/databases/a/preview", body) }
	a := preview(`{"query":"from 'As' as a where a.n >= $n update { a.n += 1; if (a.n == 5) { del('as/0'); put('others/1', {}) } }","parameters":{"n":3},"first":2}`)
	equal(t, "total", a.text(t, "total")+a.text(t, "more"), "2false")
	equal(t, "before and after", a.text(t, "documents", 0, "before", "n")+a.text(t, "documents", 0, "after", "n")+a.text(t, "documents", 0, "status"), "34Patched")
	equal(t, "others", a.text(t, "documents", 1, "others"), "[delete as/0 put others/1]")
	if !strings.Contains(a.body, `"p":1.10,"big":9007199254740993`) {
		t.Errorf("digits have changed: %s", a.body)
	}
	a = preview(`{"query":"from 'As' update { if (this.n == 1) throw 'no' }","first":3}`)
	equal(t, "failed", a.text(t, "documents", 0, "status")+a.text(t, "documents", 1, "status")+a.text(t, "more"), "NotModifiedFailedtrue")
	a = preview(`{"query":"from 'As' where n > 1","delete":true}`)
	equal(t, "deleted", a.text(t, "total")+a.text(t, "documents", 0, "status"), "3Deleted")
	equal(t, "etag", h.want(200, "GET", "/databases/a/stats", "").text(t, "LastDatabaseEtag"), before)
	for _, bad := range []string{``, `{}`, `{"query":"from 'As'"}`, `{"query":"from 'As' update { }","delete":true}`, `{"query":"from 'As' select n","delete":true}`, `{"query":"from 'As'","delete":true,"first":0}`, `{"query":"from 'As'","delete":true,"first":101}`} {
		h.checkProblem(preview(bad), 400, "BadRequestException")
	}
	h.idle()
}

// Ensure that the IDs that a script of a preview would put are checked as a Put does, and
// so do not fill the memory.
func TestOwn_Preview_LongIDs(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=as/1", `{"@metadata":{"@collection":"As"}}`)
	a := h.want(200, "POST", "/jay/v1/databases/a/preview", `{"query":"from 'As' update { var s = 'x'.repeat(1000000); for (var i = 0; i < 20; i++) put(s, {}) }"}`)
	equal(t, "status", a.text(t, "documents", 0, "status"), "Failed")
	if len(a.body) > 4096 {
		t.Errorf("the reply has %d bytes", len(a.body))
	}
	a = h.want(200, "POST", "/jay/v1/databases/a/preview", `{"query":"from 'As' update { put('', {}); put('bs/', {}); put('cs|', {}) }"}`)
	equal(t, "generated ones", a.text(t, "documents", 0, "others"), "[put  put bs/ put cs|]")
}

// Ensure that an index can be built as an operation, whose faults come at once.
func TestOwn_Indexes_Background(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for i := range 2 {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=as/%d", i), `{"n":1,"@metadata":{"@collection":"As"}}`)
	}
	a := h.do("PUT", "/jay/v1/databases/a/indexes?background=true", `{"collection":"As","index":{"fields":["n"]}}`)
	state := h.await("a", a.text(t, "OperationId"))
	equal(t, "state", state.text(t, "Status")+state.text(t, "Progress", "documents")+state.text(t, "Progress", "total"), "Completed22")
	h.checkProblem(h.do("PUT", "/jay/v1/databases/a/indexes?background=true", `{"collection":"As","index":{"fields":[]}}`), 400, "BadRequestException")
	h.checkProblem(h.do("PUT", "/jay/v1/databases/a/indexes?background=true", `{"collection":"As","index":{"name":"n","fields":["n"],"unique":true}}`), 400, "BadRequestException")
	for _, q := range []string{"", "?background=true"} { // options are the kind's, and this one has none
		a := h.do("PUT", "/jay/v1/databases/a/indexes"+q, `{"collection":"As","index":{"name":"m","fields":["m"],"options":{"analyzer":"english"}}}`)
		h.checkProblem(a, 400, "BadRequestException")
		if !strings.Contains(a.body, "analyzer") || !strings.Contains(a.body, "the options of the kind are strict") {
			t.Error(a.body)
		}
	}
	a = h.do("PUT", "/jay/v1/databases/a/indexes?background=true", `{"collection":"As","index":{"name":"n","fields":["n"],"where":"n > 0"},"replace":true}`)
	h.await("a", a.text(t, "OperationId"))
	equal(t, "replaced", h.want(200, "GET", "/jay/v1/databases/a/indexes", "").text(t, "indexes", 0, "where"), "n > 0")
	equal(t, "disk", h.want(200, "GET", "/jay/v1/databases/a/disk", "").text(t, "indexes", 0, "name"), "n")

	// Collections.
	h.checkProblem(h.do("POST", "/jay/v1/databases/a/collections/rename", `{"from":"As"}`), 400, "BadRequestException")
	h.checkProblem(h.do("DELETE", "/jay/v1/databases/a/collections", ``), 400, "BadRequestException")
	a = h.want(200, "POST", "/jay/v1/databases/a/collections/rename", `{"from":"As","to":"Bs"}`)
	equal(t, "renamed", h.await("a", a.text(t, "OperationId")).text(t, "Result", "documents"), 2)
	a = h.want(200, "DELETE", "/jay/v1/databases/a/collections?name=Bs", ``)
	equal(t, "dropped", h.await("a", a.text(t, "OperationId")).text(t, "Result", "documents"), 2)

	list := h.want(200, "GET", "/jay/v1/operations?database=A", "")
	equal(t, "list", list.text(t, "operations", 0, "kind")+list.text(t, "operations", 0, "subject")+list.text(t, "operations", 0, "status"), "drop a collectionBsCompleted")
	equal(t, "one", len(h.want(200, "GET", "/jay/v1/operations?id="+a.text(t, "OperationId"), "").json(t, "operations").([]any)), 1)
	equal(t, "none", h.want(200, "GET", "/jay/v1/operations?id=1", "").body, `{"operations":[]}`)
	equal(t, "settings", h.want(200, "GET", "/jay/v1/databases/a/settings", "").body, `{"expiration":null,"refresh":null,"revisions":null}`)
	equal(t, "none of others", len(h.want(200, "GET", "/jay/v1/operations?database=b", "").json(t, "operations").([]any)), 0)
	h.checkProblem(h.do("GET", "/jay/v1/operations?pageSize=0", ""), 400, "BadRequestException")
	h.checkProblem(h.do("GET", "/jay/v1/operations?database=..", ""), 400, "BadRequestException")
}

// Ensure that figures count what is done.
func TestOwn_Figures(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=as/1", `{}`)
	h.want(200, "GET", "/databases/a/docs?id=as/1", "")
	h.want(404, "GET", "/databases/a/docs?id=as/2", "")
	a := h.want(200, "GET", "/jay/v1/databases/a/figures", "")
	byVerb := make(map[string]string)
	for i := range a.json(t, "operations").([]any) {
		sum := 0
		for j := range a.json(t, "operations", i, "under").([]any) {
			n := 0
			_, _ = fmt.Sscan(a.text(t, "operations", i, "under", j), &n)
			sum += n
		}
		byVerb[a.text(t, "operations", i, "verb")] = a.text(t, "operations", i, "count") + a.text(t, "operations", i, "failed") + fmt.Sprint(sum)
	}
	if byVerb["put"] == "" && byVerb["update"] == "" {
		t.Errorf("no write is counted: %v", byVerb)
	}
	for verb, counted := range byVerb {
		if len(counted) != 3 || counted[0] != counted[2] || counted[1] != '0' {
			t.Errorf("%s: got %s", verb, counted)
		}
	}
	equal(t, "stats", a.text(t, "stats", "collections", 0, "documents"), 1)
	s := h.want(200, "GET", "/jay/v1/server", "")
	equal(t, "databases", s.text(t, "databases", "used")+s.text(t, "openDatabases", "used")+s.text(t, "authenticates"), "11false")
}

// Ensure that a token of another database is no place in the changes, and that this is said.
func TestOwn_Changes_Gone(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, name := range []string{"a", "b"} {
		h.create(name)
		h.want(201, "PUT", "/databases/"+name+"/docs?id=users/1", `{}`)
		h.want(201, "PUT", "/databases/"+name+"/docs?id=users/2", `{}`)
	}
	events := h.want(200, "GET", "/jay/v1/databases/a/changes?since=&untilCaughtUp=true&id=users/2", "").body
	equal(t, "of one ID", strings.Count(events, "data:"), 1)
	_, rest, _ := strings.Cut(events, "id: ")
	token, _, _ := strings.Cut(rest, "\n")
	a := h.do("GET", "/jay/v1/databases/b/changes?since="+url.QueryEscape(token), "")
	h.checkProblem(a, 410, "ChangesGoneException")
	if a.text(t, "oldest") == "" || a.text(t, "reason") == "" {
		t.Errorf("got %s", a.body)
	}
}

// Ensure that a feed says where it begins, so that one that breaks before its first change goes on
// without a gap.
func TestOwn_Changes_Positions(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=as/1", `{}`)
	begin := h.want(200, "GET", "/jay/v1/databases/a/changes?positions=true&untilCaughtUp=true", "").body
	token, found := strings.CutPrefix(strings.TrimSuffix(begin, "\n\n"), "id: ")
	if !found || token == "" || strings.Contains(token, "\n") {
		t.Fatalf("got %q", begin)
	}
	h.want(201, "PUT", "/databases/a/docs?id=as/2", `{}`)
	h.want(201, "PUT", "/databases/a/docs?id=bs/1", `{}`)
	events := h.want(200, "GET", "/jay/v1/databases/a/changes?prefix=as/&positions=true&untilCaughtUp=true&since="+url.QueryEscape(token), "").body
	equal(t, "events", strings.Count(events, "data:"), 1)
	equal(t, "ids", strings.Count(events, "id: "), 2) // that of as/2, and the position behind bs/1
}

// Ensure that a token is shown once, counts at once, and is withdrawn at once; and that a server
// which asks for no credentials gives none.
func TestOwn_Tokens(t *testing.T) {
	t.Parallel()
	h, tokens, now := guarded(t)
	root := []string{"Authorization", "Bearer " + tokens["root"]}
	a := h.want(201, "POST", "/jay/v1/tokens", `{"name":"ann","rights":{"a":"read"},"expires":"2030-01-02T00:00:00Z"}`, root...)
	ann := a.text(t, "token")
	equal(t, "stored", a.header.Get("Cache-Control"), "no-store")
	h.want(200, "GET", "/databases/a/stats", "", "Authorization", "Bearer "+ann)
	h.want(403, "PUT", "/databases/a/docs?id=x", "{}", "Authorization", "Bearer "+ann)
	list := h.want(200, "GET", "/jay/v1/tokens", "", root...)
	if strings.Contains(list.body, ann) || strings.Contains(list.body, ann[4:]) {
		t.Error("the list has the token")
	}
	equal(t, "last", list.text(t, "tokens", 4, "name")+list.text(t, "tokens", 4, "rights", "a")+list.text(t, "tokens", 4, "kind"), "annreadtoken")
	for _, bad := range []string{`{}`, `{"name":"x"}`, `{"name":"x","rights":{}}`, `{"name":"x","rights":{"a":"all"}}`, `{"name":"x y","rights":{"a":"read"}}`, `{"name":"x","rights":{"../a":"read"}}`, `{"name":"x","rights":{"a":"read"},"expires":"2020-01-02T00:00:00Z"}`} {
		h.checkProblem(h.do("POST", "/jay/v1/tokens", bad, root...), 400, "BadRequestException")
	}
	h.checkProblem(h.do("POST", "/jay/v1/tokens", `{"name":"ANN","rights":{"a":"read"}}`, root...), 409, "ConcurrencyException")

	// A stream of the token ends with it.
	request, _ := http.NewRequest("GET", h.http.URL+"/jay/v1/databases/a/changes", nil)
	request.Header.Set("Authorization", "Bearer "+ann)
	reply, err := h.http.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	h.want(204, "DELETE", "/jay/v1/tokens?name=Ann", "", root...)
	_, _ = io.ReadAll(reply.Body)
	h.want(401, "GET", "/databases/a/stats", "", "Authorization", "Bearer "+ann)
	h.checkProblem(h.do("DELETE", "/jay/v1/tokens?name=ann", "", root...), 400, "BadRequestException")
	now.advance(time.Hour)

	open := start(t)
	open.checkProblem(open.do("POST", "/jay/v1/tokens", `{"name":"ann","rights":{"*":"admin"}}`), 400, "BadRequestException")
	open.checkProblem(open.do("DELETE", "/jay/v1/tokens?name=ann", ""), 400, "BadRequestException")
	if all, err := server.AccessOf(open.dir).List(); err != nil || len(all) > 0 {
		t.Errorf("got %v, %v", all, err)
	}
}

// Ensure that the list of operations has those of databases that the sender may read.
func TestOwn_Operations_Rights(t *testing.T) {
	t.Parallel()
	h, tokens, _ := guarded(t)
	of := func(name string) []string { return []string{"Authorization", "Bearer " + tokens[name]} }
	for _, db := range []string{"a", "b"} {
		h.want(200, "DELETE", "/databases/"+db+"/queries", `{"Query":"from 'As'"}`, of("root")...)
	}
	h.want(200, "POST", "/admin/compact", `{"DatabaseName":"a"}`, of("root")...)
	equal(t, "root", len(h.want(200, "GET", "/jay/v1/operations", "", of("root")...).json(t, "operations").([]any)), 3)
	equal(t, "root of a", len(h.want(200, "GET", "/jay/v1/operations?database=a", "", of("root")...).json(t, "operations").([]any)), 2)
	a := h.want(200, "GET", "/jay/v1/operations", "", of("reader")...)
	equal(t, "reader", len(a.json(t, "operations").([]any)), 1)
	equal(t, "by", a.text(t, "operations", 0, "by")+" "+a.text(t, "operations", 0, "subject"), "root from 'As'")
}
