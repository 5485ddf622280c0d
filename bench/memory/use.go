package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
)

// use does one thing after the other, and some at a time.
func use(ctx context.Context, db *jay.DB, dir string, docs int) error {
	if err := db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Collections: map[string]jay.RevisionRule{"Large": {Keep: 3}, "Notes": {Keep: 2}}}); err != nil {
		return err
	}
	steps := [][]func() error{
		{bulk(ctx, db, 0, docs/2), bulk(ctx, db, docs/2, docs)},
		{
			ensure(ctx, db, jay.Index{Name: "Names", Fields: []string{"Name"}}),
			ensure(ctx, db, jay.Index{Name: "Words", Kind: "text", Fields: []string{"Text"}}),
			ensure(ctx, db, jay.Index{Name: "Alike", Kind: "vectors", Fields: []string{"V"}, Options: map[string]string{"dimensions": "16"}}),
			ensure(ctx, db, jay.Index{Name: "Spots", Kind: "places", Fields: []string{"spatial.point(Lat, Lng)"}}),
			func() error {
				return patiently(func() error {
					return jay.ComputedOf(db).Ensure(ctx, jay.Computed{Name: "Notes/Doubled", Maps: []index.Map{{Collection: "Notes", Select: []index.Member{{Name: "Twice", Expression: "N * 2"}, {Name: "Name", Expression: "Name"}}}}})
				})
			},
		},
		{large(ctx, db, 1), large(ctx, db, 2), attach(ctx, db), bulk(ctx, db, docs, docs+docs/4), change(ctx, db)},
		{func() error { return db.Flush(ctx) }},
		{
			ask(ctx, db, "from Notes order by Text"), ask(ctx, db, "from Notes order by Text desc"), ask(ctx, db, "from Notes group by Name select Name, count()"),
			ask(ctx, db, "from Notes where search(Text, 'oak') order by score()"), ask(ctx, db, "from Notes where spatial.within(spatial.point(Lat, Lng), spatial.circle(5000, 50, 10)) order by N"),
			ask(ctx, db, "from Notes order by N select distinct Text"), ask(ctx, db, "from Large order by Text"), ask(ctx, db, "from index 'Notes/Doubled' where Twice > 1000 order by Name"),
			large(ctx, db, 3),
		},
		{
			func() error { _, err := db.Backup(ctx, io.Discard); return err },
			func() error { return each(db.Changes(ctx, "", jay.UntilCaughtUp())) },
			func() error { return each(db.Documents(ctx, jay.Scan{})) },
			func() error { return each(db.Revisions().All(ctx, "Large")) },
			subscribe(ctx, db),
			func() error { _, err := db.Sweep(ctx); return err },
			change(ctx, db), large(ctx, db, 4),
		},
	}
	for _, step := range steps {
		var all sync.WaitGroup
		errs := make([]error, len(step))
		for i, do := range step {
			all.Go(func() { errs[i] = do() })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// each reads all elements of a sequence.
func each[T any](all func(yield func(T, error) bool)) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// patiently repeats what finds too little memory at the moment, for a minute at most.
func patiently(do func() error) error {
	for begun := time.Now(); ; {
		err := do()
		if !errors.Is(err, jay.ErrMemory) || time.Since(begun) > time.Minute {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// bulk stores notes by a bulk writer.
func bulk(ctx context.Context, db *jay.DB, from, to int) func() error {
	return func() error {
		var w *jay.BulkWriter
		err := patiently(func() (err error) { w, err = db.BulkInsert(nil); return err })
		if err != nil {
			return err
		}
		for i := from; i < to; i++ {
			if _, err := w.Store(ctx, "Notes", note(i)); err != nil {
				return errors.Join(err, w.Close())
			}
		}
		return w.Close()
	}
}

// attach stores and reads attachments of 5 MiB.
func attach(ctx context.Context, db *jay.DB) func() error {
	return func() error {
		if _, err := db.Put(ctx, "albums/1", json.RawMessage(`{}`)); err != nil {
			return err
		}
		for i := range 8 {
			name := fmt.Sprint("photo", i)
			if _, err := db.Attachments("albums/1").Put(ctx, name, io.LimitReader(rand.NewChaCha8([32]byte{byte(i)}), 5*mib)); err != nil {
				return err
			}
			r, err := db.Attachments("albums/1").Get(ctx, name)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, r)
			if err := errors.Join(err, r.Close()); err != nil {
				return err
			}
		}
		return nil
	}
}

// change changes notes in transactions, and lets some expire.
func change(ctx context.Context, db *jay.DB) func() error {
	return func() error {
		for i := range 200 {
			err := db.Update(ctx, func(tx *jay.Tx) error {
				for j := range 20 {
					if _, err := tx.Put(ctx, fmt.Sprintf("changed/%d", (i*20+j)%3000), note(i*j), jay.InCollection("Notes"), jay.ExpiresAt(time.Now().Add(time.Duration(j)*time.Second))); err != nil {
						return err
					}
				}
				return nil
			}, jay.Retry())
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// subscribe sends all notes to a worker.
func subscribe(ctx context.Context, db *jay.DB) func() error {
	return func() error {
		if err := db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "all", Query: "from Notes where N > 1000"}); err != nil {
			return err
		}
		return db.Subscriptions().Work(ctx, "all", &jay.WorkOptions{UntilCaughtUp: true}, func(context.Context, *jay.SubscriptionBatch) error { return nil })
	}
}

// note makes a document of some 400 bytes.
func note(i int) json.RawMessage {
	r := rand.New(rand.NewPCG(1, uint64(i)))
	words := []string{"oak", "elm", "ash", "fir", "yew", "box", "bay", "fig"}
	var text strings.Builder
	for range 30 {
		fmt.Fprintf(&text, "%s%d ", words[r.IntN(len(words))], r.IntN(50))
	}
	v := make([]float32, 16)
	for i := range v {
		v[i] = r.Float32()
	}
	out, err := json.Marshal(map[string]any{"N": r.IntN(1 << 30), "Name": fmt.Sprint("n", r.IntN(5000)), "Text": text.String(), "V": v, "Lat": r.Float64()*170 - 85, "Lng": r.Float64()*360 - 180})
	if err != nil {
		panic(err)
	}
	return out
}

// turn makes calls of the database write and read large documents one at a time: each more that is written at the same time takes several times its
// size. Requests, builds, scans and backups do it besides.
var turn sync.Mutex

// large writes, changes and reads documents of up to 4 MiB.
func large(ctx context.Context, db *jay.DB, series int) func() error {
	return func() error {
		for i := range 10 {
			id := fmt.Sprintf("large/%d-%d", series, i%5)
			turn.Lock()
			_, err := db.Put(ctx, id, largeBody(largest>>(i%5)), jay.InCollection("Large"))
			if err == nil {
				_, err = db.Get(ctx, id)
			}
			turn.Unlock()
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// largeBody is a document of so many bytes.
func largeBody(size int) json.RawMessage {
	return json.RawMessage(`{"Text":"` + strings.Repeat("acorns and oaks ", (size-100)/16) + `"}`)
}

func ensure(ctx context.Context, db *jay.DB, ix jay.Index) func() error {
	return func() error { return patiently(func() error { return db.EnsureIndex(ctx, "Notes", ix) }) }
}

// ask reads all answers of a query. One that needs more than its share is refused, as is right.
func ask(ctx context.Context, db *jay.DB, rql string) func() error {
	return func() error {
		q, err := db.RQL(rql, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", rql, err)
		}
		for _, err := range q.Iter(ctx) {
			if errors.Is(err, jay.ErrMemory) || errors.Is(err, jay.ErrQuery) && strings.Contains(err.Error(), "MaxQueryBytes") {
				return nil
			}
			if err != nil {
				return fmt.Errorf("%s: %w", rql, err)
			}
		}
		return nil
	}
}

// client sends requests to a database of a server.
type client struct {
	url, name string
}

func (c *client) create(ctx context.Context) error {
	return c.do(ctx, "PUT", c.url+"/admin/databases?name="+c.name, []byte(`{}`))
}

// do sends a request, and reads its reply. One that needs more than its share is refused, as is right.
func (c *client) do(ctx context.Context, method, address string, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	head, err := io.ReadAll(io.LimitReader(reply.Body, 500))
	if err == nil {
		_, err = io.Copy(io.Discard, reply.Body)
	}
	if s := reply.StatusCode; err == nil && s >= 300 && s != http.StatusTooManyRequests && s != http.StatusRequestEntityTooLarge {
		err = fmt.Errorf("%s %s: %s: %s", method, address, reply.Status, head)
	}
	return err
}

// use sends requests, several at a time.
func (c *client) use(ctx context.Context) error {
	base := c.url + "/databases/" + c.name
	query := func(path, rql string) func(int) error {
		text, err := json.Marshal(map[string]string{"Query": rql})
		return func(int) error { return errors.Join(err, c.do(ctx, "POST", base+path, text)) }
	}
	requests := []func(i int) error{
		func(i int) error {
			return c.do(ctx, "PUT", base+"/docs?id="+url.QueryEscape(fmt.Sprint("http/", i)), largeBody(largest>>(i%5)))
		},
		func(i int) error { return c.do(ctx, "GET", base+"/docs?id=large/1-1", nil) },
		func(i int) error {
			return c.do(ctx, "PUT", base+"/docs?id="+url.QueryEscape(fmt.Sprint("small/", i)), note(i))
		},
		query("/queries", "from Notes order by Text limit 1000"),
		query("/queries", "from Notes where search(Text, 'oak') limit 500"),
		query("/streams/queries", "from Notes where N > 1000 limit 5000"),
		query("/queries", "from Large limit 2"),
		func(i int) error {
			var b bytes.Buffer
			b.WriteString(`{"Commands":[`)
			for j := range 500 {
				if j > 0 {
					b.WriteByte(',')
				}
				fmt.Fprintf(&b, `{"Id":"bulk/%d-%d","Type":"PUT","Document":%s}`, i, j, note(j))
			}
			b.WriteString(`]}`)
			return c.do(ctx, "POST", base+"/bulk_docs", b.Bytes())
		},
	}
	var all sync.WaitGroup
	errs := make([]error, 8)
	for worker := range errs {
		all.Go(func() {
			for i := range 40 {
				if err := requests[(worker+i)%len(requests)](i); err != nil {
					errs[worker] = err
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
