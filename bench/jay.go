package main

import (
	"context"
	"errors"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/fixture"
)

// collection holds every document that Jay writes here.
const collection = "Orders"

// jayEngine is Jay by its public API, with default options but for the
// durability and, where a workload says so, the cache.
type jayEngine struct {
	dir      string
	settings settings
	ctx      context.Context
	db       *jay.DB
	batch    jay.Batch
	ids      []string // of each document
}

func openJay(dir string, s settings) (engine, error) {
	j := &jayEngine{dir: dir, settings: s, ctx: context.Background(), ids: make([]string, s.capacity)}
	return j, j.open()
}

func (j *jayEngine) open() (err error) {
	options := jay.Options{
		Durability:   jay.Relaxed,
		OrderedGUIDs: j.settings.ids == guidV7,
		CacheBytes:   j.settings.cacheBytes,
	}
	if j.settings.synced {
		options.Durability = jay.Synced
	}
	j.db, err = jay.Open(j.dir, &options)
	return err
}

func (j *jayEngine) insert(first int, bodies [][]byte) error {
	j.batch.Reset()
	for _, body := range bodies {
		if j.settings.ids == hilo {
			j.batch.Store(collection, body)
		} else {
			j.batch.Insert("", body, jay.InCollection(collection))
		}
	}
	written, err := j.db.Apply(j.ctx, &j.batch)
	for i := range written {
		j.ids[first+i] = written[i].ID
	}
	return err
}

func (j *jayEngine) insertOne(i int, body []byte) error {
	written, err := j.db.Store(j.ctx, collection, body)
	j.ids[i] = written.ID
	return err
}

func (j *jayEngine) update(numbers []int, bodies [][]byte) error {
	j.batch.Reset()
	for i, number := range numbers {
		j.batch.Replace(j.ids[number], bodies[i], jay.InCollection(collection))
	}
	_, err := j.db.Apply(j.ctx, &j.batch)
	return err
}

func (j *jayEngine) remove(numbers []int) error {
	j.batch.Reset()
	for _, number := range numbers {
		j.batch.Delete(j.ids[number])
	}
	_, err := j.db.Apply(j.ctx, &j.batch)
	return err
}

func (j *jayEngine) get(i int) ([]byte, error) {
	doc, err := j.db.Get(j.ctx, j.ids[i])
	if errors.Is(err, jay.ErrNotFound) {
		return nil, errGone
	}
	if err != nil {
		return nil, err
	}
	return doc.Body(), nil
}

func (j *jayEngine) scan(fn func(body []byte)) (int, error) {
	n := 0
	for doc, err := range j.db.Documents(j.ctx, jay.Scan{Collection: collection}) {
		if err != nil {
			return n, err
		}
		fn(doc.Body())
		n++
	}
	return n, nil
}

func (j *jayEngine) restCompacted() error {
	if err := errors.Join(j.db.Close(), fixture.Compact(j.dir)); err != nil {
		return err
	}
	return j.open()
}

func (j *jayEngine) close() error { return j.db.Close() }
