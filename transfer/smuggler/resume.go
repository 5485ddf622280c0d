package smuggler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/jaydb/jay"
)

// checkpointPrefix is the prefix of the IDs of checkpoints, in which imports that can
// be resumed record their progress. They are in the collection @imports.
const (
	checkpointPrefix     = "Raven/Jay/Import/"
	checkpointCollection = "@imports"
	maxCheckpointName    = 200
)

// mark is a position in the inputs of an import: the number of records before it, and
// their checksum, which detects that an import is resumed with another input.
type mark struct {
	records int64
	sum     uint32
}

// Checkpoint is the document with the progress of an import that can be resumed. It is
// written in the transaction of each batch, so it always matches the documents that are
// stored.
type Checkpoint struct {
	Records   int64  `json:"records"`
	Checksum  uint32 `json:"checksum"`
	Documents int64  `json:"documents"`
	Finished  bool   `json:"finished"`
}

// resumption is the state of an import that can be resumed.
type resumption struct {
	name  string
	flag  string     // what the caller calls the name
	found Checkpoint // the checkpoint of an earlier run
	at    mark       // position after the last record that was read
	again bool       // the last record was stored by an earlier run
}

// CheckResume returns an error, jay.ErrUsage, if ImportOptions.Resume may not have the
// name.
func CheckResume(name string) error {
	if name == "" || len(name) > maxCheckpointName || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '|' || r == '/' }) {
		return fmt.Errorf("%w: the name of an import has 1 to %d bytes without / and |, not %q", jay.ErrUsage, maxCheckpointName, name)
	}
	return nil
}

func (r *resumption) id() string { return checkpointPrefix + r.name }

// load reads the checkpoint of an earlier run.
func (r *resumption) load(ctx context.Context, db *jay.DB) error {
	doc, err := db.Get(ctx, r.id())
	if errors.Is(err, jay.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(doc.Body(), &r.found)
	}
	if err != nil {
		return fmt.Errorf("checkpoint %q: %w", r.id(), err)
	}
	return nil
}

// crcTable is for the checksum in a checkpoint. Part of the format. Must not change.
var crcTable = crc32.MakeTable(crc32.Castagnoli)

// take counts a record that was read, and reports whether an earlier run has handled
// it. Without --resume it does nothing.
func (r *resumption) take(text []byte) (again bool, err error) {
	if r == nil {
		return false, nil
	}
	r.at.records++
	r.at.sum = crc32.Update(r.at.sum, crcTable, text)
	r.at.sum = crc32.Update(r.at.sum, crcTable, []byte{'\n'})
	if r.again = r.at.records <= r.found.Records; r.again && r.at.records == r.found.Records && r.at.sum != r.found.Checksum {
		return true, r.errOther()
	}
	return r.again, nil
}

// errOther is the error for an input that differs from that of the earlier run.
func (r *resumption) errOther() error {
	records := "records"
	if r.found.Records == 1 {
		records = "record"
	}
	return fmt.Errorf("%w: %s%s: the input is not the one of the earlier run, which read %s %s of it; with another name it is imported from the start", jay.ErrUsage, r.flag, r.name, grouped(r.found.Records), records)
}

// isBehind reports whether the next records were handled by an earlier run.
func (r *resumption) isBehind() bool { return r != nil && r.at.records < r.found.Records }

// mark returns the position after the last record.
func (r *resumption) mark() mark {
	if r == nil {
		return mark{}
	}
	return r.at
}

// addTo adds the checkpoint to the batch that stores the documents up to m.
func (r *resumption) addTo(b *jay.Batch, m mark, documents int64, finished bool) error {
	text, err := json.Marshal(Checkpoint{Records: m.records, Checksum: m.sum, Documents: documents, Finished: finished})
	if err != nil {
		return err
	}
	b.Put(r.id(), text, jay.InCollection(checkpointCollection))
	return nil
}

// finish records in the checkpoint that all inputs are stored.
func (r *resumption) finish(ctx context.Context, db *jay.DB, documents int64) error {
	if r.isBehind() {
		return r.errOther()
	}
	var b jay.Batch
	if err := r.addTo(&b, r.at, documents, true); err != nil {
		return err
	}
	_, err := db.Apply(ctx, &b)
	return err
}
