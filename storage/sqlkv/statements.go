package sqlkv

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// layout is the number of the layout of the tables.
//
// Part of the on-disk format. Must not change.
const layout = 1

// statements are the SQL for the store in one schema. The parameters of a page are its lower bound,
// then the upper one if there is one, then how many rows it has at most and after how many bytes of
// values it ends.
type statements struct {
	create []string // tables of a new store

	store    string // the row of store
	newest   string // the number of the newest commit
	newestOf string // the same, if the store has an ID
	finish   string // the creation
	feature  string // notes the features in use

	get     string // the value of a key
	getMany string // the keys and values of many keys
	any     string // is any of many keys there?

	forward, forwardTo   string // a page of keys from a bound on, and up to another one
	backward, backwardTo string // the same from the end down: without an upper bound, and below one

	lock       string // makes committers take turns; returns the features
	since      string // number and keys of the commits from one on
	sinceToken string // is there a commit behind one with a token?
	oldest     string // is there a commit with this number?

	set    string // many keys to their values
	remove string // many keys
	commit string // the row of a commit
	prune  string // rows of commits that are old
}

// Each page computes how many bytes the values before a row have, without reading those that are stored apart.
const page = `select k, v from (select k, v, sum(octet_length(v)) over (order by k %[2]s rows between unbounded preceding and 1 preceding) as bytes from %[1]s.kv where %[3]s order by k %[2]s limit $%[4]d) as p where bytes is null or bytes < $%[5]d order by k %[2]s`

func newStatements(schema string, t traits) statements {
	s := pgx.Identifier{schema}.Sanitize()
	in := func(format string) string { return strings.ReplaceAll(format, "$s", s) }
	pageOf := func(order, where string, bounds int) string {
		return fmt.Sprintf(page, s, order, where, bounds+1, bounds+2)
	}
	return statements{
		create: []string{
			in(`create schema if not exists $s`),
			in(`create table $s.store (one integer primary key check (one = 1), layout integer not null, id bytea not null, features text not null, created boolean not null)`),
			in(`create table $s.kv (k bytea not null, v bytea not null, ` + t.key + `)`),
			in(`create table $s.commits (n bigint primary key, token bytea not null, keys bytea[], made timestamptz not null)`),
			in(`insert into $s.commits (n, token, keys, made) values (0, '', '{}', now())`),
			in(`insert into $s.store (one, layout, id, features, created) values (1, $1, $2, '', false)`),
		},

		store:    in(`select layout, id, features, created from $s.store`),
		newest:   in(`select n from $s.commits order by n desc limit 1`),
		newestOf: in(`select (select n from $s.commits order by n desc limit 1) from $s.store where id = $1`),
		finish:   in(`update $s.store set created = true where one = 1`),
		feature:  in(`update $s.store set features = $1 where one = 1`),

		get:     in(`select v from $s.kv where k = $1`),
		getMany: in(`select k, v from $s.kv where k = any($1)`),
		any:     in(`select exists (select 1 from $s.kv where k = any($1))`),

		forward:    pageOf("asc", "k >= $1", 1),
		forwardTo:  pageOf("asc", "k >= $1 and k < $2", 2),
		backward:   pageOf("desc", "k >= $1", 1),
		backwardTo: pageOf("desc", "k < $2 and k >= $1", 2),

		lock:       in(`select features from $s.store where one = 1 for update`),
		since:      in(`select n, keys from $s.commits where n >= $1 order by n limit $2`),
		sinceToken: in(`select exists (select 1 from $s.commits where n > $1 and token = $2)`),
		oldest:     in(`select exists (select 1 from $s.commits where n = $1)`),

		set:    in(`insert into $s.kv (k, v) select * from unnest($1::bytea[], $2::bytea[]) on conflict (k) do update set v = excluded.v`),
		remove: in(`delete from $s.kv where k = any($1)`),
		commit: in(`insert into $s.commits (n, token, keys, made) values ($1, $2, $3, now())`),
		prune: in(`delete from $s.commits where n in (select n from (select n, made from $s.commits where n > $1 order by n limit $2) as old ` +
			`where made < now() - $3::interval) and n < (select n from $s.commits order by n desc limit 1) returning n`),
	}
}
