package sqlkv_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jaydb/jay/internal/pgtest"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/sqlkv"
)

// Ensure that of several servers those are passed over that do not answer, as one that stands still, or only read, as a standby.
func TestOpen_SeveralHosts(t *testing.T) {
	name, p := newName(t), newProxy(t)
	mute, err := net.Listen("tcp", "127.0.0.1:0") // the system takes connections, and nothing is answered
	must(t, err)
	defer mute.Close()
	reads := newProxy(t)
	reads.startup = "default_transaction_read_only\x00on\x00"
	hosts := mute.Addr().String() + "," + reads.listener.Addr().String() + "," + p.listener.Addr().String()
	e := open(t, &sqlkv.Driver{Timeout: 6 * time.Second}, strings.Replace(p.name(name), p.listener.Addr().String(), hosts, 1))
	defer e.Close()
	must(t, put(e, "k", "v"))
	equal(t, get(t, e, "k"), "v")
	p.refuses.Store(true)
	p.closeAll()
	if err := put(e, "k", "w"); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), hosts) {
		t.Errorf("got %v, want an ErrUnavailable that names %s", err, hosts)
	}
}

// Ensure that a server that lacks commits which the process has seen is not used: it was the primary one before a failover.
func TestEngine_ServerIsBehind(t *testing.T) {
	name, p := newName(t), newProxy(t)
	e, err := new(sqlkv.Driver).Open(p.name(name), storage.OpenOptions{DurableReads: true})
	must(t, err)
	defer e.Close()
	must(t, put(e, "k", "1"))
	must(t, put(e, "k", "2"))
	commits := schemaOf(name) + ".commits"
	execute(t, "create table "+commits+"_kept as select * from "+commits+" order by n desc limit 1")
	execute(t, "delete from "+commits+" where n = (select n from "+commits+"_kept)")
	p.closeAll()
	for what, call := range map[string]func() error{
		"put": func() error { return put(e, "k", "3") },
		"get": func() error { _, _, err := e.Get([]byte("k")); return err },
	} {
		if err := call(); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "this process has seen number") {
			t.Errorf("%s: got %v, want an ErrUnavailable that says why", what, err)
		}
	}
	execute(t, "insert into "+commits+" select * from "+commits+"_kept")
	equal(t, get(t, e, "k"), "2")
	must(t, put(e, "k", "3"))
	equal(t, get(t, e, "k"), "3")
}

// Ensure that a commit that is on no synchronous standby is not acknowledged and not shown, not even when the process stops to wait for it, and
// that it is decided when a standby is there.
func TestUpdate_NoStandby(t *testing.T) {
	for _, cancels := range []bool{false, true} {
		t.Run(map[bool]string{false: "the client waits in vain", true: "the commit is cancelled"}[cancels], func(t *testing.T) {
			own, err := pgtest.Start()
			must(t, err)
			defer own.Stop()
			if !own.Own() {
				t.Skip("the server is not the tests' own")
			}
			admin, err := pgx.Connect(ctx, own.URL())
			must(t, err)
			defer admin.Close(ctx)
			run := func(sql string) {
				t.Helper()
				_, err := admin.Exec(ctx, sql)
				must(t, err)
			}
			e := open(t, &sqlkv.Driver{Timeout: 2 * time.Second}, own.URL())
			defer e.Close()
			must(t, put(e, "k", "1"))
			run("alter system set synchronous_standby_names = 'nobody'")
			run("select pg_reload_conf()")
			eventually(t, func() bool { return shows(t, admin, "show synchronous_standby_names", "nobody") })

			written := 1
			failed := make(chan error, 1)
			begin := func() {
				written++
				value := itoa(written)
				go func() { failed <- put(e, "k", value) }()
			}
			begin()
			eventually(t, func() bool {
				select {
				case err := <-failed: // the server's processes did not all know the setting yet
					must(t, err)
					begin()
				default:
				}
				return shows(t, admin, "select (count(*) > 0)::text from pg_stat_activity where wait_event = 'SyncRep'", "true")
			})
			if cancels { // by an administrator
				run("select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'")
			}
			if err := <-failed; !errors.Is(err, storage.ErrUnknownOutcome) {
				t.Errorf("got %v, want ErrUnknownOutcome", err)
			}
			if !cancels { // the call has waited for twice Driver.Timeout
				equal(t, get(t, e, "k"), itoa(written-1))
			}
			if err := put(e, "k", "refused"); !errors.Is(err, storage.ErrUnavailable) {
				t.Errorf("got %v, want ErrUnavailable", err)
			}

			run("alter system reset synchronous_standby_names")
			run("select pg_reload_conf()")
			eventually(t, func() bool {
				value, _, err := e.Get([]byte("k"))
				return err == nil && string(value) == itoa(written)
			})
			eventually(t, func() bool { return put(e, "k", "later") == nil })
			equal(t, get(t, e, "k"), "later")
		})
	}
}

// shows reports whether a statement has a result.
func shows(t *testing.T, c *pgx.Conn, sql, want string) bool {
	t.Helper()
	var got string
	must(t, c.QueryRow(ctx, sql).Scan(&got))
	return fmt.Sprint(got) == want
}
