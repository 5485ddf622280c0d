package sqlkv

import (
	"context"
	"errors"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"github.com/jaydb/jay/storage"
)

// Prepare implements storage.Driver. It makes the store in a schema of its own. Commit renames the
// schema when the store is complete.
func (d *Driver) Prepare(name string) (storage.NewStore, error) {
	a, err := newAddress(name)
	if err != nil {
		return nil, err
	}
	opts, err := d.options(storage.OpenOptions{})
	if err != nil {
		return nil, err
	}
	n := &newStore{options: opts, address: a}
	if n.made, err = a.inSchema(a.schema + unfinished); err != nil {
		return nil, err
	}
	return n, n.do(func(ctx context.Context, tx pgx.Tx) error {
		for _, schema := range []string{a.schema, a.schema + unfinished} {
			tables, err := tablesIn(ctx, tx, schema)
			if err != nil {
				return err
			}
			if len(tables) > 0 {
				return n.exists(schema)
			}
		}
		return nil
	})
}

// newStore is a store that is being made.
type newStore struct {
	options options
	address address
	made    string
}

// do calls fn with a transaction, which it commits if fn returns no error.
func (n *newStore) do(fn func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), n.options.timeout)
	defer cancel()
	c, err := n.options.connect(ctx, n.options.overHosts(n.address), n.options.timeout)
	if err != nil {
		return n.address.explain(err)
	}
	defer c.Close(ctx)
	return n.address.explain(pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return fn(ctx, tx) }))
}

// exists is the error of a schema that has tables.
func (n *newStore) exists(schema string) error {
	a := n.address
	a.schema = schema
	return &Error{Address: a.String(), Kind: fs.ErrExist, Do: "name another schema by " + schemaParameter + ", or remove that one"}
}

// Name implements storage.NewStore.
func (n *newStore) Name() string { return n.made }

// Commit implements storage.NewStore.
func (n *newStore) Commit() error {
	err := n.do(func(ctx context.Context, tx pgx.Tx) error {
		tables, err := tablesIn(ctx, tx, n.address.schema)
		if err != nil {
			return err
		}
		if len(tables) > 0 {
			return n.exists(n.address.schema)
		}
		if _, err := tx.Exec(ctx, "drop schema if exists "+quoted(n.address.schema)); err != nil { // an empty one
			return err
		}
		_, err = tx.Exec(ctx, "alter schema "+quoted(n.address.schema+unfinished)+" rename to "+quoted(n.address.schema))
		return err
	})
	if errors.Is(err, fs.ErrExist) {
		if abandoned := n.Abandon(); abandoned != nil {
			return abandoned
		}
	}
	return err
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// Abandon implements storage.NewStore.
func (n *newStore) Abandon() error {
	return n.do(func(ctx context.Context, tx pgx.Tx) error {
		schema := quoted(n.address.schema + unfinished)
		tables, err := tablesIn(ctx, tx, n.address.schema+unfinished)
		if err != nil {
			return err
		}
		for _, table := range []string{"kv", "commits", "store"} {
			if tables[table] {
				if _, err := tx.Exec(ctx, "drop table "+schema+"."+table); err != nil {
					return err
				}
			}
		}
		_, err = tx.Exec(ctx, "drop schema if exists "+schema) // refused if there is something else in it
		return err
	})
}
