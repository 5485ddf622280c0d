package raven

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// bulkTransaction carries out the commands in a transaction.
func bulkTransaction(c *serve.Call, request *batchRequest) error {
	if c.RequestID != "" {
		return serve.NotSupported("%s of a batch with patches or attachments is not there", serve.RaftParam)
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
	if streams != len(c.Parts) {
		return serve.BadRequest("the batch has %d AttachmentPUT commands, and %d streams", streams, len(c.Parts))
	}
	var results []func() (map[string]any, error)
	staged := c.Server.Memory.Holding(c.Sender())
	defer staged.End()
	if err := c.DB.Update(c.Ctx, func(tx *jay.Tx) error {
		results = results[:0] // the function may run again after a conflict
		staged.End()
		parts := c.Parts
		for i := range request.Commands {
			cmd := &request.Commands[i]
			var stream []byte
			if cmd.Type == "AttachmentPUT" {
				stream, parts = parts[0], parts[1:]
			}
			result, err := carryOut(c, tx, cmd, stream, staged)
			if err != nil {
				return fmt.Errorf("command %d: %w", i, err)
			}
			results = append(results, result)
		}
		return checkForced(c, tx, request)
	}, jay.Retry()); err != nil {
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
		reply = append(reply, serve.MustJSON(members)...)
	}
	return c.Text(http.StatusCreated, append(reply, "]}"...))
}

// carryOut carries out one command. It returns a function that makes the reply once the
// transaction is committed. staged pays for what patches store.
func carryOut(c *serve.Call, tx *jay.Tx, cmd *command, stream []byte, staged *serve.Holding) (func() (map[string]any, error), error) {
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
		if cmd.ForceRevisionCreated == "Before" {
			found, err := tx.Exists(c.Ctx, id)
			if err == nil && !found {
				err = serve.BadRequest("Can't force revision creation - the document was not saved on the server yet: %.100q", id)
			}
			if err != nil {
				return nil, err
			}
			opts = append(opts, jay.KeepReplaced())
		}
		_, err := tx.Put(c.Ctx, id, cmd.Document, opts...)
		return func() (map[string]any, error) { return putResult(m), nil }, err
	case "DELETE":
		found, err := tx.Exists(c.Ctx, id)
		if err == nil {
			err = tx.Delete(c.Ctx, id, opts...)
		}
		return func() (map[string]any, error) {
			return map[string]any{"Id": id, "Type": "DELETE", "Deleted": found}, nil
		}, err
	case "PATCH":
		p := &verbs.Patching{Call: c, Memory: staged, Patch: cmd.Patch, Missing: cmd.PatchIfMissing, Create: cmd.CreateIfMissing, Expected: cmd.ChangeVector}
		done, err := p.Run(c.Ctx, tx, id)
		if err == nil {
			err = c.Take(replyBytes(done)) // it is held until the reply is made
		}
		return func() (map[string]any, error) { return patchResult(cmd, done), nil }, err
	case "BatchPATCH":
		for _, one := range cmd.IDs {
			p := &verbs.Patching{Call: c, Memory: staged, Patch: cmd.Patch, Missing: cmd.PatchIfMissing, Expected: one.ChangeVector}
			if _, err := p.Run(c.Ctx, tx, one.ID); err != nil {
				return nil, err
			}
		}
		return func() (map[string]any, error) { return map[string]any{"Type": "BatchPATCH"}, nil }, nil
	case "ForceRevisionCreation":
		return func() (map[string]any, error) { return forceRevision(c, id) }, nil
	}
	return carryOutAttachment(c, tx, cmd, id, stream)
}

// patchResult is the reply to a PATCH. It has a ModifiedDocument only if the command wants
// it, as in RavenDB: clients take the member for an object wherever it is.
func patchResult(cmd *command, done *verbs.Patched) map[string]any {
	changeVector, modified := version(done)
	reply := map[string]any{"Id": done.ID, "Type": "PATCH", "PatchStatus": done.Status, "ChangeVector": changeVector, "LastModified": nil, "Debug": nil}
	if !modified.IsZero() {
		reply["LastModified"] = modified.UTC().Format(serve.RavenTime)
	}
	if cmd.ReturnDocument && done.After != nil {
		reply["ModifiedDocument"] = json.RawMessage(done.After)
	}
	return reply
}

// checkForced refuses the batch if a ForceRevisionCreation names a document that is missing
// after the other commands. After the commit it would be too late to refuse anything.
func checkForced(c *serve.Call, tx *jay.Tx, request *batchRequest) error {
	for i := range request.Commands {
		cmd := &request.Commands[i]
		if cmd.Type != "ForceRevisionCreation" {
			continue
		}
		found, err := tx.Exists(c.Ctx, *cmd.ID)
		if err == nil && !found {
			err = noDocument(*cmd.ID, jay.ErrNotFound)
		}
		if err != nil {
			return fmt.Errorf("command %d: %w", i, err)
		}
	}
	return nil
}

