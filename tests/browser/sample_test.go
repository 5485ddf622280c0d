package browser_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// The sample is a shop, whose documents look like those of a real one. It is the same in
// every run.

var (
	cities    = []string{"Lisbon", "Ghent", "Turku", "Graz", "Bergen", "Porto", "Lyon", "Kyoto", "Leeds", "Utrecht"}
	names     = []string{"Ada Lovelace", "Bob Byrne", "Cyd Oliveira", "Dana Novak", "Eve Laurent", "Finn Okafor", "Gil Moreau", "Hana Sato", "Ida Lind", "Jon Peeters", "Kim Adler", "Lea Marsh"}
	goods     = []string{"Acorn roaster", "Beechnut press", "Cedar chest", "Down pillow", "Ember lamp", "Feather duster", "Garden shears", "Hazel rod", "Ivory soap", "Jay call"}
	statuses  = []string{"open", "paid", "shipped", "shipped", "paid", "cancelled", "open", "shipped"}
	sampleDay = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
)

func customerBody(i int) string {
	return fmt.Sprintf(`{"Name":%q,"City":%q,"Email":%q,"Since":%q,"Discount":%d.%02d}`, names[i%len(names)], cities[i%len(cities)],
		strings.ToLower(strings.Fields(names[i%len(names)])[0])+fmt.Sprint(i)+"@example.com", sampleDay.AddDate(0, -i%48, -i%27).Format("2006-01-02"), i%4, i*7%100)
}

func orderBody(i int) string {
	lines := make([]string, i%3+1)
	for j := range lines {
		lines[j] = fmt.Sprintf(`{"Product":"products/%d","Quantity":%d,"Price":%d.%02d}`, (i+j*3)%len(goods)+1, j+1, 9+i*13%90, i*31%100)
	}
	return fmt.Sprintf(`{"Status":%q,"Total":%d.%02d,"Customer":"customers/%d","Placed":%q,"Lines":[%s]}`, statuses[i%len(statuses)], 19+i*37%400, i*53%100,
		i*7%120+1, sampleDay.Add(-time.Duration(i)*47*time.Minute).Format(time.RFC3339), strings.Join(lines, ","))
}

// sample fills the database shop as shop does, and adds a document that is hostile.
func (s *studio) sample() {
	s.t.Helper()
	s.shop()
	s.put(hostileID, hostileName, hostileBody)
}

// shop fills the database shop: 1,201 orders, 120 customers, 10 products; revisions,
// attachments, indexes, identities, ranges and a compare-exchange value.
func (s *studio) shop() {
	s.t.Helper()
	s.want(200, "POST", "/databases/shop/admin/revisions/config", `{"Default":null,"Collections":{"Orders":{"MinimumRevisionsToKeep":20},"Products":{"MinimumRevisionsToKeep":20}}}`)
	s.putMany("Customers", 120, func(i int) (string, string) { return fmt.Sprintf("customers/%d", i+1), customerBody(i) })
	s.putMany("Products", len(goods), func(i int) (string, string) {
		return fmt.Sprintf("products/%d", i+1), fmt.Sprintf(`{"Name":%q,"Price":%d.%02d,"Stock":%d,"Weight":0.%03d,"Tags":[%q,"new"]}`, goods[i], 9+i*13, i*31%100, 120-i*9, 100+i*75, strings.ToLower(strings.Fields(goods[i])[0]))
	})
	s.putMany("Orders", 1200, func(i int) (string, string) { return fmt.Sprintf("orders/%d-A", i+1), orderBody(i) })
	for _, body := range []string{
		`{"Status":"open","Total":120.50,"Customer":"customers/7","Placed":"2026-11-20T09:00:00Z","Lines":[{"Product":"products/3","Quantity":2,"Price":60.25}],"Account":9007199254740993}`,
		`{"Status":"paid","Total":120.50,"Customer":"customers/7","Placed":"2026-11-20T09:00:00Z","Paid":"2026-11-20T10:12:00Z","Lines":[{"Product":"products/3","Quantity":2,"Price":60.25}],"Account":9007199254740993}`,
		`{"Status":"shipped","Total":120.50,"Customer":"customers/7","Placed":"2026-11-20T09:00:00Z","Paid":"2026-11-20T10:12:00Z","Lines":[{"Product":"products/3","Quantity":2,"Price":60.25},{"Product":"products/8","Quantity":1,"Price":0.00,"Note":"a present"}],"Account":9007199254740993}`,
	} {
		s.put("orders/1201-A", "Orders", body)
	}
	s.want(201, "PUT", "/databases/shop/attachments?id=orders/1201-A&name=invoice.txt", "Invoice 1201\n", "Content-Type", "text/plain")
	s.want(201, "PUT", "/databases/shop/attachments?id=products/1&name=manual.txt", strings.Repeat("Roast slowly. ", 400), "Content-Type", "text/plain")
	s.want(201, "PUT", "/jay/v1/databases/shop/indexes", `{"collection":"Orders","index":{"fields":["Status","-Total"]}}`)
	s.want(201, "PUT", "/jay/v1/databases/shop/indexes", `{"collection":"Customers","index":{"fields":["Email"],"unique":true}}`)
	for range 4 {
		s.want(201, "PUT", "/databases/shop/docs?id=invoices|", `{"Order":"orders/7-A","Amount":19.99,"@metadata":{"@collection":"Invoices"}}`)
	}
	for high := int64(0); high < 1201; {
		next := gjson.Get(s.want(201, "GET", "/databases/shop/hilo/next?tag=orders&identityPartsSeparator=/", "").text, "High").Int()
		if next <= high {
			s.t.Fatalf("a range ends at %d after one that ends at %d", next, high)
		}
		high = next
	}
	s.want(200, "PUT", "/databases/shop/cmpxchg?key=locks/till-1&index=0", `{"Object":"ann"}`)
	s.put("news/", "News", `{"Title":"Acorns are back"}`)
	s.put("", "Notes", `{"Text":"remember the cedar chests"}`)
}

// What would run if a page took text for HTML, and what breaks selectors, addresses and
// attributes.
const (
	hostileID   = `evil/<script>window.__hit=1</script>"'&amp;<img src=x onerror=window.__hit=2>%41+ /é`
	hostileName = `<img src=x onerror=window.__hit=3>"'`
	hostileBody = `{"<script>window.__hit=4</script>":"<img src=x onerror=window.__hit=5>","Quote\"'&lt;":"</script><svg onload=window.__hit=6>","Title":"<b>bold</b> ${1} {{2}}","Customer":"evil/<script>window.__hit=1</script>\"'&amp;<img src=x onerror=window.__hit=2>%41+ /é"}`
)

// unhurt fails the test if a text of a document was taken for HTML.
func (p *tab) unhurt(where string) {
	p.t.Helper()
	var found []string
	p.eval(`[...document.querySelectorAll('script:not([type=module]), img[src=x], svg[onload], [onerror]'), ...[...document.querySelectorAll('b')].filter((n) => n.textContent === 'bold')].map((n) => n.outerHTML).concat(window.__hit ? ['it ran: ' + window.__hit] : [])`, &found)
	if len(found) > 0 {
		p.t.Errorf("%s: text became HTML: %q", where, found)
	}
}
