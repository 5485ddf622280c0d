package transfer_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/jaydb/jay/transfer"
)

// readDump lists the items of a dump.
func readDump(r io.Reader, o transfer.DumpOptions) (items []string, err error) {
	d := transfer.NewDumpReader(r, o)
	for {
		item, err := d.Next()
		if err == io.EOF {
			return items, nil
		}
		if err != nil {
			return items, err
		}
		text := item.Section + " " + string(item.Text)
		if item.Attachment != nil {
			content, err := io.ReadAll(item.Attachment)
			if err != nil {
				return items, err
			}
			text += " " + string(content)
		}
		items = append(items, text)
	}
}

// northwind has the shape of a dump of RavenDB 5.4, with contents that look like JSON.
const northwind = `{"BuildVersion":54123,"DatabaseRecord":{"DatabaseName":"N","Settings":[]},"Docs":[` +
	`{"@metadata":{"@export-type":"Attachment"},"Hash":"h1=","Size":7,"Tag":"t"}]},"x\"` + // the content is ]},"x\"
	`,{"Name":"Ann","@metadata":{"@collection":"Users","@id":"users/1-A","@attachments":[{"Name":"../../x","Hash":"h1=","ContentType":"","Size":7}]}},` +
	` {"@metadata":{"@export-type":"Attachment"},"Hash":"h2=","Size":0,"Tag":"t"},{"a":[1.10,{"b":"}"}],"@metadata":{"@id":"x"}}],` +
	`"RevisionDocuments":[],"Identities":[{"Key":"users|","Value":"3"}],` +
	`"TimeSeries":[{"@raven-data":{"DocId":"x"},"@raven-blob-size":3}{"[,{"@raven-data":{},"@raven-blob-size":0}],` +
	`"Subscriptions":[],"New thing":{"x":[1]},"Number":7}`

// Ensure that a dump is read section by section, with contents byte for byte.
func TestDump_Read(t *testing.T) {
	want := []string{
		`BuildVersion 54123`,
		`DatabaseRecord {"DatabaseName":"N","Settings":[]}`,
		`Docs {"@metadata":{"@export-type":"Attachment"},"Hash":"h1=","Size":7,"Tag":"t"} ]},"x\"`,
		`Docs {"Name":"Ann","@metadata":{"@collection":"Users","@id":"users/1-A","@attachments":[{"Name":"../../x","Hash":"h1=","ContentType":"","Size":7}]}}`,
		`Docs {"@metadata":{"@export-type":"Attachment"},"Hash":"h2=","Size":0,"Tag":"t"} `,
		`Docs {"a":[1.10,{"b":"}"}],"@metadata":{"@id":"x"}}`,
		`Identities {"Key":"users|","Value":"3"}`,
		`TimeSeries {"@raven-data":{"DocId":"x"},"@raven-blob-size":3} {"[`,
		`TimeSeries {"@raven-data":{},"@raven-blob-size":0} `,
		`New thing {"x":[1]}`,
		`Number 7`,
	}
	for name, r := range map[string]io.Reader{
		"at once":       strings.NewReader(northwind),
		"byte for byte": iotest.OneByteReader(strings.NewReader("\xef\xbb\xbf\n " + northwind + "\n")),
	} {
		got, err := readDump(r, transfer.DumpOptions{})
		if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: got %v\n%s", name, err, strings.Join(got, "\n"))
		}
	}
	// Contents that are not read are skipped.
	d := transfer.NewDumpReader(strings.NewReader(northwind), transfer.DumpOptions{})
	for i := range want {
		if _, err := d.Next(); err != nil {
			t.Fatal(i, err)
		}
	}
	if _, err := d.Next(); err != io.EOF {
		t.Errorf("got %v, want the end", err)
	}
}

// Ensure that documents and revisions that have the marks of a content are read as what they
// are: those with an @id, and those with the size of a blob outside of the time series.
func TestDump_Lookalikes(t *testing.T) {
	doc := `{"n":1,"@raven-blob-size":20,"Hash":"h","Size":20,"@metadata":{"@export-type":"Attachment","@id":"x"}}`
	blob := `{"@raven-blob-size":20}`
	got, err := readDump(strings.NewReader(`{"BuildVersion":1,"Docs":[`+doc+","+blob+`],"RevisionDocuments":[`+doc+`],"CompareExchange":[`+blob+`]}`), transfer.DumpOptions{})
	want := []string{"BuildVersion 1", "Docs " + doc, "Docs " + blob, "RevisionDocuments " + doc, "CompareExchange " + blob}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// Ensure that a dump that is cut off anywhere is an error, and that what came before was
// read.
func TestDump_CutAnywhere(t *testing.T) {
	for i := range len(northwind) {
		items, err := readDump(strings.NewReader(northwind[:i]), transfer.DumpOptions{})
		if err == nil {
			t.Fatalf("cut at %d: got %d items and no error", i, len(items))
		}
		if !errors.Is(err, transfer.ErrInvalid) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d: got %v", i, err)
		}
	}
}

