package storage

import "context"

// MaxExpected is how many keys Expect takes at most. It leaves out the rest.
const MaxExpected = 1000

type expectedKeys struct{}

// Expect returns a context for Engine.Update which says that the transaction will probably read these
// keys one by one. An engine that asks a server for each of them can then get them together, and with
// those of other calls. It is a hint: the transaction may read other keys, or none. The keys must not be
// changed while the context is in use.
func Expect(ctx context.Context, keys [][]byte) context.Context {
	if len(keys) == 0 {
		return ctx
	}
	return context.WithValue(ctx, expectedKeys{}, keys[:min(len(keys), MaxExpected)])
}

// Expected returns the keys that Expect was given, or nil. They must not be changed.
func Expected(ctx context.Context) [][]byte {
	keys, _ := ctx.Value(expectedKeys{}).([][]byte)
	return keys
}
