package jay_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/jaydb/jay"
)

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
