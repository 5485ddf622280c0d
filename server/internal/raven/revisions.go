package raven

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// revisionRoutes are the endpoints of revisions and of their rules.
var revisionRoutes = []*serve.Route{
	{Method: "GET", Path: "{D}/revisions", Run: getRevisions, Timed: true, Lazy: true, Takes: "before changeVector* id metadataOnly pageSize start"},
	{Method: "GET", Path: "{D}/revisions/count", Run: revisionsCount, Timed: true, Takes: "id"},
	{Method: "GET", Path: "{D}/revisions/config", Run: revisionsConfig},
	{Method: "POST", Path: "{D}/admin/revisions/config", Run: putRevisionsConfig, Body: true, Raft: true},
	{Method: "POST", Path: "{D}/admin/revisions/config/enforce", Run: enforceRevisions, Begins: "enforce the revisions", Body: true},
	{Method: "POST", Path: "{D}/admin/revisions/delete", Run: deleteRevisions, Body: true},
	{Method: "POST", Path: "{D}/revisions/revert/docs", Run: revertRevisions, Body: true},
}

// maxRevisionVectors bounds the change vectors of one request.
const maxRevisionVectors = 1024

// getRevisions returns revisions: those of a document, newest first; the one that was
// valid at a time; or those with given change vectors.
func getRevisions(c *serve.Call) error {
	start, size, err := c.Params.Page()
	if err != nil {
		return err
	}
	metadataOnly, err := c.Params.Flag("metadataOnly")
	if err != nil {
		return err
	}
	vectors := c.Params.All("changeVector")
	if len(vectors) > maxRevisionVectors {
		return serve.BadRequest("the request has more than %d change vectors", maxRevisionVectors)
	}
	var found []*jay.Revision
	total := 0
	id := c.Params.Get("id")
	switch {
	case len(vectors) > 0:
		if err := c.Params.Alone("changeVector", "id", "before", "start", "pageSize"); err != nil {
			return err
		}
		found, err = revisionsByVector(c, vectors)
		total = len(found)
	case id == "":
		return serve.BadRequest("the URL names neither a document nor a change vector")
	case c.Params.Get("before") != "":
		if err := c.Params.Alone("before", "start", "pageSize"); err != nil {
			return err
		}
		found, err = revisionBefore(c, id)
		total = len(found)
	default:
		found, total, err = revisionsOf(c, id, start, size)
	}
	if err != nil {
		return err
	}
	reply := []byte(`{"Results":[`)
	for i, r := range found {
		if i > 0 {
			reply = append(reply, ',')
		}
		if reply, err = appendRevision(c, reply, r, metadataOnly); err != nil {
			return err
		}
	}
	reply = append(append(reply, `],"TotalResults":`...), strconv.Itoa(total)...)
	return c.Text(http.StatusOK, append(reply, '}'))
}

