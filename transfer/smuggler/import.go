package smuggler

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"strings"

	"github.com/jaydb/jay"
)

// Importer stores documents and what belongs to them in a database, in batches. It is used
// by one goroutine.
type Importer struct {
	db     *jay.DB
	o      ImportOptions
	resume *resumption // nil without Resume
	file   string      // name of the input, for errors
	line   rejectLine

	// A goroutine that stores a batch in the background uses only that batch and the
	// database; settle records the outcome.
	filling pendingBatch // of the documents that are read
	storing pendingBatch // is stored in the background if stored is not nil, and empty if it is nil
	stored  chan outcome // of storing; nil if nothing is stored in the background

	latest  document // the last document that was read
	refused int64    // number of the last document that was refused; 0 for none

	incoming *incoming // the attachment that is being read, or nil
	bytes    bytesOf   // the attachment whose bytes are read

	done   ImportProgress
	looked int   // documents that were examined for done.LooksExtended
	held   int64 // bytes of the buffer of the source

	past      []pastLine // revisions of the next batch
	pastBytes int
}

// document identifies a document of the input.
type document struct {
	number int64  // of its record
	id     string // its @id; "" if it has none or could not be read
}

// NewImporter returns an importer into a database.
func NewImporter(db *jay.DB, o ImportOptions) *Importer {
	o.MaxBytes, o.MaxDepth = orDefault(o.MaxBytes, defaultMaxBytes), orDefault(o.MaxDepth, defaultMaxDepth)
	o.BatchBytes = orDefault(o.BatchBytes, defaultBatchBytes)
	im := &Importer{db: db, line: rejectLine{w: o.Rejects}}
	if o.Resume != "" {
		im.resume = &resumption{name: o.Resume, flag: o.Names.Resume}
	}
	if room := o.Room; room != nil {
		o.Room = func(n int64) error {
			im.held = n
			return room(n)
		}
	}
	im.o = o
	return im
}

// Defaults of ImportOptions.
const (
	defaultMaxBytes   = 32 << 20
	defaultMaxDepth   = 256
	defaultBatchBytes = 4 << 20
)

// orDefault returns n, or a default if n is not positive.
func orDefault(n, value int) int {
	if n <= 0 {
		return value
	}
	return n
}

// Progress returns what the import has done so far.
func (im *Importer) Progress() ImportProgress {
	p := im.done
	p.LeftOut = maps.Clone(p.LeftOut)
	return p
}

// report calls Report.
func (im *Importer) report() {
	if im.o.Report != nil {
		im.o.Report(im.Progress())
	}
}

// attached counts an attachment that is stored.
func (im *Importer) attached() {
	im.done.Attachments++
	im.report()
}

// Begin reads how far an earlier import with the same Resume has come. The records before
// that are skipped; nothing is stored twice. Without Resume it does nothing.
func (im *Importer) Begin(ctx context.Context) (Checkpoint, error) {
	if im.resume == nil {
		return Checkpoint{}, nil
	}
	if err := CheckResume(im.resume.name); err != nil {
		return Checkpoint{}, err
	}
	err := im.resume.load(ctx, im.db)
	return im.resume.found, err
}

// Behind reports whether the next records were handled by an earlier run.
func (im *Importer) Behind() bool { return im.resume.isBehind() }

// Load stores what an input has. Documents that were stored before an error stay. The
// error is an *ImportError.
func (im *Importer) Load(ctx context.Context, f *Format, in Input) error {
	im.file, im.latest, im.refused = in.Name, document{}, 0
	if im.resume != nil {
		if err := CheckResume(im.resume.name); err != nil {
			return im.fail(Record{}, err)
		}
	}
	if f.dump {
		return im.loadDumps(ctx, in)
	}
	source, err := f.Open(ctx, in, &im.o)
	if err != nil {
		return im.fail(Record{}, err)
	}
	err = im.loadRecords(ctx, source, f.lines)
	if c, is := source.(io.Closer); is {
		err = joined(err, c.Close())
	}
	return err
}

// Finish notes that all inputs are stored. Without Resume it does nothing.
func (im *Importer) Finish(ctx context.Context) error {
	if im.resume == nil {
		return nil
	}
	if err := im.syncRejects(); err != nil {
		return err
	}
	if err := im.resume.finish(ctx, im.db, im.done.Documents+im.resume.found.Documents); err != nil {
		return im.fail(Record{}, err)
	}
	return nil
}

