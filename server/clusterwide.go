package server

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/jaydb/jay"
	"github.com/tidwall/gjson"
)

// guardMark separates the version from the index of the guard, in the change vector that a
// cluster-wide session gets: "A:7-id, TRXN:12-id". The session sends it back with its
// writes.
const guardMark = ", TRXN:"

// withGuard returns the change vector of a document with the index of its guard.
func withGuard(version string, index uint64) string {
	_, id, _ := strings.Cut(version, "-")
	return version + guardMark + strconv.FormatUint(index, 10) + "-" + id
}

// splitVector returns the version in a change vector, and the index of the guard if it has
// one.
func splitVector(vector string) (version string, index uint64, guarded bool) {
	version, guard, found := strings.Cut(vector, guardMark)
	if !found {
		return vector, 0, false
	}
	number, _, _ := strings.Cut(guard, "-")
	index, err := strconv.ParseUint(number, 10, 63)
	return version, index, err == nil
}

// clusterOnly is the message that refuses compare-exchange values in other batches.
const clusterOnly = "compare-exchange values are changed by cluster-wide transactions, and by PUT and DELETE of cmpxchg"

// clusterBatch carries out a batch of a cluster-wide session: documents with their guards,
// and compare-exchange values, as one transaction.
func (c *call) clusterBatch(request *batchRequest) error {
	unguarded, err := c.params.flag("disableAtomicDocumentWrites")
	if err != nil {
		return err
	}
	var b jay.Batch
	guards := make([]jay.AtomicGuard, len(request.Commands))
	for i := range request.Commands {
		g := &guards[i]
		if unguarded {
			g = nil
		}
		if err := request.Commands[i].addClusterWide(&b, g); err != nil {
			return fmt.Errorf("command %d: %w", i, err)
		}
	}
	written, err := c.db.Apply(c.ctx, &b, c.once()...)
	if err != nil {
		return clusterProblem(err, request)
	}
	reply, newest := []byte(`{"Results":[`), uint64(0)
	for i := range written {
		if i > 0 {
			reply = append(reply, ',')
		}
		m := &written[i]
		newest = max(newest, m.Etag)
		cmd := &request.Commands[i]
		if cmd.Type == "PUT" && !unguarded {
			m.ChangeVector = withGuard(m.ChangeVector, m.Etag) // a repeated batch has no guards; their index is the etag
		}
		reply = append(reply, cmd.clusterResult(m)...)
	}
	if newest == 0 { // only deletions of what did not exist; the client needs a number
		counters, err := c.db.Counters(c.ctx)
		if err != nil {
			return err
		}
		newest = max(1, counters.Etag)
	}
	return c.text(http.StatusCreated, fmt.Appendf(reply, `],"TransactionIndex":%d}`, newest))
}

// addClusterWide adds the command to a batch. g is nil if documents have no guards.
func (cmd *command) addClusterWide(b *jay.Batch, g *jay.AtomicGuard) error {
	id := ""
	if cmd.ID != nil {
		id = *cmd.ID
	}
	if strings.TrimSpace(id) == "" {
		return badRequest("a command of a cluster-wide transaction needs an Id")
	}
	switch cmd.Type {
	case "CompareExchangePUT", "CompareExchangeDELETE":
		return cmd.addExchange(b, id)
	case "PUT", "DELETE":
	default:
		return badRequest("a cluster-wide transaction puts and deletes documents and compare-exchange values, and has no command %.100q", cmd.Type)
	}
	if last := id[len(id)-1]; last == '|' || last == '/' {
		return badRequest("the id %.100q ends with %q: a cluster-wide transaction makes no ids", id, last)
	}
	opts := cmd.guardOptions(g)
	if cmd.Type == "DELETE" {
		if cmd.IDPrefixed {
			return notSupported("deleting by a prefix is not there yet")
		}
		b.Delete(id, opts...)
		return nil
	}
	if document := bytes.TrimLeft(cmd.Document, " \t\r\n"); len(document) == 0 || document[0] != '{' {
		return badRequest("a PUT needs a Document, which is an object")
	}
	b.Put(id, cmd.Document, opts...)
	return nil
}

