package own

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// This file has the endpoints about one document: what a page shows beside its text, its
// revisions, and the ID that a new document would get.

// documentRoutes are the endpoints of single documents.
var documentRoutes = []*serve.Route{
	{Method: "POST", Path: "{J}/documents", Run: storeDocument, Body: true, Stores: true, Takes: "collection"},
	{Method: "GET", Path: "{J}/document", Run: getDocument, Takes: "id"},
	{Method: "GET", Path: "{J}/revisions", Run: getRevisions, Timed: true, Takes: "before changeVector id pageSize"},
	{Method: "GET", Path: "{J}/nextid", Run: getNextID, Takes: "collection hilo id"},
}

// Bounds of what is looked up beside a document.
const (
	maxReferences     = 100 // references to existing documents
	maxCandidates     = 500 // texts of a document that are looked up as IDs
	maxCountRevisions = 1000
)

// getDocument replies with a document and all that is known about it, from one snapshot:
// its attachments, the number of its revisions, whether a deletion would be kept as a
// revision, and which texts in it are IDs of other documents.
func getDocument(c *serve.Call) error {
	id, err := verbs.DocumentID(c)
	if err != nil {
		return err
	}
	var reply []byte
	err = c.DB.View(c.Ctx, func(tx *jay.Tx) error {
		doc, err := tx.Get(c.Ctx, id)
		if err != nil {
			return err
		}
		if err := c.Take(2 * int64(len(doc.Body()))); err != nil {
			return err
		}
		references, more, err := references(c, tx, doc)
		if err != nil {
			return err
		}
		m := doc.Metadata()
		if reply, err = appendRow(nil, &jay.Row{Document: doc}); err != nil {
			return err
		}
		attachments := m.Attachments
		if attachments == nil {
			attachments = []jay.Attachment{}
		}
		reply = append(reply[:len(reply)-1], `,"attachments":`...)
		reply = append(reply, serve.MustJSON(attachments)...)
		reply = append(append(reply, `,"references":`...), serve.MustJSON(references)...)
		reply = strconv.AppendBool(append(reply, `,"moreReferences":`...), more)
		return nil
	})
	if serve.IsMissing(err) {
		return c.Empty(http.StatusNotFound)
	}
	if err != nil {
		return err
	}
	revisions := 0
	for r, err := range c.DB.Revisions().List(c.Ctx, id, jay.RevisionPage{Limit: maxCountRevisions}) {
		if err != nil {
			return err
		}
		_ = r
		revisions++
	}
	collection := gjson.GetBytes(reply, "collection").String()
	reply = fmt.Appendf(reply, `,"revisions":%d,"keepsRevisions":%t}`, revisions, keepsRevisions(c.DB.Revisions().Configuration(), collection))
	c.Reply.Set("ETag", `"`+gjson.GetBytes(reply, "changeVector").String()+`"`)
	return c.Text(http.StatusOK, reply)
}

// keepsRevisions reports whether a rule keeps the revisions of a collection.
func keepsRevisions(config jay.RevisionsConfiguration, collection string) bool {
	for name, rule := range config.Collections {
		if ids.EqualFold(name, collection) {
			return !rule.Disabled
		}
	}
	return config.Default != nil && !config.Default.Disabled
}

// references returns the texts in a document that are IDs of other documents, in the order
// of the text, and whether there may be more.
func references(c *serve.Call, tx *jay.Tx, doc *jay.Document) (found []string, more bool, err error) {
	found = []string{}
	seen := map[string]bool{ids.Fold(doc.ID()): true}
	var walk func(v gjson.Result) bool
	walk = func(v gjson.Result) bool {
		if err = c.Ctx.Err(); err != nil {
			return false
		}
		if v.IsObject() || v.IsArray() {
			proceed := true
			v.ForEach(func(_, item gjson.Result) bool {
				proceed = walk(item)
				return proceed
			})
			return proceed
		}
		text := v.String()
		if v.Type != gjson.String || text == "" || len(text) > ids.MaxBytes || seen[ids.Fold(text)] {
			return true
		}
		if len(seen) > maxCandidates || len(found) == maxReferences {
			more = true
			return false
		}
		seen[ids.Fold(text)] = true
		var exists bool
		if exists, err = tx.Exists(c.Ctx, text); exists {
			found = append(found, text)
		}
		if errors.Is(err, jay.ErrInvalidID) {
			err = nil // a text that cannot be an ID
		}
		return err == nil
	}
	walk(gjson.ParseBytes(doc.Body()))
	return found, more, err
}

// storeDocument stores the body as a new document under a HiLo ID of its collection.
func storeDocument(c *serve.Call) error {
	collection := c.Params.Get("collection")
	if collection == "" {
		collection = gjson.GetBytes(c.Body, `\@metadata.\@collection`).String()
	}
	if collection == "" {
		return serve.BadRequest("a HiLo ID begins with the prefix of a collection: the URL names none, and @metadata has no @collection")
	}
	if len(c.Body) == 0 {
		return serve.BadRequest("the request needs a body of JSON")
	}
	m, err := c.DB.Store(c.Ctx, collection, c.Body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, map[string]string{"id": m.ID, "changeVector": m.ChangeVector})
}

// nextID describes the ID that a write would get.
type nextID struct {
	Strategy string `json:"strategy"`
	Form     string `json:"form"`         // with … for parts that are unknown before the write
	ID       string `json:"id,omitempty"` // the ID, if it is known; another write may still take it
	Taken    bool   `json:"taken"`        // a document has this ID: a write replaces it
}

