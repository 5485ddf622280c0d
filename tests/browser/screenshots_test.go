package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The pictures of docs/studio.md are made by the tests' browser of the tests' shop, into
// the directory $JAY_SCREENSHOTS, which make screenshots sets.
func TestScreenshots(t *testing.T) {
	dir, looks := os.Getenv("JAY_SCREENSHOTS"), 12
	if dir == "" { // that they can be made is seen in every run
		dir, looks = t.TempDir(), 1
	}
	s := startStudio(t)
	s.shop()
	total := int64(0)
	shot := func(p *tab, name string) {
		t.Helper()
		p.quiet()
		file := filepath.Join(dir, "studio-"+name+".png")
		p.picture(file)
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	p := s.open("/studio/db/shop/documents?collection=Orders")
	p.viewport(1200, 720)
	p.see("orders/1201-A")
	shot(p, "documents")
	p.visit("/studio/db/shop/doc?id=orders/1201-A")
	p.see("9007199254740993")
	shot(p, "document")
	p.dark(true)
	shot(p, "document-dark")
	p.dark(false)
	p.visit("/studio/db/shop/new?collection=Orders")
	shot(p, "new")
	p.visit("/studio/db/shop/query?q=" + escaped("from Orders\nwhere Customer = 'customers/7'\norder by Total desc limit 10") + "&view=explain")
	p.see("Answers")
	shot(p, "explain")
	p.visit("/studio/db/shop/query?q=" + escaped("from Orders\nwhere Status = 'open'\norder by Total desc limit 10"))
	p.see("10 rows")
	shot(p, "query")
	p.visit("/studio/db/shop/ids")
	p.see("Sequences")
	shot(p, "ids")
	p.visit("/studio/db/shop/patch?q=" + escaped("from Orders where Status = 'open'\nupdate {\n  this.Status = 'paid';\n}") + "&preview=1")
	shot(p, "patch")

	p.visit("/studio/db/shop/statistics")
	p.requests()
	asked, i := 0, 0
	p.wait("figures", func() bool {
		for range 40 { // what the charts show
			i++
			s.put(fmt.Sprintf("orders/%d-A", i%1200+1), "Orders", orderBody(i))
			s.stored(fmt.Sprintf("customers/%d", i%120+1))
		}
		for _, url := range p.requests() {
			if strings.Contains(url, "/figures") {
				asked++
			}
		}
		return asked >= looks
	})
	shot(p, "statistics")

	p.viewport(360, 640)
	p.visit("/studio/db/shop/documents?collection=Orders")
	p.until(`document.querySelectorAll('[role=rowheader]').length > 5`)
	shot(p, "phone")
	if total > 2<<20 {
		t.Errorf("the pictures have %d bytes, want at most 2 MiB", total)
	}
	t.Logf("%d KB of pictures", total>>10)
}