// loadRecords stores all documents of a source. Lines are those of an export, some of which
// are no documents.
func (im *Importer) loadRecords(ctx context.Context, source Source, lines bool) (err error) {
	defer func() {
		_ = im.endInput() // after an error
		err = im.end(ctx, err)
	}()
	for {
		v, err := source.Next()
		if err == io.EOF {
			if err := im.endInput(); err != nil {
				return im.fail(v, err)
			}
			return im.flush(ctx)
		}
		if err == nil || canSkip(err) {
			again, other := im.resume.take(v.Text)
			switch {
			case other != nil:
				return im.fail(v, other)
			case again && err == nil:
				if lines && !im.Behind() { // its attachments may follow, and are not stored yet
					im.latest = document{v.Number, metadataOf(v.Text).Get(`\@id`).Str}
				}
				continue
			case again:
				if err := source.Skip(io.Discard); err != nil {
					return im.fail(v, err)
				}
				continue
			}
		}
		if err == nil {
			if err := im.room(v, memberOfDocument); err != nil {
				return err
			}
		}
		switch {
		case err == nil && lines:
			err = im.add(ctx, v)
		case err == nil:
			if err = im.makeRoom(ctx, v); err == nil {
				err = im.addDocument(ctx, v, metadataOf(v.Text))
			}
		default:
			if stop := im.flush(ctx); stop != nil {
				return stop // the records before this one are stored first; their error wins
			}
			if canSkip(err) && im.o.Rejects != nil {
				err = im.skip(source, v, err)
			} else {
				err = im.fail(v, err)
			}
		}
		if err != nil {
			return err
		}
	}
}

// isLatest reports whether a document is the last one that was read.
func (im *Importer) isLatest(id string) bool {
	return im.latest.id != "" && strings.EqualFold(im.latest.id, id)
}

// leaveOut counts what is not imported.
func (im *Importer) leaveOut(kind string) {
	if im.done.LeftOut == nil {
		im.done.LeftOut = make(map[string]int64)
	}
	if _, found := im.done.LeftOut[kind]; !found && len(im.done.LeftOut) >= maxLeftOut {
		kind = "others"
	}
	im.done.LeftOut[kind]++
}

// maxLeftOut is the number of kinds that leaveOut tells apart.
const maxLeftOut = 32

// room pays for a record, beside the buffer of the source: the copies of it on the way to
// the disk, and so many bytes for each member of its objects.
func (im *Importer) room(v Record, member int64) error {
	if im.o.Room == nil || len(v.Text) <= smallRecord {
		return nil
	}
	held := im.held
	if err := im.o.Room(held + 3*int64(len(v.Text)) + member*int64(bytes.Count(v.Text, []byte{':'}))); err != nil {
		return im.fail(v, err)
	}
	im.held = held
	return nil
}

// What a member of an object costs.
const (
	memberOfDocument = 48  // names of an object are compared with one another
	memberOfMap      = 192 // in a map of Go, as it grows
)

// smallRecord is the size up to which records count as part of a batch.
const smallRecord = 64 << 10

// refuse rejects a record that cannot go into a batch. It stores the documents before
// the record first. If err is nil, it does nothing.
func (im *Importer) refuse(ctx context.Context, v Record, err error) error {
	if err == nil {
		return nil
	}
	if stop := im.flush(ctx); stop != nil {
		return stop
	}
	return im.reject(v, err)
}

// reject writes a refused record to the rejects, or ends the import.
func (im *Importer) reject(v Record, err error) error {
	if im.o.Rejects == nil || !isRefusal(err) {
		return im.fail(v, err)
	}
	if writeErr := im.keepReject(v.Text); writeErr != nil {
		return im.fail(Record{}, writeErr)
	}
	im.explainReject(v, err)
	return nil
}

// keepReject writes a whole record to the rejects.
func (im *Importer) keepReject(text []byte) error {
	if _, err := im.line.Write(text); err != nil {
		return err
	}
	return im.line.end()
}

// skip writes a record on which the source failed to the rejects, and moves the
// source after it.
func (im *Importer) skip(source Source, v Record, err error) error {
	skipErr := source.Skip(&im.line)
	if skipErr == nil {
		skipErr = im.line.end()
	}
	if skipErr != nil {
		return im.fail(Record{}, skipErr)
	}
	if im.incoming == nil && im.bytes == ofStored { // it may be a document
		im.latest, im.refused = document{number: v.Number}, v.Number
	}
	im.explainReject(v, err)
	return nil
}

// explainReject says why a record was skipped.
func (im *Importer) explainReject(v Record, err error) {
	im.done.Rejected++
	why := im.fail(v, err)
	why.Skipped = true
	im.o.Rejects.Reject(why)
	im.report()
}

// syncRejects makes the rejects durable, before a checkpoint passes them.
func (im *Importer) syncRejects() error {
	if im.resume == nil {
		return nil
	}
	if err := im.line.sync(); err != nil {
		return im.fail(Record{}, err)
	}
	return nil
}

// fail returns an error with its place in the input. The zero value stands for no
// particular record.
func (im *Importer) fail(v Record, err error) *ImportError {
	var at *ImportError
	if errors.As(err, &at) {
		return at // it has its place
	}
	// Offsets are relative to the input, not to the record. The texts that wrap errors
	// of a document are left out.
	var (
		document   *jay.DocumentError
		id         *jay.IDError
		collection *jay.CollectionError
		unique     *jay.UniqueError
	)
	switch {
	case errors.As(err, &document):
		moved := *document
		moved.Offset += int(v.Offset)
		if err = &moved; v.Converted { // an offset in the converted text means nothing in the input
			err = &ConvertedError{*document}
		}
	case errors.As(err, &id):
		err = id
	case errors.As(err, &collection):
		err = collection
	case errors.As(err, &unique):
		err = unique
	}
	return &ImportError{Input: im.file, Number: v.Number, Line: v.Line, Offset: v.Offset, Stored: im.done.Documents, Err: err}
}
