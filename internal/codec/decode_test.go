package codec_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/metadata"
)

// scalars take the place of values in bodies.
var scalars = []string{
	`null`, `true`, `0`, `-0`, `1`, `-1`, `255`, `256`, `1e2`, `1.0`, `1.5`, `9223372036854775807`, `9223372036854775808`, `1e400`, `1e-400`, `3.5e38`, `1e-50`,
	`-129`, `128`, `16777217`, `1E+2`, `-0.0`,
	`0.1`, `123456789012345678901234567890`, `""`, `"a"`, `"12"`, `"null"`, `"true"`, `"\u0041\ud83d\udc3f"`, `"\ud800"`, `"YQ=="`, `"YQ"`, `"Y\nQ=="`, `"YQ==\n"`, `"_-8="`,
	`"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05.123456789+01:00"`, `"2026-01-02t03:04:05z"`, `"2026-1-2T3:4:5Z"`, `"2026-01-02T24:00:00Z"`, `"2026-01-02T03:04:05,5Z"`, `"0000-01-01T00:00:00Z"`,
	`[]`, `{}`, `[1]`, `["a",null]`, `{"a":1}`, `[[1],[2]]`, `{"F0":1,"f0":2}`, `{"1":"x","01":"y","-1":null}`, `{"F1":null,"f1":[]}`,
}

// vary changes the JSON of a value: other values, other names, members that
// are missing, that no field has, or that differ in case only.
func (r maker) vary(value any, depth int) any {
	if depth < 3 && r.chance(25) || r.chance(5) {
		return json.RawMessage(scalars[r.IntN(len(scalars))])
	}
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			switch {
			case r.chance(5):
				delete(value, name)
				continue
			case r.chance(8):
				value[strings.ToLower(name)] = r.vary(v, depth+1)
			case r.chance(5):
				value["ſ"+name] = v
				value[strings.ReplaceAll(name, "s", "ſ")] = v
			}
			value[name] = r.vary(v, depth+1)
		}
	case []any:
		for i := range value {
			value[i] = r.vary(value[i], depth+1)
		}
		if r.chance(15) {
			return append(value, r.vary(1.5, depth+1))
		}
	}
	return value
}

// Ensure that a struct is decoded as encoding/json does it: the same values or
// errors, for random types and bodies, in structs that are empty and in some
// that are not. What is left behind by an error counts for nothing.
func TestDecode_AsEncodingJSON(t *testing.T) {
	t.Parallel()
	r := newMaker(t, "JAY_DECODE_SEED")
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	quick, refused := 0, 0
	for range 3000 {
		r.odd = r.chance(50)
		typ := r.document()
		m, err := parts.Mapping(db, typ, "Things")
		if err != nil || m.Info.View == nil || m.Info.Quoted {
			continue
		}
		for range 8 {
			v := reflect.New(typ)
			r.fill(v.Elem())
			text, err := json.Marshal(v.Interface())
			if err != nil {
				continue
			}
			var tree any
			decoder := json.NewDecoder(bytes.NewReader(text))
			decoder.UseNumber()
			if err := decoder.Decode(&tree); err != nil {
				t.Fatal(err)
			}
			body, err := json.Marshal(r.vary(tree, 0))
			if err != nil {
				t.Fatal(err)
			}
			scanned, err := metadata.Scan(body, parts.Of(db).Env.Limits)
			if err != nil {
				continue // no document has such a body
			}

			got, want := reflect.New(typ), reflect.New(typ)
			if r.chance(50) {
				must := func(err error) {
					if err != nil {
						t.Fatal(err)
					}
				}
				must(json.Unmarshal(text, got.Interface()))
				must(json.Unmarshal(text, want.Interface()))
			}
			gotErr, wantErr := m.DecodeJSON(scanned.Body, got.Interface()), json.Unmarshal(scanned.Body, want.Interface())
			if !reflect.DeepEqual(gotErr, wantErr) || wantErr == nil && !reflect.DeepEqual(got.Interface(), want.Interface()) {
				t.Fatalf("%v\n%s\ngot  %+v, %v\nwant %+v, %v", typ, scanned.Body, got.Elem(), gotErr, want.Elem(), wantErr)
			}
			quick++
			if wantErr != nil {
				refused++
			}
		}
	}
	t.Logf("%d bodies, %d refused", quick, refused)
	if quick < 1000 || refused < quick/10 || refused > quick*9/10 {
		t.Error("too little was tried")
	}
}