// appendRevision appends a revision, or null.
func appendRevision(c *serve.Call, dst []byte, r *jay.Revision, metadataOnly bool) ([]byte, error) {
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
func keepRevision(c *serve.Call, sum *int64, r *jay.Revision) error {
	n := int64(len(r.Body())) + 512
	if *sum += n; *sum > c.Server.Options.MaxReplyBytes {
		return serve.TooLarge("the reply has more than %d bytes, which is the most: ask for a page", c.Server.Options.MaxReplyBytes)
	}
	c.Server.Vectors.Add(c.Database.Key, r.ChangeVector(), r.ID())
	return c.Take(3 * n) // as read, as JSON, and in the reply
}

// revisionsOf returns a page of the revisions of a document, and how many there are.
func revisionsOf(c *serve.Call, id string, start, size int) (found []*jay.Revision, total int, err error) {
	sum := int64(0)
	for r, err := range c.DB.Revisions().List(c.Ctx, id, jay.RevisionPage{}) {
		if err != nil {
			return nil, 0, err
		}
		if total >= start && len(found) < size {
			if err := keepRevision(c, &sum, r); err != nil {
				return nil, 0, err
			}
			found = append(found, r)
		}
		total++
	}
	return found, total, nil
}

// revisionBefore returns the version of a document that was valid at a time.
func revisionBefore(c *serve.Call, id string) ([]*jay.Revision, error) {
	at, err := time.Parse("2006-01-02T15:04:05.999999999Z07:00", c.Params.Get("before"))
	if err != nil {
		if at, err = time.Parse("2006-01-02T15:04:05.999999999", c.Params.Get("before")); err != nil {
			return nil, serve.BadRequest("before must be a time such as 2026-01-31T12:00:00.0000000Z, not %.100q", c.Params.Get("before"))
		}
	}
	r, err := c.DB.Revisions().AsOf(c.Ctx, id, at)
	if serve.IsMissing(err) {
		return []*jay.Revision{nil}, nil
	}
	if err != nil {
		return nil, err
	}
	sum := int64(0)
	return []*jay.Revision{r}, keepRevision(c, &sum, r)
}

// revisionsByVector returns the revisions with these change vectors; nil for a missing
// one. A change vector does not name its document. The server remembers those that it has
// sent, and searches all revisions for others.
func revisionsByVector(c *serve.Call, vectors []string) ([]*jay.Revision, error) {
	byVector := make(map[string]*jay.Revision, len(vectors))
	missing := make(map[string]bool)
	sum := int64(0)
	for _, vector := range vectors {
		missing[vector] = true
		id, known := c.Server.Vectors.Find(c.Database.Key, vector)
		if !known {
			continue
		}
		r, err := c.DB.Revisions().Get(c.Ctx, id, vector)
		if err == nil {
			if err := keepRevision(c, &sum, r); err != nil {
				return nil, err
			}
			byVector[vector] = r
			delete(missing, vector)
		} else if !serve.IsMissing(err) {
			return nil, err
		}
	}
	if len(missing) > 0 {
		if err := searchRevisions(c, missing, byVector, &sum); err != nil {
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
func searchRevisions(c *serve.Call, missing map[string]bool, found map[string]*jay.Revision, sum *int64) error {
	for vector := range missing {
		doc, err := documentByVector(c, vector)
		if err != nil {
			return err
		}
		if doc == nil {
			continue
		}
		r, err := c.DB.Revisions().Get(c.Ctx, doc.ID(), vector)
		if serve.IsMissing(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := keepRevision(c, sum, r); err != nil {
			return err
		}
		found[vector] = r
		delete(missing, vector)
	}
	for r, err := range c.DB.Revisions().All(c.Ctx, "") {
		if len(missing) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		if !missing[r.ChangeVector()] {
			continue
		}
		if err := keepRevision(c, sum, r); err != nil {
			return err
		}
		found[r.ChangeVector()] = r
		delete(missing, r.ChangeVector())
	}
	return nil
}

// documentByVector returns the document whose present version has a change vector, or nil.
func documentByVector(c *serve.Call, vector string) (*jay.Document, error) {
	_, rest, found := strings.Cut(vector, ":")
	number, _, _ := strings.Cut(rest, "-")
	etag, err := strconv.ParseUint(number, 10, 63)
	if !found || err != nil {
		return nil, nil
	}
	for doc, err := range c.DB.Query("").Where(jay.Eq("@metadata.@etag", etag)).Iter(c.Ctx) {
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
func revisionsCount(c *serve.Call) error {
	id, err := verbs.DocumentID(c)
	if err != nil {
		return err
	}
	n := 0
	for _, err := range c.DB.Revisions().List(c.Ctx, id, jay.RevisionPage{}) {
		if err != nil {
			return err
		}
		n++
	}
	return c.JSON(http.StatusOK, map[string]any{"RevisionsCount": n})
}

// revisionsConfig returns the configuration of the revisions, or 404 if there is none.
func revisionsConfig(c *serve.Call) error {
	settings := verbs.RevisionsSettings(c.DB)
	if settings == nil {
		return c.Empty(http.StatusNotFound)
	}
	return c.JSON(http.StatusOK, settings)
}

// putRevisionsConfig replaces the configuration of the revisions.
func putRevisionsConfig(c *serve.Call) error {
	var given verbs.RevisionsConfiguration
	if err := c.Decode(&given); err != nil {
		return err
	}
	config := jay.RevisionsConfiguration{Collections: make(map[string]jay.RevisionRule)}
	if given.Default != nil {
		rule, err := given.Default.Rule()
		if err != nil {
			return err
		}
		config.Default = &rule
	}
	folded := make(map[string]bool)
	for name, one := range given.Collections {
		if one == nil {
			return serve.BadRequest("the collection %.100q has no rule", name)
		}
		if folded[strings.ToLower(name)] { // no exception that RavenDB's clients know, so that they take it for a RavenException
			return &serve.Problem{Status: http.StatusBadRequest, Kind: "System.InvalidOperationException", Message: fmt.Sprintf("Cannot have two different revision configurations on the same collection. Collection name : '%.100s'", name)}
		}
		folded[strings.ToLower(name)] = true
		rule, err := one.Rule()
		if err != nil {
			return err
		}
		config.Collections[name] = rule
	}
	if err := c.DB.Revisions().Configure(c.Ctx, config); err != nil {
		return err
	}
	return raftIndex(c)
}

// raftIndex replies with a number that grows with each command.
func raftIndex(c *serve.Call) error {
	index, err := commandIndex(c)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"RaftCommandIndex": index})
}

// commandIndex returns a number that grows with every command of the call's database, and of the server.
func commandIndex(c *serve.Call) (uint64, error) {
	index, err := c.Server.Databases.Index(c.Ctx)
	if err != nil {
		return 0, err
	}
	last, err := c.DB.Definitions().Last(c.Ctx)
	return index + last, err
}

// enforceRevisions removes the revisions that the rules do not keep, as an operation.
func enforceRevisions(c *serve.Call) error {
	if len(c.Body) > 0 {
		var given struct {
			Collections         []string
			IncludeForceCreated bool
		}
		if err := c.Decode(&given); err != nil {
			return err
		}
		if len(given.Collections) > 0 || given.IncludeForceCreated {
			return serve.NotSupported("enforcing a part of the configuration is not there: leave out Collections and IncludeForceCreated")
		}
	}
	db := c.DB
	return c.Background(func(ctx context.Context, o *serve.Operation) (any, error) {
		done, err := db.Revisions().Purge(ctx, jay.RevisionPurge{Retention: true, Progress: func(p jay.RevisionsPurged) {
			c.Server.Operations.Progress(o, map[string]any{"Processed": p.Revisions, "Total": p.Revisions})
		}})
		return map[string]any{"$type": "Raven.Client.Documents.Operations.Revisions.EnforceConfigurationResult, Raven.Client", "ScannedDocuments": done.Looked,
			"ScannedRevisions": done.Looked, "RemovedRevisions": done.Revisions, "Message": fmt.Sprintf("removed %d revisions", done.Revisions), "ShouldPersist": false}, err
	})
}

// deleteRevisions removes the revisions of documents, but not the documents.
func deleteRevisions(c *serve.Call) error {
	var request struct {
		DocumentIds []string `most:"1024 400"`
	}
	if err := c.Decode(&request); err != nil {
		return err
	}
	if n := len(request.DocumentIds); n == 0 || n > 1024 {
		return serve.BadRequest("DocumentIds names %d documents: 1 to 1024", n)
	}
	if slices.Contains(request.DocumentIds, "") { // before anything is removed
		return serve.BadRequest("DocumentIds has an empty ID")
	}
	removed := int64(0)
	for _, id := range request.DocumentIds {
		done, err := c.DB.Revisions().Purge(c.Ctx, jay.RevisionPurge{ID: id})
		if err != nil {
			return err
		}
		removed += done.Revisions
	}
	return c.JSON(http.StatusOK, map[string]any{"TotalDeletes": removed})
}

// revertRevisions stores old versions of documents as new ones, by
// DocumentIdToChangeVector.
func revertRevisions(c *serve.Call) error {
	var request struct {
		IDToChangeVector serve.Object[string] `json:"IdToChangeVector"`
	}
	if err := c.Decode(&request); err != nil {
		return err
	}
	if n := len(request.IDToChangeVector); n == 0 || n > 1024 {
		return serve.BadRequest("IdToChangeVector names %d documents: 1 to 1024", n)
	}
	var b jay.Batch // all of them are reverted, or none
	size := int64(0)
	for id, vector := range request.IDToChangeVector {
		r, err := c.DB.Revisions().Get(c.Ctx, id, vector)
		if serve.IsMissing(err) {
			return serve.BadRequest("there is no revision %.100q of %.100q", vector, id)
		}
		if err != nil {
			return err
		}
		if r.Deletion() {
			return serve.BadRequest("the revision %.100q of %.100q is a deletion", vector, id)
		}
		if err := keepRevision(c, &size, r); err != nil {
			return err
		}
		text, err := r.MarshalJSON()
		if err != nil {
			return err
		}
		b.Put(r.ID(), text)
	}
	if _, err := c.DB.Apply(c.Ctx, &b); err != nil {
		return err
	}
	return c.Empty(http.StatusNoContent)
}
