package server_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/server"
)

// amplified has, for each endpoint with a body, the places of its body where a little text
// could make much memory: each text has %s where the repeated values stand. An endpoint
// that is missing here fails the test.
var amplified = map[string][]string{
	"POST /jay/v1/session/ticket":             {`{"Path":"%[3]s"}`, `[%[1]s]`},
	"POST /jay/v1/tokens":                     {`{"rights":{%[2]s}}`, `{"name":"%[3]s"}`, `[%[1]s]`},
	"PUT /admin/databases?name=x":             {`{%[2]s}`, `{"Settings":{%[2]s}}`},
	"DELETE /admin/databases":                 {`{"DatabaseNames":[%[1]s]}`},
	"POST {D}/docs":                           {`{"Ids":[%[1]s]}`, `{"Ids":["%[3]s"]}`},
	"PUT {D}/docs?id=x":                       {`{"a":[%[1]s]}`, `{%[2]s}`, `{"a":"%[3]s"}`},
	"POST {D}/bulk_docs":                      {`{"Commands":[%[1]s]}`, `{"Commands":[{"Type":"BatchPATCH","Ids":[%[1]s]}]}`, `{"Commands":[{"Document":{"a":[%[1]s]}}]}`},
	"POST {D}/multi_get":                      {`{"Requests":[%[1]s]}`, `{"Requests":[{"Headers":{%[2]s}}]}`, `{"Requests":[{"Content":"%[3]s"}]}`, `{"Requeſts":[%[1]s]}`},
	"PUT {D}/cmpxchg?key=x&index=0":           {`{"Object":[%[1]s]}`, `{%[2]s}`},
	"PUT {D}/admin/configuration/client":      {`{%[2]s}`},
	"POST {D}/queries":                        {`{"Query":"from X where a in ($p)","QueryParameters":{"p":[%[1]s]}}`, `{"Query":"from X","QueryParameters":{%[2]s}}`, `{"Query":"from X where a = $p","QueryParameters":{"p":{%[2]s}}}`},
	"DELETE {D}/queries":                      {`{"Query":"from X where a = $p","QueryParameters":{"p":[%[1]s]}}`},
	"PATCH {D}/queries":                       {`{"Query":{"Query":"from X update { }","QueryParameters":{%[2]s}}}`, `{"Query":{"Query":"from X where a = $p update { }","QueryParameters":{"p":[%[1]s]}}}`},
	"POST {D}/streams/queries":                {`{"Query":"from X where a = $p","QueryParameters":{"p":[%[1]s]}}`},
	"POST {J}/query":                          {`{"query":"from X where a = $p","parameters":{"p":[%[1]s]}}`},
	"POST {J}/explain":                        {`{"query":"from X where a = $p","parameters":{"p":[%[1]s]}}`},
	"PUT {J}/indexes/computed":                {`{"index":{"name":"X","maps":[%[1]s]}}`},
	"POST {J}/indexes/computed/preview":       {`{"index":{"name":"X","maps":[%[1]s]}}`, `{"ids":[%[1]s]}`},
	"PUT {J}/schemas/rule?collection=X":       {`{"required":[%[1]s]}`, `{"properties":{%[2]s}}`},
	"POST {J}/schemas/check?collection=X":     {`{"required":[%[1]s]}`, `{"properties":{%[2]s}}`},
	"POST {J}/schemas/validate?collection=X":  {`{"a":[%[1]s]}`, `{%[2]s}`, `{"a":"%[3]s"}`},
	"PUT {J}/indexes":                         {`{"collection":"X","index":{"Fields":[%[1]s]}}`},
	"POST {J}/collections/rename":             {`{"from":[%[1]s]}`},
	"POST {J}/preview":                        {`{"query":"from X where a = $p","delete":true,"parameters":{"p":[%[1]s]}}`, `{"query":"from X update { this.a = $p }","parameters":{"p":[%[1]s]}}`},
	"POST {J}/counters":                       {`{"Identities":{%[2]s}}`},
	"POST {J}/documents?collection=X":         {`{"a":[%[1]s]}`},
	"POST {J}/export":                         {`{"query":"from X where a = $p","format":"csv","parameters":{"p":[%[1]s]}}`},
	"PATCH {D}/docs?id=p":                     {`{"Patch":{"Script":"this.a = 1","Values":{"v":[%[1]s]}}}`, `{"Patch":{"Script":"this.a = 1","Values":{%[2]s}}}`},
	"POST /admin/compact":                     {`{"Indexes":[%[1]s]}`},
	"POST {D}/attachments?id=x&name=a":        {`{"Type":[%[1]s]}`},
	"POST {D}/attachments/bulk":               {`{"Attachments":[%[1]s]}`},
	"POST {D}/admin/revisions/config":         {`{"Collections":{%[2]s}}`},
	"POST {D}/admin/revisions/config/enforce": {`{%[2]s}`},
	"POST {D}/admin/revisions/delete":         {`{"DocumentIds":[%[1]s]}`},
	"POST {D}/revisions/revert/docs":          {`{"IdToChangeVector":{%[2]s}}`},
	"POST {D}/admin/expiration/config":        {`{%[2]s}`},
	"POST {D}/admin/refresh/config":           {`{%[2]s}`},
	"PUT {D}/indexes":                         {`{"Indexes":[%[1]s]}`},
	"PUT {D}/admin/indexes":                   {`{"Indexes":[{"Name":"x","Maps":[%[1]s]}]}`},
	"POST {D}/indexes/has-changed":            {`{"Name":"x","Maps":[%[1]s]}`},
	"POST {D}/indexes/set-lock":               {`{"IndexNames":[%[1]s]}`},
	"POST {D}/indexes/set-priority":           {`{"IndexNames":[%[1]s]}`},
}

