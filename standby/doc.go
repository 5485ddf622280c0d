// Package standby keeps a copy of a database, which follows its source: it applies each commit of
// the source a moment later. A program can read the copy while it follows, and promote it to a
// database of its own when the source is lost.
//
//	s, err := standby.Open("copy.db", standby.From(db), standby.Options{})
//	if err != nil {
//		return err
//	}
//	defer s.Close()
//	reader, err := s.DB(ctx) // waits for the first copy
//
// # What it has
//
// The standby has exactly the state of its source after one of the source's commits: documents,
// attachments, revisions, indexes, counters, subscriptions, configuration. Status says of which
// moment. The standby never has a commit that a crash of the source could undo.
//
// A source keeps its newest commits in memory, up to 64 MiB, while standbys read them. A standby
// that was away for longer compares its keys with those of the source by checksums. So does every
// standby after its source was opened again. Both sides read all of their keys, and the source
// sends what differs. The standby commits the differences at once, so that readers never see half
// of them.
//
// The source writes nothing for its standbys, and needs no disk space for them.
//
// # Promotion
//
// jay.Promote turns the directory of a closed standby into a database. IDs continue as after the
// restore of a backup.
package standby
