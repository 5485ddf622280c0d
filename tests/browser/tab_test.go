package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds every wait: long, as CI's machine is loaded.
const patience = 30 * time.Second

// eventually asks again and again whether something holds, for as long as patience.
func eventually(holds func() bool) bool {
	for deadline := time.Now().Add(patience); ; {
		if holds() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(20 * time.Millisecond) // between two looks: what is awaited decides
	}
}

// tab is a page of the studio as a user has it: what is there is found by role and name,
// as by a screen reader, and used by pointer and keyboard. When the test ends, nothing may
// have gone wrong in it: no error on the console, no exception, no violation of the
// Content-Security-Policy, no request to another host.
type tab struct {
	t   *testing.T
	s   *studio
	ctx context.Context

	within []string // role and name, in turn, of what is looked into
	log    *tabLog
}

// tabLog is what the browser has reported of a tab.
type tabLog struct {
	mu       sync.Mutex
	problems []string
	allowed  []string // parts of problems that the test expects
	requests []string // all URLs
}

func (l *tabLog) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// open opens a page in a new tab, which shares nothing with others: path is below the
// server's root, such as /studio/db/shop/documents.
func (s *studio) open(path string) *tab {
	s.t.Helper()
	p := s.blank()
	p.visit(path)
	return p
}

// blank opens an empty tab.
func (s *studio) blank() *tab {
	s.t.Helper()
	p := &tab{t: s.t, s: s, log: &tabLog{}}
	ctx, cancel := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext(), chromedp.WithListener(p.listen))
	p.ctx = ctx
	s.t.Cleanup(func() {
		p.finish()
		cancel()
	})
	p.do(chromedp.Do(ctx))
	command(p, network.Enable, network.EnableParams{})
	command(p, runtime.Enable, cdp.Empty{})
	command(p, cdplog.Enable, cdp.Empty{})
	command(p, audits.Enable, cdp.Empty{})
	command(p, page.Enable, page.EnableParams{})
	p.viewport(1280, 800)
	return p
}

// listen notes what a user of the developer tools would see in red.
func (p *tab) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "assert" || e.Type == "warning" {
			var words []string
			for _, arg := range e.Args {
				words = append(words, strings.Trim(string(arg.Value), `"`)+arg.Description)
			}
			p.log.add("console.%s: %s", e.Type, strings.Join(words, " "))
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		p.log.add("exception: %s", text)
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Source == "security" {
			p.log.add("log: %s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *audits.EventIssueAdded:
		if e.Issue.Code == "ContentSecurityPolicyIssue" {
			details, _ := json.Marshal(e.Issue.Details)
			p.log.add("Content-Security-Policy: %s", details)
		}
	case *network.EventRequestWillBeSent:
		p.request(e.Request.URL)
	case *network.EventWebSocketCreated:
		p.request("http" + strings.TrimPrefix(e.URL, "ws"))
	}
}

// request notes a request, which must be one to the server of the test.
func (p *tab) request(url string) {
	p.log.mu.Lock()
	p.log.requests = append(p.log.requests, url)
	p.log.mu.Unlock()
	if !strings.HasPrefix(url, p.s.url+"/") && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:"+p.s.url+"/") && !strings.HasPrefix(url, "file:") {
		p.log.add("a request to another host: %s", url)
	}
}

// allow says that the test makes something go wrong: problems with one of these parts are
// none. Chromium logs replies of 400 and above, as "status of 409".
func (p *tab) allow(parts ...string) {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	p.log.allowed = append(p.log.allowed, parts...)
}

// requests returns the URLs, without the server, that the tab has asked for since the last call.
func (p *tab) requests() []string {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	var all []string
	for _, url := range p.log.requests {
		all = append(all, strings.TrimPrefix(url, p.s.url))
	}
	p.log.requests = nil
	return all
}

// finish looks at what has gone wrong. A test that has failed leaves a picture.
func (p *tab) finish() {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	// The reply comes behind the events so far.
	_, err := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{Expression: "1"})
	if err != nil {
		p.t.Errorf("the tab has gone: %v", err)
	}
	p.log.mu.Lock()
	for _, problem := range p.log.problems {
		if !slices.ContainsFunc(p.log.allowed, func(part string) bool { return strings.Contains(problem, part) }) {
			p.t.Errorf("the browser: %s", problem)
		}
	}
	p.log.mu.Unlock()
	if !p.t.Failed() || err != nil {
		return
	}
	picture, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{})
	if err != nil {
		p.t.Logf("no picture: %v", err)
		return
	}
	file := filepath.Join(os.TempDir(), "jay-browser-"+strings.ReplaceAll(p.t.Name(), "/", "-")+".png")
	if err := os.WriteFile(file, picture.Data, 0o600); err != nil {
		p.t.Log(err)
	}
	text, _ := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{Expression: "location.href + '\\n' + document.body.innerText.slice(0, 3000)"})
	if text.Result != nil {
		var words string
		_ = json.Unmarshal(text.Result.Value, &words)
		p.t.Logf("the page was, as in %s:\n%s", file, words)
	}
}

