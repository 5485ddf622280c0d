package sqlkv

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/jaydb/jay/storage"
)

// Driver opens stores on servers. Set it in jay.Options.Engine. The zero value is for PostgreSQL,
// with the defaults. A Driver is safe for concurrent use, and must not change once a store was
// opened.
//
// The name of a store is a URL, such as
//
//	postgres://ada@db.example.com:5432/app?sslmode=verify-full&jay_schema=jay
//
// or the same as key=value pairs. jay_schema is the schema of the tables. The default is jay.
// Settings that the name leaves out, above all the password, come from the environment variables
// and files of PostgreSQL's clients: PGPASSWORD, ~/.pgpass, PGSSLROOTCERT and others.
//
// A name can have several hosts, and any of them may be the primary server:
// postgres://ada@db1,db2,db3/app. Open skips read-only servers, unless the store is opened
// read-only or the name has target_session_attrs.
type Driver struct {
	// Profile is the kind of server. The default is Postgres.
	Profile Profile

	// Connections is the greatest number of connections from a store to its server, without the
	// connection that commits. An open Snapshot takes one. When all but two are taken, the next
	// Snapshot waits until another one is closed, for at most Timeout.
	//
	// The default is 16. The minimum is 3.
	Connections int

	// Timeout is how long a call waits for an answer of the server, to connect, to read, and to
	// commit, if its context does not end before. Several hosts share the time to connect. After
	// Timeout the call returns a storage.ErrUnavailable, or, for a commit in doubt, a
	// storage.ErrUnknownOutcome.
	//
	// The default is 30 seconds.
	Timeout time.Duration

	// SnapshotAge is how long a Snapshot shows its moment. While a Snapshot is open, the server cannot
	// free the space of values that were overwritten since.
	//
	// The default is 5 minutes on PostgreSQL, and 1 minute on the other servers.
	SnapshotAge time.Duration

	// PollInterval is how often the engine asks the store for commits of other processes while a
	// caller waits for the next commit.
	//
	// The default is 50 milliseconds.
	PollInterval time.Duration

	// Retention is how long the store keeps the keys that its commits wrote. If the function of a
	// transaction takes longer, it runs again.
	//
	// The default is 10 minutes.
	Retention time.Duration

	// Features are the features that the engines know, so that tests can open one store with an older
	// and a newer version. Nil means storage.AllFeatures.
	Features storage.Features
}

// options are those of a Driver, with its defaults, and those of an Open.
type options struct {
	traits
	profile     Profile
	connections int
	timeout     time.Duration
	pollEvery   time.Duration
	retention   time.Duration
	known       storage.Features
	readOnly    bool
	relaxed     bool // commits without sync need not wait for the disk; if not, what can be read is on it
	log         *slog.Logger
}

func (d *Driver) options(o storage.OpenOptions) (options, error) {
	t, found := profiles[d.Profile]
	if !found {
		return options{}, fmt.Errorf("%w: there is no %v", ErrProfile, d.Profile)
	}
	opts := options{
		traits:      t,
		profile:     d.Profile,
		connections: cmp.Or(d.Connections, 16),
		timeout:     cmp.Or(d.Timeout, 30*time.Second),
		pollEvery:   cmp.Or(d.PollInterval, 50*time.Millisecond),
		retention:   cmp.Or(d.Retention, 10*time.Minute),
		known:       d.Features,
		readOnly:    o.ReadOnly,
		relaxed:     t.relaxed && !o.DurableReads, // the server shows a relaxed commit before it is on its disk
		log:         o.Logger,
	}
	opts.limits.SnapshotAge = cmp.Or(d.SnapshotAge, t.limits.SnapshotAge)
	if opts.known == nil {
		opts.known = storage.AllFeatures[:]
	}
	if opts.log == nil {
		opts.log = slog.New(slog.DiscardHandler)
	}
	if opts.connections < 3 {
		return options{}, fmt.Errorf("sqlkv: Driver.Connections is %d, and the least is 3", d.Connections)
	}
	for name, value := range map[string]time.Duration{"Timeout": opts.timeout, "SnapshotAge": opts.limits.SnapshotAge, "PollInterval": opts.pollEvery, "Retention": opts.retention} {
		if value < time.Millisecond {
			return options{}, fmt.Errorf("sqlkv: Driver.%s is %v, and the least is %v", name, value, time.Millisecond)
		}
	}
	return opts, nil
}

// StoreLimits implements storage.Limiter. A Driver with invalid options has no limits.
func (d *Driver) StoreLimits() storage.Limits {
	opts, err := d.options(storage.OpenOptions{})
	if err != nil {
		return storage.Limits{}
	}
	return opts.limits
}

// Open implements storage.Driver. With DurableReads every commit of this engine waits for the
// server's disk, because the server shows other commits before they are on disk. The engines of
// other processes must be opened with DurableReads, too. AcceptLoss is never called: a server
// checks and repairs its own files. Bounds and CloseTimeout are not used: see Driver.Timeout.
func (d *Driver) Open(name string, o storage.OpenOptions) (storage.Engine, error) {
	a, err := newAddress(name)
	if err != nil {
		return nil, err
	}
	opts, err := d.options(o)
	if err != nil {
		return nil, err
	}
	return open(a, opts, o.MustExist || o.ReadOnly)
}
