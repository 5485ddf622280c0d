package browser_test

import (
	"regexp"
	"strings"
	"testing"
)

// savedID waits for the ID under which the new document was saved.
func (p *tab) savedID() string {
	p.t.Helper()
	p.until(`document.querySelector('.new-saved')`)
	var id string
	p.eval(`document.querySelector('.new-saved').textContent`, &id)
	return id
}

// Ensure that each of the five ways to make an ID is foretold, makes the ID that was shown,
// and shows it with a link.
func TestNew_Strategies(t *testing.T) {
	for _, c := range []struct{ name, way, typed, foretold, id string }{
		{"semantic", "As it is", "users/ann", "Will be saved as users/ann.", `^users/ann$`},
		{"identity", "Identity", "users|", "Will be saved as users/1, unless another write comes first.", `^users/1$`},
		{"server-side", "Server-side", "users/", "Will be saved as users/0000000000000000001-A, unless", `^users/0000000000000000001-A$`},
		{"GUID", "GUID", "", "Will be saved under a random GUID", `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$`},
		{"HiLo", "HiLo", "", "Will be saved as users/…-A with the next number of the range.", `^users/1-A$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startStudio(t)
			p := s.open("/studio/db/shop/new")
			p.find("textbox", "ID")
			p.fill("combobox", "Collection", "Users")
			if c.way == "HiLo" || c.way == "GUID" {
				p.click("radio", c.way+"*")
			} else {
				p.fill("textbox", "ID", c.typed)
			}
			p.see(c.foretold)
			if e := p.find("radio", c.way+"*"); e.properties["checked"] != "true" {
				t.Errorf("%s is not chosen: %v", c.way, e.properties)
			}
			p.focus("textbox", "Text of the new document")
			p.press("Control+a")
			p.insert(`{"N":9007199254740993,"P":1.10}`)
			p.press("Control+s")
			id := p.savedID()
			if !regexp.MustCompile(c.id).MatchString(id) {
				t.Errorf("saved as %q, want %s", id, c.id)
			}
			text := s.stored(id)
			if !strings.HasPrefix(text, `{"N":9007199254740993,"P":1.10,"@metadata":{"@collection":"Users"`) {
				t.Errorf("stored: %s", text)
			}
			p.press("Enter") // the link to it has the focus
			p.find("textbox", "Document "+id)
		})
	}
}

// Ensure that another way is chosen by writing the request that asks for it.
func TestNew_Ways(t *testing.T) {
	s := startStudio(t)
	p := s.open("/studio/db/shop/new")
	p.fill("textbox", "ID", "orders/ann")
	p.see("Will be saved as orders/ann.")
	if got := p.value("combobox", "Collection"); got != "Orders" {
		t.Errorf("the collection is %q", got)
	}
	p.click("radio", "Identity*")
	p.see("Will be saved as orders/1,")
	p.click("radio", "Server-side*")
	p.see("Will be saved as orders/0000000000000000001-A,")
	p.press("Shift+Tab")
	p.click("radio", "HiLo*")
	p.see("Will be saved as orders/…-A")
	p.reload()
	p.see("New document")
	p.find("radio", "HiLo*")
	p.auditEverywhere("a new document")
}

// Ensure that a document that is there is not replaced, and that the page says so while the ID
// is typed.
func TestNew_Taken(t *testing.T) {
	s := startStudio(t)
	s.put("users/ann", "Users", `{"A":1}`)
	p := s.open("/studio/db/shop/new")
	p.fill("textbox", "ID", "Users/ANN")
	p.see("is there already, and is not replaced from here.")
	p.allow("status of 409")
	p.press("Control+s")
	p.see("Not saved: Users/ANN is there already.")
	s.waitStored("users/ann", `{"A":1`)
	p.fill("textbox", "ID", "users/bob")
	p.press("Control+s")
	if id := p.savedID(); id != "users/bob" {
		t.Errorf("saved as %q", id)
	}
}

// Ensure that an ID which cannot be says why, and that an error in the text is shown where it
// is, with what was typed still there.
func TestNew_Refused(t *testing.T) {
	s := startStudio(t)
	p := s.open("/studio/db/shop/new")
	p.allow("status of 400")
	p.fill("textbox", "ID", `users\ann`)
	p.see("must not hold the character")
	p.fill("textbox", "ID", "users/ann")
	p.see("Will be saved as users/ann.")
	p.focus("textbox", "Text of the new document")
	p.press("Control+a")
	p.insert(`[1]`)
	p.press("Control+s")
	p.see("expected a document, which is an object")
	if text := s.stored("users/ann"); text != "" {
		t.Errorf("stored: %s", text)
	}
	if text := p.value("textbox", "Text of the new document"); text != "[1]" {
		t.Errorf("the text is %q", text)
	}
}

// Ensure that a new document of a collection begins with the fields that others have.
func TestNew_Template(t *testing.T) {
	s := startStudio(t)
	s.put("users/1", "Users", `{"Name":"Ann","Age":7,"Tags":["a"],"Address":{"City":"Oslo"},"On":true}`)
	p := s.open("/studio/db/shop/new?collection=Users")
	p.until(`document.querySelector('.editor-area')?.value.includes('"Name"')`)
	if text := p.value("textbox", "Text of the new document"); strings.Join(strings.Fields(text), "") != `{"Name":"","Age":0,"Tags":[],"Address":{},"On":false}` {
		t.Errorf("the text is %s", text)
	}
	p.see("Will be saved as users/…-A")
	p.typing("Bob")
	p.press("Control+s")
	id := p.savedID()
	s.waitStored(id, `{"Name":"Bob","Age":0`)
	p.click("button", "Write another")
	p.press("Control+s")
	p.until(`document.querySelector('.new-saved') && document.querySelector('.new-saved').textContent !== ` + quoted(id))
}

// Ensure that IDs and texts that mean something in HTML and in URLs are saved as they are.
func TestNew_Hostile(t *testing.T) {
	s := startStudio(t)
	id := `x/<script>document.title="bad"</script>&a=b+c%20?#'"é😀`
	p := s.open("/studio/db/shop/new")
	p.fill("textbox", "ID", id)
	p.focus("textbox", "Text of the new document")
	p.press("Control+a")
	p.insert(`{"T":"</textarea><script>document.title='bad'</script>","Q":"'\"\\"}`)
	p.press("Control+s")
	if got := p.savedID(); got != id {
		t.Errorf("saved as %q", got)
	}
	s.waitStored(id, `{"T":"</textarea><script>document.title='bad'</script>","Q":"'\"\\"`)
	p.until(`document.title !== 'bad'`)
	p.press("Enter")
	p.find("textbox", "Document "+id)
}

// Ensure that what was typed is not lost without a question.
func TestNew_Unsaved(t *testing.T) {
	s := startStudio(t)
	p := s.open("/studio/db/shop/new")
	p.focus("textbox", "Text of the new document")
	p.press("Control+a")
	p.insert(`{"A":1}`)
	p.click("link", "Query")
	p.in("dialog", "Leave without saving?").click("button", "Cancel")
	p.fill("textbox", "ID", "a/1")
	p.press("Control+s")
	p.savedID()
	p.click("link", "Query")
	p.find("textbox", "Query in RQL")
}
