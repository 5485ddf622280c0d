package browser_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

// pageAddresses are addresses of each page, by its path in assets/routes.js.
var pageAddresses = map[string][]string{
	"/databases":         {""},
	"/db/:db/documents":  {"", "?collection=Orders", "?collection=" + escaped(hostileName), "?collection=None", "?prefix=orders/12", "?collection=Orders&order=id"},
	"/db/:db/doc":        {"?id=orders/1201-A", "?id=" + escaped(hostileID), "?id=none"},
	"/db/:db/new":        {"", "?collection=Orders"},
	"/db/:db/query":      {"", "?q=" + escaped("from Orders where Status = 'open' order by Total desc limit 50"), "?q=" + escaped("from '<img src=x onerror=window.__hit=3>\"\\'' as e"), "?q=" + escaped("from Orders wher")},
	"/db/:db/indexes":    {"", "?collection=Orders&fields=Customer"},
	"/db/:db/ids":        {""},
	"/db/:db/changes":    {"?from=start"},
	"/db/:db/io":         {""},
	"/db/:db/patch":      {"", "?q=" + escaped("from Orders where Status = 'open' update { this.Status = 'paid' }") + "&preview=1", "?delete=true&id=" + escaped(hostileID)},
	"/db/:db/statistics": {""},
	"/db/:db/operations": {""},
	"/db/:db/backup":     {""},
	"/db/:db/settings":   {"", "?part=collections", "?part=expiry", "?part=tokens", "?part=server"},
}

// pages returns the paths of all pages.
func (p *tab) pages() (paths []string) {
	p.t.Helper()
	p.eval(`import(document.querySelector('link[rel=modulepreload][href$="/routes.js"]').href).then((m) => m.routes.map((r) => r.path))`, &paths)
	return paths
}

// eachPage opens all pages of a studio with the sample.
func eachPage(t *testing.T, s *studio, p *tab, do func(address string)) {
	t.Helper()
	for _, path := range p.pages() {
		addresses, known := pageAddresses[path]
		if !known {
			addresses = []string{""}
		}
		for _, query := range addresses {
			address := "/studio" + strings.ReplaceAll(path, ":db", "shop") + query
			p.visit(address)
			p.quiet()
			do(address)
		}
	}
}

// quiet waits until the page has no call under way and has not changed for a while of
// several frames.
func (p *tab) quiet() {
	p.t.Helper()
	p.settled()
	p.until(`(async () => {
		const calls = () => performance.getEntriesByType('resource').length + ' ' + document.body.innerText.length;
		const before = calls();
		for (let i = 0; i < 6; i++) await new Promise((done) => requestAnimationFrame(done));
		return calls() === before;
	})()`)
}

// Ensure that every page can be used by everyone: names, contrast, focus, order, width.
func TestPages_Audit(t *testing.T) {
	s := startStudio(t)
	s.sample()
	p := s.open("/studio/databases")
	p.allow("status of 404", "status of 400")
	eachPage(t, s, p, func(address string) {
		p.until(`!!document.querySelector('h1')`) // what a page shows while it waits for its document has none
		p.quiet()
		p.auditEverywhere(address)
	})
}

// Ensure that text of documents is text on every page, whatever is in it, and that a page
// that is loaded again is the same.
func TestPages_Hostile(t *testing.T) {
	s := startStudio(t)
	s.sample()
	p := s.open("/studio/databases")
	p.allow("status of 404", "status of 400")
	eachPage(t, s, p, func(address string) {
		p.unhurt(address)
		if strings.Contains(address, escaped(hostileID)) || strings.Contains(address, escaped(hostileName)) {
			p.until(`document.body.innerText.includes('<script>window.__hit=1') || [...document.querySelectorAll('input, textarea')].some((n) => n.value.includes('<script>'))`)
		}
		p.reload()
		p.quiet()
		if got := p.address(); !strings.HasPrefix(readable(t, got), readable(t, address)) {
			t.Errorf("loaded again, %s became %s", address, got)
		}
		p.unhurt(address + ", loaded again")
	})
}

// readable returns an address without escapes, of which there are several spellings.
func readable(t *testing.T, address string) string {
	t.Helper()
	text, err := url.QueryUnescape(address)
	if err != nil {
		t.Fatalf("the address %s: %v", address, err)
	}
	return text
}

// Ensure that every page has a row above.
func TestPages_AllAreKnown(t *testing.T) {
	s := startServer(t)
	p := s.open("/studio/databases")
	paths := p.pages()
	for _, path := range paths {
		if pageAddresses[path] == nil {
			t.Errorf("the page %s has no addresses", path)
		}
	}
	for path := range pageAddresses {
		if !slices.Contains(paths, path) {
			t.Errorf("there is no page %s any more", path)
		}
	}
}
