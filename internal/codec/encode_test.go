package codec_test

// These tests hold the two ways from a value to its body against each other.
// The public API shows only the result of the one that was taken.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
)

// Types with code of their own, as users have them. What they write looks
// harmless, is refused, or is changed when it is stored.
type (
	repeating  struct{ N int }
	spacing    struct{ N int }
	describing struct{ N int }
	textual    int
	pointed    struct{ N int }
	emptyish   struct{ N int }
	textKey    struct{ N int }
	recursive  struct {
		Name string
		Next *recursive `json:",omitempty"`
	}
	Base struct {
		ID, Name string
		Deep     [][]int
	}
	Other struct{ Name, Extra string }
)

func (repeating) MarshalJSON() ([]byte, error)  { return []byte(`{"a":1,"a":2}`), nil }
func (spacing) MarshalJSON() ([]byte, error)    { return []byte(` { "a" : 1 } `), nil }
func (describing) MarshalJSON() ([]byte, error) { return []byte(`{"@metadata":{"x":1}}`), nil }
func (textual) MarshalText() ([]byte, error)    { return []byte("text\xff"), nil }
func (*pointed) MarshalJSON() ([]byte, error)   { return []byte(`[[[[1]]]]`), nil }
func (emptyish) IsZero() bool                   { return true }
func (textKey) MarshalText() ([]byte, error)    { return []byte("same"), nil }

// leaves are types of members: plain ones first.
var leaves = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[uint8](), reflect.TypeFor[float64](),
	reflect.TypeFor[float32](), reflect.TypeFor[bool](), reflect.TypeFor[time.Time](), reflect.TypeFor[*time.Time](),
	reflect.TypeFor[[]byte](), reflect.TypeFor[jay.ID[Base]](), reflect.TypeFor[map[string]int](), reflect.TypeFor[map[int8]string](),
	reflect.TypeFor[Other](), reflect.TypeFor[time.Duration](),

	reflect.TypeFor[any](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[json.Number](), reflect.TypeFor[repeating](),
	reflect.TypeFor[spacing](), reflect.TypeFor[describing](), reflect.TypeFor[textual](), reflect.TypeFor[pointed](),
	reflect.TypeFor[emptyish](), reflect.TypeFor[recursive](), reflect.TypeFor[map[time.Time]struct{}](), reflect.TypeFor[map[textKey]struct{}](),
	reflect.TypeFor[chan int](), reflect.TypeFor[map[bool]int](), reflect.TypeFor[[]*recursive](), reflect.TypeFor[map[*time.Time]struct{}](),
}

const plainLeaves = 14

// oddTags are tags that change the names of members, or what becomes of them.
var oddTags = []string{
	`json:"-"`, `json:"-,"`, `json:"ID"`, `json:"Version"`, `json:"@metadata"`, `json:"@id"`, `json:"a b"`, `json:"a\"b"`, `json:"<&>"`,
	`json:"a.b"`, `json:"é"`, `json:",omitempty"`, `json:",omitzero"`, `json:",string"`, `json:"F0"`, `json:"F1,omitempty"`,
	`json:",inline"`, `json:",unknown"`,
}

// maker makes types and values from a seed.
type maker struct {
	*rand.Rand
	odd bool // types that are not plain, too
}

// newMaker makes a maker with a new seed, or that of the environment variable,
// under whose name it logs the seed.
func newMaker(t *testing.T, variable string) maker {
	seed := rand.Uint64()
	if s := os.Getenv(variable); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("%s=%d", variable, seed)
	return maker{Rand: rand.New(rand.NewPCG(seed, 0))}
}

func (r maker) chance(percent int) bool { return r.IntN(100) < percent }

