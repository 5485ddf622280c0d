// Package studio has the pages with which a browser shows and changes the databases of a
// server. They are embedded files: HTML, CSS and ES modules as written, without a build
// step. assets/app.js describes how they are built.
package studio

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed assets
var embedded embed.FS

// MaxFileBytes bounds a file of the studio.
const MaxFileBytes = 256 << 10

// Root is the path at which a server must mount the Handler, below its base.
const Root = "/studio/"

// contentSecurityPolicy lets the pages load only files of this package, run no inline
// script or style, and never turn text into HTML. The browser enforces it.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; connect-src 'self'; worker-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// plainHost matches the hosts that a policy can name: no addresses of IPv6.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?$`)

// policy returns the policy of a page of this host. Scripts come from the path of the files
// of this package: an attachment of the same host is none.
func policy(host, base string) string {
	if !plainHost.MatchString(host) {
		return contentSecurityPolicy
	}
	scripts := "-src " + host + base + Root + "assets/;"
	return strings.NewReplacer("script-src 'self';", "script"+scripts, "worker-src 'self';", "worker"+scripts).Replace(contentSecurityPolicy)
}

// asset is a file, prepared for sending.
type asset struct {
	kind   string // Content-Type
	plain  []byte
	packed []byte // compressed by gzip; nil if that is not shorter
	tag    string // ETag
}

// site has all files.
type site struct {
	base    string // the path below which Root is
	version string // hash of the contents of all files, which is in their URLs
	shell   *asset // the one HTML page
	assets  map[string]*asset
}

// load reads the embedded files once.
var load = sync.OnceValue(func() *site { return below("") })

// below reads the embedded files for a base.
func below(base string) *site {
	s, err := newSite(embedded, base)
	if err != nil {
		panic(err) // cannot happen: the files are part of the program
	}
	return s
}

// newSite reads the files below assets.
func newSite(files fs.FS, base string) (*site, error) {
	s := &site{base: base, assets: make(map[string]*asset)}
	sum := sha256.New()
	var page []byte
	err := fs.WalkDir(files, "assets", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(file, "assets/")
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
		if name == "index.html" {
			page = text
			return nil
		}
		s.assets[name], err = newAsset(name, text)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.version = hex.EncodeToString(sum.Sum(nil))[:16]
	s.shell, err = newAsset("index.html", s.fill(page))
	return s, err
}

// fill inserts the URLs of the files into the page: all styles, base.css first, and the
// modules outside pages/, so that the browser requests them at once.
func (s *site) fill(page []byte) []byte {
	var head strings.Builder
	base := s.base + Root + "assets/" + s.version + "/"
	var names []string
	for name := range s.assets {
		if name != "base.css" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range append([]string{"base.css"}, names...) {
		switch {
		case path.Ext(name) == ".css":
			fmt.Fprintf(&head, "<link rel=\"stylesheet\" href=\"%s\">\n", base+name)
		case path.Ext(name) == ".js" && !strings.Contains(name, "/"):
			fmt.Fprintf(&head, "<link rel=\"modulepreload\" href=\"%s\">\n", base+name)
		}
	}
	page = bytes.ReplaceAll(page, []byte("<!-- styles and modules -->\n"), []byte(head.String()))
	return bytes.ReplaceAll(page, []byte("{assets}/"), []byte(base))
}

// kinds maps extensions to content types. The machine's own table may differ.
var kinds = map[string]string{
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".svg":  "image/svg+xml",
}

// newAsset prepares a file for sending.
func newAsset(name string, text []byte) (*asset, error) {
	kind := kinds[path.Ext(name)]
	if kind == "" {
		return nil, fmt.Errorf("studio: %s: what is the type of this file?", name)
	}
	if len(text) > MaxFileBytes {
		return nil, fmt.Errorf("studio: %s has %d bytes, more than %d", name, len(text), MaxFileBytes)
	}
	sum := sha256.Sum256(text)
	a := &asset{kind: kind, plain: text, tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if packed.Len() < len(text) {
		a.packed = packed.Bytes()
	}
	return a, nil
}

// Handler serves the paths below Root: the files, and for every address of a page the same
// HTML, whose script then shows that page. It needs no credentials, as the files contain
// nothing about any database; the requests of the pages need them.
//
// base is the path of the host that the server is mounted below, such as /admin/db, and "" for the host itself. Requests come
// without it, and addresses are made with it.
func Handler(base string) http.Handler {
	if base == "" {
		return http.HandlerFunc(load().serve)
	}
	return http.HandlerFunc(below(base).serve)
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy(r.Host, s.base))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "The studio takes GET and HEAD.", http.StatusMethodNotAllowed)
		return
	}
	rest, found := strings.CutPrefix(r.URL.Path, Root)
	if !found {
		http.Redirect(w, r, s.base+Root, http.StatusTemporaryRedirect)
		return
	}
	file, found := strings.CutPrefix(rest, "assets/")
	if !found {
		h.Set("Cache-Control", "no-cache") // it refers to the files of this version
		s.shell.send(w, r)
		return
	}
	version, name, _ := strings.Cut(file, "/")
	a := s.assets[name]
	if version != s.version || a == nil {
		h.Set("Cache-Control", "no-store")
		http.Error(w, "The studio has no such file. If the server was updated, load the page again.", http.StatusNotFound)
		return
	}
	h.Set("Cache-Control", "public, max-age=31536000, immutable") // other contents get another URL
	a.send(w, r)
}

// send writes the file.
func (a *asset) send(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("ETag", a.tag)
	h.Add("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("If-None-Match"), a.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", a.kind)
	text := a.plain
	if a.packed != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		text = a.packed
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(text) // a client that has gone away needs no reply
	}
}
