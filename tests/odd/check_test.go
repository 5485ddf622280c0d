package odd_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// query sends a random query to both databases.
func (w *twins) query() *rql {
	w.t.Helper()
	q, way := w.o.query(w.named...), w.o.IntN(len(ways))
	w.check(q, way)
	w.byName(q, way)
	w.alsoStreamed(q)
	w.alsoInParts(q)
	return q
}

// check compares the answers to a query, and shows a small case if they differ.
func (w *twins) check(q *rql, way int) {
	w.t.Helper()
	if fault, _, _ := w.differ(q, way); fault != "" {
		w.shrink(q, func(q *rql) string { f, _, _ := w.differ(q, way); return f }, func(q *rql) string {
			fault, a, b := w.differ(q, way)
			return fmt.Sprintf("%s\n%s: %s\nparameters: %s\nwith indexes: %s\nwithout:      %s", fault, ways[way].name, q.text(), q.parameters(), a, b)
		})
	}
}

// String shows answers.
func (a answers) String() string {
	return fmt.Sprintf("%d %s %s %d rows %s; %s; %s", a.status, a.kind, a.note, len(a.rows), clip(strings.Join(a.rows, " "), 3000), strings.Join(a.rest, " "), clip(strings.Join(a.beside, " "), 1000))
}

// alsoStreamed compares a stream of the answers with a page of all of them.
func (w *twins) alsoStreamed(q *rql) {
	w.t.Helper()
	if !w.o.chance(25) || !q.whole() || q.needsIndex() || q.include != "" {
		return
	}
	a, fault := posted(w.host, q, indexed)
	if fault == "" {
		var b answers
		if b, fault = streamed(w.host, q, indexed); fault == "" && a.status < http.StatusBadRequest && b.status != http.StatusNotImplemented {
			b.rest = a.rest
			if fault = compare(q, a, b); fault != "" {
				fault += fmt.Sprintf("\nas a page:   %s\nas a stream: %s", a, b)
			}
		}
	}
	if fault != "" {
		w.t.Errorf("%s %s: %s", q.text(), q.parameters(), fault)
	}
}

// byName asks the query once more, of indexes by their names: where there are few documents, a scan often is the best
// plan.
func (w *twins) byName(q *rql, way int) {
	w.t.Helper()
	if len(w.named) == 0 || !strings.HasPrefix(q.from, "from Odd") || q.needsIndex() {
		return
	}
	text, tried := q.text(), 0
	for _, i := range w.o.Perm(len(w.named)) {
		d := w.named[i]
		if f := strings.TrimPrefix(d.Fields[0], "-"); d.Kind == "" && !strings.Contains(text, f) {
			continue
		}
		if tried++; tried > 4 {
			return
		}
		c := *q
		c.use = d.Name
		a, fault := ways[way].ask(w.host, &c, indexed)
		if fault == "" && a.status == http.StatusBadRequest && strings.Contains(a.note, "no index serves") {
			continue
		}
		w.check(&c, way)
	}
}

// differ returns how the answers to a query differ, or the fault of one of them.
func (w *twins) differ(q *rql, way int) (fault string, a, b answers) {
	a, fault = ways[way].ask(w.host, q, indexed)
	if fault != "" {
		return "with indexes: " + fault, a, b
	}
	without := *q
	without.use = ""
	b, fault = ways[way].ask(w.host, &without, plain)
	if fault != "" {
		return "without indexes: " + fault, a, b
	}
	return compare(q, a, b), a, b
}

// shrink looks for a smaller query and for fewer documents with the same fault, and reports it. It deletes the documents
// that do not matter, so the round ends with it.
func (w *twins) shrink(q *rql, fails func(q *rql) string, describe func(q *rql) string) {
	w.t.Helper()
	first := describe(q)
	for again := true; again; {
		again = false
		for _, smaller := range q.smaller() {
			if fails(smaller) != "" {
				q, again = smaller, true
				break
			}
		}
	}
	docs := w.documents(w.t, indexed)
	ids := sorted(keys(docs))
	for size := max(1, len(ids)/2); ; size /= 2 {
		for i := 0; i < len(ids); {
			part := ids[i:min(i+size, len(ids))]
			for _, id := range part {
				w.silently(http.MethodDelete, id, "")
			}
			if fails(q) != "" {
				ids = slices.Delete(ids, i, i+len(part))
				continue
			}
			for _, id := range part {
				w.silently(http.MethodPut, id, docs[id])
			}
			if fails(q) == "" { // it depends on how the document was written
				w.t.Fatalf("%s\nfirst: %s\nit depends on the history of %v", describe(q), first, part)
			}
			i += len(part)
		}
		if size <= 1 {
			break
		}
	}
	var left []string
	for _, id := range ids {
		left = append(left, docs[id])
	}
	w.t.Fatalf("%s\ndocuments:\n%s\nat first: %s", describe(q), clip(strings.Join(left, "\n"), 6000), clip(first, 4000))
}

// silently writes to both databases what was there before.
func (w *twins) silently(method, id, document string) {
	for _, database := range []string{indexed, plain} {
		_, _ = w.send(request{method: method, path: "/databases/" + database + "/docs?id=" + url.QueryEscape(id), body: document}, 0)
	}
}

func keys(m map[string]string) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	return list
}

// copyTo writes the documents of the database without indexes to another one.
func (h *host) copyTo(t *testing.T, database string) {
	t.Helper()
	for id, doc := range h.documents(t, plain) {
		h.must(t, request{method: http.MethodPut, path: "/databases/" + database + "/docs?id=" + url.QueryEscape(id), body: doc})
	}
}
