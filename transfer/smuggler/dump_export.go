package smuggler

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
)

// maxDumpHashes bounds the contents that an export remembers, to write each only once.
// RavenDB accepts repeated contents.
const maxDumpHashes = 1 << 16

// DumpMemory is what an export of a dump holds beside a document: the hashes that it
// remembers.
const DumpMemory = maxDumpHashes * 128

// writeDump writes a RavenDB dump. The revisions come first, where an import by Jay
// needs them.
func writeDump(ctx context.Context, e *Exporter, w io.Writer) error {
	counters, err := e.db.Counters(ctx)
	if err != nil {
		return err
	}
	dump, err := transfer.NewDumpWriter(w, e.o.Name)
	if err != nil {
		return err
	}
	begun := false
	err = e.eachRevision(ctx, func(rev *jay.Revision) error {
		if !begun { // a dump without revisions has no such section
			if err := dump.Section(transfer.DumpRevisions); err != nil {
				return err
			}
			begun = true
		}
		text, err := rev.MarshalJSON()
		if err != nil {
			return err
		}
		return dump.Item(text)
	})
	if err != nil {
		return err
	}
	if err := writeDumpDocuments(ctx, e, dump); err != nil {
		return err
	}
	if err := dump.Section(transfer.DumpIdentities); err != nil {
		return err
	}
	for _, prefix := range slices.Sorted(maps.Keys(counters.Identities)) {
		if err := dump.Identity(prefix, counters.Identities[prefix]); err != nil {
			return err
		}
	}
	if e.o.whole() {
		if err := writeDumpExchanges(ctx, e, dump); err != nil {
			return err
		}
	}
	return dump.Close()
}

// writeDumpDocuments writes the section of the documents, each behind the contents of its
// attachments that were not written before.
func writeDumpDocuments(ctx context.Context, e *Exporter, dump *transfer.DumpWriter) error {
	if err := dump.Section(transfer.DumpDocuments); err != nil {
		return err
	}
	written := make(map[string]struct{})
	return e.Each(ctx, func(one Exported) error {
		if one.Document == nil {
			return fmt.Errorf("%w: the query selects: a dump has whole documents", jay.ErrUsage)
		}
		err := e.attachments(one, func(a jay.Attachment) error {
			if _, found := written[a.Hash]; found {
				return nil
			}
			if len(written) == maxDumpHashes {
				clear(written)
			}
			written[a.Hash] = struct{}{}
			return writeContent(ctx, e.tx, dump, one.Document.ID(), a)
		})
		if err != nil {
			return err
		}
		text, err := e.json(one)
		if err != nil {
			return err
		}
		return dump.Item(text)
	})
}

// writeContent writes the content of an attachment.
func writeContent(ctx context.Context, tx *jay.Tx, dump *transfer.DumpWriter, id string, a jay.Attachment) error {
	r, err := tx.Attachments(id).Get(ctx, a.Name)
	if err != nil {
		return err
	}
	return joined(dump.Attachment(a.Hash, dumpTag+a.Hash, a.Size, contextReader{ctx, r}), r.Close())
}

// writeDumpExchanges writes the section of the compare-exchange values.
func writeDumpExchanges(ctx context.Context, e *Exporter, dump *transfer.DumpWriter) error {
	if err := dump.Section(transfer.DumpCompareExchange); err != nil {
		return err
	}
	return e.eachExchange(ctx, func(v *jay.CompareExchangeValue) error {
		var value, item bytes.Buffer
		if err := writeLine(&value, exchangeValue{v.Value, v.Metadata}); err != nil {
			return err
		}
		if err := writeLine(&item, dumpExchange{v.Key, string(bytes.TrimSpace(value.Bytes()))}); err != nil {
			return err
		}
		return dump.Item(bytes.TrimSpace(item.Bytes()))
	})
}
