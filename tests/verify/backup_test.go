package verify_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// blocksOf returns where the blocks of a backup begin, and its end.
func blocksOf(t testing.TB, stream []byte) (starts []int) {
	t.Helper()
	at := bytes.IndexByte(stream, '\n') + 1
	for at < len(stream) {
		starts = append(starts, at)
		at += 17 + int(binary.BigEndian.Uint32(stream[at+9:]))
	}
	if at != len(stream) {
		t.Fatalf("the blocks end at %d of %d", at, len(stream))
	}
	return append(starts, at)
}

// Ensure that a backup that was cut is refused, wherever it was: at every 64 KB, at and
// around the bounds of blocks, and near its ends. Nothing is left where a restore was begun.
func TestBackup_Cut(t *testing.T) {
	t.Parallel()
	_, stream := jaytest.BackUp(t, jaytest.Incompressible(t, 1200))
	cuts := []int{0, 1, 10, 20, 21, 22, len(stream) - 1}
	for at := 64 << 10; at < len(stream); at += 64 << 10 {
		cuts = append(cuts, at)
	}
	for _, at := range blocksOf(t, stream) {
		cuts = append(cuts, at-1, at, at+1, at+17)
	}
	n := 0
	today := sample.Of(t, 7)
	for i, cut := range cuts {
		if cut >= len(stream) || !today.Has(i) {
			continue
		}
		n++
		checkRefused(t, fmt.Sprint("cut at ", cut), stream[:cut], n%8 == 0)
	}
	t.Logf("%d cuts of %d bytes in %d blocks", n, len(stream), len(blocksOf(t, stream))-1)
	checkRefused(t, "a byte more", append(bytes.Clone(stream), 0), true)
	checkRefused(t, "twice", append(bytes.Clone(stream), stream...), true)
}

// checkRefused checks that a stream is a *BackupError that says what is wrong, for
// VerifyBackup and, if wanted, for Restore, which leaves nothing.
func checkRefused(t testing.TB, what string, stream []byte, restore bool) {
	t.Helper()
	var damage *jay.BackupError
	_, err := jay.VerifyBackup(ctx, nil, bytes.NewReader(stream))
	if !errors.Is(err, jay.ErrBackup) || !errors.As(err, &damage) || damage.Problem == "" {
		t.Fatalf("%s: %v", what, err)
	}
	if !restore {
		return
	}
	disk := storagetest.NewDisk()
	_, err = jay.Restore(ctx, "new", jay.RestoreOptions{CopyTag: "B", Options: &jay.Options{FS: disk}}, bytes.NewReader(stream))
	if !errors.As(err, &damage) {
		t.Fatalf("restore, %s: %v", what, err)
	}
	names, err := disk.List("/")
	if err != nil || len(names) > 0 {
		t.Fatalf("restore, %s, leaves %q: %v", what, names, err)
	}
}

// Ensure that a changed byte is noticed in every block, in its head and in its data, and
// in the first line.
func TestBackup_Flipped(t *testing.T) {
	_, stream := jaytest.BackUp(t, jaytest.Incompressible(t, 1200))
	starts := blocksOf(t, stream)
	n := 0
	flip := func(at int, with byte) {
		n++
		damaged := bytes.Clone(stream)
		damaged[at] ^= with
		checkRefused(t, fmt.Sprintf("byte %d of %d changed by %x", at, len(stream), with), damaged, n%16 == 0)
	}
	for at := range starts[0] {
		flip(at, 1)
	}
	for i, start := range starts[:len(starts)-1] {
		size := starts[i+1] - start
		for at := range 17 {
			flip(start+at, 1<<(n%8))
		}
		for _, at := range []int{17, 18, size / 2, size - 1} {
			flip(start+at, 1<<(n%8))
		}
	}
	t.Logf("%d flips in %d blocks", n, len(starts)-1)

	// Blocks that are exchanged, left out, or of another backup.
	block := func(i int) []byte { return stream[starts[i]:starts[i+1]] }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	head, last := stream[:starts[0]], len(starts)-2
	checkRefused(t, "two exchanged", join(head, block(0), block(2), block(1), stream[starts[3]:]), true)
	checkRefused(t, "one left out", join(head, block(0), stream[starts[2]:]), true)
	checkRefused(t, "no data", join(head, block(0), block(last)), true)
	_, other := jaytest.BackUp(t, jaytest.Incompressible(t, 1200))
	others := blocksOf(t, other)
	checkRefused(t, "a block of another", join(stream[:starts[1]], other[others[1]:others[2]], stream[starts[2]:]), true)
}

// Ensure that what is no backup, and what a newer Jay has written, is refused with the
// reason.
func TestBackup_Foreign(t *testing.T) {
	_, stream := jaytest.BackUp(t, jaytest.Incompressible(t, 3))
	for _, text := range []string{"", "x", `{"a":1}` + "\n", "jay database, format 4\n", "jay backup, format \n", "jay backup, format 1", "jay backup, format -1\n", "jay backup, format 1x\n", "jay backup, format 999999999999\n", "\x1f\x8b\x08"} {
		checkRefused(t, fmt.Sprintf("%q", text), []byte(text), true)
	}
	newer := bytes.Replace(stream, []byte("format 1\n"), []byte("format 3\n"), 1)
	checkRefused(t, "a newer format", newer, true)
	for _, call := range []func() error{
		func() error { _, err := jay.VerifyBackup(ctx, nil, bytes.NewReader(newer)); return err },
		func() error { _, err := jay.ReadBackup(bytes.NewReader(newer)); return err },
	} {
		err := call()
		var f *jay.FormatError
		if !errors.Is(err, jay.ErrNewerFormat) || !errors.Is(err, jay.ErrBackup) || !errors.As(err, &f) || f.What != "backup" || f.Found != 3 || f.Newest != 2 {
			t.Errorf("a newer format: got %v, want a FormatError of a backup", err)
		}
	}
}
