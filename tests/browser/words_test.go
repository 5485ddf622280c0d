package browser_test

import (
	"slices"
	"testing"
)

// foundIDs returns the IDs that a search for words has found, in their order, and what is marked in them.
func (p *tab) foundIDs() (ids, marks []string) {
	p.t.Helper()
	p.eval(`[...document.querySelectorAll('.found .id')].map((a) => a.textContent)`, &ids)
	p.eval(`[...document.querySelectorAll('.found mark')].map((m) => m.textContent)`, &marks)
	return ids, marks
}

// Ensure that the page of a collection finds documents by words, that it says whether an index answers, and that nothing of a document becomes HTML.
func TestDocuments_Words(t *testing.T) {
	s := startStudio(t)
	s.put("notes/1", "Notes", `{"Title":"Trees","Text":"The oak has <b>fallen</b> leaves","N":1}`)
	s.put("notes/2", "Notes", `{"Title":"Oaks","Text":"Acorns of many an oak, and of another oak"}`)
	s.put("notes/3", "Notes", `{"Title":"Beech","Text":"a wood"}`)
	p := s.open("/studio/db/shop/documents?collection=Notes")
	p.see("notes/3")
	p.press("w")
	p.typing("fallen")
	p.press("Enter")
	p.see("There is no index of words here, so each document is looked at")
	p.wait("what is found", func() bool {
		ids, marks := p.foundIDs()
		return slices.Equal(ids, []string{"notes/1"}) && slices.Equal(marks, []string{"fallen"})
	})
	p.see("<b>fallen</b>")
	p.audit("a search")

	s.want(201, "PUT", "/jay/v1/databases/shop/indexes", `{"collection":"Notes","index":{"name":"Words","kind":"text","fields":["Title","Text"],"options":{"analyzer":"english"}}}`)
	p.visit("/studio/db/shop/documents?collection=Notes&words=oaks")
	p.see("The index Words answers: it has the words of Title, Text.")
	p.wait("the best first", func() bool {
		ids, marks := p.foundIDs()
		return slices.Equal(ids, []string{"notes/2", "notes/1"}) && slices.Contains(marks, "Oaks")
	})
	p.see("2 documents")
	p.reload()
	p.see("The index Words answers")

	p.visit(`/studio/db/shop/documents?collection=Notes&words=elm`)
	p.see("No document of Notes has these words.")
	p.allow("400")
	p.visit(`/studio/db/shop/documents?collection=Notes&words=%22oak`)
	p.see("a phrase ends with a quotation mark")
	p.press("w")
	p.press("Escape")
	p.wait("all documents", func() bool { return len(p.rowIDs()) == 3 })
}
