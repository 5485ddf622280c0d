package transfer_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/jaydb/jay/transfer"
)

// readCSV returns the documents of a CSV file.
func readCSV(t *testing.T, text string, o transfer.CSVOptions) (docs []string) {
	t.Helper()
	r := transfer.NewCSVReader(iotest.OneByteReader(strings.NewReader(text)), o)
	for {
		rec, err := r.Next()
		if err == io.EOF {
			return docs
		}
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(rec.Text))
	}
}

// Ensure that documents come back from CSV as they were: with every digit, and with what
// is missing, null and empty kept apart.
func TestCSV_RoundTrip(t *testing.T) {
	for _, comma := range []byte{0, ';', '\t'} {
		var columns transfer.CSVColumns
		var docs []transfer.Document
		for i, body := range corners {
			d := transfer.Document{ID: fmt.Sprintf("things/%d", i), Collection: "Things", Body: []byte(body)}
			switch i % 3 {
			case 1:
				d.Collection = "@empty"
			case 2:
				d.Custom = []byte(`{"x":"a,\"b\"","n":1.10}`)
			}
			if err := columns.Add(&d); err != nil {
				t.Fatal(body, err)
			}
			docs = append(docs, d)
		}
		var out bytes.Buffer
		w, err := transfer.NewCSVWriter(&out, &columns, comma)
		if err != nil {
			t.Fatal(err)
		}
		for i := range docs {
			if err := w.Write(&docs[i]); err != nil {
				t.Fatal(err)
			}
		}
		got := readCSV(t, out.String(), transfer.CSVOptions{Comma: comma})
		if len(got) != len(docs) {
			t.Fatalf("got %d documents, want %d", len(got), len(docs))
		}
		for i, d := range docs {
			metadata := fmt.Sprintf(`{"@id":%q,"@collection":%q`, d.ID, d.Collection)
			if d.Custom != nil {
				metadata += "," + string(d.Custom[1:len(d.Custom)-1])
			}
			if want := withMetadata(string(d.Body), metadata+"}"); !equal(t, []byte(got[i]), want) {
				t.Errorf("got %s, want %s", got[i], want)
			}
		}
	}
}

