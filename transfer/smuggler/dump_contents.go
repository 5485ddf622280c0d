package smuggler

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/jaydb/jay/transfer"
)

// maxDumpContents is the number of contents that an import of a dump remembers, for
// later documents with the same content, and maxDumpPlaces the number of places that it
// remembers of each. maxDumpPending is the number of contents that may wait for one
// document, in a temporary file, maxDumpContent the size of one, and maxDumpHash that of
// its hash.
const (
	maxDumpContents = 1 << 20
	maxDumpPlaces   = 4
	maxDumpPending  = 10_000
	maxDumpContent  = 16 << 30
	maxDumpHash     = 256

	maxDumpAttachments = 10_000 // of a document, as jay.Options.MaxAttachments allows
)

// dumpContents are the contents of a dump: those that wait for their documents, in a temporary file, and where the
// database has those that came earlier.
type dumpContents struct {
	dir  string            // of the file
	most int64             // bytes in it; 0 for any number
	keep func(int64) error // asks for memory; nil if that is not bounded

	spool   *os.File
	size    int64 // of spool
	kept    int64 // end of the contents in it that earlier documents have left
	pending map[string]content
	known   map[string]stored // by their hashes in the dump
}

func newDumpContents(o *ImportOptions) dumpContents {
	return dumpContents{dir: o.SpoolDir, most: o.MaxSpoolBytes, keep: o.Keep, pending: make(map[string]content), known: make(map[string]stored)}
}

// content is the position of a content in the spool.
type content struct {
	offset, size int64
	sum          string // its SHA-256, in base64
	stored       bool   // an attachment of the database has it
}

// stored is a content that attachments of the database have.
type stored struct {
	sum    string  // its SHA-256, in base64
	places []place // which have had it; another write may have changed them since
}

// place identifies a stored attachment.
type place struct{ id, name string }

// hold copies a content to the spool.
func (d *dumpContents) hold(ctx context.Context, a *transfer.DumpAttachment, text []byte) error {
	if c, found := d.pending[a.Hash]; found && c.offset >= d.kept { // one that was kept may have to make room
		return nil // the next read skips the content
	}
	if len(a.Hash) > maxDumpHash {
		return errAttachment("the hash of a content has at most %d bytes, this one has %d", maxDumpHash, len(a.Hash))
	}
	if len(d.pending) == maxDumpPending || d.most > 0 && a.Size > d.most-d.size {
		if err := d.dropKept(); err != nil {
			return err
		}
	}
	if d.most > 0 && a.Size > d.most-d.size {
		return errAttachment("the contents in front of a document have at most %d bytes together", d.most)
	}
	if len(d.pending) == maxDumpPending || a.Size > maxDumpContent {
		return errAttachment("a dump has at most %d contents in front of a document, of at most %d bytes", maxDumpPending, int64(maxDumpContent))
	}
	var tag struct{ Tag string }
	_ = json.Unmarshal(text, &tag) // the tag may have any form
	if d.spool == nil {
		f, err := os.CreateTemp(d.dir, "jay-import-*")
		if err != nil {
			return d.errSpool(err)
		}
		d.spool = f
		_ = os.Remove(f.Name()) // where the system allows that, so that no file is left even after a kill
	}
	if _, err := d.spool.Seek(d.size, io.SeekStart); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(d.spool, sum), contextReader{ctx, a})
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errAttachment("the dump ends where %d bytes of a content of %d are missing", a.Size-n, a.Size)
	}
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) && failed.Path == d.spool.Name() {
		return d.errSpool(err)
	}
	if err != nil {
		return err
	}
	got := base64.StdEncoding.EncodeToString(sum.Sum(nil))
	if strings.HasPrefix(tag.Tag, dumpTag) && got != a.Hash {
		return errAttachment("a content has the hash %s, not %s", got, a.Hash)
	}
	d.pending[a.Hash] = content{offset: d.size, size: n, sum: got}
	d.size += n
	return nil
}

// errSpool says which directory had no room for a content, and how another one is chosen.
func (d *dumpContents) errSpool(err error) error {
	if dir := d.dir; dir != "" {
		return fmt.Errorf("a content of the dump waits for its document in %s: %w", dir, err)
	}
	return fmt.Errorf("a content of the dump waits for its document in %s, as $TMPDIR has it: %w; set TMPDIR to a directory with room for all contents", os.TempDir(), err)
}

// remember records that an attachment has the content to which the dump gives a hash, with
// the SHA-256 sum.
func (d *dumpContents) remember(hash, sum string, at place) error {
	if c, found := d.pending[hash]; found && c.sum == sum {
		c.stored = true
		d.pending[hash] = c
	}
	known, found := d.known[hash]
	if !found && len(d.known) == maxDumpContents || len(hash) > maxDumpHash || sum == "" {
		return nil
	}
	if known.sum != sum { // the dump has another content under this hash since
		known = stored{sum: sum}
	}
	if len(known.places) == maxDumpPlaces || slices.Contains(known.places, at) {
		return nil
	}
	if d.keep != nil {
		size := len(at.id) + len(at.name) + 64
		if !found {
			size += len(hash) + len(sum) + 128
		}
		if err := d.keep(int64(size)); err != nil {
			return err
		}
	}
	known.places = append(known.places, at)
	d.known[hash] = known
	return nil
}

// clear drops the contents in the spool that are stored. The others may be those of later
// documents, too: their own document was refused, or is gone.
func (d *dumpContents) clear() error {
	end := int64(0)
	for hash, c := range d.pending {
		if c.stored {
			delete(d.pending, hash)
			continue
		}
		end = max(end, c.offset+c.size)
	}
	d.kept = end
	return d.truncate(end)
}

// dropKept drops what earlier documents have left in the spool, and moves the other contents
// to its beginning.
func (d *dumpContents) dropKept() error {
	if d.kept == 0 {
		return nil
	}
	for hash, c := range d.pending {
		if c.offset < d.kept {
			delete(d.pending, hash)
			continue
		}
		c.offset -= d.kept
		d.pending[hash] = c
	}
	if _, err := io.Copy(io.NewOffsetWriter(d.spool, 0), io.NewSectionReader(d.spool, d.kept, d.size-d.kept)); err != nil {
		return d.errSpool(err)
	}
	end := d.size - d.kept
	d.kept = 0
	return d.truncate(end)
}

// truncate ends the spool there.
func (d *dumpContents) truncate(end int64) error {
	if d.size == end {
		return nil
	}
	d.size = end
	return d.spool.Truncate(end)
}

func (d *dumpContents) close() error {
	if d.spool == nil {
		return nil
	}
	err := os.Remove(d.spool.Name())
	if closed := d.spool.Close(); errors.Is(err, os.ErrNotExist) || closed != nil {
		return closed
	}
	if err != nil {
		err = os.Remove(d.spool.Name()) // a file that is open cannot be removed on Windows
	}
	return err
}
