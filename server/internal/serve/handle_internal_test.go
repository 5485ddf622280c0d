package serve

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The route is internal, as no route of the server fails in this way.

// Ensure that an error of a route whose time is bounded is logged as an error: the end of that time does not mean that
// the client has gone.
func TestCall_InTime_LogsErrors(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	fails := &Route{Method: "GET", Path: "/fails", Timed: true, Open: true, Run: func(*Call) error { panic("it fails") }}
	s, err := Open(Options{Data: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelError}))}, NewTable(nil, []*Route{fails}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/fails", nil))
	if w.Code != http.StatusInternalServerError || !strings.Contains(logged.String(), "panic: it fails") {
		t.Errorf("status %d; the log has %q", w.Code, logged.String())
	}
}