// forceRevision makes a revision of the present version of a document. It runs after the
// transaction, as the only command that is not part of it. If another request has deleted the
// document since, there is no version to keep, and the batch stays carried out.
func forceRevision(c *serve.Call, id string) (map[string]any, error) {
	m, err := c.DB.Revisions().Force(c.Ctx, id)
	if serve.IsMissing(err) {
		return map[string]any{"Id": id, "@id": id, "Type": "ForceRevisionCreation", "RevisionCreated": false}, nil
	}
	if err != nil {
		return nil, err
	}
	reply := putResult(&m)
	reply["Type"], reply["RevisionCreated"] = "ForceRevisionCreation", true
	return reply, nil
}

// carryOutAttachment carries out a command about an attachment. The version that it
// expects is that of the document, or "" if there must be no such attachment. AttachmentCOPY
// and AttachmentMOVE replace no attachment, as in RavenDB.
func carryOutAttachment(c *serve.Call, tx *jay.Tx, cmd *command, id string, stream []byte) (func() (map[string]any, error), error) {
	m, source := new(jay.Metadata), new(jay.Metadata) // of the document that is named, or gets the attachment, and of that which loses it
	opts := []jay.WriteOption{jay.Returning(m)}
	of := tx.Attachments(id)
	if want := cmd.ChangeVector; want != nil && *want != "" {
		opts = append(opts, jay.IfMatch(*want))
	} else if want != nil {
		if err := needNoAttachment(c.Ctx, of, id, cmd.Name); err != nil {
			return nil, err
		}
	}
	reply := map[string]any{"Id": id, "@id": id, "Type": cmd.Type, "Name": cmd.Name}
	describe := func(a jay.Attachment) {
		reply["Hash"], reply["ContentType"], reply["Size"] = a.Hash, a.ContentType, a.Size
	}
	var err error
	unchanged := "" // the version of a document that keeps it
	switch cmd.Type {
	case "AttachmentPUT":
		var a jay.Attachment
		a, err = of.Put(c.Ctx, cmd.Name, bytes.NewReader(stream), append(opts, attachmentOptions(cmd.ContentType)...)...)
		describe(a)
	case "AttachmentDELETE":
		if doc, missing := tx.Get(c.Ctx, id); missing == nil {
			unchanged = doc.ChangeVector()
		}
		err = of.Delete(c.Ctx, cmd.Name, opts...)
		if serve.IsMissing(err) {
			err = nil
		}
	case "AttachmentCOPY", "AttachmentMOVE":
		doc, missing := tx.Get(c.Ctx, id)
		if missing != nil {
			return nil, noDocument(id, missing)
		}
		if want := cmd.ChangeVector; want != nil && *want != "" && *want != doc.ChangeVector() {
			return nil, &jay.ConflictError{ID: id, Expected: *want, Actual: doc.ChangeVector()}
		}
		a, missing := of.Stat(c.Ctx, cmd.Name)
		if missing != nil {
			return nil, missing
		}
		describe(a)
		if err := needNoAttachment(c.Ctx, tx.Attachments(cmd.DestinationID), cmd.DestinationID, cmd.DestinationName); err != nil {
			return nil, err
		}
		reply["DestinationId"], reply["DestinationName"] = cmd.DestinationID, cmd.DestinationName
		if cmd.Type == "AttachmentCOPY" { // clients note the attachment at the document that the reply names
			reply["Id"], reply["@id"], reply["Name"] = cmd.DestinationID, cmd.DestinationID, cmd.DestinationName
		}
		to, missing := tx.Get(c.Ctx, cmd.DestinationID)
		switch {
		case missing != nil:
			return nil, noDocument(cmd.DestinationID, missing)
		case cmd.Type == "AttachmentMOVE" && to.ID() == doc.ID():
			source = m
			err = of.Rename(c.Ctx, cmd.Name, cmd.DestinationName, jay.Returning(m))
		default:
			err = of.Copy(c.Ctx, cmd.Name, cmd.DestinationID, cmd.DestinationName, jay.Returning(m))
			if err == nil && cmd.Type == "AttachmentMOVE" {
				err = of.Delete(c.Ctx, cmd.Name, jay.Returning(source))
			}
		}
	}
	if err != nil {
		return nil, noDocument(id, err)
	}
	return func() (map[string]any, error) {
		changeVector := cmp.Or(m.ChangeVector, unchanged)
		if changeVector == "" { // an earlier command of the batch has written the document, and its reply has the version
			return reply, nil
		}
		reply["ChangeVector"], reply["DocumentChangeVector"] = changeVector, changeVector
		if cmd.Type == "AttachmentMOVE" {
			reply["DestinationDocumentChangeVector"], reply["DocumentChangeVector"] = changeVector, source.ChangeVector
		}
		return reply, nil
	}, nil
}
