package lint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that the server of docs/errors.md is the one below, which the other tests run.
func TestGuideServer_IsTheOneOfTheGuide(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("internal/lint/docs_server_test.go")
	must(t, err)
	_, code, _ := strings.Cut(strings.ReplaceAll(string(source), "\r\n", "\n"), "\n// The "+"server of docs/errors.md.\n\n")
	for _, block := range codeBlocks(t, "docs/errors.md", "go") {
		if strings.HasPrefix(block.text, "func putDocument") {
			if block.text != code {
				t.Error("the server of docs/errors.md differs from the one of docs_server_test.go")
			}
			return
		}
	}
	t.Error("docs/errors.md has no server")
}

// Ensure that status agrees with the last column of the tables of docs/errors.md.
func TestGuideServer_Tables(t *testing.T) {
	t.Parallel()
	errs := map[string]error{
		"ErrNotFound": jay.ErrNotFound, "ErrExists": jay.ErrExists, "ErrConflict": &jay.ConflictError{ID: "a", Expected: "x"}, "ErrUnique": jay.ErrUnique, "ErrSchema": jay.ErrSchema, "ErrSchemaRule": jay.ErrSchemaRule,
		"ErrCollection": jay.ErrCollection, "ErrInvalidID": jay.ErrInvalidID, "ErrInvalidDocument": jay.ErrInvalidDocument, "*ComputeError": &jay.ComputeError{}, "*ValueError": &jay.ValueError{}, "ErrTooLarge": jay.ErrTooLarge,
		"ErrInvalidPatch": jay.ErrInvalidPatch, "ErrPatchTest": errors.Join(jay.ErrInvalidPatch, jay.ErrPatchTest), "ErrPatchWork": jay.ErrPatchWork,
		"ErrSyntax": jay.ErrSyntax, "ErrUpdateRQL": errors.Join(jay.ErrSyntax, jay.ErrUpdateRQL), "ErrQuery": jay.ErrQuery, "ErrNoIndex": jay.ErrNoIndex,
		"ErrUnknownOutcome": errors.Join(jay.ErrUnknownOutcome, context.DeadlineExceeded), "ErrFailed": jay.ErrFailed, "ErrDiskFull": jay.ErrDiskFull, "ErrMemory": &jay.MemoryError{},
		"*DecodeError": &jay.DecodeError{Err: io.EOF}, "ErrCorrupt": jay.ErrCorrupt, "ErrUnreadable": jay.ErrUnreadable, "ErrClosed": jay.ErrClosed,
		"context.Canceled": context.Canceled, "ErrIndex": jay.ErrIndex, "*KindError": &jay.KindError{}, "*OptionError": &jay.OptionError{}, "*FunctionError": &jay.FunctionError{}, "*ReferrersError": &jay.ReferrersError{}, "ErrIndexExists": jay.ErrIndexExists, "ErrType": jay.ErrType,
		"ErrTxDone": jay.ErrTxDone, "ErrNeedsFloor": jay.ErrNeedsFloor, "ErrNeedsCapacity": jay.ErrNeedsCapacity,
		"ErrNoAttachment": jay.ErrNoAttachment, "ErrInvalidAttachment": &jay.AttachmentError{Rule: "a name is not empty"},
		"ErrRequestID": jay.ErrRequestID, "ErrLeadTooLarge": jay.ErrLeadTooLarge, "ErrExhausted": jay.ErrExhausted,
		"ErrNoMajority": errors.Join(jay.ErrNoMajority, context.DeadlineExceeded), "ErrTag": jay.ErrTag, "ErrNeedsCluster": jay.ErrNeedsCluster,
		"ErrClusterRestored": jay.ErrClusterRestored, "ErrUnavailable": jay.ErrUnavailable, "ErrSnapshotExpired": jay.ErrSnapshotExpired, "ErrShared": jay.ErrShared, "ErrNodeTag": jay.ErrNodeTag, "ErrLeaseLost": jay.ErrLeaseLost,
	}
	text, err := os.ReadFile("docs/errors.md")
	must(t, err)
	r := httptest.NewRequest("PUT", "/", nil)
	seen := make(map[string]bool) // an error may have a row for each occasion
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]*)`.*\\| ([0-9]{3})[^|]*\\|\r?$").FindAllStringSubmatch(string(text), -1) {
		if m[1] == "ErrUsage" {
			continue // 500, or 400 where the ID came from the request, as here
		}
		seen[m[1]] = true
		err := errs[m[1]]
		if err == nil {
			t.Errorf("the test has no %s", m[1])
		} else if got := fmt.Sprint(status(r, err)); got != m[2] {
			t.Errorf("%s: status %s, want %s", m[1], got, m[2])
		}
	}
	if len(seen) != len(errs) {
		t.Errorf("the tables have %d errors, want %d", len(seen), len(errs))
	}
	r.Header.Set("If-Match", `"x"`)
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 200},
		{context.DeadlineExceeded, 504},
		{&jay.ConflictError{ID: "a", Expected: "x"}, 412},
		{&jay.DocumentError{Rule: "at most 10 bytes", Limit: 10}, 413},
		{&jay.DocumentError{Rule: "a collection's name has at most 10 bytes", Limit: 10}, 400},
		{jay.ErrUsage, 400},
		{jay.ErrClientClosed, 503},
	} {
		if got := status(r, test.err); got != test.want {
			t.Errorf("%v: status %d, want %d", test.err, got, test.want)
		}
	}
}

// Ensure that the server of docs/errors.md heeds every form of If-Match.
func TestGuideServer_Requests(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	old, err := db.Put(ctx, "bikes/1", json.RawMessage(`{"n":1}`))
	must(t, err)
	now, err := db.Put(ctx, "bikes/1", json.RawMessage(`{"n":2}`))
	must(t, err)
	mux := http.NewServeMux()
	mux.Handle("PUT /documents/{id}", putDocument(db))
	put := func(id, ifMatch, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("PUT", "/documents/"+jay.EscapeID(id), strings.NewReader(body))
		if ifMatch != "" {
			r.Header.Set("If-Match", ifMatch)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
	for _, test := range []struct {
		id, ifMatch, body string
		want              int
	}{
		{"bikes/1", `""`, `{}`, 412},
		{"bikes/2", `""`, `{}`, 412},
		{"bikes/2", `*`, `{}`, 412},
		{"bikes/2", `"` + old.ChangeVector + `"`, `{}`, 412},
		{"bikes/1", `W/"` + now.ChangeVector + `"`, `{}`, 412},
		{"bikes/1", `"` + old.ChangeVector + `"`, `{}`, 412},
		{"bikes/1", now.ChangeVector, `{}`, 412},
		{"bikes/1", `"x", "` + now.ChangeVector + `"`, `{}`, 412},
		{"bikes/1", `"`, `{}`, 412},
		{"bikes/", ``, `{}`, 400},
		{"bikes|", ``, `{}`, 400},
		{"bikes\\1", ``, `{}`, 400},
		{"bikes/1", ``, `{`, 400},
		{"bikes/1", ``, `{"a":"` + strings.Repeat("a", 1<<20) + `"}`, 413},
	} {
		if w := put(test.id, test.ifMatch, test.body); w.Code != test.want {
			t.Errorf("%s, If-Match: %s: status %d (%s), want %d", test.id, test.ifMatch, w.Code, w.Body, test.want)
		}
	}
	if doc, err := db.Get(ctx, "bikes/1"); err != nil || doc.ChangeVector() != now.ChangeVector {
		t.Errorf("a refused request has changed the document: %v, %v", doc, err)
	}
	if found, err := db.Exists(ctx, "bikes/2"); found || err != nil {
		t.Errorf("a refused request has stored a document (%v)", err)
	}
	tag := `"` + now.ChangeVector + `"`
	for _, ifMatch := range []string{tag, "*", "", "again"} {
		if ifMatch == "again" {
			ifMatch = tag
		}
		w := put("bikes/1", ifMatch, `{"n":3}`)
		if w.Code != 204 || w.Header().Get("ETag") == tag {
			t.Errorf("If-Match: %s: status %d (%s), ETag %s", ifMatch, w.Code, w.Body, w.Header().Get("ETag"))
		}
		tag = w.Header().Get("ETag")
	}
}