func (r maker) anyType(depth int) reflect.Type {
	if depth == 0 || r.chance(60) {
		if r.odd && r.chance(10) {
			return leaves[r.IntN(len(leaves))]
		}
		return leaves[r.IntN(plainLeaves)]
	}
	switch r.IntN(5) {
	case 0:
		return reflect.SliceOf(r.anyType(depth - 1))
	case 1:
		return reflect.PointerTo(r.anyType(depth - 1))
	case 2:
		return reflect.ArrayOf(r.IntN(3), r.anyType(depth-1))
	case 3:
		return reflect.MapOf(reflect.TypeFor[string](), r.anyType(depth-1))
	default:
		return r.structType(depth-1, nil)
	}
}

func (r maker) structType(depth int, fields []reflect.StructField) reflect.Type {
	for i := range r.IntN(5) {
		f := reflect.StructField{Name: "F" + strconv.Itoa(i), Type: r.anyType(depth)}
		if r.odd && r.chance(20) {
			f.Tag = reflect.StructTag(oddTags[r.IntN(len(oddTags))])
		}
		if r.chance(10) {
			f.Name, f.PkgPath = "f"+strconv.Itoa(i), "example.com/x"
		}
		fields = append(fields, f)
	}
	r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	return reflect.StructOf(fields)
}

// document makes a type with an ID, mostly as a field of its own.
func (r maker) document() reflect.Type {
	text := reflect.TypeFor[string]()
	id := reflect.StructField{Name: "ID", Type: text, Tag: `jay:"id"`}
	switch {
	case r.odd && r.chance(20):
		id = reflect.StructField{Name: "Base", Type: reflect.TypeFor[Base](), Anonymous: true}
	case r.chance(20):
		id.Tag = `jay:"id" json:"-"`
	case r.chance(20):
		id.Tag = `jay:"id" json:"key,omitempty"`
	case r.odd && r.chance(30):
		id.Tag = reflect.StructTag(`jay:"id" ` + oddTags[r.IntN(len(oddTags))])
	}
	fields := []reflect.StructField{id}
	if r.chance(30) {
		fields = append(fields, reflect.StructField{Name: "Version", Type: text, Tag: `jay:"version"`})
	}
	if r.odd && r.chance(15) {
		fields = append(fields, reflect.StructField{Name: "Other", Type: reflect.TypeFor[Other](), Anonymous: true})
	}
	if r.odd && id.Name == "ID" && r.chance(15) { // whose ID shows once the struct's own does not
		fields = append(fields, reflect.StructField{Name: "Base", Type: reflect.TypeFor[Base](), Anonymous: true})
	}
	return r.structType(3, fields)
}

var texts = []string{
	"", "a", "users/1-A", "<a href=\"x\">&amp;</a>", "\xff", "\xfe", "\ufffd", "a\xffb", "a\ufffdb", "\u2028\u2029", "\x00\x1f\\\"",
	`\ufffd`, "@metadata", "@id", "\xed\xa0\x80", "🐿", strings.Repeat("long ", 20), "12", "null",
}

// fill gives v a random value.
func (r maker) fill(v reflect.Value) {
	if !v.CanSet() {
		return
	}
	if v.Type() == codec.TimeType {
		years := []int{0, 1, 1969, 2026, 9999, 10_000}
		v.Set(reflect.ValueOf(time.Date(years[r.IntN(len(years))], 1, 2, 3, 4, 5, r.IntN(3), time.FixedZone("", r.IntN(2)*3600))))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts[r.IntN(len(texts))])
		if v.Type() == reflect.TypeFor[json.Number]() {
			v.SetString([]string{"1", "1e999", "", "01"}[r.IntN(4)])
		}
	case reflect.Int, reflect.Int8, reflect.Int64:
		v.SetInt(r.Int64() >> r.IntN(64) >> (64 - v.Type().Bits()))
	case reflect.Uint8:
		v.SetUint(r.Uint64() & 255)
	case reflect.Float64, reflect.Float32:
		floats := []float64{0, -0.5, 1e21, 1e-7, 1.1, 5e-30, math.MaxFloat32}
		v.SetFloat(floats[r.IntN(len(floats))])
		if r.chance(1) {
			v.SetFloat(math.NaN())
		}
	case reflect.Bool:
		v.SetBool(r.chance(50))
	case reflect.Pointer:
		if r.chance(70) {
			v.Set(reflect.New(v.Type().Elem()))
			r.fill(v.Elem())
		}
	case reflect.Slice:
		if r.chance(80) {
			v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		}
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			raw := []string{`null`, `{"a":1,"a":2}`, ` [ 1 , 2 ] `, `[[[[[[1]]]]]]`, `x`}
			v.SetBytes([]byte(raw[r.IntN(len(raw))]))
			return
		}
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			r.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(4) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			r.fill(key)
			r.fill(value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			r.fill(v.Field(i))
		}
	case reflect.Interface:
		values := []any{nil, 1, "\xff", map[string]any{"\xff": 1, "\xfe": 2}, repeating{}, [][]int{{1}}, json.RawMessage(` [ ] `)}
		v.Set(reflect.ValueOf(&values[r.IntN(len(values))]).Elem())
	}
}

