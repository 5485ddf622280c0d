package jay

import (
	"io"

	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/format"
)

// AttachmentReader reads an attachment as it was when it was opened, whatever happens
// to it meanwhile: it shows all of the old bytes or ends with an error, and never
// shows others. It holds up to 256 KiB in memory, and no snapshot: one that is read slowly
// keeps nothing but its own content from being removed. One of Tx.Attachments
// ends with the transaction.
//
// A reader that goes from the beginning to the end compares the content with its hash:
// instead of the last bytes it returns ErrCorrupt if the content is damaged. After
// DB.Close it returns ErrClosed.
//
// It is for one goroutine at a time, except for ReadAt. It must be closed.
type AttachmentReader struct {
	info   Attachment
	stream *attachments.Stream
}

var (
	_ io.ReadSeekCloser = (*AttachmentReader)(nil)
	_ io.ReaderAt       = (*AttachmentReader)(nil)
	_ io.WriterTo       = (*AttachmentReader)(nil)
)

func newAttachmentReader(entry format.Attachment, stream *attachments.Stream) *AttachmentReader {
	return &AttachmentReader{entry.Describe(), stream}
}

// Info describes the attachment.
func (r *AttachmentReader) Info() Attachment { return r.info }

// Read implements io.Reader.
func (r *AttachmentReader) Read(p []byte) (int, error) { return r.stream.Read(p) }

// WriteTo implements io.WriterTo.
func (r *AttachmentReader) WriteTo(w io.Writer) (int64, error) { return r.stream.WriteTo(w) }

// Seek implements io.Seeker, for reads of a range. It is cheap.
func (r *AttachmentReader) Seek(offset int64, whence int) (int64, error) {
	return r.stream.Seek(offset, whence)
}

// ReadAt implements io.ReaderAt. It does not change the offset of Read, does not look
// at the hash, and may be called by several goroutines until Close.
func (r *AttachmentReader) ReadAt(p []byte, offset int64) (int, error) {
	return r.stream.ReadAt(p, offset)
}

// Close ends the reader. Later calls return an error. It is idempotent.
func (r *AttachmentReader) Close() error {
	r.stream.Close()
	return nil
}