// memoryOf returns the bytes that a request allocates, and the most that was paid for at a
// time.
func memoryOf(s *server.Server, method, path, body string) (allocated, paid int64, status int) {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Content-Encoding", "gzip")
	w := &discarded{header: make(http.Header)}
	s.PeakMemory()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.ServeHTTP(w, r)
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc), s.PeakMemory(), w.status
}

// discarded is a reply that takes no memory.
type discarded struct {
	header http.Header
	status int
}

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) WriteHeader(status int)      { d.status = status }
func (d *discarded) Write(b []byte) (int, error) { return io.Discard.Write(b) }

// Ensure that no endpoint makes more memory of a body than was paid for before: for
// arrays of numbers, of objects and of arrays, for many names, long texts and deep levels.
// Everything that is allocated counts, also what is garbage at once: so the bound is a
// multiple of what was paid for.
func TestMemory_EveryRoute(t *testing.T) {
	if jaytest.Allocates {
		t.Skip("this build allocates more")
	}
	h := start(t, func(o *server.Options) { o.Database.MemTableBytes = 64 << 10 })
	h.s.BoundRequests(256<<20, 0)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=p", `{"a":1,"@metadata":{"@collection":"X"}}`)
	const size = 512 << 10
	repeated := func(unit string) string {
		return strings.TrimSuffix(strings.Repeat(unit+",", size/(len(unit)+1)), ",")
	}
	var names strings.Builder
	for i := 0; names.Len() < size; i++ {
		fmt.Fprintf(&names, `,"%x":0`, i)
	}
	lists := []string{repeated("0"), repeated("{}"), repeated(`[""]`), strings.Repeat("[", 9000) + strings.Repeat("]", 9000)}
	members := []string{names.String()[1:], repeated(`"":{}`)}
	text := strings.Repeat("x", size)

	today, cases := sample.Of(t, 7), 0
	seen := make(map[string]bool)
	for _, route := range server.Routes() {
		if !route.Body || route.Refused != "" {
			continue
		}
		name := route.Method + " " + route.Path
		for _, key := range slices.Sorted(maps.Keys(amplified)) {
			bodies := amplified[key]
			if key != name && !strings.HasPrefix(key, name+"?") {
				continue
			}
			seen[name] = true
			path := strings.NewReplacer("{D}", "/databases/a", "{J}", "/jay/v1/databases/a").Replace(strings.TrimPrefix(key, route.Method+" "))
			for _, body := range bodies {
				var variants []string
				switch {
				case strings.Contains(body, "%[1]s"):
					for _, list := range lists {
						variants = append(variants, strings.Replace(body, "%[1]s", list, 1))
					}
				case strings.Contains(body, "%[2]s"):
					for _, list := range members {
						variants = append(variants, strings.Replace(body, "%[2]s", list, 1))
					}
				default:
					variants = append(variants, strings.Replace(body, "%[3]s", text, 1))
				}
				for i, variant := range variants {
					if cases++; !today.Has(cases) {
						continue
					}
					h.idle() // operations in the background allocate, too
					allocated, paid, status := memoryOf(h.s, route.Method, path, pack(t, variant))
					if most := 6*paid + 8<<20; allocated > most {
						t.Errorf("%s %s, variant %d: %d bytes in %d were allocated, and only %d were paid for (status %d)", route.Method, body, i, allocated, len(variant), paid, status)
					}
				}
			}
		}
		if !seen[name] {
			t.Errorf("%s has a body, and no row in this test", name)
		}
	}
	if _, taken := h.s.CheckLoad(); taken != 0 {
		t.Errorf("%d bytes are left", taken)
	}
}
