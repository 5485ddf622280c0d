package odd_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// read makes a request that reads documents in an order that no index decides.
func (o *odds) read() string {
	id := func() string { return escaped(o.id()) }
	list := o.pick("collection=Odd", "collection=Even", "startsWith=odd/1", "startsWith=", "collection=Wei%20rd", "collection=Nothing")
	switch o.IntN(9) {
	case 0:
		return "/databases/%s/docs?startsWith=" + o.pick("odd/", "o", "ODD/1", "") + "&matches=" + escaped(o.pick("*", "1*", "?", "*1|2?")) + o.pick("", "&start=2", "&pageSize=3") + o.pick("", "&exclude=3*")
	case 1:
		return "/databases/%s/docs?id=" + id() + "&id=" + id() + "&include=" + escaped(o.pick(usualValues["include"]...)) + "&include=" + escaped(o.pick("Ref", "Lines[].P", "Tags", "O.$Values", "A"))
	case 2:
		return "/databases/%s/streams/docs?format=jsonl&startsWith=odd/" + o.pick("", "&startAfter="+id(), "&exclude=*2*", "&start=4&pageSize=9")
	case 3:
		return "/jay/v1/databases/%s/documents?" + list + "&pageSize=9" + o.pick("", "&after="+id(), "&reverse=true")
	case 4:
		column := escaped(o.pick(paths...))
		return "/jay/v1/databases/%s/rows?" + list + "&pageSize=20" + o.pick("", "&column="+column, "&column="+column+"&column=%%40preview", "&reverse=true", "&from="+id())
	case 5:
		return "/jay/v1/databases/%s/fields?collection=" + o.pick("Odd", "Even", "Nothing")
	case 6:
		return "/jay/v1/databases/%s/export?bare=true&format=" + o.pick("ndjson", "json", "csv", "csv", "extjson") + o.pick("", "&collection=Odd", "&startsWith=odd/2", "&id="+id(), "&spreadsheet=true")
	case 7:
		return "/jay/v1/databases/%s/nextid?id=" + o.pick("odd/", "odd%%7C", id(), "")
	default:
		return "/databases/%s/collections/stats"
	}
}

// reads sends reads to both databases.
func (w *twins) reads(n int) {
	w.t.Helper()
	for range n {
		path := strings.ReplaceAll(w.o.read(), "%%", "%")
		path = strings.ReplaceAll(path, "%s/", "\x00/")
		at := func(database string) request {
			return request{method: http.MethodGet, path: strings.Replace(path, "\x00", database, 1)}
		}
		a, fault := w.send(at(indexed), 0)
		if fault != "" {
			w.t.Errorf("%s: %s: %d %s", at(indexed), fault, a.status, clip(a.body, 2000))
			continue
		}
		b, fault := w.send(at(plain), 0)
		if fault != "" || a.status != b.status || a.status < http.StatusBadRequest && stable(a.body) != stable(b.body) {
			w.t.Errorf("%s: %s: %d %s\nwhere the other database says %d %s", at(plain), fault, b.status, clip(stable(b.body), 4000), a.status, clip(stable(a.body), 4000))
		}
	}
}

// roundTrips exports the documents in formats that leave nothing out, and imports them into new databases.
func (w *twins) roundTrips() {
	w.t.Helper()
	for i, format := range []string{"ndjson", "json", "ravendbdump", "csv", "extjson"} {
		a, fault := w.send(request{method: http.MethodGet, path: "/jay/v1/databases/" + indexed + "/export?format=" + format}, 0)
		if fault != "" || a.status != http.StatusOK {
			w.t.Errorf("export as %s: %s: %d %s", format, fault, a.status, clip(a.body, 2000))
			continue
		}
		name := fmt.Sprint("copy", i)
		w.must(w.t, request{method: http.MethodPut, path: "/admin/databases?name=" + name, body: `{"DatabaseName":"` + name + `"}`})
		b, fault := w.send(request{method: http.MethodPost, path: "/jay/v1/databases/" + name + "/import?format=" + format, body: a.body}, 0)
		if fault != "" || b.status != http.StatusOK {
			w.t.Errorf("import of %s: %s: %d %s", format, fault, b.status, clip(b.body, 2000))
			continue
		}
		want, got := w.documents(w.t, indexed), w.documents(w.t, name)
		for id, text := range want {
			if got[id] != text && (format != "csv" || sameMembers(got[id]) != sameMembers(text)) {
				w.t.Errorf("%s: document %q was %s, and is %s", format, id, text, got[id])
			}
		}
		if len(got) != len(want) {
			w.t.Errorf("%s: %d documents, want %d", format, len(got), len(want))
		}
		w.must(w.t, request{method: http.MethodDelete, path: "/admin/databases", body: `{"DatabaseNames":["` + name + `"],"HardDelete":true}`})
	}
}

// sameMembers writes an object with its members in the order of their names.
func sameMembers(object string) string {
	decoder := json.NewDecoder(strings.NewReader(object))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return object
	}
	text, err := json.Marshal(v)
	if err != nil {
		return object
	}
	return string(text)
}
