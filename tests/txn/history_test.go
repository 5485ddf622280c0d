package txn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/jaytest"
)

// chronicle is a history of transactions in the making. Its clock counts
// events, as that of history does.
type chronicle struct {
	db    *jay.DB
	typed *jay.Collection[Tagged]
	clock atomic.Int64

	mu   sync.Mutex
	txns []*txn // Guarded by mu.
}

// Tagged is a document that says which write it is of.
type Tagged struct {
	ID      string
	Version string `jay:"version"`
	By      string
}

// Ensure that transactions of 16 goroutines are serializable, beside plain
// writes and reads: no lost update, no write skew, no phantom, no dirty or
// intermediate read, and that those that lose have seen one moment all the
// same. The graph and the names of what it finds are those of graph_test.go.
func TestTx_History(t *testing.T) {
	for _, test := range []struct {
		name       string
		durability jay.Durability
	}{
		{"synced", jay.Synced},
		{"relaxed", jay.Relaxed},
	} {
		t.Run(test.name, func(t *testing.T) {
			rounds, each := 6, 60
			if testing.Short() {
				rounds = 1
			}
			committed, lost := 0, 0
			more := jaytest.Patience()
			for round := 0; round < rounds || more(lost > 0 && lost >= committed/50); round++ {
				db := memory(t, &jay.Options{Durability: test.durability})
				c := &chronicle{db: db, typed: collectionOf[Tagged](t, db, jay.Named("Users"))}
				concurrently(t, func(g int, random *rand.Rand) {
					for i := range each {
						c.step(t, fmt.Sprintf("%d.%d", g, i), random)
					}
				})
				for _, what := range anomalies(c.txns) {
					t.Error(what)
				}
				for _, txn := range c.txns {
					if txn.committed {
						committed++
					} else {
						lost++
					}
				}
				if t.Failed() {
					return
				}
			}
			t.Logf("%d transactions committed, %d came to nothing", committed, lost)
			if lost == 0 || lost < committed/50 {
				t.Error("hardly any transaction lost: the test does not test conflicts")
			}
		})
	}
}

// step does one thing of a goroutine.
func (c *chronicle) step(t *testing.T, name string, random *rand.Rand) {
	switch random.IntN(12) {
	case 0, 1:
		v := &visitor{txn: &txn{name: name, begin: c.clock.Add(1)}, random: random}
		err := c.db.View(ctx, func(tx *jay.Tx) error {
			for range 1 + random.IntN(4) {
				v.read(t, tx)
			}
			return nil
		})
		c.add(t, v.txn, err)
	case 2:
		v := &visitor{txn: &txn{name: name, begin: c.clock.Add(1)}, random: random}
		v.read(t, c.db)
		c.add(t, v.txn, nil)
	case 3:
		c.batch(t, name, random)
	default:
		c.update(t, name, random)
	}
}

