package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jaydb/jay"
)

// maxRevisionVectors bounds the change vectors of one request.
const maxRevisionVectors = 1024

// getRevisions returns revisions: those of a document, newest first; the one that was
// valid at a time; or those with given change vectors.
func (c *call) getRevisions() error {
	start, size, err := c.params.page()
	if err != nil {
		return err
	}
	metadataOnly, err := c.params.flag("metadataOnly")
	if err != nil {
		return err
	}
	vectors := c.params.all("changeVector")
	if len(vectors) > maxRevisionVectors {
		return badRequest("the request has more than %d change vectors", maxRevisionVectors)
	}
	var found []*jay.Revision
	total := 0
	id := c.params.get("id")
	switch {
	case len(vectors) > 0:
		found, err = c.revisionsByVector(vectors)
		total = len(found)
	case id == "":
		return badRequest("the URL names neither a document nor a change vector")
	case c.params.get("before") != "":
		found, err = c.revisionBefore(id)
		total = len(found)
	default:
		found, total, err = c.revisionsOf(id, start, size)
	}
	if err != nil {
		return err
	}
	reply := []byte(`{"Results":[`)
	for i, r := range found {
		if i > 0 {
			reply = append(reply, ',')
		}
		if reply, err = c.appendRevision(reply, r, metadataOnly); err != nil {
			return err
		}
	}
	reply = append(append(reply, `],"TotalResults":`...), strconv.Itoa(total)...)
	return c.text(http.StatusOK, append(reply, '}'))
}

// appendRevision appends a revision, or null.
func (c *call) appendRevision(dst []byte, r *jay.Revision, metadataOnly bool) ([]byte, error) {
	if r == nil {
		return append(dst, "null"...), nil
	}
	text, err := r.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if !metadataOnly {
		return append(dst, text...), nil
	}
	var members struct {
		Metadata json.RawMessage `json:"@metadata"`
	}
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	return append(append(append(dst, `{"@metadata":`...), members.Metadata...), '}'), nil
}

// keepRevision adds the size of a revision to sum, and remembers to which document its
// change vector belongs.
func (c *call) keepRevision(sum *int64, r *jay.Revision) error {
	n := int64(len(r.Body())) + 512
	if *sum += n; *sum > c.s.opts.MaxReplyBytes {
		return tooLarge("the reply has more than %d bytes, which is the most: ask for a page", c.s.opts.MaxReplyBytes)
	}
	c.s.vectors.add(c.database.key, r.ChangeVector(), r.ID())
	return c.take(2 * n)
}

// revisionsOf returns a page of the revisions of a document, and how many there are.
func (c *call) revisionsOf(id string, start, size int) (found []*jay.Revision, total int, err error) {
	sum := int64(0)
	for r, err := range c.db.Revisions().List(c.ctx, id, jay.RevisionPage{}) {
		if err != nil {
			return nil, 0, err
		}
		if total >= start && len(found) < size {
			if err := c.keepRevision(&sum, r); err != nil {
				return nil, 0, err
			}
			found = append(found, r)
		}
		total++
	}
	return found, total, nil
}

// revisionBefore returns the version of a document that was valid at a time.
func (c *call) revisionBefore(id string) ([]*jay.Revision, error) {
	at, err := time.Parse("2006-01-02T15:04:05.999999999Z07:00", c.params.get("before"))
	if err != nil {
		if at, err = time.Parse("2006-01-02T15:04:05.999999999", c.params.get("before")); err != nil {
			return nil, badRequest("before must be a time such as 2026-01-31T12:00:00.0000000Z, not %.100q", c.params.get("before"))
		}
	}
	r, err := c.db.Revisions().AsOf(c.ctx, id, at)
	if isMissing(err) {
		return []*jay.Revision{nil}, nil
	}
	if err != nil {
		return nil, err
	}
	sum := int64(0)
	return []*jay.Revision{r}, c.keepRevision(&sum, r)
}

// revisionsByVector returns the revisions with these change vectors; nil for a missing
// one. A change vector does not name its document. The server remembers those that it has
// sent, and searches all revisions for others.
func (c *call) revisionsByVector(vectors []string) ([]*jay.Revision, error) {
	byVector := make(map[string]*jay.Revision, len(vectors))
	missing := make(map[string]bool)
	sum := int64(0)
	for _, vector := range vectors {
		missing[vector] = true
		id, known := c.s.vectors.find(c.database.key, vector)
		if !known {
			continue
		}
		r, err := c.db.Revisions().Get(c.ctx, id, vector)
		if err == nil {
			if err := c.keepRevision(&sum, r); err != nil {
				return nil, err
			}
			byVector[vector] = r
			delete(missing, vector)
		} else if !isMissing(err) {
			return nil, err
		}
	}
	if len(missing) > 0 {
		if err := c.searchRevisions(missing, byVector, &sum); err != nil {
			return nil, err
		}
	}
	found := make([]*jay.Revision, len(vectors))
	for i, vector := range vectors {
		found[i] = byVector[vector]
	}
	return found, nil
}