// do fails the test at an error.
func (p *tab) do(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// command sends a command of the browser's protocol.
func command[P, R any](p *tab, c cdp.Command[P, R], params P) R {
	p.t.Helper()
	r, err := try(p, c, params)
	if err != nil {
		p.t.Fatalf("%s: %v", c.Method, err)
	}
	return r
}

// try is command for one that may fail.
func try[P, R any](p *tab, c cdp.Command[P, R], params P) (R, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Call(ctx, c, params)
}

// ---- Pages

// visit goes to a path of the server and waits until its page is there.
func (p *tab) visit(path string) {
	p.t.Helper()
	if !strings.Contains(path, "://") {
		path = p.s.url + path
	}
	r := command(p, page.Navigate, page.NavigateParams{URL: path})
	if r.ErrorText != "" {
		p.t.Fatalf("%s: %s", path, r.ErrorText)
	}
	p.settled()
}

// settled waits until the page is there and asks the server for nothing more.
func (p *tab) settled() {
	p.t.Helper()
	p.until(`document.readyState === 'complete' && !document.querySelector('main[aria-busy=true], .patience') && (!document.querySelector('script[type=module]') || document.querySelector('main')?.childElementCount > 0 || !!document.querySelector('dialog[open]'))`)
}

// reload loads the page again.
func (p *tab) reload() {
	p.t.Helper()
	p.loads(func() { command(p, page.Reload, page.ReloadParams{}) })
}

// loads does what makes the browser load a page, and waits until it is there. Chromium 156 answers
// nothing any more in a tab whose accessibility tree is asked for while a page is on its way, one
// time in five on a loaded machine: so find must not come before.
func (p *tab) loads(do func()) {
	p.t.Helper()
	p.eval(`window.__before = true`, nil)
	do()
	p.until(`!window.__before`)
	p.settled()
}

// back goes back by one, and forward forth, as the browser's buttons do.
func (p *tab) back()    { p.t.Helper(); p.step(-1) }
func (p *tab) forward() { p.t.Helper(); p.step(1) }

func (p *tab) step(by int64) {
	p.t.Helper()
	h := command(p, page.GetNavigationHistory, cdp.Empty{})
	at := h.CurrentIndex + by
	if at < 0 || at >= int64(len(h.Entries)) {
		p.t.Fatalf("there is no page at %+d", by)
	}
	command(p, page.NavigateToHistoryEntry, page.NavigateToHistoryEntryParams{EntryID: h.Entries[at].ID})
	want := h.Entries[at].URL
	p.wait("the address "+want, func() bool { return p.s.url+p.address() == want })
	p.settled()
}

// address returns path, query and fragment of the page.
func (p *tab) address() string {
	p.t.Helper()
	var text string
	p.eval(`location.pathname + location.search + location.hash`, &text)
	return text
}

// viewport sets the size of the window.
func (p *tab) viewport(width, height int64) {
	p.t.Helper()
	command(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1})
}