// outcome is what becomes of a value on its way to the storage.
type outcome struct {
	body, tail string
	header     metadata.Header
	err        string
}

func outcomeOf(db *jay.DB, m *codec.Mapping, v any) (_ outcome, trusted bool) {
	e := codec.NewEncoder(1)
	defer e.Release()
	body, err := e.Encode(m, v, parts.Of(db).Env.Limits)
	o := &write.Op{Request: write.Request{Verb: write.Put, RequestID: "things/1"}}
	o.Collection = m.Collection
	if err == nil {
		o.SetBody(m, body)
		err = parts.Of(db).Writer.Prepare(o, 1, &write.CollectionNaming{})
	}
	if err != nil {
		return outcome{err: err.Error()}, body.Stored
	}
	return outcome{string(o.JSON), string(o.Tail), o.Header, ""}, body.Stored
}

// encodedOf is what an encoder makes of a value: apart from the spelling of times, and
// of U+FFFD in place of what is not UTF-8.
func encodedOf(db *jay.DB, m *codec.Mapping, v any) string {
	e := codec.NewEncoder(1)
	defer e.Release()
	body, err := e.Encode(m, v, parts.Of(db).Env.Limits)
	if err != nil {
		return "an error"
	}
	return strings.NewReplacer(`\\ufffd`, "\ufffd", `\ufffd`, "\ufffd").Replace(someTime.ReplaceAllString(string(body.Body), "time"))
}

var someTime = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*"`)

// Ensure that a body that is trusted is what the pass over it would have made
// of it: the same bytes, header and errors, for random types and values.
func TestEncode_TrustedIsScanned(t *testing.T) {
	t.Parallel()
	r := newMaker(t, "JAY_ENCODE_SEED")
	var dbs []*jay.DB
	for _, o := range []jay.Options{{}, {MaxDepth: 3}, {MaxDocumentBytes: 200}, {MaxDepth: 5, MaxDocumentBytes: 60}} {
		db, err := jay.OpenMemory(&o)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		dbs = append(dbs, db)
	}

	types, values, trusted, refused := 0, 0, 0, 0
	for range 1500 {
		r.odd = r.chance(50)
		typ := r.document()
		m, err := parts.Mapping(dbs[0], typ, "Things")
		if err != nil {
			continue // two fields want to be the ID
		}
		types++
		scanning := *m
		scanning.Info = codec.TypeInfo{Times: m.Info.Times} // which encoder is used is not the question here
		standard := *m
		standard.Info = codec.TypeInfo{}
		for range 8 {
			v := reflect.New(typ)
			r.fill(v.Elem())
			if got, want := encodedOf(dbs[0], &scanning, v.Interface()), encodedOf(dbs[0], &standard, v.Interface()); got != want {
				t.Fatalf("%v\n%#v\nas Jay:           %s\nas encoding/json: %s", typ, v.Elem(), got, want)
			}
			for _, db := range dbs {
				got, stored := outcomeOf(db, m, v.Interface())
				want, _ := outcomeOf(db, &scanning, v.Interface())
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("%v\n%#v\ntrusted: %+v\nscanned: %+v", typ, v.Elem(), got, want)
				}
				values++
				if stored {
					trusted++
				}
				if want.err != "" {
					refused++
				}
			}
		}
	}
	t.Logf("%d types, %d values, %d trusted, %d refused", types, values, trusted, refused)
	if trusted < values/5 || refused < values/100 {
		t.Error("too little was tried")
	}
}

