package raven

import (
	"bytes"
	"encoding/json"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// maxCommands bounds the commands of one batch.
const maxCommands = 100_000

// batchRequest is the body of bulk_docs.
type batchRequest struct {
	Commands        []command `most:"100000"` // maxCommands
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
	"JsonPatch":            "JSON Patch is not there: change the document with a script, in a PATCH",
	"BatchTrackChanges":    "what a session has only read is not checked: give the PUT or DELETE a ChangeVector, or use a cluster-wide transaction",
	"AttachmentRENAME":     "an AttachmentMOVE renames, too",
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
			return serve.BadRequest("a PUT needs a Document, which is an object")
		}
		b.Put(id, cmd.Document, opts...)
		return nil
	case "DELETE":
		switch {
		case cmd.IDPrefixed:
			return serve.NotSupported("deleting by a prefix is not there yet")
		case id == "":
			return serve.BadRequest("a DELETE needs an Id")
		}
		b.Delete(id, opts...)
		return nil
	}
	if reason, found := refusedCommands[cmd.Type]; found {
		return serve.NotSupported("%s: %s", cmd.Type, reason)
	}
	return serve.BadRequest("unknown type of command %.100q", cmd.Type)
}

// result returns the reply to the command.
func (cmd *command) result(m *jay.Metadata) []byte {
	if cmd.Type == "DELETE" {
		return serve.MustJSON(map[string]any{"Id": m.ID, "Type": "DELETE", "Deleted": m.Etag > 0})
	}
	return serve.MustJSON(putResult(m))
}

// patchCommand has the members of commands other than PUT and DELETE.
type patchCommand struct {
	Patch, PatchIfMissing *verbs.PatchRequest
	CreateIfMissing       json.RawMessage
	ReturnDocument        bool
	IDs                   []struct {
		ID           string `json:"Id"`
		ChangeVector *string
	} `json:"Ids" most:"100000"`

	Name            string
	ContentType     string
	DestinationID   string `json:"DestinationId"`
	DestinationName string

	// Of commands that are refused by their type.
	Counters, TimeSeries, From, To, FromEtl, JSONPatch, TrackedEntities, NewName json.RawMessage
}

// inTransaction are the types of commands that a batch of writes cannot carry out.
var inTransaction = map[string]bool{"PATCH": true, "BatchPATCH": true, "AttachmentPUT": true, "AttachmentDELETE": true, "AttachmentMOVE": true, "AttachmentCOPY": true, "ForceRevisionCreation": true}

// needsTransaction reports whether the commands are carried out one after the other in a
// transaction, and not as a batch of writes.
func (r *batchRequest) needsTransaction() bool {
	for i := range r.Commands {
		if inTransaction[r.Commands[i].Type] || r.Commands[i].ForceRevisionCreated != "" && r.Commands[i].ForceRevisionCreated != "None" {
			return true
		}
	}
	return false
}

// putResult is the reply to a PUT. Clients take all members of it for metadata of the
// entity.
func putResult(m *jay.Metadata) map[string]any {
	return map[string]any{"Type": "PUT", "@id": m.ID, "@collection": m.Collection, "@change-vector": m.ChangeVector, "@last-modified": m.LastModified.UTC().Format(serve.RavenTime)}
}

// check refuses an incomplete command before anything is done, and parses its scripts.
func (cmd *command) check() error {
	if cmd.ChangeVector != nil { // it may include the index of a guard
		version, _, _ := splitVector(*cmd.ChangeVector)
		cmd.ChangeVector = &version
	}
	if cmd.Type != "PUT" && cmd.Type != "BatchPATCH" && (cmd.ID == nil || *cmd.ID == "") {
		return serve.BadRequest("%.100s needs an Id", cmd.Type)
	}
	switch cmd.ForceRevisionCreated {
	case "", "None":
	case "Before":
		if cmd.Type != "PUT" || cmd.ID == nil || *cmd.ID == "" {
			return serve.BadRequest("ForceRevisionCreationStrategy is for a PUT with an Id")
		}
	default:
		return serve.BadRequest("ForceRevisionCreationStrategy is None or Before, not %.100q", cmd.ForceRevisionCreated)
	}
	switch cmd.Type {
	case "PATCH", "BatchPATCH":
		if cmd.Patch == nil {
			return serve.BadRequest("%s needs a Patch", cmd.Type)
		}
		if cmd.Type == "BatchPATCH" && len(cmd.IDs) == 0 {
			return serve.BadRequest("BatchPATCH needs Ids")
		}
		if len(cmd.IDs) > maxCommands {
			return serve.TooLarge("BatchPATCH has at most %d Ids", maxCommands)
		}
		if err := cmd.Patch.Parse(); err != nil {
			return err
		}
		if cmd.PatchIfMissing != nil {
			return cmd.PatchIfMissing.Parse()
		}
		return nil
	case "AttachmentPUT", "AttachmentDELETE", "AttachmentMOVE", "AttachmentCOPY":
		if cmd.Name == "" {
			return serve.BadRequest("%s needs a Name", cmd.Type)
		}
		if (cmd.Type == "AttachmentMOVE" || cmd.Type == "AttachmentCOPY") && (cmd.DestinationID == "" || cmd.DestinationName == "") {
			return serve.BadRequest("%s needs a DestinationId and a DestinationName", cmd.Type)
		}
		return nil
	case "ForceRevisionCreation":
		return nil
	}
	var b jay.Batch
	return cmd.addTo(&b)
}

// clusterOnly is the message that refuses compare-exchange values in other batches.
const clusterOnly = "compare-exchange values are changed by cluster-wide transactions, and by PUT and DELETE of cmpxchg"
