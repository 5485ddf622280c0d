package browser_test

import "testing"

// Ensure that a database is made on the page of databases by its key.
func TestDatabases_Create(t *testing.T) {
	s := startServer(t)
	p := s.open("/studio/")
	p.see("There are no databases yet.")
	p.press("n")
	p.in("dialog", "New database").fill("textbox", "Name", "shop")
	p.press("Enter")
	p.wait("the database", func() bool { return s.call("GET", "/databases/shop/stats", "").status == 200 })
}
