package lsm_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay/internal/sealed"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// benchKeys is how many keys are read: some 60 MB, which is more than the cache takes.
const benchKeys = 100_000

// BenchmarkSealed compares an encrypted database with a plain one. The parts of a pair follow one another, so that
// their ratio can be taken: go test -run xxx -bench Sealed -count 10.
func BenchmarkSealed(b *testing.B) {
	value := make([]byte, 600)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(value)
	open := func(b *testing.B, dir string, keys sealed.Keys) *lsm.Engine {
		e, err := lsm.Open(dir, lsm.Options{EncryptionKeys: keys, CacheBytes: 8 << 20})
		if err != nil {
			b.Fatal(err)
		}
		return e
	}
	table := func(b *testing.B, e *lsm.Engine, n int) {
		w, err := e.NewTable(true)
		if err != nil {
			b.Fatal(err)
		}
		for i := range n {
			copy(value, fmt.Sprint(i))
			_, _ = random.Read(value[20:300]) // half of a value can be compressed
			if err := w.Set(fmt.Appendf(nil, "%09d", i), value); err != nil {
				b.Fatal(err)
			}
		}
		t, err := w.Finish()
		if err != nil {
			b.Fatal(err)
		}
		if err := e.Ingest(ctx, []storage.Table{t}, nil); err != nil {
			b.Fatal(err)
		}
	}
	works := []struct {
		name string
		fill bool
		run  func(b *testing.B, e *lsm.Engine)
	}{
		{"insert", false, func(b *testing.B, e *lsm.Engine) {
			for i := range b.N {
				if err := set(e, fmt.Sprintf("%09d", i), string(value)); err != nil {
					b.Fatal(err)
				}
			}
		}},
		{"insert32", false, func(b *testing.B, e *lsm.Engine) {
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := set(e, fmt.Sprint(rand.Uint64()), string(value)); err != nil {
						b.Error(err)
					}
				}
			})
		}},
		{"get", true, func(b *testing.B, e *lsm.Engine) {
			for range b.N {
				_, closer, err := e.Get(fmt.Appendf(nil, "%09d", rand.IntN(benchKeys)))
				if err != nil {
					b.Fatal(err)
				}
				closer.Close()
			}
		}},
		{"getcached", true, func(b *testing.B, e *lsm.Engine) {
			for range b.N {
				_, closer, err := e.Get(fmt.Appendf(nil, "%09d", rand.IntN(5000)))
				if err != nil {
					b.Fatal(err)
				}
				closer.Close()
			}
		}},
		{"scan", true, func(b *testing.B, e *lsm.Engine) {
			for range b.N {
				it, err := e.Iterate(nil, nil)
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for more := it.First(); more; more = it.Next() {
					n += len(it.Value())
				}
				if err := it.Close(); err != nil || n != benchKeys*len(value) {
					b.Fatal(n, err)
				}
			}
		}},
		{"bulk", false, func(b *testing.B, e *lsm.Engine) {
			for range b.N {
				table(b, e, benchKeys/2)
			}
		}},
	}
	for _, w := range works {
		for _, kind := range []string{"plain", "encrypted"} {
			b.Run(w.name+"/"+kind, func(b *testing.B) {
				var keys sealed.Keys
				if kind == "encrypted" {
					keys = keysOf("a")
				}
				e := open(b, b.TempDir(), keys)
				defer e.Close()
				if w.fill {
					table(b, e, benchKeys)
				}
				b.ResetTimer()
				w.run(b, e)
				b.StopTimer()
			})
		}
	}
}
