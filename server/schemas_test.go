package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/server"
)

// named is a schema.Compiler of schemas that have only the keyword "required", so that the tests need no other module. Its messages are those of
// package jsonschema, which the command gives a server.
type named struct{ Required []string }

func (named) Compile(text []byte) (schema.Validator, error) {
	var n named
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&n); err != nil {
		return nil, &schema.RuleError{Path: "/" + strings.Trim(strings.TrimPrefix(err.Error(), "json: unknown field "), `"`), Rule: "only required is known"}
	}
	return n, nil
}

func (n named) Validate(body []byte, most int) (all []schema.Violation, count int) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(body, &members)
	for _, name := range n.Required {
		if _, found := members[name]; !found {
			all = append(all, schema.Violation{Keyword: "required", Message: fmt.Sprintf("missing property %q", name)})
		}
	}
	return all[:min(len(all), most)], len(all)
}

func withSchemas(o *server.Options) { o.Database.Schemas = named{} }

// Ensure that a schema can be stored, listed, read, switched to another mode and removed, that its report comes with it, and that bad requests are
// refused by what they break.
func TestSchemas(t *testing.T) {
	t.Parallel()
	h := start(t, withSchemas)
	h.create("db")
	const rule, order = own + "/schemas/rule?collection=Orders", `{"a":1,"@metadata":{"@collection":"Orders"}}`
	equal(t, "no schemas", h.want(200, "GET", own+"/schemas", "").body, `{"schemas":[]}`)
	h.want(201, "PUT", "/databases/db/docs?id=orders/1", order)
	h.want(201, "PUT", "/databases/db/docs?id=orders/2", `{"total":1,"@metadata":{"@collection":"Orders"}}`)

	a := h.want(200, "POST", own+"/schemas/check?collection=Orders", `{"required":["total"]}`)
	equal(t, "checked", a.text(t, "documents")+" "+a.text(t, "violating")+" "+a.text(t, "first", 0, "id"), "2 1 orders/1")
	equal(t, "a check stores nothing", h.want(200, "GET", own+"/schemas", "").body, `{"schemas":[]}`)

	const text = `{ "required": ["total"] }`
	equal(t, "the default", h.want(201, "PUT", rule, text).text(t, "mode"), "refuse")
	var got answer
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if got = h.want(200, "GET", rule, ""); got.json(t, "report", "ended") != nil && strings.Contains(got.body, `"ended"`) || time.Now().After(deadline) {
			break
		}
	}
	equal(t, "the schema", got.compact(t, "schema"), `{"required":["total"]}`)
	equal(t, "the report", got.text(t, "report", "documents")+" "+got.text(t, "report", "violating")+" "+got.text(t, "report", "first", 0, "id"), "2 1 orders/1")
	equal(t, "the mode", got.text(t, "mode"), "refuse")
	equal(t, "its own check", h.want(200, "POST", own+"/schemas/check?collection=orders", "").text(t, "violating"), "1")
	h.checkProblem(h.do("PUT", "/databases/db/docs?id=orders/3", order), 422, "BadRequestException")

	equal(t, "another mode", h.want(201, "PUT", rule+"&mode=warn", "").text(t, "mode"), "warn")
	h.want(201, "PUT", "/databases/db/docs?id=orders/3", order)
	list := h.want(200, "GET", own+"/schemas", "")
	equal(t, "the list", list.text(t, "schemas", 0, "collection")+" "+list.text(t, "schemas", 0, "mode")+" "+list.text(t, "schemas", 0, "bytes"), fmt.Sprint("Orders warn ", len(text)))
	equal(t, "the list has no text", strings.Contains(list.body, "total"), false)

	for what, test := range map[string]struct {
		status             int
		method, path, body string
	}{
		"an unknown mode":              {422, "PUT", rule + "&mode=strict", text},
		"an empty mode":                {422, "PUT", rule + "&mode=", text},
		"no object":                    {422, "PUT", rule, `[]`},
		"no JSON":                      {400, "PUT", rule, `{"required":`},
		"what the compiler refuses":    {422, "PUT", rule, `{"type":"object"}`},
		"too long":                     {422, "PUT", rule, `{"required":["` + strings.Repeat("a", schema.MaxBytes) + `"]}`},
		"no collection":                {422, "PUT", own + "/schemas/rule", text},
		"a collection of the system":   {422, "PUT", own + "/schemas/rule?collection=@hilo", text},
		"no schema, another mode":      {404, "PUT", own + "/schemas/rule?collection=Other&mode=warn", ""},
		"no schema, read":              {404, "GET", own + "/schemas/rule?collection=Other", ""},
		"no schema, removed":           {404, "DELETE", own + "/schemas/rule?collection=Other", ""},
		"no schema, checked":           {404, "POST", own + "/schemas/check?collection=Other", ""},
		"checked by what is no schema": {422, "POST", own + "/schemas/check?collection=Orders", `{"type":"object"}`},
	} {
		a := h.do(test.method, test.path, test.body)
		if a.status != test.status {
			t.Errorf("%s: status %d, want %d: %s", what, a.status, test.status, a.body)
		}
		h.checkProblem(a, test.status, "BadRequestException")
	}
	equal(t, "where it is wrong", h.do("PUT", rule, `{"type":"object"}`).text(t, "Path"), "/type")
	equal(t, "after what was refused", h.want(200, "GET", rule, "").text(t, "mode"), "warn")
	h.want(204, "DELETE", rule, "")
	equal(t, "removed", h.want(200, "GET", own+"/schemas", "").body, `{"schemas":[]}`)
}

