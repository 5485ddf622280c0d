package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// hold keeps the page from seeing replies to requests of a method whose address contains part, as if they were on their way
// for long. The server has carried them out by then. waits waits until n of them are held; release lets them in, the last one
// first, and later ones at once. Requests that the page ends are ended.
func (p *tab) hold(method, part string) (waits func(n int), release func()) {
	p.t.Helper()
	p.eval(`(() => {
		const real = window.fetch;
		window.__held = [];
		window.__release = async () => {
			window.fetch = real;
			for (const go of window.__held.splice(0).reverse()) {
				go();
				await new Promise((done) => setTimeout(done, 30));
			}
		};
		window.fetch = async (path, options = {}) => {
			const reply = await real(path, options);
			if ((options.method ?? 'GET') !== `+quoted(method)+` || !String(path).includes(`+quoted(part)+`)) return reply;
			await new Promise((go, stop) => {
				window.__held.push(go);
				options.signal?.addEventListener('abort', () => stop(new DOMException('', 'AbortError')));
			});
			return reply;
		};
		const uploads = XMLHttpRequest.prototype, {open, addEventListener} = uploads;
		uploads.open = function(how, path) { this.held = how === `+quoted(method)+` && String(path).includes(`+quoted(part)+`); return open.call(this, how, path); };
		uploads.addEventListener = function(event, run) {
			return addEventListener.call(this, event, (e) => { if (event === 'load' && this.held && window.fetch !== real) window.__held.push(() => run(e)); else run(e); });
		};
	})()`, nil)
	waits = func(n int) { p.t.Helper(); p.until(fmt.Sprintf(`window.__held.length === %d`, n)) }
	release = func() { p.t.Helper(); p.eval(`window.__release()`, nil); p.settled(); p.rest() }
	return waits, release
}

// rest lets the page do what a reply has made it do.
func (p *tab) rest() {
	p.t.Helper()
	p.eval(`new Promise((done) => setTimeout(() => requestAnimationFrame(() => setTimeout(done, 50)), 50))`, nil)
}

// Ensure that a preview that comes after the text was changed is none of the new text: the page deleted what the new text finds,
// and asked for no number, since the old text found few.
func TestPatch_PreviewOfAnotherText(t *testing.T) {
	s := startStudio(t)
	s.putMany("Orders", 200, func(i int) (string, string) {
		status := "paid"
		if i < 3 {
			status = "cancelled"
		}
		return fmt.Sprintf("orders/%03d", i), `{"Status":"` + status + `"}`
	})
	p := s.open("/studio/db/shop/patch?delete=true")
	for _, c := range []struct {
		what   string
		change func()
		button string
	}{
		{"query", func() { p.fill("textbox", "Query and script", "from Orders") }, "Delete …"},
		{"parameter", func() { p.fill("textbox", "$status", "paid") }, "Delete …"},
		{"thing to do", func() { p.click("tab", "Patch") }, "Run …"},
	} {
		p.fill("textbox", "Query and script", "from Orders where Status = $status")
		p.fill("textbox", "$status", "cancelled")
		waits, release := p.hold("POST", "/preview")
		p.press("Control+Enter")
		waits(1)
		c.change()
		release()
		if p.find("button", c.button).properties["disabled"] != "true" {
			t.Errorf("another %s: the preview of the one before enables the button", c.what)
		}
		p.hide("would be deleted")
	}
	p.click("tab", "Delete")

	// What was previewed is what is done, and the number of more than 100 has to be typed.
	p.fill("textbox", "Query and script", "from Orders where Status = $status")
	p.fill("textbox", "$status", "paid")
	p.press("Control+Enter")
	p.click("button", "Delete 197 documents …")
	dialog := p.in("dialog", "Delete 197 documents?")
	dialog.fill("textbox", "Type 197 to go on", "197")
	dialog.click("button", "Delete")
	p.see("197 documents were deleted")
	if s.stored("orders/000") == "" || s.stored("orders/199") != "" {
		t.Error("the wrong documents were deleted")
	}
}

