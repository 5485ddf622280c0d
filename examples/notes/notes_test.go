package notes_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/examples/notes"
	"github.com/jaydb/jay/jaytest"
)

// call sends a request and returns the answer.
func call(t *testing.T, h http.Handler, method, target, key, body string) (status int, answer string) {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func open(t *testing.T, db *jaytest.DB) *notes.Service {
	t.Helper()
	s, err := notes.New(t.Context(), db.DB)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func count(t *testing.T, db *jaytest.DB, collection string) int64 {
	t.Helper()
	n, err := db.Query(collection).Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Ensure that a note is stored once with its event however often it is posted, that the answer is the same, and that
// the key of another note is refused.
func TestPost_Once(t *testing.T) {
	db := jaytest.Open(t, nil)
	s := open(t, db)
	const body = `{"text":"milk","created":"2026-01-01T12:00:00Z"}`
	_, first := call(t, s, "POST", "/notes", "k1", body)
	for range 2 {
		if status, again := call(t, s, "POST", "/notes", "k1", body); status != 200 || again != first {
			t.Errorf("again: %d %s, want %s", status, again, first)
		}
	}
	if status, answer := call(t, s, "POST", "/notes", "k1", `{"text":"bread"}`); status != 422 {
		t.Errorf("another note: %d %s", status, answer)
	}
	if status, answer := call(t, s, "POST", "/notes", "", body); status != 400 {
		t.Errorf("without a key: %d %s", status, answer)
	}
	if n, m := count(t, db, "Notes"), count(t, db, "Events"); n != 1 || m != 1 {
		t.Errorf("%d notes and %d events, want 1 of each", n, m)
	}
}

// Ensure that the same holds whatever power failure comes between.
func TestPost_PowerCut(t *testing.T) {
	post := func(db *jaytest.DB) (status int) {
		s, err := notes.New(t.Context(), db.DB)
		if err != nil {
			return 0 // the disk
		}
		status, _ = call(t, s, "POST", "/notes", "k1", `{"text":"milk"}`)
		return status
	}
	cuts := jaytest.EveryPowerCut(t, nil, func(*jaytest.DB) {}, func(db *jaytest.DB) { post(db) }, func(db *jaytest.DB) {
		if status := post(db); status != 200 {
			t.Errorf("posted again: %d", status)
		}
		if n, m := count(t, db, "Notes"), count(t, db, "Events"); n != 1 || m != 1 {
			t.Errorf("%d notes and %d events, want 1 of each", n, m)
		}
	})
	if cuts == 0 {
		t.Error("the power was never cut")
	}
}

// Ensure that a note goes when its time has come, that a client can move it, and that a version goes through a URL.
func TestPut_Expiry(t *testing.T) {
	db := jaytest.Open(t, nil)
	s := open(t, db)
	until := db.Clock.Now().Add(time.Hour)
	_, answer := call(t, s, "POST", "/notes", "k1", `{"text":"milk","until":"`+until.Format(time.RFC3339)+`"}`)
	var n notes.Note
	if err := json.Unmarshal([]byte(answer), &n); err != nil || n.Until == nil || !n.Until.Equal(until) {
		t.Fatalf("%s: %v", answer, err)
	}
	if got, err := url.QueryUnescape(n.Version); got != n.Version || err != nil {
		t.Errorf("the version %s is %s behind a URL: %v", n.Version, got, err)
	}
	if status, answer := call(t, s, "PUT", "/notes?id="+n.ID, "", `{"text":"milk, bread","version":"A:1-none"}`); status != 409 {
		t.Errorf("an old version: %d %s", status, answer)
	}
	if status, answer := call(t, s, "PUT", "/notes?id="+n.ID, "", `{"text":"milk, bread","version":"`+n.Version+`"}`); status != 200 || strings.Contains(answer, "until") {
		t.Errorf("the note stays: %d %s", status, answer)
	}
	db.Advance(2 * time.Hour)
	if count(t, db, "Notes") != 1 {
		t.Error("a note that stays is gone")
	}
	until = db.Clock.Now().Add(time.Hour)
	call(t, s, "PUT", "/notes?id="+n.ID, "", `{"text":"gone soon","until":"`+until.Format(time.RFC3339)+`"}`)
	db.Advance(2 * time.Hour)
	if count(t, db, "Notes") != 0 {
		t.Error("a note whose time has come is there")
	}
}

// Ensure that notes are counted by the days of a zone.
func TestDays(t *testing.T) {
	db := jaytest.Open(t, nil)
	s := open(t, db)
	for i, created := range []string{"2026-07-31T21:59:00Z", "2026-07-31T22:01:00Z", "2026-08-01T10:00:00Z"} {
		if status, answer := call(t, s, "POST", "/notes", string(rune('a'+i)), `{"text":"x","created":"`+created+`"}`); status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
	}
	for zone, want := range map[string]string{
		"Europe/Zurich": `[{"day":"2026-07-31","notes":1},{"day":"2026-08-01","notes":2}]`,
		"UTC":           `[{"day":"2026-07-31","notes":2},{"day":"2026-08-01","notes":1}]`,
	} {
		if status, answer := call(t, s, "GET", "/days?zone="+zone, "", ""); status != 200 || strings.TrimSpace(answer) != want {
			t.Errorf("%s: %d %s, want %s", zone, status, answer, want)
		}
	}
	for _, zone := range []string{"", "Bern", "UTC') limit 0 select (key()"} {
		if status, answer := call(t, s, "GET", "/days?zone="+url.QueryEscape(zone), "", ""); status != 400 {
			t.Errorf("the zone %q: %d %s", zone, status, answer)
		}
	}
}

// Ensure that a browser which connects again gets what it has missed, and nothing twice.
func TestFeed(t *testing.T) {
	db := jaytest.Open(t, nil)
	s := open(t, db)
	server := httptest.NewServer(s)
	defer server.Close()
	next := func(last string) (token, id string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, "GET", server.URL+"/feed", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Last-Event-ID", last)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if text, found := strings.CutPrefix(lines.Text(), "id: "); found {
				token = text
			}
			if text, found := strings.CutPrefix(lines.Text(), "data: "); found {
				return token, text
			}
		}
		t.Fatal("the feed has ended")
		return "", ""
	}
	last := ""
	for i, key := range []string{"a", "b"} {
		call(t, s, "POST", "/notes", key, `{"text":"x"}`)
		var id string
		if last, id = next(last); id != []string{"notes/1-A", "notes/2-A"}[i] {
			t.Errorf("the change %d is of %s", i, id)
		}
	}
}
