package serve

import (
	"context"

	"github.com/jaydb/jay"
)

// The prefixes of the IDs under which servers have kept, in their own database, what belongs to others, before those could
// hold definitions. The key of the database follows: after formerIndexes and a slash the folded name of an index.
const (
	formerIndexes        = "indexes/"
	formerConfigurations = "configurations/"
	formerDue            = "due/" // the name of Expiration or Refresh, and a slash, come before the key
)

// formerDefinitions returns the definitions of a database that are in system, the server's own, and their IDs there.
func formerDefinitions(ctx context.Context, system *jay.DB, key string) (found []jay.DefinitionChange, ids []string, err error) {
	add := func(doc *jay.Document, kind, name string) {
		found = append(found, jay.DefinitionChange{Kind: kind, Name: name, Value: doc.Body(), IfMissing: true})
		ids = append(ids, doc.ID())
	}
	prefix := formerIndexes + key + "/"
	for doc, err := range system.Documents(ctx, jay.Scan{Prefix: prefix}) {
		if err != nil {
			return nil, nil, err
		}
		add(doc, IndexKind, doc.ID()[len(prefix):])
	}
	for name, id := range map[string]string{ClientConfiguration: formerConfigurations + key, Expiration.Name: formerDue + Expiration.Name + "/" + key, Refresh.Name: formerDue + Refresh.Name + "/" + key} {
		doc, err := system.Get(ctx, id)
		if IsMissing(err) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		add(doc, ConfigurationKind, name)
	}
	return found, ids, nil
}

// moveDefinitions moves into a database what system has of it, and returns how many definitions. They are on disk there
// before they are deleted here, so a crash repeats the move; what the database has by then is newer, and stays.
func moveDefinitions(ctx context.Context, system *jay.DB, key string, db *jay.DB) (n int, err error) {
	found, ids, err := formerDefinitions(ctx, system, key)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	if err := db.Definitions().Change(ctx, found...); err != nil {
		return 0, err
	}
	return len(ids), deleteAll(ctx, system, ids)
}

// deleteAll deletes documents in one commit.
func deleteAll(ctx context.Context, db *jay.DB, ids []string) error {
	var b jay.Batch
	for _, id := range ids {
		b.Delete(id)
	}
	_, err := db.Apply(ctx, &b)
	return err
}
