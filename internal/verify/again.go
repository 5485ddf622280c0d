package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// lookAgain reads what must agree once more, if the sums say that something does not,
// and looks at each record in a sum that is not 0.
func (v *verifier) lookAgain() error {
	if v.ledger.isEven() {
		return nil
	}
	v.again = true
	v.groups = groups{found: make(map[string]int64), keys: make(map[string][]byte), numbers: make(map[string]int64), sizes: make(map[string][]string)}
	for _, step := range []func() error{
		v.documentsAgain,
		v.revisionsAgain,
		func() error { return v.readAll(format.SpaceChanges, v.change) },
		func() error { return v.readAll(format.SpaceMembers, v.member) },
		func() error { return v.readAll(format.SpaceCounts, v.count) },
		func() error { return v.readAll(format.SpaceTimes, v.due) },
		func() error { return v.readAll(format.SpaceIndex, v.entry) },
		v.contentsAgain,
		v.compareGroups,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// documentsAgain looks for what documents need.
func (v *verifier) documentsAgain() error {
	return v.readAll(format.SpaceDocument, func(r storage.Reader, key, value []byte) error {
		d := v.decodeDocument(key, value, false)
		if d == nil {
			return nil
		}
		if _, err := CheckJSON(d.body); err != nil {
			d.whole = false
		}
		return v.derive(r, d, func(key, want []byte) error {
			if isCounted(key) {
				if v.ledger.differs(key, nil) {
					v.groups.find(key, weight(want))
				}
				return nil
			}
			if !v.ledger.differs(key, want) {
				return nil
			}
			return v.need(r, d, key, want)
		})
	})
}

// need looks for a record that a document needs.
func (v *verifier) need(r storage.Reader, d *document, key, want []byte) error {
	has, found, known, err := v.get(r, key)
	if err != nil || !known {
		return err
	}
	if key[0] == format.SpaceChanges {
		v.needChange(d, key, has, found)
		return nil
	}
	if found && bytes.Equal(has, want) || found && key[0] == format.SpaceMembers {
		return nil
	}
	space := spaces[key[0]]
	switch {
	case !found:
		v.damage(space.missing, key, "document %q needs it, and it is not there", d.folded)
	case key[0] == format.SpaceIndex:
		v.needEntry(d, key, has, want)
	default:
		v.damage(space.wrong, key, "its value is %q, and document %q needs %q", shorten(has), d.folded, shorten(want))
	}
	return nil
}

// needEntry notes an index entry whose value is wrong.
func (v *verifier) needEntry(d *document, key, has, want []byte) {
	owner, _ := catalog.SplitValue(has, true)
	mine, _ := catalog.SplitValue(want, true)
	ix := v.byNumber[uint32(key[1])<<24|uint32(key[2])<<16|uint32(key[3])<<8|uint32(key[4])]
	if ix != nil && ix.Info.Unique && ix.IsUnique(key[5:]) && !bytes.Equal(owner, mine) {
		v.damage(EntryTwice, key, "it is of document %q, and document %q needs it", shorten(owner), d.folded)
		return
	}
	v.damage(EntryWrong, key, "its value is %x, and document %q needs %x", shorten(has), d.folded, shorten(want))
}

// needChange looks whether a record of changes is that of a document.
func (v *verifier) needChange(d *document, key, has []byte, found bool) {
	if !found {
		v.damage(ChangeMissing, key, "document %q was written with this etag", d.folded)
		return
	}
	c, err := format.DecodeChange(has)
	switch {
	case err != nil: // noted when the changes were read
	case c.Kind != format.ChangePut:
		v.damage(ChangeWrong, key, "document %q was written with this etag, and the record is that of a deletion of %q", d.folded, c.FoldedID)
	case c.FoldedID != d.folded:
		v.damage(ChangeWrong, key, "document %q was written with this etag, and the record is that of %q", d.folded, c.FoldedID)
	case format.CollectionKey(c.Collection) != d.collection:
		v.damage(ChangeWrong, key, "document %q is in collection %q, and the record says %q", d.folded, d.collection, c.Collection)
	}
}

// revisionsAgain counts revisions.
func (v *verifier) revisionsAgain() error {
	return v.walk(format.HistoryBounds[0], format.HistoryBounds[1], func(_ storage.Reader, key, value []byte) error {
		_, number, err := format.SplitRevisionKey(key)
		if err != nil || number == 0 {
			return nil
		}
		_, record, err := format.SplitRevision(value)
		if err != nil {
			return nil
		}
		var h metadata.Header
		if _, err := h.Decode(record); err != nil {
			return nil
		}
		if name := countedRevisions(format.CollectionKey(string(h.Collection))); v.ledger.differs(name, nil) {
			v.groups.find(name, 1)
		}
		return nil
	})
}

// groups are numbers that do not agree, as far as the sums say.
type groups struct {
	found   map[string]int64  // by name: how many there are
	numbers map[string]int64  // by name: the number that is kept
	keys    map[string][]byte // by name: where
	more    bool              // there were too many

	sizes map[string][]string // by hash: the names of the attachments with it, one for each size
}

// find counts something n times.
func (g *groups) find(name []byte, n int64) {
	if _, there := g.found[string(name)]; !there && len(g.found) >= maxGroups {
		g.more = true
		return
	}
	g.name(name)
	g.found[string(name)] += n
}

// name notes the name of something that is counted.
func (g *groups) name(name []byte) {
	if name[1] != 'a' {
		return
	}
	hash := string(name[2 : 2+sha256.Size])
	if !slices.Contains(g.sizes[hash], string(name)) {
		g.sizes[hash] = append(g.sizes[hash], string(name))
	}
}

// hold adds to a number that is kept under several keys.
func (g *groups) hold(name, key []byte, n int64) {
	n += g.numbers[string(name)]
	g.kept(name, key, n)
}

// kept notes a number that is kept.
func (g *groups) kept(name, key []byte, n int64) {
	if len(g.numbers) >= maxGroups {
		g.more = true
		return
	}
	g.name(name)
	g.numbers[string(name)], g.keys[string(name)] = n, append([]byte(nil), key...)
}

// compareGroups compares what was found with the numbers that are kept.
func (v *verifier) compareGroups() error {
	g := &v.groups
	if v.report.Unread > 0 || v.unknown || v.unknownLists || v.unknownRevisions {
		v.lacks("numbers of documents, revisions and attachments, as some of these cannot be read")
	}
	if g.more {
		v.lacks("numbers of documents, revisions and attachments beyond %d: too many do not agree", maxGroups)
	}
	if v.report.Unread > 0 {
		return nil
	}
	for _, name := range sortedNames(g) {
		found, kept := g.found[name], g.numbers[name]
		if found == kept {
			continue
		}
		rest := name[2:]
		switch {
		case name[1] == 'k' && !v.unknown:
			v.damage(CountWrong, format.CountKey(nil, rest), "there are %d, and the number is %d", found, kept)
		case name[1] == 'b' && !v.unknown:
			v.damage(CountWrong, format.CountKey(nil, rest), "its documents have %d bytes, and the number is %d", found, kept)
		case name[1] == 'x' && !v.unknown:
			number := binary.BigEndian.Uint32([]byte(rest))
			v.damage(EntryWrong, format.AppendIndexPrefix(nil, number), "documents give it %q %d times, and it has it %d times", shorten([]byte(rest[4:])), found, kept)
		case name[1] == 'r' && !v.unknownRevisions:
			v.damage(RevisionCount, format.RevisionCountKey(nil, rest), "there are %d, and the number is %d", found, kept)
		case name[1] == 'a' && !v.unknown && !v.unknownLists:
			v.references(rest, found, kept)
		}
	}
	return nil
}

// references notes a content whose number of references is wrong. The name is its hash,
// and the size that attachments with it have.
func (v *verifier) references(name string, found, kept int64) {
	hash := name[:sha256.Size]
	key := format.ContentKey((*format.Hash)([]byte(hash)))
	recorded, sizes := false, 0
	for _, other := range v.groups.sizes[hash] {
		sizes++
		_, there := v.groups.numbers[other]
		recorded = recorded || there
	}
	_, there := v.groups.numbers["\x00a"+name]
	switch {
	case !there && recorded:
		size := binary.BigEndian.Uint64([]byte(name[sha256.Size:]))
		v.damage(AttachmentSize, key, "%s %d bytes by their lists, and it has another size", plural(found, "attachment with it has", "attachments with it have"), size)
	case there && sizes > 1: // noted at the other size
	case !there:
		v.damage(ContentMissing, key, "%s it, and it is not there", plural(found, "attachment has", "attachments have"))
	case found == 0:
		v.damage(ContentUnused, key, "it is said to be that of %s, and no document has it", plural(kept, "attachment", "attachments"))
	case found < kept:
		v.damage(ReferencesHigh, key, "it is said to be that of %s, and documents have %d", plural(kept, "attachment", "attachments"), found)
	default:
		v.damage(ReferencesLow, key, "it is said to be that of %s, and documents have %d", plural(kept, "attachment", "attachments"), found)
	}
}

func sortedNames(g *groups) []string {
	names := make(map[string]bool, len(g.found))
	for name := range g.found {
		names[name] = true
	}
	for name := range g.numbers {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return itoa(n) + " " + many
}
