package attachments

import (
	"context"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// checkEvery is how many records are read between two looks at the context.
const checkEvery = 4096

// MaxRemoving is how many streams Removing counts.
const MaxRemoving = 10_000

// Removing returns how many streams are to be removed, MaxRemoving if there are more.
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
