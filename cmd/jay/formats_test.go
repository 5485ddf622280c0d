package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
)

// cornerBodies are bodies that are hard to keep, in one format or another.
var cornerBodies = []string{
	`{}`,
	`{"n":1.10,"big":9007199254740993,"zero":-0,"huge":1e400,"long":12345678901234567890.123456789}`,
	`{"s":"","null":null,"t":true,"f":false}`,
	`{"s":"null","t":"true","u":"1.10"}`,
	`{"s":"Größe 日本 🙂","quote":"say \"hi\", you","lines":"a\nb\r\nc","blanks":" x ","tab":"a\tb","nul":"\u0000"}`,
	`{"a":[],"o":{},"deep":{"a":{"b":{"c":[1.10,{"d":[[]]}]}}}}`,
	`{"a":[1.10,"x",null,[],{}],"o":{"p":1.50}}`,
	`{"a.b":1,"c:number":2,"d\\e":3,"@id":"4","":5}`,
	`{"mixed":1}`, `{"mixed":"1"}`, `{"mixed":{"x":1}}`,
	`{"$keep":1,"b":{"$binary":{"base64":"aGk=","subType":"00"}}}`,
}

// exchanged returns the body and the @metadata of the i-th document of the round trips.
func exchanged(i int) (body, metadata string) {
	body = fmt.Sprintf(`{"Name":"Customer %d","Number":%d,"Total":%d.%d0,"Active":%t,"Address":{"City":"Köln","Zip":"%05d"},"Tags":["a%d","b"],"Note":"a \"quoted\", text\nof two lines"}`, i, i, i, i%10, i%2 == 0, i%100_000, i%7)
	if i < 4*len(cornerBodies) {
		body = cornerBodies[i%len(cornerBodies)]
	}
	metadata = fmt.Sprintf(`{"@id":"Customers/%07d"`, i)
	switch i % 3 {
	case 0:
		metadata += `,"@collection":"Customers"`
	case 1:
		metadata += `,"@collection":"Others","Raven-Clr-Type":"Order, Shop","n":1.10`
	}
	return body, metadata + "}"
}

// exchangedStream yields n documents as NDJSON.
func exchangedStream(n int) io.Reader {
	r, w := io.Pipe()
	go func() {
		var buf bytes.Buffer
		for i := range n {
			body, metadata := exchanged(i)
			comma := ","
			if body == "{}" {
				comma = ""
			}
			fmt.Fprintf(&buf, "%s%s\"@metadata\":%s}\n", body[:len(body)-1], comma, metadata)
			if buf.Len() > 64<<10 || i == n-1 {
				if _, err := w.Write(buf.Bytes()); err != nil {
					return
				}
				buf.Reset()
			}
		}
		w.Close()
	}()
	return r
}