// Ensure that nothing is previewed in place of a run that is under way: its progress and its button to cancel would be gone.
func TestPatch_NoPreviewWhileItRuns(t *testing.T) {
	s := startStudio(t)
	s.putMany("Orders", 20, func(i int) (string, string) { return fmt.Sprintf("orders/%02d", i), `{"n":1}` })
	p := s.open("/studio/db/shop/patch")
	p.fill("textbox", "Query and script", "from Orders update { this.n = 2 }")
	p.press("Control+Enter")
	p.see("20 documents would be patched")
	waits, release := p.hold("GET", "/jay/v1/operations")
	p.click("button", "Run on 20 documents*")
	p.in("dialog", "Run *").click("button", "Run")
	waits(1)
	p.focus("textbox", "Query and script")
	p.press("Control+Enter")
	p.rest()
	p.see("under way")
	p.find("button", "Cancel")
	if p.find("button", "Preview*").properties["disabled"] != "true" {
		t.Error("a preview is possible while the patch runs")
	}
	release()
	p.see("20 documents were visited")
	if !strings.Contains(s.stored("orders/07"), `"n":2`) {
		t.Error("it was not done")
	}
}

// Ensure that a change of an attachment gives the page the version that it has made, and no later one: what another writer had
// written meanwhile was overwritten by the next save, without a word.
func TestDocument_AttachmentsAndAnotherWriter(t *testing.T) {
	for _, c := range []struct {
		name, method string
		change       func(t *testing.T, p *tab)
	}{
		{"deleted", "DELETE", func(t *testing.T, p *tab) {
			p.click("button", "Delete the attachment a.txt")
			p.in("dialog", "Delete a.txt?").click("button", "Delete")
		}},
		{"attached", "PUT", func(t *testing.T, p *tab) {
			file := filepath.Join(t.TempDir(), "b.txt")
			if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
				t.Fatal(err)
			}
			p.upload("input[type=file]", file)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startStudio(t)
			s.put("orders/1", "Orders", `{"Total":1}`)
			s.want(201, "PUT", "/databases/shop/attachments?id=orders/1&name=a.txt", "hello")
			p := s.openDocument("orders/1")
			waits, release := p.hold(c.method, "/attachments?")
			c.change(t, p)
			waits(1)
			s.put("orders/1", "Orders", `{"Total":1,"Paid":true}`)
			release()
			p.see("Another writer has changed this document")
			p.caretAt(`"Total": 1`, true)
			p.insert(`"Total": 2`)
			p.allow("status of 409")
			p.press("Control+s")
			p.see("Not saved: another writer was quicker.")
			s.waitStored("orders/1", `{"Total":1,"Paid":true`)

			// A page that has loaded the newer version by then keeps it.
			p.click("button", "Keep theirs")
			p.until(`document.querySelector('.editor-area').value.includes('Paid')`)
			s.want(201, "PUT", "/databases/shop/attachments?id=orders/1&name=a.txt", "hello")
			p.reload()
			p.find("textbox", "Document orders/1")
			waits, release = p.hold(c.method, "/attachments?")
			c.change(t, p)
			waits(1)
			s.put("orders/1", "Orders", `{"Total":3}`)
			p.click("button", "More")
			p.click("menuitem", "Load again")
			p.until(`document.querySelector('.editor-area').value.includes('"Total": 3')`)
			release()
			p.caretAt(`"Total": 3`, true)
			p.insert(`"Total": 4`)
			p.press("Control+s")
			s.waitStored("orders/1", `{"Total":4,"@`)
		})
	}
}

// Ensure that a document that is saved is not stored a second time, under another ID, by the key, by the button or by the
// palette, until something of it has changed.
func TestNew_SavedOnce(t *testing.T) {
	s := startStudio(t)
	p := s.open("/studio/db/shop/new?collection=Orders")
	stored := func() int64 {
		var n int64
		for _, c := range gjson.Get(s.want(200, "GET", "/jay/v1/databases/shop/collections", "").text, "collections").Array() {
			if c.Get("name").String() == "Orders" {
				n = c.Get("documents").Int()
			}
		}
		return n
	}
	saveIs := func(disabled string) {
		t.Helper()
		p.wait("the button", func() bool { return p.find("button", "Save*").properties["disabled"] == disabled })
	}
	p.focus("textbox", "Text of the new document")
	p.press("Control+a")
	p.insert(`{"Total":1}`)
	p.press("Control+s")
	first := p.savedID()
	saveIs("true")
	p.press("Control+s")
	p.rest()
	p.press("Control+k")
	p.typing("save")
	p.press("Enter")
	p.rest()
	if n, id := stored(), p.savedID(); n != 1 || id != first {
		t.Errorf("%d documents are stored, the last one as %s", n, id)
	}

	// The button, too, is of no use when it has done its work.
	p.focus("textbox", "Text of the new document")
	p.press("Control+a")
	p.insert(`{"Total":2}`)
	p.click("button", "Save*")
	p.until(`document.querySelector('.new-saved').textContent !== ` + quoted(first))
	p.rest()
	saveIs("true")
	if n := stored(); n != 2 {
		t.Errorf("%d documents are stored, want 2", n)
	}

	// Another ID makes it another document.
	p.fill("textbox", "ID", "orders/ann")
	saveIs("")
	p.press("Control+s")
	p.until(`document.querySelector('.new-saved').textContent === 'orders/ann'`)
	p.rest()
	saveIs("true")
	p.click("button", "Write another")
	saveIs("")
}

