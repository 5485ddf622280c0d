package browser_test

import (
	"strings"
	"testing"
)

// Ensure that databases are listed with what they have, and that one is deleted only after its name was typed.
func TestDatabases(t *testing.T) {
	s := startStudio(t)
	s.create("other")
	s.put("a/1", "As", `{}`)
	s.put("a/2", "As", `{}`)
	p := s.open("/studio/")
	p.until(`[...document.querySelector('tr[data-name=shop]').cells].map((cell) => cell.textContent.trim())[1] === '2'`)
	p.until(`/^[0-9.]+ KB$/.test(document.querySelector('tr[data-name=shop]').cells[2].textContent)`)
	p.click("button", "More about other")
	p.click("menuitem", "Delete …")
	dialog := p.in("dialog", "Delete other?")
	dialog.fill("textbox", "Type other to go on", "Other")
	p.press("Enter")
	dialog.find("button", "Delete the database") // it is still there: the name was another
	p.auditEverywhere("the question")
	dialog.fill("textbox", "Type other to go on", "other")
	dialog.click("button", "Delete the database")
	p.see("other is deleted.")
	p.lacks("link", "other")
	if reply := s.call("GET", "/databases?namesOnly=true", ""); reply.text != `{"Databases":["shop"]}` {
		t.Errorf("got %s", reply.text)
	}
}

// Ensure that a name that cannot be is refused where it was typed, and that what was typed stays.
func TestDatabases_Refused(t *testing.T) {
	s := startStudio(t)
	p := s.open("/studio/databases")
	p.allow("status of 400", "status of 409")
	p.click("button", "New database*")
	dialog := p.in("dialog", "New database")
	for _, name := range []string{"no/name", "shop"} {
		dialog.fill("textbox", "Name", name)
		p.press("Enter")
		dialog.find("alert", "")
		if got := dialog.value("textbox", "Name"); got != name {
			t.Errorf("the field has %q", got)
		}
	}
	p.press("Escape")
	p.lacks("dialog", "New database")
}

// Ensure that the palette finds pages and documents, that ? lists the keys, and that g and a
// key go to a page.
func TestPalette(t *testing.T) {
	s := startStudio(t)
	s.put("users/ann", "Users", `{"Name":"Ann"}`)
	p := s.open("/studio/db/shop/documents")
	p.see("users/ann")
	p.press("g", "b")
	p.wait("the databases", func() bool { return strings.HasSuffix(p.address(), "/studio/databases") })
	p.back()
	p.see("users/ann")
	p.press("Control+k")
	p.typing("datab")
	p.press("Enter")
	p.wait("the databases", func() bool { return strings.HasSuffix(p.address(), "/studio/databases") })
	p.back()
	p.see("users/ann")
	p.press("?")
	dialog := p.in("dialog", "Keys")
	dialog.find("heading", "This page")
	p.press("Escape")
	p.lacks("dialog", "Keys")
	p.press("Control+k")
	p.insert("users/ann")
	p.press("Enter")
	p.wait("the document", func() bool { return strings.Contains(p.address(), "/doc?id=users%2Fann") })
}

// Ensure that an address that is no page says so, and that those of a database lead to its documents.
func TestAddresses(t *testing.T) {
	s := startStudio(t)
	p := s.open("/studio/nothing")
	p.see("There is no page /nothing.")
	p.visit("/studio/db/shop")
	p.wait("the documents", func() bool { return strings.HasSuffix(p.address(), "/studio/db/shop/documents") })
	p.allow("status of 503")
	p.visit("/studio/db/none/documents")
	p.see("does not exist")
	p.see("See the list of databases.")
}
