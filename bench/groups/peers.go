package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"
	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/report"
)

// group is an answer of both: totals are in hundredths.
type group struct {
	customer     string
	count, total int64
}

// peers prints how long reading all groups with their counts and sums takes, of an index that keeps them, beside two ways in which SQLite answers: a table
// that triggers keep, and a GROUP BY along an index that has both columns.
func peers(ctx context.Context, db *jay.DB, dir string, n, groups, pairs int) (err error) {
	if err := db.EnsureIndex(ctx, "Orders", jay.Index{Kind: "groups", Fields: []string{"Customer"}, Options: map[string]string{"sums": "Total"}}); err != nil {
		return err
	}
	if err := fill(ctx, db, n, groups); err != nil {
		return err
	}
	lite, err := copyToSQLite(ctx, db, filepath.Join(dir, "lite"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lite.Close()) }()
	machine, err := report.ThisMachine(dir)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n\n%d documents, %d groups, %d pairs\n\n| all groups with count and sum, Jay keeps them | SQLite | Jay | ratio (least–most) |\n|---|---:|---:|---:|\n", machine.String(), n, groups, pairs)
	q, err := db.RQL("from Orders group by Customer order by Customer select Customer, count() as n, sum(Total) as s", nil)
	if err != nil {
		return err
	}
	for _, peer := range []struct{ name, text string }{
		{"SQLite, a table kept by triggers", "select customer, n, total from kept order by customer"},
		{"SQLite, `group by` along a covering index", "select customer, count(*), sum(total) from orders group by customer order by customer"},
	} {
		var answers [2][]group
		if err := inTurns(peer.name, pairs, 1, func(side int) (err error) {
			if side == 1 {
				answers[1], err = ofJay(ctx, q)
			} else {
				answers[0], err = ofSQLite(ctx, lite, peer.text)
			}
			return err
		}, func(int) error { return equalGroups(answers, groups) }); err != nil {
			return err
		}
	}
	return nil
}

// copyToSQLite stores what the database has, with a table of counts and sums that triggers keep.
func copyToSQLite(ctx context.Context, db *jay.DB, path string) (lite *sql.DB, err error) {
	lite, err = sql.Open("sqlite3", path+"?_journal_mode=WAL&_synchronous=FULL&_cache_size=-262144")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			lite.Close()
		}
	}()
	for _, text := range []string{
		"create table orders (id text primary key, customer text, total integer, body text) without rowid",
		"create table kept (customer text primary key, n integer, total integer) without rowid",
		"create trigger added after insert on orders begin insert into kept values (new.customer, 1, new.total) on conflict do update set n = n + 1, total = total + new.total; end",
	} {
		if _, err := lite.ExecContext(ctx, text); err != nil {
			return nil, err
		}
	}
	tx, err := lite.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	insert, err := tx.PrepareContext(ctx, "insert into orders values (?, ?, ?, ?)")
	if err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	for doc, err := range db.Query("Orders").Iter(ctx) {
		if err == nil {
			body := string(doc.Body())
			_, err = insert.ExecContext(ctx, doc.ID(), gjson.Get(body, "Customer").String(), hundredths(gjson.Get(body, "Total").Raw), body)
		}
		if err != nil {
			return nil, errors.Join(err, tx.Rollback())
		}
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	for _, text := range []string{"create index by_customer on orders (customer, total)", "analyze"} {
		if _, err := lite.ExecContext(ctx, text); err != nil {
			return nil, err
		}
	}
	return lite, nil
}

func ofJay(ctx context.Context, q jay.Query[jay.Row]) (all []group, err error) {
	for row, err := range q.Iter(ctx) {
		if err != nil {
			return nil, err
		}
		values := gjson.GetManyBytes(row.JSON, "Customer", "n", "s")
		all = append(all, group{values[0].String(), values[1].Int(), hundredths(values[2].Raw)})
	}
	return all, nil
}

func ofSQLite(ctx context.Context, lite *sql.DB, text string) (all []group, err error) {
	rows, err := lite.QueryContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var g group
		if err := rows.Scan(&g.customer, &g.count, &g.total); err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, rows.Err()
}

// equalGroups returns an error unless both answers, as far as they are there, have the same groups.
func equalGroups(answers [2][]group, groups int) error {
	for i, all := range answers {
		if all != nil && len(all) != groups {
			return fmt.Errorf("side %d has %d groups, not %d", i, len(all), groups)
		}
	}
	if answers[0] == nil || answers[1] == nil {
		return nil
	}
	for i, g := range answers[0] {
		if answers[1][i] != g {
			return fmt.Errorf("group %d differs: %v and %v", i, g, answers[1][i])
		}
	}
	return nil
}

// hundredths returns a decimal number in hundredths.
func hundredths(number string) int64 {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return math.MinInt64 // which no sum of the other side is
	}
	return int64(math.Round(f * 100))
}
