package browser_test

import (
	"strings"
	"testing"
)

// Ensure that a query that is live shows what enters, changes and leaves its answers, each digit of it, that the address has it, and that it ends where
// it is switched off.
func TestQuery_Live(t *testing.T) {
	s := startStudio(t)
	s.orders(6)
	p := s.openQuery("from Orders where Status = 'open'")
	p.see("3 rows")
	p.click("button", "Live")
	p.see("3 answers · 0 entered, 0 changed, 0 left")
	p.see("9007199254740993")
	s.put("orders/x", "Orders", `{"Status":"open","Total":7.10,"Note":"<b>new</b>"}`)
	p.see("4 answers · 1 entered, 0 changed, 0 left")
	p.see("<b>new</b>")
	p.see("7.10")
	s.put("orders/x", "Orders", `{"Status":"open","Total":8.20}`)
	p.see("4 answers · 1 entered, 1 changed, 0 left")
	p.see("8.20")
	p.hide("7.10")
	s.put("orders/00000", "Orders", `{"Status":"paid"}`)
	s.want(204, "DELETE", "/databases/shop/docs?id=orders/x", "")
	p.see("2 answers · 1 entered, 1 changed, 2 left")
	p.lacks("link", "orders/x")
	p.lacks("link", "orders/00000")
	p.auditEverywhere("live")
	if !strings.Contains(p.address(), "live=1") {
		t.Errorf("the address is %s", p.address())
	}
	p.reload()
	p.see("2 answers · 0 entered")
	s.put("orders/00001", "Orders", `{"Status":"open"}`)
	p.see("3 answers · 1 entered")
	p.click("button", "Live")
	p.see("3 rows")
	p.hide("3 answers")
	if strings.Contains(p.address(), "live=1") {
		t.Errorf("the address is %s", p.address())
	}
}

// Ensure that parameters of a live query are taken, and columns of it shown.
func TestQuery_Live_Columns(t *testing.T) {
	s := startStudio(t)
	s.put("a/1", "Things", `{"N":9007199254740993,"T":"one"}`)
	s.put("a/2", "Things", `{"N":9007199254740992,"T":"two"}`)
	p := s.openQuery("from Things where N = $n select T", "&p="+escaped(`{"n":"9007199254740993"}`), "&live=1")
	p.see("1 answer ·")
	p.see("one")
	p.hide("two")
	s.put("a/2", "Things", `{"N":9007199254740993,"T":"two"}`)
	p.see("2 answers ·")
	p.see("two")
}

// Ensure that a query that cannot be live says why, at its place if it has one, and goes on when it is right.
func TestQuery_Live_Refused(t *testing.T) {
	s := startStudio(t)
	s.orders(2)
	p := s.openQuery("from Orders order by N")
	p.see("2 rows")
	p.allow("status of 400")
	p.click("button", "Live")
	p.find("alert", "")
	p.see("order")
	p.focus("textbox", "Query in RQL")
	p.press("Control+a")
	p.insert("from Orders\nwere N = 1")
	p.press("Control+Enter")
	p.see("line 2, column 1: unexpected \"were\"")
	p.press("Control+a")
	p.insert("from Orders where N = 1")
	p.press("Control+Enter")
	p.see("1 answer ·")
	p.lacks("button", "line 2*")
}

// Ensure that the view stops, and says so, when there are more answers than it follows.
func TestQuery_Live_Bound(t *testing.T) {
	s := startStudio(t)
	s.orders(1000)
	p := s.openQuery("from Orders", "&live=1")
	p.see("1,000 answers ·")
	s.put("orders/x", "Orders", `{}`)
	p.find("alert", "")
	p.see("The query has more than 1,000 answers")
	p.see("stopped")
}
