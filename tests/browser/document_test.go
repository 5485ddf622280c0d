package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// openDocument opens the page of a document of shop.
func (s *studio) openDocument(id string) *tab {
	s.t.Helper()
	p := s.open("/studio/db/shop/doc?id=" + escaped(id))
	p.find("textbox", "Document "+id)
	return p
}

// caretAt puts the caret behind the first occurrence of a text in the editor, or selects it.
func (p *tab) caretAt(text string, selected bool) {
	p.t.Helper()
	p.eval(`(() => {
		const area = document.querySelector('.editor-area'), text = `+quoted(text)+`, i = area.value.indexOf(text);
		if (i < 0) throw new Error(text + ' is not in ' + area.value);
		area.focus();
		area.setSelectionRange(`+fmt.Sprint(selected)+` ? i : i + text.length, i + text.length);
	})()`, nil)
}

// keepRevisions makes shop keep the revisions of a collection.
func (s *studio) keepRevisions(collection string) {
	s.t.Helper()
	s.want(200, "POST", "/databases/shop/admin/revisions/config", `{"Default":null,"Collections":{"`+collection+`":{}}}`)
}

// Ensure that an edit changes what was edited and no other digit, and that ctrl-s saves it.
func TestDocument_Edit(t *testing.T) {
	s := startStudio(t)
	s.put("companies/7", "Companies", `{"Name":"Oak"}`)
	s.put("orders/1", "Orders", `{"Total":1.10,"Big":9007199254740993,"Huge":1e400,"Zero":-0,"Esc":"\u00e9\/","Company":"companies/7","Text":"<script>alert(1)</script> 'it\"s'"}`)
	p := s.openDocument("orders/1")
	p.see("9007199254740993")
	p.see("<script>alert(1)</script>")
	p.find("link", "companies/7")
	p.caretAt("1.10", true)
	p.typing("2.50")
	p.find("image", "Not saved")
	p.press("Control+s")
	p.see("Saved orders/1.")
	p.lacks("image", "Not saved")
	want := `{"Total":2.50,"Big":9007199254740993,"Huge":1e400,"Zero":-0,"Esc":"\u00e9\/","Company":"companies/7","Text":"<script>alert(1)</script> 'it\"s'","@metadata"`
	s.waitStored("orders/1", want)
	p.press("Control+z", "Control+z", "Control+z")
	p.until(`document.querySelector('.editor-area').value.includes('"Total": 1.10')`)
}

// Ensure that an error stands where it is, that nothing is stored then, and that what was
// typed stays.
func TestDocument_Error(t *testing.T) {
	s := startStudio(t)
	s.put("orders/1", "Orders", `{"Total":1.10}`)
	before := s.stored("orders/1")
	p := s.openDocument("orders/1")
	p.caretAt("1.10", true)
	p.press("Backspace")
	p.see("line 2, column 12: expected a value, but there is ,")
	if e := p.find("textbox", "Document orders/1"); e.properties["invalid"] != "true" {
		t.Errorf("the editor is not marked as invalid: %v", e.properties)
	}
	p.press("Control+s")
	p.until(`document.querySelector('.editor-area').selectionStart === document.querySelector('.editor-area').value.indexOf(',')`)
	if now := s.stored("orders/1"); now != before {
		t.Errorf("stored: %s", now)
	}
	p.typing("7")
	p.lacks("button", "line 2*")
	p.press("Control+s")
	s.waitStored("orders/1", `"Total":7,`)

	// The server's refusal stands on the page, and the text stays in the editor.
	p.allow("status of 400")
	p.caretAt(`"Orders"`, true)
	p.insert(`"Others"`)
	p.press("Control+s")
	p.find("alert", "")
	p.see("documents do not move")
	if text := p.value("textbox", "Document orders/1"); !strings.Contains(text, `"Others"`) {
		t.Errorf("what was typed is gone: %s", text)
	}

	// Where it names a place, the place is marked.
	p.focus("textbox", "Document orders/1")
	p.press("Control+a")
	p.insert("{\n  \"é\": \"é😀\",\n  \"Lone\": \"x\\ud800\"\n}")
	p.press("Control+s")
	p.see("line 3, column 13: surrogates must come in pairs")
}

