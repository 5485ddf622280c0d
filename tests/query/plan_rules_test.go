package query_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that an equality that disregards case binds the fields behind it and
// gives the order, whatever spellings there are.
func TestPlan_Spellings(t *testing.T) {
	db := memory(t, nil)
	shop(t, db)
	put(t, db, "orders/x", `{"Status":"SENT","Total":98,"@metadata":{"@collection":"Orders"}}`)
	must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"Status", "-Total"}}))
	tests := []struct {
		rql       string
		documents int64 // read
		first     string
	}{
		{`from Orders where Status = 'PAID' order by Total desc limit 3`, 3, "orders/157"},
		{`from Orders where Status = 'paid' and Total > 96 order by Total desc`, 3, "orders/157"},
		{`from Orders where Status = 'sent' and Total > 97 order by id()`, 3, "orders/014"},
		{`from Orders where Status = 'gone' and Total > 96`, 0, ""},
		{`from Orders where Status in ('PAID','Gone') and Total = 99`, 1, "orders/157"},
	}
	for _, test := range tests {
		t.Run(test.rql, func(t *testing.T) {
			q, err := db.RQL(test.rql, nil)
			must(t, err)
			e, err := q.Explain(ctx)
			must(t, err)
			got := rows(t, db, test.rql)
			if e.Documents != test.documents || (test.first != "" && (len(got) == 0 || got[0] != test.first)) {
				t.Errorf("got %v\n%s", got, e)
			}
		})
	}
}

// Ensure that an index can be dropped while it is being built, and that a
// caller that waits for it gets the error.
func TestDropIndex_WhileBuilding(t *testing.T) {
	t.Parallel()
	db := memory(t, &jay.Options{Durability: jay.Relaxed})
	var b jay.Batch
	for i := range 20_000 {
		b.Put(fmt.Sprintf("orders/%d", i), json.RawMessage(fmt.Sprintf(`{"N":%d}`, i)), jay.InCollection("Orders"))
	}
	_, err := db.Apply(ctx, &b)
	must(t, err)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	waited := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		close(started)
		waited <- db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"N"}})
	}()
	<-started
	if err := db.EnsureIndex(cancelled, "Orders", jay.Index{Fields: []string{"N"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for {
		err := db.DropIndex(ctx, "Orders", "N")
		if err == nil {
			break
		}
		if !errors.Is(err, jay.ErrIndex) {
			t.Fatal(err)
		}
	}
	if err := <-waited; err != nil && !errors.Is(err, jay.ErrIndex) {
		t.Errorf("who waits: %v", err)
	}
	if list, err := db.Indexes(ctx, ""); len(list) != 0 || err != nil {
		t.Errorf("left: %v, %v", list, err)
	}
	must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"N"}}))
	if n, err := db.Query("Orders").Where(jay.Lt("N", 100)).NoScan().Count(ctx); n != 100 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}