// dark says what the system prefers.
func (p *tab) dark(is bool) {
	p.t.Helper()
	scheme := "light"
	if is {
		scheme = "dark"
	}
	command(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// ---- Looking

// eval evaluates JavaScript in the page, awaits it if it is a promise, and decodes its JSON into result.
func (p *tab) eval(expression string, result any) {
	p.t.Helper()
	if err := p.tryEval(expression, result); err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
}

func (p *tab) tryEval(expression string, result any) error {
	yes := true
	r, err := try(p, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ReturnByValue: &yes, AwaitPromise: &yes})
	if err != nil {
		return err
	}
	if r.ExceptionDetails != nil {
		text := r.ExceptionDetails.Text
		if r.ExceptionDetails.Exception != nil {
			text += " " + r.ExceptionDetails.Exception.Description
		}
		return fmt.Errorf("%s", text)
	}
	if result == nil || len(r.Result.Value) == 0 {
		return nil
	}
	return json.Unmarshal(r.Result.Value, result)
}

// wait waits until something holds.
func (p *tab) wait(what string, holds func() bool) {
	p.t.Helper()
	if !eventually(holds) {
		p.t.Fatalf("waited %s for %s", patience, what)
	}
}

// until waits until a JavaScript expression is true. An error, as of a page that is on its
// way, is not.
func (p *tab) until(expression string) {
	p.t.Helper()
	var last error
	if !eventually(func() bool {
		is := false
		last = p.tryEval("(async () => !!(await ("+expression+")))()", &is)
		return last == nil && is
	}) {
		p.t.Fatalf("waited %s for %s (%v)", patience, expression, last)
	}
}

// see waits until the page shows a text, hide until it does not.
func (p *tab) see(text string) {
	p.t.Helper()
	p.until(`document.body.innerText.includes(` + quoted(text) + `)`)
}
func (p *tab) hide(text string) {
	p.t.Helper()
	p.until(`!document.body.innerText.includes(` + quoted(text) + `)`)
}

// in returns the tab as far as it is inside of what has this role and name.
func (p *tab) in(role, name string) *tab {
	inner := *p
	inner.within = append(slices.Clone(p.within), role, name)
	return &inner
}

// part is an element as a screen reader finds it.
type part struct {
	role, name, value string
	properties        map[string]string // such as checked, disabled, expanded, focused, selected, invalid
	node              cdp.BackendNodeID
}

func (e part) String() string {
	text := fmt.Sprintf("%s %q", e.role, e.name)
	if e.value != "" {
		text += fmt.Sprintf(" = %q", e.value)
	}
	return text
}

func axText(v *accessibility.Value) string {
	if v == nil || len(v.Value) == 0 {
		return ""
	}
	var any any
	if json.Unmarshal(v.Value, &any) != nil {
		return ""
	}
	return fmt.Sprint(any)
}

func newPart(n *accessibility.Node) part {
	e := part{role: axText(n.Role), name: strings.TrimSpace(axText(n.Name)), value: axText(n.Value), node: n.BackendDOMNodeID, properties: make(map[string]string)}
	for _, property := range n.Properties {
		e.properties[string(property.Name)] = axText(property.Value)
	}
	return e
}

// tree returns all that a screen reader finds, in the order of the page.
func (p *tab) tree() (all []part) {
	p.t.Helper()
	for _, n := range command(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if !n.Ignored {
			all = append(all, newPart(n))
		}
	}
	return all
}

// fits reports whether a name is the one that is looked for: "Save*" is any that begins with "Save",
// "*Save" any that ends with it, "" any.
func fits(name, want string) bool {
	if prefix, found := strings.CutSuffix(want, "*"); found {
		return strings.HasPrefix(name, prefix)
	}
	if suffix, found := strings.CutPrefix(want, "*"); found {
		return strings.HasSuffix(name, suffix)
	}
	return want == "" || name == want
}

// all returns what has this role and a name that fits, as it is now.
func (p *tab) all(role, name string) []part {
	found, _ := p.look(role, name)
	return found
}

func (p *tab) look(role, name string) (found []part, err error) {
	root, err := try(p, dom.GetDocument, dom.GetDocumentParams{})
	if err != nil {
		return nil, err
	}
	at := root.Root.BackendNodeID
	for i := 0; i < len(p.within); i += 2 {
		outer, err := p.query(at, p.within[i], p.within[i+1])
		if err != nil || len(outer) != 1 {
			return nil, fmt.Errorf("%d of %s %q: %v", len(outer), p.within[i], p.within[i+1], err)
		}
		at = outer[0].node
	}
	return p.query(at, role, name)
}

func (p *tab) query(at cdp.BackendNodeID, role, name string) (found []part, err error) {
	r, err := try(p, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{BackendNodeID: at, Role: role})
	if err != nil {
		return nil, err // the page is on its way
	}
	for _, n := range r.Nodes {
		if e := newPart(n); !n.Ignored && fits(e.name, name) {
			found = append(found, e)
		}
	}
	return found, nil
}

// find waits for the one element with this role and a name that fits.
func (p *tab) find(role, name string) part {
	p.t.Helper()
	var found []part
	var err error
	if !eventually(func() bool { found, err = p.look(role, name); return len(found) == 1 }) {
		p.t.Fatalf("waited %s for one %s %q, there are %d: %v (%v)", patience, role, name, len(found), found, err)
	}
	return found[0]
}

// has reports whether there is such an element now.
func (p *tab) has(role, name string) bool { return len(p.all(role, name)) > 0 }

// lacks waits until there is no such element.
func (p *tab) lacks(role, name string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("no %s %q", role, name), func() bool { found, err := p.look(role, name); return err == nil && len(found) == 0 })
}

