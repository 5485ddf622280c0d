package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

const (
	typeNoDocument   = raven + "Documents.DocumentDoesNotExistException"
	typeNoAttachment = raven + "Documents.Attachments.AttachmentDoesNotExistException"
)

// maxParts bounds the parts of a multipart body.
const maxParts = 1025

// maxBulkAttachments bounds the attachments of one request.
const maxBulkAttachments = 1024

func attachmentOptions(contentType string) []jay.WriteOption {
	if contentType == "" {
		return nil
	}
	return []jay.WriteOption{jay.ContentType(contentType)}
}

// attachmentName returns the ID of the document and the name of the attachment that the
// URL names.
func (c *call) attachmentName() (id, name string, err error) {
	if id, err = c.documentID(); err != nil {
		return "", "", err
	}
	if name = c.params.get("name"); name == "" {
		return "", "", badRequest("the URL names no attachment: name is missing")
	}
	return id, name, nil
}

// noDocument converts the error of a missing document, so that clients do not take it for
// an empty result.
func noDocument(id string, err error) error {
	if isMissing(err) {
		return &problem{status: http.StatusBadRequest, kind: typeNoDocument, message: fmt.Sprintf("there is no document %.100q", id)}
	}
	return err
}

// putAttachment stores the body as an attachment, without holding all of it in memory.
func (c *call) putAttachment() error {
	id, name, err := c.attachmentName()
	if err != nil {
		return err
	}
	opts, err := c.versionCondition("an attachment must name a version of its document")
	if err != nil {
		return err
	}
	var m jay.Metadata
	opts = append(opts, attachmentOptions(c.params.get("contentType"))...)
	opts = append(opts, jay.Returning(&m))
	ctx, cancel := c.streamContext()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = http.NewResponseController(c.w).SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	a, err := c.db.Attachments(id).Put(ctx, name, &pacedReader{c: c, r: c.r.Body, start: time.Now()}, opts...)
	if err != nil {
		return closing(noDocument(id, err))
	}
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{})
	return c.json(http.StatusCreated, attachmentResult(id, a, m.ChangeVector))
}

// closing closes the connection, as the body was not read to its end.
func closing(err error) *problem {
	p := problemOf(err)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		p = badRequest("the body ends before its end")
	}
	headers := map[string]string{"Connection": "close"}
	for name, value := range p.headers {
		headers[name] = value
	}
	return &problem{status: p.status, kind: p.kind, message: p.message, fields: p.fields, headers: headers, cause: p.cause}
}

// attachmentResult describes an attachment in RavenDB's shape. The version of an
// attachment is that of its document.
func attachmentResult(id string, a jay.Attachment, changeVector string) map[string]any {
	return map[string]any{"DocumentId": id, "Name": a.Name, "Hash": a.Hash, "ContentType": a.ContentType, "Size": a.Size, "ChangeVector": changeVector}
}

// attachmentHeaders sets the headers that describe an attachment.
func (c *call) attachmentHeaders(a jay.Attachment, changeVector string) {
	kind := a.ContentType
	if _, _, err := mime.ParseMediaType(kind); err != nil {
		kind = "application/octet-stream"
	}
	c.reply.Set("Content-Type", kind)
	c.reply.Set("ETag", `"`+changeVector+`"`)
	c.reply.Set("Attachment-Hash", a.Hash)
	c.reply.Set("Attachment-Size", strconv.FormatInt(a.Size, 10))
	// As an attachment, so that a browser does not show stored content as a page of this
	// site.
	c.reply.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": a.Name}))
	c.reply.Set("X-Content-Type-Options", "nosniff")
	c.reply.Set("Content-Security-Policy", "sandbox")
}

// getAttachment sends an attachment.
func (c *call) getAttachment() error {
	id, name, err := c.attachmentName()
	if err != nil {
		return err
	}
	if len(c.body) > 0 {
		var request struct{ Type, ChangeVector string }
		if err := c.decode(&request); err != nil {
			return err
		}
		if request.Type != "" && request.Type != "Document" {
			return notSupported("%s %s: attachments of %.100q: revisions do not keep the contents of attachments", c.route.method, c.route.path, request.Type)
		}
	}
	doc, content, err := c.openAttachment(id, name)
	if err != nil || doc == nil {
		return err
	}
	defer content.Close()
	c.attachmentHeaders(content.Info(), doc.ChangeVector())
	if c.matches(doc.ChangeVector()) {
		return c.empty(http.StatusNotModified)
	}
	c.reply.Set("Content-Length", strconv.FormatInt(content.Info().Size, 10))
	c.started, c.status = true, http.StatusOK
	c.w.WriteHeader(http.StatusOK)
	ctx, cancel := c.streamContext()
	defer cancel()
	_, err = io.Copy(&pacedWriter{c: c, since: time.Now()}, contextReader{ctx, content})
	return err
}