// getNextID replies with the ID that a document would get if it was written with the
// parameter id, or with hilo=true as a new one of a collection. It uses up no number.
func getNextID(c *serve.Call) error {
	request, given := c.Params.Find("id")
	hilo, err := c.Params.Flag("hilo")
	if err != nil {
		return err
	}
	if !given && !hilo {
		return serve.BadRequest("the URL names neither an id nor hilo=true")
	}
	if hilo {
		if err := c.Params.Alone("hilo", "id"); err != nil {
			return err
		}
	}
	stats, err := c.DB.Stats(c.Listing(c.Ctx))
	if err != nil {
		return err
	}
	o := c.Server.Options.Database
	rules := ids.Rules{Separator: stats.Separator, NodeTag: stats.NodeTag, CaseSensitive: stats.CaseSensitive, MaxBytes: o.MaxIDBytes}
	if rules.MaxBytes == 0 {
		rules.MaxBytes = ids.MaxBytes
	}
	resolver := ids.NewResolver(rules, o.OrderedGUIDs, o.HiLoMode == jay.HiLo2, nil)
	if hilo {
		return nextHiLo(c, rules, resolver)
	}
	request, strategy := resolver.Request(request)
	if err := resolver.Check(request, strategy); err != nil {
		return err
	}
	next := nextID{Strategy: strategy.String(), Form: resolver.Form(request, strategy)}
	switch {
	case strategy.MadeByCommit():
		next.ID, _, err = resolver.Make(strategy, &foresight{c, stats.Counters}, request)
	case !strategy.Made():
		next.ID = request
		next.Taken, err = c.DB.Exists(c.Ctx, request)
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, next)
}

// foresight is the counters of a write that nobody makes: it uses up no number.
type foresight struct {
	call     *serve.Call
	counters jay.Counters
}

// Sequence implements ids.Counters.
func (f *foresight) Sequence() (uint64, error) {
	f.counters.Etag++
	return f.counters.Etag, nil
}

// Identity implements ids.Counters.
func (f *foresight) Identity(name string) (int64, error) { return f.counters.Identities[name], nil }

// SetIdentity implements ids.Counters.
func (*foresight) SetIdentity(string, int64) error { return nil }

// Exists implements ids.Counters.
func (f *foresight) Exists(id string) (bool, error) { return f.call.DB.Exists(f.call.Ctx, id) }

// nextHiLo replies with the form of a HiLo ID. Its number is the next one of the server's
// range, or of the next range.
func nextHiLo(c *serve.Call, rules ids.Rules, resolver *ids.Resolver) error {
	collection := c.Params.Get("collection")
	if collection == "" {
		return serve.BadRequest("a HiLo ID begins with the prefix of a collection: the URL names none")
	}
	prefix := ""
	if fn := c.Server.Options.Database.Conventions.Prefix; fn != nil {
		prefix = fn(collection)
	}
	if prefix == "" {
		prefix = ids.Prefix(collection)
	}
	form := resolver.Form(prefix, ids.HiLo)
	if c.Server.Options.Database.HiLoMode == jay.HiLo4 {
		form += "-" + rules.NodeTag
	}
	if err := resolver.Check(form, ids.Semantic); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, nextID{Strategy: ids.HiLo.String(), Form: form})
}

// getRevisions replies with a page of a document's revisions, the newest first, without
// their texts. before is the change vector after which the page begins. With ChangeVector
// it replies with that revision and its text.
func getRevisions(c *serve.Call) error {
	id, err := verbs.DocumentID(c)
	if err != nil {
		return err
	}
	if vector := c.Params.Get("changeVector"); vector != "" {
		if err := c.Params.Alone("changeVector", "before", "pageSize"); err != nil {
			return err
		}
		r, err := c.DB.Revisions().Get(c.Ctx, id, vector)
		if serve.IsMissing(err) {
			return c.Empty(http.StatusNotFound)
		}
		if err != nil {
			return err
		}
		if err := c.Take(2 * int64(len(r.Body()))); err != nil {
			return err
		}
		head := serve.MustJSON(revisionHead(r))
		text, err := r.MarshalJSON()
		if err != nil {
			return err
		}
		reply := append(append(head[:len(head)-1], `,"document":`...), text...)
		return c.Text(http.StatusOK, append(reply, '}'))
	}
	size, err := c.Params.Count("pageSize", defaultPageSize)
	if err != nil {
		return err
	}
	if err := checkPageSize(size); err != nil {
		return err
	}
	rows, next := []map[string]any{}, ""
	for r, err := range c.DB.Revisions().List(c.Ctx, id, jay.RevisionPage{Before: c.Params.Get("before"), Limit: size + 1}) {
		if serve.IsMissing(err) {
			return serve.BadRequest("there is no revision %.100q of %.100q any more: begin at the newest", c.Params.Get("before"), id)
		}
		if err != nil {
			return err
		}
		if len(rows) == size {
			next = rows[size-1]["changeVector"].(string)
			break
		}
		rows = append(rows, revisionHead(r))
	}
	reply := map[string]any{"rows": rows}
	if next != "" {
		reply["next"] = next
	}
	return c.JSON(http.StatusOK, reply)
}

// revisionHead describes a revision.
func revisionHead(r *jay.Revision) map[string]any {
	return map[string]any{
		"id": r.ID(), "collection": r.Collection(), "changeVector": r.ChangeVector(), "lastModified": r.LastModified().UTC().Format(serve.RavenTime),
		"bytes": len(r.Body()), "deletion": r.Deletion(), "current": r.Current(),
	}
}
