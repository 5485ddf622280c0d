package studio

import (
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// ask sends a request to the handler.
func ask(method, url string, header ...string) *http.Response {
	r := httptest.NewRequest(method, url, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler("").ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, reply *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Ensure that every address of a page answers the one HTML page, under headers that keep
// all scripts but the studio's out.
func TestHandler_Pages(t *testing.T) {
	t.Parallel()
	first := ""
	for _, url := range []string{"/studio/", "/studio/databases", "/studio/db/shop/documents?collection=Orders&from=a%2F1", "/studio/db/a%2Fb/doc?id=%3Cscript%3E", "/studio/nothing/here", "/studio/assets"} {
		reply := ask("GET", url)
		if reply.StatusCode != 200 || reply.Header.Get("Content-Type") != "text/html; charset=utf-8" || reply.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: got %d %v", url, reply.StatusCode, reply.Header)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := reply.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", url, name, got, want)
			}
		}
		if text := body(t, reply); first == "" {
			first = text
		} else if text != first {
			t.Errorf("%s: got another page", url)
		}
	}
	policy := ask("GET", "/studio/").Header.Get("Content-Security-Policy")
	for _, directive := range []string{"default-src 'none'", "script-src example.com/studio/assets/", "worker-src example.com/studio/assets/", "style-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy+";", directive+";") {
			t.Errorf("the policy lacks %q: %s", directive, policy)
		}
	}
	for _, bad := range []string{"unsafe", "http:", "https:", "*"} {
		if strings.Contains(policy, bad) {
			t.Errorf("the policy has %q: %s", bad, policy)
		}
	}
}

// Ensure that the policy of a host that cannot be named in one is still that of the host itself.
func TestPolicy_IPv6(t *testing.T) {
	t.Parallel()
	if got := policy("[::1]:8080", ""); got != contentSecurityPolicy || !strings.Contains(got, "script-src 'self';") {
		t.Errorf("got %s", got)
	}
	if got := policy("127.0.0.1:8080", ""); !strings.Contains(got, "script-src 127.0.0.1:8080/studio/assets/;") {
		t.Errorf("got %s", got)
	}
}

// Ensure that the page names each file by its contents, that files are kept by browsers for
// good, and that those of another version are missing rather than wrong.
func TestHandler_Files(t *testing.T) {
	t.Parallel()
	page := body(t, ask("GET", "/studio/"))
	links := regexp.MustCompile(`(?:href|src)="(/studio/assets/[^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(links) < 10 {
		t.Fatalf("the page names %d files: %s", len(links), page)
	}
	if at, of := strings.Index(page, "base.css"), strings.Index(page, ".css"); at < 0 || of < at {
		t.Error("base.css must be the first style")
	}
	for _, link := range links {
		plain := ask("GET", link[1])
		text := body(t, plain)
		if plain.StatusCode != 200 || !strings.Contains(plain.Header.Get("Cache-Control"), "immutable") || text == "" {
			t.Errorf("%s: got %d %v", link[1], plain.StatusCode, plain.Header)
			continue
		}
		packed := ask("GET", link[1], "Accept-Encoding", "gzip")
		if packed.Header.Get("Content-Encoding") == "gzip" {
			r, err := gzip.NewReader(packed.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || string(got) != text {
				t.Errorf("%s: packed it is another file (%v)", link[1], err)
			}
		}
		if again := ask("GET", link[1], "If-None-Match", plain.Header.Get("ETag")); again.StatusCode != 304 || body(t, again) != "" {
			t.Errorf("%s: got %d for what is there already", link[1], again.StatusCode)
		}
		if head := ask("HEAD", link[1]); head.StatusCode != 200 || body(t, head) != "" || head.Header.Get("Content-Length") == "" {
			t.Errorf("HEAD %s: got %d %v", link[1], head.StatusCode, head.Header)
		}
	}
	for _, url := range []string{"/studio/assets/0000000000000000/app.js", "/studio/assets/" + load().version + "/none.js", "/studio/assets/" + load().version + "/../studio.go", "/studio/assets/", "/studio/assets/" + load().version + "/"} {
		if reply := ask("GET", url); reply.StatusCode != 404 || reply.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %d %v", url, reply.StatusCode, reply.Header)
		}
	}
	if reply := ask("POST", "/studio/"); reply.StatusCode != 405 || reply.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: got %d", reply.StatusCode)
	}
	if reply := ask("GET", "/studio"); reply.StatusCode != 307 || reply.Header.Get("Location") != Root {
		t.Errorf("/studio: got %d %v", reply.StatusCode, reply.Header)
	}
}

// eachFile calls fn with each embedded file.
func eachFile(t *testing.T, fn func(name, text string)) {
	t.Helper()
	err := fs.WalkDir(embedded, "assets", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(embedded, file)
		fn(strings.TrimPrefix(file, "assets/"), string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Ensure that the files are small, that each module which is imported is there, and that
// nothing is loaded from elsewhere.
func TestAssets(t *testing.T) {
	t.Parallel()
	imported := regexp.MustCompile(`(?m)^(?:import|export)\b[^'"]*?\bfrom\s*['"]([^'"]+)['"]|^import\s*['"]([^'"]+)['"]|\bimport\(['"]([^'"]+)['"]\)`)
	elsewhere := regexp.MustCompile(`(?i)\b(?:https?|wss?|ftp):|['"(]//[a-z]`)
	namespace := "http://www.w3.org/2000/svg"
	sum, modules := 0, 0
	eachFile(t, func(name, text string) {
		sum += len(text)
		if found := elsewhere.FindString(strings.ReplaceAll(text, namespace, "")); found != "" {
			t.Errorf("%s names another host: %s", name, found)
		}
		if path.Ext(name) != ".js" {
			return
		}
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			modules++
			from := m[1] + m[2] + m[3]
			if !strings.HasPrefix(from, ".") {
				t.Errorf("%s imports %q: a module is named by its place", name, from)
			} else if load().assets[path.Join(path.Dir(name), from)] == nil {
				t.Errorf("%s imports %q, which is not there", name, from)
			}
		}
	})
	if modules < 10 {
		t.Errorf("found %d imports: the pattern is wrong", modules)
	}
	if sum > 600<<10 {
		t.Errorf("the studio has %d bytes, more than 600 KiB", sum)
	}
}

