package browser_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// rowIDs returns the IDs of the rows that can be seen, in their order.
func (p *tab) rowIDs() (ids []string) {
	p.t.Helper()
	p.eval(`(() => {
		if (!document.querySelector('.canvas .row')) return [];
		const list = document.querySelector('.list').getBoundingClientRect(), head = document.querySelector('.list-head').getBoundingClientRect().height;
		return [...document.querySelectorAll('.canvas .row')].map((row) => ({top: row.getBoundingClientRect().top, bottom: row.getBoundingClientRect().bottom, id: row.querySelector('.id').textContent}))
			.filter((row) => row.bottom > list.top + head + 1 && row.top < list.bottom - 1).sort((a, b) => a.top - b.top).map((row) => row.id);
	})()`, &ids)
	return ids
}

// orders stores numbered documents, whose IDs are in the order of their numbers.
func orders(s *studio, n int) {
	s.putMany("Orders", n, func(i int) (id, body string) {
		return fmt.Sprintf("orders/%07d-A", i+1), fmt.Sprintf(`{"Status":"%s","Total":%d.10,"Big":9007199254740993}`, []string{"open", "paid"}[i%2], i)
	})
}

// Ensure that the list shows the first rows, the last ones and those at any ID, that it says
// where it is, that its place is in the address, and that a row opens by its key.
func TestDocuments_Places(t *testing.T) {
	s := startStudio(t)
	orders(s, 3000)
	s.put("others/1", "Others", `{}`)
	p := s.open("/studio/db/shop/documents?collection=Orders&order=id")
	p.see("3,000 documents")
	p.see("orders/0000001-A")
	p.wait("where it is", func() bool {
		return strings.HasPrefix(p.whereNow(), "rows 1–") && strings.HasSuffix(p.whereNow(), " of 3,000")
	})

	p.press("End")
	p.wait("the last row", func() bool { return slices.Contains(p.rowIDs(), "orders/0003000-A") })
	p.wait("its number", func() bool { return strings.HasSuffix(p.whereNow(), "–3,000 of 3,000") })

	p.press("/")
	p.typing("orders/0001500-A")
	p.press("Enter")
	p.wait("the row of the ID", func() bool { return len(p.rowIDs()) > 0 && p.rowIDs()[0] == "orders/0001500-A" })
	p.wait("that it is a guess", func() bool { return strings.HasPrefix(p.whereNow(), "about row 1,") })
	p.wait("the ID in the address", func() bool { return strings.Contains(p.address(), "from=orders%2F0001500-A") })
	p.reload()
	p.wait("the same place", func() bool { return len(p.rowIDs()) > 0 && p.rowIDs()[0] == "orders/0001500-A" })

	p.press("/")
	p.typing("orders/0001500-B")
	p.press("Enter")
	p.see("There is no orders/0001500-B in Orders. This is where it would stand.")
	p.wait("the row behind it", func() bool { return len(p.rowIDs()) > 0 && p.rowIDs()[0] == "orders/0001501-A" })

	p.press("Home")
	p.wait("the first row", func() bool { return len(p.rowIDs()) > 0 && p.rowIDs()[0] == "orders/0000001-A" })
	p.press("ArrowDown", "ArrowDown", "Enter")
	p.wait("the document", func() bool { return strings.Contains(p.address(), "/doc?id=orders%2F0000003-A") })
	p.back()
	p.wait("the list", func() bool { return len(p.rowIDs()) > 0 && p.rowIDs()[0] == "orders/0000001-A" })
}

func (p *tab) whereNow() (text string) {
	p.t.Helper()
	p.eval(`document.querySelector('.where-now')?.textContent ?? ''`, &text)
	return text
}

