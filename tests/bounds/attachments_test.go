package bounds_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/child"
	"github.com/jaydb/jay/internal/jaytest"
)

// Ensure that an attachment of many bytes is put, read and removed in little memory: the
// process takes less than 32 MiB more than with an empty one, and with 1 GiB, for which
// make attachments sets JAY_ATTACHMENT_BYTES, less than 64 MiB in all.
func TestAttachments_Memory(t *testing.T) {
	if runtime.GOOS != "linux" || jaytest.Race {
		t.Skip("it looks at the process as Linux shows it, and the race detector takes memory of its own")
	}
	size := os.Getenv(attachmentVariable)
	if size == "" {
		if testing.Short() {
			t.Skip("it writes 48 MiB")
		}
		size = fmt.Sprint(48 << 20)
	}
	peak := func(size string) int {
		// The limits are on what allocators keep, in Go and in C: without them the process
		// has some 40 MB of garbage, which would be all that the test shows.
		p := child.Start(t, "TestAttachments_Memory_Process", attachmentVariable+"="+size, "GOMEMLIMIT=24MiB", "MALLOC_ARENA_MAX=2")
		kib, err := strconv.Atoi(p.Line())
		must(t, err)
		p.Wait()
		return kib
	}
	empty, full := peak("0"), peak(size)
	t.Logf("at most %d KiB of memory with an empty attachment, %d KiB with one of %s bytes", empty, full, size)
	if full-empty >= 32<<10 {
		t.Errorf("an attachment of %s bytes took %d KiB of memory, an empty one %d KiB", size, full, empty)
	}
	if os.Getenv(attachmentVariable) != "" && full >= 64<<10 {
		t.Errorf("an attachment of %s bytes took %d KiB of memory", size, full)
	}
}

const attachmentVariable = "JAY_ATTACHMENT_BYTES"

// TestAttachments_Memory_Process is the process of TestAttachments_Memory. It prints the
// most memory that it had, in KiB.
func TestAttachments_Memory_Process(t *testing.T) {
	text := os.Getenv(attachmentVariable)
	if text == "" || os.Getenv("GOMEMLIMIT") == "" {
		t.Skip("only in a process of TestAttachments_Memory")
	}
	size, err := strconv.ParseInt(text, 10, 64)
	must(t, err)
	// What a program sets that has little memory: four memtables and the cache.
	db := open(t, t.TempDir(), &jay.Options{MemTableBytes: 1 << 20, CacheBytes: 1 << 20})
	put(t, db, "a/1", `{}`)
	sum := sha256.New()
	content := io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{1}), size), sum)
	info, err := db.Attachments("a/1").Put(ctx, "large", content)
	must(t, err)
	equal(t, info, jay.Attachment{Name: "large", Hash: base64.StdEncoding.EncodeToString(sum.Sum(nil)), Size: size})
	r, err := db.Attachments("a/1").Get(ctx, "large")
	must(t, err)
	n, err := io.Copy(io.Discard, r)
	must(t, err)
	equal(t, n, size)
	must(t, r.Close())
	must(t, db.Attachments("a/1").Delete(ctx, "large"))
	jaytest.CheckContents(t, db)
	equal(t, jaytest.ChunkKeys(t, db), 0)
	closeDB(t, db)
	status, err := os.ReadFile("/proc/self/status")
	must(t, err)
	_, rest, found := strings.Cut(string(status), "VmHWM:")
	if !found {
		t.Fatal("no VmHWM")
	}
	fmt.Println(strings.Fields(rest)[0])
}
