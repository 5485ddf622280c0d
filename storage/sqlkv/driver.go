package sqlkv

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/jaydb/jay/storage"
)

// Driver opens stores on servers: jay.Options.Engine takes one. The zero value is for PostgreSQL, with the defaults. It is safe
// for concurrent use, and must not change once a store was opened.
//
// The name of a store is a URL, such as
//
//	postgres://ada@db.example.com:5432/app?sslmode=verify-full&jay_schema=jay
//
// or the same as key=value pairs. jay_schema is the schema in which the tables are; the default is jay. What the name leaves out,
// the password above all, comes from the environment variables and files of PostgreSQL's clients: PGPASSWORD, ~/.pgpass,
// PGSSLROOTCERT and others.
//
// A name can have several hosts, of which the primary server may be any: postgres://ada@db1,db2,db3/app. Those that only read are passed over, unless the
// store is opened read-only or the name says target_session_attrs.
type Driver struct {
	// Profile is the kind of server. The default is Postgres.
	Profile Profile

	// Connections is how many connections a store has to its server at most, but for the one that commits. A Snapshot that is
	// open takes one. When all but two are taken, the next Snapshot waits until one is closed, for at most Timeout.
	//
	// The default is 16. The least is 3.
	Connections int

	// Timeout is how long a call waits for an answer of the server, if its context does not end before: to
	// connect, to read, and to commit. Several hosts share the time to connect. Then it returns a storage.ErrUnavailable, or, if the outcome of a commit cannot be known,
	// a storage.ErrUnknownOutcome.
	//
	// The default is 30 seconds.
	Timeout time.Duration

	// SnapshotAge is how long a Snapshot shows its moment. A longer one keeps the server from freeing the space of what was
	// overwritten meanwhile.
	//
	// The default is 5 minutes on PostgreSQL, and 1 minute on the others.
	SnapshotAge time.Duration

	// PollInterval is how often a store for whose next commit a caller waits is asked for the commits of other processes.
	//
	// The default is 50 milliseconds.
	PollInterval time.Duration

	// Retention is for how long the store knows what its commits wrote. The function of a transaction that takes longer
	// runs again.
	//
	// The default is 10 minutes.
	Retention time.Duration

	// Features are those that the engines know, so that tests can have an older and a newer version on one store. Nil is
	// storage.AllFeatures.
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

// StoreLimits implements storage.Limiter. A Driver whose options are refused has no limits.
func (d *Driver) StoreLimits() storage.Limits {
	opts, err := d.options(storage.OpenOptions{})
	if err != nil {
		return storage.Limits{}
	}
	return opts.limits
}

// Open implements storage.Driver. With DurableReads every commit of this engine waits for the server's disk, as the
// server shows others before; engines of other processes must be opened so, too. AcceptLoss is not called: a server checks and repairs its
// files itself. Bounds are not needed. CloseTimeout is not used: see Driver.Timeout.
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
