package groups

// It makes a keeper without a database, to decode what no database holds.

import (
	"errors"
	"testing"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// FuzzStored decodes keys and values that may be damaged: whatever they are, they are described, and either have
// facts or are ErrCorrupt. A share that can be decoded is encoded as one that says the same.
func FuzzStored(f *testing.F) {
	var fields []query.Field
	for _, text := range []string{"Customer", "year(At)", "Total", "Price * Quantity"} {
		field, err := query.ParseExpression(text)
		if err != nil {
			f.Fatal(err)
		}
		fields = append(fields, field)
	}
	k := keeper{ix: &catalog.Index{Number: 1}, members: fields[:2], sums: fields[2:]}
	group := "@ann\x00\x01\x80\x04"
	f.Add([]byte("x\x00\x00\x00\x01g"+group+"\x00"), []byte("\x00\x00\x00\x00\x00\x00\x00\x01"))
	f.Add([]byte("x\x00\x00\x00\x01g"+group+"\x01"), []byte("\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x0c"))
	f.Add([]byte("x\x00\x00\x00\x01morders/1\x00"), []byte("\x08"+group+"\x0b\x00\x02\x18\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("x\x00\x00\x00\x01r"+group+"orders/3\x00"), []byte("\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x041e40\x00"))
	f.Add([]byte("x\x00\x00\x00\x01r"+group+"orders/3\x00"), []byte("\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x041e40\x00\x01\"\x00"))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if len(key) >= 5 {
			if text := k.Describe(key); text == "" {
				t.Errorf("key %x is described by nothing", key)
			}
			facts := 0
			err := k.StoredFacts(key, value, func(fact []byte, weight int64) error { facts++; return nil })
			if err != nil && !errors.Is(err, errs.ErrCorrupt) {
				t.Errorf("key %x, value %x: %v", key, value, err)
			}
		}
		s, err := k.decode([]byte(group), value)
		if err != nil {
			return
		}
		k.membersOf(&s)
		encoded := s.appendValue(nil)
		again, err := k.decode([]byte(group), encoded)
		if err != nil {
			t.Fatalf("%x was encoded as %x: %v", value, encoded, err)
		}
		if twice := again.appendValue(nil); string(twice) != string(encoded) {
			t.Errorf("%x was encoded as %x, and then as %x", value, encoded, twice)
		}
	})
}
