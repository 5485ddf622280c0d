// Package copier copies a database from one store to another, key by key, whatever their engines are.
//
// The target gets the keys and values of the source as they are, entries of indexes included, so that nothing is built anew and no number is
// drawn. It lacks only what has no meaning there: attachments that are being written or removed, and what only stores keep that several processes
// write to. Until the copy is whole, the target has a mark (format.Copying) with which it does not open, and which says how far the copy
// has come: each transaction writes it with its keys. So a copy goes on where it was killed.
//
// Nothing may be written to the source meanwhile. A directory is locked. Of a store that others may write to, each snapshot says the number of
// its last commit, which must stay the same. In the end both stores are read again, and compared key by key.
package copier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/backup"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/settings"
	"github.com/jaydb/jay/internal/verify"
	"github.com/jaydb/jay/storage"
)

// batchBytes bounds the keys and values of a transaction, and knobs.CopyKeys their number. An engine whose transactions are smaller gets a quarter of
// what it takes.
const batchBytes = 4 << 20

// progressKeys is after how many keys that are only read progress is told.
const progressKeys = 8192

// markBytes is what a mark takes at most beyond twice the bytes of the key to which the copy has come.
const markBytes = 4096

// Steps of a copy, for Progress.
const (
	StepMeasure = "measure" // looks for what is longer than the target stores
	StepCopy    = "copy"
	StepCompare = "compare"
)

// Progress is how far a step of a copy is.
type Progress struct {
	Step  string
	Done  format.CopySize
	Total format.CopySize // the zero value if it is not known
}

// Source is a database that is copied.
type Source struct {
	Origins env.Origins // the nodes that have written to it
	Own     format.Origin

	settings format.Settings
	renames  bool // a rename of a collection is not finished
	etag     uint64
	steady   *steady
	left     *backup.LeftOut
	format   storage.StoreFormat
	indexes  map[uint32]string // names, with the collection, by number
}

// OpenSource reads what must be known of a database before it is copied. The engine should be one that only reads. The name is that of messages. Close
// must follow, before the engine is closed.
func OpenSource(engine storage.Engine, name string) (s *Source, err error) {
	s = new(Source)
	if s.steady, err = newSteady(engine, name); err != nil {
		return nil, err
	}
	if err := s.read(); err != nil {
		return nil, errs.First(err, s.Close())
	}
	return s, nil
}

// Close closes what is open. The engine is the caller's.
func (s *Source) Close() error { return s.steady.close() }

func (s *Source) read() (err error) {
	r := s.steady.snapshot
	if err := s.refuse(r); err != nil {
		return err
	}
	if s.settings, err = settings.Load(r); errors.Is(err, storage.ErrNotFound) {
		return s.whole("it has no settings", "check and repair it")
	} else if err != nil {
		return err
	}
	if s.Origins, err = settings.Origins(r); err != nil {
		return err
	}
	found := false
	if s.Own, found = s.Origins[s.settings.Node]; !found {
		return fmt.Errorf("node %d has no record: %w", s.settings.Node, errs.ErrCorrupt)
	}
	if s.etag, _, err = env.NumberAt(r, metaKey(format.EtagName)); err != nil {
		return err
	}
	if s.renames, err = hasPrefix(r, bytes.TrimSuffix(metaKey(format.RenamePrefix), []byte{0})); err != nil {
		return err
	}
	if s.left, err = backup.FindLeftOut(r); err != nil {
		return err
	}
	s.format = s.steady.engine.Format() // after the snapshot: it covers what that shows
	if s.format.Number < storage.BaseFormat {
		return s.whole(fmt.Sprintf("its format is %d, and it is raised to %d when it is opened to be written to", s.format.Number, storage.BaseFormat), "open and close it once, without ReadOnly")
	}
	return s.readIndexes(r)
}