// Ensure that no file makes HTML of text, runs text, or needs a weaker policy. The browser refuses most of it; this
// says so before.
func TestAssets_NoHTMLOfText(t *testing.T) {
	t.Parallel()
	bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|document\.write|DOMParser|srcdoc|\beval\(|new Function|setAttribute\('style'|javascript:`)
	inline := regexp.MustCompile(`(?i)<style|<script(?:>| [^>]*>[^<])|\son\w+=|\sstyle=`)
	eachFile(t, func(name, text string) {
		switch path.Ext(name) {
		case ".js":
			if found := bad.FindString(text); found != "" {
				t.Errorf("%s has %s", name, found)
			}
		case ".html":
			if found := inline.FindString(text); found != "" {
				t.Errorf("%s has %s", name, found)
			}
		case ".css":
			if strings.Contains(text, "@import") || strings.Contains(text, "url(") {
				t.Errorf("%s loads something", name)
			}
		}
	})
}

// Ensure that a file of another kind, or one that is too large, is refused when the site is made.
func TestNewSite_Refused(t *testing.T) {
	t.Parallel()
	for name, file := range map[string][]byte{"assets/photo.bmp": []byte("x"), "assets/large.js": make([]byte, MaxFileBytes+1)} {
		if _, err := newSite(fstest.MapFS{"assets/index.html": {Data: []byte("x")}, name: {Data: file}}, ""); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// Ensure that no two pages give rules to the same class: all styles are loaded on all pages. What pages share is in
// base.css; they may put its pieces right where they stand.
func TestAssets_StylesApart(t *testing.T) {
	t.Parallel()
	selector := regexp.MustCompile(`(?m)(?:^|[{},;])\s*\.([a-zA-Z][\w-]*)[^{},;]*(?:,[^{};]*)?\{`)
	comment := regexp.MustCompile(`(?s)/\*.*?\*/`)
	of := make(map[string]string)
	base := string(load().assets["base.css"].plain)
	eachFile(t, func(name, text string) {
		if path.Ext(name) != ".css" || name == "base.css" {
			return
		}
		for _, m := range selector.FindAllStringSubmatch(comment.ReplaceAllString(text, ""), -1) {
			shared := regexp.MustCompile(`\.` + m[1] + `\b`).MatchString(base)
			if other := of[m[1]]; other != "" && other != name && !shared {
				t.Errorf("%s and %s have rules for .%s: give one another name, or move what both want to base.css", other, name, m[1])
			}
			of[m[1]] = name
		}
	})
	if len(of) < 20 {
		t.Errorf("found %d classes: the pattern is wrong", len(of))
	}
}
