package vectors

import (
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/storage"
)

// Stage implements catalog.Stager: it notes the codes of a document that has others than before in the tail.
func (k *keeper) Stage(tx storage.Tx, folded string, given []catalog.Entry) error {
	before, err := catalog.ValueAt(tx, k.documentKey(keyOf, folded))
	if err != nil {
		return err
	}
	return k.stage(tx, folded, before, given)
}

// StageNew implements catalog.NewStager.
func (k *keeper) StageNew(tx storage.Tx, folded string, given []catalog.Entry) error {
	return k.stage(tx, folded, nil, given)
}

// Fill implements catalog.Tabler.
func (k *keeper) Fill(s catalog.Staging, folded []byte, given []catalog.Entry) error {
	return k.stage(s, string(folded), nil, given)
}

// stage is Stage for a document whose record is before, nil for none.
func (k *keeper) stage(tx catalog.Staging, folded string, before []byte, entries []catalog.Entry) error {
	var codes []byte
	now := record{where: isNowhere}
	if len(entries) > 0 {
		now.print, codes = given(&entries[0])
	}
	if len(codes) > 0 {
		now.where = isInTail
	}
	mine, tail := k.documentKey(keyOf, folded), k.documentKey(keyTail, folded)
	if before != nil {
		old, err := decodeRecord(before)
		if err != nil {
			return err
		}
		if len(entries) > 0 && old.print == now.print {
			return nil
		}
		k.remove(tx, folded, &old)
		if old.where == isInTail && now.where != isInTail {
			tx.Delete(tail)
		}
	}
	switch {
	case len(entries) > 0:
		tx.Set(mine, now.append(nil), nil)
		if now.where == isInTail {
			tx.Set(tail, codes, nil)
		}
	case before != nil:
		tx.Delete(mine)
	}
	return nil
}

// remove removes the vectors of a document from their partitions.
func (k *keeper) remove(tx catalog.Staging, folded string, r *record) {
	for i, partition := range r.partitions {
		tx.Delete(k.vectorKey(partition, folded, i, len(r.partitions)))
		tx.Add(k.partitionKey(keyCount, partition), -1)
	}
}
