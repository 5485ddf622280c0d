package server_test

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// Ensure that a bound that is too small is refused by name, and bounds of single databases, which share that of the server.
func TestMaxMemory_Refused(t *testing.T) {
	t.Parallel()
	shared, err := jay.NewMemory(64 << 20)
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]server.Options{
		"MaxMemory must be at least 67108864, got 67108863": {MaxMemory: 64<<20 - 1},
		"MaxMemory must not be negative, got -1":            {MaxMemory: -1},
		"goes without MaxMemory (268435456)":                {Database: jay.Options{MaxMemory: 256 << 20}},
		"goes without MaxMemory (0) and Memory":             {Database: jay.Options{Memory: shared}},
	} {
		o.Data = t.TempDir()
		if _, err := server.Open(o); !errors.Is(err, jay.ErrOption) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Ensure that what mounted databases share is what the server has for its own, also where requests have no more than 1 GiB.
func TestNewMemory(t *testing.T) {
	t.Parallel()
	for bound, want := range map[int64]int64{64 << 20: 40 << 20, 1 << 30: 760 << 20, 16 << 30: 15<<30 - 8<<20} {
		m, err := server.NewMemory(bound)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := m.Bytes(); got != want {
			t.Errorf("%d: databases share %d, want %d", bound, got, want)
		}
	}
	if _, err := server.NewMemory(64<<20 - 1); !errors.Is(err, jay.ErrOption) || !strings.Contains(err.Error(), "MaxMemory must be at least 67108864, got 67108863") {
		t.Error(err)
	}
}

// Ensure that the databases of a server stay within its bound, however many are used one after the other: those that were idle longest are closed.
// One that does not fit, as all others are in use, is refused with 429, and a name is not taken by a database that could not be opened.
func TestMaxMemory_Databases(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *server.Options) { o.MaxMemory, o.Database = 64<<20, jay.Options{} })
	for i := range 6 {
		name := fmt.Sprintf("d%d", i)
		h.create(name)
		h.want(201, "PUT", "/databases/"+name+"/docs?id=x", `{"a":1}`)
		m := h.s.Memory()
		if m.BoundBytes != 64<<20 || m.RequestsBytes != 16<<20 || m.CachesClaimed == 0 || m.CachesClaimed > m.CachesBytes || m.HeapBytes > m.BoundBytes || m.HeapBytes < m.RequestsBytes {
			t.Errorf("%+v", m)
		}
	}
	most := h.s.OpenDatabases()
	if most < 1 || most > 3 {
		t.Errorf("%d databases are open", most)
	}
	for i := range 6 {
		h.want(200, "GET", fmt.Sprintf("/databases/d%d/docs?id=x", i), "")
	}

	var releases []func()
	for i := range 6 {
		_, release, err := h.s.Database(t.Context(), fmt.Sprintf("d%d", i))
		if err != nil {
			break
		}
		releases = append(releases, release)
	}
	if len(releases) == 0 || len(releases) > 3 {
		t.Fatalf("%d databases can be in use", len(releases))
	}
	a := h.do("GET", "/databases/d5/docs?id=x", "")
	h.checkProblem(a, http.StatusTooManyRequests, "TooManyRequestsException")
	if !strings.Contains(string(a.body), "MaxMemory") {
		t.Errorf("got %s", a.body)
	}
	equal(t, "another database", h.do("PUT", "/admin/databases?name=d6", `{}`).status, 429)
	for _, release := range releases {
		release()
	}
	h.create("d6")
	h.want(200, "GET", "/databases/d5/docs?id=x", "")
}

// Ensure that the default is half of what the machine, or the process by GOMEMLIMIT, has, and that a quarter of it, and at most 1 GiB, is for
// requests.
func TestMaxMemory_Default(t *testing.T) {
	t.Parallel()
	h := start(t)
	quarter, _, _ := jay.DefaultMemory().Bytes()
	m := h.s.Memory()
	if m.BoundBytes != 2*quarter || m.RequestsBytes != min(quarter/2, 1<<30) {
		t.Errorf("%+v, of a quarter of %d", m, quarter)
	}
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 && m.BoundBytes > limit/2 {
		t.Errorf("%d of a limit of %d", m.BoundBytes, limit)
	}
}

// Ensure that one sender can store a document of the largest size under a small bound.
func TestMaxMemory_LargestDocument(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *server.Options) { o.MaxMemory, o.Database = 64<<20, jay.Options{MaxDocumentBytes: 4 << 20} })
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=x", `{"a":"`+strings.Repeat("x", 4<<20-100)+`"}`)
	h.want(200, "GET", "/databases/a/docs?id=x", "")
}
