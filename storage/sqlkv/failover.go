package sqlkv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jaydb/jay/storage"
)

// hosts returns the servers that an address names, in its order.
func (a address) hosts() []string {
	all := []string{net.JoinHostPort(a.config.Host, strconv.Itoa(int(a.config.Port)))}
	for _, f := range a.config.Fallbacks {
		host := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port)))
		if !slices.Contains(all, host) { // one with TLS and one without
			all = append(all, host)
		}
	}
	return all
}

// overHosts returns the configuration of connections to an address. If the address names several
// servers, of which the primary one may be any, a server that does not answer gets only a part of
// Driver.Timeout, so that the others are tried, too; and one that only reads, such as a standby, is
// passed over, unless the address says target_session_attrs or the store is opened read-only.
func (o *options) overHosts(a address) *pgx.ConnConfig {
	config := a.config.Copy()
	n := len(a.hosts())
	if n == 1 {
		return config
	}
	if share := o.timeout / time.Duration(n+1); config.ConnectTimeout == 0 || config.ConnectTimeout > share {
		config.ConnectTimeout = share
	}
	if config.ValidateConnect == nil && !o.readOnly {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return config
}

// notBehind returns the check of a new connection: it refuses a server that lacks commits which
// this process has seen, so that the next host is tried. Such a server was the primary one before a
// failover, and does not know yet that it is not any more; or it has become the primary one without
// having been synchronous. before is the check that comes first, or nil.
func (e *Engine) notBehind(before pgconn.ValidateConnectFunc) pgconn.ValidateConnectFunc {
	return func(ctx context.Context, c *pgconn.PgConn) error {
		if before != nil {
			if err := before(ctx, c); err != nil {
				return err
			}
		}
		seen := e.newest.Load()
		if e.relaxed { // others may be lost with the server's memory
			seen = e.durable.Load()
		}
		if seen == 0 {
			return nil
		}
		r := c.ExecParams(ctx, e.sql.newestOf, [][]byte{e.id}, nil, []int16{1}, nil).Read()
		if r.Err != nil && state(r.Err) == "" {
			return r.Err
		}
		if r.Err != nil || len(r.Rows) == 0 {
			return nil // it is another store, or none: same says so
		}
		number, err := strconv.ParseUint(string(r.Rows[0][0]), 10, 64)
		if err == nil && number < seen {
			err = &Error{Address: e.address.String(), Kind: storage.ErrUnavailable,
				Cause: fmt.Errorf("its newest commit is number %d, and this process has seen number %d", number, seen),
				Do:    "wait for the failover to end; if it has lost commits, as no standby was synchronous, close the database and open it again"}
		}
		return err
	}
}

// watch watches the leader's connection while it commits.
type watch struct {
	committing atomic.Bool // the connection may be waiting for a commit
	cancelled  atomic.Bool // the server has stopped to wait for a standby
}

// errCommitting is returned instead of a connection that would cancel a commit.
var errCommitting = errors.New("sqlkv: a commit is not cancelled")

// on returns the configuration of a connection that is watched.
//
// A client of PostgreSQL that does not want to wait any more asks the server to cancel what the
// connection does. If that is a commit which waits for a synchronous standby, the server stops to
// wait and shows the commit to all readers, although a failover would lose it. So while a
// connection commits, no request to cancel is made. The server says by a warning that this has
// happened nevertheless, as an administrator can cancel, too.
func (w *watch) on(config *pgx.ConnConfig) *pgx.ConnConfig {
	config = config.Copy()
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if w.committing.Load() {
			return nil, errCommitting
		}
		return dial(ctx, network, address)
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.Code == "01000" && n.SeverityUnlocalized == "WARNING" {
			w.cancelled.Store(true)
		}
	}
	return config
}

// begin is called before a commit is sent, and end when its answer is there, which is err. If the
// server has not waited for a standby, the outcome is as if the answer had been lost.
func (w *watch) begin() {
	w.cancelled.Store(false)
	w.committing.Store(true)
}

func (w *watch) end(err error) error {
	if err != nil && lost(err) {
		return err // the connection is of no use any more
	}
	w.committing.Store(false)
	if err == nil && w.cancelled.Load() {
		return errNotReplicated
	}
	return err
}

// errNotReplicated is the error of a commit that is on the disk of the primary server, and perhaps on no other.
var errNotReplicated = errors.New("the server has stopped to wait for its synchronous standby")
