package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/jaydb/jay"
)

// A transaction is all or nothing, over any number of documents.
func ExampleDB_Update() {
	ctx := context.Background()
	db := example()
	defer db.Close()

	// The patches are in the transaction, and so is the entry about them.
	give := func(from, to string, nuts int) error {
		return db.Update(ctx, func(tx *jay.Tx) error {
			giver, err := tx.Patch(ctx, from, jay.Increment("Nuts", -nuts))
			if err != nil {
				return err
			}
			if _, err := tx.Patch(ctx, to, jay.Increment("Nuts", nuts)); err != nil {
				return err
			}
			var left Squirrel
			if err := json.Unmarshal(giver.Body, &left); err != nil {
				return err
			}
			if left.Nuts < 0 {
				return errors.New("too few nuts") // undoes both
			}
			_, err = tx.Put(ctx, "gifts|", json.RawMessage(`{}`))
			return err
		})
	}

	for _, id := range []string{"squirrels/hazel", "squirrels/conker"} {
		_, err := db.Put(ctx, id, json.RawMessage(`{"Nuts":10}`))
		check(err)
	}
	fmt.Println(give("squirrels/hazel", "squirrels/conker", 7))
	fmt.Println(give("squirrels/hazel", "squirrels/conker", 7))
	docs, err := db.GetMany(ctx, "squirrels/hazel", "squirrels/conker", "gifts/1", "gifts/2")
	check(err)
	fmt.Printf("%s %s %t %t\n", docs[0].Body(), docs[1].Body(), docs[2] != nil, docs[3] != nil)
	// Output:
	// <nil>
	// too few nuts
	// {"Nuts":3} {"Nuts":17} true false
}

// Everything in a View is as it was at one moment.
func ExampleDB_View() {
	ctx := context.Background()
	db := forest()
	defer db.Close()

	total := 0
	err := db.View(ctx, func(tx *jay.Tx) error {
		for doc, err := range tx.Documents(ctx, jay.Scan{Collection: "Squirrels"}) {
			if err != nil {
				return err
			}
			var s Squirrel
			if err := doc.Decode(&s); err != nil {
				return err
			}
			total += s.Nuts
		}
		return nil
	})
	fmt.Println(total, err)
	// Output: 20 <nil>
}

// A Tx has the verbs of a DB. It sees its own writes, and no other reader does.
func ExampleTx() {
	ctx := context.Background()
	db := example()
	defer db.Close()

	err := db.Update(ctx, func(tx *jay.Tx) error {
		if _, err := tx.Put(ctx, "users/ann", json.RawMessage(`{"Name":"Ann"}`)); err != nil {
			return err
		}
		inside, err := tx.Exists(ctx, "users/ann")
		if err != nil {
			return err
		}
		outside, err := db.Exists(ctx, "users/ann")
		fmt.Println(inside, outside)
		return err
	})
	check(err)
	found, err := db.Exists(ctx, "users/ann")
	fmt.Println(found, err)
	// Output:
	// true false
	// true <nil>
}

// A Tx is over when its function returns.
func ExampleTx_over() {
	ctx := context.Background()
	db := example()
	defer db.Close()

	var kept *jay.Tx
	check(db.View(ctx, func(tx *jay.Tx) error {
		kept = tx
		return nil
	}))
	_, err := kept.Get(ctx, "users/ann")
	fmt.Println(errors.Is(err, jay.ErrTxDone))
	// Output: true
}

// A transaction that loses against another one runs again, if it may.
func ExampleRetry() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	squirrels, err := jay.CollectionOf[Squirrel](db)
	check(err)

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			check(db.Update(ctx, func(tx *jay.Tx) error {
				hazel, err := squirrels.In(tx).Get(ctx, "squirrels/1-A")
				if err != nil {
					return err
				}
				hazel.Nuts *= 2
				_, err = squirrels.In(tx).Put(ctx, hazel)
				return err
			}, jay.Retry(100)))
		})
	}
	wg.Wait()
	hazel, err := squirrels.Get(ctx, "squirrels/1-A")
	check(err)
	fmt.Println(hazel.Nuts)
	// Output: 2560
}

