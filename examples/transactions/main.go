// Command transactions moves money between accounts, lets two transactions
// meet, and shows that neither lost updates nor write skew are possible.
//
//	go run ./examples/transactions
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"

	"github.com/jaydb/jay"
)

// Account is stored in the collection Accounts.
type Account struct {
	ID      string
	Balance int
}

// bank keeps accounts.
type bank struct {
	db       *jay.DB
	accounts *jay.Collection[Account]
}

// errPoor is returned for a transfer of more than there is.
var errPoor = errors.New("not enough on the account")

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "transactions-*.jay")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	accounts, err := jay.CollectionOf[Account](db)
	if err != nil {
		return err
	}
	b := &bank{db, accounts}
	for _, step := range []func(context.Context) error{b.open, b.transfers, b.conflict, b.retry, b.skew, b.numbers} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// open puts two accounts there, in one write.
func (b *bank) open(ctx context.Context) error {
	_, err := b.accounts.PutMany(ctx, []*Account{{ID: "accounts/ann", Balance: 100}, {ID: "accounts/bob", Balance: 100}})
	return err
}

// transfers moves money, all of it or nothing.
func (b *bank) transfers(ctx context.Context) error {
	fmt.Println("Transfer")
	if err := b.transfer(ctx, "accounts/ann", "accounts/bob", 30); err != nil {
		return err
	}
	if err := b.print(ctx, "30 from Ann to Bob"); err != nil {
		return err
	}
	if err := b.transfer(ctx, "accounts/ann", "accounts/bob", 500); !errors.Is(err, errPoor) {
		return fmt.Errorf("500 of 70: %w", err)
	}
	return b.print(ctx, "500 more: "+errPoor.Error())
}

// transfer returns errPoor if there is too little on the account from.
func (b *bank) transfer(ctx context.Context, from, to string, amount int, opts ...jay.TxOption) error {
	return b.db.Update(ctx, func(tx *jay.Tx) error {
		accounts := b.accounts.In(tx) // the collection as tx sees it
		payer, err := accounts.Get(ctx, from)
		if err != nil {
			return err
		}
		payee, err := accounts.Get(ctx, to)
		if err != nil {
			return err
		}
		payer.Balance -= amount
		payee.Balance += amount
		if _, err := accounts.PutMany(ctx, []*Account{payer, payee}); err != nil {
			return err
		}
		if payer.Balance < 0 {
			return errPoor // undoes what was put
		}
		return nil
	}, opts...)
}

// conflict changes an account behind a transaction that has read it.
func (b *bank) conflict(ctx context.Context) error {
	fmt.Println("Conflict")
	err := b.db.Update(ctx, func(tx *jay.Tx) error {
		ann, err := b.accounts.In(tx).Get(ctx, "accounts/ann")
		if err != nil {
			return err
		}
		if _, err := b.accounts.Patch(ctx, "accounts/ann", jay.Increment("Balance", 5)); err != nil { // another writer
			return err
		}
		ann.Balance *= 2
		_, err = b.accounts.In(tx).Put(ctx, ann)
		return err
	})
	var conflict *jay.ConflictError
	if !errors.As(err, &conflict) {
		return fmt.Errorf("an update was lost: %w", err)
	}
	return b.print(ctx, "refused, as another writer has changed "+conflict.ID)
}

// retry lets 8 goroutines transfer at once. Those that lose run again.
func (b *bank) retry(ctx context.Context) error {
	fmt.Println("Retry")
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { errs[i] = b.transfer(ctx, "accounts/bob", "accounts/ann", 5, jay.Retry(100)) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return b.print(ctx, "8 times 5 from Bob to Ann, at once")
}

// skew empties both accounts at once, though one of them must keep something.
// Each of the two transactions writes what only the other one reads.
func (b *bank) skew(ctx context.Context) error {
	fmt.Println("Write skew")
	empty := func(id string, meanwhile func() error) error {
		return b.db.Update(ctx, func(tx *jay.Tx) error {
			both, err := b.accounts.In(tx).GetMany(ctx, "accounts/ann", "accounts/bob")
			if err != nil {
				return err
			}
			if both[0].Balance == 0 || both[1].Balance == 0 {
				return errPoor
			}
			if err := meanwhile(); err != nil {
				return err
			}
			_, err = b.accounts.In(tx).Put(ctx, &Account{ID: id})
			return err
		})
	}
	err := empty("accounts/ann", func() error {
		return empty("accounts/bob", func() error { return nil })
	})
	if !errors.Is(err, jay.ErrConflict) {
		return fmt.Errorf("both are empty: %w", err)
	}
	return b.print(ctx, "both allowed, one committed")
}

// numbers shows IDs that only the commit can know.
func (b *bank) numbers(ctx context.Context) error {
	fmt.Println("Numbers")
	var receipt jay.Metadata
	err := b.db.Update(ctx, func(tx *jay.Tx) error {
		meta, err := tx.Put(ctx, "receipts|", []byte(`{"Amount":5}`), jay.Returning(&receipt))
		if err != nil {
			return err
		}
		fmt.Println("  while it runs:", meta.ID)
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Println("  committed:    ", receipt.ID)
	return nil
}

// print shows both balances, as they were at one moment.
func (b *bank) print(ctx context.Context, what string) error {
	return b.db.View(ctx, func(tx *jay.Tx) error {
		ann, err := b.accounts.In(tx).Get(ctx, "accounts/ann")
		if err != nil {
			return err
		}
		bob, err := b.accounts.In(tx).Get(ctx, "accounts/bob")
		if err != nil {
			return err
		}
		fmt.Printf("  %s: Ann %d, Bob %d\n", what, ann.Balance, bob.Balance)
		return nil
	})
}
