package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/counters"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/settings"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Bounds of a transaction of Apply.
const (
	applyBytes = 4 << 20
	applyOps   = 8192
)

// Applier puts a chain of backups into an empty store. It is not safe for concurrent
// use.
type Applier struct {
	Progress func(bytes int64) // or nil: called after each transaction, with how many bytes of streams were read

	engine storage.Engine
	done   []Header // the backups that are applied
	read   int64    // bytes of their streams
	ops    []Op     // of the next transaction
	size   int      // bytes in ops
	rules  ids.Rules
	folded string // separator
}

// NewApplier marks a new store as one that is being restored, on disk, so that it is
// never taken for a whole database.
func NewApplier(ctx context.Context, engine storage.Engine) (*Applier, error) {
	err := engine.Update(ctx, true, func(tx storage.Tx) error { // in which no other process creates a database
		empty, err := env.IsEmpty(tx)
		if err != nil {
			return err
		}
		if !empty {
			return fmt.Errorf("%w: the store is not empty", errs.ErrBackup)
		}
		tx.Set(recordKey(format.RestoringName), []byte("{}"), nil)
		return nil
	})
	return &Applier{engine: engine}, err
}

// Finish removes the mark, and that of a standby, which may have made the backup. Everything is on disk when it returns.
func Finish(ctx context.Context, engine storage.Engine) error {
	return engine.Update(ctx, true, func(tx storage.Tx) error {
		tx.Delete(recordKey(format.StandbyName))
		tx.Delete(recordKey(format.RestoringName))
		return nil
	})
}

// IsRestoring returns the mark of a store, or nil if it has none.
func IsRestoring(r docs.Getter) (*format.Restoring, error) {
	value, closer, err := r.Get(recordKey(format.RestoringName))
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	mark := new(format.Restoring)
	if err := errs.First(json.Unmarshal(value, mark), closer.Close()); err != nil {
		return nil, fmt.Errorf("mark of a database that is not whole: %w: %w", errs.ErrCorrupt, err)
	}
	return mark, nil
}

// Apply applies the next backup of the chain: a full one, then those that follow each
// other. It returns what the stream says of itself, when it was read to its end and found whole.
func (a *Applier) Apply(ctx context.Context, r io.Reader) (Summary, error) {
	in, err := NewReader(r, len(a.done))
	if err != nil {
		return Summary{}, err
	}
	defer in.Close()
	if err := CheckChain(a.done, in.Header); err != nil {
		return in.Summary(), err
	}
	if err := a.raiseFormat(ctx, in.Header); err != nil {
		return in.Summary(), err
	}
	err = a.apply(ctx, in)
	a.done, a.read = append(a.done, in.Header), a.read+in.Bytes
	return in.Summary(), err
}

// raiseFormat gives the store the format of a backup before anything of it is written.
func (a *Applier) raiseFormat(ctx context.Context, h Header) error {
	if h.Format <= storage.BaseFormat {
		return nil
	}
	err := a.engine.Update(ctx, true, func(tx storage.Tx) error {
		for _, f := range h.Features {
			tx.RequireFeature(f)
		}
		tx.RequireFeature(storage.Feature{Format: h.Format})
		return nil
	})
	if errors.Is(err, storage.ErrNewerFormat) {
		err = &Error{Stream: len(a.done), Offset: -1, Problem: "it cannot be restored", Cause: err}
	}
	return err
}

// CheckChain refuses a backup that does not follow those before it.
func CheckChain(before []Header, h Header) error {
	wrong := func(text string, args ...any) error {
		return &Error{Stream: len(before), Offset: -1, Problem: fmt.Sprintf(text, args...)}
	}
	if len(before) == 0 {
		if h.Base != "" {
			return wrong("it is an incremental one, which follows %s: begin with the full one", errs.Shorten(h.Base))
		}
		return nil
	}
	last := before[len(before)-1]
	switch {
	case h.Base == "":
		return wrong("it is a full one: it follows none")
	case h.Base != last.ID:
		return wrong("it follows %s, and the one before it is %s", errs.Shorten(h.Base), errs.Shorten(last.ID))
	case h.Database != last.Database || h.After != last.Etag || h.Etag < h.After:
		return wrong("it contradicts the one that it follows")
	}
	return nil
}

