package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/jaydb/jay"
)

// maxCommands bounds the commands of one batch.
const maxCommands = 100_000

// batchRequest is the body of bulk_docs.
type batchRequest struct {
	Commands        []command
	TransactionMode string
}

// command is one command of the batch. RavenDB's commands have more members; those that
// need them are refused by their type.
type command struct {
	Type                 string
	ID                   *string `json:"Id"`
	ChangeVector         *string
	OriginalChangeVector *string // from a cluster-wide session: the version that it has read
	Index                *int64  // of a compare-exchange value
	Document             json.RawMessage
	IDPrefixed           bool   `json:"IdPrefixed"`
	ForceRevisionCreated string `json:"ForceRevisionCreationStrategy"`
	patchCommand
}

// refusedCommands maps the types of commands that are not supported to the reason.
var refusedCommands = map[string]string{
	"CompareExchangePUT": clusterOnly, "CompareExchangeDELETE": clusterOnly,
	"Counters": "counters beside documents are not there", "TimeSeries": "time series are not there", "TimeSeriesCopy": "time series are not there",
	"TimeSeriesBulkInsert": "time series are not there",
}

// bulkDocs carries out a batch of commands as one transaction.
func (c *call) bulkDocs() error {
	if err := c.checkReplicas(); err != nil {
		return err
	}
	if err := c.splitParts(); err != nil {
		return err
	}
	var request batchRequest
	if err := c.decode(&request); err != nil {
		return err
	}
	clusterWide := false
	switch request.TransactionMode {
	case "", "SingleNode":
	case "ClusterWide":
		clusterWide = true
	default:
		return badRequest("TransactionMode is SingleNode or ClusterWide, not %.100q", request.TransactionMode)
	}
	if len(request.Commands) == 0 {
		return badRequest("Commands has no command")
	}
	if len(request.Commands) > maxCommands {
		return tooLarge("a batch has at most %d commands, not %d", maxCommands, len(request.Commands))
	}
	if clusterWide || slices.ContainsFunc(request.Commands, func(cmd command) bool { return cmd.ID != nil && strings.HasSuffix(*cmd.ID, "|") }) {
		c.boundMajority()
	}
	if clusterWide {
		return c.clusterBatch(&request)
	}
	if request.needsTransaction() {
		return c.bulkTransaction(&request)
	}
	if len(c.parts) > 0 {
		return badRequest("the batch has %d streams, and no AttachmentPUT", len(c.parts))
	}
	var b jay.Batch
	for i := range request.Commands {
		if err := request.Commands[i].addTo(&b); err != nil {
			return fmt.Errorf("command %d: %w", i, err)
		}
	}
	written, err := c.db.Apply(c.ctx, &b, c.once()...)
	if err != nil {
		return err
	}
	reply := []byte(`{"Results":[`)
	for i := range written {
		if i > 0 {
			reply = append(reply, ',')
		}
		reply = append(reply, request.Commands[i].result(&written[i])...)
	}
	return c.text(http.StatusCreated, append(reply, "]}"...))
}

// checkReplicas refuses requests to wait for replicas, as there are none. A majority of
// one node is that node. There is no need to wait for indexes: they are always up to date.
func (c *call) checkReplicas() error {
	switch c.params.get("numberOfReplicasToWaitFor") {
	case "", "0", "majority":
		return nil
	}
	if c.params.get("throwOnTimeoutInWaitForReplicas") == "false" {
		return nil
	}
	return notSupported("POST %s: waiting for replicas: there are none", c.route.path)
}

// addTo adds the command to a batch.
func (cmd *command) addTo(b *jay.Batch) error {
	id := ""
	if cmd.ID != nil {
		id = *cmd.ID
	}
	var opts []jay.WriteOption
	if cmd.ChangeVector != nil {
		version, _, _ := splitVector(*cmd.ChangeVector)
		opts = append(opts, jay.IfMatch(version))
	}
	switch cmd.Type {
	case "PUT":
		if document := bytes.TrimLeft(cmd.Document, " \t\r\n"); len(document) == 0 || document[0] != '{' {
			return badRequest("a PUT needs a Document, which is an object")
		}
		b.Put(id, cmd.Document, opts...)
		return nil
	case "DELETE":
		switch {
		case cmd.IDPrefixed:
			return notSupported("deleting by a prefix is not there yet")
		case id == "":
			return badRequest("a DELETE needs an Id")
		}
		b.Delete(id, opts...)
		return nil
	}
	if reason, found := refusedCommands[cmd.Type]; found {
		return notSupported("%s: %s", cmd.Type, reason)
	}
	return badRequest("unknown type of command %.100q", cmd.Type)
}

// result returns the reply to the command.
func (cmd *command) result(m *jay.Metadata) []byte {
	if cmd.Type == "DELETE" {
		return mustJSON(map[string]any{"Id": m.ID, "Type": "DELETE", "Deleted": m.Etag > 0})
	}
	return mustJSON(putResult(m))
}
