package look

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/child"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// This file is inside the package for its bounds, and for what only a client of another version sends.

var ctx = context.Background()

// owned is a directory with a listener on an engine in memory.
type owned struct {
	dir    string
	engine storage.Engine
	*Listener
}

func own(t *testing.T, dir string, age time.Duration) *owned {
	t.Helper()
	e, err := lsm.Driver{Options: lsm.Options{InMemory: true}}.Open("store", storage.OpenOptions{})
	must(t, err)
	l, err := listen(dir, Source{Engine: e, Snapshot: func() (storage.Snapshot, error) { return e.Snapshot(), nil }}, age)
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(l.Close(), e.Close())) }) // l may be closed by then
	return &owned{dir, e, l}
}

func (o *owned) set(t *testing.T, key string, value []byte) {
	t.Helper()
	must(t, o.engine.Update(ctx, true, func(tx storage.Tx) error { tx.Set([]byte(key), nil, value); return nil }))
}

func lookInto(t *testing.T, dir string) storage.Engine {
	t.Helper()
	e, err := Driver{}.Open(dir, storage.OpenOptions{ReadOnly: true})
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	return e
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Ensure that iterators and gets show through the socket what they show without it, whatever moves follow each other, on
// ranges of several pages and with values larger than a page.
func TestLook_SameAsEngine(t *testing.T) {
	o := own(t, t.TempDir(), snapshotAge)
	r := rand.New(rand.NewPCG(1, 2))
	must(t, o.engine.Update(ctx, true, func(tx storage.Tx) error {
		for i := range 3000 {
			value := make([]byte, r.IntN(300))
			if i%997 == 0 {
				value = make([]byte, pageBytes+r.IntN(10))
			}
			tx.Set(fmt.Appendf(nil, "%05d", i*2), nil, value)
			if i%7 == 0 {
				tx.Set(fmt.Appendf(nil, "%05d\x00", i*2), nil, value) // the very next key
			}
		}
		return nil
	}))
	here, there := o.engine.Snapshot(), lookInto(t, o.dir).Snapshot()
	defer here.Close()
	defer there.Close()
	o.set(t, "00001", nil) // later than the snapshots

	key := func() []byte { return fmt.Appendf(nil, "%05d", r.IntN(6100)) }
	for range 200 {
		k := key()
		want, closer, wantErr := here.Get(k)
		got, _, err := there.Get(k)
		if !bytes.Equal(got, want) || err != wantErr {
			t.Fatalf("get %s: %d bytes, %v, want %d, %v", k, len(got), err, len(want), wantErr)
		}
		if closer != nil {
			must(t, closer.Close())
		}
	}
	for range 20 {
		var keys [][]byte
		for range r.IntN(2 * pageKeys) {
			keys = append(keys, key())
		}
		got := make(map[int][]byte)
		must(t, there.(storage.ManyGetter).GetMany(keys, func(i int, value []byte) error {
			if _, twice := got[i]; twice {
				t.Errorf("key %d of %d came twice", i, len(keys))
			}
			got[i] = bytes.Clone(value)
			return nil
		}))
		for i, k := range keys {
			want, closer, err := here.Get(k)
			if value, found := got[i]; found != (err == nil) || !bytes.Equal(value, want) {
				t.Fatalf("key %d of %d, %s: found %v, %d bytes, want %d, %v", i, len(keys), k, found, len(value), len(want), err)
			}
			if closer != nil {
				must(t, closer.Close())
			}
		}
	}
	stopped := errors.New("stopped")
	if err := there.(storage.ManyGetter).GetMany([][]byte{[]byte("00002"), []byte("00004")}, func(int, []byte) error { return stopped }); err != stopped {
		t.Errorf("a caller that has enough: %v", err)
	}
	for range 60 {
		lo, hi := key(), key()
		if bytes.Compare(lo, hi) > 0 { // Pebble takes no such range
			lo, hi = hi, lo
		}
		switch r.IntN(4) {
		case 0:
			lo = nil
		case 1:
			hi = nil
		}
		want, err := here.Iterate(lo, hi)
		must(t, err)
		got, err := there.Iterate(lo, hi)
		must(t, err)
		want.First() // Next and Prev follow another move
		got.First()
		moves := ""
		for range 200 {
			var a, b bool
			move := "first"
			switch k := key(); r.IntN(12) {
			case 0:
				a, b = want.First(), got.First()
			case 1:
				move, a, b = "last", want.Last(), got.Last()
			case 2:
				move, a, b = "seek ≥ "+string(k), want.SeekGE(k), got.SeekGE(k)
			case 3:
				move, a, b = "seek < "+string(k), want.SeekLT(k), got.SeekLT(k)
			case 4, 5, 6, 7, 8:
				move, a, b = "next", want.Next(), got.Next()
			default:
				move, a, b = "prev", want.Prev(), got.Prev()
			}
			if a != b || want.Valid() != got.Valid() || a && (!bytes.Equal(want.Key(), got.Key()) || !bytes.Equal(want.Value(), got.Value())) {
				t.Fatalf("[%s, %s)%s, %s: %v, want %v", lo, hi, moves, move, b, a)
			}
			moves = ", " + move
		}
		must(t, errors.Join(want.Error(), got.Error(), want.Close(), got.Close()))
	}
}

// Ensure that nothing is written through the socket.
func TestLook_Writes(t *testing.T) {
	o := own(t, t.TempDir(), snapshotAge)
	e := lookInto(t, o.dir)
	for name, err := range map[string]error{
		"Update":         e.Update(ctx, true, func(tx storage.Tx) error { tx.Set([]byte("a"), nil, nil); return nil }),
		"Compact":        e.Compact(ctx, nil, nil),
		"FinishCreation": e.FinishCreation(),
	} {
		if !errors.Is(err, storage.ErrReadOnly) {
			t.Errorf("%s: %v, want ErrReadOnly", name, err)
		}
	}
	if _, err := (Driver{}).Open(o.dir, storage.OpenOptions{}); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("opened to write: %v, want ErrReadOnly", err)
	}
}