// searchRevisions looks for change vectors, first among the present versions of documents
// by their etags, then among all revisions.
func (c *call) searchRevisions(missing map[string]bool, found map[string]*jay.Revision, sum *int64) error {
	for vector := range missing {
		doc, err := c.documentByVector(vector)
		if err != nil {
			return err
		}
		if doc == nil {
			continue
		}
		r, err := c.db.Revisions().Get(c.ctx, doc.ID(), vector)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := c.keepRevision(sum, r); err != nil {
			return err
		}
		found[vector] = r
		delete(missing, vector)
	}
	for r, err := range c.db.Revisions().All(c.ctx, "") {
		if len(missing) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		if !missing[r.ChangeVector()] {
			continue
		}
		if err := c.keepRevision(sum, r); err != nil {
			return err
		}
		found[r.ChangeVector()] = r
		delete(missing, r.ChangeVector())
	}
	return nil
}

// documentByVector returns the document whose present version has a change vector, or nil.
func (c *call) documentByVector(vector string) (*jay.Document, error) {
	_, rest, found := strings.Cut(vector, ":")
	number, _, _ := strings.Cut(rest, "-")
	etag, err := strconv.ParseUint(number, 10, 63)
	if !found || err != nil {
		return nil, nil
	}
	for doc, err := range c.db.Query("").Where(jay.Eq("@metadata.@etag", etag)).Iter(c.ctx) {
		if err != nil {
			return nil, err
		}
		if doc.ChangeVector() == vector {
			return doc, nil
		}
	}
	return nil, nil
}

// revisionsCount counts the revisions of a document.
func (c *call) revisionsCount() error {
	id, err := c.documentID()
	if err != nil {
		return err
	}
	n := 0
	for _, err := range c.db.Revisions().List(c.ctx, id, jay.RevisionPage{}) {
		if err != nil {
			return err
		}
		n++
	}
	return c.json(http.StatusOK, map[string]any{"RevisionsCount": n})
}

// vectors remembers the documents of the change vectors of revisions that were last sent
// to clients.
type vectors struct {
	mu    sync.Mutex
	ids   map[vectorKey]string // Guarded by mu.
	order []vectorKey          // a ring of the keys of ids. Guarded by mu.
	next  int                  // position in order. Guarded by mu.
}

type vectorKey struct{ database, vector string }

// maxVectors bounds vectors, to some megabytes.
const maxVectors = 10_000

func newVectors() *vectors { return &vectors{ids: make(map[vectorKey]string)} }

func (v *vectors) add(database, vector, id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := vectorKey{database, vector}
	if _, found := v.ids[key]; found {
		return
	}
	if len(v.order) < maxVectors {
		v.order = append(v.order, key)
	} else {
		delete(v.ids, v.order[v.next])
		v.order[v.next] = key
		v.next = (v.next + 1) % maxVectors
	}
	v.ids[key] = id
}

func (v *vectors) find(database, vector string) (id string, found bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	id, found = v.ids[vectorKey{database, vector}]
	return id, found
}

// revisionRule is a rule in RavenDB's format.
type revisionRule struct {
	Disabled                             bool
	MinimumRevisionsToKeep               *uint64 `json:",omitempty"`
	MinimumRevisionAgeToKeep             *string `json:",omitempty"`
	PurgeOnDelete                        bool
	MaximumRevisionsToDeleteUponDocument *int64 `json:"MaximumRevisionsToDeleteUponDocumentUpdate,omitempty"`
}

// revisionsConfiguration is RavenDB's configuration.
type revisionsConfiguration struct {
	Default     *revisionRule
	Collections map[string]*revisionRule
}

// rule returns the rule of package jay.
func (r *revisionRule) rule() (rule jay.RevisionRule, err error) {
	if r.PurgeOnDelete {
		return rule, notSupported("PurgeOnDelete is not there: POST {D}/admin/revisions/delete removes the revisions of deleted documents")
	}
	rule.Disabled = r.Disabled
	if r.MinimumRevisionsToKeep != nil {
		rule.Keep = *r.MinimumRevisionsToKeep
	}
	if r.MinimumRevisionAgeToKeep != nil {
		rule.KeepFor, err = parseTimeSpan(*r.MinimumRevisionAgeToKeep)
	}
	return rule, err
}