// jsonValue returns what a JSON text says: numbers with their digits, objects without an
// order.
func jsonValue(t *testing.T, text []byte) any {
	t.Helper()
	if len(text) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// sameDocuments compares all documents of two databases, and returns how many they are
// and the bytes of their bodies.
func sameDocuments(t *testing.T, a, b string) (n int, size int64) {
	t.Helper()
	open := func(dir string) (next func() (*jay.Document, error, bool), done func()) {
		db, err := jay.Open(dir, &jay.Options{MustExist: true})
		if err != nil {
			t.Fatal(err)
		}
		next, stop := iter.Pull2(db.Documents(t.Context(), jay.Scan{}))
		return next, func() {
			stop()
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	nextA, doneA := open(a)
	defer doneA()
	nextB, doneB := open(b)
	defer doneB()
	for {
		x, errX, moreX := nextA()
		y, errY, moreY := nextB()
		if errX != nil || errY != nil || moreX != moreY {
			t.Fatalf("after %d documents: %v, %v; more: %t, %t", n, errX, errY, moreX, moreY)
		}
		if !moreX {
			return n, size
		}
		n++
		size += int64(len(x.Body()))
		mx, my := x.Metadata(), y.Metadata()
		if mx.ID != my.ID || mx.Collection != my.Collection || !bytes.Equal(mx.Custom, my.Custom) && !reflect.DeepEqual(jsonValue(t, mx.Custom), jsonValue(t, my.Custom)) {
			t.Fatalf("got %q in %q with %s, want %q in %q with %s", my.ID, my.Collection, my.Custom, mx.ID, mx.Collection, mx.Custom)
		}
		if !reflect.DeepEqual(mx.Attachments, my.Attachments) {
			t.Fatalf("%s: got attachments %v, want %v", mx.ID, my.Attachments, mx.Attachments)
		}
		if !bytes.Equal(x.Body(), y.Body()) && !reflect.DeepEqual(jsonValue(t, x.Body()), jsonValue(t, y.Body())) {
			t.Fatalf("%s: got %s, want %s", mx.ID, y.Body(), x.Body())
		}
	}
}

// Ensure that documents come back from every format with their IDs, collections, metadata
// and digits. JAY_FORMATS is how many; above 10,000 speed and memory are printed.
func TestFormats_RoundTrip(t *testing.T) {
	n := 2000
	if text := os.Getenv("JAY_FORMATS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(t.TempDir())
	runs := func(args ...string) (time.Duration, int64) {
		t.Helper()
		if n <= 10_000 {
			if got := runJay(t.Context(), exchangedStream(n), args...); got.code != 0 {
				t.Fatalf("jay %v: %+v", args, got)
			}
			return 0, 0
		}
		command := exec.Command("jay", args...)
		command.Stdin = exchangedStream(n)
		var out bytes.Buffer
		command.Stdout, command.Stderr = &out, &out
		start := time.Now()
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		peak := make(chan int64)
		ended := make(chan struct{})
		go func() { peak <- peakMemory(command.Process.Pid, ended) }()
		err := command.Wait()
		took := time.Since(start)
		close(ended)
		if err != nil {
			t.Fatalf("jay %v: %v: %s", args, err, &out)
		}
		return took, <-peak
	}
	took, peak := runs("--db", "first", "import")
	report := func(what string, size int64, took time.Duration, peak int64) {
		if took > 0 {
			t.Logf("%-20s %6.1f s %6.1f MB/s of bodies, peak %4d MB", what, took.Seconds(), float64(size)/1e6/took.Seconds(), peak/1e6)
		}
	}
	for i, name := range []string{"a.ndjson", "a.json", "a.csv", "a.ejson", "a.ravendbdump", "a.sqlite", "a.ndjson.gz", "a.ndjson.zst"} {
		exported, exportPeak := runs("--db", "first", "export", name)
		imported, importPeak := runs("--db", "copy", "import", name)
		got, size := sameDocuments(t, "first", "copy")
		if got != n {
			t.Fatalf("%s: got %d documents, want %d", name, got, n)
		}
		if i == 0 {
			report("import from a pipe", size, took, peak)
		}
		report("export "+name, size, exported, exportPeak)
		report("import "+name, size, imported, importPeak)
		for _, file := range []string{"copy", name} {
			if err := os.RemoveAll(file); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// inFresh runs jay in a new directory, which must succeed.
func inFresh(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	got := runJay(t.Context(), strings.NewReader(stdin), args...)
	if got.code != 0 {
		t.Fatalf("jay %v: %+v", args, got)
	}
	return got
}

// Ensure that attachments, revisions and identities come back from a dump, and that a
// content is in it once.
func TestFormats_DumpWithEverything(t *testing.T) {
	sample.OneGoroutine(t)
	t.Chdir(t.TempDir())
	inFresh(t, "", "--db", "first", "import")
	inFresh(t, "", "--db", "first", "revisions", "configure", "--all")
	big := bytes.Repeat([]byte("]},\"\x00"), 100_000)
	if err := os.WriteFile("big", big, 0o666); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		inFresh(t, `{"n":1.10}`, "--db", "first", "put", "--id", "users/ann")
	}
	inFresh(t, `{}`, "--db", "first", "put", "--id", "users/bob")
	inFresh(t, `{}`, "--db", "first", "put", "--id", "bills|")
	inFresh(t, `{}`, "--db", "first", "put", "--id", "bills|")
	inFresh(t, `{}`, "--db", "first", "put", "--collection", "Cats")
	for _, id := range []string{"users/ann", "users/bob"} {
		inFresh(t, "", "--db", "first", "attach", "put", id, "../../etc/big", "big", "--type", "image/png")
	}
	inFresh(t, "", "--db", "first", "attach", "put", "users/ann", "empty", os.DevNull)
	inFresh(t, "", "--db", "first", "export", "a.ravendbdump.zst")
	if packed, err := os.ReadFile("a.ravendbdump.zst"); err != nil || len(packed) > len(big) {
		t.Errorf("the dump has %d bytes, %v", len(packed), err)
	}
	got := inFresh(t, "", "--db", "copy", "import", "a.ravendbdump.zst")
	_, want, _ := strings.Cut(inFresh(t, "", "--db", "first", "revisions", "list", "users/ann").stdout, "\n") // behind the document itself
	want = attachmentsOfRevision.ReplaceAllString(want, "")
	have := inFresh(t, "", "--db", "copy", "revisions", "list", "users/ann").stdout
	if !strings.Contains(got.stdout, "; 5 revisions") || strings.Count(want, "\n") != 4 || have != want {
		t.Errorf("got %q, %s, want %s", got.stdout, have, want)
	}
	if n, _ := sameDocuments(t, "first", "copy"); n != 6 { // with Raven/Hilo/cats
		t.Errorf("got %d documents", n)
	}
	entries, err := os.ReadDir(".")
	if err != nil || len(entries) != 4 {
		t.Errorf("got %v, %v: a name of an attachment must be no path", entries, err)
	}
}

// A revision that is imported has no attachments.
var attachmentsOfRevision = regexp.MustCompile(`"@attachments":\[[^\]]*\],`)

// Ensure that identities and HiLo numbers go on behind an import of a dump.
func TestFormats_DumpKeepsCounters(t *testing.T) {
	sample.OneGoroutine(t)
	t.Chdir(t.TempDir())
	for range 3 {
		inFresh(t, `{}`, "--db", "first", "put", "--id", "bills|")
		inFresh(t, `{}`, "--db", "first", "put", "--collection", "Cats")
	}
	inFresh(t, "", "--db", "first", "delete", "bills/3", "cats/3-A")
	inFresh(t, "", "--db", "first", "export", "a.ravendbdump")
	inFresh(t, "", "--db", "copy", "import", "a.ravendbdump")
	if got := inFresh(t, `{}`, "--db", "copy", "put", "--id", "bills|"); got.stdout != "bills/4\n" {
		t.Errorf("got %q", got.stdout)
	}
	got := inFresh(t, `{}`, "--db", "copy", "put", "--collection", "Cats")
	if number, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(got.stdout, "cats/"), "-A\n")); number <= 3 {
		t.Errorf("got %q, want a number above 3", got.stdout)
	}
}

// Ensure that an import that is stopped anywhere goes on with the same name, stores each
// document once, and stores nothing when it is called again.
func TestFormats_Resume(t *testing.T) {
	sample.OneGoroutine(t)
	const n = 3500
	for _, format := range []string{"ndjson", "csv", "extjson"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			var input strings.Builder
			switch format {
			case "csv":
				input.WriteString("n:number\n")
				for i := range n {
					fmt.Fprintf(&input, "%d\n", i)
				}
			default:
				for i := range n {
					fmt.Fprintf(&input, "{\"n\":%d}\n", i)
				}
			}
			dir := filepath.Join(t.TempDir(), "db")
			args := []string{"--db", dir, "import", "--format", format, "--collection", "Things", "--resume", "once"}
			for _, cut := range []int{input.Len() / 3, input.Len() / 2, input.Len() - 10} {
				stdin := io.MultiReader(strings.NewReader(input.String()[:cut]), iotest.ErrReader(io.ErrClosedPipe))
				if got := runJay(t.Context(), stdin, args...); got.code != 1 || !strings.Contains(got.stderr, "closed pipe") {
					t.Fatalf("cut at %d: %+v", cut, got)
				}
			}
			got := inFresh(t, input.String(), args...)
			if !strings.Contains(got.stderr, `the import "once" goes on after record `) {
				t.Errorf("got %+v", got)
			}
			checkEachOnce(t, dir, n)
			got = inFresh(t, input.String(), args...)
			if !strings.Contains(got.stderr, "is finished, with 3,500 documents") || !strings.HasPrefix(got.stdout, "imported 0 documents") {
				t.Errorf("got %+v", got)
			}
			checkEachOnce(t, dir, n)
		})
	}
}

// checkEachOnce checks that the documents of Things are n, with each number once.
func checkEachOnce(t *testing.T, dir string, n int) {
	t.Helper()
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	seen := make([]int, n)
	for doc, err := range db.Documents(t.Context(), jay.Scan{Collection: "Things"}) {
		if err != nil {
			t.Fatal(err)
		}
		var v struct{ N int }
		if err := doc.Decode(&v); err != nil {
			t.Fatal(err)
		}
		seen[v.N]++
	}
	for i, times := range seen {
		if times != 1 {
			t.Fatalf("document %d is there %d times", i, times)
		}
	}
}

// Ensure that a resumed import refuses another input, and a shorter one.
func TestFormats_ResumeOtherInput(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	lines := strings.Repeat("{}\n", 2500)
	args := []string{"--db", dir, "import", "--collection", "Things", "--resume", "x"}
	runJay(t.Context(), io.MultiReader(strings.NewReader(lines), iotest.ErrReader(io.ErrClosedPipe)), args...)
	for name, input := range map[string]string{"other": "{\"a\":1}\n" + lines, "shorter": "{}\n"} {
		if got := runJay(t.Context(), strings.NewReader(input), args...); got.code != 1 || !strings.Contains(got.stderr, "the input is not the one of the earlier run") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, name := range []string{"", "a/b", "a|", "a\nb", strings.Repeat("x", 201)} {
		if got := runJay(t.Context(), nil, "--db", dir, "import", "--resume", name); got.code != 2 {
			t.Errorf("%q: %+v", name, got)
		}
	}
}

// Ensure that an import that is killed keeps the records that it has rejected: the import that goes on does
// not read them again. A record of which a part was written does not run into the next one.
func TestFormats_RejectsAfterKill(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGKILL")
	}
	t.Chdir(t.TempDir())
	text := "{\"n\":0}\nbad 1\n" + strings.Repeat("{\"n\":1}\n", 50_000)
	args := []string{"--db", "db", "import", "--collection", "Things", "--resume", "once", "--rejects", "rejects"}
	killReading(t, text, args...)
	if got, err := os.ReadFile("rejects"); err != nil || string(got) != "bad 1\n" {
		t.Fatalf("%q, %v", got, err)
	}

	if err := os.WriteFile("rejects", []byte("bad 1\nbad"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runJay(t.Context(), strings.NewReader(text+"bad 2\n"), args...); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if got, err := os.ReadFile("rejects"); err != nil || string(got) != "bad 1\nbad\nbad 2\n" {
		t.Fatalf("%q, %v", got, err)
	}
}

// Ensure that an import that is killed goes on with every document stored once.
// JAY_IMPORT_KILLS is how often it is killed.
func TestFormats_ResumeAfterKill(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGKILL")
	}
	kills, n := 2, 100_000
	if text := os.Getenv("JAY_IMPORT_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		n = 400_000
	}
	t.Chdir(t.TempDir())
	var input strings.Builder
	for i := range n {
		fmt.Fprintf(&input, "{\"n\":%d}\n", i)
	}
	text := input.String()
	args := []string{"--db", "db", "import", "--collection", "Things", "--resume", "once"}
	for i := range kills {
		// The process waits for input that does not come, and is killed in the middle of
		// storing what came: each round sends more.
		killReading(t, text[:len(text)*(i+1)/(kills+1)], args...)
	}
	if got := runJay(t.Context(), strings.NewReader(text), args...); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	checkEachOnce(t, "db", n)
}

// killReading starts the command, gives it text, after which its input waits, and kills it.
func killReading(t *testing.T, text string, args ...string) {
	t.Helper()
	command := exec.Command("jay", args...)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(stdin, text); err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // it was killed
}
