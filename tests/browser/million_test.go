package browser_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// manyDocuments is how many documents the collection has in which the tests scroll:
// JAY_STUDIO_DOCUMENTS, which make studio-million sets, or a few.
func manyDocuments(t *testing.T, few int) (n int, all bool) {
	t.Helper()
	text := os.Getenv("JAY_STUDIO_DOCUMENTS")
	if text == "" {
		return few, false
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 20_000 {
		t.Fatalf("JAY_STUDIO_DOCUMENTS is %q, want a number from 20000 on", text)
	}
	return n, true
}

func manyID(i int) string { return fmt.Sprintf("orders/%07d", i) }

// startMany starts a studio with n orders, orders/0000000 and so on.
func startMany(t *testing.T, n int) *studio {
	t.Helper()
	s := startStudio(t, func(o *server.Options) {
		o.Database.Durability, o.Database.MemTableBytes, o.Database.CacheBytes = jay.Relaxed, 16<<20, 64<<20
		o.Logger = nil
	})
	began := time.Now()
	s.putMany("Orders", n, func(i int) (string, string) {
		return manyID(i), fmt.Sprintf(`{"Status":%q,"Total":%d.%02d,"Customer":"customers/%d"}`, statuses[i%len(statuses)], 19+i*37%400, i*53%100, i%120)
	})
	t.Logf("%d documents in %v", n, time.Since(began).Round(time.Millisecond))
	return s
}

// The list in the page: what is in it, and how one moves in it.
const listScript = `(() => {
	const list = document.querySelector('[role=grid]');
	const rows = () => {
		const top = list.getBoundingClientRect();
		return [...list.querySelectorAll('[role=row]')].filter((r) => { const b = r.getBoundingClientRect(); return b.bottom > top.top && b.top < top.bottom; })
			.map((r) => r.querySelector('[role=rowheader]')?.textContent).filter(Boolean).sort();
	};
	const frame = () => new Promise((done) => requestAnimationFrame(done));
	const until = async (holds) => { for (const end = performance.now() + 30000; !holds();) { if (performance.now() > end) throw new Error('waited 30 s, rows: ' + rows()); await frame(); } };
	window.__list = {list, rows, frame, until,
		// takes returns the milliseconds until a row stands in the window, laid out; the screen shows it with its next frame.
		takes(act, id) {
			return new Promise((done, fail) => {
				const begin = performance.now(), timer = setTimeout(() => fail(new Error('waited 30 s, rows: ' + rows())), 30000);
				const look = () => { if (rows().includes(id)) { observer.disconnect(); clearTimeout(timer); list.removeEventListener('scroll', look); done(performance.now() - begin); } };
				const observer = new MutationObserver(look);
				observer.observe(list, {subtree: true, childList: true, characterData: true, attributes: true});
				list.addEventListener('scroll', look);
				act();
				look();
			});
		},
		key(node, key) { node.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true})); },
	};
	return true;
})()`

// openMany opens the list of orders.
func (s *studio) openMany() *tab {
	s.t.Helper()
	p := s.open("/studio/db/shop/documents?collection=Orders&order=id")
	p.until(listScript)
	p.until(`window.__list.rows().includes("` + manyID(0) + `")`)
	return p
}

// noSkip fails the test if a request counts rows from the beginning.
func (p *tab) noSkip() {
	p.t.Helper()
	rows := 0
	for _, url := range p.requests() {
		_, query, _ := strings.Cut(url, "?")
		for param := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(param, "=")
			if name = strings.ToLower(name); (name == "start" || name == "skip" || name == "offset") && value != "0" {
				p.t.Errorf("the page skips rows: %s", url)
			}
		}
		if strings.Contains(url, "/rows?") {
			rows++
		}
	}
	if rows == 0 {
		p.t.Error("the page has asked for no rows")
	}
}

