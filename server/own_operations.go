package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"
)

// operationKinds are the names of operations, by the endpoint that begins them.
var operationKinds = map[string]string{
	"PATCH {D}/queries":                       "patch by query",
	"DELETE {D}/queries":                      "delete by query",
	"POST {D}/bulk_insert":                    "bulk insert",
	"POST {D}/admin/revisions/config/enforce": "enforce the revisions",
	"POST {D}/operations/kill":                "killed before it began",
	"POST /admin/compact":                     "compact",
	"PUT {J}/indexes":                         "build an index",
	"POST {J}/import":                         "import",
	"GET {J}/export":                          "export",
	"GET {J}/backup":                          "backup",
	"POST {J}/collections/rename":             "rename a collection",
	"DELETE {J}/collections":                  "drop a collection",
}

// maxSubject bounds the description of an operation, in bytes.
const maxSubject = 1024

// about describes the operation that the call begins.
func (c *call) about() about {
	name := c.route.method + " " + c.route.path
	a := about{kind: cmp.Or(operationKinds[name], name), subject: c.subject, began: c.s.opts.Now()}
	if len(a.subject) > maxSubject {
		cut := maxSubject
		for !utf8.RuneStart(a.subject[cut]) {
			cut--
		}
		a.subject = a.subject[:cut] + "…"
	}
	if c.who != nil {
		a.by = c.who.Name
	}
	return a
}

// watched runs a stream as the operation that operation= names, whose number the client
// has got before. The operation shows the progress of the stream and can be killed.
// Without the parameter o is nil.
func (c *call) watched(ctx context.Context, fn func(ctx context.Context, o *operation) (result any, err error)) error {
	id, err := c.params.number("operation", 0)
	if err != nil {
		return err
	}
	if id == 0 {
		_, err := fn(ctx, nil)
		return err
	}
	ctx, o, err := c.s.operations.start(ctx, c.database.key, id, c.about())
	if err != nil {
		return err
	}
	result, err := runOperation(ctx, o, fn)
	c.s.operations.end(ctx, o, result, err)
	return err
}

// report sets the progress of a stream, if it is an operation.
func (c *call) report(o *operation, progress any) {
	if o != nil {
		c.s.operations.progress(o, progress)
	}
}

// ownOperation is an operation in the list.
type ownOperation struct {
	ID       int64      `json:"id"`
	Database string     `json:"database"` // "" for one of the server
	Kind     string     `json:"kind"`
	Subject  string     `json:"subject,omitempty"`
	By       string     `json:"by,omitempty"`
	Began    time.Time  `json:"began"`
	Ended    *time.Time `json:"ended,omitempty"`
	Status   string     `json:"status"`
	Progress any        `json:"progress"`
	Result   any        `json:"result"`
}

// ownOperations replies with the operations of a database, or of all databases that the
// sender may read, newest first: those that run, and the outcomes of the last ones.
func (c *call) ownOperations() error {
	size, err := c.params.count("pageSize", defaultPageSize)
	if err != nil {
		return err
	}
	if err := checkPageSize(size); err != nil {
		return err
	}
	id, err := c.params.number("id", 0)
	if err != nil {
		return err
	}
	wanted, only := c.params.find("database")
	key := ""
	if only {
		if key, err = checkName(wanted); err != nil {
			return err
		}
	}
	os := c.s.operations
	os.mu.Lock()
	var found []*operation
	for of, o := range os.byID {
		ofIt := !only || of.database == key
		if of.database == "" { // such as the compaction of a database
			subject, err := checkName(o.about.subject)
			ofIt = !only || err == nil && subject == key
		}
		if ofIt && (id == 0 || of.id == id) && c.who.may(of.database, ReadRight) {
			found = append(found, o)
		}
	}
	os.mu.Unlock()
	slices.SortFunc(found, func(a, b *operation) int { return cmp.Compare(b.of.id, a.of.id) })
	list := make([]ownOperation, 0, min(len(found), size))
	for _, o := range found[:min(len(found), size)] {
		o.mu.Lock()
		state, ended := o.state, o.ended
		o.mu.Unlock()
		one := ownOperation{ID: o.of.id, Database: o.of.database, Kind: o.about.kind, Subject: o.about.subject, By: o.about.by, Began: o.about.began.UTC(), Status: state.Status, Progress: state.Progress, Result: state.Result}
		if !ended.IsZero() {
			ended = ended.UTC()
			one.Ended = &ended
		}
		list = append(list, one)
	}
	return c.json(http.StatusOK, map[string]any{"operations": list})
}