// value returns what is in a field.
func (p *tab) value(role, name string) string {
	p.t.Helper()
	var text string
	p.on(p.find(role, name), `function() { return this.value ?? this.textContent; }`, &text)
	return text
}

// on calls a function of JavaScript on an element.
func (p *tab) on(e part, function string, result any, args ...any) {
	p.t.Helper()
	if err := p.tryOn(e, function, result, args...); err != nil {
		p.t.Fatalf("%v: %v", e, err)
	}
}

func (p *tab) tryOn(e part, function string, result any, args ...any) error {
	resolved, err := try(p, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: e.node})
	if err != nil {
		return err
	}
	yes := true
	params := runtime.CallFunctionOnParams{FunctionDeclaration: function, ObjectID: resolved.Object.ObjectID, ReturnByValue: &yes, AwaitPromise: &yes}
	for _, arg := range args {
		text, err := json.Marshal(arg)
		if err != nil {
			return err
		}
		params.Arguments = append(params.Arguments, &runtime.CallArgument{Value: text})
	}
	r, err := try(p, runtime.CallFunctionOn, params)
	if err != nil {
		return err
	}
	if r.ExceptionDetails != nil {
		return fmt.Errorf("%s", r.ExceptionDetails.Text)
	}
	if result == nil || len(r.Result.Value) == 0 {
		return nil
	}
	return json.Unmarshal(r.Result.Value, result)
}

// ---- Pointer

// click clicks in the middle of an element, once it is at rest and nothing lies over it.
func (p *tab) click(role, name string) { p.t.Helper(); p.pointAt(role, name, 1) }

func (p *tab) pointAt(role, name string, clicks int64) {
	p.t.Helper()
	var x, y float64
	var why string
	if !eventually(func() bool {
		found, err := p.look(role, name)
		if len(found) != 1 {
			why = fmt.Sprintf("there are %d: %v (%v)", len(found), found, err)
			return false
		}
		x, y, why = p.place(found[0])
		return why == ""
	}) {
		p.t.Fatalf("waited %s to click %s %q: %s", patience, role, name, why)
	}
	p.clickAt(x, y, clicks)
}

// clickPart clicks an element that was found.
func (p *tab) clickPart(e part) {
	p.t.Helper()
	var x, y float64
	var why string
	if !eventually(func() bool { x, y, why = p.place(e); return why == "" }) {
		p.t.Fatalf("waited %s to click %v: %s", patience, e, why)
	}
	p.clickAt(x, y, 1)
}

func (p *tab) clickAt(x, y float64, clicks int64) {
	p.t.Helper()
	mouse := input.DispatchMouseEventParams{Type: "mouseMoved", X: x, Y: y}
	command(p, input.DispatchMouseEvent, mouse)
	for n := int64(1); n <= clicks; n++ {
		mouse.Button, mouse.ClickCount = "left", n
		for _, kind := range []input.DispatchMouseEventType{"mousePressed", "mouseReleased"} {
			mouse.Type = kind
			command(p, input.DispatchMouseEvent, mouse)
		}
	}
}

// place returns the middle of an element in the window, or why it cannot be clicked yet.
func (p *tab) place(e part) (x, y float64, why string) {
	var r struct {
		X, Y float64
		Why  string
	}
	err := p.tryOn(e, `async function() {
		const node = this.nodeType === 3 ? this.parentElement : this;
		if (!node?.isConnected) return {Why: 'it has gone'};
		if (node.disabled) return {Why: 'it is disabled'};
		const middle = () => { const b = (node.getClientRects()[0] ?? node.getBoundingClientRect()); return [b.left + b.width / 2, b.top + b.height / 2, b.width, b.height]; };
		let [x, y] = middle();
		if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight || !over(x, y)) node.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
		const before = middle();
		await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
		const after = middle();
		[x, y] = after;
		if (after[2] === 0 || after[3] === 0) return {Why: 'it has no size'};
		if (String(before) !== String(after)) return {Why: 'it moves'};
		function over(x, y) {
			const top = document.elementFromPoint(x, y);
			return !!top && (node.contains(top) || top.closest('label')?.control === node);
		}
		if (!over(x, y)) return {Why: 'over it lies ' + (document.elementFromPoint(x, y)?.outerHTML.slice(0, 200) ?? 'nothing: it is outside')};
		return {X: x, Y: y, Why: ''};
	}`, &r)
	if err != nil {
		return 0, 0, err.Error()
	}
	return r.X, r.Y, r.Why
}