// add notes a transaction that has ended.
func (c *chronicle) add(t *testing.T, txn *txn, err error) {
	txn.end = c.clock.Add(1)
	txn.committed = err == nil
	if err != nil && !errors.Is(err, jay.ErrConflict) && err != errGivenUp {
		t.Errorf("%s: %v", txn.name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.txns = append(c.txns, txn)
}

// batch writes without a transaction.
func (c *chronicle) batch(t *testing.T, name string, random *rand.Rand) {
	txn := &txn{name: name, begin: c.clock.Add(1)}
	var b jay.Batch
	for i := range 1 + random.IntN(3) {
		key := randomKey(random)
		a := act{kind: actWrite, key: key, token: fmt.Sprintf("%s.%d", name, i)}
		if i > 0 && random.IntN(3) == 0 {
			a.token = ""
			b.Delete(key)
		} else {
			b.Put(key, bodyOf(a.token), jay.InCollection(collectionOfKey(key)))
		}
		txn.acts = append(txn.acts, a)
	}
	metas, err := c.db.Apply(ctx, &b)
	if err == nil {
		txn.order = metas[0].Etag
	}
	c.add(t, txn, err)
}

// update runs a random transaction, half of them with Retry. Each run is a
// transaction of the history.
func (c *chronicle) update(t *testing.T, name string, random *rand.Rand) {
	var v *visitor
	begin := c.clock.Add(1)
	runs := 0
	end := func(err error) {
		if v.first.Etag > 0 {
			v.txn.order = v.first.Etag
		}
		for token, m := range v.identities { // made by the commit
			v.txn.acts = append(v.txn.acts, act{kind: actWrite, key: m.ID, token: token})
		}
		c.add(t, v.txn, err)
	}
	fn := func(tx *jay.Tx) error {
		if v != nil {
			end(jay.ErrConflict)
		}
		v = &visitor{txn: &txn{name: fmt.Sprintf("%s#%d", name, runs), begin: begin}, random: random, tx: tx, typed: c.typed.In(tx)}
		runs++
		defer func() { begin = c.clock.Add(1) }() // of the run that may follow
		for range 1 + random.IntN(6) {
			if random.IntN(2) == 0 {
				v.read(t, tx)
			} else {
				v.write(t)
			}
			if random.IntN(2) == 0 {
				runtime.Gosched()
			}
		}
		if random.IntN(20) == 0 {
			return errGivenUp
		}
		return nil
	}
	var opts []jay.TxOption
	if random.IntN(2) == 0 {
		opts = append(opts, jay.Retry(30))
	}
	end(c.db.Update(ctx, fn, opts...))
}

// visitor does the work of one transaction and notes it.
type visitor struct {
	txn    *txn
	random *rand.Rand
	tx     *jay.Tx
	typed  *jay.Collection[Tagged]

	first      jay.Metadata             // of the first write: its etag is the order of the commit
	identities map[string]*jay.Metadata // by token
	serial     int
}

func randomKey(random *rand.Rand) string {
	return fmt.Sprintf("%s/%d", []string{"users", "users", "orders", "x"}[random.IntN(4)], random.IntN(8))
}

func bodyOf(token string) json.RawMessage { return fmt.Appendf(nil, `{"By":%q}`, token) }

func tokenOf(t *testing.T, doc *jay.Document) string {
	var tagged Tagged
	if doc == nil {
		return ""
	}
	if err := doc.Decode(&tagged); err != nil || tagged.By == "" {
		t.Errorf("%s has body %s (%v)", doc.ID(), doc.Body(), err)
	}
	return tagged.By
}

func (v *visitor) saw(key, token string) {
	v.txn.acts = append(v.txn.acts, act{kind: actRead, key: key, token: token})
}

func (v *visitor) wrote(key, token string) {
	v.txn.acts = append(v.txn.acts, act{kind: actWrite, key: key, token: token})
}

// read reads in one way or another, from a transaction or the database.
func (v *visitor) read(t *testing.T, from interface {
	Get(ctx context.Context, id string) (*jay.Document, error)
	GetMany(ctx context.Context, ids ...string) ([]*jay.Document, error)
	Exists(ctx context.Context, id string) (bool, error)
	Documents(ctx context.Context, s jay.Scan) iter.Seq2[*jay.Document, error]
}) {
	switch v.random.IntN(6) {
	case 0:
		keys := []string{randomKey(v.random), randomKey(v.random), randomKey(v.random)}
		docs, err := from.GetMany(ctx, keys...)
		if err != nil {
			t.Error(err)
			return
		}
		for i, doc := range docs {
			v.saw(keys[i], tokenOf(t, doc))
		}
	case 1:
		key := randomKey(v.random)
		found, err := from.Exists(ctx, key)
		if err != nil {
			t.Error(err)
		} else if !found {
			v.saw(key, "")
		}
	case 2, 3:
		v.walk(t, from.Documents)
	default:
		key := randomKey(v.random)
		doc, err := from.Get(ctx, key)
		if err != nil && !errors.Is(err, jay.ErrNotFound) {
			t.Error(err)
			return
		}
		v.saw(key, tokenOf(t, doc))
	}
}

// scopes are what is walked over. None has the HiLo documents in it.
var scopes = []jay.Scan{
	{Collection: "Users"}, {Collection: "Orders"}, {Prefix: "users/"}, {Prefix: "x/"}, {Prefix: "orders/"},
	{Collection: "Users", Prefix: "users/"}, {Prefix: "users/1"},
}

func (v *visitor) walk(t *testing.T, documents func(context.Context, jay.Scan) iter.Seq2[*jay.Document, error]) {
	a := act{kind: actWalk, scope: scopes[v.random.IntN(len(scopes))], found: make(map[string]string)}
	if v.random.IntN(3) == 0 {
		a.scope.After = randomKey(v.random)
	}
	if v.random.IntN(3) == 0 {
		a.scope.Limit = 1 + v.random.IntN(4)
	}
	left := -1
	if v.random.IntN(4) == 0 {
		left = 1 + v.random.IntN(3)
	}
	for doc, err := range documents(ctx, a.scope) {
		if err != nil {
			t.Error(err)
			return
		}
		key := ids.Fold(doc.ID())
		a.found[key] = tokenOf(t, doc)
		if left--; left == 0 || len(a.found) == a.scope.Limit {
			a.last = key
		}
		if left == 0 {
			break
		}
	}
	v.txn.acts = append(v.txn.acts, a)
}

// write writes in one way or another.
func (v *visitor) write(t *testing.T) {
	v.serial++
	key, token := randomKey(v.random), fmt.Sprintf("%s.%d", v.txn.name, v.serial)
	in := []jay.WriteOption{jay.InCollection(collectionOfKey(key))}
	if v.first.ID == "" {
		v.first.ID = "not yet"
		in = append(in, jay.Returning(&v.first))
		if _, err := v.tx.Put(ctx, key, bodyOf(token), in...); err != nil {
			t.Error(err)
		}
		v.wrote(key, token)
		return
	}
	switch v.random.IntN(9) {
	case 0:
		_, err := v.tx.Insert(ctx, key, bodyOf(token), in...)
		if err == nil {
			v.saw(key, "")
			v.wrote(key, token)
		} else if !errors.Is(err, jay.ErrExists) {
			t.Error(err)
		}
	case 1:
		m, err := v.tx.Store(ctx, "Users", bodyOf(token))
		if err != nil {
			t.Error(err)
			return
		}
		v.wrote(ids.Fold(m.ID), token)
	case 2:
		m := new(jay.Metadata)
		if _, err := v.tx.Put(ctx, "orders/n|", bodyOf(token), jay.InCollection("Orders"), jay.Returning(m)); err != nil {
			t.Error(err)
			return
		}
		if v.identities == nil {
			v.identities = make(map[string]*jay.Metadata)
		}
		v.identities[token] = m
	case 3, 4:
		if err := v.tx.Delete(ctx, key); err != nil {
			t.Error(err)
		}
		v.wrote(key, "")
	case 5, 6:
		v.append(t, token)
	case 7:
		_, err := v.tx.Replace(ctx, key, bodyOf(token), in...)
		if err == nil {
			v.wrote(key, token)
		} else if errors.Is(err, jay.ErrNotFound) {
			v.saw(key, "")
		} else {
			t.Error(err)
		}
	default:
		if _, err := v.tx.Put(ctx, key, bodyOf(token), in...); err != nil {
			t.Error(err)
		}
		v.wrote(key, token)
	}
}

// append reads a value with a version and writes it back.
func (v *visitor) append(t *testing.T, token string) {
	key := fmt.Sprintf("%s/%d", []string{"users", "x"}[v.random.IntN(2)], v.random.IntN(8))
	value, err := v.typed.Get(ctx, key)
	if errors.Is(err, jay.ErrNotFound) {
		v.saw(key, "")
		value, err = &Tagged{ID: key}, nil
	} else if err == nil {
		v.saw(key, value.By)
	}
	if err != nil {
		t.Error(err)
		return
	}
	value.By = token
	if _, err := v.typed.Put(ctx, value); err != nil {
		t.Errorf("%v: typed put of %+v: %v", v.txn, value, err)
	}
	v.wrote(key, token)
}