// guardOptions returns the options that check the document's guard. It must be the one
// that the client has read, or absent if the client has read no document. A version
// without a guard, as a query returns it, is compared itself. A deletion of an unread
// document accepts any guard.
func (cmd *command) guardOptions(g *jay.AtomicGuard) []jay.WriteOption {
	vector := cmd.ChangeVector
	if vector == nil {
		vector = cmd.OriginalChangeVector
	}
	if g == nil {
		if cmd.ChangeVector == nil {
			return nil
		}
		version, _, _ := splitVector(*cmd.ChangeVector)
		return []jay.WriteOption{jay.IfMatch(version)}
	}
	opts := []jay.WriteOption{jay.Guarded(g)}
	switch {
	case vector == nil:
		g.Any = cmd.Type == "DELETE"
	case *vector != "":
		version, index, guarded := splitVector(*vector)
		if guarded {
			g.Index = index
			break
		}
		g.Any = true
		opts = append(opts, jay.IfMatch(version))
	}
	return opts
}

// addExchange adds a change of a compare-exchange value.
func (cmd *command) addExchange(b *jay.Batch, key string) error {
	if strings.HasPrefix(strings.ToLower(key), jay.GuardKey("")) {
		return &problem{status: http.StatusBadRequest, kind: typeInvalidKey, message: fmt.Sprintf("the guard %.100q is kept by the transaction itself", key)}
	}
	if cmd.Index == nil || *cmd.Index < 0 {
		return badRequest("a %s needs an Index that is not negative", cmd.Type)
	}
	if cmd.Type == "CompareExchangeDELETE" {
		b.DeleteCompareExchange(key, uint64(*cmd.Index))
		return nil
	}
	value, opts, err := valueOf(cmd.Document)
	if err != nil {
		return err
	}
	b.PutCompareExchange(key, value, uint64(*cmd.Index), opts...)
	return nil
}

// clusterResult returns the reply to the command.
func (cmd *command) clusterResult(m *jay.Metadata) []byte {
	switch cmd.Type {
	case "CompareExchangePUT":
		return mustJSON(map[string]any{"Type": cmd.Type, "Key": *cmd.ID, "Index": m.Etag})
	case "CompareExchangeDELETE":
		return mustJSON(map[string]any{"Type": cmd.Type, "Key": *cmd.ID, "Index": max(0, *cmd.Index)})
	}
	return cmd.result(m)
}

// clusterProblem converts a conflict to RavenDB's exception for cluster-wide transactions,
// with the texts that users of its clients know.
func clusterProblem(err error, request *batchRequest) error {
	p := problemOf(err)
	if p.status != http.StatusConflict {
		return keyProblem(err)
	}
	p = &problem{status: p.status, kind: typeCluster, message: p.message, fields: p.fields}
	var conflict *jay.CompareExchangeError
	if !errors.As(err, &conflict) {
		return p
	}
	violation := map[string]any{"Id": conflict.Key, "Type": "CompareExchange", "Expected": conflict.Expected, "Actual": conflict.Actual}
	if id, is := strings.CutPrefix(conflict.Key, jay.GuardKey("")); is {
		violation["Type"] = "Document"
		p.message = fmt.Sprintf("Failed to execute cluster transaction due to the following issues: Guard compare exchange value '%s' index does not match the transaction index's %d change vector on %s", conflict.Key, conflict.Expected, id)
	} else {
		verb := "putting"
		for i := range request.Commands {
			if cmd := &request.Commands[i]; cmd.Type == "CompareExchangeDELETE" && *cmd.ID == conflict.Key {
				verb = "deleting"
			}
		}
		p.message = fmt.Sprintf("Failed to execute cluster transaction due to the following issues: Concurrency check failed for %s the key '%s'. Requested index: %d, actual index: %d", verb, conflict.Key, conflict.Expected, conflict.Actual)
	}
	p.fields = map[string]any{"ConcurrencyViolations": []any{violation}}
	return p
}