// Ensure that what comes late says nothing about what is on the page by then: a look for other writers before a save of the
// page, a newer version after something was typed, the comparison of revisions after others were chosen.
func TestDocument_LateReplies(t *testing.T) {
	t.Run("look", func(t *testing.T) {
		s := startStudio(t)
		s.put("orders/1", "Orders", `{"Total":1}`)
		p := s.openDocument("orders/1")
		waits, release := p.hold("HEAD", "/docs?")
		p.eval(`dispatchEvent(new Event('focus'))`, nil)
		waits(1)
		p.caretAt(`"Total": 1`, true)
		p.insert(`"Total": 2`)
		p.press("Control+s")
		p.see("Saved orders/1.")
		p.rest()
		release()
		p.hide("Another writer has changed this document")
	})
	t.Run("load", func(t *testing.T) {
		s := startStudio(t)
		s.put("orders/1", "Orders", `{"Total":1}`)
		p := s.openDocument("orders/1")
		s.put("orders/1", "Orders", `{"Total":1,"Paid":true}`)
		p.eval(`dispatchEvent(new Event('focus'))`, nil)
		waits, release := p.hold("GET", "/document?")
		p.click("button", "Load the newer version")
		waits(1)
		p.caretAt(`"Total": 1`, true)
		p.insert(`"Total": 2`)
		release()
		if text := p.value("textbox", "Document orders/1"); !strings.Contains(text, `"Total": 2`) {
			t.Errorf("what was typed is gone: %s", text)
		}
		p.find("button", "Compare with mine")
	})
	t.Run("revisions", func(t *testing.T) {
		s := startStudio(t)
		s.keepRevisions("Orders")
		for i := range 4 {
			s.put("orders/1", "Orders", fmt.Sprintf(`{"Total":%d}`, i+1))
		}
		p := s.open("/studio/db/shop/doc?id=orders/1&view=revisions")
		p.see(`"Total": 3`)
		waits, release := p.hold("GET", "changeVector=")
		p.eval(`document.querySelectorAll('input[name=revision-from]')[2].click()`, nil)
		p.eval(`document.querySelectorAll('input[name=revision-from]')[3].click()`, nil)
		waits(4)
		release()
		var shown string
		p.eval(`document.querySelector('.revisions-shown').textContent`, &shown)
		if !strings.Contains(shown, `"Total": 1`) || strings.Contains(shown, `"Total": 2`) {
			t.Errorf("the first version is chosen, and the page shows %s", shown)
		}
	})
	t.Run("delete", func(t *testing.T) {
		s := startStudio(t)
		s.keepRevisions("Orders")
		s.put("orders/1", "Orders", `{"Total":1}`)
		p := s.openDocument("orders/1")
		waits, _ := p.hold("GET", "/document?")
		p.caretAt(`"Total": 1`, true)
		p.insert(`"Total": 2`)
		p.press("Control+s")
		p.see("Saved orders/1.")
		waits(1)
		p.click("button", "Delete") // to undo it would write what was there before the save
		p.in("dialog", "Delete orders/1?").click("button", "Cancel")
	})
}

