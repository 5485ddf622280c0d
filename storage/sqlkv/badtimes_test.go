package sqlkv_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/sqlkv"
)

// with returns a URL of the shared server with another user, and parameters.
func with(t *testing.T, user *url.Userinfo, parameters ...string) string {
	t.Helper()
	u, err := url.Parse(server.URL(parameters...))
	must(t, err)
	u.User = user
	return u.String()
}

// Ensure that an address that leads to no store gives an error of its kind, which names the address and what to do, and never the
// password.
func TestOpen_BadAddress(t *testing.T) {
	const secret = "s3cret-p4ss"
	ada := url.UserPassword("jay", secret)
	foreign, newer, used, empty := newName(t), newName(t), newName(t), newName(t)
	execute(t, "create schema "+schemaOf(foreign))
	execute(t, "create table "+schemaOf(foreign)+".customers (id int)")
	must(t, open(t, new(sqlkv.Driver), newer).Close())
	execute(t, "update "+schemaOf(newer)+".store set layout = 99")
	must(t, open(t, new(sqlkv.Driver), used).Close())
	execute(t, "update "+schemaOf(used)+".store set features = '99 telepathy'")

	tests := []struct {
		name, store string
		driver      sqlkv.Driver
		options     storage.OpenOptions
		want        error
		says        string
	}{
		{name: "no URL", store: "postgres://jay:" + secret + "@host:port:5/%zz", want: sqlkv.ErrAddress, says: "PGPASSWORD"},
		{name: "no schema", store: with(t, ada, "jay_schema=A-B"), want: sqlkv.ErrAddress, says: "jay_schema"},
		{name: "no host", store: "postgres://jay:" + secret + "@no-such-host.invalid/db", driver: sqlkv.Driver{Timeout: 5 * time.Second}, want: nil, says: "no-such-host.invalid"},
		{name: "nobody listens", store: "postgres://jay:" + secret + "@127.0.0.1:1/db?sslmode=disable", want: storage.ErrUnavailable, says: "127.0.0.1:1/db"},
		{name: "no user", store: with(t, url.UserPassword("nobody", secret)), want: sqlkv.ErrCredentials, says: "pg_hba.conf"},
		{name: "no database", store: strings.Replace(with(t, ada), "/postgres?", "/nothing?", 1), want: storage.ErrNoDatabase, says: "createdb"},
		{name: "read only", store: with(t, ada, "default_transaction_read_only=on", "jay_schema="+schemaOf(used)), want: storage.ErrNewerFormat},
		{name: "another schema", store: with(t, ada, "jay_schema="+schemaOf(foreign)), want: storage.ErrNotDatabase, says: schemaOf(foreign)},
		{name: "newer layout", store: with(t, ada, "jay_schema="+schemaOf(newer)), want: storage.ErrNewerFormat, says: "layout 99"},
		{name: "newer format", store: with(t, ada, "jay_schema="+schemaOf(used)), want: storage.ErrNewerFormat, says: "telepathy"},
		{name: "must exist", store: with(t, ada, "jay_schema="+schemaOf(empty)), options: storage.OpenOptions{MustExist: true}, want: storage.ErrNoDatabase},
		{name: "only read", store: with(t, ada, "jay_schema="+schemaOf(empty)), options: storage.OpenOptions{ReadOnly: true}, want: storage.ErrNoDatabase},
		{name: "other profile", store: with(t, ada, "jay_schema="+schemaOf(empty)), driver: sqlkv.Driver{Profile: sqlkv.Cockroach}, want: sqlkv.ErrProfile, says: "cockroach"},
		{name: "no profile", store: with(t, ada), driver: sqlkv.Driver{Profile: 7}, want: sqlkv.ErrProfile, says: "Profile(7)"},
		{name: "few connections", store: with(t, ada), driver: sqlkv.Driver{Connections: 2}, says: "Connections is 2, and the least is 3"},
		{name: "no time", store: with(t, ada), driver: sqlkv.Driver{Timeout: -time.Second}, says: "Timeout is -1s"},
	}
	for i := range tests {
		test := &tests[i]
		t.Run(test.name, func(t *testing.T) {
			e, err := test.driver.Open(test.store, test.options)
			if err == nil {
				e.Close()
				t.Fatal("it was opened")
			}
			if test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if !strings.Contains(err.Error(), test.says) || strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
				t.Errorf("the message %q does not say %q, or has the password", err, test.says)
			}
		})
	}
}

// Ensure that a server that takes no writes is refused when the store is opened to be written, and read otherwise.
func TestOpen_ReadOnlyServer(t *testing.T) {
	name := newName(t)
	e := open(t, new(sqlkv.Driver), name)
	must(t, put(e, "k", "v"))
	must(t, e.Close())
	refusing := name + "&default_transaction_read_only=on"
	if _, err := new(sqlkv.Driver).Open(refusing, storage.OpenOptions{}); !errors.Is(err, storage.ErrNotWritable) {
		t.Errorf("got %v, want ErrNotWritable", err)
	}
	e, err := new(sqlkv.Driver).Open(refusing, storage.OpenOptions{ReadOnly: true})
	must(t, err)
	defer e.Close()
	equal(t, get(t, e, "k"), "v")
	if err := put(e, "k", "w"); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("got %v, want ErrReadOnly", err)
	}
	must(t, e.Sync(ctx))
	if err := e.FinishCreation(); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("got %v, want ErrReadOnly", err)
	}
}

