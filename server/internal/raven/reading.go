package raven

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// documentsRequest has the parameters of a GET or POST of documents.
type documentsRequest struct {
	ids          []string // empty for null
	includes     []include
	exchanges    []include // paths to the keys of compare-exchange values
	metadataOnly bool

	prefix   string
	prefixed bool
	scan     jay.Scan

	start, size int
}

// reading is the result of reading documents.
type reading struct {
	docs     []*jay.Document // nil for a missing one
	included []*jay.Document
	written  map[string]bool // the IDs of docs and included, from the first included one on
	bytes    int64
	paid     int64 // of bytes

	guards    map[*jay.Document]uint64             // the indexes of the guards, for a cluster-wide session; else nil
	exchanges map[string]*jay.CompareExchangeValue // included

	// In a cluster, for a reading with guards or values: see readWith.
	agreed map[string]*jay.CompareExchangeValue // that were read before the documents; nil for a missing one
	unread []string                             // keys that are not among them
	last   bool                                 // the documents are not read again
}

// littleReading is how much a reading may have without paying for it: no more than the request
// takes anyway. Most requests get one short document, and leave the books of memory alone.
const littleReading = 8 << 10

// add adds a document, within the bounds of a reply.
func (f *reading) add(c *serve.Call, list *[]*jay.Document, doc *jay.Document) error {
	if doc != nil {
		size := int64(len(doc.Body())) + 512
		if f.bytes += size; f.bytes > c.Server.Options.MaxReplyBytes {
			return serve.TooLarge("the reply has more than %d bytes, which is the most: ask for a page, or for a stream", c.Server.Options.MaxReplyBytes)
		}
		// Each once as read and once in the reply; as JSON it has the room of the largest.
		if f.bytes > littleReading {
			if err := c.Take(2 * (f.bytes - f.paid)); err != nil {
				return err
			}
			f.paid = f.bytes
		}
	}
	*list = append(*list, doc)
	return nil
}

// etag returns the change vector of a single document, or a hash over several.
func (f *reading) etag() string {
	if len(f.docs) == 1 && f.docs[0] != nil && len(f.included)+len(f.guards)+len(f.exchanges) == 0 {
		return f.docs[0].ChangeVector()
	}
	h := sha256.New()
	var line []byte
	for _, list := range [][]*jay.Document{f.docs, f.included} {
		for _, doc := range list {
			if doc == nil {
				h.Write([]byte("-"))
				continue
			}
			line = append(append(append(line[:0], doc.ID()...), ' '), doc.ChangeVector()...)
			h.Write(append(strconv.AppendUint(append(line, ' '), f.guards[doc], 10), '\n'))
		}
		h.Write([]byte("\n"))
	}
	for _, key := range slices.Sorted(maps.Keys(f.exchanges)) {
		fmt.Fprintf(h, "%s %d\n", key, f.exchanges[key].Index)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// readIncluded reads the documents whose IDs are at the paths in those that were read. A
// document that was requested itself is not included.
func readIncluded(c *serve.Call, f *reading, tx *jay.Tx, includes []include) error {
	if len(includes) == 0 {
		return nil
	}
	seen := make(map[string]bool)
	for _, doc := range f.docs {
		if doc != nil {
			seen[doc.ID()] = true
		}
	}
	refused := error(nil)
	for _, doc := range f.docs {
		if doc == nil {
			continue
		}
		for _, path := range includes {
			if err := c.Ctx.Err(); err != nil {
				return err
			}
			path.each(doc.Body(), func(id string) bool {
				if seen[id] || id == "" {
					return true
				}
				if seen[id] = true; len(seen) > maxIncluded {
					refused = serve.TooLarge("the request includes more than %d documents", maxIncluded)
					return false
				}
				refused = readInclude(c, f, tx, id)
				return refused == nil
			})
			if refused != nil {
				return refused
			}
		}
	}
	return nil
}

// readInclude reads one document to include. A missing one is left out: clients notice
// which requested documents did not arrive. So is one that the reply has already, under
// another spelling of its ID.
func readInclude(c *serve.Call, f *reading, tx *jay.Tx, id string) error {
	doc, err := tx.Get(c.Ctx, id)
	if serve.IsMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if f.written == nil {
		f.written = make(map[string]bool)
		for _, doc := range f.docs {
			if doc != nil {
				f.written[doc.ID()] = true
			}
		}
	}
	if f.written[doc.ID()] {
		return nil
	}
	f.written[doc.ID()] = true
	return f.add(c, &f.included, doc)
}