// What a shape says of types that one might take for others.
type (
	plainThing struct {
		ID      string
		Version string `jay:"version"`
		Name    string
		Lines   []struct{ Price float64 }
		At      *time.Time
		_       func()
	}
	mapThing struct {
		ID, Name string
		Labels   map[string]string
	}
	metaThing struct {
		ID string
		M  int `json:"@metadata"`
	}
	twiceThing struct {
		ID  string
		Key string `json:"ID"`
	}
	embedThing   struct{ Base }
	unsavedThing struct {
		Base
		Key string `jay:"id" json:"-"`
	}
	anyThing struct {
		ID string
		V  any
	}
	marshalThing struct {
		ID string
		V  []textual
	}
	pointerThing struct {
		ID string
		V  map[string]pointed
	}
	zeroThing struct {
		ID string
		V  emptyish `json:",omitzero"`
	}
	recursiveTop struct {
		ID   string
		Next []recursiveTop
	}
	timeKeyThing struct {
		ID string
		V  map[time.Time]int
	}
	pointerKeyThing struct {
		ID string
		V  map[*time.Time]int
	}
	inlineThing struct {
		ID string
		V  map[string]int `json:",inline"`
	}
	numberThing struct {
		ID string
		V  json.Number
	}
	rawThing struct {
		ID string
		V  json.RawMessage
	}
	shadowThing struct {
		ID string
		Base
	}
	ownThing      struct{ ID string }
	promotedThing struct {
		ID string
		time.Time
	}
	decodingThing struct {
		ID string
		V  decoding
	}
	decoding struct{ N int }
)

func (ownThing) MarshalJSON() ([]byte, error)  { return []byte(`{}`), nil }
func (*decoding) UnmarshalJSON(b []byte) error { return nil }

// Ensure that a type is trusted and encoded by two goroutines exactly if
// nothing that a user has written runs.
func TestShape(t *testing.T) {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, row := range []struct {
		v              any
		quiet, trusted bool
		depth          int
	}{
		{plainThing{}, true, true, 3},
		{mapThing{}, true, true, 2},
		{metaThing{}, true, false, 0},
		{twiceThing{}, true, false, 0},
		{embedThing{}, true, false, 0},
		{shadowThing{}, true, false, 0},
		{unsavedThing{}, true, true, 4}, // an upper bound: the embedded struct is no level of its own
		{anyThing{}, false, false, 0},
		{marshalThing{}, false, false, 0},
		{pointerThing{}, false, false, 0},
		{zeroThing{}, false, false, 0},
		{recursiveTop{}, true, false, 0},
		{timeKeyThing{}, true, false, 0},
		{pointerKeyThing{}, true, false, 0},
		{inlineThing{}, true, false, 0},
		{numberThing{}, true, false, 0},
		{rawThing{}, false, false, 0},
		{ownThing{}, false, false, 0},
		{promotedThing{}, false, false, 0},
		{decodingThing{}, false, false, 0},
	} {
		m, err := parts.Mapping(db, reflect.TypeOf(row.v), "")
		if err != nil {
			t.Fatalf("%T: %v", row.v, err)
		}
		if s := m.Info; s.Quiet != row.quiet || (s.View != nil) != row.trusted || row.trusted && s.Depth != row.depth {
			t.Errorf("%T: got %+v, want %+v", row.v, s, row)
		}
	}
}

