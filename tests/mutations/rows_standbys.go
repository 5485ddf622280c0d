package main

// standbys are changes to how a copy follows a database and takes its place.
var standbys = []mutation{
	{
		name:  "standby: commits that are not on disk are sent",
		edits: []edit{{"internal/follow/source.go", "memory.last(), memory.engine.DurableCommit()\n", "memory.last(), memory.last()\n"}},
		tests: []tests{{"standby", "TestStandby_History"}},
	},
	{
		name:  "standby: a copy keeps what the source has deleted",
		edits: []edit{{"internal/follow/copy.go", "\t\tif err := c.write(storage.Write{Key: c.own.Key(), Deleted: true}); err != nil {\n\t\t\treturn err\n\t\t}\n", ""}},
		tests: []tests{{"standby", "TestStandby_History"}},
	},
	{
		name:  "standby: the numbers of an earlier opening of the source are taken for those of this one",
		edits: []edit{{"internal/follow/source.go", "if q.Standby.Epoch == s.hello.Epoch && s.source.memory.has(q.Standby.Commit) {", "if s.source.memory.has(q.Standby.Commit) {"}},
		tests: []tests{{"internal/follow", "TestStream_OtherEpoch"}},
	},
	{
		name:  "standby: the commits around tables that were taken in are sent without their keys",
		edits: []edit{{"internal/follow/memory.go", "\tcase c.Ingested: // its keys are not known: all standbys compare theirs\n\t\tm.placed, m.before, m.payloads, m.bytes = true, c.Number, nil, 0\n\t\treturn\n", ""}},
		tests: []tests{{"internal/follow", "TestMemory_Tables"}},
	},
	{
		name:  "standby: it is opened to be written",
		edits: []edit{{"internal/core/open.go", "\tcase !o.Engine.ReadOnly:\n\t\treturn fmt.Errorf(\"%w: the database follows another one", "\tcase false:\n\t\treturn fmt.Errorf(\"%w: the database follows another one"}},
		tests: []tests{{"standby", "TestFormat7|TestStandby$"}},
	},
	{
		name:  "standby: it does not raise the format",
		edits: []edit{{"internal/follow/target.go", "\t\ttx.RequireFeature(storage.FeatureStandby)\n", ""}},
		tests: []tests{{"standby", "TestFormat7"}},
	},
	{
		name:  "standby: a promotion takes a tag that the database has had",
		edits: []edit{{"internal/recovery/promote.go", "\tif tag != state.Promoted {\n", "\tif false && tag != state.Promoted {\n"}},
		tests: []tests{{"standby", "TestPromote_CopyTag"}},
	},
	{
		name:  "standby: a format that rises while it follows is not sent",
		edits: []edit{{"internal/follow/source.go", "\tif dst, err = s.appendFormat(dst); err != nil {", "\tif false {"}},
		tests: []tests{{"internal/follow", "TestStream_FormatRises"}},
	},
	{
		name:  "standby: a promotion under Relaxed reserves numbers above its floors",
		edits: []edit{{"internal/recovery/promote.go", "\topen.Engine.DurableReads = true", "\t"}},
		tests: []tests{{"standby", "TestPromote_SameFloorsAgain"}},
	},
}
