package verify

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/jaydb/jay/internal/definitions"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/schemas"
	"github.com/jaydb/jay/storage"
)

// readDefinitions reads the definitions. The key with the number of the last change comes after them.
func (v *verifier) readDefinitions() error {
	highest, last := uint64(0), uint64(0)
	err := v.readAll(format.SpaceDefinitions, func(_ storage.Reader, key, value []byte) error {
		if bytes.Equal(key, format.LastDefinitionKey()) {
			if len(value) != 8 {
				v.damage(DefinitionRecord, key, "the number of the last change has %d bytes", len(value))
				last = math.MaxUint64 // it is not known
				return nil
			}
			last = binary.BigEndian.Uint64(value)
			return nil
		}
		kind, name, ok := format.SplitDefinitionKey(key)
		if !ok || !definitions.IsKey(kind, name) || format.FoldName(name) != name {
			v.damage(KeyMalformed, key, "the key is not a kind, 00, a folded name and 00")
			return nil
		}
		number, object, err := format.DecodeDefinition(value)
		if err == nil {
			err = definitions.CheckValue(object)
		}
		if err == nil && definitions.Own(kind) == definitions.Schemas {
			err = schemas.CheckValue(name, object)
		}
		if err != nil {
			v.damage(DefinitionRecord, key, "%v", err)
		}
		highest = max(highest, number)
		return nil
	})
	if err == nil && highest > last {
		v.damage(DefinitionRecord, format.LastDefinitionKey(), "the number of the last change is %d, and a definition has %d", last, highest)
	}
	return err
}