// Ensure that no key brings back a document that the page has found to be deleted: there is no button that does.
func TestDocument_MissingIsNotSaved(t *testing.T) {
	s := startStudio(t)
	s.keepRevisions("Orders")
	s.put("orders/1", "Orders", `{"Total":1}`)
	p := s.openDocument("orders/1")
	s.want(204, "DELETE", "/databases/shop/docs?id=orders/1", "")
	p.allow("status of 404")
	p.click("button", "More")
	p.click("menuitem", "Load again")
	p.see("There is no document with this ID.")
	p.press("Control+s", "e", "Control+s")
	p.rest()
	p.see("There is no document with this ID.")
	if text := s.stored("orders/1"); text != "" {
		t.Errorf("stored: %s", text)
	}
	p.press("v")
	p.click("button", "Bring this version back")
	p.press("Control+s")
	s.waitStored("orders/1", `{"Total":1`)
	p.click("link", "Query")
	p.find("textbox", "Query in RQL")
}

// Ensure that the pages after the first are of the query that is shown, and so is the number of all answers, whatever was typed
// meanwhile.
func TestQuery_PagesOfWhatIsShown(t *testing.T) {
	s := startStudio(t)
	s.putMany("Orders", 120, func(i int) (string, string) {
		return fmt.Sprintf("orders/%03d", i), fmt.Sprintf(`{"Kind":%q}`, []string{"a", "b"}[i%2])
	})
	p := s.open("/studio/db/shop/query")
	p.fill("textbox", "Query in RQL", "from Orders where Kind = $kind")
	p.fill("textbox", "$kind", "a")
	p.press("Control+Enter")
	p.see("rows 1–50, more follow")
	p.fill("textbox", "$kind", "c")
	p.click("button", "Count all")
	p.see("of 60, counted in")
	p.fill("textbox", "Query in RQL", "from Orders where Kind = 'b'")
	p.lacks("textbox", "$kind") // what is below it moves up
	p.click("button", "Next")
	p.see("rows 51–60, the last ones")
	p.find("link", "orders/118")
	p.click("button", "Before")
	p.see("rows 1–50, more follow")
	p.find("link", "orders/000")
	p.focus("textbox", "Query in RQL")
	p.press("Control+Enter")
	p.find("link", "orders/001")
}

// Ensure that what comes late is drawn neither into another text nor over what is shown by then: where a query is wrong, and
// how one is answered with the index that was made for it.
func TestQuery_LateReplies(t *testing.T) {
	s := startStudio(t)
	s.putMany("Orders", 300, func(i int) (string, string) { return fmt.Sprintf("orders/%03d", i), fmt.Sprintf(`{"N":%d}`, i) })
	p := s.open("/studio/db/shop/query")
	p.allow("status of 400")
	p.fill("textbox", "Query in RQL", "from Orders where N >")
	waits, release := p.hold("POST", "/query")
	p.press("Control+Enter")
	waits(1)
	p.fill("textbox", "Query in RQL", "from Orders where N = 7 and true")
	release()
	if e := p.find("textbox", "Query in RQL"); e.properties["invalid"] == "true" {
		t.Error("the error of another query is shown in this one")
	}
	p.find("alert", "")

	p.fill("textbox", "Query in RQL", "from Orders where N = 7")
	p.press("Control+Enter")
	p.find("link", "orders/007")
	p.click("tab", "Explain")
	waits, release = p.hold("PUT", "/indexes")
	p.click("button", "Make this index")
	waits(1)
	p.click("tab", "Table")
	p.find("link", "orders/007")
	release()
	p.see("The index on N is ready.")
	p.rest()
	p.find("link", "orders/007")
}

// Ensure that a jump that another one has overtaken moves nothing, and says nothing about the rows of the other one.
func TestDocuments_JumpOvertaken(t *testing.T) {
	s := startStudio(t)
	s.putMany("Orders", 500, func(i int) (string, string) { return fmt.Sprintf("orders/%03d", i), `{"n":1}` })
	p := s.open("/studio/db/shop/documents?collection=Orders&order=id")
	jump := func(id string) {
		p.focus("searchbox", "Search or jump to an ID")
		p.press("Control+a")
		p.insert(id)
		p.press("Enter")
	}
	waits, release := p.hold("GET", "from=orders%2F400")
	jump("orders/400")
	waits(1)
	jump("orders/003")
	p.until(`document.querySelector('.canvas .row.active')?.textContent.includes('orders/003')`)
	release()
	p.rest()
	p.until(`document.querySelector('.canvas .row.active')?.textContent.includes('orders/003')`)
	p.hide("There is no orders/400")
}

