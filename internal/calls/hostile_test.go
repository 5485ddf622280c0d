package calls_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/look"
	"github.com/jaydb/jay/storage"
)

// Ensure that calls that are none, arguments that no client of this version sends, and members that a later version may send are refused, change nothing, and leave the owner
// as it was.
func TestCalls_Hostile(t *testing.T) {
	dir := t.TempDir()
	db := owned(t, dir, jay.Options{})
	jaytest.Put(t, db, "users/ann", `{"Name":"Ann"}`, jay.InCollection("Users"))
	before := jaytest.Dump(t, db)
	e, err := look.Driver{}.Open(dir, storage.OpenOptions{ReadOnly: true})
	jaytest.Must(t, err)
	defer e.Close()
	caller := e.(interface {
		Call(ctx context.Context, name string, arguments []byte, progress func([]byte)) ([]byte, error)
	})
	for _, c := range [][2]string{
		{"", "{}"},
		{"explode", "{}"},
		{"write", ""},
		{"write", "null}"},
		{"write", "{} {}"},
		{"write", `{"writes":[{"verb":"put","id":"x","body":"e30=","onlyIf":"later"}]}`},
		{"write", `{"writes":[{"verb":"attach","id":"users/ann"}]}`},
		{"write", `{"writes":[{"verb":"PUT","id":"x"}]}`},
		{"write", `{"writes":[{"verb":"put","id":"x","patch":{"edits":[]}}]}`},
		{"write", `{"writes":[{"verb":"patch","id":"users/ann"}]}`},
		{"write", `{"writes":[{"verb":"patch","id":"users/ann","patch":{"edits":[null]}}]}`},
		{"write", `{"writes":[{"verb":"patch","id":"users/ann","patch":{"edits":[{"verb":"explode"}]}}]}`},
		{"write", `{"writes":[{"verb":"compare exchange","id":"x","exchange":{"delete":true}}]}`},
		{"write", `{"writes":[{"verb":"delete","id":"users/ann","hilo":true}]}`},
		{"write", `{"writes":[{"verb":"put","id":"x","body":"e30="},{"verb":"put","id":"y","body":"ey"}]}`},
		{"write", `{"writes":[{"verb":"put","id":"x","body":"e30="}],"request":{"id":"r","call":"patch"}}`},
		{"write", `{"writes":[{"verb":"put","id":"x","body":"e30="}],"request":{"id":"` + strings.Repeat("r", 300) + `","call":"put"}}`},
		{"identity", `{"name":"","force":true}`},
		{"identity", `{"name":"bills","seed":true,"value":-5}`},
		{"identity", `{"name":"bills","force":true}`}, // no seed: it must not set the counter back
		{"identity", `{"name":"bills","value":7}`},
		{"raise-counters", `{"identities":{"bills":1}}`},
		{"ensure-indexes", `{"collection":"Users","indexes":[{"fields":[]}]}`},
		{"drop-collection", `{"name":"@hilo"}`},
		{"drop-collection", `{"name":"Users","to":"People"}`}, // no renaming
		{"rename-collection", `{"name":"Users","to":""}`},
		{"change", `{"query":"from @all_docs"}`},
		{"change", `{"query":"from Users select Name"}`},
		{"change", `{"query":"from Users","patch":{"verb":"delete","id":"users/ann"}}`},
		{"change", `{"query":"from Users where"}`},
		{"configure-due", `{"what":"expiration","kind":200,"disabled":true}`},
	} {
		reply, err := caller.Call(ctx, c[0], []byte(c[1]), nil)
		var answer struct{ Error *struct{ Text string } }
		if err != nil || json.Unmarshal(reply, &answer) != nil || answer.Error == nil || answer.Error.Text == "" {
			t.Errorf("%s %s: %s, %v", c[0], c[1], reply, err)
		}
	}
	jaytest.Equal(t, jaytest.Dump(t, db), before)
	if _, err := caller.Call(ctx, "write", []byte(`{"writes":[{"verb":"put","id":"x","body":"e30="}]}`), nil); err != nil {
		t.Errorf("after all that: %v", err)
	}
	if _, err := db.Get(ctx, "x"); err != nil {
		t.Error(err)
	}
}

// Ensure that a way which only reads stays so, whatever the options of the owner are.
func TestCalls_AnswerLook(t *testing.T) {
	db := owned(t, t.TempDir(), jay.Options{})
	ours, theirs := net.Pipe()
	answered := make(chan error, 1)
	go func() { answered <- jay.AnswerLook(ctx, db, ours) }()
	there, err := jay.LookThrough(theirs, "the pipe", nil)
	jaytest.Must(t, err)
	_, err = there.Put(ctx, "x", json.RawMessage(`{}`))
	if !errors.Is(err, jay.ErrReadOnly) || !strings.Contains(err.Error(), "the way through which it looks only reads") {
		t.Errorf("a put: %v", err)
	}
	jaytest.Must(t, there.Close())
	jaytest.Must(t, <-answered)
}

// Ensure that documents of the largest size go through, and that one that is too large for a call is refused with its size.
func TestCalls_Large(t *testing.T) {
	dir := t.TempDir()
	db := owned(t, dir, jay.Options{MaxDocumentBytes: 64 << 20})
	there := lookInto(t, dir)
	body := func(bytes int) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"text":"%s"}`, strings.Repeat("x", bytes)))
	}
	large := 32 << 20
	if testing.Short() {
		large = 4 << 20
	}
	jaytest.Put(t, there, "large", string(body(large)))
	if doc, err := db.Get(ctx, "large"); err != nil || len(doc.Body()) < large {
		t.Errorf("the large document: %v", err)
	}
	if _, err := there.Put(ctx, "larger", body(50<<20)); !errors.Is(err, jay.ErrTooLarge) || !strings.Contains(err.Error(), "67108864 are the most") {
		t.Errorf("one that is too large for a call: %v", err)
	}
	jaytest.Put(t, there, "small", `{}`)
}
