package browser_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/server"
)

// numeric is a schema.Compiler of schemas {"numbers":["a","b"]}: members that must be there, and numbers, also in the objects of the array Lines. So the
// tests need no other module.
type numeric struct{ Numbers []string }

// Compile implements schema.Compiler.
func (numeric) Compile(text []byte) (schema.Validator, error) {
	var n numeric
	if err := json.Unmarshal(text, &n); err != nil || n.Numbers == nil {
		return nil, &schema.RuleError{Rule: "only numbers is known"}
	}
	return n, nil
}

// Validate implements schema.Validator.
func (n numeric) Validate(body []byte, most int) (all []schema.Violation, count int) {
	var members map[string]any
	_ = json.Unmarshal(body, &members)
	check := func(path string, members map[string]any) {
		for _, name := range n.Numbers {
			value, found := members[name]
			if !found {
				all = append(all, schema.Violation{Path: path, Keyword: "required", Message: fmt.Sprintf("missing property %q", name)})
			} else if _, is := value.(float64); !is {
				all = append(all, schema.Violation{Path: path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name), Keyword: "type", Message: "want a number"})
			}
		}
	}
	check("", members)
	lines, _ := members["Lines"].([]any)
	for i, line := range lines {
		if members, is := line.(map[string]any); is {
			check(fmt.Sprint("/Lines/", i), members)
		}
	}
	return all[:min(len(all), most)], len(all)
}

func withSchemas(o *server.Options) { o.Database.Schemas = numeric{} }

// marked returns the texts that the editor marks with a class.
func (p *tab) marked(class string) (texts []string) {
	p.t.Helper()
	p.eval(`[...document.querySelectorAll('.`+class+`')].map((n) => n.textContent)`, &texts)
	return texts
}

// Ensure that the editor of a document marks what violates the schema of its collection while one types, says whether it can be saved, and stores
// nothing; that a place in the list leads to its place in the text; and that nothing is marked without a schema.
func TestDocument_Violations(t *testing.T) {
	s := startStudio(t, withSchemas)
	s.put("orders/1", "Orders", `{"a/b":1.10,"Note":"n","Lines":[{"a/b":1},{"a/b":"two"}]}`)
	before := s.stored("orders/1")
	p := s.openDocument("orders/1")
	p.see("1.10")
	p.lacks("button", "/*")
	const rule = "/jay/v1/databases/shop/schemas/rule?collection=Orders"
	s.want(201, "PUT", rule, `{"numbers":["a/b"]}`)
	p.reload()
	p.see("1 place violates the schema of Orders. The document is not saved like this.")
	p.until(`[...document.querySelectorAll('.m-refused')].map((n) => n.textContent).join() === '"two"'`)
	p.click("button", "/Lines/1/a~1b want a number")
	p.until(`(() => { const a = document.querySelector('.editor-area'); return a.value.slice(a.selectionStart, a.selectionEnd) === '"two"'; })()`)
	p.auditEverywhere("violations")
	p.typing("2")
	p.hide("violates the schema")
	if got := p.marked("m-refused"); len(got) > 0 {
		t.Errorf("marked: %q", got)
	}
	p.caretAt("1.10", true)
	p.typing("true")
	p.see("1 place violates the schema of Orders")
	p.caretAt(`"a/b": true,`, true)
	p.press("Delete")
	p.find("button", `the document missing property "a/b"`)
	p.until(`[...document.querySelectorAll('.m-refused')].map((n) => n.textContent).join() === '{'`)
	if now := s.stored("orders/1"); now != before {
		t.Errorf("stored: %s", now)
	}
	p.allow("status of 422")
	p.press("Control+s")
	p.find("alert", "")
	if now := s.stored("orders/1"); now != before {
		t.Errorf("stored: %s", now)
	}

	s.want(201, "PUT", rule+"&mode=warn", "")
	p.caretAt("{", false)
	p.typing(" ")
	p.see("It can be saved: the schema only warns.")
	p.until(`[...document.querySelectorAll('.m-warned')].map((n) => n.textContent).join() === '{'`)
	p.press("Control+s")
	p.see("Saved orders/1.")
	s.want(201, "PUT", rule+"&mode=off", "")
	p.caretAt("{", false)
	p.typing(" ")
	p.hide("violates the schema")
}

// Ensure that the first violations are listed, and all others after a click; and that a long text is not sent while one types.
func TestDocument_Violations_Bounds(t *testing.T) {
	s := startStudio(t, withSchemas)
	s.want(201, "PUT", "/jay/v1/databases/shop/schemas/rule?collection=Orders&mode=warn", `{"numbers":["a"]}`)
	s.put("orders/1", "Orders", `{"a":1,"Lines":[`+strings.Repeat(`{},`, 24)+`{}]}`)
	s.put("orders/2", "Orders", `{"Text":"`+strings.Repeat("long ", 210_000)+`"}`)
	p := s.openDocument("orders/1")
	p.see("25 places violate the schema of Orders")
	p.until(`document.querySelectorAll('.document-violations li').length === 10`)
	p.click("button", "Show 25")
	p.until(`document.querySelectorAll('.document-violations li').length === 25`)
	p = s.open("/studio/db/shop/doc?id=orders/2") // the tree of its elements takes long
	p.until(`document.querySelector('.editor-area')?.value.length > 1 << 20`)
	p.caretAt("{", false)
	p.typing(" ")
	p.eval(`new Promise((done) => setTimeout(done, 1500))`, nil) // longer than it waits
	p.hide("violates the schema")
	for _, one := range p.requests() {
		if strings.Contains(one, "schemas/validate") {
			t.Errorf("the page has sent %s", one)
		}
	}
}

// Ensure that a new document is checked by the schema of the collection that it gets, once something is written.
func TestNew_Violations(t *testing.T) {
	s := startStudio(t, withSchemas)
	s.put("orders/1", "Orders", `{"Total":1}`)
	s.want(201, "PUT", "/jay/v1/databases/shop/schemas/rule?collection=Orders", `{"numbers":["Total"]}`)
	p := s.open("/studio/db/shop/new?collection=Orders")
	p.until(`document.querySelector('.editor-area').value.includes('"Total": 0')`)
	p.caretAt("0", true)
	p.typing("x")
	p.see("line 2")
	p.hide("violates the schema")
	p.press("Backspace")
	p.typing("null")
	p.see("1 place violates the schema of Orders. The document is not saved like this.")
	p.until(`[...document.querySelectorAll('.m-refused')].map((n) => n.textContent).join() === 'null'`)
	p.fill("combobox", "Collection", "Others")
	p.hide("violates the schema")
}
