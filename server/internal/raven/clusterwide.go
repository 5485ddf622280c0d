package raven

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// clusterBatch carries out a batch of a cluster-wide session: documents with their guards,
// and compare-exchange values, as one transaction.
func clusterBatch(c *serve.Call, request *batchRequest) error {
	unguarded, err := c.Params.Flag("disableAtomicDocumentWrites")
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
	asked := slices.Clone(guards)
	written, err := c.DB.Apply(c.Ctx, &b, c.Once()...)
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
			addGuard(c, m, guards[i], asked[i])
		}
		reply = append(reply, cmd.clusterResult(m)...)
	}
	if newest == 0 { // only deletions of what did not exist; the client needs a number
		counters, err := c.DB.Counters(c.Ctx)
		if err != nil {
			return err
		}
		newest = max(1, counters.Etag)
	}
	return c.Text(http.StatusCreated, fmt.Appendf(reply, `],"TransactionIndex":%d}`, newest))
}

// addGuard adds the index of the guard to the change vector of a document that was put. A
// batch that is repeated by its request ID is not carried out again, so its guards are those
// that were asked for. In a cluster their indexes are not known then: the next save of the
// session compares the version itself. Without a cluster they are the etags.
func addGuard(c *serve.Call, m *jay.Metadata, guard, asked jay.AtomicGuard) {
	switch {
	case guard != asked:
		m.ChangeVector = withGuard(m.ChangeVector, guard.Index)
	case c.Server.Options.Cluster == nil:
		m.ChangeVector = withGuard(m.ChangeVector, m.Etag)
	}
}

// addClusterWide adds the command to a batch. g is nil if documents have no guards.
func (cmd *command) addClusterWide(b *jay.Batch, g *jay.AtomicGuard) error {
	id := ""
	if cmd.ID != nil {
		id = *cmd.ID
	}
	if strings.TrimSpace(id) == "" {
		return serve.BadRequest("a command of a cluster-wide transaction needs an Id")
	}
	if last := id[len(id)-1]; last == '|' || last == '/' {
		return serve.BadRequest("Document id %.100s cannot end with '|' or '/' as part of cluster transaction", id)
	}
	switch cmd.Type {
	case "CompareExchangePUT", "CompareExchangeDELETE":
		return cmd.addExchange(b, id)
	case "PUT", "DELETE":
	default:
		return serve.BadRequest("a cluster-wide transaction puts and deletes documents and compare-exchange values, and has no command %.100q", cmd.Type)
	}
	if s := cmd.ForceRevisionCreated; s != "" && s != "None" {
		return serve.NotSupported("ForceRevisionCreationStrategy in a cluster-wide transaction is not there")
	}
	opts := cmd.guardOptions(g)
	if cmd.Type == "DELETE" {
		if cmd.IDPrefixed {
			return serve.NotSupported("deleting by a prefix is not there yet")
		}
		b.Delete(id, opts...)
		return nil
	}
	if document := bytes.TrimLeft(cmd.Document, " \t\r\n"); len(document) == 0 || document[0] != '{' {
		return serve.BadRequest("a PUT needs a Document, which is an object")
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
		return &serve.Problem{Status: http.StatusBadRequest, Kind: serve.TypeInvalidKey, Message: fmt.Sprintf("You cannot manipulate the atomic guard '%.600s' via the cluster-wide session.", key)}
	}
	if cmd.Index == nil || *cmd.Index < 0 {
		return serve.BadRequest("a %s needs an Index that is not negative", cmd.Type)
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
		return serve.MustJSON(map[string]any{"Type": cmd.Type, "Key": *cmd.ID, "Index": m.Etag})
	case "CompareExchangeDELETE":
		return serve.MustJSON(map[string]any{"Type": cmd.Type, "Key": *cmd.ID, "Index": max(0, *cmd.Index)})
	}
	return cmd.result(m)
}

// clusterProblem converts a conflict to RavenDB's exception for cluster-wide transactions,
// with the texts that users of its clients know.
func clusterProblem(err error, request *batchRequest) error {
	p := serve.ProblemOf(err)
	if p.Status != http.StatusConflict {
		return keyProblem(err)
	}
	p = &serve.Problem{Status: p.Status, Kind: serve.TypeCluster, Message: p.Message, Fields: p.Fields}
	var conflict *jay.CompareExchangeError
	if !errors.As(err, &conflict) {
		return p
	}
	violation := map[string]any{"Id": conflict.Key, "Type": "CompareExchange", "Expected": conflict.Expected, "Actual": conflict.Actual}
	if id, is := strings.CutPrefix(conflict.Key, jay.GuardKey("")); is {
		violation["Type"] = "Document"
		p.Message = fmt.Sprintf("Failed to execute cluster transaction due to the following issues: Guard compare exchange value '%s' index does not match the transaction index's %d change vector on %s", conflict.Key, conflict.Expected, id)
	} else {
		verb := "putting"
		for i := range request.Commands {
			if cmd := &request.Commands[i]; cmd.Type == "CompareExchangeDELETE" && *cmd.ID == conflict.Key {
				verb = "deleting"
			}
		}
		p.Message = fmt.Sprintf("Failed to execute cluster transaction due to the following issues: Concurrency check failed for %s the key '%s'. Requested index: %d, actual index: %d", verb, conflict.Key, conflict.Expected, conflict.Actual)
	}
	p.Fields = map[string]any{"ConcurrencyViolations": []any{violation}}
	return p
}
