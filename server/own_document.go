package server

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
)

// This file has the endpoints about one document: what a page shows beside its text, its
// revisions, and the ID that a new document would get.

// Bounds of what is looked up beside a document.
const (
	maxReferences     = 100 // references to existing documents
	maxCandidates     = 500 // texts of a document that are looked up as IDs
	maxCountRevisions = 1000
)

// ownDocument replies with a document and all that is known about it, from one snapshot:
// its attachments, the number of its revisions, whether a deletion would be kept as a
// revision, and which texts in it are IDs of other documents.
func (c *call) ownDocument() error {
	id, err := c.documentID()
	if err != nil {
		return err
	}
	var reply []byte
	err = c.db.View(c.ctx, func(tx *jay.Tx) error {
		doc, err := tx.Get(c.ctx, id)
		if err != nil {
			return err
		}
		if err := c.take(3 * int64(len(doc.Body()))); err != nil {
			return err
		}
		references, more, err := c.references(tx, doc)
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
		reply = append(reply, mustJSON(attachments)...)
		reply = append(append(reply, `,"references":`...), mustJSON(references)...)
		reply = strconv.AppendBool(append(reply, `,"moreReferences":`...), more)
		return nil
	})
	if isMissing(err) {
		return c.empty(http.StatusNotFound)
	}
	if err != nil {
		return err
	}
	revisions := 0
	for r, err := range c.db.Revisions().List(c.ctx, id, jay.RevisionPage{Limit: maxCountRevisions}) {
		if err != nil {
			return err
		}
		_ = r
		revisions++
	}
	collection := gjson.GetBytes(reply, "collection").String()
	reply = fmt.Appendf(reply, `,"revisions":%d,"keepsRevisions":%t}`, revisions, keepsRevisions(c.db.Revisions().Configuration(), collection))
	c.reply.Set("ETag", `"`+gjson.GetBytes(reply, "changeVector").String()+`"`)
	return c.text(http.StatusOK, reply)
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
func (c *call) references(tx *jay.Tx, doc *jay.Document) (found []string, more bool, err error) {
	found = []string{}
	seen := map[string]bool{ids.Fold(doc.ID()): true}
	var walk func(v gjson.Result) bool
	walk = func(v gjson.Result) bool {
		if err = c.ctx.Err(); err != nil {
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
		if exists, err = tx.Exists(c.ctx, text); exists {
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

// ownStore stores the body as a new document under a HiLo ID of its collection.
func (c *call) ownStore() error {
	collection := c.params.get("collection")
	if collection == "" {
		collection = gjson.GetBytes(c.body, `\@metadata.\@collection`).String()
	}
	if collection == "" {
		return badRequest("a HiLo ID begins with the prefix of a collection: the URL names none, and @metadata has no @collection")
	}
	if len(c.body) == 0 {
		return badRequest("the request needs a body of JSON")
	}
	m, err := c.db.Store(c.ctx, collection, c.body)
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, map[string]string{"id": m.ID, "changeVector": m.ChangeVector})
}

// nextID describes the ID that a write would get.
type nextID struct {
	Strategy string `json:"strategy"`
	Form     string `json:"form"`         // with … for parts that are unknown before the write
	ID       string `json:"id,omitempty"` // the ID, if it is known; another write may still take it
	Taken    bool   `json:"taken"`        // a document has this ID: a write replaces it
}

// ownNextID replies with the ID that a document would get if it was written with the
// parameter id, or with hilo=true as a new one of a collection. It uses up no number.
func (c *call) ownNextID() error {
	request, given := c.params.find("id")
	hilo, err := c.params.flag("hilo")
	if err != nil {
		return err
	}
	if !given && !hilo {
		return badRequest("the URL names neither an id nor hilo=true")
	}
	stats, err := c.db.Stats(c.ctx)
	if err != nil {
		return err
	}
	o := c.s.opts.Database
	rules := ids.Rules{Separator: stats.Separator, NodeTag: stats.NodeTag, CaseSensitive: stats.CaseSensitive, MaxBytes: o.MaxIDBytes}
	if rules.MaxBytes == 0 {
		rules.MaxBytes = ids.MaxBytes
	}
	resolver := ids.NewResolver(rules, o.OrderedGUIDs, o.HiLoMode == jay.HiLo2, nil)
	if hilo {
		return c.nextHiLo(rules, resolver)
	}
	request, strategy := resolver.Request(request)
	if err := resolver.Check(request, strategy); err != nil {
		return err
	}
	next := nextID{Strategy: strategy.String(), Form: request}
	switch strategy {
	case ids.GUID:
		next.Form = "…"
	case ids.ServerSide:
		next.ID = fmt.Sprintf("%s%019d-%s", request, stats.Counters.Etag+1, rules.NodeTag)
		next.Form = request + "…-" + rules.NodeTag
	case ids.Identity:
		n, err := ids.NextFree(stats.Counters.Identities[rules.Fold(request)], func(n int64) (bool, error) {
			return c.db.Exists(c.ctx, resolver.IdentityID(request, n))
		})
		if err != nil {
			return err
		}
		next.ID = resolver.IdentityID(request, n)
		next.Form = request[:len(request)-len(ids.IdentityMark)] + rules.Separator + "…"
	default:
		next.ID = request
		if next.Taken, err = c.db.Exists(c.ctx, request); err != nil {
			return err
		}
	}
	return c.json(http.StatusOK, next)
}

// nextHiLo replies with the form of a HiLo ID. Its number is the next one of the server's
// range, or of the next range.
func (c *call) nextHiLo(rules ids.Rules, resolver *ids.Resolver) error {
	collection := c.params.get("collection")
	if collection == "" {
		return badRequest("a HiLo ID begins with the prefix of a collection: the URL names none")
	}
	prefix := ""
	if fn := c.s.opts.Database.Conventions.Prefix; fn != nil {
		prefix = fn(collection)
	}
	if prefix == "" {
		prefix = ids.Prefix(collection)
	}
	form := prefix + rules.Separator + "…"
	if c.s.opts.Database.HiLoMode == jay.HiLo4 {
		form += "-" + rules.NodeTag
	}
	if err := resolver.Check(form, ids.Semantic); err != nil {
		return err
	}
	return c.json(http.StatusOK, nextID{Strategy: ids.HiLo.String(), Form: form})
}

// ownRevisions replies with a page of a document's revisions, the newest first, without
// their texts. before is the change vector after which the page begins. With changeVector
// it replies with that revision and its text.
func (c *call) ownRevisions() error {
	id, err := c.documentID()
	if err != nil {
		return err
	}
	if vector := c.params.get("changeVector"); vector != "" {
		r, err := c.db.Revisions().Get(c.ctx, id, vector)
		if isMissing(err) {
			return c.empty(http.StatusNotFound)
		}
		if err != nil {
			return err
		}
		if err := c.take(3 * int64(len(r.Body()))); err != nil {
			return err
		}
		head := mustJSON(revisionHead(r))
		text, err := r.MarshalJSON()
		if err != nil {
			return err
		}
		reply := append(append(head[:len(head)-1], `,"document":`...), text...)
		return c.text(http.StatusOK, append(reply, '}'))
	}
	size, err := c.params.count("pageSize", defaultPageSize)
	if err != nil {
		return err
	}
	if err := checkPageSize(size); err != nil {
		return err
	}
	rows, next := []map[string]any{}, ""
	for r, err := range c.db.Revisions().List(c.ctx, id, jay.RevisionPage{Before: c.params.get("before"), Limit: size + 1}) {
		if isMissing(err) {
			return badRequest("there is no revision %.100q of %.100q any more: begin at the newest", c.params.get("before"), id)
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
	return c.json(http.StatusOK, reply)
}

// revisionHead describes a revision.
func revisionHead(r *jay.Revision) map[string]any {
	return map[string]any{
		"id": r.ID(), "collection": r.Collection(), "changeVector": r.ChangeVector(), "lastModified": r.LastModified().UTC().Format(ravenTime),
		"bytes": len(r.Body()), "deletion": r.Deletion(), "current": r.Current(),
	}
}