// ruleOf returns a rule in RavenDB's format.
func ruleOf(rule jay.RevisionRule) *revisionRule {
	r := &revisionRule{Disabled: rule.Disabled}
	if rule.Keep > 0 {
		r.MinimumRevisionsToKeep = &rule.Keep
	}
	if rule.KeepFor > 0 {
		text := formatTimeSpan(rule.KeepFor)
		r.MinimumRevisionAgeToKeep = &text
	}
	return r
}

// revisionsConfig returns the configuration of the revisions, or 404 if there is none.
func (c *call) revisionsConfig() error {
	now := c.db.Revisions().Configuration()
	if now.Default == nil && len(now.Collections) == 0 {
		return c.empty(http.StatusNotFound)
	}
	out := revisionsConfiguration{Collections: make(map[string]*revisionRule)}
	if now.Default != nil {
		out.Default = ruleOf(*now.Default)
	}
	for name, rule := range now.Collections {
		out.Collections[name] = ruleOf(rule)
	}
	return c.json(http.StatusOK, out)
}

// putRevisionsConfig replaces the configuration of the revisions.
func (c *call) putRevisionsConfig() error {
	var given revisionsConfiguration
	if err := c.decode(&given); err != nil {
		return err
	}
	config := jay.RevisionsConfiguration{Collections: make(map[string]jay.RevisionRule)}
	if given.Default != nil {
		rule, err := given.Default.rule()
		if err != nil {
			return err
		}
		config.Default = &rule
	}
	for name, one := range given.Collections {
		if one == nil {
			return badRequest("the collection %.100q has no rule", name)
		}
		rule, err := one.rule()
		if err != nil {
			return err
		}
		config.Collections[name] = rule
	}
	if err := c.db.Revisions().Configure(c.ctx, config); err != nil {
		return err
	}
	return c.raftIndex()
}

// raftIndex replies with a number that grows with each command.
func (c *call) raftIndex() error {
	index, err := c.s.databases.index(c.ctx)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"RaftCommandIndex": index})
}

// enforceRevisions removes the revisions that the rules do not keep, as an operation.
func (c *call) enforceRevisions() error {
	if len(c.body) > 0 {
		var given map[string]json.RawMessage // the list of collections in the body is ignored
		if err := c.decode(&given); err != nil {
			return err
		}
	}
	db := c.db
	return c.background(func(ctx context.Context, o *operation) (any, error) {
		done, err := db.Revisions().Purge(ctx, jay.RevisionPurge{Retention: true, Progress: func(p jay.RevisionsPurged) {
			c.s.operations.progress(o, map[string]any{"Processed": p.Revisions, "Total": p.Revisions})
		}})
		return map[string]any{"$type": "Raven.Client.Documents.Operations.Revisions.EnforceConfigurationResult, Raven.Client", "ScannedDocuments": done.Looked,
			"ScannedRevisions": done.Looked, "RemovedRevisions": done.Revisions, "Message": fmt.Sprintf("removed %d revisions", done.Revisions), "ShouldPersist": false}, err
	})
}

// deleteRevisions removes the revisions of documents, but not the documents.
func (c *call) deleteRevisions() error {
	var request struct{ DocumentIds []string }
	if err := c.decode(&request); err != nil {
		return err
	}
	if n := len(request.DocumentIds); n == 0 || n > 1024 {
		return badRequest("DocumentIds names %d documents: 1 to 1024", n)
	}
	removed := int64(0)
	for _, id := range request.DocumentIds {
		if id == "" {
			return badRequest("DocumentIds has an empty ID")
		}
		done, err := c.db.Revisions().Purge(c.ctx, jay.RevisionPurge{ID: id})
		if err != nil {
			return err
		}
		removed += done.Revisions
	}
	return c.json(http.StatusOK, map[string]any{"TotalDeletes": removed})
}

// revertRevisions stores old versions of documents as new ones, by
// DocumentIdToChangeVector.
func (c *call) revertRevisions() error {
	var request struct {
		IDToChangeVector map[string]string `json:"IdToChangeVector"`
	}
	if err := c.decode(&request); err != nil {
		return err
	}
	if n := len(request.IDToChangeVector); n == 0 || n > 1024 {
		return badRequest("IdToChangeVector names %d documents: 1 to 1024", n)
	}
	for id, vector := range request.IDToChangeVector {
		if _, err := c.db.Revisions().Revert(c.ctx, id, vector); err != nil {
			if isMissing(err) {
				return badRequest("there is no revision %.100q of %.100q", vector, id)
			}
			return err
		}
	}
	return c.empty(http.StatusNoContent)
}