// refuse refuses what is no whole database of its own.
func (s *Source) refuse(r storage.Reader) error {
	for _, record := range []struct{ name, problem, do string }{
		{format.RestoringName, "a restore or a copy into it was not finished", "finish that before"},
		{format.StandbyName, "it follows another database", "copy that one, or promote this one before"},
		{format.MembershipName, "it is a member of a cluster, whose numbers are kept elsewhere, and whose nodes have a store each", "copy a database without a cluster, or export the documents and import them"},
	} {
		_, closer, err := r.Get(metaKey(record.name))
		switch {
		case errors.Is(err, storage.ErrNotFound):
		case err != nil:
			return err
		default:
			return errs.First(closer.Close(), s.whole(record.problem, record.do))
		}
	}
	return nil
}

func (s *Source) whole(problem, do string) error {
	return &Error{RuleWhole, s.steady.name, problem, do}
}

func hasPrefix(r storage.Reader, prefix []byte) (bool, error) {
	it, err := r.Iterate(prefix, format.PrefixEnd(prefix))
	if err != nil {
		return false, err
	}
	found := it.First()
	return found, errors.Join(it.Error(), it.Close())
}

// readIndexes reads the names of the indexes, for messages.
func (s *Source) readIndexes(r storage.Reader) error {
	value, closer, err := r.Get(metaKey(format.IndexesName))
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var record catalog.Record
	if err := errs.First(json.Unmarshal(value, &record), closer.Close()); err != nil {
		return fmt.Errorf("record of indexes: %w: %w", errs.ErrCorrupt, err)
	}
	s.indexes = make(map[uint32]string)
	for _, ix := range record.Indexes {
		s.indexes[ix.Number] = fmt.Sprintf("%q of %s", ix.Name, ix.Collection)
	}
	return nil
}

// describe says in words what a key of the source is.
func (s *Source) describe(key []byte) string {
	text := verify.Describe(key)
	if number, is := format.IndexOf(key); is && s.indexes[number] != "" {
		text += ", index " + s.indexes[number]
	}
	return text
}

// skips returns a function that reports which keys of the source a target does not get.
func (s *Source) skips(shared bool) func(key []byte) bool {
	definitions := metaKey(format.DefinitionsName)
	return func(key []byte) bool {
		return s.left.Has(key) || !shared && bytes.Equal(key, definitions)
	}
}

// Measure returns how much there is to copy. It returns a *LimitError if something is longer than the target, which has these limits and this
// name, can store. Nothing is written.
func (s *Source) Measure(ctx context.Context, limits storage.Limits, target string, progress func(Progress)) (size format.CopySize, err error) {
	refused := &LimitError{Store: target}
	c := &cursor{from: s.steady, skip: s.left.Has}
	defer func() { err = errs.First(err, c.close()) }()
	for {
		ok, err := c.next()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return size, err
		}
		if !ok {
			break
		}
		key, value := c.key(), c.value()
		if above := tooLong(limits, len(key), len(value)); above != nil {
			if refused.Found++; len(refused.Records) < MaxLong {
				refused.Records = append(refused.Records, fmt.Sprintf("%s: a %s of %d bytes, at most %d", s.describe(key), above.What, above.Bytes, above.Most))
			}
		}
		add(&size, key, value)
		if size.Keys%progressKeys == 0 {
			progress(Progress{Step: StepMeasure, Done: size})
		}
	}
	progress(Progress{Step: StepMeasure, Done: size, Total: size})
	if refused.Found > 0 {
		return size, refused
	}
	return size, nil
}

// tooLong returns the limit that a record is above, or nil. It is committed with the mark.
func tooLong(l storage.Limits, key, value int) (above *storage.LimitError) {
	sizes := storage.Sizes{Key: key, Value: value, Tx: int64(key) + int64(value) + markBytes + 2*int64(key)}
	if !errors.As(l.Check(sizes), &above) {
		return nil
	}
	return above
}

// add adds a key to a size.
func add(size *format.CopySize, key, value []byte) {
	size.Keys++
	size.Bytes += int64(len(key)) + int64(len(value))
	if key[0] == format.SpaceDocument {
		size.Documents++
	}
}
