package odd_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// The databases that hold the same documents, and the one that requests may do anything to.
const (
	indexed = "indexed"
	plain   = "plain"
	wild    = "wild"
)

// twins are the databases with the same documents.
type twins struct {
	*host
	t *testing.T
	o *odds

	named []declaration // the indexes of the database that has some
	made  []definition
}

// write sends a change to the database with indexes, and if it is done also to the one without.
func (w *twins) write(r func(database string) request) {
	w.t.Helper()
	first, fault := w.send(r(indexed), 0)
	if fault != "" {
		w.t.Fatalf("%s: %s: %d %s", r(indexed), fault, first.status, first.body)
	}
	refusedBy := refusal(first)
	if first.status >= http.StatusBadRequest && strings.Contains(refusedBy.note, "index") {
		return
	}
	second, fault := w.send(r(plain), 0)
	if fault != "" || first.status != second.status {
		w.t.Fatalf("%s: %s: %d %s\nwhere indexed answers %d %s", r(plain), fault, second.status, second.body, first.status, first.body)
	}
	w.settle(first, second)
}

// settle waits for the operations that replies name.
func (w *twins) settle(replies ...reply) {
	w.t.Helper()
	var ends []string
	for i, a := range replies {
		var begun struct{ OperationId int64 }
		if json.Unmarshal([]byte(a.body), &begun) != nil || begun.OperationId == 0 {
			return
		}
		ends = append(ends, w.await([]string{indexed, plain}[i], begun.OperationId))
	}
	if ends[0] != ends[1] {
		w.t.Errorf("an operation ends as %s, and as %s without indexes", ends[0], ends[1])
	}
}

// await returns how an operation ends.
func (w *twins) await(database string, id int64) string {
	w.t.Helper()
	for range 3000 {
		a, fault := w.send(request{method: http.MethodGet, path: fmt.Sprintf("/databases/%s/operations/state?id=%d", database, id)}, 0)
		var state struct {
			Status string
			Result struct{ Total, DocumentsProcessed int64 }
		}
		if err := json.Unmarshal([]byte(a.body), &state); err != nil || fault != "" {
			w.t.Fatalf("operation %d of %s: %s %d %s", id, database, fault, a.status, a.body)
		}
		if state.Status != "InProgress" {
			return fmt.Sprintf("%+v", state)
		}
		time.Sleep(2 * time.Millisecond)
	}
	w.t.Fatalf("operation %d of %s does not end", id, database)
	return ""
}

// put stores a document in both databases.
func (w *twins) put(id, document string) {
	w.t.Helper()
	w.write(func(database string) request {
		return request{method: http.MethodPut, path: "/databases/" + database + "/docs?id=" + url.QueryEscape(id), body: document}
	})
}

// remove deletes a document from both databases.
func (w *twins) remove(id string) {
	w.t.Helper()
	w.write(func(database string) request {
		return request{method: http.MethodDelete, path: "/databases/" + database + "/docs?id=" + url.QueryEscape(id)}
	})
}

var scripts = []string{
	"this.M = (this.M || 0) + 1", "this.B = this.A", "delete this.N", "this.Tags = ['a', 'b', 'a']", "this.A = [[1], [], {}]", "this.N = -this.N", "this.Lines = (this.Lines || []).concat([{ P: 1, Q: 2 }])", "this.At = '2026-03-01T00:00:00Z'", "this['x.y'] = this.O", "this.O = { N: this.M, O: { N: null } }", "this.T = this.T + ' oak'", "this.V = [1, 0.5, 0]", "this[''] = args.x", "this.Ref = 'odd/1'", "for (const k of Object.keys(this)) { if (k.length > 4 && k[0] != '@') delete this[k] }", "this.N = args.x", "put('odd/2', { A: args.x, '@metadata': { '@collection': 'Odd' } })", "del('odd/3')", "throw 'x'", "this.N = 1/0", "this.A = undefined", "this.U = '1'",
}

