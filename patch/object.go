package patch

import (
	"bytes"
	"hash/maphash"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/pieces"
)

// object is an open object: its original JSON, and the members that edits have
// touched or added. An object may have millions of members, so one that no edit
// touches costs only four bytes, for its offset; after several lookups, also its
// slots in a hash table of names.
type object struct {
	raw     []byte   // the original JSON
	starts  []uint32 // offsets of the members in raw, and the offset after the last
	touched []uint32 // parallel to the members in raw: 1 + its index in members, or 0. Empty if all are 0.
	members []member // touched and added ones; added ones in their order
	live    int      // number of members that the object has now

	lookups int            // by name, in raw
	inRaw   names          // of the members in raw; made after fewLookups
	named   map[string]int // indexes of members with named set, by name; nil while there are few

	few [2][fewMembers + 1]uint32 // initial memory of starts and touched
}

// member is a member that was touched or added. A removed member stays in the
// slice, so that the indexes of the others do not change.
type member struct {
	key   []byte // raw, with its quotes
	value node
	start int  // index in starts; -1 for an added member
	named bool // its name is not that in raw: it was renamed or added
	gone  bool // it was removed
}

const (
	// manyMembers is the number of members from which an object keeps a hash table
	// of their names.
	manyMembers = 32

	// fewMembers is the number of members whose offsets fit in object.few.
	fewMembers = 15

	// fewLookups is the number of lookups that are made without a table of names.
	fewLookups = 4
)

// read makes o the object raw, or an empty one if raw is nil. It reuses the memory
// of o.
func (o *object) read(raw []byte) {
	if o.starts == nil {
		o.starts, o.touched = o.few[0][:], o.few[1][:]
	}
	clear(o.members)
	o.members, o.touched = o.members[:0], o.touched[:0]
	o.lookups, o.inRaw, o.named = 0, names{}, nil
	o.raw, o.starts = raw, appendStarts(o.starts[:0], raw)
	o.live = o.inJSON()
}

// appendStarts appends the offsets of the members of an object, and the offset
// after its closing brace. So each member ends, with the comma or brace after it,
// where the next offset is.
func appendStarts(starts []uint32, raw []byte) []uint32 {
	i := 1
	for i < len(raw) && raw[i] == '"' {
		starts = append(starts, uint32(i))
		i = jsonpath.Skip(raw, jsonpath.Skip(raw, i)+1) + 1
	}
	return append(starts, uint32(len(raw)))
}

// inJSON returns the number of members in raw.
func (o *object) inJSON() int { return len(o.starts) - 1 }

// text returns member i of raw: key, colon and value.
func (o *object) text(i int) []byte { return o.raw[o.starts[i] : o.starts[i+1]-1] }

// key returns the key of member i of raw.
func (o *object) key(i int) []byte {
	start := int(o.starts[i])
	return o.raw[start:jsonpath.Skip(o.raw, start)]
}

// find finds a member by its name. It returns its index in members or, if it was
// not touched, its index in raw. The other index is -1, and so are both if there
// is no such member.
func (t *tree) find(o *object, name string) (place, inRaw int, err error) {
	if place, err = t.findNamed(o, name); place >= 0 || err != nil {
		return place, -1, err
	}
	i, err := t.findInRaw(o, name)
	if err != nil || i < 0 {
		return -1, -1, err
	}
	if len(o.touched) == 0 || o.touched[i] == 0 {
		return -1, i, nil
	}
	place = int(o.touched[i]) - 1
	if m := &o.members[place]; m.gone || m.named { // removed, or renamed
		return -1, -1, nil
	}
	return place, -1, nil
}

// findNamed finds a member among those whose name is not that in raw. It returns
// -1 if there is none.
func (t *tree) findNamed(o *object, name string) (place int, err error) {
	if o.named == nil {
		if len(o.members) <= manyMembers {
			for i := range o.members {
				if m := &o.members[i]; m.named && !m.gone && jsonpath.KeyIs(m.key, name) {
					return i, nil
				}
			}
			return -1, nil
		}
		o.named = make(map[string]int)
		for i := range o.members {
			if m := &o.members[i]; m.named && !m.gone {
				o.named[jsonpath.Unquoted(m.key)] = i
			}
		}
	}
	if place, found := o.named[name]; found {
		return place, nil
	}
	return -1, nil
}

// findInRaw finds a member in raw by its original name. It returns -1 if there is
// none. The first lookups compare all names; later ones use a hash table.
func (t *tree) findInRaw(o *object, name string) (int, error) {
	n := o.inJSON()
	o.lookups++
	if o.inRaw.slots == nil && (n < manyMembers || o.lookups <= fewLookups) {
		if err := t.work.spend(workPerValue * n); err != nil {
			return -1, err
		}
		for i := range n {
			if jsonpath.KeyIs(o.key(i), name) {
				return i, nil
			}
		}
		return -1, nil
	}
	if o.inRaw.slots == nil {
		if err := t.work.spend(workPerName * n); err != nil {
			return -1, err
		}
		o.inRaw = newNames(o.raw, o.starts)
	}
	if err := t.work.spend(workPerLookup + len(name)); err != nil {
		return -1, err
	}
	return o.inRaw.find(name), nil
}

// member returns the value of a member, which becomes touched, or nil. The pointer
// is valid until another member of the object is touched or added.
func (t *tree) member(o *object, name string) (*node, error) {
	place, inRaw, err := t.find(o, name)
	if err != nil || place < 0 && inRaw < 0 {
		return nil, err
	}
	if place < 0 {
		if place, err = t.touch(o, inRaw); err != nil {
			return nil, err
		}
	}
	return &o.members[place].value, nil
}

