// Package standby keeps a copy of a database that follows it: each commit is applied as it was, a moment later. The
// copy can be read while it follows, and promoted to a database of its own when its source is lost.
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
// The standby has exactly what its source had after one of its commits: documents, attachments, revisions, indexes, counters,
// subscriptions, configuration. Status says which moment that was. It never has what a crash of the source could undo.
//
// A source remembers its newest commits, up to 64 MiB, while standbys read them. A standby that was away for longer, and each after
// its source was opened anew, compares its keys with those of the source by checksums: both read all that they
// have, and what differs is sent. It is taken in at once, so that readers never see half of it.
//
// The source writes nothing for its standbys, and needs no room on its disk.
//
// # Promotion
//
// jay.Promote makes a database of the directory of a closed standby. IDs continue as those of a restored backup do.
package standby
