package raven

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
	"github.com/jaydb/jay/server/internal/serve"
	"github.com/jaydb/jay/server/internal/verbs"
)

// attachmentRoutes are the endpoints of attachments.
var attachmentRoutes = []*serve.Route{
	{Method: "GET", Path: "{D}/attachments", Run: getAttachment, Stream: true, Heeds: serve.NoneMatch, Takes: "id name"},
	{Method: "POST", Path: "{D}/attachments", Run: getAttachment, Body: true, Stream: true, Needs: serve.ReadRight, Heeds: serve.NoneMatch, Takes: "id name"},
	{Method: "HEAD", Path: "{D}/attachments", Run: headAttachment, Heeds: serve.NoneMatch, Takes: "id name"},
	{Method: "PUT", Path: "{D}/attachments", Run: putAttachment, Stream: true, Upload: true, Heeds: serve.Match | serve.NoneMatch, Takes: "contentType id name"},
	{Method: "DELETE", Path: "{D}/attachments", Run: deleteAttachment, Heeds: serve.Match, Takes: "id name"},
	{Method: "POST", Path: "{D}/attachments/bulk", Run: bulkAttachments, Body: true, Stream: true, Needs: serve.ReadRight},
}

const typeNoDocument = serve.ExceptionPrefix + "Documents.DocumentDoesNotExistException"

// maxParts bounds the parts of a multipart body.
const maxParts = 1025

// attachmentBytes is what it takes to send or to store an attachment: a chunk of 256 KiB, and
// its copy in the database.
const attachmentBytes = 512 << 10

// heldBytes returns what the reader of an attachment holds from its opening on: all of a
// content of one chunk.
func heldBytes(content *jay.AttachmentReader) int64 {
	return min(content.Info().Size, attachmentBytes/2)
}

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
func attachmentName(c *serve.Call) (id, name string, err error) {
	if id, err = verbs.DocumentID(c); err != nil {
		return "", "", err
	}
	if name = c.Params.Get("name"); name == "" {
		return "", "", serve.BadRequest("the URL names no attachment: name is missing")
	}
	return id, name, nil
}

// noDocument converts the error of a missing document, so that clients do not take it for
// an empty result.
func noDocument(id string, err error) error {
	if serve.IsMissing(err) {
		return &serve.Problem{Status: http.StatusBadRequest, Kind: typeNoDocument, Message: fmt.Sprintf("there is no document %.100q", id)}
	}
	return err
}

// putAttachment stores the body as an attachment, without holding all of it in memory.
func putAttachment(c *serve.Call) error {
	id, name, err := attachmentName(c)
	if err != nil {
		return err
	}
	if err := serve.CheckEncoding(c.Header); err != nil {
		return serve.Closing(err)
	}
	opts, err := attachmentCondition(c, id, name)
	if err != nil {
		return err
	}
	var m jay.Metadata
	opts = append(opts, attachmentOptions(c.Params.Get("contentType"))...)
	opts = append(opts, jay.Returning(&m))
	ctx, cancel := c.StreamContext()
	defer cancel()
	stop := serve.ClosesUnless(context.AfterFunc(ctx, func() { _ = http.NewResponseController(c.Writer).SetReadDeadline(time.Unix(1, 0)) }), c.Request, c.Reply)
	defer stop()
	content, err := serve.Unpacked(serve.NewPacedReader(c, c.Request.Body), c.Header.Get("Content-Encoding"), c.Held())
	if err != nil {
		return serve.Closing(err)
	}
	a, err := c.DB.Attachments(id).Put(ctx, name, content, opts...)
	stop()
	if err != nil {
		return serve.Closing(noDocument(id, err))
	}
	_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Time{})
	return c.JSON(http.StatusCreated, attachmentResult(id, a, m.ChangeVector))
}

// attachmentCondition reads If-Match, which names a version of the document, or with "" asks
// for no attachment of the name, and If-None-Match: *, which asks for that, too.
func attachmentCondition(c *serve.Call, id, name string) ([]jay.WriteOption, error) {
	absent, err := ifNoneMatch(c)
	if err != nil {
		return nil, err
	}
	version, found, err := ifMatch(c)
	switch {
	case err != nil:
		return nil, err
	case found && version == nil:
		return nil, serve.BadRequest("If-Match of an attachment must name a version of its document")
	case found && *version != "":
		return []jay.WriteOption{jay.IfMatch(*version)}, nil
	case !found && !absent:
		return nil, nil
	}
	// Any other write of the document ends this one, too, so that no attachment appears
	// between the check and the commit.
	doc, err := c.DB.Get(c.Ctx, id)
	if err != nil {
		return nil, noDocument(id, err)
	}
	err = needNoAttachment(c.Ctx, c.DB.Attachments(id), id, name)
	if p, is := err.(*serve.Problem); is && absent {
		p.Status = http.StatusPreconditionFailed
	}
	return []jay.WriteOption{jay.IfMatch(doc.ChangeVector())}, err
}

