package server

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/jaydb/jay"
)

// missingETag is what the Node.js client sends for a document that was missing at its last
// request.
const missingETag = "404 Response"

// documentsRequest has the parameters of a GET or POST of documents.
type documentsRequest struct {
	ids          []string
	includes     []include
	exchanges    []include // paths to the keys of compare-exchange values
	metadataOnly bool

	prefix   string
	prefixed bool
	scan     jay.Scan

	start, size int
}

// getDocuments returns documents by their IDs, or by the prefix of them, or the newest
// ones.
func (c *call) getDocuments() error {
	request, err := c.documentsRequest()
	if err != nil {
		return err
	}
	var found reading
	switch {
	case len(request.ids) > 0:
		err = c.readIDs(&found, request)
	case request.prefixed:
		err = c.readPrefix(&found, request)
	default:
		err = c.readNewest(&found, request)
	}
	if err != nil {
		return err
	}
	if len(request.ids) == 1 && found.docs[0] == nil {
		return c.missing()
	}

	etag := found.etag()
	if c.matches(etag) {
		c.reply.Set("ETag", `"`+etag+`"`)
		return c.empty(http.StatusNotModified)
	}
	c.reply.Set("ETag", `"`+etag+`"`)
	text, err := found.appendTo(nil, request)
	if err != nil {
		return err
	}
	return c.text(http.StatusOK, text)
}

// documentsRequest reads the parameters.
func (c *call) documentsRequest() (r documentsRequest, err error) {
	if r.start, r.size, err = c.params.page(); err != nil {
		return r, err
	}
	if r.metadataOnly, err = c.params.flag("metadataOnly"); err != nil {
		return r, err
	}
	if r.ids = c.params.all("id"); len(c.body) > 0 {
		var body struct{ Ids []string }
		if err := c.decode(&body); err != nil {
			return r, err
		}
		for _, id := range body.Ids { // skip null
			if id != "" {
				r.ids = append(r.ids, id)
			}
		}
	}
	if _, given := c.params.find("id"); len(r.ids) == 0 && (given || len(c.body) > 0) {
		return r, badRequest("the request names no ID")
	}
	for _, name := range []string{"counter", "timeseries", "timeseriestime", "timeseriescount", "revisions", "revisionsBefore"} {
		if _, given := c.params.find(name); given {
			return r, notSupported("GET %s: including %s is not there", c.route.path, name)
		}
	}
	for _, text := range c.params.all("cmpxchg") {
		if len(r.exchanges) == maxIncludes {
			return r, badRequest("the request has more than %d includes of compare-exchange values", maxIncludes)
		}
		path, err := parseInclude(text)
		if err != nil {
			return r, err
		}
		r.exchanges = append(r.exchanges, path)
	}
	for _, text := range c.params.all("include") {
		if len(r.includes) == maxIncludes {
			return r, badRequest("the request has more than %d includes", maxIncludes)
		}
		path, err := parseInclude(text)
		if err != nil {
			return r, err
		}
		r.includes = append(r.includes, path)
	}
	r.prefix, r.prefixed = c.params.find("startsWith")
	r.scan = jay.Scan{Prefix: r.prefix, Matches: c.params.get("matches"), Exclude: c.params.get("exclude"), After: c.params.get("startAfter")}
	return r, nil
}

// reading is the result of reading documents.
type reading struct {
	docs     []*jay.Document // nil for a missing one
	included []*jay.Document
	bytes    int64

	guards    map[*jay.Document]uint64             // the indexes of the guards, for a cluster-wide session; else nil
	exchanges map[string]*jay.CompareExchangeValue // included
}

// add adds a document, within the bounds of a reply.
func (f *reading) add(c *call, list *[]*jay.Document, doc *jay.Document) error {
	if doc != nil {
		size := int64(len(doc.Body())) + 512
		if f.bytes += size; f.bytes > c.s.opts.MaxReplyBytes {
			return tooLarge("the reply has more than %d bytes, which is the most: ask for a page, or for a stream", c.s.opts.MaxReplyBytes)
		}
		if err := c.take(2 * size); err != nil { // once as read, and once in the reply
			return err
		}
	}
	*list = append(*list, doc)
	return nil
}

// readIDs reads documents by their IDs, and what they include, in one snapshot.
func (c *call) readIDs(f *reading, r documentsRequest) error {
	if len(r.ids) == 1 && len(r.includes)+len(r.exchanges) == 0 && !c.isClusterWide() {
		doc, err := c.db.Get(c.ctx, r.ids[0])
		if err != nil && !isMissing(err) {
			return err
		}
		return f.add(c, &f.docs, doc)
	}
	return c.db.View(c.ctx, func(tx *jay.Tx) error {
		for _, id := range r.ids {
			doc, err := tx.Get(c.ctx, id)
			if err != nil && !isMissing(err) {
				return err
			}
			if err := f.add(c, &f.docs, doc); err != nil {
				return err
			}
		}
		return c.complete(f, tx, r)
	})
}

