// Package notes is a service over a database, in few lines: notes that are posted once however often the request is
// sent, that expire, that browsers follow, and that are counted by the days of any time zone.
package notes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jaydb/jay"
)

// Note is a note. Its ID is made by HiLo: notes/1-A.
type Note struct {
	ID      string     `json:"id"`
	Version string     `json:"version" jay:"version"`
	Text    string     `json:"text"`
	Created time.Time  `json:"created" jay:"index"`
	Until   *time.Time `json:"until,omitempty" jay:"expires"` // nil for a note that stays
}

// Event says what has happened. Its ID is a server-side one, so that events have the order of their commits.
type Event struct {
	ID   string
	What string
}

// Day is how many notes were written on a day.
type Day struct {
	Day   string `json:"day"`
	Notes int    `json:"notes"`
}

// Service answers HTTP requests:
//
//	POST /notes             stores a note, once for each Idempotency-Key
//	PUT  /notes?id=…        replaces a note, if its version is the one of the body
//	GET  /feed              the changes of notes, as server-sent events; Last-Event-ID continues
//	GET  /days?zone=…       notes by day, as the clocks of the zone show it
type Service struct {
	db     *jay.DB
	notes  *jay.Collection[Note]
	events *jay.Collection[Event]
	mux    http.ServeMux
}

// New returns the service on db, which may be empty. The database stays the caller's to close.
func New(ctx context.Context, db *jay.DB) (*Service, error) {
	s := &Service{db: db}
	var errs [2]error
	s.notes, errs[0] = jay.CollectionOf[Note](db)
	s.events, errs[1] = jay.CollectionOf[Event](db, jay.WithIDRequest("events/"))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	s.mux.HandleFunc("POST /notes", s.post)
	s.mux.HandleFunc("PUT /notes", s.put)
	s.mux.HandleFunc("GET /feed", s.feed)
	s.mux.HandleFunc("GET /days", s.days)
	return s, s.notes.EnsureIndexes(ctx)
}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// post stores a note and its event in one commit. The client says when the note was created: a request that is sent again
// has the same body.
func (s *Service) post(w http.ResponseWriter, r *http.Request) {
	n := &Note{}
	if !read(w, r, n) {
		return
	}
	n.ID = ""
	var b jay.Batch
	err := errors.Join(s.notes.InBatch(&b).Insert(r.Context(), n), s.events.InBatch(&b).Insert(r.Context(), &Event{What: "posted"}))
	if err == nil {
		_, err = s.db.Apply(r.Context(), &b, jay.RequestID(r.Header.Get("Idempotency-Key")))
	}
	write(w, n, err)
}

// put replaces a note. Its expiry is that of the body.
func (s *Service) put(w http.ResponseWriter, r *http.Request) {
	n := &Note{}
	if !read(w, r, n) {
		return
	}
	n.ID = r.URL.Query().Get("id")
	_, err := s.notes.Replace(r.Context(), n)
	write(w, n, err)
}

// feed sends changes until the client leaves.
func (s *Service) feed(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for c, err := range s.db.Changes(r.Context(), r.Header.Get("Last-Event-ID"), jay.OfCollections("Notes")) {
		switch {
		case err != nil:
			return // the client has left; or it connects again, and is told why
		case c.Deleted:
			_, err = fmt.Fprintf(w, "id: %s\nevent: deleted\ndata: %s\n\n", c.Token(), c.ID)
		default:
			_, err = fmt.Fprintf(w, "id: %s\nevent: written\ndata: %s\n\n", c.Token(), c.ID)
		}
		if err != nil || out.Flush() != nil {
			return
		}
	}
}

// days counts notes by the days of a time zone.
func (s *Service) days(w http.ResponseWriter, r *http.Request) {
	byDay := s.notes.Query().GroupBy("day(created, '" + r.URL.Query().Get("zone") + "')").OrderBy("key()") // any other text is no zone
	days, err := jay.Select[Day](byDay, "key() as day", "count() as notes").All(r.Context())
	write(w, days, err)
}

// read decodes the body of a request, and answers one that is none.
func read(w http.ResponseWriter, r *http.Request, v any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

// write answers with a value, or with the status of an error.
func write(w http.ResponseWriter, v any, err error) {
	switch {
	case err == nil:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	case errors.Is(err, jay.ErrRequestID):
		http.Error(w, "the key belongs to another note", http.StatusUnprocessableEntity)
	case errors.Is(err, jay.ErrNotFound):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, jay.ErrConflict):
		http.Error(w, err.Error(), http.StatusConflict)
	case errors.Is(err, jay.ErrUsage), errors.Is(err, jay.ErrInvalidDocument), errors.Is(err, jay.ErrQuery):
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
