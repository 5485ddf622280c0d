package format

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// SpaceDefinitions has what programs declare for the database: see package definitions. It came with the feature
// storage.Definitions.
// Part of the on-disk format. Must not change.
const SpaceDefinitions = 'g'

// Parts of the keys of SpaceDefinitions. Part of the on-disk format. Must not change.
const (
	partDefinition = 'd' // 'g' 'd' | kind | 0x00 | folded name | 0x00
	partLastChange = 'n' // 'g' 'n'
)

// LastDefinitionKey returns the key of the number of the last change of a definition, 8 bytes.
func LastDefinitionKey() []byte { return []byte{SpaceDefinitions, partLastChange} }

// DefinitionPrefix returns the prefix of the keys of the definitions of a kind.
func DefinitionPrefix(kind string) []byte {
	return append(append([]byte{SpaceDefinitions, partDefinition}, kind...), 0)
}

// DefinitionKey returns the key of a definition.
func DefinitionKey(kind, foldedName string) []byte {
	return append(append(DefinitionPrefix(kind), foldedName...), 0)
}

// SplitDefinitionKey returns the parts of DefinitionKey. ok is false for any other key.
func SplitDefinitionKey(key []byte) (kind, foldedName string, ok bool) {
	if len(key) < 2 || key[0] != SpaceDefinitions || key[1] != partDefinition {
		return "", "", false
	}
	k, rest, found := bytes.Cut(key[2:], []byte{0})
	name, end, ended := bytes.Cut(rest, []byte{0})
	return string(k), string(name), found && ended && len(end) == 0
}

// AppendDefinition appends the record of a definition: the number of the change that has written it, and its
// JSON.
func AppendDefinition(dst []byte, number uint64, value []byte) []byte {
	return append(binary.BigEndian.AppendUint64(dst, number), value...)
}

// DecodeDefinition splits a record. value is a part of it.
func DecodeDefinition(record []byte) (number uint64, value []byte, err error) {
	if len(record) < 8+2 {
		return 0, nil, fmt.Errorf("the record of a definition has %d bytes", len(record))
	}
	return binary.BigEndian.Uint64(record), record[8:], nil
}