// Ensure that nothing is written to another store that has taken the place of the one that was opened.
func TestEngine_OtherStore(t *testing.T) {
	name, p := newName(t), newProxy(t)
	e := open(t, new(sqlkv.Driver), p.name(name))
	defer e.Close()
	must(t, put(e, "k", "v"))
	execute(t, "drop schema "+schemaOf(name)+" cascade")
	other := open(t, new(sqlkv.Driver), name)
	defer other.Close()
	p.closeAll()
	for what, err := range map[string]error{"put": put(e, "k", "w"), "get": func() error { _, _, err := e.Get([]byte("k")); return err }()} {
		if !errors.Is(err, sqlkv.ErrOtherStore) {
			t.Errorf("%s: got %v, want ErrOtherStore", what, err)
		}
	}
	equal(t, get(t, other, "k"), "absent")
}

// Ensure that a process that has the store open when a newer version raises its format commits nothing more.
func TestEngine_NewerFormatMeanwhile(t *testing.T) {
	name := newName(t)
	older := &sqlkv.Driver{Features: storage.AllFeatures[:3]}
	old, now := open(t, older, name), open(t, new(sqlkv.Driver), name)
	defer old.Close()
	defer now.Close()
	must(t, put(old, "k", "1"))
	must(t, now.Update(ctx, true, func(tx storage.Tx) error {
		tx.RequireFeature(storage.AllFeatures[5])
		return nil
	}))
	var refused *storage.FormatError
	if err := put(old, "k", "2"); !errors.As(err, &refused) || refused.Found != storage.AllFeatures[5].Format {
		t.Errorf("got %v, want a FormatError", err)
	}
	equal(t, get(t, now, "k"), "1")
	must(t, put(now, "k", "3"))
	if _, err := older.Open(name, storage.OpenOptions{}); !errors.Is(err, storage.ErrNewerFormat) {
		t.Errorf("got %v, want ErrNewerFormat", err)
	}
}

// Ensure that a snapshot that finds no connection says so after Driver.Timeout, and that other reads, also those of an iterator of the engine, and writes go on.
func TestSnapshot_TooMany(t *testing.T) {
	e := open(t, &sqlkv.Driver{Connections: 3, Timeout: 3 * time.Second, SnapshotAge: 20 * time.Second}, newName(t))
	defer e.Close()
	first := e.Snapshot()
	second := e.Snapshot()
	_, _, err := second.Get([]byte("k"))
	if !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "Driver.Connections") {
		t.Errorf("got %v, want an ErrUnavailable that names Driver.Connections", err)
	}
	if _, err := second.Iterate(nil, nil); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	must(t, second.Close())
	must(t, put(e, "k", "v"))
	equal(t, get(t, e, "k"), "v")
	it, err := e.Iterate([]byte("k"), []byte("l"))
	must(t, err)
	if !it.First() || string(it.Value()) != "v" {
		t.Errorf("an iterator finds nothing: %v", it.Error())
	}
	must(t, it.Close())
	must(t, first.Close())
	third := e.Snapshot()
	equal(t, get(t, third, "k"), "v")
	must(t, third.Close())
}

// Ensure that a call is refused, and does nothing, when another process holds the lock of the store for too long.
func TestUpdate_LockIsHeld(t *testing.T) {
	name := newName(t)
	e := open(t, &sqlkv.Driver{Timeout: time.Second}, name)
	defer e.Close()
	release := holdLock(t, name)
	begun := time.Now()
	err := put(e, "k", "v")
	if !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "lock") || time.Since(begun) > 20*time.Second {
		t.Errorf("got %v after %v, want an ErrUnavailable that names the lock", err, time.Since(begun))
	}
	equal(t, get(t, e, "k"), "absent") // reads go on
	release()
	must(t, put(e, "k", "v"))
}

// Ensure that a store that is being made is seen under its name when it is whole, and not before, and that it does not take the place of another.
func TestDriver_Prepare(t *testing.T) {
	name := newName(t)
	d := new(sqlkv.Driver)
	made, err := d.Prepare(name)
	must(t, err)
	e := open(t, d, made.Name())
	must(t, put(e, "k", "v"))
	must(t, e.Close())
	if _, err := d.Open(name, storage.OpenOptions{MustExist: true}); !errors.Is(err, storage.ErrNoDatabase) {
		t.Errorf("got %v, want ErrNoDatabase", err)
	}
	if _, err := d.Prepare(name); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want ErrExist", err)
	}
	must(t, made.Commit())
	e = open(t, d, name)
	equal(t, get(t, e, "k"), "v")
	must(t, e.Close())
	if _, err := d.Prepare(name); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want ErrExist", err)
	}

	// Another one has come meanwhile.
	name = newName(t)
	made, err = d.Prepare(name)
	must(t, err)
	must(t, open(t, d, made.Name()).Close())
	must(t, open(t, d, name).Close())
	if err := made.Commit(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want ErrExist", err)
	}
	if _, err := d.Open(made.Name(), storage.OpenOptions{MustExist: true}); !errors.Is(err, storage.ErrNoDatabase) {
		t.Errorf("what was made is still there: %v", err)
	}
	must(t, made.Abandon()) // nothing is there any more
}