// Ensure that 64 clients read at once, that those above the bound hear why they are refused, and that
// no goroutine is left.
func TestLook_Clients(t *testing.T) {
	o := own(t, t.TempDir(), snapshotAge)
	o.set(t, "a", []byte("1"))
	before := runtime.NumGoroutine() - 1 // without the one that accepts
	var wg sync.WaitGroup
	for range 64 {
		e := lookInto(t, o.dir)
		wg.Go(func() {
			for range 20 {
				s := e.Snapshot()
				value, _, err := s.Get([]byte("a"))
				if string(value) != "1" || err != nil {
					t.Errorf("got %q, %v", value, err)
				}
				must(t, s.Close())
			}
		})
	}
	wg.Wait()
	for range maxClients - 64 {
		lookInto(t, o.dir)
	}
	if _, err := (Driver{}).Open(o.dir, storage.OpenOptions{ReadOnly: true}); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "100 programs") {
		t.Errorf("one client too many: %v", err)
	}
	must(t, o.Close())
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, before %d", runtime.NumGoroutine(), before)
		}
	}
	if left, err := os.ReadDir(o.dir); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// Ensure that a snapshot is closed when it is too old, and that its reads say so.
func TestLook_SnapshotExpires(t *testing.T) {
	o := own(t, t.TempDir(), 50*time.Millisecond)
	o.set(t, "a", []byte("1"))
	e := lookInto(t, o.dir)
	if age := e.Limits().SnapshotAge; age != 50*time.Millisecond {
		t.Errorf("the limit is %v", age)
	}
	s := e.Snapshot()
	defer s.Close()
	it, err := s.Iterate(nil, nil)
	must(t, err)
	for deadline := time.Now().Add(10 * time.Second); !errors.Is(err, storage.ErrSnapshotExpired); _, _, err = s.Get([]byte("a")) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not expire: %v", err)
		}
	}
	if it.First() || !errors.Is(it.Error(), storage.ErrSnapshotExpired) {
		t.Errorf("its iterator: %v", it.Error())
	}
	if value, _, err := e.Get([]byte("a")); string(value) != "1" || err != nil {
		t.Errorf("a later read: %q, %v", value, err)
	}
}

