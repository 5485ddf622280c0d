// Package salvage copies what can be read of a damaged database into a new one.
//
// What is stored in one place only is copied, record by record, if it is whole:
// documents, revisions, chunks of attachments, counters, settings, subscriptions. What
// follows from that is made anew: the order of changes and the entries of collections
// here, counts, histories, what is due and indexes by the Open that accepts a loss.
//
// The settings are written last. Until then the new directory does not open, so that one
// that is half copied is not taken for whole.
package salvage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math"
	"slices"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/definitions"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/internal/schemas"
	"github.com/jaydb/jay/internal/subs"
	"github.com/jaydb/jay/internal/verify"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Source is a database that is read.
type Source struct {
	Main storage.Reader // all that is there; reads of damaged blocks fail

	// Rest is without the tables that have damaged blocks, for the ranges of keys in which
	// Main fails: what it has there may be older. nil for nothing.
	Rest storage.Reader

	// Format is that of the database, which the copy gets before the first record.
	Format storage.StoreFormat
}

// Lost is something that is not in the copy, or not as it was.
type Lost struct {
	What string // "document", "attachment", "revision", "subscription", "definition", "record" or "range"
	ID   string // of the document, or the name
	Why  string
}

// Result is what Copy has done.
type Result struct {
	Documents, Revisions, Contents, Deletions, Counters, Subscriptions int64

	Lost      []Lost
	LostCount int64
	Raised    []string // counters that were raised, in words

	Unfinished []index.Info // indexes that were being built; those of the catalog are to be built
}

// Config is what Copy is asked for.
type Config struct {
	MaxLost  int                           // how many of what is lost are listed
	Progress func(step string, keys int64) // or nil
	Default  func() (format.Settings, format.Origin, error)
}

// Bounds of a transaction.
const (
	batchRecords = 1000
	batchBytes   = 4 << 20
)

// copying is a Copy under way.
type copying struct {
	ctx    context.Context
	from   Source
	to     storage.Engine
	config Config
	result *Result
	step   string
	keys   int64

	rules     ids.Rules
	separator string // folded
	settings  format.Settings
	origins   map[uint64]format.Origin
	own       format.Origin
	gaps      int
	lastEtag  uint64
	imported  uint64 // highest etag of an imported revision
	position  uint64 // highest of a subscription
	oldEtag   uint64
	stream    uint64
	highest   map[string]*highest
	again     []string // folded IDs of documents that need another etag

	// listed has the documents of which newestVersion has listed what is lost: changes up to
	// these etags are not listed again.
	listed map[string]uint64

	batch      []record
	batchBytes int
}

// record is a record to be written, or without a value a key to be removed.
type record struct{ key, value []byte }

// highest are the numbers in use of a prefix of IDs.
type highest struct{ identity, hilo int64 }

// maxPrefixes bounds the prefixes whose numbers are known, and other lists of its kind.
const maxPrefixes = 100_000

// unused is the number of references of a content to which no document was seen to refer.
const unused = 1 << 40

