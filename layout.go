package jay

import (
	"github.com/jaydb/jay/internal/format"

	"github.com/jaydb/jay/metadata"
)

// collectionKey returns the folded name under which a collection's documents
// are kept. Collections are never case-sensitive.
func (db *DB) collectionKey(name string) string {
	if name == "" {
		name = metadata.Empty
	}
	return format.FoldName(name)
}
