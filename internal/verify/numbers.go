package verify

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// numbers finds the highest number of each prefix of IDs. IDs of one prefix follow one
// another, but for those of longer prefixes that begin with it: so a stack of prefixes,
// each the beginning of the next, holds all that are not at their end.
type numbers struct {
	stack []prefixNumbers
	ended []prefixNumbers // to be compared with the counters
}

// prefixNumbers are the highest numbers of a prefix.
type prefixNumbers struct {
	prefix               string
	identity, hilo, made int64
	hiloID               string // the ID with the number hilo
}

// see notes the next ID.
func (n *numbers) see(v *verifier, id string) {
	for len(n.stack) > 0 && !strings.HasPrefix(id, n.stack[len(n.stack)-1].prefix) {
		n.ended = append(n.ended, n.stack[len(n.stack)-1])
		n.stack = n.stack[:len(n.stack)-1]
	}
	prefix, kind, number := v.numberOf(id)
	if kind == noNumber {
		return
	}
	if len(n.stack) == 0 || n.stack[len(n.stack)-1].prefix != prefix {
		n.stack = append(n.stack, prefixNumbers{prefix: prefix})
	}
	top := &n.stack[len(n.stack)-1]
	switch kind {
	case identityNo:
		top.identity = max(top.identity, number)
	case hiloNo:
		if number > top.hilo {
			top.hilo, top.hiloID = number, id
		}
	case serverNo:
		top.made = max(top.made, number)
	}
}

// endNumbers compares all prefixes that are left.
func (v *verifier) endNumbers() error {
	v.numbers.ended = append(v.numbers.ended, v.numbers.stack...)
	v.numbers.stack = nil
	return v.use(v.compareNumbers)
}

// compareNumbers compares the prefixes that have ended with the counters.
func (v *verifier) compareNumbers(r storage.Reader) error {
	for _, p := range v.numbers.ended {
		if err := v.comparePrefix(r, p); err != nil {
			return err
		}
	}
	v.numbers.ended = v.numbers.ended[:0]
	return nil
}

func (v *verifier) comparePrefix(r storage.Reader, p prefixNumbers) error {
	tag := strings.TrimSuffix(p.prefix, v.separator)
	if p.identity > 0 {
		key := format.AppendKey(nil, format.SpaceIdentity, tag+ids.IdentityMark)
		value, found, known, err := v.get(r, key)
		if err != nil {
			return err
		}
		if found && known {
			if record, err := format.DecodeIdentity(value); err == nil && p.identity > int64(max(record.Last, record.Ceiling)) {
				v.damage(IdentityBehind, key, "document %q is above its last number, %d", p.prefix+itoa(p.identity), record.Last)
			}
		}
	}
	if p.made > 0 && v.ceilingOK && uint64(p.made) > v.ceiling {
		v.about(ServerSideAhead, nil, "IDs that begin with "+quote(p.prefix), "number %d is in use, and etags are reserved up to %d", p.made, v.ceiling)
	}
	if p.hilo == 0 {
		return nil
	}
	key := format.AppendKey(nil, format.SpaceHiLo, tag)
	granted := int64(0)
	value, _, known, err := v.get(r, key)
	if err != nil || !known {
		return err
	}
	if value != nil {
		marks, err := format.DecodeMarks(value)
		if err != nil {
			return nil // it is noted by readCounters
		}
		granted = marks.Mark
	}
	top, known, err := v.hiloMax(r, tag)
	if err != nil || !known {
		return err
	}
	if granted = max(granted, top); p.hilo > granted {
		v.damage(HiLoBehind, key, "document %q is above the numbers that were granted, up to %d", p.hiloID, granted)
	}
	return nil
}

// hiloMax returns the Max of the HiLo document of a tag. One of an older generation, which counts in blocks, has
// none.
func (v *verifier) hiloMax(r storage.Reader, tag string) (n int64, known bool, err error) {
	doc, known, err := v.documentAt(r, v.rules.Fold(format.HiLoPrefix)+tag)
	if err != nil || !known || doc == nil || !doc.whole {
		return 0, known, err
	}
	var fields struct {
		Max      json.Number
		ServerHi json.RawMessage
	}
	d := json.NewDecoder(bytes.NewReader(doc.body))
	d.UseNumber()
	if d.Decode(&fields) != nil {
		return 0, true, nil
	}
	if fields.ServerHi != nil {
		return math.MaxInt64, true, nil
	}
	n, _ = fields.Max.Int64()
	return n, true, nil
}

// readCounters checks the records of HiLo tags and identities.
func (v *verifier) readCounters() error {
	err := v.readAll(format.SpaceHiLo, func(_ storage.Reader, key, value []byte) error {
		if !v.isName(key) {
			return nil
		}
		marks, err := format.DecodeMarks(value)
		if err != nil {
			v.damage(HiLoRecord, key, "its record cannot be decoded: %x", shorten(value))
			return nil
		}
		if _, found := v.origins[marks.Node]; !found {
			v.damage(NodeMissing, key, "it belongs to node %d, which has no record", marks.Node)
		}
		for _, l := range marks.Leases {
			if l.Low < 1 || l.End > marks.Top {
				v.damage(HiLoLeases, key, "the range %d to %d is open, and the top is %d", l.Low, l.End, marks.Top)
				break
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = v.readAll(format.SpaceIdentity, func(_ storage.Reader, key, value []byte) error {
		if !v.isName(key) {
			return nil
		}
		record, err := format.DecodeIdentity(value)
		if err != nil {
			v.damage(IdentityRecord, key, "its record cannot be decoded: %x", shorten(value))
			return nil
		}
		if _, found := v.origins[record.Node]; !found {
			v.damage(NodeMissing, key, "it belongs to node %d, which has no record", record.Node)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return v.readAll(format.SpaceExchange, v.exchange)
}

// exchange looks at a compare-exchange value.
func (v *verifier) exchange(_ storage.Reader, key, value []byte) error {
	if !v.isName(key) {
		return nil
	}
	x, err := format.DecodeExchange(value)
	switch folded := string(format.ExchangeName(key)); {
	case err != nil:
		v.damage(ExchangeRecord, key, "its record of %d bytes cannot be decoded", len(value))
		return nil
	case x.Key != nil && v.rules.Fold(string(x.Key)) != folded, v.rules.Fold(folded) != folded:
		v.damage(ExchangeRecord, key, "the key in its record is %q", shorten(x.Key))
	case !json.Valid(x.Value), x.Metadata != nil && !json.Valid(x.Metadata):
		v.damage(ExchangeRecord, key, "its value is not the JSON that was stored")
	}
	if v.ceilingOK && x.Index > v.ceiling {
		v.damage(EtagBehind, key, "its index is %d, and etags are reserved up to %d only", x.Index, v.ceiling)
	}
	return nil
}

// isName reports whether a key is a name and 00, and notes it if not.
func (v *verifier) isName(key []byte) bool {
	if bytes.IndexByte(key, 0) == len(key)-1 && len(key) > 2 {
		return true
	}
	v.damage(KeyMalformed, key, "the key is not a name that ends in 00")
	return false
}