// Ensure that a page with unsaved changes asks before it is left, by a link and by the back
// button, and goes when nothing was changed.
func TestDocument_Unsaved(t *testing.T) {
	s := startStudio(t)
	s.put("orders/1", "Orders", `{"Total":1.10}`)
	p := s.open("/studio/db/shop/query")
	p.visit("/studio/db/shop/documents?collection=Orders")
	p.press("g", "q")
	p.find("textbox", "Query in RQL")
	p.eval(`history.back()`, nil)
	p.until(`location.pathname.endsWith('/documents')`)
	p.click("link", "orders/1")
	p.find("textbox", "Document orders/1")
	p.caretAt("1.10", true)
	p.typing("5")
	p.click("link", "Query")
	p.in("dialog", "Leave without saving?").click("button", "Cancel")
	if !strings.Contains(p.address(), "/doc?") {
		t.Fatalf("the page was left: %s", p.address())
	}
	p.eval(`history.back()`, nil)
	p.in("dialog", "Leave without saving?").click("button", "Cancel")
	p.until(`location.pathname.endsWith('/doc')`)
	if text := p.value("textbox", "Document orders/1"); !strings.Contains(text, `"Total": 5`) {
		t.Errorf("what was typed is gone: %s", text)
	}
	p.press("Control+s")
	s.waitStored("orders/1", `"Total":5`)
	p.lacks("image", "Not saved")
	p.click("link", "Query")
	p.find("textbox", "Query in RQL")
}

// conflicting opens a document, lets another client write it, changes it and saves.
func conflicting(s *studio) *tab {
	s.put("orders/1", "Orders", `{"A":1,"B":"base","C":1.10,"D":[1,2]}`)
	p := s.openDocument("orders/1")
	s.put("orders/1", "Orders", `{"A":2,"B":"theirs","C":1.10,"D":[1,2],"E":9007199254740993}`)
	p.caretAt(`"base"`, true)
	p.insert(`"yours"`)
	p.caretAt(`1.10`, true)
	p.insert(`1.100`)
	p.allow("status of 409")
	p.press("Control+s")
	p.see("Not saved: another writer was quicker.")
	for _, part := range []string{"You began with", "Yours", `"B": "base",`, `"B": "theirs",`, `"B": "yours",`} {
		p.see(part)
	}
	return p
}

// Ensure that the merge of a conflict has what only one writer has changed, and asks about
// the rest.
func TestDocument_Conflict_Merge(t *testing.T) {
	s := startStudio(t)
	p := conflicting(s)
	p.click("button", "Edit the merge")
	p.see("1 value changed by both of you")
	if text := p.value("textbox", "Document orders/1"); !strings.Contains(text, `"A": 2`) || !strings.Contains(text, `"C": 1.100`) || !strings.Contains(text, `"B": "yours"`) {
		t.Errorf("merged: %s", text)
	}
	p.click("button", "Take theirs")
	p.press("Control+s")
	s.waitStored("orders/1", `{"A":2,"B":"theirs","C":1.100,"D":[1,2],"E":9007199254740993,"@metadata"`)
}

// Ensure that mine is saved over theirs only when that is asked for.
func TestDocument_Conflict_Mine(t *testing.T) {
	s := startStudio(t)
	p := conflicting(s)
	if text := s.stored("orders/1"); !strings.Contains(text, `"theirs"`) {
		t.Fatalf("stored: %s", text)
	}
	p.click("button", "Save mine over it")
	s.waitStored("orders/1", `{"A":1,"B":"yours","C":1.100,"D":[1,2],"@metadata"`)
}

