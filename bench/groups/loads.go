package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/report"
)

// sides are two databases with the same documents: an index of orders reads a member of their customer in one of them, and the reference itself
// in the other.
type sides struct {
	db     [2]*jay.DB
	serial atomic.Int64
	of     [2]jay.Index
}

// referred are how many orders the customers have that are changed.
var referred = []int{0, 10, 1000}

// loads prints what an index that loads documents costs beside one that does not: n orders of n/10 customers, and those of referred.
func loads(ctx context.Context, dbs [2]*jay.DB, dir string, n, pairs int) error {
	s := &sides{db: dbs, of: [2]jay.Index{{Name: "of", Fields: []string{"Customer"}}, {Name: "of", Fields: []string{"load(Customer).Name"}}}}
	for _, db := range s.db {
		if err := fillLoads(ctx, db, n); err != nil {
			return err
		}
	}
	machine, err := report.ThisMachine(dir)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n\n%d pairs\n\n| %d orders, %d customers | does not load | loads | ratio (least–most) |\n|---|---:|---:|---:|\n", machine.String(), pairs, n, n/10)
	build := func(i int) error { return s.db[i].EnsureIndex(ctx, "Orders", s.of[i]) }
	drop := func(i int) error { return s.db[i].DropIndex(ctx, "Orders", s.of[i].Name) }
	if err := inTurns("build", max(1, pairs/4), 1, build, drop); err != nil {
		return err
	}
	for i := range s.db {
		if err := build(i); err != nil {
			return err
		}
	}
	const some = 320
	for _, writers := range []int{1, 32} {
		err := inTurns(fmt.Sprintf("durable insert of an order, %d at once", writers), pairs, some, func(i int) error { return s.insert(ctx, i, n, writers, some) }, nil)
		if err != nil {
			return err
		}
	}
	batch := func(i int) error {
		var b jay.Batch
		for range some {
			b.Put(fmt.Sprintf("orders/new-%d", s.serial.Add(1)), order(rand.IntN(n/10)), jay.InCollection("Orders"))
		}
		_, err := s.db[i].Apply(ctx, &b)
		return err
	}
	if err := inTurns(fmt.Sprintf("an order of a batch of %d", some), pairs, some, batch, nil); err != nil {
		return err
	}
	for _, m := range referred {
		id := fmt.Sprintf("customers/of-%d", m)
		err := inTurns(fmt.Sprintf("change of the name of a customer of %d orders", m), pairs, 8, func(i int) error {
			for range 8 {
				if _, err := s.db[i].Put(ctx, id, json.RawMessage(fmt.Sprintf(`{"Name":"name-%d"}`, s.serial.Add(1)))); err != nil {
					return err
				}
			}
			return nil
		}, nil)
		if err != nil {
			return err
		}
	}
	err = inTurns("change of another member of a customer of 1000 orders", pairs, 8, func(i int) error {
		for range 8 {
			if _, err := s.db[i].Patch(ctx, "customers/of-1000", jay.Set("Phone", s.serial.Add(1))); err != nil {
				return err
			}
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}
	return inTurns("query of the orders of a customer", pairs, 200, func(i int) error { return s.query(ctx, i, n) }, nil)
}

// fillLoads stores orders and customers: of the first ones n, and of the last ones n/10 and those of referred.
func fillLoads(ctx context.Context, db *jay.DB, n int) error {
	w, err := db.BulkInsert(nil)
	if err != nil {
		return err
	}
	put := func(id, in string, body json.RawMessage) {
		if err == nil {
			_, err = w.Put(ctx, id, body, jay.InCollection(in))
		}
	}
	for i := range n / 10 {
		put(fmt.Sprintf("customers/%d", i), "Customers", json.RawMessage(fmt.Sprintf(`{"Name":"customer-%d","Note":"%0120d"}`, i, i)))
	}
	for i := range n {
		put(fmt.Sprintf("orders/%08d", i), "Orders", order(i%(n/10)))
	}
	for _, m := range referred {
		put(fmt.Sprintf("customers/of-%d", m), "Customers", json.RawMessage(`{"Name":"name"}`))
		for i := range m {
			put(fmt.Sprintf("orders/of-%d-%d", m, i), "Orders", json.RawMessage(fmt.Sprintf(`{"Customer":"customers/of-%d"}`, m)))
		}
	}
	return errors.Join(err, w.Close(), db.Compact(ctx))
}

// order returns the body of an order of a customer, of some 200 bytes.
func order(customer int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"Customer":"customers/%d","Total":%d.5,"At":"2026-01-05T12:00:00Z","Note":"%0110d"}`, customer, customer%1000, customer))
}

// insert stores orders durably, by so many goroutines.
func (s *sides) insert(ctx context.Context, i, n, writers, orders int) error {
	var all sync.WaitGroup
	failed := make([]error, writers)
	for w := range writers {
		all.Go(func() {
			for range orders / writers {
				if _, err := s.db[i].Put(ctx, fmt.Sprintf("orders/new-%d", s.serial.Add(1)), order(rand.IntN(n/10)), jay.InCollection("Orders")); err != nil {
					failed[w] = err
				}
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// query asks for the orders of 200 customers.
func (s *sides) query(ctx context.Context, i, n int) error {
	for range 200 {
		k := rand.IntN(n / 10)
		text := fmt.Sprintf("from Orders where %s = '%s-%d'", "load(Customer).Name", "customer", k)
		if i == 0 {
			text = fmt.Sprintf("from Orders where Customer = 'customers/%d'", k)
		}
		q, err := s.db[i].RQL(text, nil)
		if err != nil {
			return err
		}
		rows, err := q.NoScan().All(ctx)
		if err != nil {
			return err
		}
		if len(rows) < 10 {
			return fmt.Errorf("%s: %d orders", text, len(rows))
		}
	}
	return nil
}
