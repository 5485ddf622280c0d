package look

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay/storage"
)

// carried is an owner that carries out calls: "echo" returns its arguments, "wait" waits until its context or the test ends, "steps" reports progress
// and ends when the client has heard of it, and "panic" panics.
type carried struct {
	*owned
	waiting  chan struct{} // a "wait" has begun
	ended    chan error    // a "wait" has ended
	let      chan struct{} // closed, it ends "wait"
	progress chan struct{} // ends "steps"
}

func carry(t *testing.T) *carried {
	t.Helper()
	c := &carried{owned: own(t, t.TempDir(), snapshotAge), waiting: make(chan struct{}, 100), ended: make(chan error, 100), let: make(chan struct{}), progress: make(chan struct{})}
	c.source.Call = func(ctx context.Context, name string, arguments []byte, progress func([]byte)) ([]byte, error) {
		switch name {
		case "echo":
			return arguments, nil
		case "wait":
			c.waiting <- struct{}{}
			select {
			case <-ctx.Done():
			case <-c.let:
			}
			c.ended <- ctx.Err()
			return nil, ctx.Err()
		case "steps":
			progress([]byte("half"))
			<-c.progress
			return []byte("all"), nil
		case "panic":
			panic("of an observer")
		}
		return nil, fmt.Errorf("%w: no such call", storage.ErrTooLarge)
	}
	return c
}

func caller(t *testing.T, dir string) *engine { return lookInto(t, dir).(*engine) }

// Ensure that calls carry arguments and results of any size up to the bound, progress and errors, that other requests of the client go on while a call takes
// long, and that a panic ends the call and not the program.
func TestCall(t *testing.T) {
	o := carry(t)
	o.set(t, "a", []byte("1"))
	e := caller(t, o.dir)
	for _, size := range []int{0, 1, callPiece - 10, callPiece, maxRequest, 5*maxRequest + 3} {
		arguments := bytes.Repeat([]byte("x"), size)
		if got, err := e.Call(ctx, "echo", arguments, nil); !bytes.Equal(got, arguments) || err != nil {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
	}
	heard := false
	got, err := e.Call(ctx, "steps", nil, func(p []byte) {
		if value, _, err := e.Get([]byte("a")); string(value) != "1" || err != nil {
			t.Errorf("a get meanwhile: %q, %v", value, err)
		}
		if !heard && string(p) == "half" {
			close(o.progress)
			heard = true
		}
	})
	if string(got) != "all" || err != nil || !heard {
		t.Errorf("a long call: %q, %v, heard %v", got, err, heard)
	}
	if _, err := e.Call(ctx, "unknown", nil, nil); !errors.Is(err, storage.ErrTooLarge) || errors.Is(err, storage.ErrUnknownOutcome) {
		t.Errorf("an error: %v", err)
	}
	if _, err := e.Call(ctx, "panic", nil, nil); !errors.Is(err, storage.ErrUnknownOutcome) || !strings.Contains(err.Error(), "of an observer") {
		t.Errorf("a panic: %v", err)
	}
	if got, err := e.Call(ctx, "echo", []byte("x"), nil); string(got) != "x" || err != nil {
		t.Errorf("after all that: %q, %v", got, err)
	}
	o.checkReleased(t)
}

// Ensure that a call is canceled by its context, by a client that leaves or asks no more, and by Close, which leaves no goroutine.
func TestCall_Ends(t *testing.T) {
	o := carry(t)
	before := runtime.NumGoroutine() - 1 // without the one that accepts
	canceled, cancel := context.WithCancel(ctx)
	failed := make(chan error, 1)
	begin := func(ctx context.Context, e *engine) {
		go func() {
			_, err := e.Call(ctx, "wait", nil, nil)
			failed <- err
		}()
		<-o.waiting
	}
	e := caller(t, o.dir)
	begin(canceled, e)
	cancel()
	if err := <-failed; err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) || errors.Is(err, storage.ErrUnknownOutcome) {
		t.Errorf("canceled: %v", err)
	}
	if err := <-o.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the canceled call: %v", err)
	}
	if _, err := e.Call(canceled, "echo", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled before: %v", err)
	}

	leaves := caller(t, o.dir)
	begin(ctx, leaves)
	must(t, leaves.wire.conn.Close())
	if err := <-o.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call of a client that has left: %v", err)
	}
	if err := <-failed; !errors.Is(err, storage.ErrUnknownOutcome) {
		t.Errorf("the client that has left: %v", err)
	}

	stall = 200 * time.Millisecond
	silent := caller(t, o.dir)
	if _, err := silent.sendCall("wait", nil); err != nil {
		t.Fatal(err)
	}
	if err := <-o.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call of a client that asks no more: %v", err)
	}
	stall = 30 * time.Second

	<-o.waiting
	begin(ctx, e)
	must(t, o.Close())
	if err := <-o.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call of an owner that closes: %v", err)
	}
	if err := <-failed; !errors.Is(err, storage.ErrUnknownOutcome) || !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("its client: %v", err)
	}
	if _, err := e.Call(ctx, "echo", nil, nil); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrUnknownOutcome) {
		t.Errorf("after Close: %v", err)
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, before %d", runtime.NumGoroutine(), before)
		}
	}
}

