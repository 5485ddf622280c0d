package sealed_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/sealed"
)

// keysOf returns keys by the bytes that they consist of. The first ID is the newest.
func keysOf(ids ...string) sealed.Keys {
	return func(id string) (sealed.Key, error) {
		for _, one := range ids {
			if id == "" || id == one {
				return sealed.Key{ID: one, Secret: bytes.Repeat([]byte(one[:1]), sealed.KeyBytes)}, nil
			}
		}
		return sealed.Key{}, errors.New("not in the test's list")
	}
}

var database = sealed.DatabaseID{1, 2, 3}

func ring(t testing.TB, ids ...string) *sealed.Ring {
	t.Helper()
	r, err := sealed.NewRing(database, keysOf(ids...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// text returns n bytes that do not repeat.
func text(n int, seed uint64) []byte {
	b := make([]byte, n)
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = random.Read(b)
	return b
}

// writeSteps writes b in writes of up to step bytes.
func writeSteps(t testing.TB, w io.Writer, b []byte, step int) {
	t.Helper()
	for part := range slices.Chunk(b, step) {
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
	}
}

// writePages writes a file of pages, in writes of up to step bytes.
func writePages(t testing.TB, r *sealed.Ring, name string, b []byte, step int) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := r.NewPages(&file, name)
	if err != nil {
		t.Fatal(err)
	}
	writeSteps(t, w, b, step)
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	if w.Size() != int64(len(b)) || w.Physical() != int64(file.Len()) || sealed.PageSize(int64(file.Len())) != int64(len(b)) {
		t.Fatalf("sizes: got %d, %d and %d; want %d, %d and %d", w.Size(), w.Physical(), sealed.PageSize(int64(file.Len())), len(b), file.Len(), len(b))
	}
	return file.Bytes()
}

func readPages(r *sealed.Ring, file []byte, name string) ([]byte, error) {
	p, err := r.OpenPages(bytes.NewReader(file), int64(len(file)), name)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(p, 0, 1<<40))
}

func writeFrames(t testing.TB, r *sealed.Ring, name string, writes ...[]byte) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := r.NewFrames(&file, name)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range writes {
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if w.Physical() != int64(file.Len()) || w.Size() != int64(len(bytes.Join(writes, nil))) {
		t.Fatalf("the writer counts %d and %d bytes, the file has %d and %d", w.Size(), w.Physical(), len(bytes.Join(writes, nil)), file.Len())
	}
	return file.Bytes()
}

func readFrames(t testing.TB, r *sealed.Ring, file []byte, name string) (text []byte, damage *sealed.Damage) {
	t.Helper()
	f, err := r.OpenFrames(bytes.NewReader(file), int64(len(file)), name)
	if err != nil {
		t.Fatal(err)
	}
	text, err = io.ReadAll(io.NewSectionReader(f, 0, 1<<40))
	if err != nil {
		t.Fatal(err)
	}
	return text, f.Damage()
}

func isDamage(err error) bool {
	return errors.As(err, new(*sealed.Damage)) && errors.Is(err, errs.ErrCorrupt)
}

const page = 4068 // plaintext of a page

// Ensure that pages read as what was written, wherever a read begins and ends.
func TestPages_ReadAt(t *testing.T) {
	r := ring(t, "a")
	for _, size := range []int{0, 1, page - 1, page, page + 1, 2 * page, 40*page + 17, 33 * page} {
		for _, step := range []int{7 * page, 1000, 1<<20 + 1} {
			b := text(size, uint64(size))
			file := writePages(t, r, "000001.sst", b, step)
			p, err := r.OpenPages(bytes.NewReader(file), int64(len(file)), "000001.sst")
			if err != nil {
				t.Fatal(err)
			}
			random := rand.New(rand.NewPCG(1, uint64(size)))
			for range 200 {
				from := random.IntN(size + 2)
				buf := make([]byte, random.IntN(max(1, size+10-from))+1)
				n, err := p.ReadAt(buf, int64(from))
				want := b[min(from, size):min(size, from+len(buf))]
				if !bytes.Equal(buf[:n], want) || (n < len(buf)) != errors.Is(err, io.EOF) || n == len(buf) && err != nil {
					t.Fatalf("size %d: read of %d at %d: got %d bytes and %v, want %d", size, len(buf), from, n, err, len(want))
				}
			}
		}
	}
}

// Ensure that a changed bit anywhere in a file of pages is found by a read of all of it.
func TestPages_Flip(t *testing.T) {
	r := ring(t, "a")
	file := writePages(t, r, "000001.sst", text(2*page+100, 1), 5000)
	for i := range file {
		if testing.Short() && i > 600 && i%37 != 0 {
			continue
		}
		damaged := bytes.Clone(file)
		damaged[i] ^= 1 << (i % 8)
		if i == 8 {
			damaged[i] ^= 0xff
		}
		if _, err := readPages(r, damaged, "000001.sst"); !isDamage(err) {
			t.Fatalf("byte %d: got %v, want a Damage", i, err)
		}
	}
}

// Ensure that pages which were cut off, added, exchanged within the file or between files are found.
func TestPages_Moved(t *testing.T) {
	r := ring(t, "a")
	const physical, header = 4096, 512
	file := writePages(t, r, "000001.sst", text(4*page, 1), 1<<20)
	other := writePages(t, r, "000001.sst", text(4*page, 1), 1<<20)
	at := func(i int) int { return header + i*physical }
	swapped := bytes.Clone(file)
	copy(swapped[at(1):], file[at(2):at(3)])
	copy(swapped[at(2):], file[at(1):at(2)])
	foreign := bytes.Clone(file)
	copy(foreign[at(1):at(2)], other[at(1):])
	whole := bytes.Clone(other)
	copy(whole[:header], file[:header])
	rows := map[string][]byte{
		"cut where a page ends":       file[:at(3)],
		"cut to its header":           file[:header],
		"cut within a page":           file[:at(3)+100],
		"cut within the last tag":     file[:at(3)+20],
		"cut within the header":       file[:100],
		"empty":                       {},
		"a page twice at the end":     append(bytes.Clone(file), file[at(3):]...),
		"a byte more":                 append(bytes.Clone(file), 0),
		"two pages exchanged":         swapped,
		"a page of another file":      foreign,
		"the header of another":       whole,
		"the last page in the middle": append(bytes.Clone(file[:at(1)]), file[at(3):]...),
	}
	for name, b := range rows {
		if _, err := readPages(r, b, "000001.sst"); !isDamage(err) {
			t.Errorf("%s: got %v, want a Damage", name, err)
		}
	}
}

// Ensure that a header belongs to one name, one database and one layout.
func TestHeader_Binding(t *testing.T) {
	r := ring(t, "a")
	file := writePages(t, r, "000001.sst", []byte("x"), 10)
	if _, err := readPages(r, file, "000002.sst"); !isDamage(err) {
		t.Errorf("another name: got %v, want a Damage", err)
	}
	elsewhere, err := sealed.NewRing(sealed.DatabaseID{9}, keysOf("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readPages(elsewhere, file, "000001.sst"); !isDamage(err) {
		t.Errorf("another database: got %v, want a Damage", err)
	}
	if f, err := r.OpenFrames(bytes.NewReader(file), int64(len(file)), "000001.sst"); err != nil || f.Damage() == nil || f.Size() != 0 {
		t.Errorf("pages opened as frames: got %v and no damage", err)
	}
}

// Ensure that a file whose key is not there, or has another secret, is not damage and not read.
func TestHeader_Keys(t *testing.T) {
	file := writePages(t, ring(t, "a"), "000001.sst", []byte("x"), 10)
	if _, err := readPages(ring(t, "b"), file, "000001.sst"); !errors.Is(err, errs.ErrKey) || isDamage(err) {
		t.Errorf("a missing key: got %v, want ErrKey", err)
	}
	if b, err := readPages(ring(t, "b", "a"), file, "000001.sst"); err != nil || string(b) != "x" {
		t.Errorf("an older key: got %q, %v", b, err)
	}
	wrong, err := sealed.NewRing(database, func(string) (sealed.Key, error) {
		return sealed.Key{ID: "a", Secret: make([]byte, sealed.KeyBytes)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readPages(wrong, file, "000001.sst"); !errors.Is(err, errs.ErrKey) || isDamage(err) {
		t.Errorf("another secret: got %v, want ErrKey", err)
	}
	frames := writeFrames(t, ring(t, "a"), "000001.log", []byte("x"))
	if _, err := ring(t, "b").OpenFrames(bytes.NewReader(frames), int64(len(frames)), "000001.log"); !errors.Is(err, errs.ErrKey) {
		t.Errorf("frames with a missing key: got %v, want ErrKey", err)
	}
}

// Ensure that after Rename a file opens under both names, and that a third name takes the place of the older one.
func TestRing_Rename(t *testing.T) {
	r := ring(t, "a")
	file := writePages(t, r, "JAY.sort.000001", []byte("x"), 10)
	rename := func(r *sealed.Ring, from, to string) {
		t.Helper()
		header, err := sealed.ReadHeader(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		offset, slot, err := r.Rename(header, sealed.Pages, from, to)
		if err != nil || slot == nil {
			t.Fatalf("rename to %s: %v", to, err)
		}
		copy(file[offset:], slot)
	}
	opens := func(name string, want bool) {
		t.Helper()
		if _, err := readPages(ring(t, "b", "a"), file, name); (err == nil) != want {
			t.Errorf("%s opens: %v; want %v", name, err, want)
		}
	}
	rename(r, "JAY.sort.000001", "000007.sst")
	opens("JAY.sort.000001", true)
	opens("000007.sst", true)
	rename(ring(t, "b", "a"), "000007.sst", "000008.sst")
	opens("JAY.sort.000001", false)
	opens("000007.sst", true)
	opens("000008.sst", true)
	header := file[:sealed.HeaderBytes]
	if newest, err := ring(t, "b", "a").WrappedByNewest(header, sealed.Pages, "000008.sst"); err != nil || newest {
		t.Errorf("wrapped by an older key, too: got newest %v, %v", newest, err)
	}
	if _, slot, err := r.Rename(header, sealed.Pages, "000007.sst", "000007.sst"); err != nil || slot != nil {
		t.Errorf("rename to the same name: got %d bytes, %v", len(slot), err)
	}
	rename(ring(t, "b", "a"), "000008.sst", "000009.sst")
	if newest, err := ring(t, "b", "a").WrappedByNewest(header, sealed.Pages, "000009.sst"); err != nil || !newest {
		t.Errorf("wrapped by the newest key twice: got newest %v, %v", newest, err)
	}
}

// Ensure that frames read as what was written, wherever a read begins and ends.
func TestFrames_ReadAt(t *testing.T) {
	r := ring(t, "a")
	random := rand.New(rand.NewPCG(1, 2))
	var writes [][]byte
	for i := range 300 {
		n := random.IntN(300)
		if i%50 == 3 {
			n = random.IntN(200_000)
		}
		writes = append(writes, text(n, uint64(i)))
	}
	want := bytes.Join(writes, nil)
	file := append(writeFrames(t, r, "000001.log", writes...), make([]byte, 300_000)...) // space that was allocated
	f, err := r.OpenFrames(bytes.NewReader(file), int64(len(file)), "000001.log")
	if err != nil || f.Size() != int64(len(want)) {
		t.Fatalf("got %d bytes, %v; want %d", f.Size(), err, len(want))
	}
	for range 500 {
		from := random.IntN(len(want) + 5)
		buf := make([]byte, random.IntN(70_000))
		n, err := f.ReadAt(buf, int64(from))
		if !bytes.Equal(buf[:n], want[min(from, len(want)):min(len(want), from+len(buf))]) || (n < len(buf)) != errors.Is(err, io.EOF) {
			t.Fatalf("read of %d at %d: got %d bytes and %v", len(buf), from, n, err)
		}
	}
}

// Ensure that a changed bit anywhere hides one frame, or with the header all of them, and that
// the others stay where they are.
func TestFrames_Flip(t *testing.T) {
	r := ring(t, "a")
	var writes [][]byte
	for i := range 5 {
		writes = append(writes, bytes.Repeat([]byte{byte('a' + i)}, 50))
	}
	const header, frame = 512, 16 + 28 + 50
	file := writeFrames(t, r, "000001.log", writes...)
	for i := range file {
		damaged := bytes.Clone(file)
		damaged[i] ^= 1 << (i % 8)
		got, damage := readFrames(t, r, damaged, "000001.log")
		if i < header {
			if len(got) != 0 || damage == nil {
				t.Fatalf("byte %d of the header: got %q, %v", i, got, damage)
			}
			continue
		}
		k := (i - header) / frame
		want := bytes.Join(writes, nil)
		clear(want[k*50 : k*50+50])
		if k == 4 {
			want = want[:k*50]
		}
		if !bytes.Equal(got, want) || damage == nil || damage.Offset != int64(header+k*frame) {
			t.Fatalf("byte %d, in frame %d: got %q, %v", i, k, got, damage)
		}
	}
}

// Ensure that a file that was cut anywhere has the frames that are whole, and no other bytes.
func TestFrames_Cut(t *testing.T) {
	r := ring(t, "a")
	var writes [][]byte
	for i := range 4 {
		writes = append(writes, bytes.Repeat([]byte{byte('a' + i)}, 20))
	}
	const header, frame = 512, 16 + 28 + 20
	file := writeFrames(t, r, "000001.log", writes...)
	for i := range file {
		for _, zeros := range []int{0, 1000} { // with the space that was allocated
			got, _ := readFrames(t, r, append(bytes.Clone(file[:i]), make([]byte, zeros)...), "000001.log")
			if want := bytes.Join(writes, nil)[:max(0, i-header)/frame*20]; !bytes.Equal(got, want) {
				if last := file[i]; zeros > 0 && last == 0 { // the byte that was cut off is a zero
					continue
				}
				t.Fatalf("cut at %d: got %q, want %q", i, got, want)
			}
		}
	}
}

// Ensure that frames which were exchanged, repeated or taken from another file are not data.
func TestFrames_Moved(t *testing.T) {
	r := ring(t, "a")
	const header, frame = 512, 16 + 28 + 20
	at := func(i int) int { return header + i*frame }
	writes := [][]byte{bytes.Repeat([]byte("a"), 20), bytes.Repeat([]byte("b"), 20), bytes.Repeat([]byte("c"), 20)}
	file := writeFrames(t, r, "000001.log", writes...)
	other := writeFrames(t, r, "000001.log", writes...)
	swapped := bytes.Clone(file)
	copy(swapped[at(0):], file[at(1):at(2)])
	copy(swapped[at(1):], file[at(0):at(1)])
	foreign := bytes.Clone(file)
	copy(foreign[at(1):at(2)], other[at(1):])
	none := string(make([]byte, 20))
	rows := map[string]struct {
		file []byte
		want string
	}{
		"one is repeated":       {append(bytes.Clone(file[:at(2)]), file[at(1):]...), string(bytes.Join(writes, nil))},
		"one is taken out":      {append(bytes.Clone(file[:at(1)]), file[at(2):]...), string(writes[0]) + none + string(writes[2])},
		"one of another file":   {foreign, string(writes[0]) + none + string(writes[2])},
		"two are exchanged":     {swapped, string(writes[0]) + none + string(writes[2])},
		"something in between":  {bytes.Join([][]byte{file[:at(1)], []byte("0123456789"), file[at(1):]}, nil), string(bytes.Join(writes, nil))},
		"the header of another": {append(bytes.Clone(other[:header]), file[header:]...), ""},
	}
	for name, row := range rows {
		got, damage := readFrames(t, r, row.file, "000001.log")
		if string(got) != row.want || damage == nil {
			t.Errorf("%s: got %q, %v; want %q", name, got, damage, row.want)
		}
	}
}

// Ensure that a slot has what was written last, and that damage to one is none to the others.
func TestSlots(t *testing.T) {
	r := ring(t, "a")
	file := make(disk, 3*4096)
	s := r.NewSlots(file, file, "JAY.control", 3, 4096)
	for i := range 3 {
		for _, what := range []string{"first", "second, which is longer", fmt.Sprint(i)} {
			if _, err := s.WriteAt([]byte(what), int64(i*4096)); err != nil {
				t.Fatal(err)
			}
		}
	}
	record := func(i int) string {
		t.Helper()
		b := make([]byte, 4096)
		if _, err := r.NewSlots(file, nil, "JAY.control", 3, 4096).ReadAt(b, int64(i*4096)); err != nil {
			t.Fatal(err)
		}
		return string(bytes.TrimRight(b, "\x00"))
	}
	whole := bytes.Clone(file)
	for i := range 512 + 4 + 28 + 1 {
		copy(file, whole)
		file[4096+i] ^= 1 << (i % 8)
		if record(0) != "0" || record(1) != "" || record(2) != "2" {
			t.Fatalf("byte %d of slot 1 was changed: got %q, %q, %q", i, record(0), record(1), record(2))
		}
	}
	copy(file, whole)
	copy(file[4096:], whole[:4096])
	if got := record(1); got != "" {
		t.Errorf("slot 0 in the place of slot 1: got %q", got)
	}
	if _, err := ring(t, "b").NewSlots(disk(whole), nil, "JAY.control", 3, 4096).ReadAt(make([]byte, 10), 0); !errors.Is(err, errs.ErrKey) {
		t.Errorf("a missing key: got %v, want ErrKey", err)
	}
	if _, err := s.WriteAt(make([]byte, 3*4096), 0); err != nil || !bytes.Equal(file, make([]byte, len(file))) {
		t.Errorf("zeros were not written: %v", err)
	}
	for _, row := range []struct {
		bytes, offset int
	}{{1, 1}, {1, 3 * 4096}, {s.MaxRecord() + 1, 0}} {
		if _, err := s.WriteAt(bytes.Repeat([]byte("x"), row.bytes), int64(row.offset)); err == nil {
			t.Errorf("a write of %d bytes at %d was accepted", row.bytes, row.offset)
		}
	}
}

// disk is a file in memory, of a fixed size.
type disk []byte

func (d disk) ReadAt(b []byte, offset int64) (int, error) {
	return bytes.NewReader(d).ReadAt(b, offset)
}

func (d disk) WriteAt(b []byte, offset int64) (int, error) { return copy(d[offset:], b), nil }

// Ensure that an identity opens with its key only, and that any changed bit is told.
func TestIdentity(t *testing.T) {
	identity, err := ring(t, "a").Identity()
	if err != nil {
		t.Fatal(err)
	}
	r, err := sealed.OpenIdentity(identity, "JAY.keys", keysOf("b", "a"))
	if err != nil {
		t.Fatal(err)
	}
	file := writePages(t, ring(t, "a"), "000001.sst", []byte("x"), 10)
	if _, err := readPages(r, file, "000001.sst"); err != nil {
		t.Errorf("a file of the same database: %v", err)
	}
	if _, err := sealed.OpenIdentity(identity, "JAY.keys", keysOf("b")); !errors.Is(err, errs.ErrKey) {
		t.Errorf("a missing key: got %v, want ErrKey", err)
	}
	wrong := func(string) (sealed.Key, error) {
		return sealed.Key{ID: "a", Secret: make([]byte, sealed.KeyBytes)}, nil
	}
	if _, err := sealed.OpenIdentity(identity, "JAY.keys", wrong); !errors.Is(err, errs.ErrKey) || isDamage(err) {
		t.Errorf("another secret: got %v, want ErrKey", err)
	}
	for i := range identity {
		damaged := bytes.Clone(identity)
		damaged[i] ^= 1 << (i % 8)
		if _, err := sealed.OpenIdentity(damaged, "JAY.keys", keysOf("a")); !isDamage(err) {
			t.Fatalf("byte %d: got %v, want a Damage", i, err)
		}
	}
	if _, err := sealed.OpenIdentity(identity[:100], "JAY.keys", keysOf("a")); !isDamage(err) {
		t.Errorf("cut: got %v, want a Damage", err)
	}
}

// Ensure that keys which cannot be used are refused, with the rule and the value.
func TestRing_BadKeys(t *testing.T) {
	secret := make([]byte, sealed.KeyBytes)
	rows := map[string]sealed.Key{
		"no ID":          {ID: "", Secret: secret},
		"a long ID":      {ID: string(make([]byte, 65)), Secret: secret},
		"a short secret": {ID: "a", Secret: secret[:16]},
		"a long secret":  {ID: "a", Secret: append(secret, 0)},
		"no secret":      {ID: "a"},
	}
	for name, key := range rows {
		if _, err := sealed.NewRing(database, func(string) (sealed.Key, error) { return key, nil }); !errors.Is(err, errs.ErrKey) {
			t.Errorf("%s: got %v, want ErrKey", name, err)
		}
	}
}

// Ensure that Renew takes the newest key, refuses another secret under a known ID, and keeps the key it had after an error.
func TestRing_Renew(t *testing.T) {
	newest, fail := "a", error(nil)
	r, err := sealed.NewRing(database, func(id string) (sealed.Key, error) {
		if fail != nil {
			return sealed.Key{}, fail
		}
		secret := bytes.Repeat([]byte(newest), sealed.KeyBytes)[:sealed.KeyBytes]
		if id == "" {
			id = newest[:1]
		}
		return sealed.Key{ID: id, Secret: secret}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	idOf := func() string { // as the file has it in the clear
		file := writePages(t, r, "f", nil, 1)
		return string(file[33 : 33+file[32]])
	}
	newest = "b"
	if id, err := r.Renew(); id != "b" || err != nil || idOf() != "b" {
		t.Errorf("renewed: got %q, %v and files of %q; want b", id, err, idOf())
	}
	newest = "bc" // another secret with the ID b
	if _, err := r.Renew(); !errors.Is(err, errs.ErrKey) {
		t.Errorf("another secret: got %v, want ErrKey", err)
	}
	fail = errors.New("no network")
	if _, err := r.Renew(); !errors.Is(err, fail) || idOf() != "b" {
		t.Errorf("after an error: got %v and files of %q; want b", err, idOf())
	}
}

// Ensure that a writer writes nothing after a failed write, and that pages are not written after their end.
func TestWriters_Broken(t *testing.T) {
	r := ring(t, "a")
	failed := errors.New("disk full")
	var w failing
	p, err := r.NewPages(&w, "f")
	if err != nil {
		t.Fatal(err)
	}
	f, err := r.NewFrames(&w, "f")
	if err != nil {
		t.Fatal(err)
	}
	w.err = failed
	if _, err := p.Write(make([]byte, 3*page)); !errors.Is(err, failed) {
		t.Errorf("pages: got %v", err)
	}
	if _, err := f.Write([]byte("x")); !errors.Is(err, failed) {
		t.Errorf("frames: got %v", err)
	}
	w.err, w.writes = nil, 0
	if _, err := p.Write([]byte("x")); !errors.Is(err, failed) {
		t.Errorf("pages, again: got %v", err)
	}
	if err := p.End(); !errors.Is(err, failed) {
		t.Errorf("the end of pages: got %v", err)
	}
	if _, err := f.Write([]byte("x")); !errors.Is(err, failed) || w.writes > 0 {
		t.Errorf("frames, again: got %v and %d writes", err, w.writes)
	}

	whole, err := r.NewPages(&w, "f")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(whole.End(), whole.End()); err != nil {
		t.Fatal(err)
	}
	if _, err := whole.Write([]byte("x")); err == nil {
		t.Error("a write after the end was accepted")
	}
}

type failing struct {
	err    error
	writes int
}

func (f *failing) Write(b []byte) (int, error) { f.writes++; return len(b), f.err }

// Ensure that no bytes, however long, are written or read in the clear, and that nothing is encrypted twice in the same way.
func TestSealed_NoPlaintext(t *testing.T) {
	r := ring(t, "a")
	marker := []byte("this is the marker that must not be found")
	b := bytes.Repeat(marker, 500)
	files := [][]byte{writePages(t, r, "f", b, 100), writePages(t, r, "f", b, 100), writeFrames(t, r, "f", b, marker, marker)}
	for i, file := range files {
		if bytes.Contains(file, marker[:12]) {
			t.Errorf("file %d has the marker", i)
		}
	}
	if bytes.Equal(files[0][sealed.HeaderBytes:][:16], files[1][sealed.HeaderBytes:][:16]) {
		t.Error("two files begin with the same encrypted bytes")
	}
}

// FuzzFrames ensures that whatever is in a file of frames, opening it ends, and returns what was written or zeros.
func FuzzFrames(f *testing.F) {
	r := ring(f, "a")
	file := writeFrames(f, r, "f", []byte("one"), []byte("two"), []byte("three"))
	f.Add(600, []byte("x"))
	f.Add(513, file[512:600])
	f.Fuzz(func(t *testing.T, at int, b []byte) {
		damaged := bytes.Clone(file)
		if at < sealed.HeaderBytes || at > len(damaged) {
			return
		}
		damaged = append(damaged[:at], b...)
		got, _ := readFrames(t, r, damaged, "f")
		want := "onetwothree"
		for i := range got {
			if got[i] != 0 && (i >= len(want) || got[i] != want[i]) {
				t.Fatalf("got %q", got)
			}
		}
	})
}