// Ensure that no preview of a computed index stands by another declaration.
func TestIndexes_PreviewOfAnotherText(t *testing.T) {
	s := startStudio(t)
	s.put("orders/1", "Orders", `{"Customer":"ann","Total":1.10}`)
	p := s.open("/studio/db/shop/indexes")
	p.press("m")
	d := p.in("dialog", "New computed index")
	declaration := func(member string) {
		d.fill("textbox", "Declaration", `{"name":"I","maps":[{"collection":"Orders","select":[{"name":"`+member+`"}]}]}`)
	}
	declaration("Total")
	d.click("button", "Preview")
	p.see(`{"Total":1.10}`)
	declaration("Customer")
	p.hide(`{"Total":1.10}`)
	waits, release := p.hold("POST", "/preview")
	d.click("button", "Preview")
	waits(1)
	declaration("Total")
	release()
	p.hide(`{"Customer":"ann"}`)
	d.click("button", "Preview")
	p.see(`{"Total":1.10}`)
	d.fill("textbox", "Preview with document", "orders/2")
	p.hide(`{"Total":1.10}`)
}

// Ensure that a rule of revisions is saved without those that others have changed since the page was loaded.
func TestSettings_RulesOfOthers(t *testing.T) {
	s := startStudio(t)
	s.keepRevisions("Orders")
	p := s.open("/studio/db/shop/settings")
	p.find("button", "Edit the rule of Orders")
	s.want(200, "POST", "/databases/shop/admin/revisions/config", `{"Default":null,"Collections":{"Orders":{},"Users":{"MinimumRevisionsToKeep":7}}}`)
	p.click("button", "Edit the rule of Orders")
	d := p.in("dialog", "Orders")
	d.fill("textbox", "Keep at least", "3")
	d.click("button", "Save")
	p.see("The rule is saved.")
	rules := s.want(200, "GET", "/jay/v1/databases/shop/settings", "").text
	if gjson.Get(rules, "revisions.Collections.Users.MinimumRevisionsToKeep").Int() != 7 || gjson.Get(rules, "revisions.Collections.Orders.MinimumRevisionsToKeep").Int() != 3 {
		t.Errorf("the rules are %s", rules)
	}
}

// Ensure that a part of the settings is not drawn anew, when something of it has ended, in place of the one that was chosen
// meanwhile.
func TestSettings_LateReplies(t *testing.T) {
	s := startStudio(t)
	s.put("orders/1", "Orders", `{}`)
	p := s.open("/studio/db/shop/settings?part=collections")
	waits, release := p.hold("GET", "/jay/v1/operations")
	p.click("button", "Rename Orders")
	d := p.in("dialog", "Rename Orders")
	d.fill("textbox", "New name", "Sales")
	d.click("button", "Rename")
	waits(1)
	p.click("tab", "Expiry")
	p.see("Expiration is")
	release()
	p.see("Orders is Sales now")
	p.rest()
	p.see("Expiration is")
	p.hide("A collection is the documents that name it.")
}

// Ensure that of two lists the one that was asked for last is shown, whichever comes last.
func TestLists_OlderOneLast(t *testing.T) {
	s := startStudio(t)
	s.put("orders/1", "Orders", `{}`)
	p := s.open("/studio/db/shop/ids")
	p.see("1 document, node tag")
	waits, release := p.hold("GET", "/ids")
	p.press("r")
	waits(1)
	s.put("orders/2", "Orders", `{}`)
	p.press("r")
	waits(2)
	release()
	p.rest()
	p.see("2 documents, node tag")

	s.want(201, "PUT", "/jay/v1/databases/shop/indexes", `{"collection":"Orders","index":{"fields":["N"]}}`)
	p.visit("/studio/db/shop/indexes")
	p.find("button", "Drop N of Orders")
	waits, release = p.hold("GET", "/indexes")
	waits(2) // the list and the computed ones, of which the page asks every five seconds
	p.click("button", "Drop N of Orders")
	p.in("dialog", "Drop N?").click("button", "Drop the index")
	waits(4)
	release()
	p.rest()
	if p.has("button", "Drop N of Orders") { // now: the next list, after five seconds, has it no more
		t.Error("the index that was dropped is shown again")
	}
	p.see("There are no indexes.")
}
