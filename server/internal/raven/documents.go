package raven

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// documentRoutes are the endpoints of single documents.
var documentRoutes = []*serve.Route{
	{Method: "GET", Path: "{D}/docs", Run: getDocuments, Lazy: true, Heeds: serve.NoneMatch, Takes: "cmpxchg* counter exclude id* include* matches metadataOnly pageSize revisions revisionsBefore start startAfter startsWith timeseries timeseriescount timeseriestime txMode"},
	{Method: "POST", Path: "{D}/docs", Run: getDocuments, Body: true, Lazy: true, Needs: serve.ReadRight, Heeds: serve.NoneMatch, Takes: "cmpxchg* counter exclude id* include* matches metadataOnly pageSize revisions revisionsBefore start startAfter startsWith timeseries timeseriescount timeseriestime txMode"},
	{Method: "HEAD", Path: "{D}/docs", Run: headDocument, Heeds: serve.NoneMatch, Takes: "id"},
	{Method: "PUT", Path: "{D}/docs", Run: putDocument, Body: true, Stores: true, Params: serve.ParseWriteParams, Heeds: serve.Match | serve.NoneMatch, Takes: "id"},
	{Method: "DELETE", Path: "{D}/docs", Run: deleteDocument, Params: serve.ParseWriteParams, Heeds: serve.Match, Takes: "id"},
}

// missingETag is what the Node.js client sends for a document that was missing at its last
// request.
const missingETag = "404 Response"

// getDocuments returns documents by their IDs, or by the prefix of them, or the newest
// ones.
func getDocuments(c *serve.Call) error {
	request, err := readDocumentsRequest(c)
	if err != nil {
		return err
	}
	var found reading
	if request.isSingle() {
		err = readIDs(c, &found, request)
	} else {
		err = c.InTime(func() error { return readMany(c, &found, request) })
	}
	if err != nil {
		return err
	}
	if len(request.ids) == 1 && found.docs[0] == nil {
		return missing(c)
	}

	etag := found.etag()
	if matches(c, etag) {
		c.Reply.Set("ETag", `"`+etag+`"`)
		return c.Empty(http.StatusNotModified)
	}
	c.Reply.Set("ETag", `"`+etag+`"`)
	text, err := found.appendTo(nil, request)
	if err != nil {
		return err
	}
	return c.Text(http.StatusOK, text)
}

// readDocumentsRequest reads the parameters.
func readDocumentsRequest(c *serve.Call) (r documentsRequest, err error) {
	if r.start, r.size, err = c.Params.Page(); err != nil {
		return r, err
	}
	if r.metadataOnly, err = c.Params.Flag("metadataOnly"); err != nil {
		return r, err
	}
	if r.ids = c.Params.Every("id"); len(c.Body) > 0 {
		var body struct{ Ids []string }
		if err := c.Decode(&body); err != nil {
			return r, err
		}
		r.ids = append(r.ids, body.Ids...)
	}
	if len(r.ids) == 0 && len(c.Body) > 0 || len(r.ids) == 1 && r.ids[0] == "" {
		return r, serve.BadRequest("the request names no ID")
	}
	for _, name := range []string{"counter", "timeseries", "timeseriestime", "timeseriescount", "revisions", "revisionsBefore"} {
		if _, given := c.Params.Find(name); given {
			return r, serve.NotSupported("GET %s: including %s is not there", c.Route.Path, name)
		}
	}
	for _, text := range c.Params.All("cmpxchg") {
		if len(r.exchanges) == maxIncludes {
			return r, serve.BadRequest("the request has more than %d includes of compare-exchange values", maxIncludes)
		}
		path, err := parseInclude(text)
		if err != nil {
			return r, err
		}
		r.exchanges = append(r.exchanges, path)
	}
	for _, text := range c.Params.All("include") {
		if len(r.includes) == maxIncludes {
			return r, serve.BadRequest("the request has more than %d includes", maxIncludes)
		}
		path, err := parseInclude(text)
		if err != nil {
			return r, err
		}
		r.includes = append(r.includes, path)
	}
	switch mode := strings.ToLower(c.Params.Get("txMode")); mode {
	case "", "singlenode", "clusterwide":
	default:
		return r, serve.BadRequest("txMode is SingleNode or ClusterWide, not %.100q", mode)
	}
	r.prefix, r.prefixed = c.Params.Find("startsWith")
	switch {
	case len(r.ids) > 0:
		err = c.Params.Alone("id", "startsWith", "matches", "exclude", "startAfter", "start", "pageSize")
	case !r.prefixed:
		for _, name := range []string{"matches", "exclude", "startAfter"} {
			if c.Params.Get(name) != "" {
				err = serve.BadRequest("the parameter %s has no effect without startsWith", name)
			}
		}
	}
	if err != nil {
		return r, err
	}
	r.scan = jay.Scan{Prefix: r.prefix, Matches: c.Params.Get("matches"), Exclude: c.Params.Get("exclude"), After: c.Params.Get("startAfter")}
	return r, nil
}

// isSingle reports whether the request is for one document and nothing else, which most are.
func (r *documentsRequest) isSingle() bool {
	return len(r.ids) == 1 && len(r.includes)+len(r.exchanges) == 0
}

// readMany reads documents, of which the request may look at many.
func readMany(c *serve.Call, f *reading, r documentsRequest) error {
	switch {
	case len(r.ids) > 0:
		return readIDs(c, f, r)
	case r.prefixed:
		return readPrefix(c, f, r)
	}
	return readNewest(c, f, r)
}