// Without Retry the caller gets the conflict.
func ExampleTxOption() {
	ctx := context.Background()
	db := forest()
	defer db.Close()

	runs := 0
	update := func(opts ...jay.TxOption) error {
		return db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.Get(ctx, "squirrels/1-A"); err != nil {
				return err
			}
			if runs++; runs < 3 { // another writer is quicker, twice
				if _, err := db.Patch(ctx, "squirrels/1-A", jay.Increment("Nuts", 1)); err != nil {
					return err
				}
			}
			_, err := tx.Put(ctx, "squirrels/1-A", json.RawMessage(`{"Nuts":0}`), jay.InCollection("Squirrels"))
			return err
		}, opts...)
	}
	fmt.Println(errors.Is(update(), jay.ErrConflict))
	fmt.Println(update(jay.Retry(5)), runs)
	// Output:
	// true
	// <nil> 3
}

// The number of an identity is made by the commit, so that none is lost.
func ExampleReturning() {
	ctx := context.Background()
	db := example()
	defer db.Close()

	var invoice jay.Metadata
	err := db.Update(ctx, func(tx *jay.Tx) error {
		meta, err := tx.Put(ctx, "invoices|", json.RawMessage(`{"Total":12.50}`), jay.Returning(&invoice))
		fmt.Println(meta.ID)
		return err
	})
	check(err)
	fmt.Println(invoice.ID)
	// Output:
	// invoices|
	// invoices/1
}

// In a transaction, collections keep Go values as they do outside.
func ExampleCollection_In() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	squirrels, err := jay.CollectionOf[Squirrel](db)
	check(err)
	trees, err := jay.CollectionOf[Tree](db)
	check(err)

	acorn := &Squirrel{Name: "Acorn"}
	err = db.Update(ctx, func(tx *jay.Tx) error {
		oak, err := trees.In(tx).Get(ctx, "trees/1-A")
		if err != nil {
			return err
		}
		acorn.Likes = []string{oak.ID}
		_, err = squirrels.In(tx).Insert(ctx, acorn)
		return err
	})
	check(err)
	fmt.Println(acorn.ID, acorn.Likes)
	// Output: squirrels/3-A [trees/1-A]
}

// Neither of two transactions may write what the other one has relied on.
func ExampleDB_Update_writeSkew() {
	ctx := context.Background()
	db := forest()
	defer db.Close()

	// One of the two squirrels must stay at home.
	leave := func(who, other string, meanwhile func()) error {
		return db.Update(ctx, func(tx *jay.Tx) error {
			home, err := tx.Exists(ctx, other)
			if err != nil || !home {
				return err
			}
			meanwhile()
			return tx.Delete(ctx, who)
		})
	}
	err := leave("squirrels/1-A", "squirrels/2-A", func() {
		check(leave("squirrels/2-A", "squirrels/1-A", func() {}))
	})
	fmt.Println(errors.Is(err, jay.ErrConflict))
	// Output: true
}

// Of two who reserve one name, the first has it.
func ExampleCompareExchange() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	names := db.CompareExchange()
	if _, err := names.Put(ctx, "emails/ann@example.com", "users/1", 0); err != nil { // 0: it must not exist
		log.Fatal(err)
	}
	_, err = names.Put(ctx, "emails/Ann@example.com", "users/2", 0)
	var taken *jay.CompareExchangeError
	if errors.As(err, &taken) {
		fmt.Println("taken by", string(taken.Value))
	}

	// Output: taken by "users/1"
}

func ExampleCompareExchangeValue() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	counter := db.CompareExchange()
	if _, err := counter.Put(ctx, "visits", 41, 0); err != nil {
		log.Fatal(err)
	}

	v, err := counter.Get(ctx, "visits")
	if err != nil {
		log.Fatal(err)
	}
	var visits int
	if err := v.Decode(&visits); err != nil {
		log.Fatal(err)
	}
	if _, err := counter.Put(ctx, v.Key, visits+1, v.Index); err != nil { // unless it was changed meanwhile
		log.Fatal(err)
	}
	if v, err = counter.Get(ctx, "visits"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(v.Value))

	// Output: 42
}

