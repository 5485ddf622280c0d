package attachments

import (
	"context"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// checkEvery is the number of records between two checks of the context.
const checkEvery = 4096

// MaxRemoving is the number at which Removing stops counting.
const MaxRemoving = 10_000

// Removing returns the number of streams that are marked for removal, at most MaxRemoving.
func Removing(r storage.Reader) (n int64, err error) {
	prefix := format.GarbagePrefix()
	it, err := r.Iterate(prefix, format.PrefixEnd(prefix))
	if err != nil {
		return 0, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok && n < MaxRemoving; ok = it.Next() {
		n++
	}
	return n, it.Error()
}

// each calls fn with an iterator at each key that has the prefix.
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
