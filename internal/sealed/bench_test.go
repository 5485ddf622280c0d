package sealed_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/jaydb/jay/internal/sealed"
)

// BenchmarkPages measures what encryption adds to the reads and writes of tables, BenchmarkFrames to writes of the log.
func BenchmarkPages(b *testing.B) {
	r := ring(b, "a")
	one := text(8000, 1)
	b.Run("write", func(b *testing.B) {
		w, err := r.NewPages(io.Discard, "f")
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(one)))
		b.ReportAllocs()
		for range b.N {
			if _, err := w.Write(one); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		file := writePages(b, r, "f", text(1<<20, 2), 1<<20)
		p, err := r.OpenPages(bytes.NewReader(file), int64(len(file)), "f")
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(one)))
		b.ReportAllocs()
		for i := range b.N {
			if _, err := p.ReadAt(one, int64(i*7919%(1<<20-8000))); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkFrames(b *testing.B) {
	w, err := ring(b, "a").NewFrames(io.Discard, "f")
	if err != nil {
		b.Fatal(err)
	}
	one := text(700, 1)
	b.SetBytes(int64(len(one)))
	b.ReportAllocs()
	for range b.N {
		if _, err := w.Write(one); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStream measures what encryption adds to a backup, by MiB of the compressed stream.
func BenchmarkStream(b *testing.B) {
	one := text(1<<20, 1)
	b.Run("write", func(b *testing.B) {
		w, _, err := sealed.NewStream(io.Discard, keysOf("a"), about)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(one)))
		b.ReportAllocs()
		for range b.N {
			if _, err := w.Write(one); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		stream := writeStream(b, keysOf("a"), one, 1<<20)
		b.SetBytes(int64(len(one)))
		b.ReportAllocs()
		for range b.N {
			if _, err := readStream(keysOf("a"), stream, about); err != nil {
				b.Fatal(err)
			}
		}
	})
}
