package fulltext

import (
	"encoding/binary"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/storage"
)

// Stage implements catalog.Stager: it notes the texts of a document that has others than before in the tail. Nothing is analyzed.
func (k *keeper) Stage(tx storage.Tx, folded string, given []catalog.Entry) error {
	value, err := catalog.ValueAt(tx, k.documentKey(keyOf, folded))
	if err != nil {
		return err
	}
	return k.stage(tx, folded, value, given)
}

// StageNew implements catalog.NewStager.
func (k *keeper) StageNew(tx storage.Tx, folded string, given []catalog.Entry) error {
	return k.stage(tx, folded, nil, given)
}

// stage is Stage for a document whose record is before, nil for none.
func (k *keeper) stage(tx storage.Tx, folded string, before []byte, given []catalog.Entry) error {
	var texts []byte
	if len(given) > 0 {
		_, texts = given[0].Given()
	}
	now := ofDocument{print: printOf(texts)}
	if before != nil {
		old, err := decodeOf(before)
		if err != nil {
			return err
		}
		if texts != nil && old.print == now.print {
			return nil
		}
		if old.ordinal > 0 {
			if err := k.bury(tx, old.ordinal); err != nil {
				return err
			}
		}
	}
	mine, tail := k.documentKey(keyOf, folded), k.documentKey(keyTail, folded)
	switch {
	case texts != nil:
		k.staged.Add(1)
		tx.Set(mine, now.append(nil), nil)
		tx.Set(tail, texts, nil)
	case before != nil:
		tx.Delete(mine)
		tx.Delete(tail)
	}
	return nil
}

// bury makes the postings of an ordinal those of no document.
func (k *keeper) bury(tx storage.Tx, ordinal uint64) error {
	key := k.ordinalKey(keySettled, ordinal)
	value, err := catalog.ValueAt(tx, key)
	if err != nil {
		return err
	}
	s, err := k.settledAt(value)
	if err != nil {
		return err
	}
	tx.Delete(key)
	k.addLengths(tx, s.lengths, -1)
	k.markDead(tx, ordinal, s.sum)
	return nil
}

// markDead notes how much of an ordinal the blocks have.
func (k *keeper) markDead(tx storage.Tx, ordinal uint64, sum int64) {
	tx.Add(k.countKey(), 1)
	tx.Set(k.ordinalKey(keyDead, ordinal), binary.BigEndian.AppendUint64(nil, uint64(sum)), nil)
}
