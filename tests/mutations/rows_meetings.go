package main

// simulated is the test that finds meetings.
var simulated = []tests{{"tests/simulation", "TestSimulation$"}}

// meetings are changes that are seen when features or faults meet. docs/simulation/history.md says after how many steps.
var meetings = []mutation{
	{
		name:  "meeting: a document that comes back begins its revisions anew",
		edits: []edit{{"internal/write/stage_revisions.go", "\to.Header.Revision = history.Last + 1\n\tt.key = format.DeletedKey", "\t_ = history\n\tt.key = format.DeletedKey"}},
		tests: simulated,
	},
	{
		name:  "meeting: a rename loses attachments",
		edits: []edit{{"internal/write/move.go", ", Timed: h.Timed, Attachments: h.Attachments}", ", Timed: h.Timed}"}},
		tests: simulated,
	},
	{
		name:  "meeting: a rename loses instants",
		edits: []edit{{"internal/write/move.go", ", Custom: h.Custom, Timed: h.Timed, ", ", Custom: h.Custom, "}},
		tests: simulated,
	},
	{
		name:  "meeting: the record of the change that a write replaces stays",
		edits: []edit{{"internal/write/stage.go", "\tcase found:\n\t\tt.Tx.Delete(format.ChangeKey(t.key[:0], old.Node, old.Etag))\n", "\tcase found:\n"}},
		tests: simulated,
	},
	{
		name: "meeting: a reader is not told that records of deletions are gone",
		edits: []edit{
			{"internal/feed/feed.go", "\tif mark <= max(f.position, f.base) || f.filter.NoDeletions {", "\tif mark > 0 || f.filter.NoDeletions {"},
			{"internal/horizon/follower.go", "\tif after < h.gone {\n", "\tif false {\n"},
		},
		tests: simulated,
	},
	{
		name:  "meeting: floors keep no records of deletions",
		edits: []edit{{"internal/horizon/horizon.go", "\t\tleast = min(least, floor)\n", ""}},
		tests: simulated,
	},
	{
		name:  "meeting: a feed shows what is not on disk yet",
		edits: []edit{{"internal/feed/feed.go", "\tsnapshot := f.source.Env.Engine.Snapshot()\n\tdefer func() { err = errs.First(err, snapshot.Close()) }()\n\treturn f.readFrom", "\tsnapshot := f.source.Env.Engine.Latest()\n\tdefer func() { err = errs.First(err, snapshot.Close()) }()\n\treturn f.readFrom"}},
		tests: []tests{{"tests/model", "TestChanges_Crash_AtAnySync$"}},
	},
	{
		name:  "meeting: deletions are kept by etags, of which a crash takes many",
		edits: []edit{{"internal/horizon/horizon.go", "kept, err := h.beforeKept(latest, newest)", "kept, err := newest-min(newest, uint64(h.kept)), error(nil)"}},
		tests: []tests{{"tests/live", "TestLive_TokenAfterCrashes"}},
	},
	{
		name:  "meeting: the deletion of a document that is there again is told",
		edits: []edit{{"internal/feed/feed.go", "if f.filter.States { // it", "if false && f.filter.States { // it"}},
		tests: []tests{{"tests/live", "TestLive_DeletedAndStored"}},
	},
	{
		name:  "meeting: damage ends the connection of one that looks",
		edits: []edit{{"internal/look/answer.go", "\t\tif it.Error() != nil {\n", "\t\tif false {\n"}},
		tests: []tests{{".", "TestLook_VerifyDamaged"}},
	},
	{
		name:  "meeting: Close refuses a floor between the last record that goes and the end of the walk",
		edits: []edit{{"internal/horizon/horizon.go", "\tif floor < last {\n", "\tif floor < b.end {\n"}},
		tests: []tests{{"internal/horizon", "TestDeletions_FloorInTheWalk"}},
	},
	{
		name:  "meeting: the index of a compare-exchange value is not compared",
		edits: []edit{{"internal/write/stage_exchange.go", "\tif !o.Compared {\n\t\tif err := t.compare(", "\tif false {\n\t\tif err := t.compare("}},
		tests: simulated,
	},
	{
		name:  "meeting: the entry of an expiry that has moved stays",
		edits: []edit{{"internal/write/stage_expiry.go", "\t\tt.Tx.Delete(t.key)\n\t\tt.countTime(kind, -1)\n\t}\n\tif after.IsZero() {", "\t\tt.countTime(kind, -1)\n\t}\n\tif after.IsZero() {"}},
		tests: simulated,
	},
	{
		name:  "meeting: the deletion of a document leaves what is due for it",
		edits: []edit{{"internal/write/stage.go", "\t\tt.stageTimes(folded, key, old.Times, metadata.Times{})\n", "\t\t_ = key\n"}},
		tests: simulated,
	},
	{
		name:  "meeting: a content goes with the first of two attachments",
		edits: []edit{{"internal/attachments/attachments.go", "\tif c.References--; c.References > 0 {", "\tif c.References--; c.References > 1 {"}},
		tests: simulated,
	},
	{
		name:  "meeting: a content that comes back keeps only the newer reference",
		edits: []edit{{"internal/attachments/attachments.go", "\t\tc.References++\n", "\t\tc.References = 1\n"}},
		tests: simulated,
	},
	{
		name:  "meeting: an incremental backup leaves the changes that its documents had before",
		edits: []edit{{"internal/backup/apply.go", "\t\tif ok && (h.Etag != etag || h.Node != node) {", "\t\tif ok && h.Etag > etag && h.Node != node {"}},
		tests: simulated,
	},
	{
		name:  "meeting: an incremental backup leaves chunks that no content has",
		edits: []edit{{"internal/backup/apply.go", "\treturn a.removeChunks(ctx)\n", "\treturn nil\n"}},
		tests: simulated,
	},
	{
		name:  "meeting: an incremental backup has no revisions of the documents that have changed",
		edits: []edit{{"internal/backup/source.go", "revisions: s.Made.Revised == s.base.Revised && (", "revisions: false && ("}},
		tests: simulated,
	},
	{
		name:  "meeting: the acknowledgement of a batch does not wait for the disk",
		edits: []edit{{"internal/subs/subs.go", "\treturn s.env.Engine.Update(ctx, s.env.Synced, fn)\n", "\treturn s.env.Engine.Update(ctx, false, fn)\n"}},
		tests: simulated,
	},
	{
		name:  "meeting: a batch that has failed counts as done",
		edits: []edit{{"subscription.go", "\t\t\tif err := fn(w.Context(), s.batch(batch)); err != nil {\n", "\t\t\tif err := fn(w.Context(), s.batch(batch)); err != nil {\n\t\t\t\t_ = w.Acknowledge(batch)\n"}},
		tests: simulated,
	},
	{
		name:  "meeting: a patch stores any number",
		edits: []edit{{"patch/value.go", "\t\tif opening != '\"' && end-i > jsonpath.SafeDigits && jsonpath.IsBeyond(c.src[i:end]) {", "\t\tif false && jsonpath.IsBeyond(c.src[i:end]) {"}},
		tests: simulated,
	},
	{
		name:  "meeting: a request that is made again is carried out again",
		edits: []edit{{"internal/write/stage.go", "\treturn once.keep(t.Writer.Env, t.Tx)\n", "\treturn nil\n"}},
		tests: simulated,
	},
	{
		name:  "meeting: a number of an identity that is asked for again is another one",
		edits: []edit{{"internal/core/identity.go", "func(t *write.Txn) (err error) {\n\t\tif once != nil {\n\t\t\tif err := once.Find(t.Tx); err != nil {", "func(t *write.Txn) (err error) {\n\t\tif once != nil {\n\t\t\tif err := once.Find(t.Tx); false && err != nil {"}},
		tests: simulated,
	},
}