// Ensure that a client has a bounded number of calls, that a call has a bounded size, and that all arguments together have one.
func TestCall_Bounds(t *testing.T) {
	o := carry(t)
	e := caller(t, o.dir)
	var group sync.WaitGroup
	for range maxCalls {
		group.Go(func() {
			if _, err := e.Call(ctx, "wait", nil, nil); err != nil {
				t.Error(err)
			}
		})
		<-o.waiting
	}
	if _, err := e.Call(ctx, "echo", nil, nil); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrUnknownOutcome) {
		t.Errorf("one call too many: %v", err)
	}
	if got, err := caller(t, o.dir).Call(ctx, "echo", []byte("x"), nil); string(got) != "x" || err != nil {
		t.Errorf("another client: %q, %v", got, err)
	}
	close(o.let)
	group.Wait()

	if _, err := e.Call(ctx, "echo", make([]byte, maxCall), nil); !errors.Is(err, storage.ErrTooLarge) {
		t.Errorf("a call that is too large: %v", err)
	}
	piece := make([]byte, callPiece)
	liar := caller(t, o.dir)
	for sent := 0; ; sent += len(piece) {
		_, err := liar.ask(askArguments, piece)
		if err != nil {
			if !errors.Is(err, storage.ErrTooLarge) || sent+len(piece) <= maxCall {
				t.Errorf("after %d bytes: %v", sent, err)
			}
			break
		}
	}
	o.checkReleased(t)
	must(t, o.reserve(maxArguments-10))
	if _, err := e.Call(ctx, "echo", piece, nil); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrUnknownOutcome) {
		t.Errorf("more than may be held: %v", err)
	}
	must(t, o.reserve(10-maxArguments))
	if _, err := liar.ask(askArguments, piece); err != nil {
		t.Fatal(err)
	}
	must(t, liar.Close())
	o.checkReleased(t)
}

// checkReleased checks that no arguments are held any more, soon.
func (c *carried) checkReleased(t *testing.T) {
	t.Helper()
	held := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.arguments
	}
	for deadline := time.Now().Add(5 * time.Second); held() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes of arguments are held", held())
		}
	}
}

// Ensure that an owner which carries out some calls only refuses others, those as well that a client sends all the same, and says why.
func TestCall_Only(t *testing.T) {
	o := carry(t)
	o.source.Only, o.source.NoCall = []string{"echo"}, "an option is missing"
	e := caller(t, o.dir)
	if got, err := e.Call(ctx, "echo", []byte("x"), nil); string(got) != "x" || err != nil {
		t.Errorf("one of them: %q, %v", got, err)
	}
	for i := range 2 {
		if _, err := e.Call(ctx, "steps", nil, nil); !errors.Is(err, storage.ErrReadOnly) || !strings.Contains(err.Error(), "an option is missing") {
			t.Errorf("another call, %d: %v", i, err)
		}
		e.hello.Calls = append(e.hello.Calls, "steps") // a client that does not ask
	}
	if _, err := e.Call(ctx, "echo", bytes.Repeat([]byte("x"), 2*maxRequest), nil); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("arguments in front of a call: %v", err)
	}
}

