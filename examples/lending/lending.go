// Package lending is a service over a database: a library that lends books. Its tests show
// package jaytest: a clock that they move, IDs that are the same in every run, dumps of the
// database, a full disk, a disk that cannot be read, and power failures at every sync.
package lending

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jaydb/jay"
)

// Errors of a Library. A call that returns one has changed nothing.
var (
	// ErrLent is returned for a book that a reader has.
	ErrLent = errors.New("lending: the book is lent")

	// ErrHeld is returned for a book that is held for another reader.
	ErrHeld = errors.New("lending: the book is held for another reader")
)

// Book is a book of the library. Its ID is made by HiLo: books/1-A.
type Book struct {
	ID     string
	Title  string `jay:"index,unique"`
	Loan   string // the ID of the loan of the book, "" if it is on the shelf
	Lent   int    // how often it was lent
	Reader string // who has it
}

// Loan is a book that a reader has, or had. Its ID is made by HiLo: loans/1-A.
type Loan struct {
	ID       string
	Book     string
	Reader   string
	Due      time.Time `jay:"index"`
	Returned bool
}

// Hold keeps a book for a reader until it expires. Its ID names the book:
// holds/books/1-A.
type Hold struct {
	ID     string
	Reader string
}

// How long books are lent and held.
const (
	LoanTime = 14 * 24 * time.Hour
	HoldTime = 48 * time.Hour
)

// Library is a library in a database. It is safe for concurrent use.
type Library struct {
	db    *jay.DB
	now   func() time.Time
	books *jay.Collection[Book]
	loans *jay.Collection[Loan]
	holds *jay.Collection[Hold]
}

// New returns the library in db, which may be empty. now is its clock. The database
// stays the caller's to close.
func New(ctx context.Context, db *jay.DB, now func() time.Time) (*Library, error) {
	l := &Library{db: db, now: now}
	var errs [5]error
	l.books, errs[0] = jay.CollectionOf[Book](db)
	l.loans, errs[1] = jay.CollectionOf[Loan](db)
	l.holds, errs[2] = jay.CollectionOf[Hold](db)
	if err := errors.Join(errs[:3]...); err != nil {
		return nil, fmt.Errorf("lending: %w", err)
	}
	errs[3], errs[4] = l.books.EnsureIndexes(ctx), l.loans.EnsureIndexes(ctx)
	if err := errors.Join(errs[3:]...); err != nil {
		return nil, fmt.Errorf("lending: %w", err)
	}
	return l, nil
}

// Add puts a new book on the shelf. It returns jay.ErrUnique if the library has it.
func (l *Library) Add(ctx context.Context, title string) (*Book, error) {
	b := &Book{Title: title}
	_, err := l.books.Insert(ctx, b)
	return b, err
}

// Hold keeps a book for a reader for HoldTime.
func (l *Library) Hold(ctx context.Context, book, reader string) error {
	_, err := l.holds.Insert(ctx, &Hold{ID: "holds/" + book, Reader: reader}, jay.WithTTL(HoldTime))
	if errors.Is(err, jay.ErrExists) {
		return ErrHeld
	}
	return err
}

// Lend gives a book to a reader. The loan and the book change together or not at all.
func (l *Library) Lend(ctx context.Context, book, reader string) (loan *Loan, err error) {
	err = l.db.Update(ctx, func(tx *jay.Tx) error {
		b, err := l.books.In(tx).Get(ctx, book)
		if err != nil {
			return err
		}
		if b.Loan != "" {
			return ErrLent
		}
		if err := l.takeHold(ctx, tx, book, reader); err != nil {
			return err
		}
		loan = &Loan{Book: book, Reader: reader, Due: l.now().Add(LoanTime)}
		m, err := l.loans.In(tx).Insert(ctx, loan)
		if err != nil {
			return err
		}
		b.Loan, b.Reader, b.Lent = m.ID, reader, b.Lent+1
		_, err = l.books.In(tx).Put(ctx, b)
		return err
	}, jay.Retry())
	if err != nil {
		return nil, err
	}
	return loan, nil
}

// takeHold ends a hold of the reader, and refuses one of another reader.
func (l *Library) takeHold(ctx context.Context, tx *jay.Tx, book, reader string) error {
	hold, err := l.holds.In(tx).Get(ctx, "holds/"+book)
	switch {
	case errors.Is(err, jay.ErrNotFound):
		return nil
	case err != nil:
		return err
	case hold.Reader != reader:
		return ErrHeld
	}
	return l.holds.In(tx).Delete(ctx, hold.ID)
}

// Return puts a book back on the shelf.
func (l *Library) Return(ctx context.Context, book string) error {
	return l.db.Update(ctx, func(tx *jay.Tx) error {
		b, err := l.books.In(tx).Get(ctx, book)
		if err != nil {
			return err
		}
		if b.Loan == "" {
			return nil
		}
		if _, err := l.loans.In(tx).Patch(ctx, b.Loan, jay.Set("Returned", true)); err != nil {
			return err
		}
		b.Loan, b.Reader = "", ""
		_, err = l.books.In(tx).Put(ctx, b)
		return err
	}, jay.Retry())
}

// Overdue returns the loans whose books should be back, the oldest first.
func (l *Library) Overdue(ctx context.Context) ([]*Loan, error) {
	return l.loans.Query().Where(jay.Lt("Due", l.now()), jay.Eq("Returned", false)).OrderBy("Due").All(ctx)
}

// ServeHTTP lends a book: POST /loans with {"book":…,"reader":…} answers with the loan.
func (l *Library) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/loans" {
		http.NotFound(w, r)
		return
	}
	var want struct{ Book, Reader string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&want); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	loan, err := l.Lend(r.Context(), want.Book, want.Reader)
	if err != nil {
		http.Error(w, err.Error(), status(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(loan)
}

// status returns the status of an answer to a request that met err.
func status(err error) int {
	switch {
	case errors.Is(err, ErrLent), errors.Is(err, ErrHeld):
		return http.StatusConflict
	case errors.Is(err, jay.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, jay.ErrUnknownOutcome), errors.Is(err, jay.ErrFailed), errors.Is(err, jay.ErrUnreadable):
		return http.StatusServiceUnavailable // the disk
	}
	return http.StatusInternalServerError
}
