package salvage

import (
	"bytes"
	"fmt"
	"math"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
)

// version is what a document is copied as.
type version struct {
	header   metadata.Header
	body     []byte
	revision uint64 // the revision that it was and shall not stay, or 0
	foreign  bool   // it was imported: its etag is that of another database
}

// survivor is the newest revision of a document in the copy.
type survivor struct {
	number   uint64 // 0 for none
	deletion bool
	foreign  string // the change vector of an imported one
	header   metadata.Header
	body     []byte
}

// newestVersion returns the newest version that is left of a document with this record:
// where the table with the newest records was lost, an older record is seen again, and a
// newer version may be among the revisions. It returns nil if that is a deletion.
func (c *copying) newestVersion(folded string, h *metadata.Header, body []byte) (*version, error) {
	newest, err := c.newestRevision(folded)
	if err != nil {
		return nil, err
	}
	if newest.number == 0 || newest.header.Etag < h.Etag {
		v := &version{header: *h, body: body}
		if h.Revision != 0 {
			v.header.Revision = newest.number + 1
		}
		return v, nil
	}

	etag, older := newest.header.Etag, ""
	if etag != h.Etag {
		older = fmt.Sprintf("; its record is an older version, of etag %d, and is left out", h.Etag)
	}
	if newest.deletion {
		c.list(folded, etag, "it was deleted with etag %d%s", etag, older)
		return nil, nil
	}
	v := &version{header: newest.header, body: newest.body, revision: newest.number}
	v.header.Revision = newest.number
	if newest.foreign != "" {
		// It is found by the change vector that it had, which the document cannot have.
		c.list(folded, math.MaxUint64, "its newest versions are lost; the imported version %s is kept%s", newest.foreign, older)
		v.revision, v.foreign = 0, true
		v.header.Revision++
		return v, nil
	}
	c.list(folded, math.MaxUint64, "its newest versions are lost; the version of etag %d is kept%s", etag, older)
	return v, nil
}

// list lists what is lost of a document, of which changes up to an etag say no more.
func (c *copying) list(folded string, etag uint64, why string, args ...any) {
	c.lost("document", folded, why, args...)
	if len(c.listed) < maxPrefixes { // otherwise its changes are listed as well
		c.listed[folded] = etag
	}
}

// newestRevision returns the newest revision of a document that was copied.
func (c *copying) newestRevision(folded string) (s survivor, err error) {
	if c.result.Revisions == 0 {
		return s, nil
	}
	if err := c.flush(); err != nil {
		return s, err
	}
	latest := c.to.Latest()
	defer func() { err = errs.First(err, latest.Close()) }()
	it, err := latest.Iterate(format.RevisionKey(nil, folded, 1), format.PrefixEnd(format.HistoryKey(nil, folded)))
	if err != nil {
		return s, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	if !it.Last() {
		return s, it.Error()
	}
	if _, s.number, err = format.SplitRevisionKey(it.Key()); err != nil {
		return s, err
	}
	head, record, err := format.SplitRevision(bytes.Clone(it.Value()))
	if err != nil {
		return s, err
	}
	s.deletion, s.foreign = head.Deletion, string(head.Foreign)
	s.body, err = s.header.Decode(record)
	return s, err
}

// takeRevision takes the newest revision of a document, which becomes the document, out of
// the copy.
func (c *copying) takeRevision(folded string, number uint64) error {
	c.result.Revisions--
	// If no other is left, this says that the document's number is right: see format.History.
	if err := c.set(format.HistoryKey(nil, folded), format.History{First: number, Last: number - 1}.Append(nil)); err != nil {
		return err
	}
	return c.remove(format.RevisionKey(nil, folded, number))
}
