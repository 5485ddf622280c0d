// Package attachments measures attachments beside files: putting and reading streams of
// several sizes, in turns.
//
//	go run ./measure attachments [-rounds R] [-smoke]
//
// A file is written as a careful program writes one: beside its name, synced, renamed, and
// its directory synced. The bytes are random, and differ in each round, so that no
// content is there before. Reads follow the writes, from caches. Each line is a median of the rounds.
package attachments

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/harness"
	"github.com/jaydb/jay/bench/stats"
)

// Measurement is this one.
var Measurement = harness.Measurement{
	Name: "attachments", About: "attachments beside files that are written carefully", Rounds: 9,
	New: func(flags *flag.FlagSet) func(*harness.Run) error {
		return measure
	},
}

// side is one way to keep streams of bytes.
type side struct {
	name string
	put  func(name string, content []byte) error
	get  func(name string) ([]byte, error)
}

// perRound is how many streams of a size a round puts, so that small ones take long
// enough to be measured.
func perRound(size int) int { return max(1, min(50, 8<<20/size)) }

func measure(r *harness.Run) (err error) {
	sizes := []int{1 << 10, 64 << 10, 1 << 20, 32 << 20}
	if r.Smoke {
		sizes = []int{1 << 10, 1 << 20}
	}
	db, err := jay.Open(filepath.Join(r.Dir, "db"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	files := filepath.Join(r.Dir, "files")
	if err := os.Mkdir(files, 0o777); err != nil {
		return err
	}
	sides := []side{attachments(db), plainFiles(files)}
	fmt.Printf("%-10s %-12s %12s %12s %12s %12s\n", "size", "side", "put", "put MB/s", "get", "get MB/s")
	for _, size := range sizes {
		put, get := make([][]time.Duration, len(sides)), make([][]time.Duration, len(sides))
		err := r.Turns(len(sides), func(round, i int) error {
			p, g, err := sides[i].round(round, size)
			if err != nil {
				return fmt.Errorf("%s of %d bytes: %w", sides[i].name, size, err)
			}
			put[i], get[i] = append(put[i], p), append(get[i], g)
			return nil
		})
		if err != nil {
			return err
		}
		for i, s := range sides {
			p, g := stats.Median(put[i]), stats.Median(get[i])
			fmt.Printf("%-10d %-12s %12v %12.1f %12v %12.1f\n", size, s.name, p, float64(size)/1e6/p.Seconds(), g, float64(size)/1e6/g.Seconds())
		}
	}
	return nil
}

// round puts and reads streams, and returns how long one of them took.
func (s side) round(round, size int) (put, get time.Duration, err error) {
	n := perRound(size)
	contents := make([][]byte, n)
	for i := range contents {
		contents[i] = make([]byte, size)
		random := rand.NewChaCha8([32]byte{byte(round), byte(i), s.name[0]})
		_, _ = random.Read(contents[i]) // it never fails
	}
	name := func(i int) string { return fmt.Sprintf("%d-%d", size, i) }
	begun := time.Now()
	for i, content := range contents {
		if err := s.put(name(i), content); err != nil {
			return 0, 0, err
		}
	}
	put = time.Since(begun) / time.Duration(n)
	begun = time.Now()
	for i, content := range contents {
		got, err := s.get(name(i))
		if err == nil && !bytes.Equal(got, content) {
			err = errors.New("other bytes came back")
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return put, time.Since(begun) / time.Duration(n), nil
}

// attachments keeps streams as attachments of a document each.
func attachments(db *jay.DB) side {
	ctx := context.Background()
	return side{
		name: "attachment",
		put: func(name string, content []byte) error {
			if found, err := db.Exists(ctx, name); err != nil {
				return err
			} else if !found {
				if _, err := db.Put(ctx, name, []byte(`{}`)); err != nil {
					return err
				}
			}
			_, err := db.Attachments(name).Put(ctx, "stream", bytes.NewReader(content))
			return err
		},
		get: func(name string) ([]byte, error) {
			r, err := db.Attachments(name).Get(ctx, "stream")
			if err != nil {
				return nil, err
			}
			content := bytes.NewBuffer(make([]byte, 0, r.Info().Size))
			_, err = io.Copy(content, r)
			return content.Bytes(), errors.Join(err, r.Close())
		},
	}
}

// plainFiles keeps streams as files.
func plainFiles(dir string) side {
	return side{
		name: "file",
		put: func(name string, content []byte) error {
			final := filepath.Join(dir, name)
			f, err := os.Create(final + ".tmp")
			if err != nil {
				return err
			}
			if _, err := f.Write(content); err != nil {
				return errors.Join(err, f.Close())
			}
			if err := errors.Join(f.Sync(), f.Close()); err != nil {
				return err
			}
			if err := os.Rename(final+".tmp", final); err != nil {
				return err
			}
			d, err := os.Open(dir)
			if err != nil {
				return err
			}
			return errors.Join(d.Sync(), d.Close())
		},
		get: func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, name)) },
	}
}
