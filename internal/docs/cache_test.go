package docs_test

import (
	"testing"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/metadata"
)

// Ensure that a document that is read twice is cached, until a write of it begins; and that what
// was read before a write enters neither beside the write nor after it.
func TestCache_Writes(t *testing.T) {
	const id = "things/1"
	doc := docs.Make(nil, id, metadata.Header{Etag: 1}, []byte(`{}`))
	write := func(c *docs.Cache) (end func()) {
		hash := c.Begin(id)
		return func() { c.End([]uint64{hash}) }
	}
	for _, test := range []struct {
		name   string
		after  func(c *docs.Cache, enter func()) // the miss; enter enters what the reader has read
		cached bool
	}{
		{"no write", func(_ *docs.Cache, enter func()) { enter() }, true},
		{"a write begins after it", func(c *docs.Cache, enter func()) { enter(); write(c)() }, false},
		{"beside a write", func(c *docs.Cache, enter func()) { end := write(c); enter(); end() }, false},
		{"after a write", func(c *docs.Cache, enter func()) { write(c)(); enter() }, false},
	} {
		c := docs.NewCache(1 << 20)
		c.Get([]byte(id)) // the first miss only leaves a fingerprint
		_, ticket := c.Get([]byte(id))
		if !ticket.Valid {
			t.Fatalf("%s: the second miss gives no ticket", test.name)
		}
		test.after(c, func() { c.Enter(ticket, &doc) })
		if got, _ := c.Get([]byte(id)); (got != nil) != test.cached {
			t.Errorf("%s: cached %v, want %v", test.name, got != nil, test.cached)
		}
	}

	// A read that begins beside a write reads what the write replaces.
	c := docs.NewCache(1 << 20)
	end := write(c)
	c.Get([]byte(id))
	if _, ticket := c.Get([]byte(id)); ticket.Valid {
		t.Error("a miss beside a write gives a ticket")
	}
	end()
	if _, ticket := c.Get([]byte(id)); !ticket.Valid {
		t.Error("a miss after a write gives no ticket")
	}
}