// Ensure that an owner without calls carries out none, also for a client that does not ask whether it may, that the error says what its Source says, and that
// older owners are told from it.
func TestCall_Refused(t *testing.T) {
	o := own(t, t.TempDir(), snapshotAge)
	o.source.NoCall = "for a reason"
	e := caller(t, o.dir)
	if _, err := e.Call(ctx, "echo", nil, nil); !errors.Is(err, ErrLooking) || !strings.Contains(err.Error(), "for a reason") {
		t.Errorf("without calls: %v", err)
	}
	nothing := ""
	e.hello.Writes = &nothing // the client lies to itself
	for _, size := range []int{0, 2 * maxRequest} {
		if _, err := e.Call(ctx, "echo", make([]byte, size), nil); !errors.Is(err, storage.ErrReadOnly) || !strings.Contains(err.Error(), "for a reason") {
			t.Errorf("a client that lies, %d bytes: %v", size, err)
		}
	}
	for _, kind := range []byte{askCall, askAwait, askCancel} {
		if _, err := e.ask(kind, nil); err == nil {
			t.Errorf("a request of kind %d without content", kind)
		}
	}
	e.hello.Writes = nil
	if _, err := e.Call(ctx, "echo", nil, nil); !errors.Is(err, ErrLooking) || !strings.Contains(err.Error(), "older than this one") {
		t.Errorf("an older owner: %v", err)
	}
	if err := e.Update(ctx, true, nil); !errors.Is(err, ErrLooking) {
		t.Errorf("an update: %v", err)
	}
	only, err := Driver{OnlyReads: true}.Open(carry(t).dir, storage.OpenOptions{ReadOnly: true})
	must(t, err)
	defer only.Close()
	if _, err := only.(*engine).Call(ctx, "echo", nil, nil); !errors.Is(err, ErrLooking) || !strings.Contains(err.Error(), "Options.ReadOnly") {
		t.Errorf("opened to be read only: %v", err)
	}
	e = caller(t, carry(t).dir)
	for _, err := range []error{e.Update(ctx, true, nil), e.Compact(ctx, nil, nil), e.FinishCreation()} {
		if !errors.Is(err, ErrNotCarried) || !errors.Is(err, storage.ErrReadOnly) {
			t.Errorf("what no call does: %v", err)
		}
	}
}

// Ensure that hostile requests of calls are refused, and that the owner goes on.
func TestCall_Strangers(t *testing.T) {
	o := carry(t)
	e := caller(t, o.dir)
	for kind, request := range map[byte]string{
		askCall:   "\xff\xff\xff\x0fecho", // a name beyond the frame
		askAwait:  "\x07",
		askCancel: "\xff",
	} {
		if _, err := e.ask(kind, []byte(request)); err == nil {
			t.Errorf("request of kind %d: no error", kind)
		}
	}
	conn, err := net.Dial("unix", filepath.Join(o.dir, Name))
	must(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte(magic + "\x01" + "\x7f\xff\xff\xff" + string(rune(askArguments))))
	must(t, err)
	must(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	var all bytes.Buffer
	if _, err := all.ReadFrom(conn); err != nil || !strings.Contains(all.String(), "2147483647 bytes") {
		t.Errorf("a huge frame: %q, %v", all.String(), err)
	}
	if got, err := e.Call(ctx, "echo", []byte("x"), nil); string(got) != "x" || err != nil {
		t.Errorf("after all that: %q, %v", got, err)
	}
}