// readIDs reads documents by their IDs, and what they include, in one snapshot.
func readIDs(c *serve.Call, f *reading, r documentsRequest) error {
	if r.isSingle() && !isClusterWide(c) {
		doc, err := c.DB.Get(c.Ctx, r.ids[0])
		if err != nil && !serve.IsMissing(err) {
			return err
		}
		return f.add(c, &f.docs, doc)
	}
	return readWith(c, f, r, func(tx *jay.Tx) error {
		for _, id := range r.ids {
			var doc *jay.Document
			if id != "" { // no ID is that of no document
				var err error
				if doc, err = tx.Get(c.Ctx, id); err != nil && !serve.IsMissing(err) {
					return err
				}
			}
			if err := f.add(c, &f.docs, doc); err != nil {
				return err
			}
		}
		return nil
	})
}

// readPrefix reads documents in the order of their IDs.
func readPrefix(c *serve.Call, f *reading, r documentsRequest) error {
	return readWith(c, f, r, func(tx *jay.Tx) error {
		r.scan.Limit = r.start + r.size
		skip := r.start
		if r.size == 0 {
			return nil
		}
		for doc, err := range tx.Documents(c.Ctx, r.scan) {
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
		return nil
	})
}

// readNewest reads the documents that were written last.
func readNewest(c *serve.Call, f *reading, r documentsRequest) error {
	if r.size == 0 {
		return nil
	}
	return readWith(c, f, r, func(tx *jay.Tx) error {
		for doc, err := range tx.Query("").OrderBy("-@metadata.@etag").Skip(r.start).Limit(r.size).Iter(c.Ctx) {
			if err != nil {
				return err
			}
			if err := f.add(c, &f.docs, doc); err != nil {
				return err
			}
		}
		return nil
	})
}

// appendTo appends the reply.
func (f *reading) appendTo(dst []byte, r documentsRequest) (_ []byte, err error) {
	dst = append(slices.Grow(dst, int(f.bytes)), `{"Results":[`...)
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
			dst = append(dst, serve.MustJSON(doc.ID())...)
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
		return verbs.AppendDocument(dst, doc, metadataOnly)
	}
	text, err := verbs.AppendDocument(nil, doc, metadataOnly)
	if err == nil {
		text, err = spliceGuard(text, doc, f.guards[doc])
	}
	return append(dst, text...), err
}

// missing replies that the document does not exist. RavenDB's clients cache that reply,
// too.
func missing(c *serve.Call) error {
	if tag := c.Header.Get("If-None-Match"); strings.Trim(tag, `"`) == missingETag {
		return c.Empty(http.StatusNotModified)
	}
	if c.Nested { // the Node.js client reads a result whatever the status
		return c.Text(http.StatusNotFound, []byte(`{"Results":[null],"Includes":{}}`))
	}
	return c.Empty(http.StatusNotFound)
}

// headDocument replies with the version of a document.
func headDocument(c *serve.Call) error {
	id, err := verbs.DocumentID(c)
	if err != nil {
		return err
	}
	doc, err := c.DB.Get(c.Ctx, id)
	if serve.IsMissing(err) {
		return c.Empty(http.StatusNotFound)
	}
	if err != nil {
		return err
	}
	c.Reply.Set("ETag", `"`+doc.ChangeVector()+`"`)
	if matches(c, doc.ChangeVector()) {
		return c.Empty(http.StatusNotModified)
	}
	return c.Empty(http.StatusOK)
}

// fromCounter reports whether a request takes a number of a counter, which in a cluster needs
// a majority.
func fromCounter(id string) bool { return ids.Classify(id, ids.DefaultSeparator).FromCounter() }

// putDocument stores the body under the ID or under a generated one: an empty ID requests
// a GUID, one that ends with '/' a server-side ID, and one that ends with '|' an identity.
func putDocument(c *serve.Call) error {
	id, found := c.Params.Find("id")
	if !found {
		return serve.BadRequest("the URL names no document: id is missing")
	}
	opts, exists, err := condition(c)
	if err != nil {
		return err
	}
	absent, err := ifNoneMatch(c)
	if err != nil {
		return err
	}
	if absent {
		opts = append(opts, jay.IfMatch(""))
	}
	if fromCounter(id) {
		c.BoundMajority()
	}
	put := c.DB.Put
	if exists {
		put = c.DB.Replace
	}
	meta, err := put(c.Ctx, id, c.Body, opts...)
	if absent && errors.Is(err, jay.ErrConflict) {
		return serve.ConflictOf(err, preconditionFailed(fmt.Sprintf("there is a document %.100q, and If-None-Match asks for none", id)))
	}
	if exists && serve.IsMissing(err) {
		return &serve.Problem{Status: http.StatusConflict, Kind: serve.TypeConcurrency, Message: fmt.Sprintf("there is no document %.100q, and If-Match asks for one", id)}
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, map[string]string{"Id": meta.ID, "ChangeVector": meta.ChangeVector})
}

// deleteDocument deletes the document, if there is one.
func deleteDocument(c *serve.Call) error {
	id, err := verbs.DocumentID(c)
	if err != nil {
		return err
	}
	opts, err := versionCondition(c, "a deletion must name a version")
	if err != nil {
		return err
	}
	if err := c.DB.Delete(c.Ctx, id, opts...); err != nil {
		return err
	}
	return c.Empty(http.StatusNoContent)
}
