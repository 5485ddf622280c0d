package members_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that the build of a unique index goes on after an outage in which it met a document whose cluster-wide transaction is not decided: that says
// nothing about the index.
func TestBuild_BesideUndecided(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for longer than a lock is waited for")
	}
	m := clustertest.NewMemory()
	disk := storagetest.NewDisk()
	c := m.Connect()
	db := onTag(t, disk, c, "A")
	must(t, second(db.CompareExchange().Put(ctx, "warm", 1, 0)))
	put(t, db, "users/1", `{"Email":"ann"}`, jay.InCollection("Users"))
	held := make(chan struct{})
	var once sync.Once
	restore := checks.OnBuildChunk(func(ctx context.Context, state jay.IndexState) {
		once.Do(func() { close(held) })
		<-ctx.Done()
	})
	ensured := make(chan error, 1)
	go func() {
		ensured <- db.EnsureIndex(ctx, "Users", jay.Index{Name: "email", Fields: []string{"Email"}, Unique: true})
	}()
	<-held
	c.Fail(clustertest.Withhold)
	limited, cancel := context.WithCancel(ctx)
	tries := 0
	c.Before(func(call clustertest.Call) {
		if call.Method == "Commit" {
			if tries++; tries == 2 {
				cancel()
				c.Cut()
			}
		}
	})
	err := db.Update(limited, func(tx *jay.Tx) error {
		if _, err := tx.CompareExchange().Put(ctx, "emails/ann", "users/1", 0); err != nil {
			return err
		}
		_, err := tx.Put(ctx, "users/1", []byte(`{"Email":"ann","n":2}`))
		return err
	})
	cancel()
	if !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Fatalf("the commit is not in doubt: %v", err)
	}
	must(t, c.Close())
	_ = db.Close()
	<-ensured // with an error, as the database was closed
	restore()
	next := m.Connect()
	next.Cut()
	db = onTag(t, disk, next, "A")
	list := func() []jay.IndexInfo {
		all, err := db.Indexes(ctx, "Users")
		must(t, err)
		return all
	}
	for begun := time.Now(); time.Since(begun) < 8*time.Second && len(list()) > 0; { // as long as the lock is waited for, and longer
		time.Sleep(50 * time.Millisecond)
	}
	if len(list()) == 0 {
		t.Fatal("the index is gone")
	}
	next.Mend()
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "email", Fields: []string{"Email"}, Unique: true}))
	if all := list(); len(all) != 1 || all[0].State != jay.IndexReady {
		t.Errorf("when the majority is back: %+v", all)
	}
	_ = db.Close()
}

// blocked stops the commits of a client that change a value of ann, until they are released.
func blocked(c *clustertest.Client) (stopped <-chan struct{}, release func()) {
	at, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c.Before(func(call clustertest.Call) {
		if call.Method != "Commit" {
			return
		}
		for _, ch := range call.Changes {
			if strings.Contains(ch.Key, "ann") {
				once.Do(func() { close(at) })
				<-goOn
				return
			}
		}
	})
	return at, sync.OnceFunc(func() { close(goOn) })
}

// Ensure that a unique index that is declared while the coordinator decides a transaction waits for it: the transaction has not claimed its values.
// If the index was ready before, the documents could not follow, and stayed locked for good.
func TestBuild_UniqueBesideUndecided(t *testing.T) {
	m := clustertest.NewMemory()
	disk := storagetest.NewDisk()
	c := m.Connect()
	db := onTag(t, disk, c, "A")
	must(t, second(db.CompareExchange().Put(ctx, "warm", 1, 0)))
	put(t, db, "users/2", `{"Email":"ann"}`, jay.InCollection("Users"))
	stopped, release := blocked(c)
	defer release()
	answer := make(chan error, 1)
	go func() {
		answer <- db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.CompareExchange().Put(ctx, "emails/ann", "users/1", 0); err != nil {
				return err
			}
			_, err := tx.Put(ctx, "users/1", []byte(`{"Email":"ann"}`), jay.InCollection("Users"))
			return err
		})
	}()
	<-stopped
	ensured := make(chan error, 1)
	go func() {
		ensured <- db.EnsureIndex(ctx, "Users", jay.Index{Name: "email", Fields: []string{"Email"}, Unique: true})
	}()
	select {
	case err := <-ensured:
		t.Errorf("the build does not wait for the transaction: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	release()
	must(t, <-answer)
	if err := <-ensured; !errors.Is(err, jay.ErrUnique) {
		t.Errorf("two documents with one value: %v", err)
	}
	equal(t, checks.Undecided(db), 0)
	must(t, db.Close())
}

// Ensure that the report on a rule has the documents of a transaction that the coordinator was deciding when the rule was set.
func TestSchemas_BesideUndecided(t *testing.T) {
	m := clustertest.NewMemory()
	c := m.Connect()
	o := inCluster(c, "A")
	o.Schemas = requires{}
	db := memory(t, o)
	must(t, second(db.CompareExchange().Put(ctx, "warm", 1, 0)))
	stopped, release := blocked(c)
	defer release()
	answer := make(chan error, 1)
	go func() {
		answer <- db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.CompareExchange().Put(ctx, "emails/ann", "orders/1", 0); err != nil {
				return err
			}
			_, err := tx.Put(ctx, "orders/1", []byte(`{}`), jay.InCollection("Orders"))
			return err
		})
	}()
	<-stopped
	must(t, db.Definitions().Schemas().Set(ctx, schema.Rule{Collection: "Orders", Mode: schema.Refuse, Schema: []byte(`{}`)}))
	time.Sleep(100 * time.Millisecond) // the pass would have ended
	release()
	must(t, <-answer)
	report, err := db.Definitions().Schemas().Wait(ctx, "Orders")
	must(t, err)
	if report.Documents != 1 || report.Violating != 1 {
		t.Errorf("the report has %d documents, %d of them violating", report.Documents, report.Violating)
	}
}

// requires compiles any schema into one that requires the member Total.
type requires struct{}

func (requires) Compile([]byte) (schema.Validator, error) { return requires{}, nil }

func (requires) Validate(body []byte, _ int) ([]schema.Violation, int) {
	if strings.Contains(string(body), `"Total"`) {
		return nil, 0
	}
	return []schema.Violation{{Message: "missing Total"}}, 1
}
