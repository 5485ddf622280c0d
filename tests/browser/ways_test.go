package browser_test

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Ensure that a document is made, edited, found by a query and deleted with keys, and no
// pointer.
func TestWays_KeyboardOnly(t *testing.T) {
	s := startStudio(t)
	s.put("notes/1", "Notes", `{"Text":"first"}`)
	p := s.open("/studio/databases")
	p.see("shop")
	p.tabTo("link", "shop")
	p.press("Enter")
	p.find("grid", "Documents")
	p.quiet()

	// Make.
	p.press("n")
	p.find("heading", "New document")
	p.quiet()
	p.tabTo("textbox", "ID")
	p.press("Control+a")
	p.typing("notes/2")
	p.tabTo("textbox", "Text of the new document")
	p.press("Control+a")
	p.insert(`{"Text": "second", "Exact": 9007199254740993, "Price": 1.10}`)
	p.press("Control+s")
	s.waitStored("notes/2", `"Exact":9007199254740993,"Price":1.10`)
	p.wait("the focus on what was saved", func() bool { return p.focused().name == "notes/2" })
	p.press("Enter")
	p.find("heading", "*notes/2")
	p.quiet()

	// Edit.
	p.tabTo("textbox", "Document notes/2")
	p.press("Control+Home", "ArrowRight")
	p.typing(`"Edited": true,`)
	p.press("Control+s")
	s.waitStored("notes/2", `"Edited":true`)
	s.waitStored("notes/2", `"Exact":9007199254740993,"Price":1.10`)
	p.quiet()

	// Query. Keys of one letter belong to the editor as long as one types there.
	p.press("Escape")
	p.tabTo("button", "Save*")
	p.press("g", "q")
	p.find("heading", "Query")
	p.quiet()
	p.tabTo("textbox", "Query in RQL")
	p.press("Control+a")
	p.insert("from Notes where Edited = true")
	p.press("Control+Enter")
	p.find("link", "notes/2")
	p.tabTo("link", "notes/2")
	p.press("Enter")
	p.find("heading", "*notes/2")
	p.quiet()

	// Delete.
	p.tabTo("button", "Delete")
	p.press("Enter")
	if found := p.all("dialog", ""); len(found) > 0 {
		p.press("Enter")
	}
	p.wait("the deletion", func() bool { return s.stored("notes/2") == "" })
	p.press("?")
	p.find("dialog", "Keys")
	p.audit("the keys")
	p.press("Escape")
	p.lacks("dialog", "Keys")

	// The palette leads everywhere.
	p.press("Control+k")
	p.typing("stat")
	p.press("Enter")
	p.find("heading", "Statistics")
}

// Ensure that a page that is left and come back to, and one that is loaded again, is as it
// was: place in the list, filter, query, tab.
func TestWays_BackForwardReload(t *testing.T) {
	s := startStudio(t)
	s.sample()
	p := s.open("/studio/db/shop/documents?collection=Orders")
	p.fill("textbox", "IDs that begin with", "orders/110")
	p.press("Enter")
	p.until(`location.search.includes('prefix=orders')`)
	p.quiet()
	p.see("orders/1109-A")
	p.click("link", "orders/1105-A")
	p.find("heading", "*orders/1105-A")
	p.quiet()
	p.visit("/studio/db/shop/query")
	p.fill("textbox", "Query in RQL", "from Orders where Status = 'open' order by Total desc limit 5")
	p.press("Control+Enter")
	p.until(`location.search.includes('Status')`)
	p.see("5 rows")
	p.click("tab", "JSON")
	p.quiet()
	p.reload()
	p.quiet()
	if got := p.value("textbox", "Query in RQL"); !strings.HasPrefix(got, "from Orders where Status = 'open'") {
		t.Errorf("the query became %q", got)
	}
	if tab := p.find("tab", "JSON"); tab.properties["selected"] != "true" {
		t.Errorf("the tab JSON is not chosen any more: %v", tab.properties)
	}
	at := p.address()
	for p.address() == at || strings.Contains(p.address(), "/query") {
		p.back()
	}
	p.find("heading", "*orders/1105-A")
	p.back()
	p.see("orders/1109-A")
	if got := p.value("textbox", "IDs that begin with"); got != "orders/110" {
		t.Errorf("the filter became %q", got)
	}
	p.reload()
	p.see("orders/1109-A")
	p.hide("orders/120-A")
	p.forward()
	p.find("heading", "*orders/1105-A")

	// A place deep in the list.
	p.visit("/studio/db/shop/documents?collection=Customers&order=id")
	p.until(listScript)
	p.press("End")
	p.until(`window.__list.rows().includes('customers/99')`)
	p.until(`location.search.includes('from=')`)
	p.reload()
	p.until(listScript)
	p.until(`window.__list.rows().includes('customers/99')`)
}