// readIncluded reads the documents whose IDs are at the paths in those that were read. A
// document that was requested itself is not included.
func (c *call) readIncluded(f *reading, tx *jay.Tx, includes []include) error {
	if len(includes) == 0 {
		return nil
	}
	seen := make(map[string]bool)
	for _, doc := range f.docs {
		if doc != nil {
			seen[doc.ID()] = true
		}
	}
	refused := error(nil)
	for _, doc := range f.docs {
		if doc == nil {
			continue
		}
		for _, path := range includes {
			if err := c.ctx.Err(); err != nil {
				return err
			}
			path.each(doc.Body(), func(id string) bool {
				if seen[id] || id == "" {
					return true
				}
				if seen[id] = true; len(seen) > maxIncluded {
					refused = tooLarge("the request includes more than %d documents", maxIncluded)
					return false
				}
				refused = c.readInclude(f, tx, id)
				return refused == nil
			})
			if refused != nil {
				return refused
			}
		}
	}
	return nil
}

// readInclude reads one document to include. A missing one is left out: clients notice
// which requested documents did not arrive.
func (c *call) readInclude(f *reading, tx *jay.Tx, id string) error {
	doc, err := tx.Get(c.ctx, id)
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.add(c, &f.included, doc)
}

// isMissing reports whether there is no such document.
func isMissing(err error) bool { return errors.Is(err, jay.ErrNotFound) }

// readPrefix reads documents in the order of their IDs.
func (c *call) readPrefix(f *reading, r documentsRequest) error {
	return c.db.View(c.ctx, func(tx *jay.Tx) error {
		r.scan.Limit = r.start + r.size
		skip := r.start
		if r.size == 0 {
			return nil
		}
		for doc, err := range tx.Documents(c.ctx, r.scan) {
			if err != nil {
				return err
			}
			if skip > 0 {
				skip--
				continue
			}
			if err := f.add(c, &f.docs, doc); err != nil {
				return err
			}
		}
		return c.complete(f, tx, r)
	})
}

// readNewest reads the documents that were written last.
func (c *call) readNewest(f *reading, r documentsRequest) error {
	if r.size == 0 {
		return nil
	}
	return c.db.View(c.ctx, func(tx *jay.Tx) error {
		for doc, err := range tx.Query("").OrderBy("-@metadata.@etag").Skip(r.start).Limit(r.size).Iter(c.ctx) {
			if err != nil {
				return err
			}
			if err := f.add(c, &f.docs, doc); err != nil {
				return err
			}
		}
		return c.complete(f, tx, r)
	})
}

