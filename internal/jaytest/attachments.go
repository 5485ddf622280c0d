package jaytest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
)

// RandomBytes returns n bytes that depend on the seed.
func RandomBytes(seed uint64, n int) []byte {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	out := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(out)
	return out
}

// Attach puts an attachment.
func Attach(t testing.TB, db *jay.DB, id, name string, content []byte, opts ...jay.WriteOption) jay.Attachment {
	t.Helper()
	a, err := db.Attachments(id).Put(ctx, name, bytes.NewReader(content), opts...)
	if err != nil {
		t.Fatalf("attach %q to %q: %v", name, id, err)
	}
	return a
}

// Attached returns the content of an attachment, or its error.
func Attached(t testing.TB, a jay.Attachments, name string) ([]byte, error) {
	t.Helper()
	r, err := a.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}

// CheckContents removes what can be removed, and checks that nothing but the chunks of
// contents that documents have are there.
func CheckContents(t testing.TB, db *jay.DB) {
	t.Helper()
	Must(t, checks.RemoveContents(db))
	Must(t, checks.Contents(db))
	s, err := db.Stats(ctx)
	Must(t, err)
	if s.Attachments.Removing != 0 {
		t.Errorf("%d streams are still to be removed", s.Attachments.Removing)
	}
}

// AttachmentCounts returns the figures of attachments in Stats.
func AttachmentCounts(t testing.TB, db *jay.DB) jay.AttachmentStats {
	t.Helper()
	s, err := db.Stats(ctx)
	Must(t, err)
	return s.Attachments
}

// HookReader calls Do once, before it reads the byte at After.
type HookReader struct {
	R     io.Reader
	After int
	Do    func()
}

// Read implements io.Reader.
func (h *HookReader) Read(p []byte) (int, error) {
	if h.After == 0 && h.Do != nil {
		h.Do()
		h.Do = nil
	}
	if h.Do != nil && len(p) > h.After {
		p = p[:h.After]
	}
	n, err := h.R.Read(p)
	h.After -= n
	return n, err
}

// ChunkKeys returns how many chunks there are.
func ChunkKeys(t testing.TB, db *jay.DB) int {
	t.Helper()
	n, err := checks.ChunkKeys(db)
	Must(t, err)
	return n
}