// attachmentResult describes an attachment in RavenDB's shape. The version of an
// attachment is that of its document.
func attachmentResult(id string, a jay.Attachment, changeVector string) map[string]any {
	return map[string]any{"DocumentId": id, "Name": a.Name, "Hash": a.Hash, "ContentType": a.ContentType, "Size": a.Size, "ChangeVector": changeVector}
}

// attachmentHeaders sets the headers that describe an attachment.
func attachmentHeaders(c *serve.Call, a jay.Attachment, changeVector string) {
	kind := a.ContentType
	if _, _, err := mime.ParseMediaType(kind); err != nil {
		kind = "application/octet-stream"
	}
	c.Reply.Set("Content-Type", kind)
	c.Reply.Set("ETag", `"`+changeVector+`"`)
	c.Reply.Set("Attachment-Hash", a.Hash)
	c.Reply.Set("Attachment-Size", strconv.FormatInt(a.Size, 10))
	// As an attachment, so that a browser does not show stored content as a page of this
	// site.
	c.Reply.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": a.Name}))
	c.Reply.Set("X-Content-Type-Options", "nosniff")
	c.Reply.Set("Content-Security-Policy", "sandbox")
}

// getAttachment sends an attachment.
func getAttachment(c *serve.Call) error {
	id, name, err := attachmentName(c)
	if err != nil {
		return err
	}
	if len(c.Body) > 0 {
		var request struct{ Type, ChangeVector string }
		if err := c.Decode(&request); err != nil {
			return err
		}
		if request.Type != "" && request.Type != "Document" {
			return serve.NotSupported("%s %s: attachments of %.100q: revisions do not keep the contents of attachments", c.Route.Method, c.Route.Path, request.Type)
		}
		if request.ChangeVector != "" {
			return serve.BadRequest("a ChangeVector is for the attachments of revisions")
		}
	}
	if err := c.Take(attachmentBytes); err != nil {
		return err
	}
	doc, content, err := openAttachment(c, id, name)
	if err != nil || doc == nil {
		return err
	}
	defer content.Close()
	attachmentHeaders(c, content.Info(), doc.ChangeVector())
	if matches(c, doc.ChangeVector()) {
		return c.Empty(http.StatusNotModified)
	}
	c.Reply.Set("Content-Length", strconv.FormatInt(content.Info().Size, 10))
	c.Started, c.Status = true, http.StatusOK
	c.Writer.WriteHeader(http.StatusOK)
	ctx, cancel := c.StreamContext()
	defer cancel()
	_, err = io.Copy(serve.NewPacedWriter(c), contextReader{ctx, content})
	return err
}

