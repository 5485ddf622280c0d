package sqlkv

import (
	"fmt"
	"time"

	"github.com/jaydb/jay/storage"
)

// Profile is a kind of server. The zero value is Postgres.
type Profile int

const (
	// Postgres is PostgreSQL, from version 13 on.
	Postgres Profile = iota

	// Yugabyte is YugabyteDB. It has never run on a genuine one.
	Yugabyte

	// Cockroach is CockroachDB. It has never run on a genuine one.
	Cockroach
)

// String returns the name of the profile.
func (p Profile) String() string {
	switch p {
	case Postgres:
		return "postgres"
	case Yugabyte:
		return "yugabyte"
	case Cockroach:
		return "cockroach"
	}
	return fmt.Sprintf("Profile(%d)", int(p))
}

// traits are how the kinds of servers differ.
type traits struct {
	limits  storage.Limits
	reads   string // begins a transaction that reads one moment
	commits string // begins a transaction that commits a group
	eager   bool   // each statement of such a transaction sees what was committed before the statement began
	relaxed bool   // a commit need not wait for the disk
	key     string // the primary key of table kv
	version string // that the answer to "select version()" contains

	// settings are made on each connection.
	settings []string
}

// profiles are the traits of each Profile.
var profiles = map[Profile]traits{
	Postgres: {
		// An entry of a B-tree must fit into a third of a page of 8 KiB, and has a header. Pages of
		// values are PostgreSQL's own.
		limits:  storage.Limits{KeyBytes: 2600, ValueBytes: 64 << 20, TxBytes: 256 << 20, SnapshotAge: 5 * time.Minute},
		reads:   "begin isolation level repeatable read read only",
		commits: "begin isolation level read committed",
		eager:   true,
		relaxed: true,
		key:     "primary key (k)",
		version: "PostgreSQL",
		settings: []string{
			// Every statement finds its rows by the primary key. A plan that was made while a table was small must not stay
			// another one when it has grown.
			"set enable_seqscan = off",
			"set enable_bitmapscan = off",
			"set jit = off",
			"set plan_cache_mode = force_generic_plan",
			// Durability that an administrator has made stricter stays so. The others wait for less than the
			// disk of a synchronous standby.
			"select set_config('synchronous_commit', case current_setting('synchronous_commit') when 'remote_apply' then 'remote_apply' else 'on' end, false)",
		},
	},
	Yugabyte: {
		limits:  storage.Limits{KeyBytes: 1024, ValueBytes: 1 << 20, TxBytes: 16 << 20, SnapshotAge: time.Minute},
		reads:   "begin isolation level repeatable read read only",
		commits: "begin isolation level repeatable read",
		key:     "primary key (k asc)",
		version: "-YB-",
	},
	Cockroach: {
		limits:  storage.Limits{KeyBytes: 1024, ValueBytes: 1 << 20, TxBytes: 4 << 20, SnapshotAge: time.Minute},
		reads:   "begin isolation level serializable read only",
		commits: "begin isolation level serializable",
		key:     "primary key (k asc)",
		version: "CockroachDB",
	},
}