// wheel turns the wheel over the middle of the window.
func (p *tab) wheel(pixels float64) {
	p.t.Helper()
	command(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: "mouseWheel", X: 640, Y: 500, DeltaX: 1e-9, DeltaY: pixels})
}

// fill replaces what is in a field.
func (p *tab) fill(role, name, text string) {
	p.t.Helper()
	p.focus(role, name)
	p.press("Control+a")
	if text == "" {
		p.press("Delete")
		return
	}
	p.insert(text)
}

// focus puts the focus on an element without pointer and keyboard.
func (p *tab) focus(role, name string) {
	p.t.Helper()
	var last error
	if !eventually(func() bool {
		e := p.find(role, name)
		_, last = try(p, dom.Focus, dom.FocusParams{BackendNodeID: e.node}) // not yet, of one that is disabled for now
		return last == nil
	}) {
		p.t.Fatalf("focus %s %q: %v", role, name, last)
	}
}

// choose sets a select element to the option of this text.
func (p *tab) choose(role, name, option string) {
	p.t.Helper()
	p.on(p.find(role, name), `function(text) {
		const option = [...this.options].find((o) => o.text.trim() === text);
		if (!option) throw new Error('no option ' + text + ' in ' + [...this.options].map((o) => o.text));
		this.value = option.value;
		this.dispatchEvent(new Event('input', {bubbles: true}));
		this.dispatchEvent(new Event('change', {bubbles: true}));
	}`, nil, option)
}

// upload gives files to the file field that a CSS selector finds, as the dialog of the browser does.
func (p *tab) upload(selector string, files ...string) {
	p.t.Helper()
	p.until(`document.querySelector(` + quoted(selector) + `)`)
	r := command(p, runtime.Evaluate, runtime.EvaluateParams{Expression: `document.querySelector(` + quoted(selector) + `)`})
	command(p, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: files, ObjectID: r.Result.ObjectID})
}

// downloads lets the browser store files of links in a directory, which it returns.
func (p *tab) downloads() (dir string) {
	p.t.Helper()
	dir = p.t.TempDir()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	yes := true
	_, err := chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: "allow", BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID, DownloadPath: dir, EventsEnabled: &yes})
	p.do(err)
	return dir
}

// downloaded waits for a file of a directory of downloads, and returns its content.
func (p *tab) downloaded(dir, pattern string) string {
	p.t.Helper()
	var text []byte
	p.wait("the file "+pattern, func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		if len(found) != 1 || strings.HasSuffix(found[0], ".crdownload") {
			return false
		}
		var err error
		text, err = os.ReadFile(found[0])
		return err == nil && len(text) > 0 // Chromium makes an empty file of this name first
	})
	return string(text)
}

// ---- Keyboard

// insert puts text at the cursor at once, as from the clipboard or an input method.
func (p *tab) insert(text string) {
	p.t.Helper()
	command(p, input.InsertText, input.InsertTextParams{Text: text})
}

// typing types text, a key for each character.
func (p *tab) typing(text string) {
	p.t.Helper()
	for _, r := range text {
		if r == '\n' {
			p.press("Enter")
			continue
		}
		p.press(string(r))
	}
}

// keyCodes are the names of keys and their numbers in events.
var keyCodes = map[string]int64{
	"Enter": 13, "Escape": 27, "Tab": 9, "Backspace": 8, "Delete": 46, "Space": 32, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39,
	"Home": 36, "End": 35, "PageUp": 33, "PageDown": 34, "F1": 112, "F2": 113, "F3": 114, "F8": 119,
}

// punctuation are the keys of an American keyboard, with the character that Shift makes.
var punctuation = map[rune]struct {
	code  string
	vk    int64
	shift bool
}{
	'/': {"Slash", 191, false}, '?': {"Slash", 191, true}, '.': {"Period", 190, false}, '>': {"Period", 190, true}, ',': {"Comma", 188, false}, '<': {"Comma", 188, true},
	';': {"Semicolon", 186, false}, ':': {"Semicolon", 186, true}, '\'': {"Quote", 222, false}, '"': {"Quote", 222, true}, '[': {"BracketLeft", 219, false}, '{': {"BracketLeft", 219, true},
	']': {"BracketRight", 221, false}, '}': {"BracketRight", 221, true}, '\\': {"Backslash", 220, false}, '|': {"Backslash", 220, true}, '-': {"Minus", 189, false}, '_': {"Minus", 189, true},
	'=': {"Equal", 187, false}, '+': {"Equal", 187, true}, '`': {"Backquote", 192, false}, '~': {"Backquote", 192, true}, '!': {"Digit1", 49, true}, '@': {"Digit2", 50, true},
	'#': {"Digit3", 51, true}, '$': {"Digit4", 52, true}, '%': {"Digit5", 53, true}, '^': {"Digit6", 54, true}, '&': {"Digit7", 55, true}, '*': {"Digit8", 56, true}, '(': {"Digit9", 57, true}, ')': {"Digit0", 48, true},
	' ': {"Space", 32, false},
}