// Ensure that what is no dump is refused, and where.
func TestDump_Refused(t *testing.T) {
	doc := func(text string) string { return `{"BuildVersion":1,"Docs":[` + text + `]}` }
	for text, rule := range map[string]string{
		``:                 "it ends before",
		`[]`:               "begins with a brace",
		"\xef\xbbx":        "begins with a brace",
		`{"Docs":1} {}`:    "more follows",
		`{"Docs":1 "b":2}`: "a comma or a closing bracket",
		`{1:2}`:            "a section has a name",
		`{"Docs" 1}`:       "a colon follows",
		`{"Docs":}`:        "a value is expected",
		`{"n":1}`:          "begins with a section", `{"Docs":[1,]}`: "a value is expected",
		doc(`{"a":[1}]`):                                                                          "brackets must match",
		doc(`{"a":1}{"b":2}`):                                                                     "a comma or a closing bracket",
		doc(strings.Repeat("[", 1000)):                                                            "at most 256 levels",
		doc(`"` + strings.Repeat("x", 2000) + `"`):                                                "at most 1000 bytes",
		`{"` + strings.Repeat("x", 2000):                                                          "at most 1000 bytes",
		doc(`{"@metadata":{"@export-type":"Attachment"},"Hash":"h"}`):                             "a Hash and a Size",
		doc(`{"@metadata":{"@export-type":"Attachment"},"Hash":"h","Size":-1}`):                   "the size of an attachment",
		doc(`{"@metadata":{"@export-type":"Attachment"},"Hash":"h","Size":"1"}`):                  "the size of an attachment",
		doc(`{"@metadata":{"@export-type":"Attachment"},"Hash":"h","Size":99999999999999999999}`): "the size of an attachment",
		doc(`{"@metadata":{"@export-type":"Attachment"},"Hash":"h","Size":100}`):                  "unexpected EOF",
	} {
		d := transfer.NewDumpReader(strings.NewReader(text), transfer.DumpOptions{MaxBytes: 1000})
		var err error
		for err == nil {
			var item transfer.DumpItem
			if item, err = d.Next(); err == nil && item.Attachment != nil {
				_, err = io.Copy(io.Discard, item.Attachment)
			}
		}
		if !strings.Contains(err.Error(), rule) {
			t.Errorf("%.80s: got %v, want %q", text, err, rule)
		}
	}
}

// Ensure that a dump that was written is read the same, with large contents.
func TestDump_RoundTrip(t *testing.T) {
	content := bytes.Repeat([]byte("]}\",\x00"), 200_000)
	var out bytes.Buffer
	w, err := transfer.NewDumpWriter(&out, `a "database"`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`BuildVersion 54000`, `DatabaseRecord {"DatabaseName":"a \"database\"","Encrypted":false,"UnusedDatabaseIds":[]}`}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(w.Section(transfer.DumpDocuments))
	check(w.Attachment("hash", "tag", int64(len(content)), bytes.NewReader(content)))
	want = append(want, fmt.Sprintf(`Docs {"@metadata":{"@export-type":"Attachment"},"Hash":"hash","Size":%d,"Tag":"tag"} %s`, len(content), content))
	for _, body := range corners {
		check(w.Item([]byte(body)))
		want = append(want, "Docs "+body)
	}
	check(w.Section(transfer.DumpIdentities))
	check(w.Identity("users|", 7))
	want = append(want, `Identities {"Key":"users|","Value":"7"}`)
	check(w.Close())
	got, err := readDump(&out, transfer.DumpOptions{})
	if err != nil || len(got) != len(want) {
		t.Fatalf("got %d items, %v, want %d", len(got), err, len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("got %.100s, want %.100s", got[i], want[i])
		}
	}
	if err := w.Attachment("hash", "", 10, strings.NewReader("short")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v for a content that is too short", err)
	}
}

// Ensure that what is compressed is read as what is not, and that a stream that is cut off or
// asks for too much memory is an error.
func TestPacked(t *testing.T) {
	text := strings.Repeat(`{"n":1.10}`+"\n", 10_000)
	for name, compression := range map[string]string{"a.ndjson": "", "a.csv.GZ": "gzip", "a.ravendbdump.zst": "zstd"} {
		got, _ := transfer.Compressed(name)
		if got != compression {
			t.Errorf("%s: got %q, want %q", name, got, compression)
		}
		var out bytes.Buffer
		w, err := transfer.NewPacked(&out, got)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		packed := out.Bytes()
		back, err := io.ReadAll(transfer.NewUnpacked(bytes.NewReader(packed)))
		if err != nil || string(back) != text {
			t.Errorf("%s: got %d bytes, %v", name, len(back), err)
		}
		if compression == "" {
			continue
		}
		for _, cut := range []int{5, len(packed) / 2, len(packed) - 1} {
			if _, err := io.ReadAll(transfer.NewUnpacked(bytes.NewReader(packed[:cut]))); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), compression+": ") {
				t.Errorf("%s cut at %d: got %v", name, cut, err)
			}
		}
	}
	// A frame of zstd with a window of 2 GiB: exponent 21, mantissa 0.
	huge := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0x01, 0x00, 0x00}
	if _, err := io.ReadAll(transfer.NewUnpacked(bytes.NewReader(huge))); err == nil || !strings.Contains(err.Error(), "window") {
		t.Errorf("a window of 2 GiB: got %v", err)
	}
}