// Ensure that a document can be validated without being stored, that the reply has the mode of the schema and its violations within their bound, and
// that bad requests are refused by what they break.
func TestSchemas_Validate(t *testing.T) {
	t.Parallel()
	h := start(t, withSchemas)
	h.create("db")
	const rule, validate, order = own + "/schemas/rule?collection=Orders", own + "/schemas/validate?collection=orders", `{"note":1,"@metadata":{"@collection":"Orders"}}`
	equal(t, "without a schema", h.want(200, "POST", validate, order).body, `{"collection":"orders","count":0,"violations":[]}`)
	h.want(201, "PUT", rule, `{"required":["total"]}`)
	equal(t, "refused", h.want(200, "POST", validate, order).body, `{"collection":"Orders","mode":"refuse","count":1,"violations":[{"path":"","keyword":"required","message":"missing property \"total\""}]}`)
	equal(t, "a document that fits", h.want(200, "POST", validate, `{"total":1}`).body, `{"collection":"Orders","mode":"refuse","count":0,"violations":[]}`)
	h.want(201, "PUT", rule+"&mode=warn", "")
	equal(t, "a warning", h.want(200, "POST", validate, order).text(t, "mode"), "warn")
	h.want(201, "PUT", rule+"&mode=off", "")
	equal(t, "off", h.want(200, "POST", validate, order).body, `{"collection":"Orders","mode":"off","count":0,"violations":[]}`)
	equal(t, "nothing is stored", h.want(200, "GET", own+"/collections", "").compact(t, "collections"), `[]`)
	var names []string
	for i := range 90 {
		names = append(names, fmt.Sprintf("%02d", i)+strings.Repeat("n", 1000))
	}
	text, _ := json.Marshal(map[string]any{"required": names})
	h.want(201, "PUT", rule, string(text))
	a := h.want(200, "POST", validate, `{}`)
	if a.text(t, "count") != "90" || len(a.body) < schema.MaxReportedBytes/2 || len(a.body) > schema.MaxReportedBytes*5/4 {
		t.Errorf("%s violations are listed in %d bytes", a.text(t, "count"), len(a.body))
	}
	for what, test := range map[string]struct {
		status     int
		path, body string
	}{
		"no collection": {400, own + "/schemas/validate", order},
		"no document":   {400, validate, ""},
		"no JSON":       {400, validate, `{"total":`},
		"no object":     {400, validate, `[1]`},
	} {
		if a := h.do("POST", test.path, test.body); a.status != test.status {
			t.Errorf("%s: status %d, want %d: %s", what, a.status, test.status, a.body)
		}
	}
}