// press presses keys, one after the other: "Enter", "a", "?", "Control+s", "Shift+Tab".
func (p *tab) press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		e := p.keyOf(key)
		text := e.Text
		e.Type = "keyDown"
		if text == "" {
			e.Type = "rawKeyDown"
		}
		command(p, input.DispatchKeyEvent, e)
		e.Type, e.Text, e.UnmodifiedText = "keyUp", "", ""
		command(p, input.DispatchKeyEvent, e)
	}
}

func (p *tab) keyOf(key string) (e input.DispatchKeyEventParams) {
	p.t.Helper()
	for {
		name, rest, found := strings.Cut(key, "+")
		if !found || name == "" || rest == "" {
			break
		}
		bit, is := map[string]int64{"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}[name]
		if !is {
			p.t.Fatalf("unknown key %q", key)
		}
		e.Modifiers |= bit
		key = rest
	}
	if vk, is := keyCodes[key]; is {
		e.Key, e.Code, e.WindowsVirtualKeyCode = key, key, vk
		switch key {
		case "Enter":
			e.Text = "\r"
		case "Space":
			e.Key, e.Text = " ", " "
		}
	} else {
		r := []rune(key)
		if len(r) != 1 {
			p.t.Fatalf("unknown key %q", key)
		}
		e.Key, e.Text = key, key
		switch c := r[0]; {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			upper := strings.ToUpper(key)
			e.Code, e.WindowsVirtualKeyCode = "Key"+upper, int64(upper[0])
			if key == upper {
				e.Modifiers |= 8
			}
		case c >= '0' && c <= '9':
			e.Code, e.WindowsVirtualKeyCode = "Digit"+key, int64(c)
		default:
			if known, is := punctuation[c]; is {
				e.Code, e.WindowsVirtualKeyCode = known.code, known.vk
				if known.shift {
					e.Modifiers |= 8
				}
			}
		}
	}
	if e.Modifiers&(1|2|4) != 0 {
		e.Text = "" // a shortcut types nothing
	}
	e.UnmodifiedText = e.Text
	return e
}

// focused returns role and name of what has the focus.
func (p *tab) focused() part {
	p.t.Helper()
	for _, e := range p.tree() {
		if e.properties["focused"] == "true" && e.role != "RootWebArea" {
			return e
		}
	}
	return part{}
}

// tabTo presses Tab until an element has the focus, as one does without a pointer. In an
// editor Tab indents, and Escape comes first, as its help says.
func (p *tab) tabTo(role, name string) {
	p.t.Helper()
	for range 200 {
		if e := p.focused(); e.role == role && fits(e.name, name) {
			return
		}
		var editor bool
		p.eval(`document.activeElement?.tagName === 'TEXTAREA'`, &editor)
		if editor {
			p.press("Escape")
		}
		p.press("Tab")
	}
	p.t.Fatalf("200 times Tab do not lead to %s %q", role, name)
}

// ---- Memory

// heap returns the bytes of JavaScript's heap after a collection, and the nodes of the page's documents.
func (p *tab) heap() (bytes, nodes int64) {
	p.t.Helper()
	for range 3 { // what a finalizer frees goes in the next one
		command(p, heapprofiler.CollectGarbage, cdp.Empty{})
	}
	used := command(p, runtime.GetHeapUsage, cdp.Empty{})
	return int64(used.UsedSize), command(p, memory.GetDOMCounters, cdp.Empty{}).Nodes
}

// picture stores what is seen as a PNG.
func (p *tab) picture(file string) {
	p.t.Helper()
	r := command(p, page.CaptureScreenshot, page.CaptureScreenshotParams{})
	p.do(os.MkdirAll(filepath.Dir(file), 0o755))
	p.do(os.WriteFile(file, r.Data, 0o644))
}
