package follow

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

var ctx = context.Background()

func openEngine(t *testing.T) *lsm.Engine {
	t.Helper()
	e, err := lsm.Open("db", lsm.Options{InMemory: true, DurableReads: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func set(t *testing.T, e storage.Engine, key, value string) {
	t.Helper()
	err := e.Update(ctx, true, func(tx storage.Tx) error {
		tx.Set([]byte(key), []byte(value), nil)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Ensure that the bytes of a request, of a commit and of a write stay as they are: a standby and its source may be
// of different versions.
func TestFrames_Golden(t *testing.T) {
	commit := appendMoment(nil, 7, time.Unix(1, 2))
	commit = appendWrite(commit, storage.Write{Key: []byte("k"), Value: []byte("value")})
	commit = appendWrite(commit, storage.Write{Key: []byte("gone"), Deleted: true})
	const want = "1615970b" + "63" + "0000001f" + "0000000000000007" + "000000003b9aca02" + "01016b0576616c7565" + "0204676f6e65"
	if got := hex.EncodeToString(appendFrame(nil, kindCommit, commit)); got != want {
		t.Errorf("a commit is\n%s, want\n%s", got, want)
	}

	engine := openEngine(t)
	target, err := NewTarget(ctx, engine)
	if err != nil {
		t.Fatal(err)
	}
	request, err := target.Request(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	wantRequest := Magic + "\x3a\xe6\x8b\x4dq\x00\x00\x00\x2b" + `{"standby":{},"compares":true,"empty":true}` +
		"\x75\xc9\xf2\xc2s\x00\x00\x00\x21" + strings.Repeat("\x00", 33) + "\x53\xec\x1c\xd6z\x00\x00\x00\x00"
	if got := string(request); got != wantRequest {
		t.Errorf("a request is\n%q, want\n%q", got, wantRequest)
	}
}

// Ensure that a request that was cut off, changed in a bit or written by a stranger is refused, and that the text of
// a standby itself is read.
func TestReadRequest(t *testing.T) {
	sample.OneGoroutine(t)
	engine := openEngine(t)
	target, err := NewTarget(ctx, engine)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 50 {
		set(t, engine, fmt.Sprintf("key%02d", n), strings.Repeat("v", 5000))
	}
	target.use(format.Standby{Database: "id", Epoch: "e", Commit: 3})
	request, err := target.Request(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	q, err := ReadRequest(bytes.NewReader(request))
	if err != nil || len(q.spans) < 3 || q.Standby.Commit != 3 {
		t.Fatalf("got %+v, %v", q, err)
	}
	today := sample.Of(t, 10)
	for n := range len(request) {
		if !today.Has(n) {
			continue
		}
		if n%7 == 0 {
			if _, err := ReadRequest(bytes.NewReader(request[:n])); !errors.Is(err, ErrFrame) {
				t.Fatalf("%d bytes of a request: %v", n, err)
			}
		}
		changed := bytes.Clone(request)
		changed[n] ^= 1
		if _, err := ReadRequest(bytes.NewReader(changed)); !errors.Is(err, ErrFrame) {
			t.Fatalf("byte %d of a request is another one: %v", n, err)
		}
	}

	frames := func(parts ...[]byte) []byte { return append([]byte(Magic), bytes.Join(parts, nil)...) }
	head := appendFrame(nil, kindRequest, []byte(`{"compares":true}`))
	end := appendFrame(nil, kindEnd)
	sum := make([]byte, 32)
	span := func(end string) []byte { return appendString(bytes.Clone(sum), []byte(end)) }
	for name, text := range map[string][]byte{
		"no head":                 frames(end),
		"no JSON":                 frames(appendFrame(nil, kindRequest, []byte("x")), end),
		"two heads":               frames(head, head),
		"no sums":                 frames(head, end),
		"sums without an end":     frames(head, appendFrame(nil, kindSums, span("b")), end),
		"sums that go back":       frames(head, appendFrame(nil, kindSums, span("b"), span("a"), span("")), end),
		"sums after the end":      frames(head, appendFrame(nil, kindSums, span(""), span("")), end),
		"half a sum":              frames(head, appendFrame(nil, kindSums, sum[:31]), end),
		"sums that are not asked": frames(appendFrame(nil, kindRequest, []byte(`{}`)), appendFrame(nil, kindSums, span("")), end),
		"a huge frame":            frames([]byte{0, 0, 0, 0, kindRequest, 0xff, 0xff, 0xff, 0xff}),
	} {
		if _, err := ReadRequest(bytes.NewReader(text)); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}

	// Sums without end are not gathered without end.
	endless := io.MultiReader(bytes.NewReader(frames(head)), &repeated{})
	if _, err := ReadRequest(endless); !errors.Is(err, ErrFrame) || !strings.Contains(err.Error(), "268435456") {
		t.Errorf("an endless request: %v", err)
	}
}

// repeated is frames of checksums without end.
type repeated struct {
	n    int
	rest []byte
}

func (r *repeated) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		r.n++
		key := append(fmt.Appendf(nil, "%08d", r.n), make([]byte, 8<<20)...)
		r.rest = appendFrame(nil, kindSums, make([]byte, 32), appendString(nil, key))
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Ensure that no bytes of a stranger make a source or a standby panic.
func FuzzFrames(f *testing.F) {
	f.Add(append([]byte(Magic), appendFrame(appendFrame(nil, kindRequest, []byte(`{"compares":true}`)), kindEnd)...))
	f.Add(append([]byte(Magic), appendFrame(appendFrame(nil, kindRange, []byte{0, 0}), kindKeys, appendWrite(nil, storage.Write{Key: []byte("k")}))...))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := ReadRequest(bytes.NewReader(text)); err != nil && !errors.Is(err, ErrFrame) {
			t.Error(err)
		}
		// As if the checksums were right: each payload.
		_ = eachWrite(text, func(storage.Write) error { return nil })
		if _, err := cutSpans(nil, text); err != nil && !errors.Is(err, ErrFrame) {
			t.Error(err)
		}
		if _, _, _, err := cutMoment(text); err != nil && !errors.Is(err, ErrFrame) {
			t.Error(err)
		}
	})
}

// remember has commits remembered for a stream, and returns the number of the last one before.
func remember(t *testing.T, m *memory) (number uint64) {
	t.Helper()
	m.join()
	before, number, err := m.begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	return number
}

// Ensure that the commits that are remembered are bounded, that the newest are, and that none are when no stream has read any for long.
func TestMemory(t *testing.T) {
	engine := openEngine(t)
	s := NewSource(engine, "epoch", 10_000)
	m := &s.memory
	set(t, engine, "before", "1")
	if len(m.payloads) > 0 {
		t.Error("commits are remembered that no stream waits for")
	}
	number := remember(t, m)
	for n := range 100 {
		set(t, engine, fmt.Sprint(n), strings.Repeat("v", 500))
	}
	newest := number + 100
	if m.bytes > 10_000 || m.bytes < 9000 || m.last() != newest || m.has(number) || !m.has(newest-15) || !m.has(newest) || m.has(newest+1) {
		t.Errorf("%d bytes up to commit %d of %d are remembered", m.bytes, m.last(), newest)
	}
	if _, _, known := m.appendCommits(nil, number, newest); known {
		t.Error("commits that are forgotten are known")
	}
	out, upTo, known := m.appendCommits(nil, newest-3, newest-1)
	if !known || upTo != newest-1 || bytes.Count(out, []byte(strings.Repeat("v", 500))) != 2 {
		t.Errorf("got %d bytes up to %d", len(out), upTo)
	}

	m.leave()
	set(t, engine, "last", strings.Repeat("v", 500))
	if m.has(newest) || len(m.payloads) > 0 {
		t.Error("commits are remembered though no stream reads them")
	}
	if number = remember(t, m); !m.has(number) || number != newest+1 {
		t.Errorf("begun again at %d after %d", number, newest)
	}
}

// Ensure that commits are not sent after tables were taken in, whose keys are not known.
func TestMemory_Tables(t *testing.T) {
	engine := openEngine(t)
	m := &NewSource(engine, "epoch", 1<<20).memory
	number := remember(t, m)
	set(t, engine, "a", "1")
	w, err := engine.NewTable(false)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Set([]byte("b"), []byte("2")); err != nil {
		t.Fatal(err)
	}
	table, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Ingest(ctx, []storage.Table{table}, nil); err != nil {
		t.Fatal(err)
	}
	set(t, engine, "c", "3")
	if m.has(number) || m.has(number+1) || !m.has(number+2) || !m.has(number+3) {
		t.Errorf("after commit %d, tables and another commit those after %d to %d are known", number+1, m.before, m.last())
	}
}

// Ensure that the number of a commit of an earlier opening of the source is not taken for one of this opening.
func TestStream_OtherEpoch(t *testing.T) {
	engine := openEngine(t)
	s := NewSource(engine, "this", 1<<20)
	number := remember(t, &s.memory)
	for epoch, want := range map[string]byte{"this": kindHello, "earlier": kindCompare} {
		q := &Request{Standby: format.Standby{Database: "id", Epoch: epoch, Commit: number}}
		stream, err := s.NewStream(q, format.Settings{}, env.Origins{0: {Tag: "A", ID: "id"}})
		if err != nil {
			t.Fatal(err)
		}
		out, err := stream.Next(ctx, nil)
		if err != nil && !errors.Is(err, ErrEnd) {
			t.Fatal(err)
		}
		r := newReader(bytes.NewReader(out))
		if err := r.begin(); err != nil {
			t.Fatal(err)
		}
		if kind, _, err := r.next(); err != nil || kind != want {
			t.Errorf("epoch %q: a frame of kind %q, %v", epoch, kind, err)
		}
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Ensure that a stream that contradicts itself changes nothing in a standby, but for the commits before.
func TestTarget_Apply_Refused(t *testing.T) {
	hello := func(copies string) []byte {
		return appendFrame([]byte(Magic), kindHello, []byte(`{"database":"id","epoch":"e","format":{},"commit":5`+copies+`}`))
	}
	keys := func(names ...string) (out []byte) {
		for _, name := range names {
			out = appendWrite(out, storage.Write{Key: []byte(name), Value: []byte("v")})
		}
		return appendFrame(nil, kindKeys, out)
	}
	bounds := func(lo, hi string) []byte {
		return appendFrame(nil, kindRange, appendString(appendString(nil, []byte(lo)), []byte(hi)))
	}
	commit := func(number uint64) []byte {
		return appendFrame(nil, kindCommit, appendMoment(nil, number, time.Unix(1, 0)))
	}
	moment := func(number uint64) []byte {
		return appendFrame(nil, kindMoment, appendMoment(nil, number, time.Unix(1, 0)))
	}
	end := appendFrame(nil, kindEnd)
	for name, frames := range map[string][][]byte{
		"a copy that is not asked":    {hello("")},
		"keys outside of a range":     {hello(`,"copy":true`), keys("a")},
		"keys below the range":        {hello(`,"copy":true`), bounds("b", "c"), keys("a")},
		"keys above the range":        {hello(`,"copy":true`), bounds("b", "c"), keys("c")},
		"keys that go back":           {hello(`,"copy":true`), bounds("", ""), keys("b", "a")},
		"a key twice":                 {hello(`,"copy":true`), bounds("", ""), keys("b", "b")},
		"a key of the standby itself": {hello(`,"copy":true`), bounds("", ""), keys(string(standbyKey))},
		"ranges that go back":         {hello(`,"copy":true`), bounds("b", "c"), bounds("a", "b")},
		"a range after the last":      {hello(`,"copy":true`), bounds("b", ""), bounds("c", "")},
		"an empty range":              {hello(`,"copy":true`), bounds("b", "b")},
		"a commit that is left out":   {hello(`,"copy":true`), bounds("", ""), keys("b"), end, commit(7)},
		"a moment of another commit":  {hello(`,"copy":true`), bounds("", ""), keys("b"), end, moment(6)},
		"a range among commits":       {hello(`,"copy":true`), end, bounds("", "")},
		"a format that is none":       {hello(`,"copy":true`), bounds("", ""), keys("b"), end, appendFrame(nil, kindFormat, []byte("8"))},
		"a head without a database":   {appendFrame([]byte(Magic), kindHello, []byte(`{"epoch":"e","format":{}}`))},
		"no head":                     {[]byte(Magic), end},
		"another line":                {[]byte("jay standby, version 2\n")},
	} {
		t.Run(name, func(t *testing.T) {
			engine := openEngine(t)
			target, err := NewTarget(ctx, engine)
			if err != nil {
				t.Fatal(err)
			}
			if err := target.Apply(ctx, bytes.NewReader(bytes.Join(frames, nil))); !errors.Is(err, ErrFrame) {
				t.Errorf("got %v", err)
			}
			_, _, getErr := engine.Get([]byte("a"))
			_, closer, bErr := engine.Get([]byte("b"))
			if bErr == nil {
				if err := closer.Close(); err != nil {
					t.Error(err)
				}
			}
			if whole := target.State().Whole(); !errors.Is(getErr, storage.ErrNotFound) || whole == errors.Is(bErr, storage.ErrNotFound) && name != "a range among commits" {
				t.Errorf("whole is %v, and reading b: %v", whole, bErr)
			}
		})
	}
}

// Ensure that a feature which the source begins to use while a standby follows raises the format of the standby before the first key that
// needs it, and that a standby which does not know the feature names it and takes no such key.
func TestStream_FormatRises(t *testing.T) {
	newer := append(storage.Features(storage.AllFeatures[:]), storage.Feature{Format: storage.Format + 1, Name: "birds"})
	birds := newer[len(newer)-1]
	for name, known := range map[string]storage.Features{"known": newer, "unknown": nil} {
		t.Run(name, func(t *testing.T) {
			open := func(features storage.Features) *lsm.Engine {
				e, err := lsm.Open("db", lsm.Options{InMemory: true, DurableReads: true, Features: features})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = e.Close() })
				return e
			}
			engine := open(newer)
			set(t, engine, "before", "1")
			s := NewSource(engine, "epoch", 1<<20)
			stream, err := s.NewStream(&Request{Compares: true, Empty: true, spans: []span{{}}}, format.Settings{}, env.Origins{0: {Tag: "A", ID: "id"}})
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			var out []byte
			next := func() {
				for before := -1; len(out) > before || !stream.Idle(); {
					before = len(out)
					if out, err = stream.Next(ctx, out); err != nil {
						t.Fatal(err)
					}
				}
			}
			next()
			set(t, engine, "between", "2")
			err = engine.Update(ctx, true, func(tx storage.Tx) error {
				tx.RequireFeature(birds)
				tx.Set([]byte("bird"), []byte("3"), nil)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			next()

			copied := open(known)
			target, err := NewTarget(ctx, copied)
			if err != nil {
				t.Fatal(err)
			}
			err = target.Apply(ctx, bytes.NewReader(out))
			_, closer, getErr := copied.Get([]byte("bird"))
			var unknown *storage.FormatError
			switch {
			case known == nil && (!errors.As(err, &unknown) || !slices.Contains(unknown.Features, "birds") || !errors.Is(getErr, storage.ErrNotFound)):
				t.Errorf("got %v, and the key: %v", err, getErr)
			case known != nil && (!errors.Is(err, io.EOF) || getErr != nil || !slices.Contains(copied.Format().Features, birds)):
				t.Errorf("got %v, the key: %v, the format %+v", err, getErr, copied.Format())
			}
			if getErr == nil {
				_ = closer.Close()
			}
		})
	}
}
