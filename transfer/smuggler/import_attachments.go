package smuggler

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"hash"
	"io"

	"github.com/jaydb/jay"
)

// incoming is an attachment that an import has not read to its end yet.
type incoming struct {
	line attachmentLine
	left int64 // bytes that are still missing
	hash hash.Hash
	to   *io.PipeWriter
	done chan error // receives the result of the put
}

// bytesOf says of which attachment the next lines with bytes are.
type bytesOf uint8

const (
	ofStored   bytesOf = iota // the incoming one; if there is none, the lines are refused
	ofRejected                // one that was rejected: its bytes follow it
	ofLeftOut                 // one that has no document any more
)

// addAttachment handles a record of a kind that is a line of an attachment. found reports
// whether it is.
func (im *Importer) addAttachment(ctx context.Context, v Record, kind string) (found bool, err error) {
	switch {
	case kind == attachmentDataKind:
		return true, im.addData(v)
	case im.incoming != nil:
		if im.bytes = ofStored; kind != attachmentKind {
			im.latest, im.refused = document{number: v.Number}, v.Number // it is refused with the attachment
		}
		return true, im.stopAttachment(errAttachment("%d bytes of %q of %q are missing", im.incoming.left, im.incoming.line.Name, im.incoming.line.ID))
	case kind == attachmentKind:
		im.bytes = ofRejected // until the put begins
		if err := im.flush(ctx); err != nil {
			return true, err
		}
		return true, im.beginAttachment(ctx, v)
	}
	im.bytes = ofStored
	return false, nil
}

// beginAttachment starts a put in the background.
func (im *Importer) beginAttachment(ctx context.Context, v Record) error {
	var line attachmentLine
	if err := decodeLine(v.Text, &line); err != nil {
		return errAttachment("%v", err)
	}
	if line.Version != attachmentVersion {
		return errAttachment("a newer jay has written it, as version %d", line.Version)
	}
	if line.Size < 0 {
		return errAttachment("it has a size of %d", line.Size)
	}
	if im.isRefused(line.ID) {
		return errAttachment("%q is not stored, as document %d, %q, is refused", line.Name, im.latest.number, line.ID)
	}
	if found, err := im.db.Exists(ctx, line.ID); err != nil {
		return err
	} else if !found {
		return im.leaveAttachment(line)
	}
	r, w := io.Pipe()
	in := &incoming{line: line, left: line.Size, hash: sha256.New(), to: w, done: make(chan error, 1)}
	im.bytes, im.incoming = ofStored, in
	go func() {
		_, err := im.db.Attachments(line.ID).Put(ctx, line.Name, r, jay.ContentType(line.Type))
		_ = r.CloseWithError(errors.Join(err, io.ErrClosedPipe))
		in.done <- err
	}()
	if in.left == 0 {
		return im.endAttachment()
	}
	return nil
}

// isRefused reports whether a document is the last one that was read, and was refused. Its
// attachments, which follow it in an export, must not go to a document with the same ID that
// the database has already. A record that could not be read is the one that they follow.
func (im *Importer) isRefused(id string) bool {
	return im.latest.number > 0 && im.latest.number == im.refused && (im.latest.id == "" || im.isLatest(id))
}

// addData passes bytes on to the put.
func (im *Importer) addData(v Record) error {
	switch {
	case im.bytes == ofLeftOut:
		return nil
	case im.bytes == ofRejected && im.o.Rejects != nil:
		return im.keepReject(v.Text)
	}
	in := im.incoming
	if in == nil {
		return errAttachment("these bytes are of none")
	}
	var line attachmentData
	if err := json.Unmarshal(v.Text, &line); err != nil {
		return im.stopAttachment(errAttachment("%v", err))
	}
	if int64(len(line.Data)) > in.left || len(line.Data) == 0 {
		return im.stopAttachment(errAttachment("%d bytes of %q of %q, where %d are missing", len(line.Data), in.line.Name, in.line.ID, in.left))
	}
	in.left -= int64(len(line.Data))
	in.hash.Write(line.Data)
	if _, err := in.to.Write(line.Data); err != nil {
		im.incoming, im.bytes = nil, ofRejected
		return im.resultOf(in)
	}
	if in.left == 0 {
		return im.endAttachment()
	}
	return nil
}

// endAttachment completes the put, if the bytes have the right hash.
func (im *Importer) endAttachment() error {
	in := im.incoming
	if got := base64.StdEncoding.EncodeToString(in.hash.Sum(nil)); got != in.line.Hash {
		return im.stopAttachment(errAttachment("the bytes of %q of %q have the hash %s, not %s", in.line.Name, in.line.ID, got, in.line.Hash))
	}
	im.incoming = nil
	_ = in.to.Close() // never fails
	return im.resultOf(in)
}

// resultOf waits for the end of a put. The document may be gone by then.
func (im *Importer) resultOf(in *incoming) error {
	err := <-in.done
	switch {
	case err == nil:
		im.attached()
	case errors.Is(err, jay.ErrNotFound):
		err = im.leaveAttachment(in.line)
	}
	return err
}

// leaveAttachment leaves out an attachment without a document, if the document was stored
// and is gone since: it has expired, or another write has deleted it. Otherwise the
// attachment is refused.
func (im *Importer) leaveAttachment(line attachmentLine) error {
	if !im.isLatest(line.ID) {
		return errAttachment("there is no document %q", line.ID)
	}
	im.bytes = ofLeftOut
	im.leaveOut(LeftAttachments)
	return nil
}

// stopAttachment aborts a put, and returns err.
func (im *Importer) stopAttachment(err error) error {
	in := im.incoming
	im.incoming = nil
	_ = in.to.CloseWithError(err) // never fails
	<-in.done
	return err
}

// endInput returns an error if the input has ended within an attachment.
func (im *Importer) endInput() error {
	if im.incoming == nil {
		return nil
	}
	return im.stopAttachment(errAttachment("the input ends where %d bytes of %q of %q are missing", im.incoming.left, im.incoming.line.Name, im.incoming.line.ID))
}