// Ensure that a client that takes nothing of a large answer is given up, with its snapshots, and that Close does not
// wait for it.
func TestLook_StuckClient(t *testing.T) {
	stall = 100 * time.Millisecond
	defer func() { stall = 30 * time.Second }()
	o := own(t, t.TempDir(), snapshotAge)
	o.set(t, "a", make([]byte, 16<<20))
	var open atomic.Int32
	take := o.source.Snapshot
	o.source.Snapshot = func() (storage.Snapshot, error) {
		s, err := take()
		open.Add(1)
		return counted{s, &open}, err
	}
	stuck := func() net.Conn {
		conn, err := net.Dial("unix", filepath.Join(o.dir, Name))
		must(t, err)
		_, err = conn.Write([]byte(magic + "\x01" + "\x00\x00\x00\x01\x01" + "\x00\x00\x00\x04\x03\x01\x01a"))
		must(t, err)
		return conn
	}
	defer stuck().Close()
	for deadline := time.Now().Add(10 * time.Second); open.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it has no snapshot")
		}
	}
	for deadline := time.Now().Add(10 * time.Second); open.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("its snapshot is open")
		}
	}
	stall = time.Hour
	defer stuck().Close()
	for deadline := time.Now().Add(10 * time.Second); open.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the second has no snapshot")
		}
	}
	must(t, o.Close())
	if open.Load() > 0 {
		t.Error("a snapshot is open after Close")
	}
}

// counted is a snapshot that is counted as long as it is open.
type counted struct {
	storage.Snapshot
	open *atomic.Int32
}

func (c counted) Close() error {
	c.open.Add(-1)
	return c.Snapshot.Close()
}

