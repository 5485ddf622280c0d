package sqlkv_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/sqlkv"
)

func database(t testing.TB, name string) *jay.DB {
	t.Helper()
	db, err := jay.Open(name, &jay.Options{Engine: new(sqlkv.Driver)})
	must(t, err)
	return db
}

// Ensure that several databases on one store, each with several writers, give every document an ID and an etag of its own, and that each sees what
// the others have written.
func TestJay_Several(t *testing.T) {
	const databases, writers, each = 3, 4, 20
	name := newName(t)
	var all []*jay.DB
	for range databases {
		db := database(t, name)
		defer db.Close()
		all = append(all, db)
	}
	var mu sync.Mutex
	etags := make(map[string]string)
	var wg sync.WaitGroup
	for d, db := range all {
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					m, err := db.Store(ctx, "Users", json.RawMessage(fmt.Sprintf(`{"name":"%d.%d.%d"}`, d, w, i)))
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if other, taken := etags[m.ChangeVector]; taken {
						t.Errorf("%s and %s have the change vector %s", other, m.ID, m.ChangeVector)
					}
					etags[m.ChangeVector] = m.ID
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	ids := make(map[string]bool)
	for _, id := range etags {
		ids[id] = true
	}
	equal(t, len(ids), databases*writers*each)
	for _, db := range all {
		for id := range ids {
			if _, err := db.Get(ctx, id); err != nil {
				t.Errorf("get %s: %v", id, err)
			}
		}
		report, err := db.Verify(ctx, nil)
		must(t, err)
		equal(t, report.Found, 0)
	}
	_, err := all[0].Get(ctx, "users/none")
	equal(t, errors.Is(err, jay.ErrNotFound), true)
}
