// Command invoices writes invoices to a store in PostgreSQL, which other processes write to as well, and goes on when the server fails
// over: see run.sh.
//
//	invoices write URL NAME    writes until it is interrupted, and prints each ID
//	invoices check URL         compares the store with lines "NAME ID" of its input
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/sqlkv"
)

// Invoice is a document. Its ID is an identity: invoices/1, invoices/2, and so on, for all programs together.
type Invoice struct {
	ID string
	By string // the program
	N  int    // its n-th invoice
}

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 3 && args[0] == "write":
		err = write(args[1], args[2])
	case len(args) == 2 && args[0] == "check":
		err = check(args[1])
	default:
		err = errors.New("usage: invoices write URL NAME, or invoices check URL")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "invoices:", err)
		os.Exit(1)
	}
}

// open opens the database. It differs from one in a directory by the name and the engine.
func open(url string) (*jay.DB, error) {
	return jay.Open(url, &jay.Options{Engine: &sqlkv.Driver{Timeout: 6 * time.Second}})
}

// write writes one invoice after the other.
func write(url, name string) (err error) {
	interrupted, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	db, err := open(url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	invoices, err := jay.CollectionOf[Invoice](db)
	if err != nil {
		return err
	}
	for n := 1; interrupted.Err() == nil; n++ {
		id, err := insert(invoices, name, n)
		if err != nil {
			return err
		}
		fmt.Println(id)
	}
	return nil
}

// insert inserts an invoice, and tries again while there is no server. It gives a request ID: should the outcome of a try be
// unknown, the next one finds what that has done, and does not do it twice.
func insert(invoices *jay.Collection[Invoice], name string, n int) (id string, err error) {
	for {
		invoice := Invoice{ID: "invoices|", By: name, N: n}
		_, err := invoices.Insert(context.Background(), &invoice, jay.RequestID(fmt.Sprint(name, "-", n)))
		switch {
		case err == nil:
			return invoice.ID, nil
		case errors.Is(err, jay.ErrUnavailable), errors.Is(err, jay.ErrUnknownOutcome), errors.Is(err, jay.ErrLeaseLost):
			fmt.Fprintln(os.Stderr, err)
			time.Sleep(100 * time.Millisecond)
		default:
			return "", err
		}
	}
}

// check compares what was acknowledged with what is there.
func check(url string) (err error) {
	ctx := context.Background()
	db, err := open(url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	acknowledged := make(map[string]string) // the program, by ID
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		name, id, _ := strings.Cut(in.Text(), " ")
		if other, twice := acknowledged[id]; twice {
			return fmt.Errorf("%s was given to %s and to %s", id, other, name)
		}
		acknowledged[id] = name
	}
	if err := in.Err(); err != nil {
		return err
	}
	invoices, err := jay.CollectionOf[Invoice](db)
	if err != nil {
		return err
	}
	there := 0
	for invoice, err := range invoices.All(ctx) {
		if err != nil {
			return err
		}
		there++
		if name, known := acknowledged[invoice.ID]; known && name != invoice.By {
			return fmt.Errorf("%s is of %s, and was given to %s", invoice.ID, invoice.By, name)
		}
		delete(acknowledged, invoice.ID)
	}
	if len(acknowledged) > 0 {
		return fmt.Errorf("%d invoices were acknowledged and are lost: %v", len(acknowledged), acknowledged)
	}
	for n := 1; n <= there; n++ {
		if _, err := db.Get(ctx, fmt.Sprint("invoices/", n)); err != nil {
			return fmt.Errorf("of %d invoices, number %d: %w", there, n, err)
		}
	}
	fmt.Printf("%d invoices: each that was acknowledged is there, none came twice, and no number is missing.\n", there)
	return nil
}
