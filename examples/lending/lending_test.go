package lending_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/examples/lending"
	"github.com/jaydb/jay/jaytest"
)

// open returns a library in the database.
func open(t *testing.T, db *jaytest.DB) *lending.Library {
	t.Helper()
	l, err := lending.New(t.Context(), db.DB, db.Clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// add puts a book on the shelf and returns its ID.
func add(t *testing.T, l *lending.Library, title string) string {
	t.Helper()
	b, err := l.Add(t.Context(), title)
	if err != nil {
		t.Fatal(err)
	}
	return b.ID
}

// Ensure that what is lent, returned and held is in the database as the file says, with
// the IDs and dates of every run.
func TestLibrary(t *testing.T) {
	db := jaytest.Open(t, nil)
	l, ctx := open(t, db), t.Context()
	emma, dracula := add(t, l, "Emma"), add(t, l, "Dracula")
	if _, err := l.Add(ctx, "Emma"); !errors.Is(err, jay.ErrUnique) {
		t.Errorf("add a book twice: got %v", err)
	}
	for _, book := range []string{emma, dracula} {
		if _, err := l.Lend(ctx, book, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Lend(ctx, emma, "bob"); !errors.Is(err, lending.ErrLent) {
		t.Errorf("lend a book twice: got %v", err)
	}
	if err := l.Return(ctx, dracula); err != nil {
		t.Fatal(err)
	}
	if err := l.Hold(ctx, dracula, "bob"); err != nil {
		t.Fatal(err)
	}
	jaytest.Golden(t, db.DB, "library")
}

// Ensure that a loan is overdue two weeks later, and not before.
func TestOverdue(t *testing.T) {
	db := jaytest.Open(t, nil)
	l, ctx := open(t, db), t.Context()
	if _, err := l.Lend(ctx, add(t, l, "Emma"), "ann"); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		pass time.Duration
		want int
	}{{lending.LoanTime, 0}, {time.Nanosecond, 1}} {
		db.Advance(row.pass)
		if loans, err := l.Overdue(ctx); err != nil || len(loans) != row.want {
			t.Errorf("%s later: got %d loans, %v, want %d", row.pass, len(loans), err, row.want)
		}
	}
}

// Ensure that a book is held for a reader until the hold expires.
func TestHold(t *testing.T) {
	db := jaytest.Open(t, nil)
	l, ctx := open(t, db), t.Context()
	emma := add(t, l, "Emma")
	if err := l.Hold(ctx, emma, "ann"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Lend(ctx, emma, "bob"); !errors.Is(err, lending.ErrHeld) {
		t.Errorf("got %v, want ErrHeld", err)
	}
	db.Advance(lending.HoldTime)
	if _, err := l.Lend(ctx, emma, "bob"); err != nil {
		t.Errorf("the hold has expired: got %v", err)
	}
}

// Ensure that a power failure leaves a book on the shelf without a loan, or lent with one.
func TestLend_PowerCut(t *testing.T) {
	cuts := jaytest.EveryPowerCut(t, nil,
		func(db *jaytest.DB) { add(t, open(t, db), "Emma") },
		func(db *jaytest.DB) {
			if _, err := open(t, db).Lend(t.Context(), "books/1-A", "ann"); err != nil {
				t.Error(err)
			}
		},
		func(db *jaytest.DB) {
			books, _ := jay.CollectionOf[lending.Book](db.DB)
			b, err := books.Get(t.Context(), "books/1-A")
			if err != nil {
				t.Fatal(err)
			}
			found, err := db.Exists(t.Context(), "loans/1-A")
			if lent := b.Loan == "loans/1-A" && b.Lent == 1; err != nil || lent != found {
				t.Errorf("the book %+v, its loan %v, %v", b, found, err)
			}
		})
	t.Logf("%d power failures", cuts)
}

// post asks for a loan and returns the status of the answer.
func post(t *testing.T, l *lending.Library, book string) int {
	t.Helper()
	answer := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPost, "/loans", strings.NewReader(`{"book":"`+book+`","reader":"ann"}`))
	l.ServeHTTP(answer, request.WithContext(t.Context()))
	return answer.Code
}

// Ensure that the service says so when its disk is full, and goes on when there is room.
func TestServe_FullDisk(t *testing.T) {
	db := jaytest.Open(t, nil)
	l := open(t, db)
	emma := add(t, l, "Emma")
	db.FillDisk()
	if got := post(t, l, emma); got != http.StatusServiceUnavailable {
		t.Errorf("full disk: got %d", got)
	}
	db.Restart()
	if got := post(t, open(t, db), emma); got != http.StatusCreated {
		t.Errorf("there is room: got %d", got)
	}
}

// Ensure that the service says so when its disk cannot be read.
func TestServe_UnreadableDisk(t *testing.T) {
	db := jaytest.Open(t, nil)
	emma := add(t, open(t, db), "Emma")
	db.FailReads()
	l, err := lending.New(t.Context(), db.DB, db.Clock.Now)
	if err == nil {
		if got := post(t, l, emma); got != http.StatusServiceUnavailable {
			t.Errorf("got %d", got)
		}
	} else if !errors.Is(err, jay.ErrUnreadable) {
		t.Errorf("got %v, want ErrUnreadable", err)
	}
}