// openAttachment opens an attachment, or replies with 404.
func openAttachment(c *serve.Call, id, name string) (*jay.Document, *jay.AttachmentReader, error) {
	doc, err := c.DB.Get(c.Ctx, id)
	if serve.IsMissing(err) {
		return nil, nil, c.Empty(http.StatusNotFound)
	}
	if err != nil {
		return nil, nil, err
	}
	content, err := c.DB.Attachments(id).Get(c.Ctx, name)
	if serve.IsMissing(err) || errors.Is(err, jay.ErrNoAttachment) {
		return nil, nil, c.Empty(http.StatusNotFound)
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
func headAttachment(c *serve.Call) error {
	id, name, err := attachmentName(c)
	if err != nil {
		return err
	}
	doc, content, err := openAttachment(c, id, name)
	if err != nil || doc == nil {
		return err
	}
	defer content.Close()
	attachmentHeaders(c, content.Info(), doc.ChangeVector())
	if matches(c, doc.ChangeVector()) {
		return c.Empty(http.StatusNotModified)
	}
	c.Reply.Set("Content-Length", strconv.FormatInt(content.Info().Size, 10))
	return c.Empty(http.StatusOK)
}

// deleteAttachment removes an attachment, if there is one. The reply has the version of the
// document after it as ETag, which RavenDB's has not.
func deleteAttachment(c *serve.Call) error {
	id, name, err := attachmentName(c)
	if err != nil {
		return err
	}
	opts, err := versionCondition(c, "a deletion must name a version")
	if err != nil {
		return err
	}
	if version, _, _ := ifMatch(c); version != nil && *version == "" {
		if err := needNoAttachment(c.Ctx, c.DB.Attachments(id), id, name); err != nil {
			return err
		}
		return c.Empty(http.StatusNoContent)
	}
	var m jay.Metadata
	err = c.DB.Attachments(id).Delete(c.Ctx, name, append(opts, jay.Returning(&m))...)
	if err != nil && !serve.IsMissing(err) {
		return err
	}
	if m.ChangeVector != "" {
		c.Reply.Set("ETag", `"`+m.ChangeVector+`"`)
	}
	return c.Empty(http.StatusNoContent)
}

// bulkAttachments sends several attachments: first their descriptions as JSON, in which Size
// has the length of each, and then their contents, one after the other. Nothing is between
// them: clients take what follows the last brace as the first content. Missing ones are left out.
func bulkAttachments(c *serve.Call) error {
	var request struct {
		Attachments []struct{ DocumentID, Name string } `json:"Attachments" most:"1024 400"` // maxBulkAttachments
		Of          *string                             `json:"AttachmentType"`
	}
	if err := c.Decode(&request); err != nil {
		return err
	}
	if request.Of != nil && *request.Of != "Document" {
		return serve.NotSupported("%s %s: attachments of %.100q: revisions do not keep the contents of attachments", c.Route.Method, c.Route.Path, *request.Of)
	}
	if n := len(request.Attachments); n == 0 || n > maxBulkAttachments {
		return serve.BadRequest("Attachments names %d attachments: 1 to %d", n, maxBulkAttachments)
	}
	// Their descriptions, and the chunk that the reader of one holds while it is sent.
	if err := c.Take(int64(len(request.Attachments))*4096 + attachmentBytes); err != nil {
		return err
	}
	var contents []*jay.AttachmentReader
	defer func() {
		for _, content := range contents {
			if content != nil {
				content.Close()
			}
		}
	}()
	list := []map[string]any{}
	for _, one := range request.Attachments {
		doc, content, err := openAttachment(c, one.DocumentID, one.Name)
		if err != nil {
			return err
		}
		if doc == nil {
			continue
		}
		contents = append(contents, content)
		if err := c.Take(heldBytes(content)); err != nil {
			return err
		}
		list = append(list, attachmentResult(doc.ID(), content.Info(), doc.ChangeVector()))
	}
	ctx, cancel := c.StreamContext()
	defer cancel()
	out := c.StartStream("application/octet-stream")
	if _, err := out.Write(serve.MustJSON(map[string]any{"AttachmentsMetadata": list})); err != nil {
		return err
	}
	for i, content := range contents {
		_, err := io.Copy(out, contextReader{ctx, content})
		content.Close()
		contents[i] = nil // it holds its last chunk
		c.Held().Give(heldBytes(content))
		if err != nil {
			return err
		}
	}
	return out.Close()
}

// splitParts splits a multipart body. Its first part, JSON, becomes the body, and the
// others become the streams of its commands.
func splitParts(c *serve.Call) error {
	kind, parameters, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		return nil
	}
	boundary := parameters["boundary"]
	if boundary == "" {
		return serve.BadRequest("the multipart body has no boundary")
	}
	if err := c.Take(int64(len(c.Body))); err != nil { // the parts are copies
		return err
	}
	reader := multipart.NewReader(bytes.NewReader(c.Body), boundary)
	var parts [][]byte
	for {
		part, err := reader.NextRawPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return serve.BadRequest("the multipart body is damaged")
		}
		if len(parts) == maxParts {
			return serve.TooLarge("a multipart body has at most %d parts", maxParts)
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return serve.BadRequest("the multipart body is damaged")
		}
		if err := serve.CheckEncoding(part.Header); err != nil {
			return err
		}
		if content, err = serve.UnpackedPart(content, part.Header.Get("Content-Encoding"), c.Held(), c.Route.BodyLimit(&c.Server.Options)); err != nil {
			return err
		}
		parts = append(parts, content)
	}
	if len(parts) == 0 {
		return serve.BadRequest("the multipart body has no part")
	}
	c.Body, c.Parts = parts[0], parts[1:]
	return nil
}

// needNoAttachment refuses a change that expects no attachment of the name, if there is one.
func needNoAttachment(ctx context.Context, of jay.Attachments, id, name string) error {
	_, err := of.Stat(ctx, name)
	switch {
	case err == nil:
		return attachmentExists(id, name)
	case serve.IsMissing(err), errors.Is(err, jay.ErrNoAttachment):
		return nil
	}
	return err
}

// attachmentExists is the error for a change that expects no attachment of the name.
func attachmentExists(id, name string) *serve.Problem {
	return &serve.Problem{Status: http.StatusConflict, Kind: serve.TypeConcurrency, Message: fmt.Sprintf("the document %.100q has an attachment %.100q already, and the request expects none", id, name), Fields: map[string]any{"Id": id}}
}