// Ensure that the scrollbar leads to about the place where it is dropped, and that rows go on in both directions from there.
func TestDocuments_Scrollbar(t *testing.T) {
	s := startStudio(t)
	orders(s, 3000)
	p := s.open("/studio/db/shop/documents?collection=Orders&order=id")
	p.see("orders/0000001-A")
	var box struct{ X, Y, Height float64 }
	p.eval(`(({x, y, width, height}) => ({X: x + width / 2, Y: y, Height: height}))(document.querySelector('.scroll-track').getBoundingClientRect())`, &box)
	p.clickAt(box.X, box.Y+box.Height/2, 1)
	p.wait("the middle", func() bool {
		ids := p.rowIDs()
		return len(ids) > 0 && ids[0] > "orders/0001000-A" && ids[0] < "orders/0002000-A"
	})
	at := p.rowIDs()[0]
	for range 40 {
		p.wheel(-800)
	}
	p.wait("rows above", func() bool { ids := p.rowIDs(); return len(ids) > 0 && ids[0] < at })
	p.clickAt(box.X, box.Y+box.Height-1, 1)
	p.wait("the end", func() bool { return slices.Contains(p.rowIDs(), "orders/0003000-A") })
}

// Ensure that text in IDs and values is shown as text, and digits as they are stored.
func TestDocuments_Text(t *testing.T) {
	s := startStudio(t)
	id := `a/<script>alert(1)</script>"'&amp;`
	s.put(id, "<b>As</b>", `{"A":"<img src=x onerror=alert(2)>","B":"\"q\" & 'r'","N":9007199254740993,"P":1.10,"E":1e400,"O":{"n":1.0}}`)
	p := s.open("/studio/db/shop/documents?collection=" + escaped("<b>As</b>") + "&order=id")
	p.see(id)
	for _, text := range []string{`<b>As</b>`, `<img src=x onerror=alert(2)>`, `"q" & 'r'`, `9007199254740993`, `1.10`, `1e400`} {
		p.see(text)
	}
	p.click("link", id)
	p.wait("the document", func() bool { return strings.Contains(p.address(), "/doc?id="+escaped(id)) })
	p.back()
	p.click("button", "Columns")
	p.click("menuitemcheckbox", "O")
	p.see(`{"n":1.0}`)
}

// Ensure that columns are chosen and resized, and that both are remembered of their collection alone.
func TestDocuments_Columns(t *testing.T) {
	s := startStudio(t)
	orders(s, 50)
	s.put("others/1", "Others", `{"Status":"x"}`)
	p := s.open("/studio/db/shop/documents?collection=Orders&order=id")
	p.find("columnheader", "Total*")
	p.press("c")
	p.click("menuitemcheckbox", "Total")
	p.lacks("columnheader", "Total*")
	var before, after float64
	const width = `document.querySelector('.head-row [data-column="Status"]').parentElement.offsetWidth`
	p.eval(width, &before)
	p.focus("separator", "Width of Status")
	p.press("ArrowRight", "ArrowRight")
	p.until(width + ` > ` + fmt.Sprint(before))
	p.eval(width, &after)
	p.reload()
	p.find("columnheader", "Status*")
	p.lacks("columnheader", "Total*")
	p.until(width + ` === ` + fmt.Sprint(after))
	p.visit("/studio/db/shop/documents?collection=Others")
	p.find("columnheader", "Status*")
	p.visit("/studio/db/shop/documents?collection=Orders&order=id")
	p.click("button", "Columns")
	p.click("menuitem", "As at the beginning")
	p.find("columnheader", "Total*")
}

// Ensure that rows are selected by keys, exported as they are stored, and deleted after a question.
func TestDocuments_Selection(t *testing.T) {
	s := startStudio(t)
	orders(s, 30)
	p := s.open("/studio/db/shop/documents?collection=Orders&order=id")
	p.see("orders/0000001-A")
	p.press("ArrowDown", "x", "Shift+ArrowDown", "ArrowDown", "ArrowDown", "Space")
	p.see("3 selected")
	dir := p.downloads()
	p.click("button", "Export")
	text := p.downloaded(dir, "*.ndjson")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], `{"Status":"open","Total":0.10,"Big":9007199254740993,"@metadata":{`) || !strings.Contains(lines[2], `"@id":"orders/0000004-A"`) {
		t.Errorf("got %s", text)
	}
	p.click("button", "Delete …")
	p.in("dialog", "Delete 3 documents?").click("button", "Cancel")
	p.see("3 selected")
	p.press("Delete")
	p.in("dialog", "Delete 3 documents?").click("button", "Delete 3 documents")
	p.see("27 documents")
	p.hide("selected")
	for _, id := range []string{"orders/0000001-A", "orders/0000002-A", "orders/0000004-A"} {
		if s.stored(id) != "" {
			t.Errorf("%s is there", id)
		}
	}
	if ids := p.rowIDs(); len(ids) == 0 || ids[0] != "orders/0000003-A" {
		t.Errorf("the list begins with %v", ids)
	}
}

