package main

// copied are changes to copies between stores.
var copied = []mutation{
	{
		name:  "a copy that goes on does not compare again",
		edits: []edit{{"internal/copier/target.go", "\tif t.Mark.Equal && t.Mark.CopyTag != \"\" {", "\tif t.Mark.Equal {"}},
		tests: []tests{{"internal/recovery", "TestCopy_ResumedAfterSource$"}},
	},
	{
		name:  "a keeper mixes the backups of two databases with one name",
		edits: []edit{{"backups/keeper.go", "\tif err := d.checkOwner(db); err != nil { //", "\tif err := error(nil); err != nil { //"}},
		tests: []tests{{"backups", "TestKeeper_DatabaseMadeAgain$"}},
	},
	{
		name:  "copies: the position is not kept",
		edits: []edit{{"internal/copier/target.go", "\tm.After = b.keys[len(b.keys)-1]\n", ""}},
		tests: []tests{{"internal/recovery", "TestCopy_"}},
	},
	{
		name:  "copies: what differs is not seen",
		edits: []edit{{"internal/copier/target.go", "\tcase !bytes.Equal(from.value(), to.value()):\n", "\tcase len(from.value()) < 0:\n"}},
		tests: []tests{{"internal/recovery", "TestCopy_Rules"}},
	},
	{
		name:  "copies: a key that the source has not is not seen at the end",
		edits: []edit{{"internal/copier/target.go", "\tcase err != nil || !more && !there:\n", "\tcase err != nil || !more:\n"}},
		tests: []tests{{"internal/recovery", "TestCopy_Rules"}},
	},
	{
		name:  "copies: a source that is written to between its parts goes on",
		edits: []edit{{"internal/copier/target.go", "\tcase m.Etag != s.etag || m.Commit != s.steady.commit:\n", "\tcase m.Commit != s.steady.commit:\n"}},
		tests: []tests{{"internal/recovery", "TestCopy_Rules"}},
	},
	{
		name:  "copies: another moment of a shared source is read",
		edits: []edit{{"internal/copier/steady.go", "\tif err == nil && commit != s.commit {\n", "\tif err == nil && commit < s.commit {\n"}},
		tests: []tests{{"storage/sqlkv", "TestCopy_WrittenTo"}},
	},
	{
		name:  "copies: a moment that has ended ends the copy",
		edits: []edit{{"internal/copier/steady.go", "\t\tcase errors.Is(err, storage.ErrSnapshotExpired) && expired < fruitless:\n", "\t\tcase errors.Is(err, storage.ErrSnapshotExpired) && expired < 0:\n"}},
		tests: []tests{{"internal/recovery", "TestCopy_MomentsEnd"}},
	},
	{
		name:  "copies: a target is not measured",
		edits: []edit{{"internal/copier/copier.go", "\tif refused.Found > 0 {\n", "\tif refused.Found < 0 {\n"}},
		tests: []tests{{"internal/recovery", "TestCopy_Limits"}},
	},
	{
		name:  "copies: one with a tag of its own knows the backups of its source",
		edits: []edit{{"internal/settings/retag.go", "{format.BackupsName, format.FloorPrefix", "{format.FloorPrefix"}},
		tests: []tests{{"internal/recovery", "TestCopy_Numbers"}, {"internal/settings", "TestRetag_BackupsForgotten"}},
	},
	{
		name:  "backups: the command replaces the base of the new one",
		edits: []edit{{"cmd/jay/backup.go", "os.SameFile(now, since) {", "since == nil {"}},
		tests: []tests{{"cmd/jay", "TestScripts/backup$"}},
	},
	{
		name:  "backups: the command replaces the base of the base",
		edits: []edit{{"cmd/jay/backup.go", "return err == nil && replaced.ID == base.Base", "return err == nil && replaced.ID == \"\""}},
		tests: []tests{{"cmd/jay", "TestScripts/backup$"}},
	},
}