// etag returns the change vector of a single document, or a hash over several.
func (f *reading) etag() string {
	if len(f.docs) == 1 && f.docs[0] != nil && len(f.included)+len(f.guards)+len(f.exchanges) == 0 {
		return f.docs[0].ChangeVector()
	}
	h := fnv.New128a()
	for _, list := range [][]*jay.Document{f.docs, f.included} {
		for _, doc := range list {
			if doc == nil {
				fmt.Fprint(h, "-")
				continue
			}
			fmt.Fprintf(h, "%s %s %d\n", doc.ID(), doc.ChangeVector(), f.guards[doc])
		}
		fmt.Fprint(h, "\n")
	}
	for _, key := range slices.Sorted(maps.Keys(f.exchanges)) {
		fmt.Fprintf(h, "%s %d\n", key, f.exchanges[key].Index)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// appendTo appends the reply.
func (f *reading) appendTo(dst []byte, r documentsRequest) (_ []byte, err error) {
	dst = append(dst, `{"Results":[`...)
	for i, doc := range f.docs {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = f.appendDocument(dst, doc, r.metadataOnly); err != nil {
			return nil, err
		}
	}
	dst = append(dst, ']')
	if !r.prefixed || len(r.includes) > 0 {
		dst = append(dst, `,"Includes":{`...)
		for i, doc := range f.included {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, mustJSON(doc.ID())...)
			dst = append(dst, ':')
			if dst, err = f.appendDocument(dst, doc, false); err != nil {
				return nil, err
			}
		}
		dst = append(dst, '}')
	}
	if len(f.exchanges) > 0 {
		dst = f.appendExchanges(dst)
	}
	return append(dst, '}'), nil
}

// appendDocument appends a document, with the index of its guard if that was read.
func (f *reading) appendDocument(dst []byte, doc *jay.Document, metadataOnly bool) ([]byte, error) {
	if f.guards == nil || doc == nil {
		return appendDocument(dst, doc, metadataOnly)
	}
	text, err := appendDocument(nil, doc, metadataOnly)
	if err == nil {
		text, err = spliceGuard(text, doc, f.guards[doc])
	}
	return append(dst, text...), err
}

// appendDocument appends a document with its @metadata, or with metadataOnly only that.
func appendDocument(dst []byte, doc *jay.Document, metadataOnly bool) ([]byte, error) {
	if doc == nil {
		return append(dst, "null"...), nil
	}
	text, err := doc.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if !metadataOnly {
		return append(dst, text...), nil
	}
	// The members of the body come first, then @metadata.
	members := doc.Body()[:len(doc.Body())-1]
	rest, found := bytes.CutPrefix(text, members)
	if !found {
		return nil, fmt.Errorf("server: the JSON of %q does not begin with its body", doc.ID())
	}
	dst = append(dst, '{')
	return append(dst, bytes.TrimPrefix(rest, []byte(","))...), nil
}

// missing replies that the document does not exist. RavenDB's clients cache that reply,
// too.
func (c *call) missing() error {
	if tag := c.header.Get("If-None-Match"); strings.Trim(tag, `"`) == missingETag {
		return c.empty(http.StatusNotModified)
	}
	if c.nested { // the Node.js client reads a result whatever the status
		return c.text(http.StatusNotFound, []byte(`{"Results":[null],"Includes":{}}`))
	}
	return c.empty(http.StatusNotFound)
}

// matches reports whether the client has this version already. In a HEAD, RavenDB's
// clients send the etag without quotes.
func (c *call) matches(etag string) bool {
	for _, line := range c.header["If-None-Match"] {
		for one := range strings.SplitSeq(line, ",") {
			one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
			if one == "*" || strings.Trim(one, `"`) == etag {
				return true
			}
		}
	}
	return false
}

// headDocument replies with the version of a document.
func (c *call) headDocument() error {
	id, err := c.documentID()
	if err != nil {
		return err
	}
	doc, err := c.db.Get(c.ctx, id)
	if isMissing(err) {
		return c.empty(http.StatusNotFound)
	}
	if err != nil {
		return err
	}
	c.reply.Set("ETag", `"`+doc.ChangeVector()+`"`)
	if c.matches(doc.ChangeVector()) {
		return c.empty(http.StatusNotModified)
	}
	return c.empty(http.StatusOK)
}

// documentID returns the ID that the URL names.
func (c *call) documentID() (string, error) {
	id, found := c.params.find("id")
	if !found || id == "" {
		return "", badRequest("the URL names no document: id is missing")
	}
	return id, nil
}

// ifMatch reads If-Match. version is the version that the document must have, "" if it
// must not exist, or nil for any. found is false without the header.
func (c *call) ifMatch() (version *string, found bool, err error) {
	tag, found := c.header["If-Match"]
	switch {
	case !found:
		return nil, false, nil
	case len(tag) > 1 || strings.Contains(strings.Replace(tag[0], guardMark, "", 1), ","):
		return nil, true, badRequest("If-Match must name one version")
	case tag[0] == "*":
		return nil, true, nil
	case strings.HasPrefix(tag[0], "W/"):
		return nil, true, badRequest("If-Match must not be a weak tag")
	}
	text := tag[0]
	if len(text) > 1 && text[0] == '"' && text[len(text)-1] == '"' {
		text = text[1 : len(text)-1]
	}
	text, _, _ = splitVector(text)
	return &text, true, nil
}

// condition reads If-Match as options of a write. exists reports that the document must
// exist, in any version.
func (c *call) condition() (opts []jay.WriteOption, exists bool, err error) {
	version, found, err := c.ifMatch()
	if err != nil || version == nil {
		return nil, found, err
	}
	return []jay.WriteOption{jay.IfMatch(*version)}, false, nil
}

// versionCondition reads If-Match as condition does, but refuses "any version".
func (c *call) versionCondition(what string) ([]jay.WriteOption, error) {
	opts, exists, err := c.condition()
	if err == nil && exists {
		err = badRequest("If-Match of %s", what)
	}
	return opts, err
}

// putDocument stores the body under the ID or under a generated one: an empty ID requests
// a GUID, one that ends with '/' a server-side ID, and one that ends with '|' an identity.
func (c *call) putDocument() error {
	id, found := c.params.find("id")
	if !found {
		return badRequest("the URL names no document: id is missing")
	}
	opts, exists, err := c.condition()
	if err != nil {
		return err
	}
	if strings.HasSuffix(id, "|") {
		c.boundMajority()
	}
	put := c.db.Put
	if exists {
		put = c.db.Replace
	}
	meta, err := put(c.ctx, id, c.body, opts...)
	if exists && isMissing(err) {
		return &problem{status: http.StatusConflict, kind: typeConcurrency, message: fmt.Sprintf("there is no document %.100q, and If-Match asks for one", id)}
	}
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, map[string]string{"Id": meta.ID, "ChangeVector": meta.ChangeVector})
}

// deleteDocument deletes the document, if there is one.
func (c *call) deleteDocument() error {
	id, err := c.documentID()
	if err != nil {
		return err
	}
	opts, err := c.versionCondition("a deletion must name a version")
	if err != nil {
		return err
	}
	if err := c.db.Delete(c.ctx, id, opts...); err != nil {
		return err
	}
	return c.empty(http.StatusNoContent)
}