// Ensure that a list follows its filter, that the filter is in the address, and that back leads to the state before.
func TestDocuments_Filter(t *testing.T) {
	s := startStudio(t)
	orders(s, 300)
	p := s.open("/studio/db/shop/documents?collection=Orders&order=id")
	p.see("orders/0000001-A")
	p.press("p")
	p.typing("orders/00002")
	p.press("Enter")
	p.wait("the filtered rows", func() bool { ids := p.rowIDs(); return len(ids) > 0 && ids[0] == "orders/0000200-A" })
	if !strings.Contains(p.address(), "prefix=orders%2F00002") {
		t.Errorf("the address is %s", p.address())
	}
	p.press("p")
	p.fill("textbox", "IDs that begin with", "none")
	p.press("Enter")
	p.see("No ID here begins with none")
	p.back()
	p.wait("all rows", func() bool { ids := p.rowIDs(); return len(ids) > 0 && ids[0] == "orders/0000001-A" })
}

// Ensure that what another client changes is announced, and shown when it is asked for.
func TestDocuments_Newer(t *testing.T) {
	s := startStudio(t)
	orders(s, 5)
	p := s.open("/studio/db/shop/documents?collection=Orders&order=id")
	p.see("orders/0000005-A")
	p.wait("the feed", func() bool {
		return slices.ContainsFunc(p.requests(), func(url string) bool { return strings.Contains(url, "/changes") })
	})
	// The feed has its position when its reply has begun: until then a write would not be seen.
	p.wait("the news", func() bool {
		s.put("orders/0000006-A", "Orders", `{"Status":"new"}`)
		s.put("others/1", "Others", `{}`)
		return p.has("button", "1 changed")
	})
	if slices.Contains(p.rowIDs(), "orders/0000006-A") {
		t.Error("the list has moved by itself")
	}
	p.click("button", "1 changed")
	p.see("orders/0000006-A")
	p.see("6 documents")
}

// Ensure that an empty database says how documents come in, and shows the first one when it comes.
func TestDocuments_Empty(t *testing.T) {
	s := startStudio(t)
	p := s.open("/studio/db/shop/documents")
	p.see("shop has no documents yet.")
	p.see("curl -X PUT")
	p.see(s.url + "/databases/shop/docs?id=users/")
	p.auditEverywhere("an empty database")
	p.wait("the feed", func() bool {
		return slices.ContainsFunc(p.requests(), func(url string) bool { return strings.Contains(url, "/changes") })
	})
	p.wait("the document", func() bool {
		s.put("users/1", "Users", `{"Name":"Ann"}`)
		return !p.has("heading", "shop has no documents yet.") && p.has("link", "users/1")
	})
}

// Ensure that a token which may only read sees no way to write.
func TestDocuments_ReadOnly(t *testing.T) {
	s, tokens, _ := startGuarded(t)
	orders(s, 5)
	p := s.open("/studio/db/shop/documents?collection=Orders&order=id")
	p.signIn(tokens["read"])
	p.see("orders/0000005-A")
	for _, name := range []string{"New", "Import"} {
		if p.has("link", name) {
			t.Errorf("there is %s", name)
		}
	}
	p.press("ArrowDown", "x")
	p.see("1 selected")
	p.find("button", "Export")
	p.lacks("button", "Delete …")
	p.press("Delete", "n")
	p.lacks("dialog", "Delete*")
	p.visit("/studio/databases")
	p.see("shop")
	p.lacks("button", "New database*")
	p.lacks("button", "More about shop")
}