// parseTimeSpan reads .NET's format of a duration: [days.]hh:mm:ss[.fffffff].
func parseTimeSpan(text string) (time.Duration, error) {
	bad := badRequest("a duration must be like 14.00:00:00, not %.100q", text)
	days := uint64(0)
	clock := text
	if head, rest, found := strings.Cut(text, "."); found && strings.Contains(rest, ":") {
		n, err := strconv.ParseUint(head, 10, 32)
		if err != nil || n > 100_000 {
			return 0, bad
		}
		days, clock = n, rest
	}
	parts := strings.Split(clock, ":")
	if len(parts) != 3 {
		return 0, bad
	}
	seconds, fraction, _ := strings.Cut(parts[2], ".")
	sum := time.Duration(days) * 24 * time.Hour
	for i, one := range []struct {
		text string
		most uint64
		unit time.Duration
	}{{parts[0], 23, time.Hour}, {parts[1], 59, time.Minute}, {seconds, 59, time.Second}} {
		n, err := strconv.ParseUint(one.text, 10, 16)
		if err != nil || n > one.most && i > 0 || n > 100_000 {
			return 0, bad
		}
		sum += time.Duration(n) * one.unit
	}
	if fraction != "" {
		n, err := strconv.ParseUint((fraction + "0000000")[:7], 10, 32)
		if err != nil || len(fraction) > 7 {
			return 0, bad
		}
		sum += time.Duration(n) * 100
	}
	return sum, nil
}

// formatTimeSpan writes a duration in .NET's format.
func formatTimeSpan(d time.Duration) string {
	text := ""
	if days := d / (24 * time.Hour); days > 0 {
		text = fmt.Sprintf("%d.", days)
	}
	text += fmt.Sprintf("%02d:%02d:%02d", d/time.Hour%24, d/time.Minute%60, d/time.Second%60)
	if f := d % time.Second / 100; f > 0 {
		text += fmt.Sprintf(".%07d", f)
	}
	return text
}

// dueConfigurationPrefix is the prefix of the IDs of configurations of expiration and
// refresh. Documents expire and are refreshed within a second of their time, whatever is
// configured: a configuration is only stored and returned.
const dueConfigurationPrefix = "due/"

// dueID returns the ID of a configuration in the server's database.
func dueID(name, key string) string { return dueConfigurationPrefix + name + "/" + key }

// getDue returns the configuration of expiration or refresh.
func (c *call) getDue(name string) error {
	doc, err := c.s.databases.system.Get(c.ctx, dueID(name, c.database.key))
	if isMissing(err) {
		return c.empty(http.StatusNotFound)
	}
	if err != nil {
		return err
	}
	return c.text(http.StatusOK, doc.Body())
}

// putDue stores the configuration of expiration or refresh.
func (c *call) putDue(name, frequency string) error {
	if len(c.body) > maxConfigurationBytes {
		return tooLarge("a configuration has at most %d bytes", maxConfigurationBytes)
	}
	var members map[string]json.RawMessage
	if err := c.decode(&members); err != nil {
		return err
	}
	out := map[string]any{"Disabled": false}
	for member, text := range members {
		switch {
		case strings.EqualFold(member, "Disabled"):
			if string(text) == "true" {
				return notSupported("%s cannot be disabled: documents have no instant in their metadata, or it is heeded", name)
			}
		case strings.EqualFold(member, frequency), strings.EqualFold(member, "MaxItemsToProcess"):
			var n *int64
			if json.Unmarshal(text, &n) != nil || n != nil && *n <= 0 {
				return badRequest("%.100s must be a whole number above 0", member)
			}
			if n != nil && strings.EqualFold(member, frequency) {
				out[frequency] = *n
			}
		default:
			return badRequest("unknown member %.100q", member)
		}
	}
	if _, err := c.s.databases.system.Put(c.ctx, dueID(name, c.database.key), mustJSON(out), jay.InCollection("Configurations")); err != nil {
		return err
	}
	return c.raftIndex()
}

func (c *call) expirationConfig() error    { return c.getDue("expiration") }
func (c *call) putExpirationConfig() error { return c.putDue("expiration", "DeleteFrequencyInSec") }
func (c *call) refreshConfig() error       { return c.getDue("refresh") }
func (c *call) putRefreshConfig() error    { return c.putDue("refresh", "RefreshFrequencyInSec") }
