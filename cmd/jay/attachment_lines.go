package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
)

// In an export, the attachments of a document follow it, each as a line that describes
// it and as many lines with its bytes as it takes:
//
//	{"@metadata":{"@jay":"attachment","@collection":{"needs":"a newer version of jay"}},"version":1,"id":"users/ann","name":"photo.png","type":"image/png","size":5,"hash":"LPJNul+…"}
//	{"@metadata":{"@jay":"attachment-data","@collection":{"needs":"a newer version of jay"}},"data":"aGVsbG8="}
//
// A program that does not know these lines refuses them for their @collection, which is no
// text. Part of the export format. Must not change.
type attachmentLine struct {
	Metadata json.RawMessage `json:"@metadata"`
	Version  int             `json:"version"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Type     string          `json:"type"`
	Size     int64           `json:"size"`
	Hash     string          `json:"hash"`
}

// attachmentData is a line with bytes of the attachment before it.
// Part of the export format. Must not change.
type attachmentData struct {
	Metadata json.RawMessage `json:"@metadata"`
	Data     []byte          `json:"data"`
}

// The marks of these lines. Part of the export format. Must not change.
const (
	attachmentVersion  = 1
	attachmentMark     = `{"@jay":"attachment","@collection":{"needs":"a newer version of jay"}}`
	attachmentDataMark = `{"@jay":"attachment-data","@collection":{"needs":"a newer version of jay"}}`
)

// lineBytes is the number of bytes of an attachment in one line.
const lineBytes = 48 << 10

// writeAttachments writes the attachments of a document.
func writeAttachments(ctx context.Context, db *jay.DB, w io.Writer, doc *jay.Document) error {
	for _, a := range doc.Metadata().Attachments {
		if err := writeAttachment(ctx, db, w, doc.ID(), a); err != nil {
			return err
		}
	}
	return nil
}

func writeAttachment(ctx context.Context, db *jay.DB, w io.Writer, id string, a jay.Attachment) (err error) {
	r, err := db.Attachments(id).Get(ctx, a.Name)
	if err != nil {
		return err
	}
	defer func() { err = andThen(err, r.Close()) }()
	if err := writeLine(w, attachmentLine{json.RawMessage(attachmentMark), attachmentVersion, id, a.Name, a.ContentType, a.Size, a.Hash}); err != nil {
		return err
	}
	buffer := make([]byte, lineBytes)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(r, buffer)
		if n > 0 {
			if err := writeLine(w, attachmentData{json.RawMessage(attachmentDataMark), buffer[:n]}); err != nil {
				return err
			}
		}
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			return nil
		default:
			return err
		}
	}
}

// incoming is an attachment that an import has not read to its end yet.
type incoming struct {
	line attachmentLine
	left int64 // bytes that are still missing
	hash hash.Hash
	to   *io.PipeWriter
	done chan error // receives the result of the put
}

// errAttachment is the error for lines of attachments that do not match.
func errAttachment(format string, args ...any) error {
	return fmt.Errorf("%w: attachment: %s", jay.ErrInvalidDocument, fmt.Sprintf(format, args...))
}

// addAttachment handles a value that is a line of an attachment. found reports whether
// it is.
func (l *loader) addAttachment(ctx context.Context, v value, m gjson.Result) (found bool, err error) {
	kind := ""
	if strings.Contains(m.Raw, `"@jay"`) {
		kind = m.Get(`\@jay`).Str
	}
	switch {
	case kind == "attachment-data":
		return true, l.addData(v)
	case l.incoming != nil:
		l.skipping = false
		return true, l.stopAttachment(errAttachment("%d bytes of %q of %q are missing", l.incoming.left, l.incoming.line.Name, l.incoming.line.ID))
	case kind == "attachment":
		l.skipping = true // until the put begins
		if err := l.flush(ctx); err != nil {
			return true, err
		}
		return true, l.beginAttachment(ctx, v)
	}
	l.skipping = false
	return false, nil
}

// beginAttachment starts a put in the background.
func (l *loader) beginAttachment(ctx context.Context, v value) error {
	var line attachmentLine
	if err := decodeLine(v.text, &line); err != nil {
		return errAttachment("%v", err)
	}
	if line.Version != attachmentVersion {
		return errAttachment("a newer jay has written it, as version %d", line.Version)
	}
	if line.Size < 0 {
		return errAttachment("it has a size of %d", line.Size)
	}
	if found, err := l.db.Exists(ctx, line.ID); err != nil {
		return err
	} else if !found {
		return errAttachment("there is no document %q", line.ID)
	}
	r, w := io.Pipe()
	in := &incoming{line: line, left: line.Size, hash: sha256.New(), to: w, done: make(chan error, 1)}
	l.skipping, l.incoming = false, in
	go func() {
		_, err := l.db.Attachments(line.ID).Put(ctx, line.Name, r, jay.ContentType(line.Type))
		_ = r.CloseWithError(errors.Join(err, io.ErrClosedPipe))
		in.done <- err
	}()
	if in.left == 0 {
		return l.endAttachment()
	}
	return nil
}

// addData passes bytes on to the put.
func (l *loader) addData(v value) error {
	if l.skipping && l.rejects != nil {
		return l.rejects.keep(v.text)
	}
	in := l.incoming
	if in == nil {
		return errAttachment("these bytes are of none")
	}
	var line attachmentData
	if err := json.Unmarshal(v.text, &line); err != nil {
		return l.stopAttachment(errAttachment("%v", err))
	}
	if int64(len(line.Data)) > in.left || len(line.Data) == 0 {
		return l.stopAttachment(errAttachment("%d bytes of %q of %q, where %d are missing", len(line.Data), in.line.Name, in.line.ID, in.left))
	}
	in.left -= int64(len(line.Data))
	in.hash.Write(line.Data)
	if _, err := in.to.Write(line.Data); err != nil {
		l.incoming, l.skipping = nil, true
		return <-in.done
	}
	if in.left == 0 {
		return l.endAttachment()
	}
	return nil
}

// endAttachment completes the put, if the bytes have the right hash.
func (l *loader) endAttachment() error {
	in := l.incoming
	if got := base64.StdEncoding.EncodeToString(in.hash.Sum(nil)); got != in.line.Hash {
		return l.stopAttachment(errAttachment("the bytes of %q of %q have the hash %s, not %s", in.line.Name, in.line.ID, got, in.line.Hash))
	}
	l.incoming = nil
	_ = in.to.Close() // never fails
	return <-in.done
}

// stopAttachment aborts a put, and returns err.
func (l *loader) stopAttachment(err error) error {
	in := l.incoming
	l.incoming = nil
	_ = in.to.CloseWithError(err) // never fails
	<-in.done
	return err
}

// endInput returns an error if the input has ended within an attachment.
func (l *loader) endInput() error {
	if l.incoming == nil {
		return nil
	}
	return l.stopAttachment(errAttachment("the input ends where %d bytes of %q of %q are missing", l.incoming.left, l.incoming.line.Name, l.incoming.line.ID))
}