// Ensure that a row has two lines in a narrow window, and that a touch opens its document.
func TestDocuments_Narrow(t *testing.T) {
	s := startStudio(t)
	orders(s, 300)
	p := s.open("/studio/databases")
	p.viewport(360, 700)
	p.visit("/studio/db/shop/documents?collection=Orders&order=id")
	p.see("orders/0000001-A")
	p.until(`document.querySelector('.canvas .row').offsetHeight === 56`)
	p.until(`document.documentElement.scrollWidth <= 360`)
	p.choose("combobox", "Collection", "All documents (300)")
	p.wait("all documents", func() bool { return !strings.Contains(p.address(), "collection=") })
	p.see("orders/0000001-A")
	p.click("link", "orders/0000002-A")
	p.wait("the document", func() bool { return strings.Contains(p.address(), "/doc?id=orders%2F0000002-A") })
}

// Ensure that the list can be used by everyone.
func TestDocuments_Audit(t *testing.T) {
	s := startStudio(t)
	orders(s, 300)
	p := s.open("/studio/db/shop/documents?collection=Orders&order=id")
	p.see("orders/0000001-A")
	p.auditEverywhere("the list")
	p.press("ArrowDown", "x")
	p.see("1 selected")
	p.auditEverywhere("the list with a selection")
	p.press("Control+k")
	p.find("dialog", "All commands")
	p.auditEverywhere("the palette")
	p.press("Escape", "?")
	p.find("dialog", "Keys")
	p.auditEverywhere("the keys")
	p.press("Escape", "c")
	p.find("menu", "")
	p.auditEverywhere("the columns")
}

// Ensure that the newest documents come first, that they are numbered and found again at both ends, and that an ID leads to the order of IDs, from which back leads to where one was.
func TestDocuments_NewestFirst(t *testing.T) {
	s := startStudio(t)
	orders(s, 3000)
	s.put("orders/0000007-A", "Orders", `{"Status":"changed"}`)
	p := s.open("/studio/db/shop/documents?collection=Orders")
	first := func(want string) {
		t.Helper()
		p.wait("first of all "+want, func() bool { ids := p.rowIDs(); return len(ids) > 0 && ids[0] == want })
	}
	first("orders/0000007-A")
	if ids := p.rowIDs(); ids[1] != "orders/0003000-A" {
		t.Errorf("got %v", ids)
	}
	p.press("End")
	p.wait("the oldest", func() bool { return slices.Contains(p.rowIDs(), "orders/0000001-A") })
	p.wait("its number", func() bool { return strings.HasSuffix(p.whereNow(), "–3,000 of 3,000") })
	last := p.rowIDs()
	p.wait("the place in the address", func() bool { return strings.Contains(p.address(), "from=") })
	p.reload()
	p.wait("the same rows", func() bool { return slices.Contains(p.rowIDs(), last[0]) })

	p.press("/")
	p.typing("orders/0001500-A")
	p.press("Enter")
	first("orders/0001500-A")
	if ids := p.rowIDs(); ids[1] != "orders/0001501-A" || !strings.Contains(p.address(), "order=id") {
		t.Errorf("got %v at %s", ids, p.address())
	}
	p.find("button", "By ID")
	p.back()
	p.wait("where one was", func() bool { return slices.Contains(p.rowIDs(), last[0]) })
	p.press("Home")
	first("orders/0000007-A")
	p.press("o")
	first("orders/0000001-A")
	p.click("button", "By ID")
	p.click("menuitemcheckbox", "Newest first")
	first("orders/0000007-A")
}

// Ensure that a collection is deleted after its name was typed, and nothing else.
func TestDocuments_DeleteCollection(t *testing.T) {
	s := startStudio(t)
	orders(s, 300)
	s.put("others/1", "Others", `{}`)
	p := s.open("/studio/db/shop/documents?collection=Orders")
	p.see("300 documents")
	p.click("button", "More about Orders")
	p.click("menuitem", "Delete all its documents …")
	dialog := p.in("dialog", "Delete 300 documents of Orders?")
	dialog.fill("textbox", "Type Orders to go on", "orders")
	p.press("Enter")
	dialog.fill("textbox", "Type Orders to go on", "Orders")
	p.press("Enter")
	p.wait("the operations", func() bool { return strings.Contains(p.address(), "/operations") })
	p.wait("the end", func() bool { return s.stored("orders/0000300-A") == "" && s.stored("orders/0000001-A") == "" })
	if s.stored("others/1") == "" {
		t.Error("another collection has lost a document")
	}
}