// Copy copies what can be read to a new engine, and syncs it.
func Copy(ctx context.Context, from Source, to storage.Engine, config Config) (*Result, error) {
	c := &copying{ctx: ctx, from: from, to: to, config: config, result: new(Result), origins: make(map[uint64]format.Origin), highest: make(map[string]*highest), listed: make(map[string]uint64)}
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"format", c.raiseFormat},
		{"settings", c.readSettings},
		{"attachments", c.copyStreams},
		{"revisions", c.copyRevisions},
		{"documents", c.copyDocuments},
		{"changes", c.readChanges},
		{"references", c.countReferences},
		{"counters", c.copyCounters},
		{"subscriptions", c.copySubscriptions},
		{"definitions", c.copyDefinitions},
		{"cluster", c.copyCluster},
		{"settings", c.writeSettings},
	} {
		c.step = step.name
		if err := step.run(); err != nil {
			return c.result, fmt.Errorf("%s: %w", step.name, err)
		}
		if err := c.flush(); err != nil {
			return c.result, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return c.result, to.Sync(ctx)
}

func (c *copying) lost(what, id, why string, args ...any) {
	c.result.LostCount++
	if len(c.result.Lost) < c.config.MaxLost {
		c.result.Lost = append(c.result.Lost, Lost{what, id, fmt.Sprintf(why, args...)})
	}
}

// set writes a record with the next batch.
func (c *copying) set(key, value []byte) error {
	return c.add(record{bytes.Clone(key), append([]byte{}, value...)})
}

// remove removes a record with the next batch.
func (c *copying) remove(key []byte) error { return c.add(record{key: bytes.Clone(key)}) }

func (c *copying) add(r record) error {
	c.batch = append(c.batch, r)
	c.batchBytes += len(r.key) + len(r.value)
	if len(c.batch) < batchRecords && c.batchBytes < batchBytes {
		return nil
	}
	return c.flush()
}

func (c *copying) flush() error {
	if len(c.batch) == 0 {
		return nil
	}
	err := c.to.Update(c.ctx, false, func(tx storage.Tx) error {
		for _, r := range c.batch {
			if r.value == nil {
				tx.Delete(r.key)
			} else {
				tx.Set(r.key, r.value, nil)
			}
		}
		return nil
	})
	c.batch, c.batchBytes = nil, 0
	if c.config.Progress != nil && err == nil {
		c.config.Progress(c.step, c.keys)
	}
	return err
}

// written returns what the copy has at a key, or nil.
func (c *copying) written(key []byte) ([]byte, error) {
	if err := c.flush(); err != nil {
		return nil, err
	}
	latest := c.to.Latest()
	defer latest.Close()
	value, closer, err := latest.Get(key)
	if err == storage.ErrNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return append([]byte{}, value...), closer.Close()
}

// each calls fn with all keys of a range that can be read.
func (c *copying) each(lo, hi []byte, fn func(key, value []byte) error) error {
	for {
		next, err := c.eachWhole(c.from.Main, lo, hi, fn)
		if err == nil || !verify.IsDamage(err) {
			return ownError(err)
		}
		to, found, err := verify.NextReadable(c.from.Main, next, hi)
		if err != nil {
			return err
		}
		c.gaps++
		end := hi
		if found {
			end = to
		}
		c.lost("range", "", "the keys from %q to %q cannot be read", next[:min(len(next), 60)], end[:min(len(end), 60)])
		if c.from.Rest != nil {
			if _, err := c.eachWhole(c.from.Rest, next, end, fn); err != nil && !verify.IsDamage(err) {
				return ownError(err)
			}
		}
		if !found {
			return nil
		}
		lo = to
	}
}

// eachWhole calls fn with the keys of a range up to the first that cannot be read, and
// returns where that is.
func (c *copying) eachWhole(r storage.Reader, lo, hi []byte, fn func(key, value []byte) error) (next []byte, err error) {
	next = bytes.Clone(lo)
	it, err := r.Iterate(lo, hi)
	if err != nil {
		return next, err
	}
	defer func() {
		if closed := it.Close(); !verify.IsDamage(closed) {
			err = errs.First(err, closed)
		}
	}()
	for ok := it.First(); ok; ok = it.Next() {
		if err := c.ctx.Err(); err != nil {
			return next, err
		}
		c.keys++
		next = append(append(next[:0], it.Key()...), 0)
		if err := fn(it.Key(), it.Value()); err != nil {
			return next, notDamage{err}
		}
	}
	return next, it.Error()
}

// notDamage is an error of fn, which is not one of the source. It hides what it is.
type notDamage struct{ err error }

func (e notDamage) Error() string { return e.err.Error() }

// ownError returns the error of fn, or err if it is none.
func ownError(err error) error {
	var own notDamage
	if errors.As(err, &own) {
		return own.err
	}
	return err
}

func space(b byte) (lo, hi []byte) { return []byte{b}, []byte{b + 1} }

// raiseFormat gives the copy the format of its source.
func (c *copying) raiseFormat() error {
	return c.to.Update(c.ctx, true, func(tx storage.Tx) error {
		for _, f := range c.from.Format.Features {
			tx.RequireFeature(f)
		}
		return nil
	})
}

// readSettings reads the nodes and the settings.
func (c *copying) readSettings() error {
	lo, hi := space(format.SpaceNode)
	err := c.each(lo, hi, func(key, value []byte) error {
		var o format.Origin
		if len(key) != 5 || json.Unmarshal(value, &o) != nil || ids.CheckNodeTag(o.Tag) != nil || o.ID == "" {
			c.lost("record", "node", "it cannot be decoded")
			return nil
		}
		c.origins[uint64(binary.BigEndian.Uint32(key[1:]))] = o
		return c.set(key, value)
	})
	if err != nil {
		return err
	}
	if c.settings, c.own, err = c.config.Default(); err != nil {
		return err
	}
	found := false
	lo, hi = space(format.SpaceMeta)
	err = c.each(lo, hi, func(key, value []byte) error {
		name := strings.TrimSuffix(string(key[1:]), "\x00")
		switch {
		case name == format.SettingsName:
			var s format.Settings
			if json.Unmarshal(value, &s) == nil && ids.CheckSeparator(s.Separator) == nil {
				c.settings, found = s, true
			}
		case name == format.EtagName && len(value) == 8:
			c.oldEtag = binary.BigEndian.Uint64(value)
		case name == format.IndexesName:
			return c.copyIndexes(key, value)
		case name == format.RevisionsName:
			if err := revisions.CheckStored(value); err != nil {
				c.lost("record", name, "%v", err)
				return nil
			}
			return c.set(key, value)
		case name == format.StandbyName:
			return c.keepStandby(key, value)
		case name == format.RestoringName:
			c.lost("record", name, "a restore into this directory was not finished: what it had not come to is missing, and not listed; counters may be below numbers that its original has used")
		case strings.HasPrefix(name, format.RenamePrefix):
			var r format.Rename
			if json.Unmarshal(value, &r) == nil {
				return c.set(key, value)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !found {
		c.lost("record", "settings", "the settings of the database are missing: those of a new one are taken, but that no document expires and none is refreshed")
	}
	if own, known := c.origins[c.settings.Node]; known {
		c.own = own
	} else {
		c.lost("record", "node", "the tag and the ID of the database are lost: those of a new one are taken, and change vectors are others")
		c.origins[c.settings.Node] = c.own
		text, err := json.Marshal(c.own)
		if err != nil {
			return err
		}
		if err := c.set(format.NodeKey(c.settings.Node), text); err != nil {
			return err
		}
	}
	c.rules = ids.Rules{Separator: c.settings.Separator, NodeTag: c.own.Tag, CaseSensitive: c.settings.CaseSensitive, MaxBytes: ids.MaxBytes}
	c.separator = c.rules.Fold(c.settings.Separator)
	return nil
}

// copyIndexes copies the declarations of the indexes that were ready. They are built again.
func (c *copying) copyIndexes(key, value []byte) error {
	var stored catalog.Record
	if err := json.Unmarshal(value, &stored); err != nil {
		c.lost("record", "indexes", "the declarations of the indexes cannot be decoded: declare them again")
		return nil
	}
	unfinished, refused := stored.ForRebuild()
	for _, r := range refused {
		c.lost("record", "index "+r.Info.Name, "its declaration is broken: %v", r.Err)
	}
	c.result.Unfinished = unfinished
	text, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	return c.set(key, text)
}

// copyStreams copies the chunks of streams, and makes the record of the content that
// each of them is. Which of them documents have is counted later.
func (c *copying) copyStreams() error {
	skip := make(map[uint64]bool) // being written, or to be removed
	lo, hi := space(format.SpaceAttachments)
	err := c.each(lo, hi, func(key, value []byte) error {
		if len(key) == 10 && (key[1] == 'g' || key[1] == 'u') {
			skip[binary.BigEndian.Uint64(key[2:])] = true
		}
		if len(key) == 2 && len(value) == 8 {
			c.stream = max(c.stream, binary.BigEndian.Uint64(value))
		}
		return nil
	})
	if err != nil {
		return err
	}
	s := stream{}
	lo, hi = space(format.SpaceChunks)
	err = c.each(lo, hi, func(key, value []byte) error {
		number, chunk, err := format.SplitChunkKey(key)
		if err != nil || skip[number] {
			return nil
		}
		if number != s.number || s.hash == nil {
			if err := c.endStream(&s); err != nil {
				return err
			}
			s = stream{number: number, hash: sha256.New(), chunkBytes: int64(len(value))}
		}
		s.whole = chunk == s.chunks && (s.chunks == 0 || s.whole && s.lastBytes == s.chunkBytes)
		s.chunks, s.lastBytes = chunk+1, int64(len(value))
		s.size += int64(len(value))
		s.hash.Write(value)
		return c.set(key, value)
	})
	if err != nil {
		return err
	}
	c.stream = max(c.stream, s.number+1, 1)
	if err := c.endStream(&s); err != nil {
		return err
	}
	// A content of no bytes has no stream.
	empty := sha256.Sum256(nil)
	content := format.Content{Stream: c.stream, ChunkBytes: 1 << 18, References: unused}
	c.stream++
	if err := c.set(format.ContentKey(&empty), content.Append(nil)); err != nil {
		return err
	}
	return c.set(format.NextStreamKey(), binary.BigEndian.AppendUint64(nil, c.stream))
}

// stream is one that is copied.
type stream struct {
	number                      uint64
	hash                        hash.Hash
	chunks                      uint32
	size, chunkBytes, lastBytes int64
	whole                       bool // no chunk before the last is missing
}

func (c *copying) endStream(s *stream) error {
	if s.hash == nil {
		return nil
	}
	c.stream = max(c.stream, s.number+1)
	sum := format.Hash(s.hash.Sum(nil))
	key := format.ContentKey(&sum)
	before, err := c.written(key)
	if err != nil {
		return err
	}
	if before != nil || !s.whole || s.chunkBytes == 0 {
		return c.removeStream(s.number)
	}
	content := format.Content{Stream: s.number, Size: s.size, ChunkBytes: s.chunkBytes, References: unused}
	return c.set(key, content.Append(nil))
}

// removeStream removes the chunks of a stream from the copy.
func (c *copying) removeStream(number uint64) error {
	if err := c.flush(); err != nil {
		return err
	}
	for {
		latest := c.to.Latest()
		it, err := latest.Iterate(format.ChunkKey(number, 0), format.ChunkKey(number+1, 0))
		if err != nil {
			return errors.Join(err, latest.Close())
		}
		var keys [][]byte
		for ok := it.First(); ok && len(keys) < batchRecords; ok = it.Next() {
			keys = append(keys, bytes.Clone(it.Key()))
		}
		if err := errors.Join(it.Error(), it.Close(), latest.Close()); err != nil || len(keys) == 0 {
			return err
		}
		err = c.to.Update(c.ctx, false, func(tx storage.Tx) error {
			for _, key := range keys {
				tx.Delete(key)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// copyRevisions copies revisions, and numbers those of a document anew where some are
// missing. Histories are made by the Open that follows.
func (c *copying) copyRevisions() error {
	id, last, etag := "", uint64(0), uint64(0)
	return c.each(format.HistoryBounds[0], format.HistoryBounds[1], func(key, value []byte) error {
		folded, number, err := format.SplitRevisionKey(key)
		if err != nil || number == 0 {
			return nil
		}
		head, text, err := format.SplitRevision(value)
		var h metadata.Header
		var body []byte
		if err == nil {
			body, err = h.Decode(text)
		}
		if err == nil {
			err = c.checkVersion(string(folded), &h, body)
		}
		if err != nil {
			c.lost("revision", string(folded), "revision %d: %v", number, err)
			return nil
		}
		if string(folded) != id {
			id, last, etag = string(folded), number-1, 0
		}
		if h.Etag <= etag {
			c.lost("revision", id, "revision %d has etag %d, and the one before %d", number, h.Etag, etag)
			return nil
		}
		last, etag = last+1, h.Etag
		if head.Foreign == nil {
			c.lastEtag = max(c.lastEtag, h.Etag)
		} else {
			c.imported = max(c.imported, h.Etag)
		}
		if h.Revision != 0 {
			h.Revision = last
		}
		c.result.Revisions++
		out := append(h.AppendTail(h.AppendHead(head.Append(nil))), body...)
		return c.set(format.RevisionKey(nil, id, last), out)
	})
}

// copyDocuments copies documents that are whole, and makes what follows from each.
func (c *copying) copyDocuments() error {
	lo, hi := space(format.SpaceDocument)
	return c.each(lo, hi, func(key, value []byte) error {
		if bytes.IndexByte(key, 0) != len(key)-1 || len(key) < 3 {
			c.lost("record", "", "key %q is cut off", key[:min(len(key), 60)])
			return nil
		}
		folded := string(format.DocumentID(key))
		h, body, err := metadata.Decode(value)
		if err == nil {
			err = c.checkVersion(folded, &h, body)
		}
		c.use(folded)
		if err != nil {
			c.lost("document", folded, "%v", err)
			return nil
		}
		return c.copyDocument(folded, &h, body)
	})
}

// checkVersion returns an error unless a version of a document is whole.
func (c *copying) checkVersion(folded string, h *metadata.Header, body []byte) error {
	_, err := verify.CheckJSON(body)
	if err == nil && h.Custom != nil {
		_, err = verify.CheckJSON(h.Custom)
	}
	if err == nil {
		err = errs.First(metadata.CheckCollection(string(h.Collection)), c.rules.Check(folded))
	}
	if err == nil && (c.rules.Fold(folded) != folded || h.ID != nil && c.rules.Fold(string(h.ID)) != folded) {
		err = errors.New("its ID is not that of its key")
	}
	return err
}

// copyDocument writes one document, in its newest version.
func (c *copying) copyDocument(folded string, h *metadata.Header, body []byte) error {
	v, err := c.newestVersion(folded, h, body)
	if v == nil || err != nil {
		return err
	}
	h, body = &v.header, v.body
	list, err := c.attachments(folded, h)
	if err != nil {
		return err
	}
	if h.Timed && h.Times() == (metadata.Times{}) {
		h.Timed = false
	}
	collection := format.CollectionKey(string(h.Collection))
	_, known := c.origins[h.Node]
	fresh := !known || v.foreign || h.Etag == 0 || h.Etag > math.MaxInt64
	if !fresh {
		c.lastEtag = max(c.lastEtag, h.Etag)
	}
	change := format.ChangeKey(nil, h.Node, h.Etag)
	before, err := c.written(change)
	if err != nil {
		return err
	}
	if before != nil || fresh {
		if len(c.again) >= maxPrefixes {
			c.lost("document", folded, "its etag %d is that of another document, and there are too many of these", h.Etag)
			return nil
		}
		c.again = append(c.again, folded)
	} else if err := c.set(change, format.AppendChange(nil, format.ChangePut, string(h.Collection), folded)); err != nil {
		return err
	}
	for i := range list {
		if err := c.refer(&list[i].Hash); err != nil {
			return err
		}
	}
	if !format.IsClustered(folded, collection, c.separator) {
		if err := c.set(format.MemberKey(nil, collection, folded), nil); err != nil {
			return err
		}
	}
	if v.revision != 0 {
		if err := c.takeRevision(folded, v.revision); err != nil {
			return err
		}
	}
	c.result.Documents++
	return c.set(format.NewDocumentKey(folded), append(h.AppendTail(h.AppendHead(nil)), body...))
}

// attachments returns the attachments of a document whose contents are there, and takes
// the others off its list.
func (c *copying) attachments(folded string, h *metadata.Header) ([]format.Attachment, error) {
	if h.Attachments == nil {
		return nil, nil
	}
	all, err := format.DecodeAttachments(h.Attachments)
	if err != nil {
		c.lost("attachment", folded, "the list of its attachments cannot be decoded")
		h.Attachments = nil
		return nil, nil
	}
	var kept []format.Attachment
	for _, a := range all {
		value, err := c.written(format.ContentKey(&a.Hash))
		if err != nil {
			return nil, err
		}
		content, err := format.DecodeContent(value)
		if value == nil || err != nil || content.Size != a.Size {
			c.lost("attachment", folded, "the content of %q is lost", a.Name)
			continue
		}
		kept = append(kept, a)
	}
	h.Attachments = nil
	if len(kept) > 0 {
		h.Attachments = format.AppendAttachments(nil, kept)
	}
	return kept, nil
}

// refer counts a reference to a content.
func (c *copying) refer(hash *format.Hash) error {
	key := format.ContentKey(hash)
	value, err := c.written(key)
	if err != nil {
		return err
	}
	content, err := format.DecodeContent(value)
	if err != nil {
		return err
	}
	content.References++
	return c.set(key, content.Append(nil))
}

// use notes the number of an ID.
func (c *copying) use(folded string) {
	tag := "-" + c.rules.Fold(c.own.Tag)
	rest, own := strings.CutSuffix(folded, tag)
	prefix := strings.TrimRight(rest, "0123456789")
	digits := rest[len(prefix):]
	name, separated := strings.CutSuffix(prefix, c.separator)
	if digits == "" || !separated || len(digits) > 18 {
		return
	}
	n := int64(0)
	for _, d := range digits {
		n = n*10 + int64(d-'0')
	}
	h := c.highest[name]
	if h == nil {
		if len(c.highest) >= maxPrefixes {
			return
		}
		h = new(highest)
		c.highest[name] = h
	}
	if own {
		h.hilo = max(h.hilo, n)
	} else {
		h.identity = max(h.identity, n)
	}
}

// readChanges compares the order of changes with the documents that were copied: what is
// missing is named, and deletions are copied.
func (c *copying) readChanges() error {
	lo, hi := space(format.SpaceChanges)
	return c.each(lo, hi, func(key, value []byte) error {
		etag, err := format.EtagOf(key)
		if err != nil || etag > math.MaxInt64 {
			return nil
		}
		change, err := format.DecodeChange(value)
		if err != nil || change.FoldedID == "" {
			return nil
		}
		node, _ := format.NodeOf(key)
		if _, known := c.origins[node]; !known {
			return nil
		}
		c.lastEtag = max(c.lastEtag, etag)
		c.use(change.FoldedID)
		record, err := c.written(format.NewDocumentKey(change.FoldedID))
		if err != nil {
			return err
		}
		has := uint64(0)
		if record != nil {
			h, _, err := metadata.Decode(record)
			if err != nil {
				return err
			}
			has = h.Etag
		}
		switch {
		case change.Kind == format.ChangePut && etag <= c.listed[change.FoldedID]:
		case change.Kind == format.ChangePut && record == nil:
			c.lost("document", change.FoldedID, "it was written with etag %d into %q, and is not there", etag, change.Collection)
		case change.Kind == format.ChangePut && has < etag:
			c.lost("document", change.FoldedID, "it was written with etag %d; an older version, with etag %d, is kept", etag, has)
		case change.Kind == format.ChangeDelete && has > etag, change.Kind == format.ChangeDelete && record == nil:
			c.result.Deletions++
			return c.set(key, value)
		case change.Kind == format.ChangeDelete && has < etag:
			c.lost("document", change.FoldedID, "it was deleted with etag %d; an older version, with etag %d, is kept: look at it", etag, has)
		}
		return nil
	})
}

// countReferences ends the count of references, and removes contents without one.
func (c *copying) countReferences() error {
	if err := c.flush(); err != nil {
		return err
	}
	prefix := format.ContentPrefix()
	for after := prefix; ; {
		latest := c.to.Latest()
		it, err := latest.Iterate(after, format.PrefixEnd(prefix))
		if err != nil {
			return errors.Join(err, latest.Close())
		}
		var some []record
		for ok := it.First(); ok && len(some) < batchRecords; ok = it.Next() {
			some = append(some, record{bytes.Clone(it.Key()), bytes.Clone(it.Value())})
		}
		if err := errors.Join(it.Error(), it.Close(), latest.Close()); err != nil || len(some) == 0 {
			return err
		}
		var gone []uint64
		err = c.to.Update(c.ctx, false, func(tx storage.Tx) error {
			gone = nil
			for _, r := range some {
				content, err := format.DecodeContent(r.value)
				if err != nil {
					return err
				}
				if content.References -= unused; content.References == 0 {
					tx.Delete(r.key)
					gone = append(gone, content.Stream)
					continue
				}
				tx.Set(r.key, content.Append(nil), nil)
			}
			return nil
		})
		if err != nil {
			return err
		}
		c.result.Contents += int64(len(some) - len(gone))
		for _, number := range gone {
			if err := c.removeStream(number); err != nil {
				return err
			}
		}
		after = append(some[len(some)-1].key, 0)
	}
}

// copyCounters copies HiLo tags and identities, and raises them above all numbers that
// were found.
func (c *copying) copyCounters() error {
	seenHiLo, seenIdentity := make(map[string]bool), make(map[string]bool)
	lo, hi := space(format.SpaceHiLo)
	err := c.each(lo, hi, func(key, value []byte) error {
		tag := strings.TrimSuffix(string(key[1:]), "\x00")
		marks, err := format.DecodeMarks(value)
		if err != nil {
			c.lost("record", "HiLo tag "+tag, "it cannot be decoded: it begins above the highest number in use")
			return nil
		}
		seenHiLo[tag] = true
		return c.setMarks(tag, marks)
	})
	if err != nil {
		return err
	}
	lo, hi = space(format.SpaceIdentity)
	err = c.each(lo, hi, func(key, value []byte) error {
		name := strings.TrimSuffix(string(key[1:]), "\x00")
		r, err := format.DecodeIdentity(value)
		if err != nil {
			c.lost("record", "identity "+name, "it cannot be decoded: it begins above the highest number in use")
			return nil
		}
		seenIdentity[name] = true
		return c.setIdentity(name, r)
	})
	if err != nil {
		return err
	}
	lo, hi = space(format.SpaceExchange)
	err = c.each(lo, hi, func(key, value []byte) error {
		x, err := format.DecodeExchange(value)
		if err != nil || !json.Valid(x.Value) || len(key) < 3 || key[len(key)-1] != 0 {
			c.lost("record", "compare-exchange value "+strings.TrimSuffix(string(key[1:]), "\x00"), "it cannot be decoded")
			return nil
		}
		c.lastEtag = max(c.lastEtag, x.Index)
		return c.set(key, value)
	})
	if err != nil {
		return err
	}
	// Counters that were lost, or that never were: they begin above what is in use.
	for prefix, h := range c.highest {
		if name := prefix + ids.IdentityMark; h.identity > 0 && !seenIdentity[name] {
			if err := c.setIdentity(name, format.Identity{Node: c.settings.Node}); err != nil {
				return err
			}
		}
		if h.hilo > 0 && !seenHiLo[prefix] {
			if err := c.setMarks(prefix, &format.Marks{Node: c.settings.Node}); err != nil {
				return err
			}
		}
	}
	slices.Sort(c.result.Raised)
	return nil
}

// raised notes a counter that was raised.
func (c *copying) raised(what string, from, to int64) {
	if len(c.result.Raised) < c.config.MaxLost {
		c.result.Raised = append(c.result.Raised, fmt.Sprintf("%s from %d to %d", what, from, to))
	}
}

func (c *copying) setMarks(tag string, m *format.Marks) error {
	if h := c.highest[tag]; h != nil && h.hilo > m.Mark {
		c.raised("HiLo tag "+tag, m.Mark, h.hilo)
		m.Mark = h.hilo
	}
	m.Top = max(m.Top, m.Mark)
	m.Leases = slices.DeleteFunc(m.Leases, func(l ids.Lease) bool { return l.Low < 1 || l.End > m.Top })
	if _, known := c.origins[m.Node]; !known {
		m.Node = c.settings.Node
	}
	c.result.Counters++
	return c.set(format.AppendKey(nil, format.SpaceHiLo, tag), format.AppendMarks(nil, m))
}

func (c *copying) setIdentity(name string, r format.Identity) error {
	r.Last = max(r.Last, r.Ceiling)
	r.Ceiling, r.Session = 0, 0
	if h := c.highest[strings.TrimSuffix(name, ids.IdentityMark)]; h != nil && uint64(h.identity) > r.Last {
		c.raised("identity "+name, int64(r.Last), h.identity)
		r.Last = uint64(h.identity)
	}
	if _, known := c.origins[r.Node]; !known {
		r.Node = c.settings.Node
	}
	c.result.Counters++
	return c.set(format.AppendKey(nil, format.SpaceIdentity, name), r.Append(nil))
}

// copySubscriptions copies those with a definition and a position.
func (c *copying) copySubscriptions() error {
	var definition *subs.Definition
	lo, hi := space(format.SpaceSubscription)
	return c.each(lo, hi, func(key, value []byte) error {
		name, part, _ := strings.Cut(string(key[1:]), "\x00")
		switch {
		case part == "d":
			definition = new(subs.Definition)
			if json.Unmarshal(value, definition) != nil || definition.Name != name {
				definition = nil
				c.lost("subscription", name, "its definition cannot be decoded")
				return nil
			}
			return c.set(key, value)
		case strings.HasPrefix(part, "f"):
			if definition != nil && definition.Name == name && json.Valid(value) {
				return c.set(key, value)
			}
		case part == "p":
			if definition == nil || definition.Name != name {
				return nil
			}
			var p subs.Progress
			if json.Unmarshal(value, &p) != nil {
				c.lost("subscription", name, "its position cannot be decoded: it begins again")
				p = subs.Progress{}
			}
			c.result.Subscriptions++
			c.position = max(c.position, p.Position, p.Base)
			if definition.Deletions && !p.Disabled {
				floor := binary.BigEndian.AppendUint64(nil, max(p.Position, p.Base))
				if err := c.set(format.AppendKey(nil, format.SpaceMeta, format.FloorPrefix+format.SubscriptionFloor+name), floor); err != nil {
					return err
				}
			}
			text, err := json.Marshal(&p)
			if err != nil {
				return err
			}
			return c.set(key, text)
		}
		return nil
	})
}

// margin is how many etags are left out behind the highest that was found, as later ones
// may have been lost.
const margin = 1 << 20

// writeSettings gives etags to the documents that have none of their own, and writes the
// settings.
func (c *copying) writeSettings() error {
	last := max(c.lastEtag, c.imported, c.oldEtag&math.MaxInt64, c.position)
	if c.gaps > 0 || c.result.LostCount > 0 {
		last += margin
	}
	for _, folded := range c.again {
		last++
		if err := c.giveEtag(folded, last); err != nil {
			return err
		}
	}
	if err := c.set(format.AppendKey(nil, format.SpaceMeta, format.EtagName), binary.BigEndian.AppendUint64(nil, last)); err != nil {
		return err
	}
	if c.gaps > 0 || c.result.LostCount > 0 {
		// Deletions may be lost: who follows the changes has to begin again.
		if err := c.set(format.AppendKey(nil, format.SpaceMeta, format.MarkName), binary.BigEndian.AppendUint64(nil, c.lastEtag)); err != nil {
			return err
		}
	}
	if err := c.flush(); err != nil {
		return err
	}
	if err := c.to.Sync(c.ctx); err != nil {
		return err
	}
	return c.to.Update(c.ctx, true, func(tx storage.Tx) error {
		return env.SetJSON(tx, format.AppendKey(nil, format.SpaceMeta, format.SettingsName), c.settings)
	})
}

// giveEtag gives a document an etag.
func (c *copying) giveEtag(folded string, etag uint64) error {
	key := format.NewDocumentKey(folded)
	record, err := c.written(key)
	if err != nil || record == nil {
		return err
	}
	h, body, err := metadata.Decode(record)
	if err != nil {
		return err
	}
	h.Node, h.Etag = c.settings.Node, etag
	if err := c.set(format.ChangeKey(nil, h.Node, etag), format.AppendChange(nil, format.ChangePut, string(h.Collection), folded)); err != nil {
		return err
	}
	return c.set(key, append(h.AppendTail(h.AppendHead(nil)), body...))
}

// copyDefinitions copies the definitions that can be decoded, and the number of the last change.
func (c *copying) copyDefinitions() error {
	last, found := uint64(0), false
	lo, hi := space(format.SpaceDefinitions)
	err := c.each(lo, hi, func(key, value []byte) error {
		if bytes.Equal(key, format.LastDefinitionKey()) {
			if len(value) == 8 {
				last, found = max(last, binary.BigEndian.Uint64(value)), true
			}
			return nil
		}
		kind, name, ok := format.SplitDefinitionKey(key)
		if !ok || !definitions.IsKey(kind, name) {
			return nil
		}
		number, object, err := format.DecodeDefinition(value)
		if err == nil {
			err = definitions.CheckValue(object)
		}
		if err == nil && definitions.Own(kind) == definitions.Schemas {
			err = schemas.CheckValue(name, object)
		}
		if err != nil {
			c.lost("definition", name, "%v", err)
			return nil
		}
		last, found = max(last, number), true
		return c.set(key, value)
	})
	if err != nil || !found {
		return err
	}
	return c.set(format.LastDefinitionKey(), binary.BigEndian.AppendUint64(nil, last))
}

// keepStandby has the repaired database be a standby, too: its numbers are those of its source. As something may be lost, it has come to no
// commit, and compares its keys when it follows again.
func (c *copying) keepStandby(key, value []byte) error {
	var state format.Standby
	if json.Unmarshal(value, &state) != nil {
		c.lost("record", format.StandbyName, "the database follows another one; which one is lost")
	}
	text, err := json.Marshal(format.Standby{Database: state.Database})
	if err != nil {
		return err
	}
	return c.set(key, text)
}