// change makes a random change.
func (w *twins) change() {
	w.t.Helper()
	o := w.o
	script, value := o.script(), o.value(1)
	patch := fmt.Sprintf(`{"Script":%s,"Values":{"x":%s}}`, quoted(script), value)
	switch n := o.IntN(100); {
	case n < 55:
		w.put(o.id(), o.document())
	case n < 65:
		w.remove(o.id())
	case n < 77:
		id := o.id()
		w.write(func(database string) request {
			return request{method: http.MethodPatch, path: "/databases/" + database + "/docs?id=" + url.QueryEscape(id), body: `{"Patch":` + patch + `}`}
		})
	case n < 88:
		var commands []string
		for range 1 + o.IntN(4) {
			id, err := json.Marshal(o.id())
			if err != nil {
				w.t.Fatal(err)
			}
			switch o.IntN(4) {
			case 0:
				commands = append(commands, fmt.Sprintf(`{"Type":"DELETE","Id":%s,"ChangeVector":null}`, id))
			case 1:
				commands = append(commands, fmt.Sprintf(`{"Type":"PATCH","Id":%s,"ChangeVector":null,"Patch":%s}`, id, patch))
			default:
				commands = append(commands, fmt.Sprintf(`{"Type":"PUT","Id":%s,"ChangeVector":null,"Document":%s}`, id, o.document()))
			}
		}
		w.write(func(database string) request {
			return request{method: http.MethodPost, path: "/databases/" + database + "/bulk_docs", body: `{"Commands":[` + strings.Join(commands, ",") + `]}`}
		})
	case n < 94:
		// One document: an import that is refused keeps what came before.
		document := strings.Replace(o.document(), `"@metadata":{`, `"@metadata":{`+member("@id", `"`+strings.ReplaceAll(o.id(), `"`, "")+`"`)+",", 1)
		w.write(func(database string) request {
			return request{method: http.MethodPost, path: "/jay/v1/databases/" + database + "/import?format=" + "ndjson", body: document}
		})
	default:
		q := &rql{values: make(map[string]string)}
		where := o.condition(q, 2)
		for _, f := range []string{"exists(", "size(", "type(", "moreLikeThis("} {
			if strings.Contains(where, f) {
				where = o.pick("M = 1", "M > 2", "M in (1, 2)", "B = 'b'")
			}
		}
		q.from = "from Odd as d where " + where + " update { " + o.pick("d.M = d.M + 1", "d.B = 'b'", "this.Tags = [d.M]", "delete d.A") + " }"
		method := http.MethodPatch
		if o.chance(20) {
			method, q.from = http.MethodDelete, "from Odd where N > 5 and "+where
		}
		w.write(func(database string) request {
			body := q.body()
			if method == http.MethodPatch {
				body = `{"Query":` + body + `}`
			}
			return request{method: method, path: "/databases/" + database + "/queries", body: body}
		})
	}
}

// documents returns the documents of a database by their IDs, without what differs between databases.
func (h *host) documents(t *testing.T, database string) map[string]string {
	t.Helper()
	a, fault := h.send(request{method: http.MethodGet, path: "/databases/" + database + "/streams/docs?format=jsonl"}, 0)
	if fault != "" || a.status != http.StatusOK {
		t.Fatalf("documents of %s: %s %d %s", database, fault, a.status, a.body)
	}
	found := make(map[string]string)
	for line := range strings.Lines(a.body) {
		var doc struct {
			Metadata struct {
				ID string `json:"@id"`
			} `json:"@metadata"`
		}
		if err := json.Unmarshal([]byte(line), &doc); err != nil {
			t.Fatalf("documents of %s: %v: %s", database, err, line)
		}
		found[doc.Metadata.ID] = stable(strings.TrimSpace(line))
	}
	return found
}

// checkDocuments compares the documents of both databases.
func (w *twins) checkDocuments() {
	w.t.Helper()
	a, b := w.documents(w.t, indexed), w.documents(w.t, plain)
	for id, text := range a {
		if b[id] != text {
			w.t.Fatalf("document %q is %s, and without indexes %s", id, text, b[id])
		}
	}
	if len(a) != len(b) {
		w.t.Fatalf("there are %d documents, and %d without indexes", len(a), len(b))
	}
}