func ExampleCompareExchangeError() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	leader := db.CompareExchange()
	index, err := leader.Put(ctx, "leader", "ann", 0)
	if err != nil {
		log.Fatal(err)
	}

	_, err = leader.Put(ctx, "leader", "bob", index+1)
	var conflict *jay.CompareExchangeError
	if errors.As(err, &conflict) {
		fmt.Println(conflict.Actual == index, string(conflict.Value))
	}

	// Output: true "ann"
}

func ExampleCompareExchangeOption() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	by := jay.CompareExchangeMetadata([]byte(`{"by":"job 7"}`))
	if _, err := db.CompareExchange().Put(ctx, "locks/report", true, 0, by); err != nil {
		log.Fatal(err)
	}
	v, err := db.CompareExchange().Get(ctx, "locks/report")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(v.Value), string(v.Metadata))

	// Output: true {"by":"job 7"}
}

// A document and its name are stored together or not at all.
func ExampleTx_CompareExchange() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	register := func(id, email string) error {
		return db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.CompareExchange().Put(ctx, "emails/"+email, id, 0); err != nil {
				return err
			}
			_, err := tx.Insert(ctx, id, []byte(`{"Email":"`+email+`"}`))
			return err
		})
	}
	fmt.Println(register("users/1", "ann@example.com"))
	fmt.Println(errors.Is(register("users/2", "ann@example.com"), jay.ErrExists))
	found, err := db.Exists(ctx, "users/2")
	fmt.Println(found, err)

	// Output:
	// <nil>
	// true
	// false <nil>
}

func ExampleAtomicGuard() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	var guard jay.AtomicGuard // index 0: the document must be new
	if _, err := db.Put(ctx, "users/1", []byte(`{"n":1}`), jay.Guarded(&guard)); err != nil {
		log.Fatal(err)
	}
	mine, yours := guard, guard // two programs have read the guard
	_, err = db.Put(ctx, "users/1", []byte(`{"n":2}`), jay.Guarded(&mine))
	fmt.Println(err)
	_, err = db.Put(ctx, "users/1", []byte(`{"n":2}`), jay.Guarded(&yours))
	fmt.Println(errors.Is(err, jay.ErrConflict))

	// Output:
	// <nil>
	// true
}

func ExampleClusterWide() {
	type User struct {
		ID    string
		Email string
	}
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	session := db.OpenSession(jay.ClusterWide())
	if err := session.Store(ctx, &User{ID: "users/1", Email: "ann@example.com"}); err != nil {
		log.Fatal(err)
	}
	if err := session.PutCompareExchange("emails/ann@example.com", "users/1", 0); err != nil {
		log.Fatal(err)
	}
	if err := session.SaveChanges(ctx); err != nil { // both or neither
		log.Fatal(err)
	}
	v, err := db.CompareExchange().Get(ctx, jay.GuardKey("users/1"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(v.Value))

	// Output: {"Id":"users/1"}
}

func ExampleRequestID() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	for range 2 { // the answer got lost, and the caller asks again
		n, err := db.NextIdentity(ctx, "invoices", jay.RequestID("6e1f1b3a"))
		fmt.Println(n, err)
	}

	// Output:
	// 1 <nil>
	// 1 <nil>
}

func ExampleRequestOption() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	type Invoice struct {
		ID    string
		Total int
	}
	invoices, err := jay.CollectionOf[Invoice](db)
	if err != nil {
		log.Fatal(err)
	}
	for _, total := range []int{12, 12, 99} {
		invoice := Invoice{Total: total}
		_, err := invoices.Insert(ctx, &invoice, jay.RequestID("6e1f1b3c"))
		fmt.Println(invoice.ID, errors.Is(err, jay.ErrRequestID))
	}

	// Output:
	// invoices/1-A false
	// invoices/1-A false
	//  true
}

func ExampleCallOption() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	var b jay.Batch
	b.Put("invoices|", []byte(`{"Total":12}`))
	for range 2 {
		results, err := db.Apply(ctx, &b, jay.RequestID("6e1f1b3b"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(results[0].ID)
	}

	// Output:
	// invoices/1
	// invoices/1
}
