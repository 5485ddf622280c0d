package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/jaydb/jay"
)

// patchCommand has the members of commands other than PUT and DELETE.
type patchCommand struct {
	Patch, PatchIfMissing *patchRequest
	CreateIfMissing       json.RawMessage
	ReturnDocument        bool
	IDs                   []struct {
		ID           string `json:"Id"`
		ChangeVector *string
	} `json:"Ids"`

	Name            string
	ContentType     string
	DestinationID   string `json:"DestinationId"`
	DestinationName string
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

// bulkTransaction carries out the commands in a transaction.
func (c *call) bulkTransaction(request *batchRequest) error {
	if c.requestID != "" {
		return notSupported("%s of a batch with patches or attachments is not there", raftParam)
	}
	streams := 0
	for i := range request.Commands {
		cmd := &request.Commands[i]
		if err := cmd.check(); err != nil {
			return fmt.Errorf("command %d: %w", i, err)
		}
		if cmd.Type == "AttachmentPUT" {
			streams++
		}
	}
	if streams != len(c.parts) {
		return badRequest("the batch has %d AttachmentPUT commands, and %d streams", streams, len(c.parts))
	}
	var results []func() (map[string]any, error)
	if err := c.db.Update(c.ctx, func(tx *jay.Tx) error {
		results = results[:0] // the function may run again after a conflict
		parts := c.parts
		for i := range request.Commands {
			cmd := &request.Commands[i]
			var stream []byte
			if cmd.Type == "AttachmentPUT" {
				stream, parts = parts[0], parts[1:]
			}
			result, err := c.carryOut(tx, cmd, stream)
			if err != nil {
				return fmt.Errorf("command %d: %w", i, err)
			}
			results = append(results, result)
		}
		return nil
	}); err != nil {
		return err
	}
	reply := []byte(`{"Results":[`)
	for i, result := range results {
		if i > 0 {
			reply = append(reply, ',')
		}
		members, err := result()
		if err != nil {
			return err
		}
		reply = append(reply, mustJSON(members)...)
	}
	return c.text(http.StatusCreated, append(reply, "]}"...))
}

// check refuses an incomplete command before anything is done, and parses its scripts.
func (cmd *command) check() error {
	if cmd.ChangeVector != nil { // it may include the index of a guard
		version, _, _ := splitVector(*cmd.ChangeVector)
		cmd.ChangeVector = &version
	}
	if cmd.Type != "PUT" && cmd.Type != "BatchPATCH" && (cmd.ID == nil || *cmd.ID == "") {
		return badRequest("%.100s needs an Id", cmd.Type)
	}
	switch cmd.Type {
	case "PATCH", "BatchPATCH":
		if cmd.Patch == nil {
			return badRequest("%s needs a Patch", cmd.Type)
		}
		if cmd.Type == "BatchPATCH" && len(cmd.IDs) == 0 {
			return badRequest("BatchPATCH needs Ids")
		}
		if len(cmd.IDs) > maxCommands {
			return tooLarge("BatchPATCH has at most %d Ids", maxCommands)
		}
		if err := cmd.Patch.parse(); err != nil {
			return err
		}
		if cmd.PatchIfMissing != nil {
			return cmd.PatchIfMissing.parse()
		}
		return nil
	case "AttachmentPUT", "AttachmentDELETE", "AttachmentMOVE", "AttachmentCOPY":
		if cmd.Name == "" {
			return badRequest("%s needs a Name", cmd.Type)
		}
		if (cmd.Type == "AttachmentMOVE" || cmd.Type == "AttachmentCOPY") && (cmd.DestinationID == "" || cmd.DestinationName == "") {
			return badRequest("%s needs a DestinationId and a DestinationName", cmd.Type)
		}
		return nil
	case "ForceRevisionCreation":
		return nil
	}
	var b jay.Batch
	return cmd.addTo(&b)
}

// carryOut carries out one command. It returns a function that makes the reply once the
// transaction is committed.
func (c *call) carryOut(tx *jay.Tx, cmd *command, stream []byte) (func() (map[string]any, error), error) {
	id := ""
	if cmd.ID != nil {
		id = *cmd.ID
	}
	m := new(jay.Metadata)
	opts := []jay.WriteOption{jay.Returning(m)}
	if cmd.ChangeVector != nil {
		opts = append(opts, jay.IfMatch(*cmd.ChangeVector))
	}
	switch cmd.Type {
	case "PUT":
		if cmd.ForceRevisionCreated != "" && cmd.ForceRevisionCreated != "None" {
			opts = append(opts, jay.KeepRevision())
		}
		_, err := tx.Put(c.ctx, id, cmd.Document, opts...)
		return func() (map[string]any, error) { return putResult(m), nil }, err
	case "DELETE":
		found, err := tx.Exists(c.ctx, id)
		if err == nil {
			err = tx.Delete(c.ctx, id, opts...)
		}
		return func() (map[string]any, error) {
			return map[string]any{"Id": id, "Type": "DELETE", "Deleted": found}, nil
		}, err
	case "PATCH":
		p := &patching{c: c, patch: cmd.Patch, missing: cmd.PatchIfMissing, create: cmd.CreateIfMissing, expected: cmd.ChangeVector}
		done, err := p.run(c.ctx, tx, id)
		return func() (map[string]any, error) { return patchResult(cmd, done), nil }, err
	case "BatchPATCH":
		for _, one := range cmd.IDs {
			p := &patching{c: c, patch: cmd.Patch, missing: cmd.PatchIfMissing, expected: one.ChangeVector}
			if _, err := p.run(c.ctx, tx, one.ID); err != nil {
				return nil, err
			}
		}
		return func() (map[string]any, error) { return map[string]any{"Type": "BatchPATCH"}, nil }, nil
	case "ForceRevisionCreation":
		return func() (map[string]any, error) { return c.forceRevision(id) }, nil
	}
	return c.carryOutAttachment(tx, cmd, id, stream)
}

// putResult is the reply to a PUT. Clients take all members of it for metadata of the
// entity.
func putResult(m *jay.Metadata) map[string]any {
	return map[string]any{"Type": "PUT", "@id": m.ID, "@collection": m.Collection, "@change-vector": m.ChangeVector, "@last-modified": m.LastModified.UTC().Format(ravenTime)}
}

// patchResult is the reply to a PATCH.
func patchResult(cmd *command, done *patched) map[string]any {
	changeVector, modified := done.version()
	reply := map[string]any{"Id": done.id, "Type": "PATCH", "PatchStatus": done.status, "ChangeVector": changeVector, "LastModified": nil, "ModifiedDocument": nil, "Debug": nil}
	if !modified.IsZero() {
		reply["LastModified"] = modified.UTC().Format(ravenTime)
	}
	if cmd.ReturnDocument && done.after != nil {
		reply["ModifiedDocument"] = json.RawMessage(done.after)
	}
	return reply
}

// forceRevision makes a revision of the present version of a document. It runs after the
// transaction, as the only command that is not part of it.
func (c *call) forceRevision(id string) (map[string]any, error) {
	m, err := c.db.Revisions().Force(c.ctx, id)
	if err != nil {
		return nil, noDocument(id, err)
	}
	reply := putResult(&m)
	reply["Type"], reply["RevisionCreated"] = "ForceRevisionCreation", true
	return reply, nil
}

// carryOutAttachment carries out a command about an attachment. The version that it
// expects is that of the document.
func (c *call) carryOutAttachment(tx *jay.Tx, cmd *command, id string, stream []byte) (func() (map[string]any, error), error) {
	m := new(jay.Metadata)
	opts := []jay.WriteOption{jay.Returning(m)}
	if cmd.ChangeVector != nil && *cmd.ChangeVector != "" {
		opts = append(opts, jay.IfMatch(*cmd.ChangeVector))
	}
	reply := map[string]any{"Id": id, "@id": id, "Type": cmd.Type, "Name": cmd.Name}
	of := tx.Attachments(id)
	describe := func(a jay.Attachment) {
		reply["Hash"], reply["ContentType"], reply["Size"] = a.Hash, a.ContentType, a.Size
	}
	var err error
	target := id
	switch cmd.Type {
	case "AttachmentPUT":
		var a jay.Attachment
		a, err = of.Put(c.ctx, cmd.Name, bytes.NewReader(stream), append(opts, attachmentOptions(cmd.ContentType)...)...)
		describe(a)
	case "AttachmentDELETE":
		err = of.Delete(c.ctx, cmd.Name, opts...)
		if isMissing(err) {
			err = nil
		}
	case "AttachmentCOPY", "AttachmentMOVE":
		doc, missing := tx.Get(c.ctx, id)
		if missing != nil {
			return nil, noDocument(id, missing)
		}
		if want := cmd.ChangeVector; want != nil && *want != "" && *want != doc.ChangeVector() {
			return nil, &jay.ConflictError{ID: id, Expected: *want, Actual: doc.ChangeVector()}
		}
		a, missing := of.Stat(c.ctx, cmd.Name)
		if missing != nil {
			return nil, missing
		}
		describe(a)
		move := of.Copy
		if cmd.Type == "AttachmentMOVE" {
			move = of.Move
		}
		target = cmd.DestinationID
		reply["DestinationId"], reply["DestinationName"] = cmd.DestinationID, cmd.DestinationName
		err = move(c.ctx, cmd.Name, cmd.DestinationID, cmd.DestinationName)
	}
	if err != nil {
		return nil, noDocument(id, err)
	}
	return func() (map[string]any, error) {
		changeVector := m.ChangeVector
		if changeVector == "" {
			doc, err := c.db.Get(c.ctx, target)
			if err != nil && !isMissing(err) {
				return nil, err
			}
			if doc != nil {
				changeVector = doc.ChangeVector()
			}
		}
		reply["ChangeVector"], reply["DocumentChangeVector"] = changeVector, changeVector
		return reply, nil
	}, nil
}
