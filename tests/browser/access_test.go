package browser_test

import (
	"html"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"

	"github.com/jaydb/jay/server"
)

// clock is a clock that tests move.
type clock struct {
	mu sync.Mutex
	by time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.by)
}

func (c *clock) advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by += by
}

// startGuarded starts a server that asks for tokens, with the database shop. The clients
// of the returned studio have all rights; tokens are by the name of their right.
func startGuarded(t *testing.T, change ...func(o *server.Options)) (s *studio, tokens map[string]string, now *clock) {
	t.Helper()
	dir, now := t.TempDir(), &clock{}
	tokens = make(map[string]string)
	for name, rights := range map[string]server.Rights{"root": {"*": server.AdminRight}, "read": {"shop": server.ReadRight}, "write": {"shop": server.WriteRight}, "admin": {"shop": server.AdminRight}} {
		var err error
		if tokens[name], err = server.AccessOf(dir).CreateToken(name, rights, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	s = startServer(t, append(change, func(o *server.Options) { o.Data, o.Authenticate, o.Now = dir, true, now.now })...)
	s.token = tokens["root"]
	s.create("shop")
	return s, tokens, now
}

// signIn fills in the dialog that asks for a token.
func (p *tab) signIn(token string) {
	p.t.Helper()
	p.allow("status of 401")
	p.in("dialog", "Sign in").fill("textbox", "Token", token)
	p.press("Enter")
}

// Ensure that a token is asked for, that a wrong one is refused where it was typed, and
// that the right one opens the page that was asked for.
func TestAccess_SignIn(t *testing.T) {
	s, tokens, _ := startGuarded(t)
	p := s.open("/studio/databases")
	p.signIn("jay_nonsense")
	p.see("the token is not valid")
	p.auditEverywhere("sign in")
	p.signIn(tokens["root"])
	p.see("shop")
	p.lacks("dialog", "Sign in")
	p.reload() // the cookie is enough
	p.see("shop")
	var cookie string
	p.eval(`document.cookie`, &cookie)
	if cookie != "" {
		t.Errorf("scripts see the cookie %q", cookie)
	}
	p.click("button", "Signed in as root")
	p.loads(func() { p.click("menuitem", "Sign out") })
	p.find("dialog", "Sign in")
}

// Ensure that the address of an invitation opens the studio, that it is not kept, neither
// in the address nor in the history, and that it works once.
func TestAccess_Invitation(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.InvitedOnly = true })
	for _, from := range []string{"the address bar", "a file"} {
		path, err := s.s.Invite(server.AdminRight)
		if err != nil {
			t.Fatal(err)
		}
		address := s.url + path
		if from == "a file" {
			file := filepath.Join(t.TempDir(), "studio.html")
			text := `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Jay</title><meta http-equiv="refresh" content="0; url=` + html.EscapeString(address) + `">`
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			address = "file://" + file
		}
		p := s.blank()
		p.visit(address)
		p.see("There are no databases yet.")
		if p.address() != "/studio/databases" {
			t.Errorf("from %s: the address is %s", from, p.address())
		}
		for _, entry := range command(p, page.GetNavigationHistory, cdp.Empty{}).Entries {
			if strings.Contains(entry.URL, "ticket") {
				t.Errorf("from %s: the history keeps %s", from, entry.URL)
			}
		}
		var referrer string
		p.eval(`document.referrer`, &referrer)
		if strings.Contains(referrer, "ticket") {
			t.Errorf("from %s: the referrer is %s", from, referrer)
		}
		p.reload()
		p.see("There are no databases yet.")

		other := s.blank()
		other.allow("status of 401")
		other.visit(s.url + path)
		other.see("each works once")
		other.see("Press Enter in the terminal of jay studio")
		other.visit("/studio/databases")
		other.see("The studio is not open here")
	}
}

// Ensure that a session which ends says so and loses nothing, and that jay studio says
// where a new one begins.
func TestAccess_SessionEnds(t *testing.T) {
	s, tokens, now := startGuarded(t)
	p := s.open("/studio/databases")
	p.signIn(tokens["root"])
	p.see("shop")
	p.see("KB") // the last call of the page was answered
	now.advance(13 * time.Hour)
	p.press("n")
	p.in("dialog", "New database").fill("textbox", "Name", "typed-before")
	p.press("Enter")
	p.see("The session has ended.")
	p.in("dialog", "Sign in").fill("textbox", "Token", tokens["root"])
	p.press("Enter")
	p.lacks("dialog", "Sign in")
	if got := p.in("dialog", "New database").value("textbox", "Name"); got != "typed-before" {
		t.Errorf("what was typed became %q", got)
	}
	p.in("dialog", "New database").click("button", "Create*")
	p.wait("the database", func() bool { return s.call("GET", "/databases/typed-before/stats", "").status == 200 })
}

// Ensure that who has signed in can upload, download and follow changes, also after the page
// was loaded again and in another tab: what the browser itself asks for has no header of
// the page.
func TestAccess_Downloads(t *testing.T) {
	s, tokens, _ := startGuarded(t)
	s.put("orders/1", "Orders", `{"A":1}`)
	p := s.open("/studio/db/shop/doc?id=orders/1")
	p.signIn(tokens["write"])
	file := filepath.Join(t.TempDir(), "a & 'c'.txt")
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.find("button", "Attach files")
	p.upload("input[type=file]", file)
	p.see("Attached a & 'c'.txt.")
	p.reload()
	p.find("link", "a & 'c'.txt")
	dir := p.downloads()
	p.click("link", "a & 'c'.txt")
	if got := p.downloaded(dir, "*.txt"); got != "hello" {
		t.Errorf("downloaded %q", got)
	}

	p.visit("/studio/db/shop/backup")
	p.click("button", "Make a backup")
	p.see("in the downloads of the browser")
	if text := p.downloaded(dir, "shop-*.backup"); !strings.HasPrefix(text, "jay backup") {
		t.Errorf("downloaded %.20q", text)
	}

	p.visit("/studio/db/shop/documents?collection=Orders")
	p.find("link", "orders/1")
	p.wait("the change", func() bool {
		s.put("orders/2", "Orders", `{}`)
		return p.has("button", "1 changed")
	})
}
