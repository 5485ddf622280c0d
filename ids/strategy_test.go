package ids_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jaydb/jay/ids"
)

// eachStrategy calls fn for all strategies.
func eachStrategy(t *testing.T, fn func(s ids.Strategy)) {
	t.Helper()
	n := 0
	for s := ids.Semantic; s.String() != "unknown"; s++ {
		fn(s)
		n++
	}
	if n < 5 {
		t.Fatalf("there are %d strategies", n)
	}
}

// Ensure that each strategy has a name and one answer of each kind, and that what is no
// strategy has none.
func TestStrategy_Answers(t *testing.T) {
	count := func(answers ...bool) (n int) {
		for _, yes := range answers {
			if yes {
				n++
			}
		}
		return n
	}
	names := map[string]bool{"": true}
	last := ids.Semantic
	eachStrategy(t, func(s ids.Strategy) {
		if names[s.String()] {
			t.Errorf("strategy %d is called %q, as another one or none", s, s)
		}
		names[s.String()] = true
		if n := count(!s.Made(), s.Drawn(), s.MadeByCommit()); n != 1 {
			t.Errorf("%s: the id is made at %d times", s, n)
		}
		if n := count(!s.Made(), s.Random(), s.FromEtag(), s.FromCounter(), s.FromRange()); n != 1 {
			t.Errorf("%s: the id is made of %d things", s, n)
		}
		last = s
	})
	if s := last + 1; count(s.Made(), s.Drawn(), s.MadeByCommit(), s.Random(), s.FromEtag(), s.FromCounter(), s.FromRange()) != 0 {
		t.Errorf("strategy %d, which there is not, has an answer", s)
	}
}

// requests are what asks for each strategy: for HiLo a tag.
var requests = map[ids.Strategy]string{
	ids.Semantic:   "users/ann",
	ids.GUID:       " ",
	ids.ServerSide: "users/",
	ids.Identity:   "users|",
	ids.HiLo:       "users",
}

// Ensure that each strategy makes an ID, which begins with the stem of its request and has
// the form that is foretold, and that requests of which the shortest ID is too long are
// refused, and no others.
func TestStrategy_Make(t *testing.T) {
	eachStrategy(t, func(s ids.Strategy) {
		request, listed := requests[s]
		if !listed {
			t.Errorf("%s: this test has no request for it", s)
			return
		}
		const most = 100
		r := resolver("/", "AB", most)
		makeID := func(request string) (id string, etag uint64, err error) { return r.Make(s, &counters{}, request) }
		if s.FromRange() {
			if _, _, err := makeID(request); err == nil {
				t.Errorf("%s: a resolver makes an id, and no client has drawn a number", s)
			}
			makeID = func(tag string) (id string, etag uint64, err error) {
				id, err = ids.NewClient(&source{}, true).Next(context.Background(), tag)
				return strings.TrimSuffix(id, "-A"), 0, err // see Form
			}
		} else if got, asked := r.Request(request); got != request || asked != s {
			t.Errorf("%q: got %q, %v", request, got, asked)
		}

		id, etag, err := makeID(request)
		if err != nil || !strings.HasPrefix(id, r.Stem(request, s)) {
			t.Errorf("%s of %q: got %q, %v", s, request, id, err)
		}
		if s.FromEtag() != (etag != 0) {
			t.Errorf("%s: the etag of %q is %d", s, id, etag)
		}
		before, after, made := strings.Cut(r.Form(request, s), "…")
		if made != s.Made() || !strings.HasPrefix(id, before) || !strings.HasSuffix(id, after) || (id == request) == made {
			t.Errorf("%s: the form is %q, the id %q", s, r.Form(request, s), id)
		}
		if r.Stem(request, s) == "" {
			return // the request is no part of the ID
		}
		room := strings.Repeat("x", most-len(id))
		if err := r.Check(room+request, s); err != nil {
			t.Errorf("%s: an id of %d bytes: %v", s, most, err)
		}
		if err := r.Check("x"+room+request, s); err == nil {
			t.Errorf("%s: an id of more than %d bytes is not refused", s, most)
		}
	})
}
