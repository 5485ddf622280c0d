package browser_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
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

// Ensure that nothing is offered that a server of given directories can only refuse.
func TestDatabases_Fixed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop.db")
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, func(o *server.Options) { o.Directories = map[string]string{"shop": dir} })
	p := s.open("/studio/databases")
	p.find("link", "shop")
	p.lacks("button", "New database*")
	p.lacks("button", "More about shop")
	p.press("n")
	p.lacks("dialog", "New database")
}

// Ensure that the studio of one directory opens on its documents, and not on a list of one row, and that the
// studio of several, or of a server that can get more, opens on the list.
func TestDatabases_OnlyOneOpens(t *testing.T) {
	of := func(names ...string) func(o *server.Options) {
		dirs := make(map[string]string)
		for _, name := range names {
			dirs[name] = filepath.Join(t.TempDir(), name)
			db, err := jay.Open(dirs[name], nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return func(o *server.Options) { o.Directories = dirs }
	}
	at := func(p *tab, want string) {
		t.Helper()
		p.until(fmt.Sprintf("location.pathname === %q", want))
	}
	p := startServer(t, of("shop")).open("/studio/")
	at(p, "/studio/db/shop/documents")
	p.press("g", "b")
	at(p, "/studio/databases")
	at(startServer(t, of("shop", "stock")).open("/studio/"), "/studio/databases")
	at(startStudio(t).open("/studio/"), "/studio/databases")
}

// Ensure that the dialog of the keys shows its beginning in a low window, and that the ring
// of a focused list is above its rows.
func TestKeys_Seen(t *testing.T) {
	s := startStudio(t)
	s.put("users/ann", "Users", `{"Name":"Ann"}`)
	p := s.open("/studio/db/shop/documents")
	p.viewport(1366, 820)
	p.see("users/ann")
	p.press("ArrowDown")
	p.until(`(() => {
		const ring = getComputedStyle(document.querySelector('.list-frame'), '::after');
		return ring.outlineStyle === 'solid' && Number(ring.zIndex) > Number(getComputedStyle(document.querySelector('.list-head')).zIndex);
	})()`)
	p.press("?")
	p.in("dialog", "Keys").find("heading", "This page")
	p.until(`document.querySelector('dialog[open]').scrollHeight > document.querySelector('dialog[open]').clientHeight`)
	p.until(`document.querySelector('dialog[open]').scrollTop === 0`)
	p.until(`document.querySelector('dialog[open]').getBoundingClientRect().bottom <= innerHeight`)
}

// Ensure that a part of very many collections is listed, and that the others are reached by
// their names.
func TestDocuments_ManyCollections(t *testing.T) {
	s := startStudio(t)
	var commands []string
	for i := range 510 {
		commands = append(commands, fmt.Sprintf(`{"Type":"PUT","Id":"a/%03d","Document":{"@metadata":{"@collection":"C%03d"}}}`, i, i))
	}
	s.want(201, "POST", "/databases/shop/bulk_docs", `{"Commands":[`+strings.Join(commands, ",")+`]}`)
	p := s.open("/studio/db/shop/documents")
	p.see("10 more are not listed")
	p.until(`document.querySelectorAll('nav.collections a').length === 501`) // with that of all documents
	p.fill("textbox", "Go to a collection", "C509")
	p.press("Enter")
	p.find("link", "a/509")
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