// Ensure that what was typed is not lost without a question.
func TestWays_Unsaved(t *testing.T) {
	s := startStudio(t)
	s.put("notes/1", "Notes", `{"Text":"first"}`)
	p := s.open("/studio/db/shop/doc?id=notes/1")
	p.focus("textbox", "Document notes/1")
	p.press("Control+Home", "ArrowRight")
	p.typing(`"Typed": 1,`)
	p.click("link", "Query")
	p.find("dialog", "Leave without saving?")
	p.audit("a question")
	p.press("Escape")
	if got := p.value("textbox", "Document notes/1"); !strings.Contains(got, `"Typed": 1`) {
		t.Errorf("what was typed is lost: %q", got)
	}
	p.click("link", "Query")
	p.in("dialog", "Leave without saving?").click("button", "Leave")
	p.find("heading", "Query")
	if text := s.stored("notes/1"); strings.Contains(text, "Typed") {
		t.Errorf("it was saved: %s", text)
	}
}

// Ensure that with a token to read, pages offer nothing that writes, and still show what
// there is.
func TestWays_ReadOnlyToken(t *testing.T) {
	s, tokens, _ := startGuarded(t)
	s.sample()
	p := s.open("/studio/databases")
	p.signIn(tokens["read"])
	p.see("shop")
	p.allow("status of 400", "status of 404", "status of 403")
	writes := []string{"Save*", "Delete", "Delete *", "New", "New *", "Import", "Create*", "Next", "Attach files", "Set *", "Edit"}
	eachPage(t, s, p, func(address string) {
		for _, e := range p.tree() {
			writing := (e.role == "button" || e.role == "link") && slices.ContainsFunc(writes, func(name string) bool { return fits(e.name, name) })
			turns := e.name == "Next" && strings.Contains(address, "/query") // the page
			if writing && !turns && e.properties["disabled"] != "true" {
				t.Errorf("%s offers %v", address, e)
			}
		}
	})
	p.visit("/studio/db/shop/doc?id=orders/1201-A")
	p.see("9007199254740993")
	p.visit("/studio/db/shop/documents?collection=Orders")
	p.see("orders/1201-A")
}

// Ensure that a session which ends while one types loses nothing.
func TestWays_SessionEndsWhileEditing(t *testing.T) {
	s, tokens, now := startGuarded(t)
	s.put("notes/1", "Notes", `{"Text":"first"}`)
	p := s.open("/studio/db/shop/doc?id=notes/1")
	p.signIn(tokens["write"])
	p.focus("textbox", "Document notes/1")
	p.quiet()
	p.press("Control+Home", "ArrowRight")
	p.typing(`"Typed": 1,`)
	now.advance(13 * time.Hour)
	p.press("Control+s")
	p.find("dialog", "Sign in")
	p.in("dialog", "Sign in").fill("textbox", "Token", tokens["write"])
	p.press("Enter")
	p.lacks("dialog", "Sign in")
	if got := p.value("textbox", "Document notes/1"); !strings.Contains(got, `"Typed": 1`) {
		t.Fatalf("what was typed is lost: %q", got)
	}
	p.focus("textbox", "Document notes/1")
	p.press("Control+s")
	s.waitStored("notes/1", `"Typed":1`)
}