func (a *Applier) apply(ctx context.Context, in *Reader) error {
	walked, err := counters.Walked(a.engine)
	if err != nil {
		return err
	}
	incremental := in.Header.Base != ""
	if incremental {
		if err := a.readRules(); err != nil {
			return err
		}
	}
	for {
		op, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := a.add(ctx, op, incremental); err != nil {
			return err
		}
		if len(a.ops) == 0 && a.Progress != nil {
			a.Progress(a.read + in.Bytes)
		}
	}
	if err := a.flush(ctx, incremental); err != nil {
		return err
	}
	if !incremental {
		return nil
	}
	if err := a.removeDeletions(ctx, walked); err != nil {
		return err
	}
	return a.removeChunks(ctx)
}

// readRules reads how the database folds IDs.
func (a *Applier) readRules() error {
	stored, err := settings.Load(a.engine)
	if err != nil {
		return err
	}
	a.rules = ids.Rules{Separator: stored.Separator, CaseSensitive: stored.CaseSensitive}
	a.folded = a.rules.Fold(stored.Separator)
	return nil
}

// add adds an operation to the next transaction.
func (a *Applier) add(ctx context.Context, op Op, incremental bool) error {
	if op.Kind == opClear {
		if err := a.flush(ctx, incremental); err != nil {
			return err
		}
		hi := op.Value
		if len(hi) == 0 {
			hi = nil
		}
		return a.clear(ctx, op.Key, hi, nil)
	}
	if op.Key[0] == format.SpaceDocument && (len(op.Key) < 3 || op.Key[len(op.Key)-1] != 0) {
		return &Error{Stream: len(a.done), Offset: -1, Problem: fmt.Sprintf("%.100q is not the key of a document", op.Key)}
	}
	if a.size += len(op.Key) + len(op.Value); a.size >= applyBytes || len(a.ops)+1 >= applyOps {
		a.ops = append(a.ops, op) // valid until the next one is read
		return a.flush(ctx, incremental)
	}
	a.ops = append(a.ops, Op{op.Kind, bytes.Clone(op.Key), bytes.Clone(op.Value)})
	return nil
}

// flush commits what is gathered.
func (a *Applier) flush(ctx context.Context, incremental bool) error {
	if len(a.ops) == 0 {
		return nil
	}
	err := a.engine.Update(ctx, false, func(tx storage.Tx) error {
		for _, op := range a.ops {
			if incremental && op.Key[0] == format.SpaceDocument {
				if err := a.follow(tx, op); err != nil {
					return err
				}
			}
			if op.Kind == opSet {
				tx.Set(op.Key, op.Value, nil)
			} else {
				tx.Delete(op.Key)
			}
		}
		return nil
	})
	clear(a.ops)
	a.ops, a.size = a.ops[:0], 0
	return err
}

// follow stages what follows from the change of a document: its membership and what is due for it, and the
// end of the record of the change that made the older version. Nothing follows from a record that cannot be
// decoded: the restored database is checked in the end, and there it is damage, which can be accepted.
func (a *Applier) follow(tx storage.Tx, op Op) error {
	id := string(format.DocumentID(op.Key))
	var etag, node uint64
	if op.Kind == opSet {
		if h, _, err := metadata.Decode(op.Value); err == nil {
			etag, node = h.Etag, h.Node
		}
	}
	old, closer, err := tx.Get(op.Key)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if err == nil {
		h, ok := derived(old, id, a.folded, func(key, _ []byte) { tx.Delete(key) })
		if err := closer.Close(); err != nil {
			return err
		}
		if ok && (h.Etag != etag || h.Node != node) {
			tx.Delete(format.ChangeKey(nil, h.Node, h.Etag))
		}
	}
	if op.Kind == opSet {
		derived(op.Value, id, a.folded, func(key, value []byte) { tx.Set(key, value, nil) })
	}
	return nil
}

// derived calls fn with the keys that follow from the record of a document, but for
// that of its change. They are new memory. ok is false if the record cannot be decoded.
func derived(record []byte, id, foldedSeparator string, fn func(key, value []byte)) (h metadata.Header, ok bool) {
	h, _, err := metadata.Decode(record)
	if err != nil {
		return h, false
	}
	collection := format.CollectionKey(string(h.Collection))
	if !format.IsClustered(id, collection, foldedSeparator) {
		fn(format.MemberKey(nil, collection, id), nil)
	}
	if h.Timed {
		times := h.Times()
		for kind, at := range map[byte]time.Time{format.DueExpiry: times.Expires, format.DueRefresh: times.Refresh} {
			if !at.IsZero() {
				fn(format.TimeKey(nil, at, kind, id), []byte(collection))
			}
		}
	}
	return h, true
}

