package verify

import (
	"encoding/binary"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// readIndexes reads the entries of all indexes, and what is stored of their state.
func (v *verifier) readIndexes() error {
	if err := v.readAll(format.SpaceIndex, v.entry); err != nil {
		return err
	}
	flags := make(map[uint32]byte)
	err := v.readAll(format.SpaceIndexState, func(_ storage.Reader, key, value []byte) error {
		if len(key) != 6 || key[5] != 'f' && key[5] != 'b' && key[5] != 'i' {
			v.damage(KeyMalformed, key, "the key is not the number of an index and b, f or i")
			return nil
		}
		number := binary.BigEndian.Uint32(key[1:])
		if v.byNumber[number] == nil {
			v.leftover(key, number)
			return nil
		}
		if key[5] == 'b' || key[5] == 'i' {
			return nil
		}
		if len(value) != 1 || value[0]&^catalog.FlagsKnown != 0 {
			v.damage(IndexFlags, key, "its record is no set of flags: %x", shorten(value))
			return nil
		}
		flags[number] = value[0]
		return nil
	})
	if err != nil {
		return err
	}
	for _, ix := range v.indexes {
		if missing := ix.flags &^ flags[ix.Number]; ix.ready && missing != 0 {
			v.about(IndexFlags, format.IndexFlagsKey(ix.Number), "index "+quote(ix.Info.Name)+" of "+ix.Info.Collection, "its entries need the flags %b, and it has %b", ix.flags, flags[ix.Number])
		}
	}
	return nil
}

// leftover notes once for each number that there are keys of an index that is gone.
func (v *verifier) leftover(key []byte, number uint32) {
	if !v.catalogOK || v.leftovers[number] {
		return
	}
	if len(v.leftovers) < maxGroups {
		v.leftovers[number] = true
	}
	v.damage(IndexLeftover, key, "there is no index %d", number)
}

// entry looks at one entry of an index.
func (v *verifier) entry(r storage.Reader, key, value []byte) error {
	if len(key) < 6 {
		if !v.again {
			v.damage(KeyMalformed, key, "the key of an index entry has at least 6 bytes")
		}
		return nil
	}
	number := binary.BigEndian.Uint32(key[1:])
	ix := v.byNumber[number]
	if ix == nil {
		if !v.again {
			v.leftover(key, number)
		}
		return nil
	}
	if !v.again {
		v.report.IndexEntries++
	}
	if ix.Stager != nil {
		return v.stored(ix, key, value)
	}
	if !v.again {
		if ix.ready {
			v.ledger.add(key, value, -1)
		}
		return nil
	}
	if !ix.ready || !v.ledger.differs(key, value) {
		return nil
	}
	folded, err := ix.AppendID(nil, key, value)
	if err != nil {
		v.damage(EntryRecord, key, "its key %x cannot be decoded", shorten(key))
		return nil
	}
	doc, known, err := v.documentAt(r, string(folded))
	if err != nil || !known {
		return err
	}
	switch {
	case doc == nil:
		v.damage(EntryExtra, key, "document %q is not there", folded)
		return nil
	case doc.collection != ix.Collection:
		v.damage(EntryExtra, key, "document %q is in collection %q", folded, doc.collection)
		return nil
	case !doc.whole:
		return nil
	}
	found := false
	own := append([]byte(nil), key...) // what derives uses scratch
	if err := (entryDerivation{v, r, doc, func(key, _ []byte) error {
		found = found || string(key) == string(own)
		return nil
	}}).all(); err != nil {
		return err
	}
	if !found {
		v.damage(EntryExtra, key, "document %q does not give it", folded)
	}
	return nil // a wrong value is noted at the document
}

// stored looks at a key of an index that stages its keys itself.
func (v *verifier) stored(ix *openIndex, key, value []byte) error {
	if !ix.ready {
		return nil
	}
	err := ix.StoredFacts(key, value, func(fact []byte, weight int64) error {
		name := countedFact(ix.Number, fact)
		if !v.again {
			v.ledger.add(name, nil, -weight)
		} else if v.ledger.differs(name, nil) {
			v.groups.hold(name, format.AppendIndexPrefix(nil, ix.Number), weight)
		}
		return nil
	})
	if IsDamage(err) {
		if !v.again {
			v.damage(EntryRecord, key, "it cannot be decoded: key %x, value %x", shorten(key), shorten(value))
		}
		return nil
	}
	return err
}