// Ensure that the owner checks its own files and no others for a client, which can slow it down and leave.
func TestLook_Files(t *testing.T) {
	o := own(t, t.TempDir(), snapshotAge)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 5 * stepBytes / (16 << 10) {
		value := make([]byte, 16<<10)
		for j := range value {
			value[j] = byte(r.Uint32())
		}
		o.set(t, fmt.Sprint(i), value)
	}
	must(t, o.engine.Compact(ctx, nil, nil))
	here, there := o.engine.(storage.FileChecker), lookInto(t, o.dir).(*engine)
	want, err := here.Files()
	must(t, err)
	files, err := there.Files()
	must(t, err)
	if !slices.Equal(files, want) || len(files) == 0 {
		t.Fatalf("got %v, want %v", files, want)
	}
	paced := func(e storage.FileChecker, f storage.File) (read, calls int) {
		t.Helper()
		damage, err := e.CheckFile(ctx, f, func(n int) error { read, calls = read+n, calls+1; return nil })
		if len(damage) > 0 || err != nil {
			t.Errorf("%s: %v, %v", f.Name, damage, err)
		}
		return read, calls
	}
	largest := files[0]
	for _, f := range files {
		read, _ := paced(here, f)
		if got, _ := paced(there, f); got != read {
			t.Errorf("%s: %d bytes, want %d", f.Name, got, read)
		}
		if f.Bytes > largest.Bytes {
			largest = f
		}
	}
	if _, calls := paced(there, largest); calls < 2 || calls > 12 {
		t.Errorf("the client of %d bytes was asked %d times", largest.Bytes, calls)
	}
	for _, name := range []string{"", "../x", "000000.sst", Name} {
		if read, _ := paced(there, storage.File{Name: name}); read > 0 {
			t.Errorf("%q: %d bytes are read", name, read)
		}
	}
	over := errors.New("over")
	if _, err := there.CheckFile(ctx, largest, func(int) error { return over }); !errors.Is(err, over) {
		t.Errorf("a check that is ended: %v", err)
	}
	if _, _, err := there.Get([]byte("a")); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("after it: %v", err)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := lookInto(t, o.dir).(*engine).CheckFile(canceled, largest, func(int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a check that is canceled: %v", err)
	}
}

// pipes is a connection without deadlines.
type pipes struct {
	io.Reader
	io.Writer
	close func() error
}

func (p pipes) Close() error { return p.close() }

// Ensure that a client is answered on a connection of another kind, that large values are paid for, that a side which does not answer is
// given up, also on a connection without deadlines, and that the end of a context, and Close, end it.
func TestAnswerer(t *testing.T) {
	o := own(t, t.TempDir(), snapshotAge)
	o.set(t, "a", []byte("1"))
	o.set(t, "large", make([]byte, 2*pageBytes))
	a := NewAnswerer(o.source)
	enough := errors.New("that is enough")
	bare := func(ctx context.Context) (storage.Engine, chan error) {
		t.Helper()
		fromClient, toOwner := io.Pipe()
		fromOwner, toClient := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- a.Answer(ctx, AsConn(pipes{fromClient, toClient, func() error { return errors.Join(fromClient.Close(), toClient.Close()) }}), func(int64) error { return enough })
		}()
		client := pipes{fromOwner, toOwner, func() error { return errors.Join(fromOwner.Close(), toOwner.Close()) }}
		e, err := Driver{Dial: func() net.Conn { return AsConn(client) }}.Open("the pipe", storage.OpenOptions{ReadOnly: true})
		must(t, err)
		return e, ended
	}
	e, ended := bare(ctx)
	if value, _, err := e.Get([]byte("a")); string(value) != "1" || err != nil {
		t.Errorf("got %q, %v", value, err)
	}
	_, _, err := e.Get([]byte("large"))
	it, iterErr := e.Iterate([]byte("b"), nil)
	must(t, iterErr)
	if it.First() || it.Error() == nil || err == nil || !strings.Contains(err.Error()+it.Error().Error(), enough.Error()) {
		t.Errorf("a value that is not paid for: %v, %v", err, it.Error())
	}
	must(t, errors.Join(it.Close(), e.Close()))
	if err := <-ended; err != nil {
		t.Errorf("the client has left: %v", err)
	}

	short, cancel := context.WithCancel(ctx)
	e, ended = bare(short)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("its context has ended: %v", err)
	}
	if _, _, err := e.Get([]byte("a")); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("then: %v", err)
	}
	_, ended = bare(ctx)
	a.Close()
	must(t, <-ended)
	mine, theirs := net.Pipe()
	defer theirs.Close()
	if err := a.Answer(ctx, mine, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}

	greeting = 50 * time.Millisecond
	defer func() { greeting = 5 * time.Second }()
	silent, _ := io.Pipe()
	_, err = Driver{Dial: func() net.Conn { return AsConn(pipes{silent, io.Discard, silent.Close}) }}.Open("nothing", storage.OpenOptions{ReadOnly: true})
	if !errors.Is(err, storage.ErrUnavailable) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a side that does not answer: %v", err)
	}
}

// Ensure that a client has a bounded number of snapshots.
func TestLook_Snapshots(t *testing.T) {
	o := own(t, t.TempDir(), snapshotAge)
	e := lookInto(t, o.dir)
	for range maxSnapshots {
		e.Snapshot() // closed with the connection
	}
	if _, _, err := e.Snapshot().Get([]byte("a")); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("one snapshot too many: %v", err)
	}
}