// The server of docs/errors.md.

func putDocument(db *jay.DB) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := putRequest(db, w, r)
		if err != nil {
			http.Error(w, err.Error(), status(r, err))
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

func putRequest(db *jay.DB, w http.ResponseWriter, r *http.Request) error {
	id, err := jay.UnescapeID(r.PathValue("id"))
	if err != nil {
		return err
	}
	if id == "" || strings.HasSuffix(id, "/") || strings.HasSuffix(id, "|") {
		return &jay.IDError{ID: id, Rule: "must be a whole ID"} // Jay would make one
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		return err
	}

	var meta jay.Metadata
	tag := r.Header.Get("If-Match")
	version := strings.TrimSuffix(strings.TrimPrefix(tag, `"`), `"`)
	switch {
	case tag == "": // the client does not care
		meta, err = db.Put(r.Context(), id, body)
	case tag == "*": // any version, but there must be one
		meta, err = db.Replace(r.Context(), id, body)
	case version == "" || tag != `"`+version+`"` || strings.Contains(version, `"`):
		// A weak tag, W/"…", never matches, and neither does "", which Put would take for
		// "must not exist". This server gives out one tag at a time, and takes no lists.
		return errNoMatch
	default:
		meta, err = db.Put(r.Context(), id, body, jay.IfMatch(version))
	}
	if err != nil {
		return err
	}
	w.Header().Set("ETag", `"`+meta.ChangeVector+`"`)
	return nil
}

var errNoMatch = errors.New("If-Match: no document has this tag")

// status returns the status of a request that ended with err.
func status(r *http.Request, err error) int {
	var tooLarge *http.MaxBytesError
	var document *jay.DocumentError
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
	conditional := r.Header.Get("If-Match") != ""
	switch {
	case err == nil:
		return http.StatusOK
	case is(jay.ErrUnknownOutcome, jay.ErrFailed, jay.ErrClosed, jay.ErrClientClosed, jay.ErrNoMajority, jay.ErrTag, jay.ErrUnavailable, jay.ErrLeaseLost, context.Canceled):
		return http.StatusServiceUnavailable
	case is(context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	case is(jay.ErrDiskFull):
		return http.StatusInsufficientStorage
	case is(jay.ErrMemory):
		return http.StatusTooManyRequests
	case is(errNoMatch), conditional && is(jay.ErrConflict, jay.ErrNotFound):
		return http.StatusPreconditionFailed
	case is(jay.ErrConflict): // also of a document that is missing or exists
		return http.StatusConflict
	case is(jay.ErrNotFound): // before ErrCollection: also a read of another collection
		return http.StatusNotFound
	case is(jay.ErrExists, jay.ErrUnique, jay.ErrCollection, jay.ErrPatchTest):
		return http.StatusConflict
	case is(jay.ErrTooLarge, jay.ErrPatchWork), errors.As(err, &tooLarge),
		errors.As(err, &document) && strings.HasPrefix(document.Rule, "at most ") && strings.HasSuffix(document.Rule, " bytes"):
		return http.StatusRequestEntityTooLarge
	case is(jay.ErrRequestID, jay.ErrSchema, jay.ErrSchemaRule):
		return http.StatusUnprocessableEntity
	case is(jay.ErrInvalidID, jay.ErrInvalidDocument, jay.ErrInvalidAttachment, jay.ErrInvalidPatch, jay.ErrQuery, jay.ErrSyntax, jay.ErrLeadTooLarge),
		is(jay.ErrUsage): // here of the request's ID
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}
