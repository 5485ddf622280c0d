package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/sqlkv"
)

// jayStore is a database of package jay.
type jayStore struct {
	url string
	db  *jay.DB
}

func (s *jayStore) open(context.Context) (err error) {
	if s.db == nil {
		// As many connections as the others have.
		s.db, err = jay.Open(s.url, &jay.Options{Engine: &sqlkv.Driver{Connections: connections}})
	}
	return err
}

func (s *jayStore) prepare(ctx context.Context, documents int) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	for _, collection := range []string{"Orders", "New"} {
		if err := s.db.EnsureIndex(ctx, collection, jay.Index{Fields: []string{"Bucket"}}); err != nil {
			return err
		}
	}
	return s.load(ctx, "Orders", documents, idOf)
}

func (s *jayStore) load(ctx context.Context, collection string, n int, id func(int) string) error {
	w, err := s.db.BulkInsert(nil)
	if err != nil {
		return err
	}
	for i := range n {
		if _, err := w.Put(ctx, id(i), json.RawMessage(body(i)), jay.InCollection(collection)); err != nil {
			w.Close()
			return err
		}
	}
	return w.Close()
}

func (s *jayStore) insert(ctx context.Context, id string, body []byte) error {
	_, err := s.db.Insert(ctx, id, json.RawMessage(body), jay.InCollection("New"))
	return err
}

func (s *jayStore) get(ctx context.Context, id string) error {
	_, err := s.db.Get(ctx, id)
	return err
}

func (s *jayStore) scan(ctx context.Context) (n int, err error) {
	for _, err := range s.db.Documents(ctx, jay.Scan{Collection: "Orders"}) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (s *jayStore) query(ctx context.Context, bucket int) (n int, err error) {
	found, err := s.db.Query("Orders").Where(jay.Eq("Bucket", bucket)).NoScan().All(ctx)
	return len(found), err
}

func (s *jayStore) view(ctx context.Context, bucket int) (int, error) { return s.query(ctx, bucket) }

func (s *jayStore) bulk(ctx context.Context, prefix string, n int) error {
	return s.load(ctx, "New", n, func(i int) string { return fmt.Sprint(prefix, i) })
}

func (s *jayStore) close() error {
	if s.db == nil {
		return nil
	}
	return s.db.Close()
}