// clear deletes the keys of a range, but for those that keep wants, and the mark.
func (a *Applier) clear(ctx context.Context, lo, hi []byte, keep func(key, value []byte) (bool, error)) error {
	mark := recordKey(format.RestoringName)
	var next []byte // where the following transaction goes on
	for more := true; more; lo = next {
		err := a.engine.Update(ctx, false, func(tx storage.Tx) (err error) {
			it, err := tx.Iterate(lo, hi)
			if err != nil {
				return err
			}
			defer func() { err = errs.First(err, it.Close()) }()
			more = false
			n := 0
			for ok := it.First(); ok; ok = it.Next() {
				if bytes.Equal(it.Key(), mark) {
					continue
				}
				if keep != nil {
					kept, err := keep(it.Key(), it.Value())
					if err != nil {
						return err
					}
					if kept {
						continue
					}
				}
				tx.Delete(bytes.Clone(it.Key()))
				if n++; n == applyOps {
					next, more = append(bytes.Clone(it.Key()), 0), true
					break
				}
			}
			return it.Error()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// removeDeletions removes the records of deletions that the database has removed since
// the base, which had none up to an etag.
func (a *Applier) removeDeletions(ctx context.Context, walked uint64) error {
	until, err := counters.Walked(a.engine)
	if err != nil || until <= walked {
		return err
	}
	nodes, err := settings.Origins(a.engine)
	if err != nil {
		return err
	}
	for node := range nodes {
		lo, hi := format.ChangeKey(nil, node, walked+1), format.ChangeKey(nil, node, min(until, math.MaxInt64)+1)
		err := a.clear(ctx, lo, hi, func(_, value []byte) (bool, error) {
			c, err := format.SplitChange(value)
			return err != nil || c.Kind != format.ChangeDelete, nil // a broken one is damage, which Verify finds
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// removeChunks removes the chunks of streams that no content has any more.
func (a *Applier) removeChunks(ctx context.Context) error {
	var live []uint64
	it, err := a.engine.Iterate(format.ContentPrefix(), format.PrefixEnd(format.ContentPrefix()))
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		c, decodeErr := format.DecodeContent(it.Value())
		if decodeErr != nil {
			return it.Close() // the chunks of a broken one are not known: all stay, and Verify tells
		}
		live = append(live, c.Stream)
	}
	if err = errs.First(errs.First(err, it.Error()), it.Close()); err != nil {
		return err
	}
	slices.Sort(live)
	return a.clear(ctx, []byte{format.SpaceChunks}, []byte{format.SpaceChunks + 1}, func(key, _ []byte) (bool, error) {
		stream, _, err := format.SplitChunkKey(key)
		_, found := slices.BinarySearch(live, stream)
		return found || err != nil, nil
	})
}

// Indexes are those of a database that is restored, but for those of its catalog, which
// are to be built.
type Indexes struct {
	Unfinished []index.Info      // that were being built
	Refused    []catalog.Refused // whose declarations are of no use
}

// Complete makes a database of what was applied: its indexes are to be built, and no
// backup of the original can be followed.
func (a *Applier) Complete(ctx context.Context) (rest Indexes, err error) {
	key := format.AppendKey(nil, format.SpaceMeta, format.IndexesName)
	var record catalog.Record
	value, closer, err := a.engine.Get(key)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return rest, err
	}
	indexes := err == nil
	if indexes {
		err = json.Unmarshal(value, &record)
		if err := errs.First(err, closer.Close()); err != nil {
			return rest, fmt.Errorf("record of indexes: %w: %w", errs.ErrCorrupt, err)
		}
		rest.Unfinished, rest.Refused = record.ForRebuild()
	}
	return rest, a.engine.Update(ctx, true, func(tx storage.Tx) error {
		Forget(tx)
		tx.Delete(recordKey(format.FloorPrefix + format.BackupFloor))
		if indexes {
			return env.SetJSON(tx, key, record)
		}
		return nil
	})
}
