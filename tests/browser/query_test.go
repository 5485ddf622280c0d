package browser_test

import (
	"encoding/csv"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// openQuery opens the page of queries with a text.
func (s *studio) openQuery(text string, more ...string) *tab {
	s.t.Helper()
	return s.open("/studio/db/shop/query?q=" + url.QueryEscape(text) + strings.Join(more, ""))
}

// orders puts n orders into shop.
func (s *studio) orders(n int) {
	s.t.Helper()
	s.putMany("Orders", n, func(i int) (string, string) {
		return fmt.Sprintf("orders/%05d", i), fmt.Sprintf(`{"N":%d,"Total":%d.10,"Company":"companies/%d","Status":"%s","Big":9007199254740993}`, i, i, i%7, []string{"open", "paid"}[i%2])
	})
}

// Ensure that a query is typed with completion, run by ctrl-enter, and shown as a table whose
// numbers have every digit; the address has it.
func TestQuery_Run(t *testing.T) {
	s := startStudio(t)
	s.orders(20)
	p := s.open("/studio/db/shop/query")
	p.find("textbox", "Query in RQL")
	p.see("from Orders")
	p.focus("textbox", "Query in RQL")
	p.typing("fr")
	p.find("option", "from")
	p.press("Enter")
	p.find("option", "Orders*")
	p.typing("Or")
	p.press("Enter")
	p.typing(" whe")
	p.press("Tab")
	p.find("option", "Company*")
	p.typing("Tot")
	p.press("Enter")
	p.typing(" > 17 order by Total desc")
	p.press("Escape", "Control+Enter")
	p.see("19.10")
	p.see("9007199254740993")
	p.see("3 rows")
	p.find("link", "orders/00019")
	if !strings.Contains(p.address(), url.QueryEscape("from Orders where Total > 17 order by Total desc")) {
		t.Errorf("the address is %s", p.address())
	}
	p.reload()
	p.see("19.10")
	p.click("tab", "JSON")
	p.until(`document.querySelectorAll('.editor-area')[1]?.value.includes('"Total": 19.10')`)
	p.click("tab", "Table")
	p.click("link", "orders/00019")
	p.find("textbox", "Document orders/00019")
	p.back()
	p.see("19.10")
}

// Ensure that the list of what can stand at the caret ends with a bracket that closes, and
// with the run of what is typed.
func TestEditor_CompletionEnds(t *testing.T) {
	s := startStudio(t)
	s.orders(3)
	p := s.open("/studio/db/shop/query")
	p.focus("textbox", "Query in RQL")
	p.typing("from Orders where N = 1 and (Tot")
	p.find("option", "Total*")
	p.typing("al > 0)")
	p.lacks("option", "*")
	p.typing(" ord")
	p.find("option", "order by*")
	p.allow("status of 400") // the query is not whole
	p.press("Control+Enter")
	p.lacks("option", "*")
	p.visit("/studio/db/shop/patch")
	p.focus("textbox", "Query and script")
	p.typing("from Orders update { this.x = 1 }")
	p.press("Control+Enter")
	p.see("3 documents would be patched")
	p.lacks("option", "*")
}

// Ensure that pages follow one another by cursors in both directions, and that the numbers of
// rows are those.
func TestQuery_Pages(t *testing.T) {
	s := startStudio(t)
	s.orders(120)
	p := s.openQuery("from Orders order by N")
	p.see("rows 1–50, more follow")
	p.click("button", "Count all")
	p.see("of 120, counted in")
	p.click("button", "Next")
	p.see("rows 51–100, more follow")
	p.see("orders/00050")
	p.click("button", "Next")
	p.see("rows 101–120, the last ones")
	p.click("button", "Before")
	p.see("rows 51–100")
	for _, one := range p.requests() {
		if strings.Contains(one, "start=") || strings.Contains(one, "skip") {
			t.Errorf("a page was asked for by a number: %s", one)
		}
	}
	p = s.openQuery("from Orders order by N limit 30")
	p.see("30 rows")
	p.see("The limit of the query is its end.")
}

// Ensure that an error stands at its place in the query.
func TestQuery_Error(t *testing.T) {
	s := startStudio(t)
	p := s.blank()
	p.allow("status of 400")
	p.visit("/studio/db/shop/query?q=" + url.QueryEscape("from Orders\nwere Total > 1"))
	p.see("line 2, column 1: unexpected \"were\"")
	p.press("F8")
	p.until(`document.querySelector('.editor-area').selectionStart === 12`)
	p.typing("wh")
	p.lacks("button", "line 2*")
}

// Ensure that the plan is drawn with its figures and a text, and that one click makes the index
// that it suggests.
func TestQuery_Explain(t *testing.T) {
	s := startStudio(t)
	s.orders(300)
	p := s.openQuery("from Orders where Company = 'companies/3' order by Total desc limit 5", "&view=explain")
	p.see("0 index keys examined, 300 documents read, 5 answers")
	var text string
	p.eval(`document.querySelector('svg.plan desc').textContent`, &text)
	if !strings.Contains(text, "scan Orders; filter: Company = 'companies/3'; sort in memory") {
		t.Errorf("the picture says %q", text)
	}
	p.until(`document.querySelector('svg.plan').getAttribute('role') === 'img'`)
	p.auditEverywhere("explain")
	p.click("button", "Make this index")
	p.see("is ready.")
	p.see("\"Company,-Total\", one range")
	p.until(`document.querySelector('svg.plan .plan-index')`)
	if got := s.want(200, "GET", "/jay/v1/databases/shop/indexes", "").text; gjson.Get(got, "indexes.0.name").String() != "Company,-Total" {
		t.Errorf("indexes: %s", got)
	}
	p.press("Escape")
	p.click("tab", "Table")
	p.see("5 rows")
}

// Ensure that parameters keep their digits and stand in the address.
func TestQuery_Parameters(t *testing.T) {
	s := startStudio(t)
	s.put("a/1", "Things", `{"N":9007199254740993,"T":"it's \"x\""}`)
	s.put("a/2", "Things", `{"N":9007199254740992,"T":"y"}`)
	p := s.openQuery("from Things where N = $n and T in ($list)")
	p.fill("textbox", "$n", "9007199254740993")
	p.fill("textbox", "$list", `["it's \"x\""]`)
	p.focus("textbox", "Query in RQL")
	p.allow("status of 400") // the first run had no values
	p.press("Control+Enter")
	p.see("1 row")
	p.find("link", "a/1")
	p.reload()
	p.see("1 row")
	if got := p.value("textbox", "$n"); got != "9007199254740993" {
		t.Errorf("the parameter is %q", got)
	}
}

// Ensure that all answers are exported, not those of the page only, and that no text in CSV is a
// formula.
func TestQuery_Export(t *testing.T) {
	s := startStudio(t)
	s.orders(120)
	s.put("orders/x", "Orders", `{"N":-1.10,"Status":"=HYPERLINK(\"http://x\")"}`)
	p := s.openQuery("from Orders order by N")
	p.see("more follow")
	dir := p.downloads()
	p.click("button", "Export")
	p.click("menuitem", "All answers as CSV")
	p.in("dialog", "Export as CSV").click("button", "Export")
	text := p.downloaded(dir, "*.csv")
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 122 || strings.Join(rows[0], " ") != "id() N Status Total Company Big" {
		t.Fatalf("%d rows: %v", len(rows), rows[0])
	}
	if got := strings.Join(rows[1], " "); got != `orders/x -1.10 '=HYPERLINK("http://x")   ` {
		t.Errorf("the first row is %q", got)
	}
	if got := strings.Join(rows[121], " "); got != "orders/00119 119 paid 119.10 companies/0 9007199254740993" {
		t.Errorf("the last row is %q", got)
	}
	p.click("button", "Export")
	p.click("menuitem", "All answers as NDJSON*")
	p.in("dialog", "Export as NDJSON").click("button", "Export")
	if text := p.downloaded(dir, "*.ndjson"); strings.Count(text, "\n") != 121 || !strings.Contains(text, `"Total":119.10`) {
		t.Errorf("exported %d lines", strings.Count(text, "\n"))
	}
}

// Ensure that queries that were run are remembered, and come back with undo.
func TestQuery_History(t *testing.T) {
	s := startStudio(t)
	s.orders(3)
	p := s.openQuery("from Orders where N = 1")
	p.see("1 row")
	p.focus("textbox", "Query in RQL")
	p.press("Control+a")
	p.insert("from Orders where N < 2")
	p.press("Control+Enter")
	p.see("2 rows")
	p.click("button", "History")
	p.in("dialog", "History").click("button", "from Orders where N = 1*")
	p.until(`document.querySelector('.editor-area').value === 'from Orders where N = 1'`)
	p.press("Control+z")
	p.until(`document.querySelector('.editor-area').value === 'from Orders where N < 2'`)
}

// Ensure that values that mean something in HTML are texts in the table.
func TestQuery_Hostile(t *testing.T) {
	s := startStudio(t)
	s.put(`x/<b>&'"`, "Things", `{"<i>n</i>":"<script>document.title='bad'</script>","O":{"<u>":1.10}}`)
	p := s.openQuery("from Things")
	p.see("<script>document.title='bad'</script>")
	p.see("<i>n</i>")
	p.see(`{"<u>":1.10}`)
	p.click("link", `x/<b>&'"`)
	p.find("textbox", `Document x/<b>&'"`)
	p.until(`document.title !== 'bad'`)
}

// Ensure that groups have all their rows: they have no cursor.
func TestQuery_Groups(t *testing.T) {
	s := startStudio(t)
	s.orders(120)
	p := s.openQuery("from Orders group by N select key() as N, count() as Count, sum(Total) as Sum")
	p.see("119.1")
	p.see("120 rows")
}