// Ensure that theirs can be kept, and that undo brings mine back.
func TestDocument_Conflict_Theirs(t *testing.T) {
	s := startStudio(t)
	p := conflicting(s)
	p.click("button", "Keep theirs")
	p.until(`document.querySelector('.editor-area')?.value.includes('"theirs"')`)
	p.lacks("image", "Not saved")
	p.focus("textbox", "Document orders/1")
	p.press("Control+z")
	p.until(`document.querySelector('.editor-area').value.includes('"yours"')`)
	p.press("Control+s")
	s.waitStored("orders/1", `"B":"yours","C":1.100,"D":[1,2],"@metadata"`)
}

// Ensure that a document which another client has deleted is not written again silently.
func TestDocument_Conflict_Deleted(t *testing.T) {
	s := startStudio(t)
	s.put("orders/1", "Orders", `{"A":1}`)
	p := s.openDocument("orders/1")
	s.want(204, "DELETE", "/databases/shop/docs?id=orders/1", "")
	p.caretAt(`"A": 1`, false)
	p.typing("2")
	p.allow("status of 409", "status of 404")
	p.press("Control+s")
	p.see("another writer has deleted the document")
	if text := s.stored("orders/1"); text != "" {
		t.Fatalf("stored: %s", text)
	}
	p.click("button", "Save mine as a new document")
	s.waitStored("orders/1", `"A":12`)
}

// Ensure that a deletion of what revisions keep can be undone, and that another one asks once.
func TestDocument_Delete(t *testing.T) {
	s := startStudio(t)
	s.keepRevisions("Orders")
	s.put("orders/1", "Orders", `{"A":1.10,"Big":9007199254740993}`)
	s.put("logs/1", "Logs", `{"A":1}`)
	p := s.openDocument("orders/1")
	p.click("button", "Delete")
	p.see("Deleted orders/1.")
	p.wait("the deletion", func() bool { return s.stored("orders/1") == "" })
	p.until(`location.pathname.endsWith('/documents')`)
	p.click("button", "Undo")
	s.waitStored("orders/1", `{"A":1.10,"Big":9007199254740993,"@metadata":{"@collection":"Orders"`)
	p.find("textbox", "Document orders/1")

	p.visit("/studio/db/shop/doc?id=logs/1")
	p.click("button", "Delete")
	p.in("dialog", "Delete logs/1?").click("button", "Cancel")
	s.waitStored("logs/1", `"A":1`)
	p.click("button", "Delete")
	p.in("dialog", "Delete logs/1?").click("button", "Delete")
	p.wait("the deletion", func() bool { return s.stored("logs/1") == "" })
	p.lacks("button", "Undo")
}

// Ensure that a deletion does not take a version that one has not seen.
func TestDocument_Delete_Conflict(t *testing.T) {
	s := startStudio(t)
	s.keepRevisions("Orders")
	s.put("orders/1", "Orders", `{"A":1}`)
	p := s.openDocument("orders/1")
	s.put("orders/1", "Orders", `{"A":2}`)
	p.allow("status of 409")
	p.click("button", "Delete")
	p.see("Not deleted: another writer has changed the document")
	s.waitStored("orders/1", `"A":2`)
}

// Ensure that revisions are listed and compared, and that one comes back by saving it.
func TestDocument_Revisions(t *testing.T) {
	s := startStudio(t)
	s.keepRevisions("Orders")
	for i := range 3 {
		s.put("orders/1", "Orders", fmt.Sprintf(`{"Total":%d.10,"Same":true}`, i))
	}
	p := s.openDocument("orders/1")
	p.click("button", "3 versions")
	p.see(`"Total": 1.10`)
	p.see(`"Total": 2.10`)
	if n := len(p.all("radio", "Compare to*")); n != 3 {
		t.Fatalf("%d versions", n)
	}
	p.clickPart(p.all("radio", "Compare to*")[2])
	p.see(`"Total": 0.10`)
	p.click("button", "Bring this version back")
	p.until(`document.querySelector('.editor-area')?.value.includes('"Total": 0.10')`)
	s.waitStored("orders/1", `"Total":2.10`)
	p.press("Control+s")
	s.waitStored("orders/1", `"Total":0.10`)
	p.find("button", "4 versions")

	// The address has the view.
	p.visit("/studio/db/shop/doc?id=orders/1&view=revisions")
	p.see("Back to the text")
	p.auditEverywhere("revisions")
}