// Ensure that two mappings of one type that leave out different fields do not
// share a view.
func TestShape_OtherIDField(t *testing.T) {
	type thing struct{ ID, Code, Name string }
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for field, want := range map[string]string{"ID": `{"Code":"c","Name":"n"}`, "Code": `{"ID":"i","Name":"n"}`} {
		things, err := jay.CollectionOf[thing](db, jay.WithIDField(field), jay.Named(field+"s"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := things.Put(ctx, &thing{"i", "c", "n"})
		if err != nil {
			t.Fatal(err)
		}
		doc, err := db.Get(ctx, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(doc.Body()); got != want {
			t.Errorf("%s: got %s, want %s", field, got, want)
		}
	}
}

// called counts calls by the goroutine that makes them.
var called map[string]int

// caller is a member whose encoding is code of the user's.
type caller struct{}

func (caller) MarshalJSON() ([]byte, error) {
	var stack [64]byte
	called[string(bytes.Fields(stack[:runtime.Stack(stack[:], false)])[1])]++
	return []byte("1"), nil
}

type calling struct {
	ID string
	V  caller
}

// Ensure that a user's MarshalJSON is called by the goroutine that saves, and
// by no other, however much there is to save.
func TestEncode_UserCodeOnOneGoroutine(t *testing.T) {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	things, err := jay.CollectionOf[calling](db)
	if err != nil {
		t.Fatal(err)
	}
	called = make(map[string]int)
	if _, err := (caller{}).MarshalJSON(); err != nil {
		t.Fatal(err)
	}

	const n = 40 * codec.ManyValues
	s := db.OpenSession()
	for range n {
		if err := errors.Join(s.Store(ctx, new(calling)), s.Store(ctx, new(plainThing))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SaveChanges(ctx); err != nil {
		t.Fatal(err)
	}
	values := make([]*calling, n)
	for i := range values {
		values[i] = new(calling)
	}
	if _, err := things.InsertMany(ctx, values); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, calls := range called {
		total += calls
	}
	if len(called) != 1 || total < 2*n {
		t.Errorf("got calls by %v, want %d or more by one goroutine", called, 2*n)
	}
}

// Ensure that of many values that cannot be encoded the first is named, and
// that nothing is written.
func TestEncode_FirstError(t *testing.T) {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := db.OpenSession()
	for i := range 100 {
		v := &plainThing{ID: fmt.Sprintf("things/%d", i)}
		if i == 10 || i == 90 {
			v.Lines = []struct{ Price float64 }{{math.NaN()}}
		}
		if err := s.Store(ctx, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrType) || !strings.Contains(err.Error(), `"things/10"`) {
		t.Errorf("got %v, want ErrType about things/10", err)
	}
	if found, err := db.Exists(ctx, "things/0"); found || err != nil {
		t.Errorf("got %v, %v, want nothing written", found, err)
	}
}

// Ensure that what a session keeps of a save does not lie in memory that the
// next save uses.
func TestEncode_NothingShared(t *testing.T) {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	first := db.OpenSession()
	things := make([]*mapThing, 200)
	for i := range things {
		things[i] = &mapThing{ID: fmt.Sprintf("Things/%d", i), Name: fmt.Sprintf("first %d", i)}
		if err := first.Store(ctx, things[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.SaveChanges(ctx); err != nil {
		t.Fatal(err)
	}
	second := db.OpenSession()
	for i := range things {
		if err := second.Store(ctx, &mapThing{ID: fmt.Sprintf("Others/%d", i), Name: "second"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := second.SaveChanges(ctx); err != nil {
		t.Fatal(err)
	}
	if changed, err := first.HasChanges(); changed || err != nil {
		t.Errorf("got %v, %v: a session sees changes that were not made", changed, err)
	}
	for i, thing := range things {
		m, err := first.Metadata(thing)
		if err != nil || m.ID != fmt.Sprintf("Things/%d", i) {
			t.Fatalf("got %+v, %v", m, err)
		}
	}
}