// Ensure that each way to write through the server is refused with 422 and the violations as JSON, and changes nothing.
func TestSchemas_Refused(t *testing.T) {
	t.Parallel()
	h := start(t, withSchemas)
	h.create("db")
	h.want(201, "PUT", "/databases/db/docs?id=orders/1", `{"total":1,"note":"n","@metadata":{"@collection":"Orders"}}`)
	h.want(201, "PUT", own+"/schemas/rule?collection=Orders", `{"required":["total","note"]}`)
	const body = `{"total":1,"@metadata":{"@collection":"Orders"}}`
	for _, test := range []struct{ method, path, body, id string }{
		{"PUT", "/databases/db/docs?id=orders/2", body, "orders/2"},
		{"POST", "/databases/db/bulk_docs", `{"Commands":[{"Type":"PUT","Id":"orders/3","Document":{"total":1,"note":"n","@metadata":{"@collection":"Orders"}}},{"Type":"PUT","Id":"orders/2","Document":` + body + `}]}`, "orders/2"},
		{"PATCH", "/databases/db/docs?id=orders/1", `{"Patch":{"Script":"delete this.note"}}`, "orders/1"},
		{"POST", own + "/documents?collection=Orders", `{"total":1}`, ""},
	} {
		what := test.method + " " + test.path
		a := h.do(test.method, test.path, test.body)
		h.checkProblem(a, 422, "BadRequestException")
		if a.status != 422 {
			continue
		}
		equal(t, what, a.compact(t, "Violations"), `[{"keyword":"required","message":"missing property \"note\"","path":""}]`)
		equal(t, what, a.text(t, "ViolationCount")+" "+a.text(t, "Collection"), "1 Orders")
		if test.id != "" {
			equal(t, what, a.text(t, "Id"), test.id)
		}
	}
	for _, id := range []string{"orders/2", "orders/3"} {
		h.want(404, "GET", "/databases/db/docs?id="+id, "")
	}
	equal(t, "what was patched", h.want(200, "GET", "/databases/db/docs?id=orders/1", "").text(t, "Results", 0, "note"), "n")

	// The records of an import that the schema refuses are rejects, which say why.
	id := h.next("db")
	a := h.want(200, "POST", own+"/import?format=ndjson&rejects=9&operation="+id, `{"total":1,"@metadata":{"@id":"orders/4","@collection":"Orders"}}`+"\n"+`{"total":1,"note":"n","@metadata":{"@id":"orders/5","@collection":"Orders"}}`+"\n")
	equal(t, "the import", a.text(t, "documents"), "1")
	equal(t, "what the import says of the reject", strings.Contains(a.text(t, "problems", 0, "message"), `missing property "note"`), true)
	h.want(404, "GET", "/databases/db/docs?id=orders/4", "")
	h.want(200, "GET", "/databases/db/docs?id=orders/5", "")
}

// Ensure that a server without Options.Database.Schemas refuses writes into a collection with a rule and the schemas of others, shows rules, and
// removes them.
func TestSchemas_WithoutCompiler(t *testing.T) {
	t.Parallel()
	h := start(t, withSchemas)
	h.create("db")
	h.want(201, "PUT", own+"/schemas/rule?collection=Orders", `{"required":["total"]}`)
	h.stop()
	h = startIn(t, h.dir)
	const body = `{"total":1,"@metadata":{"@collection":"Orders"}}`
	a := h.do("PUT", "/databases/db/docs?id=orders/1", body)
	h.checkProblem(a, 422, "BadRequestException")
	equal(t, "it says what to do", strings.Contains(a.body, "Options.Schemas"), true)
	h.checkProblem(h.do("PUT", own+"/schemas/rule?collection=Orders", `{"required":[]}`), 422, "BadRequestException")
	equal(t, "the rule", h.want(200, "GET", own+"/schemas/rule?collection=Orders", "").text(t, "mode"), "refuse")
	h.want(201, "PUT", own+"/schemas/rule?collection=Orders&mode=off", "")
	h.want(201, "PUT", "/databases/db/docs?id=orders/1", body)
	h.want(204, "DELETE", own+"/schemas/rule?collection=Orders", "")
}