// Ensure that another version, garbage, a frame that is too large and a request that is not known are answered or
// refused, and that the owner goes on.
func TestLook_Strangers(t *testing.T) {
	o := own(t, t.TempDir(), snapshotAge)
	o.set(t, "a", []byte("1"))
	ask := func(sent string) string {
		conn, err := net.Dial("unix", filepath.Join(o.dir, Name))
		must(t, err)
		defer conn.Close()
		must(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
		_, _ = conn.Write([]byte(sent)) // it may be refused before all is sent
		var all bytes.Buffer
		_, _ = all.ReadFrom(&bounded{conn, 4096})
		return all.String()
	}
	if got := ask(magic + "\x07"); !strings.HasPrefix(got, magic+"\x01") || !strings.Contains(got, "version 7") {
		t.Errorf("another version: %q", got)
	}
	if got := ask("GET / HTTP/1.1\r\n\r\n"); got != "" {
		t.Errorf("garbage: %q", got)
	}
	if got := ask(magic + "\x01" + "\xff\xff\xff\xff\x01"); !strings.Contains(got, "4294967295 bytes") {
		t.Errorf("a huge frame: %q", got)
	}
	if got := ask(magic + "\x01" + "\x00\x00\x00\x00\x01"); !strings.Contains(got, "0 bytes") {
		t.Errorf("an empty frame: %q", got)
	}
	e := lookInto(t, o.dir).(*engine)
	for kind, request := range map[byte]string{
		99:       "",
		askGet:   "\x00\xff\xff\xff\x0f",
		askPage:  "\x00",
		askMany:  "\x00",           // none
		askClose: "\x09",           // of none: nothing to do
		askSpace: "\x00\x01b\x01a", // a range that ends before it begins
	} {
		if _, err := e.ask(kind, []byte(request)); (err == nil) != (kind == askClose) {
			t.Errorf("request of kind %d: %v", kind, err)
		}
	}
	reversed := pageRequest{keys: 1, lo: []byte("b"), hi: []byte("a")}
	for _, reversed.flags = range []byte{0, backward} {
		if reply, err := e.ask(askPage, reversed.append(nil)); string(reply) != "\x00" || err != nil {
			t.Errorf("a page of a range that ends before it begins: %q, %v", reply, err)
		}
	}
	if _, err := e.ask(askMany, append([]byte{0}, make([]byte, pageKeys+1)...)); err == nil {
		t.Error("too many keys at a time")
	}
	if _, err := e.ask(askGet, make([]byte, maxRequest)); !errors.Is(err, storage.ErrTooLarge) {
		t.Errorf("a request that is too large: %v", err)
	}
	if value, _, err := e.Get([]byte("a")); string(value) != "1" || err != nil {
		t.Errorf("a get after all that: %q, %v", value, err)
	}
}

// bounded reads at most so many bytes.
type bounded struct {
	net.Conn
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// Ensure that an owner of another version, and one that says nothing, are told from one that is not there.
func TestLook_OtherOwners(t *testing.T) {
	for name, says := range map[string]string{
		"version 9": magic + "\x09\x00\x00\x00\x03\x00{}",
		"refuses":   magic + "\x09\x00\x00\x00\x04\xffno!",
		"ended":     "",
		"protocol":  "HTTP/1.1 400 Bad Request\r\n",
	} {
		dir := t.TempDir()
		l, err := net.Listen("unix", filepath.Join(dir, Name))
		must(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			conn, err := l.Accept()
			if err == nil {
				_, _ = io.ReadFull(conn, make([]byte, len(magic)+1))
				_, _ = conn.Write([]byte(says))
				_ = conn.Close()
			}
		}()
		if _, err := (Driver{}).Open(dir, storage.OpenOptions{ReadOnly: true}); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		must(t, l.Close())
		<-done
	}
	if _, err := (Driver{}).Open(t.TempDir(), storage.OpenOptions{ReadOnly: true}); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "no program listens") {
		t.Errorf("no socket: %v", err)
	}
}

// Ensure that a directory with a path of 300 bytes has its socket in the user's runtime directory, which is for the
// user alone, and that nothing is left of it.
func TestLook_LongPath(t *testing.T) {
	run := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", run)
	if len(run) > 50 {
		short, err := os.MkdirTemp("", "")
		must(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(short) })
		run = short
		t.Setenv("XDG_RUNTIME_DIR", run)
	}
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 150), strings.Repeat("y", 150))
	must(t, os.MkdirAll(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, Name), []byte("/nowhere"), 0o600)) // of an earlier owner
	o := own(t, dir, snapshotAge)
	o.set(t, "a", []byte("1"))
	if value, _, err := lookInto(t, dir).Get([]byte("a")); string(value) != "1" || err != nil {
		t.Errorf("got %q, %v", value, err)
	}
	base := filepath.Join(run, fmt.Sprintf("jay-%d", os.Geteuid()))
	if info, err := os.Stat(base); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("the directory of the socket: %v, %v", info, err)
	}
	must(t, o.Close())
	for _, d := range []string{dir, base} {
		if left, err := os.ReadDir(d); err != nil || len(left) > 0 {
			t.Errorf("files are left in %s: %v, %v", d, left, err)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	must(t, os.Chmod(base, 0o755)) // others may have made it
	if _, err := listen(dir, o.source, snapshotAge); err == nil {
		t.Error("a runtime directory that others can use is used")
	}
}

// Ensure that a directory in memory has its socket inside, as every other one.
func TestLook_Tmpfs(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	o := own(t, dir, snapshotAge)
	o.set(t, "a", []byte("1"))
	if value, _, err := lookInto(t, dir).Get([]byte("a")); string(value) != "1" || err != nil {
		t.Errorf("got %q, %v", value, err)
	}
	if info, err := os.Lstat(filepath.Join(dir, Name)); err != nil || info.Mode().Type() != os.ModeSocket || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
}

// Ensure that an owner leaves alone what another has put in the place of its socket.
func TestLook_Replaced(t *testing.T) {
	o := own(t, t.TempDir(), snapshotAge)
	name := filepath.Join(o.dir, Name)
	must(t, os.Rename(name, name+".away"))
	must(t, os.WriteFile(name, nil, 0o600))
	must(t, o.Close())
	if _, err := os.Stat(name); err != nil {
		t.Error(err)
	}
}

// Ensure that a client hears of the death of the owner, and that the next owner takes the place of the socket that
// is left.
func TestLook_Kill(t *testing.T) {
	dir := t.TempDir()
	other := child.Start(t, "TestLook_Process", "JAY_LOOK_DIR="+dir)
	if line := other.Line(); line != "open" {
		t.Fatal(line)
	}
	e := lookInto(t, dir)
	if value, _, err := e.Get([]byte("a")); string(value) != "child" || err != nil {
		t.Fatalf("got %q, %v", value, err)
	}
	if text := Explain(dir, storage.ErrLocked).Error(); !strings.Contains(text, fmt.Sprint("process ", e.(*engine).hello.PID, ",")) || e.(*engine).hello.PID == os.Getpid() {
		t.Errorf("who has it: %s", text)
	}
	other.Kill()
	for range 2 {
		if _, _, err := e.Get([]byte("a")); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("after its death: %v, want ErrUnavailable", err)
		}
	}
	if _, err := e.NextCommit(); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("the next commit: %v, want ErrUnavailable", err)
	}
	if _, err := (Driver{}).Open(dir, storage.OpenOptions{ReadOnly: true}); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "nothing answers") {
		t.Errorf("a socket without an owner: %v", err)
	}
	if err := Explain(dir, storage.ErrLocked); err != storage.ErrLocked {
		t.Errorf("who has it: %v", err)
	}
	o := own(t, dir, snapshotAge)
	o.set(t, "a", []byte("next"))
	if value, _, err := lookInto(t, dir).Get([]byte("a")); string(value) != "next" || err != nil {
		t.Errorf("the next owner: %q, %v", value, err)
	}
}

// TestLook_Process is the owner that TestLook_Kill kills.
func TestLook_Process(t *testing.T) {
	dir := os.Getenv("JAY_LOOK_DIR")
	if dir == "" {
		t.Skip("this is for the other process")
	}
	o := own(t, dir, snapshotAge)
	o.set(t, "a", []byte("child"))
	fmt.Println("open")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until it is killed
}