// Ensure that columns have types where all documents agree, and that the header says so.
func TestCSV_Columns(t *testing.T) {
	var columns transfer.CSVColumns
	for _, body := range []string{
		`{"Name":"Ann","Age":41,"Vip":true,"Address":{"City":"Bern","Zip":"3000"},"Tags":["a"]}`,
		`{"Name":"Bob","Age":null,"Address":{"City":"Köln"}}`,
	} {
		if err := columns.Add(&transfer.Document{Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	fields, err := columns.Fields()
	if got := fmt.Sprint(fields, err); got != "[{[Name] string} {[Age] number} {[Vip] boolean} {[Address City] string} {[Address Zip] string} {[Tags] json}] <nil>" {
		t.Errorf("got fields %s", got)
	}
	var out bytes.Buffer
	if _, err := transfer.NewCSVWriter(&out, &columns, 0); err != nil {
		t.Fatal(err)
	}
	if want := "@id,@collection,Name,Age:number,Vip:boolean,Address.City,Address.Zip,Tags:json\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// Ensure that an object with very many keys becomes one column.
func TestCSV_MapLikeObjects(t *testing.T) {
	var columns transfer.CSVColumns
	var docs []transfer.Document
	for i := range 1200 {
		d := transfer.Document{ID: fmt.Sprint(i), Collection: "@empty", Body: fmt.Appendf(nil, `{"m":{"k%d":{"v":%d}},"n":%d}`, i, i, i)}
		if err := columns.Add(&d); err != nil {
			t.Fatal(err)
		}
		docs = append(docs, d)
	}
	var out bytes.Buffer
	w, err := transfer.NewCSVWriter(&out, &columns, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range docs {
		if err := w.Write(&docs[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.HasPrefix(out.String(), "@id,@collection,m:json,n:number\n") {
		t.Errorf("got %.100q", out.String())
	}
	if got := readCSV(t, out.String(), transfer.CSVOptions{}); len(got) != 1200 || !equal(t, []byte(got[7]), []byte(`{"m":{"k7":{"v":7}},"n":7,"@metadata":{"@id":"7","@collection":"@empty"}}`)) {
		t.Errorf("got %d, %s", len(got), got[7])
	}
}

// Ensure that CSV of other programs is read as the guide says.
func TestCSV_Foreign(t *testing.T) {
	for _, c := range []struct {
		name, text string
		o          transfer.CSVOptions
		want       []string
	}{
		{"strings", "Name,Age\nAnn,41\n", transfer.CSVOptions{}, []string{`{"Name":"Ann","Age":"41"}`}},
		{"inferred", "Name,Age,Ok\nAnn,41,true\nBob,null,false\n", transfer.CSVOptions{Infer: true}, []string{`{"Name":"Ann","Age":41,"Ok":true}`, `{"Name":"Bob","Age":null,"Ok":false}`}},
		{"typed", "a:number,b:boolean,c:json,d:string\n1.10,true,[1],x\nnull,null,null,null\n,,,\n", transfer.CSVOptions{}, []string{`{"a":1.10,"b":true,"c":[1],"d":"x"}`, `{"a":null,"b":null,"c":null,"d":"null"}`, `{}`}},
		{"nested", "a.b,a.c,d\n1,2,3\n", transfer.CSVOptions{}, []string{`{"a":{"b":"1","c":"2"},"d":"3"}`}},
		{"an unknown type is a part of the name", "t:utc\nx\n", transfer.CSVOptions{}, []string{`{"t:utc":"x"}`}},
		{"carriage returns, a mark, blank lines, no end of line", "\xef\xbb\xbfa,b\r\n1,\"2\"\r\n\r\n\n3,4", transfer.CSVOptions{}, []string{`{"a":"1","b":"2"}`, `{"a":"3","b":"4"}`}},
		{"empty and absent", "a,b\n\"\",\n", transfer.CSVOptions{}, []string{`{"a":""}`}},
		{"line breaks in quotes stay", "a\n\"x\r\ny\"\n", transfer.CSVOptions{}, []string{`{"a":"x\r\ny"}`}},
		{"a column of ids", "no,a\n7,x\n", transfer.CSVOptions{IDColumn: "no", Placing: transfer.Placing{IDPrefix: "things/", Collection: "Things"}}, []string{`{"a":"x","@metadata":{"@id":"things/7","@collection":"Things"}}`}},
		{"no id in a row", "@id,a\n,x\n", transfer.CSVOptions{Placing: transfer.Placing{Collection: "Things"}}, []string{`{"a":"x"}`}},
		{"semicolons", "a;b\n1,5;2\n", transfer.CSVOptions{Comma: ';'}, []string{`{"a":"1,5","b":"2"}`}},
		{"only a header", "a,b\n", transfer.CSVOptions{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := readCSV(t, c.text, c.o)
			if len(got) != len(c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("got %s, want %s", got[i], c.want[i])
				}
			}
		})
	}
}

// Ensure that a wrong row is refused with its line and its cells, and that the next one
// follows.
func TestCSV_WrongRows(t *testing.T) {
	for _, c := range []struct{ name, row, rule, raw string }{
		{"too few cells", "1", "as many cells as the header", `["1"]`},
		{"too many cells", "1,2,3", "as many cells as the header", `["1","2","3"]`},
		{"no number", "12x,2", "a number must be one of JSON's", `["12x","2"]`},
		{"a number of another country", `"1,5",2`, "a number must be one of JSON's", `["1,5","2"]`},
		{"a plus", "+1,2", "a number must be one of JSON's", `["+1","2"]`},
		{"a quote inside", `1,a"b`, "must be quoted", `["1","a\"b"]`},
		{"text behind a quote", `1,"a"b,c`, "follows a quoted cell", `["1","ab,c"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := transfer.NewCSVReader(strings.NewReader("n:number,s\n1,\"a\nb\"\n"+c.row+"\n7,last\n"), transfer.CSVOptions{})
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
			_, err := r.Next()
			var bad *transfer.Error
			is := errors.As(err, &bad)
			if !is || !errors.Is(err, transfer.ErrInvalid) || !strings.Contains(err.Error(), c.rule) || bad.Line != 4 || bad.Record != 2 || string(bad.Raw) != c.raw {
				t.Errorf("got %+v, want rule %q, line 4, %s", bad, c.rule, c.raw)
			}
			if rec, err := r.Next(); err != nil || string(rec.Text) != `{"n":7,"s":"last"}` || rec.Line != 5 {
				t.Errorf("got %s in line %d, %v", rec.Text, rec.Line, err)
			}
		})
	}
}

// Ensure that hostile files end the reading with an error that says where, within the
// memory of a row.
func TestCSV_Hostile(t *testing.T) {
	field := strings.Repeat("x", 10<<20)
	for _, c := range []struct {
		name, rule string
		text       io.Reader
		o          transfer.CSVOptions
	}{
		{"empty", "begins with a header", strings.NewReader(""), transfer.CSVOptions{}},
		{"a quote that is never closed", "the quote that line 2 opens is never closed", strings.NewReader("a,b\n1,\"x\n2,3\n4,5\n"), transfer.CSVOptions{}},
		{"a quote without end", "line 2 opens a quote", io.MultiReader(strings.NewReader("a\n\""), endless('x')), transfer.CSVOptions{MaxBytes: 1 << 20}},
		{"a field of 10 MB", "at most 1048576 bytes", strings.NewReader("a,b\n1," + field + "\n"), transfer.CSVOptions{MaxBytes: 1 << 20}},
		{"100,000 columns", "at most 10000 columns", strings.NewReader(strings.Repeat("a,", 100_000) + "\n"), transfer.CSVOptions{}},
		{"100,000 cells", "at most 10000 columns", strings.NewReader("a\n" + strings.Repeat(",", 100_000) + "\n"), transfer.CSVOptions{}},
		{"a column twice", "no other column names", strings.NewReader("a,a\n"), transfer.CSVOptions{}},
		{"a field and a part of it", "no other column names", strings.NewReader("a,a.b\n"), transfer.CSVOptions{}},
		{"a part and its field", "no other column names", strings.NewReader("a.b,a\n"), transfer.CSVOptions{}},
		{"two ids", "named once", strings.NewReader("@id,@id\n"), transfer.CSVOptions{}},
		{"too deep", "at most 256 keys", strings.NewReader(strings.Repeat("a.", 300) + "a\n"), transfer.CSVOptions{}},
		{"no column of ids", "must be there", strings.NewReader("a\n"), transfer.CSVOptions{IDColumn: "b"}},
		{"an error of the input", "broken pipe", io.MultiReader(strings.NewReader("a\n1\n"), iotest.ErrReader(errors.New("broken pipe"))), transfer.CSVOptions{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := transfer.NewCSVReader(c.text, c.o)
			var err error
			for range 3 {
				if _, err = r.Next(); err != nil {
					break
				}
			}
			if err == nil || !strings.Contains(err.Error(), c.rule) {
				t.Fatalf("got %v, want %q", err, c.rule)
			}
			var bad *transfer.Error
			if errors.As(err, &bad) && bad.Raw != nil {
				t.Errorf("got a record, want none: %.60s", bad.Raw)
			}
			if _, again := r.Next(); again != err {
				t.Errorf("got %v after the end, want %v", again, err)
			}
		})
	}
	var columns transfer.CSVColumns
	body := []byte("{")
	for i := range 10_001 {
		body = fmt.Appendf(body, `"k%d":1,`, i)
	}
	body[len(body)-1] = '}'
	if err := columns.Add(&transfer.Document{Body: body}); err == nil || !strings.Contains(err.Error(), "at most 10000 columns") {
		t.Errorf("got %v", err)
	}
}

// endless repeats one byte for ever.
type endless byte

// Read implements io.Reader.
func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// Ensure that a byte order mark is skipped, and that a name which begins with some of its
// bytes keeps them.
func TestCSV_Mark(t *testing.T) {
	for _, name := range []string{"n", "\ufeffn", "\uff4e" /* EF BD 8E */, "\ufef0" /* EF BB B0 */} {
		text := name + "\n7\n"
		for _, src := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
			rec, err := transfer.NewCSVReader(src, transfer.CSVOptions{}).Next()
			want := `{"` + strings.TrimPrefix(name, "\ufeff") + `":"7"}`
			if err != nil || string(rec.Text) != want || rec.Offset != int64(len(name)+1) {
				t.Errorf("%q: got %q at byte %d, %v, want %q at byte %d", name, rec.Text, rec.Offset, err, want, len(name)+1)
			}
		}
	}
	if _, err := transfer.NewCSVReader(strings.NewReader("\xef\xbb"), transfer.CSVOptions{}).Next(); err != io.EOF {
		t.Errorf("a part of a mark: got %v, want io.EOF behind a header", err)
	}
}

// Ensure that no cell of a file for a spreadsheet is a formula, whichever separator the
// spreadsheet takes, and that JSON keeps its value.
func TestCSV_FormulasOfAnotherSeparator(t *testing.T) {
	texts := []string{
		"=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1+1", "\r=1+1", "\n=1+1", " =1+1", "x;=1+1", "x\t=1+1", "x\n=1+1", "x,=1+1", "x|=1+1", "＝1+1", "\u00a0=1+1", "\ufeff=1+1",
		"x;\"=1+1;y", "x;;=1+1", "x; =1+1", "\t\t=1+1", "x\r\n\t-1+1", `";=1+1`, `a""` + "\n@SUM(1)",
	}
	formula := func(cell string) bool {
		cell = strings.TrimLeft(cell, " \t\r\n\u00a0\ufeff\u200b")
		return cell != "" && strings.ContainsAny(cell[:1], "=+-@") || strings.HasPrefix(cell, "＝")
	}
	for _, comma := range []byte{',', ';', '\t'} {
		var columns transfer.CSVColumns
		var docs []transfer.Document
		for i, text := range texts {
			quoted := string(transfer.AppendString(nil, text))
			body := fmt.Sprintf(`{"n":-5,"t":%s,"a":["x",%s,{"k;=1+1":-1}]}`, quoted, quoted)
			d := transfer.Document{ID: fmt.Sprintf("%s/%d", text, i), Collection: text, Body: []byte(body), Custom: []byte(`{"c":` + quoted + `}`)}
			if i == 0 {
				d.Body = []byte(`{"n":-5,"=1+1":"=1+1","a;=1+1":"z","t":"","a":[-5]}`)
			}
			if err := columns.Add(&d); err != nil {
				t.Fatal(err)
			}
			docs = append(docs, d)
		}
		var out bytes.Buffer
		w, err := transfer.NewSpreadsheetWriter(&out, &columns, comma)
		if err != nil {
			t.Fatal(err)
		}
		for i := range docs {
			if err := w.Write(&docs[i]); err != nil {
				t.Fatal(err)
			}
		}
		for _, other := range []rune{',', ';', '\t', '|'} {
			r := csv.NewReader(strings.NewReader(out.String()))
			r.Comma, r.LazyQuotes, r.FieldsPerRecord = other, true, -1
			rows, err := r.ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			for i, row := range rows {
				for j, cell := range row {
					own := i == 0 && (j <= 2 || strings.HasPrefix(cell, "@id")) // @id, @collection, @metadata
					if formula(cell) && !own && !strings.HasPrefix(strings.TrimSpace(cell), "-5") && !strings.HasPrefix(cell, "-1}]") {
						t.Errorf("written with %q, read with %q: %q is a formula in row %d", comma, other, cell, i)
					}
				}
			}
		}
		for i, text := range readCSV(t, out.String(), transfer.CSVOptions{Comma: comma}) {
			if i == 0 {
				continue
			}
			var got, want struct{ A any }
			if err := errors.Join(json.Unmarshal([]byte(text), &got), json.Unmarshal(docs[i].Body, &want)); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("the JSON %s came back in %s: %v", docs[i].Body, text, err)
			}
		}
	}
}

// Ensure that a column whose type is inferred has one type in all documents: a column of
// postcodes of which some begin with a zero is text.
func TestCSV_InferCellByCell(t *testing.T) {
	const text = "plz,n,b,q,z,m,e\n00123,1,true,\"1\",null,1,\n12345,null,,2,null,true,\n,2.50,false,3,,x,\n"
	want := []string{
		`{"plz":"00123","n":1,"b":true,"q":"1","z":null,"m":"1"}`,
		`{"plz":"12345","n":null,"q":"2","z":null,"m":"true"}`,
		`{"n":2.50,"b":false,"q":"3","m":"x"}`,
	}
	kinds, err := transfer.ScanCSV(strings.NewReader(text), transfer.CSVOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []transfer.CSVOptions{{Infer: true}, {Infer: true, Kinds: kinds}} {
		if got := readCSV(t, text, o); !reflect.DeepEqual(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Ensure that a cell behind the part that decided the types, and of another type, makes its
// row an error that names the column, and that a scan of the whole file knows better.
func TestCSV_InferChangesLater(t *testing.T) {
	head := "id,plz,flag,none,pad\n"
	row := "1,12345,true,," + strings.Repeat("x", 1000) + "\n"
	text := head + strings.Repeat(row, (1<<20)/len(row)+2) + "2,00123,true,,\n3,null,yes,,\n4,null,false,x,\n5,1,false,6,\n"
	r := transfer.NewCSVReader(strings.NewReader(text), transfer.CSVOptions{Infer: true})
	var bad []string
	last := ""
	for {
		rec, err := r.Next()
		if err == io.EOF {
			break
		}
		var e *transfer.Error
		if errors.As(err, &e) && e.Raw != nil {
			bad = append(bad, e.Rule+": "+e.Detail)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		last = string(rec.Text)
	}
	want := []string{
		`a column has one type: "00123" in column 2 is a text, and the cells before it are numbers: name a type in the header, such as plz:string`,
		`a column has one type: "yes" in column 3 is a text, and the cells before it are booleans: name a type in the header, such as flag:string`,
	}
	if len(bad) < 2 || !reflect.DeepEqual(bad[:2], want) || last != `{"id":5,"plz":1,"flag":false,"none":"6"}` {
		t.Errorf("got %q, and at last %s", bad, last)
	}
	kinds, err := transfer.ScanCSV(strings.NewReader(text), transfer.CSVOptions{})
	if err != nil {
		t.Fatal(err)
	}
	docs := readCSVWhole(t, text, transfer.CSVOptions{Infer: true, Kinds: kinds})
	if got := docs[len(docs)-1]; got != `{"id":5,"plz":"1","flag":"false","none":"6"}` {
		t.Errorf("of a whole file: got %s", got)
	}
}

// Ensure that a stream which is cut off in the part that decides the types is not read as a whole one:
// io.ErrUnexpectedEOF, with which HTTP ends such a body, was taken for the end, and the rest of the last row
// for all of it.
func TestCSV_InferOfStreamCutOff(t *testing.T) {
	cut := func(text string) io.Reader {
		return io.MultiReader(strings.NewReader(text), iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	for _, infer := range []bool{false, true} {
		r := transfer.NewCSVReader(cut("id,n\n1,10\n2,2"), transfer.CSVOptions{Infer: infer})
		rec, err := r.Next()
		if err != nil || !strings.Contains(string(rec.Text), "10") {
			t.Errorf("infer %v: the whole row is %s, %v", infer, rec.Text, err)
		}
		if rec, err := r.Next(); err != io.ErrUnexpectedEOF {
			t.Errorf("infer %v: the row that is cut off is %s, %v", infer, rec.Text, err)
		}
	}
	if _, err := transfer.ScanCSV(cut("id,n\n1,1"), transfer.CSVOptions{}); err != io.ErrUnexpectedEOF {
		t.Errorf("a scan: %v", err)
	}
}

// readCSVWhole is readCSV for a long text.
func readCSVWhole(t *testing.T, text string, o transfer.CSVOptions) (docs []string) {
	t.Helper()
	r := transfer.NewCSVReader(strings.NewReader(text), o)
	for {
		rec, err := r.Next()
		if err == io.EOF {
			return docs
		}
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(rec.Text))
	}
}