// isClusterWide reports whether documents are read for a cluster-wide session.
func (c *call) isClusterWide() bool { return strings.EqualFold(c.params.get("txMode"), "ClusterWide") }

// complete reads what belongs to the documents that were read, in the same snapshot:
// included documents, guards, and compare-exchange values.
func (c *call) complete(f *reading, tx *jay.Tx, r documentsRequest) error {
	if c.isClusterWide() || len(r.exchanges) > 0 {
		c.boundMajority()
	}
	if err := c.readIncluded(f, tx, r.includes); err != nil {
		return err
	}
	if c.isClusterWide() {
		if err := c.readGuards(f, tx); err != nil {
			return err
		}
	}
	return c.readExchanges(f, tx, r.exchanges)
}

// readGuards reads the indexes of the guards of documents.
func (c *call) readGuards(f *reading, tx *jay.Tx) error {
	f.guards = make(map[*jay.Document]uint64)
	for _, list := range [][]*jay.Document{f.docs, f.included} {
		for _, doc := range list {
			if doc == nil {
				continue
			}
			v, err := tx.CompareExchange().Get(c.ctx, jay.GuardKey(doc.ID()))
			if err != nil && !isMissing(err) {
				return err
			}
			if f.guards[doc] = 0; v != nil {
				f.guards[doc] = v.Index
			}
		}
	}
	return nil
}

// readExchanges reads the compare-exchange values whose keys are at the paths in the
// documents that were read.
func (c *call) readExchanges(f *reading, tx *jay.Tx, paths []include) error {
	var refused error
	seen := make(map[string]bool) // missing keys included
	for _, doc := range f.docs {
		if doc == nil {
			continue
		}
		for _, path := range paths {
			path.each(doc.Body(), func(key string) bool {
				if seen[key] || key == "" {
					return true
				}
				if seen[key] = true; len(seen) > maxExchangeKeys {
					refused = tooLarge("the request includes more than %d compare-exchange values", maxExchangeKeys)
					return false
				}
				var v *jay.CompareExchangeValue
				if v, refused = tx.CompareExchange().Get(c.ctx, key); isMissing(refused) {
					refused = nil
				}
				if v != nil {
					refused = c.take(2 * int64(len(v.Value)+len(v.Metadata)+len(key)))
					if f.exchanges == nil {
						f.exchanges = make(map[string]*jay.CompareExchangeValue)
					}
					f.exchanges[key] = v
				}
				return refused == nil
			})
			if refused != nil {
				return refused
			}
		}
	}
	return nil
}

// appendExchanges appends the compare-exchange values of a reply.
func (f *reading) appendExchanges(dst []byte) []byte {
	items := make(map[string]exchangeItem, len(f.exchanges))
	for key, v := range f.exchanges {
		items[key] = itemOf(v)
	}
	return append(append(dst, `,"CompareExchangeValueIncludes":`...), mustJSON(items)...)
}

// spliceGuard inserts the index of a guard into the change vector in the text of a
// document.
func spliceGuard(text []byte, doc *jay.Document, index uint64) ([]byte, error) {
	found := gjson.GetBytes(text, `\@metadata.\@change-vector`)
	if found.Str != doc.ChangeVector() || found.Index == 0 {
		return nil, fmt.Errorf("server: the JSON of %q has no change vector", doc.ID())
	}
	spliced := append([]byte(nil), text[:found.Index]...)
	spliced = append(spliced, mustJSON(withGuard(found.Str, index))...)
	return append(spliced, text[found.Index+len(found.Raw):]...), nil
}