// Ensure that files are attached, taken back and removed, and that the text that is being
// typed is not touched.
func TestDocument_Attachments(t *testing.T) {
	s := startStudio(t)
	s.put("orders/1", "Orders", `{"A":1}`)
	p := s.openDocument("orders/1")
	p.caretAt(`"A": 1`, false)
	p.typing("7")
	file := filepath.Join(t.TempDir(), "a <b> & 'c'.txt")
	if err := os.WriteFile(file, []byte(strings.Repeat("hello ", 100_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	p.upload("input[type=file]", file)
	p.see("Attached a <b> & 'c'.txt.")
	p.find("link", "a <b> & 'c'.txt")
	if text := p.value("textbox", "Document orders/1"); !strings.Contains(text, `"A": 17`) {
		t.Errorf("the text has changed: %s", text)
	}
	p.press("Control+s")
	s.waitStored("orders/1", `"A":17`)
	p.lacks("image", "Not saved")
	dir := p.downloads()
	p.click("link", "a <b> & 'c'.txt")
	if got := p.downloaded(dir, "*.txt"); got != strings.Repeat("hello ", 100_000) {
		t.Errorf("downloaded %d bytes", len(got))
	}
	p.click("button", "Delete the attachment*")
	p.in("dialog", "Delete *").click("button", "Delete")
	p.lacks("link", "a <b> & 'c'.txt")
	if text := s.stored("orders/1"); gjson.Get(text, `\@metadata.\@attachments`).Exists() {
		t.Errorf("stored: %s", text)
	}
}

// Ensure that a clone has the text of the document, under an ID of its own.
func TestDocument_Clone(t *testing.T) {
	s := startStudio(t)
	s.put("orders/1", "Orders", `{"Total":1.10,"Big":9007199254740993}`)
	p := s.openDocument("orders/1")
	p.click("link", "Clone")
	p.find("textbox", "Text of the new document")
	p.until(`document.querySelector('.editor-area').value.includes('9007199254740993')`)
	p.fill("textbox", "ID", "orders/2")
	p.see("Will be saved as orders/2.")
	p.press("Control+s")
	p.see("Saved as orders/2")
	s.waitStored("orders/2", `{"Total":1.10,"Big":9007199254740993,"@metadata":{"@collection":"Orders"`)
}

// Ensure that IDs and texts full of what means something in HTML, URLs and JSON are shown and
// saved as they are.
func TestDocument_Hostile(t *testing.T) {
	s := startStudio(t)
	id := `x/<script>document.title="bad"</script>&a=b+c%20?#'"é😀`
	s.put(id, "Things", `{"<img src=x onerror=document.title='bad'>":"</textarea><script>document.title='bad'</script>","Quotes":"'\"\u2028","N":9007199254740993}`)
	p := s.openDocument(id)
	p.caretAt("9007199254740993", true)
	p.typing("1.10")
	p.press("Control+s")
	s.waitStored(id, `"</textarea><script>document.title='bad'</script>","Quotes":"'\"\u2028","N":1.10`)
	p.until(`document.title !== 'bad'`)
	p.see(id)
}

// Ensure that a document that is not there says so, and offers to write it.
func TestDocument_Missing(t *testing.T) {
	s := startStudio(t)
	p := s.blank()
	p.allow("status of 404")
	p.visit("/studio/db/shop/doc?id=users/none")
	p.see("There is no document with this ID.")
	p.click("link", "Write it")
	p.find("textbox", "Text of the new document")
	if got := p.value("textbox", "ID"); got != "users/none" {
		t.Errorf("the ID is %q", got)
	}
}

// Ensure that search, folding and formatting work on a text and change nothing in it that was
// not asked for.
func TestDocument_Search_Fold_Format(t *testing.T) {
	s := startStudio(t)
	var items []string
	for i := range 300 {
		items = append(items, fmt.Sprintf(`{"Name":"item %d","Price":%d.10}`, i, i))
	}
	s.put("orders/1", "Orders", `{"First":{"a":1,"b":2},"Lines":[`+strings.Join(items, ",")+`],"Last":"needle"}`)
	p := s.openDocument("orders/1")
	area := `document.querySelector('.editor-area')`

	// Search: the match comes into sight, also out of what is folded.
	p.caretAt(`"First"`, false)
	p.press("Control+f")
	p.typing("Item 29")
	p.see("1 of 11")
	p.press("Enter")
	p.see("2 of 11")
	p.until(`[...document.querySelectorAll('.m-now')].some((n) => n.textContent === 'item 29')`)
	p.press("Escape")
	p.until(`document.activeElement === ` + area)

	// Folding hides lines, and an edit beside what is folded changes only what was edited.
	p.click("button", "Fold")
	p.until(area + `.value.split('\n').length < 10`)
	p.see("1209") // the number of a line behind what is folded
	p.caretAt(`"needle"`, true)
	p.typing(`"new"`)
	p.press("Control+s")
	s.waitStored("orders/1", `{"First":{"a":1,"b":2},"Lines":[{"Name":"item 0","Price":0.10},`)
	s.waitStored("orders/1", `{"Name":"item 299","Price":299.10}],"Last":"new","@metadata"`)

	// What is folded is cut and put back as a whole.
	p.eval(area+`.setSelectionRange(`+area+`.value.indexOf('"First"'), `+area+`.value.indexOf('"Lines"'))`, nil)
	p.press("Delete")
	p.until(`!` + area + `.value.includes('First')`)
	p.press("Control+z")
	p.until(area + `.value.includes('"First": {\n    "a": 1')`)

	// Formatting changes white space only, and undo takes it back.
	p.eval(area+`.setSelectionRange(0, 0)`, nil)
	p.click("button", "Unfold")
	p.focus("textbox", "Document orders/1")
	p.press("Control+a")
	p.insert(`{"a":1.10,   "b":[1e400,{}]}`)
	p.press("Alt+Shift+f")
	p.until(area + ".value === " + quoted("{\n  \"a\": 1.10,\n  \"b\": [\n    1e400,\n    {}\n  ]\n}"))
	p.press("Control+z")
	p.until(area + ".value === " + quoted(`{"a":1.10,   "b":[1e400,{}]}`))
}

// Ensure that of parts which look the same when they are folded, the one that was selected is
// deleted, and that typing between them changes nothing else.
func TestEditor_FoldedTwins(t *testing.T) {
	s := startStudio(t)
	s.put("orders/1", "Orders", `{"L":[{"a":1,"b":1},{"a":2,"b":2},{"a":3,"b":3}]}`)
	p := s.openDocument("orders/1")
	fold := `[...document.querySelectorAll('.editor-number')].filter((n) => n.querySelector('.editor-fold:not(.folded)') && document.querySelectorAll('.editor-line')[n.dataset.row].textContent.trim() === '{')`
	for range 3 {
		before := 0
		p.eval(`document.querySelectorAll('.editor-fold.folded').length`, &before)
		p.eval(fold+`[`+`1 - (`+fold+`.length > 1 && document.querySelectorAll('.editor-number')[0] === `+fold+`[0] ? 0 : 1)].querySelector('.editor-fold').dispatchEvent(new PointerEvent('pointerdown', {bubbles: true, cancelable: true}))`, nil)
		p.until(fmt.Sprintf(`document.querySelectorAll('.editor-fold.folded').length === %d`, before+1))
	}
	area := `document.querySelector('.editor-area')`
	p.until(area + `.value.split('{⋯}').length === 4`)
	// The first of the three.
	p.eval(`(() => { const a = `+area+`; a.focus(); const i = a.value.indexOf('{⋯}'); a.setSelectionRange(i, a.value.indexOf('{⋯}', i + 1)); })()`, nil)
	p.press("Delete")
	p.until(area + `.value.split('{⋯}').length === 3`)
	p.press("Control+s")
	s.waitStored("orders/1", `{"L":[{"a":2,"b":2},{"a":3,"b":3}],`)
	p.press("Control+z")
	p.press("Control+s")
	s.waitStored("orders/1", `{"L":[{"a":1,"b":1},{"a":2,"b":2},{"a":3,"b":3}],`)
}

// Ensure that brackets, quotes and lines are typed as one expects.
func TestEditor_Typing(t *testing.T) {
	s := startStudio(t)
	p := s.open("/studio/db/shop/new?id=a/1")
	p.focus("textbox", "Text of the new document")
	p.press("Control+a")
	p.typing(`{"Name": "Ann", "Tags": ["a", "b"],` + "\n" + `"Sub": {` + "\n" + `"x": 1.10`)
	p.until(`document.querySelector('.editor-area').value === ` + quoted("{\"Name\": \"Ann\", \"Tags\": [\"a\", \"b\"],\n\"Sub\": {\n  \"x\": 1.10\n}}"))
	p.press("Control+s")
	s.waitStored("a/1", `{"Name":"Ann","Tags":["a","b"],"Sub":{"x":1.10}`)
	p.until(`document.querySelector('main').innerText.includes('Saved as')`) // the page is told later than the disk
	// Tab indents; Escape and then Tab leaves the editor.
	p.focus("textbox", "Text of the new document")
	p.press("Control+a", "Tab")
	p.until(`document.querySelector('.editor-area').value.startsWith('  {"Name"')`)
	p.press("Shift+Tab")
	p.until(`document.querySelector('.editor-area').value.startsWith('{"Name"')`)
	p.press("Escape", "Tab")
	p.until(`document.activeElement !== document.querySelector('.editor-area')`)
}

// Ensure that the beginning of a document is shown that is too large to be edited in a
// browser, with all of it to download, and that nothing is saved of it.
func TestDocument_TooLargeToEdit(t *testing.T) {
	s := startStudio(t)
	body := `{"Text":"` + strings.Repeat("x", 6<<20) + `"}`
	s.put("texts/1", "Texts", body)
	p := s.open("/studio/db/shop/doc?id=texts/1")
	p.see("does not edit it")
	p.until(`document.querySelector('.document-beginning').textContent.startsWith('{"Text":"xxx')`)
	p.until(`document.querySelector('main').textContent.length < 1 << 17`)
	p.lacks("button", "Save*")
	p.lacks("link", "Clone")
	dir := p.downloads()
	p.click("button", "Download")
	if got := p.downloaded(dir, "*.json"); !strings.HasPrefix(got, body[:len(body)-1]) {
		t.Errorf("got %d bytes", len(got))
	}
	p.press("Control+s")
	p.visit("/studio/db/shop/new?clone=texts/1")
	p.see("does not edit it")
	if got := s.stored("texts/1"); !strings.Contains(got, body[:len(body)-1]) {
		t.Error("the document has changed")
	}
}

// Ensure that a document of a megabyte is opened, typed in and saved, and that a key is
// answered quickly.
func TestDocument_Large(t *testing.T) {
	s := startStudio(t)
	var items []string
	for i := range 8000 {
		items = append(items, fmt.Sprintf(`{"Product":"products/%d-A","Quantity":%d,"Price":%d.10,"Note":"%s"}`, i, i, i, strings.Repeat("x", 60)))
	}
	s.put("orders/1", "Orders", `{"First":1,"Lines":[`+strings.Join(items, ",")+`],"Last":9007199254740993}`)
	p := s.open("/studio/db/shop/doc?id=orders/1")
	p.until(`document.querySelector('.editor-area')`)
	p.caretAt(`"First": 1`, false)
	p.eval(`window.__longest = 0; new PerformanceObserver((list) => { for (const e of list.getEntries()) window.__longest = Math.max(window.__longest, e.duration); }).observe({type: 'event', durationThreshold: 16, buffered: false})`, nil)
	p.typing("2345")
	p.until(`document.querySelector('.editor-line.current')?.textContent.includes('12345')`)
	var longest, rows float64
	p.eval(`window.__longest`, &longest)
	p.eval(`document.querySelectorAll('.editor-line').length`, &rows)
	t.Logf("the slowest key took %.0f ms; %.0f rows are drawn", longest, rows)
	if rows > 200 {
		t.Errorf("%.0f rows are drawn", rows)
	}
	p.press("Control+s")
	s.waitStored("orders/1", `{"First":12345,"Lines":[{"Product":"products/0-A","Quantity":0,"Price":0.10,`)

	// Of what is unfolded the lines around the caret are shown; search goes anywhere, and an edit
	// there changes that alone.
	p.eval(`document.querySelector('.editor-fold.folded').dispatchEvent(new PointerEvent('pointerdown', {bubbles: true, cancelable: true}))`, nil)
	p.until(`document.querySelector('.editor-area').value.includes('products/1-A')`)
	p.press("Control+f")
	p.insert("products/4000-A")
	p.see("1 of 1")
	p.press("Escape")
	p.until(`document.querySelector('.editor-area').value.includes('products/4001-A') && document.activeElement === document.querySelector('.editor-area')`)
	p.until(`document.querySelector('.editor-area').value.split('\n').length < 41_000`)
	p.see("24005") // the number of its line
	p.press("ArrowRight")
	p.insert("!")
	p.press("Control+s")
	s.waitStored("orders/1", `"Price":3999.10,"Note":"`+strings.Repeat("x", 60)+`"},{"Product":"products/4000-A!","Quantity":4000,"Price":4000.10,`)
	s.waitStored("orders/1", `],"Last":9007199254740993,"@metadata"`)
}

// Ensure that everything can be done by keyboard: from the list to a document, a change, its
// deletion.
func TestDocument_Keyboard(t *testing.T) {
	s := startStudio(t)
	s.put("orders/1", "Orders", `{"A":1}`)
	p := s.openDocument("orders/1")
	p.press("e")
	p.until(`document.activeElement === document.querySelector('.editor-area')`)
	p.press("Control+a")
	p.insert(`{"A":2,"@metadata":{"@collection":"Orders"}}`)
	p.press("Control+s")
	s.waitStored("orders/1", `"A":2`)
	p.press("Escape", "Tab") // out of the editor
	p.press("v")
	p.see("Back to the text")
	p.press("v")
	p.find("textbox", "Document orders/1")
	p.tabTo("button", "Delete")
	p.press("Enter")
	p.find("dialog", "Delete orders/1?")
	p.press("Enter")
	p.wait("the deletion", func() bool { return s.stored("orders/1") == "" })
}

// Ensure that the pages can be read and used at 360 px.
func TestDocument_Narrow(t *testing.T) {
	s := startStudio(t)
	s.put("orders/1", "Orders", `{"A":1.10}`)
	p := s.blank()
	p.viewport(360, 780)
	p.visit("/studio/db/shop/doc?id=orders/1")
	p.find("textbox", "Document orders/1")
	p.until(`document.documentElement.scrollWidth <= 360`)
	p.caretAt("1.10", true)
	p.typing("2")
	p.click("button", "Save")
	s.waitStored("orders/1", `"A":2`)
}