// openAttachment opens an attachment, or replies with 404.
func (c *call) openAttachment(id, name string) (*jay.Document, *jay.AttachmentReader, error) {
	doc, err := c.db.Get(c.ctx, id)
	if isMissing(err) {
		return nil, nil, c.empty(http.StatusNotFound)
	}
	if err != nil {
		return nil, nil, err
	}
	content, err := c.db.Attachments(id).Get(c.ctx, name)
	if isMissing(err) || errors.Is(err, jay.ErrNoAttachment) {
		return nil, nil, c.empty(http.StatusNotFound)
	}
	return doc, content, err
}

// contextReader is a reader that fails when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (r contextReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}

// headAttachment replies with the description of an attachment.
func (c *call) headAttachment() error {
	id, name, err := c.attachmentName()
	if err != nil {
		return err
	}
	doc, content, err := c.openAttachment(id, name)
	if err != nil || doc == nil {
		return err
	}
	defer content.Close()
	c.attachmentHeaders(content.Info(), doc.ChangeVector())
	if c.matches(doc.ChangeVector()) {
		return c.empty(http.StatusNotModified)
	}
	return c.empty(http.StatusOK)
}

// deleteAttachment removes an attachment, if there is one.
func (c *call) deleteAttachment() error {
	id, name, err := c.attachmentName()
	if err != nil {
		return err
	}
	opts, err := c.versionCondition("a deletion must name a version")
	if err != nil {
		return err
	}
	err = c.db.Attachments(id).Delete(c.ctx, name, opts...)
	if err != nil && !isMissing(err) {
		return err
	}
	return c.empty(http.StatusNoContent)
}

// bulkAttachments sends several attachments: first their descriptions as one line of JSON,
// in which Size has the length of each, and then their contents, one after the other.
// Missing ones are left out.
func (c *call) bulkAttachments() error {
	var request struct {
		Attachments []struct{ DocumentID, Name string } `json:"Attachments"`
	}
	if err := c.decode(&request); err != nil {
		return err
	}
	if n := len(request.Attachments); n == 0 || n > maxBulkAttachments {
		return badRequest("Attachments names %d attachments: 1 to %d", n, maxBulkAttachments)
	}
	if err := c.take(int64(len(request.Attachments)) * 4096); err != nil {
		return err
	}
	var contents []*jay.AttachmentReader
	defer func() {
		for _, content := range contents {
			content.Close()
		}
	}()
	list := []map[string]any{}
	for _, one := range request.Attachments {
		doc, content, err := c.openAttachment(one.DocumentID, one.Name)
		if err != nil {
			return err
		}
		if doc == nil {
			continue
		}
		contents = append(contents, content)
		list = append(list, attachmentResult(doc.ID(), content.Info(), doc.ChangeVector()))
	}
	ctx, cancel := c.streamContext()
	defer cancel()
	out := c.startStream("application/octet-stream")
	if _, err := out.Write(append(mustJSON(map[string]any{"AttachmentsMetadata": list}), '\n')); err != nil {
		return err
	}
	for _, content := range contents {
		if _, err := io.Copy(out, contextReader{ctx, content}); err != nil {
			return err
		}
	}
	return out.close()
}

// splitParts splits a multipart body. Its first part, JSON, becomes the body, and the
// others become the streams of its commands.
func (c *call) splitParts() error {
	kind, parameters, err := mime.ParseMediaType(c.header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		return nil
	}
	boundary := parameters["boundary"]
	if boundary == "" {
		return badRequest("the multipart body has no boundary")
	}
	if err := c.take(int64(len(c.body))); err != nil { // the parts are copies
		return err
	}
	reader := multipart.NewReader(bytes.NewReader(c.body), boundary)
	var parts [][]byte
	for {
		part, err := reader.NextRawPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return badRequest("the multipart body is damaged")
		}
		if len(parts) == maxParts {
			return tooLarge("a multipart body has at most %d parts", maxParts)
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return badRequest("the multipart body is damaged")
		}
		parts = append(parts, content)
	}
	if len(parts) == 0 {
		return badRequest("the multipart body has no part")
	}
	c.body, c.parts = parts[0], parts[1:]
	return nil
}
