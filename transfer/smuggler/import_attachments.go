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

// addAttachment handles a record of a kind that is a line of an attachment. found reports
// whether it is.
func (im *Importer) addAttachment(ctx context.Context, v Record, kind string) (found bool, err error) {
	switch {
	case kind == "attachment-data":
		return true, im.addData(v)
	case im.incoming != nil:
		im.skipping = false
		return true, im.stopAttachment(errAttachment("%d bytes of %q of %q are missing", im.incoming.left, im.incoming.line.Name, im.incoming.line.ID))
	case kind == "attachment":
		im.skipping = true // until the put begins
		if err := im.flush(ctx); err != nil {
			return true, err
		}
		return true, im.beginAttachment(ctx, v)
	}
	im.skipping = false
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
	if found, err := im.db.Exists(ctx, line.ID); err != nil {
		return err
	} else if !found {
		return errAttachment("there is no document %q", line.ID)
	}
	r, w := io.Pipe()
	in := &incoming{line: line, left: line.Size, hash: sha256.New(), to: w, done: make(chan error, 1)}
	im.skipping, im.incoming = false, in
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

// addData passes bytes on to the put.
func (im *Importer) addData(v Record) error {
	if im.skipping && im.o.Rejects != nil {
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
		im.incoming, im.skipping = nil, true
		return <-in.done
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
	if err := <-in.done; err != nil {
		return err
	}
	im.attached()
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
