package jay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
)

// ended runs fn on a goroutine of its own and returns how fn ended: with the
// text of its error, "panic …" or "goexit".
func ended(fn func() error) string {
	out := make(chan string, 1)
	go func() {
		text := "goexit"
		defer func() {
			if r := recover(); r != nil {
				text = fmt.Sprint("panic ", r)
			}
			out <- text
		}()
		text = fmt.Sprint(fn())
	}()
	return <-out
}

// brokenEnds are the ways in which a callback does not return, by what its
// caller sees of them.
var brokenEnds = map[string]func(){
	"panic callback": func() { panic("callback") },
	"goexit":         runtime.Goexit,
}

// contents returns the documents of the users by ID.
func contents(t *testing.T, db *jay.DB) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for doc, err := range db.Documents(ctx, jay.Scan{Exclude: "Raven/HiLo/*"}) {
		must(t, err)
		all[doc.ID()] = string(doc.Body())
	}
	return all
}

// Ensure that a Progress that does not return ends its writer: the first call
// that meets it panics with the value, all later ones say what happened, none
// waits for ever, and what was committed before is stored.
func TestBulkOptions_Progress_DoesNotReturn(t *testing.T) {
	ways := map[string]func(db *jay.DB, w *jay.BulkWriter) string{
		"Flush": func(_ *jay.DB, w *jay.BulkWriter) string { return ended(func() error { return w.Flush(ctx) }) },
		"Close": func(_ *jay.DB, w *jay.BulkWriter) string { return ended(w.Close) },
		"Store": func(_ *jay.DB, w *jay.BulkWriter) string {
			return ended(func() error {
				for {
					if _, err := w.Store(ctx, "Things", json.RawMessage(`{}`)); err != nil {
						return err
					}
				}
			})
		},
	}
	for want, end := range brokenEnds {
		for way, call := range ways {
			t.Run(way+"/"+want, func(t *testing.T) {
				db := memory(t, nil)
				committed := int64(0)
				w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 2, Progress: func(p jay.BulkProgress) {
					committed = p.Documents
					end()
				}})
				must(t, err)
				_, err = w.Store(ctx, "Things", json.RawMessage(`{}`))
				must(t, err)
				got := call(db, w)
				text := fmt.Sprintf("bulk insert, after %d documents: wrong usage: BulkOptions.Progress did not return: ", committed)
				if want == "goexit" {
					text += "it called runtime.Goexit"
					if got != text {
						t.Errorf("got %q, want %q", got, text)
					}
				} else {
					text += "panic: callback"
					if got != want {
						t.Errorf("got %q, want %q", got, want)
					}
				}

				for range 2 {
					for _, later := range []func() error{
						func() error { return w.Flush(ctx) },
						func() error { _, err := w.Store(ctx, "Things", json.RawMessage(`{}`)); return err },
						w.Close,
					} {
						if got := ended(later); got != text && got != "jay: the bulk writer is closed" {
							t.Errorf("later: %q, want %q", got, text)
						}
					}
				}
				if err := w.Close(); !errors.Is(err, jay.ErrUsage) {
					t.Errorf("Close: %v, want ErrUsage", err)
				}
				must(t, db.Flush(ctx)) // what is read is on disk
				if got := int64(len(contents(t, db))); got != committed || committed == 0 || w.Progress().Documents != committed {
					t.Errorf("%d documents are stored, Progress was called with %d", got, committed)
				}
			})
		}
	}
}

// Ensure that many goroutines that use a writer whose Progress panics all come
// back, one of them with the panic.
func TestBulkOptions_Progress_PanicsOnce(t *testing.T) {
	db := memory(t, nil)
	w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 1, Progress: func(jay.BulkProgress) { panic("callback") }})
	must(t, err)
	var panics atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for {
				switch got := ended(func() error { _, err := w.Store(ctx, "Things", json.RawMessage(`{}`)); return err }); got {
				case "<nil>":
				case "panic callback":
					panics.Add(1)
					return
				default:
					return
				}
			}
		})
	}
	wg.Wait()
	if got := ended(w.Close); panics.Load() != 1 || got == "<nil>" {
		t.Errorf("%d calls have panicked, Close: %q", panics.Load(), got)
	}
}