// has reports whether the object has a member.
func (t *tree) has(o *object, name string) (bool, error) {
	place, inRaw, err := t.find(o, name)
	return place >= 0 || inRaw >= 0, err
}

// touch adds member i of raw to members and returns its index there.
func (t *tree) touch(o *object, i int) (place int, err error) {
	if err := t.work.spend(workPerTouched); err != nil {
		return 0, err
	}
	if n := o.inJSON(); len(o.touched) < n {
		if cap(o.touched) < n {
			o.touched = make([]uint32, n)
		} else {
			o.touched = o.touched[:n]
			clear(o.touched)
		}
	}
	key, text := o.key(i), o.text(i)
	o.members = append(o.members, member{key: key, value: node{raw: text[len(key)+1:]}, start: i})
	o.touched[i] = uint32(len(o.members))
	return len(o.members) - 1, nil
}

// add adds a member at the end and returns its value, an absent node. The object
// must not have a member of that name.
func (t *tree) add(o *object, name string) (*node, error) {
	if err := t.work.spend(workPerTouched + len(name)); err != nil {
		return nil, err
	}
	o.members = append(o.members, member{key: jsonpath.AppendQuoted(nil, name), start: -1, named: true})
	o.live++
	place := len(o.members) - 1
	if o.named != nil {
		o.named[name] = place
	}
	return &o.members[place].value, nil
}

// remove removes a member, if there is one.
func (t *tree) remove(o *object, name string) error {
	place, inRaw, err := t.find(o, name)
	if err != nil || place < 0 && inRaw < 0 {
		return err
	}
	if place < 0 {
		if place, err = t.touch(o, inRaw); err != nil {
			return err
		}
	}
	m := &o.members[place]
	if m.named {
		delete(o.named, name)
	}
	*m = member{start: m.start, gone: true}
	o.live--
	return nil
}

// rename renames a member. The object must not have a member of the new name.
func (t *tree) rename(o *object, from, to string) error {
	if _, err := t.member(o, from); err != nil { // touches it
		return err
	}
	place, _, err := t.find(o, from)
	if err != nil {
		return err
	}
	if o.named != nil {
		delete(o.named, from)
		o.named[to] = place
	}
	o.members[place].key, o.members[place].named = jsonpath.AppendQuoted(nil, to), true
	return nil
}

// measure returns the length of o as JSON, and the number of its nodes.
func (o *object) measure() (size, nodes int) {
	// Braces and commas; then all members of raw, less the touched ones, which are
	// measured as they are now.
	size, nodes = len("{}")+max(0, o.live-1), 1
	if n := o.inJSON(); n > 0 {
		size += len(o.raw) - len("{}") - (n - 1)
	}
	for i := range o.members {
		m := &o.members[i]
		if m.start >= 0 {
			size -= len(o.text(m.start))
		}
		nodes++
		if !m.gone {
			valueSize, valueNodes := m.value.measure()
			size, nodes = size+len(m.key)+len(":")+valueSize, nodes+valueNodes
		}
	}
	return size, nodes
}

// append appends o as JSON. It copies runs of untouched members from raw.
func (o *object) append(dst []byte) []byte {
	dst = append(dst, '{')
	start := len(dst)
	next := func() {
		if len(dst) > start {
			dst = append(dst, ',')
		}
	}
	appendMember := func(m *member) {
		if !m.gone {
			next()
			dst = append(append(dst, m.key...), ':')
			dst = m.value.append(dst)
		}
	}
	n := o.inJSON()
	for i := 0; i < n; {
		j := n
		if len(o.touched) > 0 {
			for j = i; j < n && o.touched[j] == 0; j++ {
			}
		}
		if i < j {
			next()
			dst = pieces.Append(dst, o.raw[o.starts[i]:o.starts[j]-1])
		}
		if j < n {
			appendMember(&o.members[o.touched[j]-1])
		}
		i = j + 1
	}
	for i := range o.members {
		if m := &o.members[i]; m.start < 0 {
			appendMember(m)
		}
	}
	return append(dst, '}')
}

// names finds the members of an object by their names. It is a hash table with
// linear probing, of four bytes a slot.
type names struct {
	raw    []byte
	starts []uint32
	slots  []uint32 // 1 + the index in starts, or 0. Their number is a power of two.
}

// nameSeed is random, so that an attacker cannot choose names that collide.
var nameSeed = maphash.MakeSeed()

// newNames returns the names of the members of raw that begin at starts. The last
// of starts is the offset after them.
func newNames(raw []byte, starts []uint32) names {
	n := len(starts) - 1
	size := 8
	for size < n+n/2 {
		size *= 2
	}
	t := names{raw: raw, starts: starts, slots: make([]uint32, size)}
	var buf [64]byte
	for i := range n {
		key := t.key(i)
		text := key[1 : len(key)-1]
		if bytes.IndexByte(text, '\\') >= 0 {
			text = jsonpath.AppendUnquoted(buf[:0], key)
		}
		slot := t.slot(maphash.Bytes(nameSeed, text))
		for t.slots[slot] != 0 {
			slot = t.next(slot)
		}
		t.slots[slot] = uint32(i + 1)
	}
	return t
}

func (t *names) key(i int) []byte {
	start := int(t.starts[i])
	return t.raw[start:jsonpath.Skip(t.raw, start)]
}

func (t *names) slot(hash uint64) int { return int(hash & uint64(len(t.slots)-1)) }
func (t *names) next(slot int) int    { return (slot + 1) & (len(t.slots) - 1) }

// find returns the index of a name in starts, or -1.
func (t *names) find(name string) int {
	for slot := t.slot(maphash.String(nameSeed, name)); t.slots[slot] != 0; slot = t.next(slot) {
		i := int(t.slots[slot]) - 1
		if jsonpath.KeyIs(t.key(i), name) {
			return i
		}
	}
	return -1
}