// Ensure that the list goes to its end, to an ID in the middle and back to its beginning
// without counting rows; and, with a million documents, that each takes at most three times
// what curl takes for the same call.
func TestMany_Moves(t *testing.T) {
	n, all := manyDocuments(t, 3000)
	s := startMany(t, n)
	p := s.openMany()
	first, last, middle := manyID(0), manyID(n-1), manyID(n/2)
	moves := []struct {
		name, act, id, call string
	}{
		{"the first rows", `const l = window.__list; l.key(l.list, 'Home')`, first, "pageSize=100"},
		{"the last rows", `const l = window.__list; l.key(l.list, 'End')`, last, "reverse=true&pageSize=100"},
		{"an ID in the middle", `const f = document.querySelector('input[type=search]'); f.value = ` + quoted(middle) + `; window.__list.key(f, 'Enter')`, middle, "from=" + escaped(middle) + "&pageSize=100"},
	}
	took := make(map[string][]float64) // milliseconds, by move; of curl under "curl " + move
	rounds := 2
	if all {
		rounds = 15
	}
	for range rounds {
		for i, move := range moves {
			// From elsewhere, so that the rows are not there yet.
			from := moves[(i+1)%len(moves)]
			p.eval(`window.__list.takes(() => { `+from.act+` }, `+quoted(from.id)+`)`, nil)
			var ms float64
			p.eval(`window.__list.takes(() => { `+move.act+` }, `+quoted(move.id)+`)`, &ms)
			took[move.name] = append(took[move.name], ms)
			if all {
				took["curl "+move.name] = append(took["curl "+move.name], curl(t, s.url+"/jay/v1/databases/shop/rows?collection=Orders&"+move.call))
			}
		}
	}
	p.noSkip()
	for _, move := range moves {
		t.Logf("%s: %.1f ms in the browser, from the key to the rows (%.0f)", move.name, median(took[move.name]), took[move.name])
		if !all {
			continue
		}
		page, call := median(took[move.name]), median(took["curl "+move.name])
		t.Logf("%s: %.1f ms by curl, ratio %.2f", move.name, call, page/call)
		if page > 3*call {
			t.Errorf("%s take %.1f times what curl takes, want at most 3", move.name, page/call)
		}
	}
}

// curl returns how many milliseconds the command curl takes for a URL.
func curl(t *testing.T, url string) float64 {
	t.Helper()
	began := time.Now()
	if out, err := exec.Command("curl", "-sSf", "-o", os.DevNull, url).CombinedOutput(); err != nil {
		t.Fatalf("curl: %v: %s", err, out)
	}
	return float64(time.Since(began).Microseconds()) / 1000
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// Ensure that scrolling on for 10,000 rows and back shows each row in its order, and leaves
// neither memory nor elements behind.
func TestMany_Scroll(t *testing.T) {
	n, all := manyDocuments(t, 3000)
	rows := 600
	if all {
		rows = 10_000
	}
	s := startMany(t, n)
	p := s.openMany()
	// There and back once before the first measurement: then all is loaded that is loaded once.
	scroll := func(to int) {
		t.Helper()
		id := manyID(to)
		var seen struct {
			Order string // what was not in order, or ""
			Most  int    // rows in the page at a time
		}
		p.eval(`(async () => {
			const {list, rows, frame} = window.__list;
			const aim = `+quoted(id)+`;
			let before = rows()[0], most = 0, order = '', still = 0;
			const down = before < aim;
			for (const end = performance.now() + 100000; !rows().includes(aim);) {
				if (performance.now() > end) throw new Error('did not come to ' + aim + ', rows: ' + rows());
				list.scrollTop += (down ? 1 : -1) * list.clientHeight * 0.9;
				await frame();
				const now = rows()[0];
				if (now === undefined) { if (++still > 3000) order = 'no rows behind ' + before; continue; }
				if (down ? now < before : now > before) order = order || before + ' and then ' + now;
				before = now;
				most = Math.max(most, list.querySelectorAll('[role=row]').length);
				if (order) break;
			}
			return {Order: order, Most: most};
		})()`, &seen)
		if seen.Order != "" {
			t.Fatalf("on the way to %s: %s", id, seen.Order)
		}
		if seen.Most > 200 {
			t.Errorf("%d rows are in the page at a time", seen.Most)
		}
	}
	scroll(min(600, rows))
	scroll(0)
	bytes, nodes := p.heap()
	scroll(rows)
	there, nodesThere := p.heap()
	scroll(0)
	after, nodesAfter := p.heap()
	t.Logf("JavaScript's heap: %d KB before, %d KB %d rows on, %d KB after; nodes %d, %d, %d", bytes>>10, there>>10, rows, after>>10, nodes, nodesThere, nodesAfter)
	if grown := after - bytes; grown > 1<<20 {
		t.Errorf("the heap has grown by %d KB", grown>>10)
	}
	if nodesThere > nodes+500 || nodesAfter > nodes+500 {
		t.Errorf("the nodes have grown from %d to %d and %d", nodes, nodesThere, nodesAfter)
	}
	p.noSkip()
}
