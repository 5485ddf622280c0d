package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jaydb/jay"
)

// cmpxchgCommand reads and changes compare-exchange values.
type cmpxchgCommand struct {
	List   cmpxchgListCommand   `cmd:"" default:"withargs" help:"List values in the order of their keys."`
	Get    cmpxchgGetCommand    `cmd:"" help:"Print values, one JSON line each."`
	Put    cmpxchgPutCommand    `cmd:"" help:"Store a value and print its new index."`
	Delete cmpxchgDeleteCommand `cmd:"" help:"Delete a value."`
}

// cmpxchgListCommand lists values.
type cmpxchgListCommand struct {
	Prefix string `placeholder:"TEXT" help:"Only keys that begin with it."`
	After  string `placeholder:"KEY" help:"Only keys behind this one."`
	Limit  int    `placeholder:"N" help:"At most so many; all without it."`
}

// Help is shown by jay cmpxchg list --help.
func (*cmpxchgListCommand) Help() string {
	return `Each value is one line of JSON with its key and its index.

Examples:

    jay cmpxchg list --prefix emails/
    jay cmpxchg list --prefix rvn-atomic/ | jq -r .key`
}

// Run prints the values.
func (c *cmpxchgListCommand) Run(ctx context.Context, a *app) error {
	if c.Limit < 0 {
		return usageError{text: "--limit is not negative"}
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		return eachExchange(ctx, db, c.Prefix, c.After, c.Limit, func(v *jay.CompareExchangeValue) error { return a.printLine(v) })
	})
}

// eachExchange calls fn with the values after a key, limit of them, or all if limit is
// 0.
func eachExchange(ctx context.Context, db *jay.DB, prefix, after string, limit int, fn func(*jay.CompareExchangeValue) error) error {
	const page = 256
	for left := limit; ; {
		n := page
		if limit > 0 {
			n = min(page, left)
		}
		values, err := db.CompareExchange().List(ctx, prefix, after, n)
		if err != nil {
			return err
		}
		for _, v := range values {
			if err := fn(v); err != nil {
				return err
			}
			after = v.Key
		}
		if left -= len(values); len(values) < n || limit > 0 && left == 0 {
			return nil
		}
	}
}

// cmpxchgGetCommand prints values.
type cmpxchgGetCommand struct {
	Keys []string `arg:"" name:"key" help:"Keys of the values."`
}

// Run prints the values in the order of their keys on the command line.
func (c *cmpxchgGetCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		values, err := db.CompareExchange().GetMany(ctx, c.Keys...)
		if err != nil {
			return err
		}
		for i, v := range values {
			if v == nil {
				a.failed = true
				a.complain(fmt.Errorf("no compare-exchange value %q", c.Keys[i]), kindOf(jay.ErrNotFound))
				continue
			}
			if err := a.printLine(v); err != nil {
				return err
			}
		}
		return nil
	})
}

// cmpxchgPutCommand stores a value.
type cmpxchgPutCommand struct {
	Key      string `arg:"" help:"Key of the value."`
	Value    string `arg:"" help:"The value, as JSON."`
	Index    uint64 `placeholder:"N" help:"The index that the value must have. Without it there must be no value."`
	Metadata string `placeholder:"JSON" help:"An object to keep with the value."`
}

// Help is shown by jay cmpxchg put --help.
func (*cmpxchgPutCommand) Help() string {
	return `The database is created if it is not there. If the value has another index, nothing is changed, and jay exits with 1.

Examples:

    jay cmpxchg put emails/ann@example.com '"users/1"'
    jay cmpxchg put visits 42 --index 17`
}

// Run stores the value.
func (c *cmpxchgPutCommand) Run(ctx context.Context, a *app) error {
	var opts []jay.CompareExchangeOption
	if c.Metadata != "" {
		opts = append(opts, jay.CompareExchangeMetadata(json.RawMessage(c.Metadata)))
	}
	return a.withDatabase(true, func(db *jay.DB) error {
		index, err := db.CompareExchange().Put(ctx, c.Key, json.RawMessage(c.Value), c.Index, opts...)
		if err != nil {
			return err
		}
		if a.json {
			return a.printLine(map[string]any{"key": c.Key, "index": index})
		}
		return a.print(fmt.Sprintln(index))
	})
}

// cmpxchgDeleteCommand deletes a value.
type cmpxchgDeleteCommand struct {
	Key   string `arg:"" help:"Key of the value."`
	Index uint64 `placeholder:"N" help:"The index that the value must have. Without it the value is deleted as it is."`
}

// Run deletes the value.
func (c *cmpxchgDeleteCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		index := c.Index
		if index == 0 {
			v, err := db.CompareExchange().Get(ctx, c.Key)
			if err != nil {
				return err
			}
			index = v.Index
		}
		return db.CompareExchange().Delete(ctx, c.Key, index)
	})
}
