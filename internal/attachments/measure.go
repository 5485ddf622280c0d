package attachments

import (
	"context"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Figures are sums over all contents.
type Figures struct {
	Attachments, Bytes    int64 // of all documents
	Contents, StoredBytes int64 // each content once
	Removing              int64 // streams that are to be removed
}

// checkEvery is how many contents are read between two looks at the context.
const checkEvery = 4096

// Measure adds up the contents of a snapshot. It reads a record for each.
func Measure(ctx context.Context, r storage.Reader) (f Figures, err error) {
	err = each(ctx, r, format.ContentPrefix(), func(it storage.Iterator) error {
		c, err := format.DecodeContent(it.Value())
		f.Attachments += int64(c.References)
		f.Bytes += int64(c.References) * c.Size
		f.Contents++
		f.StoredBytes += c.Size
		return err
	})
	if err != nil {
		return f, err
	}
	return f, each(ctx, r, format.GarbagePrefix(), func(storage.Iterator) error { f.Removing++; return nil })
}

// each calls fn at all keys with a prefix.
func each(ctx context.Context, r storage.Reader, prefix []byte, fn func(storage.Iterator) error) (err error) {
	it, err := r.Iterate(prefix, format.PrefixEnd(prefix))
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := fn(it); err != nil {
			return err
		}
	}
	return it.Error()
}
