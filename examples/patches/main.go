// Command patches edits a document where it lies: without reading it first,
// and without losing what others do to it at the same time.
//
//	go run ./examples/patches
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"

	"github.com/jaydb/jay"
)

// id is that of the document that is patched.
const id = "products/pear"

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "patches-*.jay")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	const product = `{"Name":"Pear","Price":1.10,"Tags":["fruit"],"Sizes":[{"Kg":1},{"Kg":5}]}`
	if _, err := db.Put(ctx, id, json.RawMessage(product), jay.InCollection("Products")); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *jay.DB) error{edits, statuses, counter, floor, standards, mistakes} {
		if err := step(ctx, db); err != nil {
			return err
		}
	}
	return nil
}

// edits makes one edit of each kind. What they do not touch keeps its bytes.
func edits(ctx context.Context, db *jay.DB) error {
	fmt.Println("Edits")
	for _, row := range []struct {
		what string
		edit jay.PatchOption
	}{
		{"set", jay.Set("Stock", 100)},
		{"increment", jay.Increment("Price", 0.1)},
		{"append", jay.Append("Tags", "green", "sweet")},
		{"remove", jay.Remove("Tags", "fruit")},
		{"rename", jay.Rename("Name", "Title")},
		{"every element", jay.Set("Sizes[].Unit", "kg")},
		{"one element", jay.Unset("Sizes[1]")},
		{"made on the way", jay.Increment("Sold.'10.30'", 1)},
	} {
		result, err := db.Patch(ctx, id, row.edit)
		if err != nil {
			return err
		}
		fmt.Printf("  %-15s  %s\n", row.what, result.Body)
	}
	return nil
}

// statuses shows what can become of a patch.
func statuses(ctx context.Context, db *jay.DB) error {
	fmt.Println("Statuses")
	visit := func(id string, opts ...jay.PatchOption) error {
		result, err := db.Patch(ctx, id, opts...)
		if err != nil {
			return err
		}
		fmt.Printf("  %-14s  %-20s  %s\n", id, result.Status, result.Body)
		return nil
	}
	return errors.Join(
		visit("pages/home", jay.Increment("Visits", 1)),
		visit("pages/home", jay.Increment("Visits", 1), jay.OrInsert(map[string]int{"Visits": 1}), jay.InCollection("Pages")),
		visit("pages/home", jay.Increment("Visits", 1), jay.OrInsert(map[string]int{"Visits": 1})),
		visit("pages/home", jay.Set("Visits", 2)),
	)
}

// counter lets 16 goroutines count. Nothing is lost.
func counter(ctx context.Context, db *jay.DB) error {
	fmt.Println("Counter")
	var wg sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		wg.Go(func() {
			for range 10 {
				_, err := db.Patch(ctx, "pages/home", jay.Increment("Visits", 1))
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	doc, err := db.Get(ctx, "pages/home")
	if err != nil {
		return err
	}
	fmt.Printf("  after 16 x 10 visits: %s\n", doc.Body())
	return nil
}

// floor sells pears until there are none: the patch is made in a transaction,
// which takes it back if the stock is below zero.
func floor(ctx context.Context, db *jay.DB) error {
	fmt.Println("Floor")
	errSoldOut := errors.New("sold out")
	sell := func(pieces int) error {
		return db.Update(ctx, func(tx *jay.Tx) error {
			result, err := tx.Patch(ctx, id, jay.Increment("Stock", -pieces))
			if err != nil {
				return err
			}
			var left struct{ Stock int }
			if err := json.Unmarshal(result.Body, &left); err != nil {
				return err
			}
			if left.Stock < 0 {
				return errSoldOut
			}
			fmt.Printf("  sold %d, %d left\n", pieces, left.Stock)
			return nil
		}, jay.Retry(10))
	}
	if err := sell(70); err != nil {
		return err
	}
	if err := sell(40); !errors.Is(err, errSoldOut) {
		return fmt.Errorf("sold 40 of 30: %w", err)
	}
	fmt.Println("  not 40 more:", errSoldOut)
	return nil
}

// standards applies patches as other programs send them.
func standards(ctx context.Context, db *jay.DB) error {
	fmt.Println("Standards")
	result, err := db.Patch(ctx, "pages/home", jay.MergePatch(json.RawMessage(`{"Visits":null,"Title":"Home"}`)))
	if err != nil {
		return err
	}
	fmt.Printf("  RFC 7386: %s\n", result.Body)

	rename := jay.JSONPatch(json.RawMessage(`[
		{"op":"test","path":"/Title","value":"Home"},
		{"op":"replace","path":"/Title","value":"Welcome"}
	]`))
	if result, err = db.Patch(ctx, "pages/home", rename); err != nil {
		return err
	}
	fmt.Printf("  RFC 6902: %s\n", result.Body)
	if _, err = db.Patch(ctx, "pages/home", rename); !errors.Is(err, jay.ErrPatchTest) {
		return fmt.Errorf("renamed twice: %w", err)
	}
	fmt.Println("  again, its test fails and nothing is changed")

	stale := result.Metadata.ChangeVector
	if _, err = db.Patch(ctx, "pages/home", jay.Set("Title", "Start")); err != nil {
		return err
	}
	if _, err = db.Patch(ctx, "pages/home", jay.Set("Title", "Hello"), jay.IfMatch(stale)); !errors.Is(err, jay.ErrConflict) {
		return fmt.Errorf("patched an older version: %w", err)
	}
	fmt.Println("  IfMatch refuses a patch of another version")
	return nil
}

// mistakes are typed errors, and change nothing.
func mistakes(ctx context.Context, db *jay.DB) error {
	fmt.Println("Mistakes")
	for _, edit := range []jay.PatchOption{
		jay.Increment("Title", 1),
		jay.Append("Stock", 1),
		jay.Set("Sizes[", 1),
		jay.Increment("Stock", int64(1<<63-1)),
	} {
		_, err := db.Patch(ctx, id, edit)
		var mistake *jay.PatchError
		if !errors.As(err, &mistake) {
			return fmt.Errorf("a mistake was made: %w", err)
		}
		fmt.Printf("  %-8s %s\n", mistake.Path, mistake.Rule)
	}
	return nil
}
