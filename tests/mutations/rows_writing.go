package main

// writing are changes to how values are encoded, to the cache and to walks.
var writing = []mutation{
	{
		name:  "write: an attachment beside a build leaves the entries to it",
		edits: []edit{{"internal/write/stage.go", "if ci.IsBuilt() {", "if ci != nil || ci.IsBuilt() {"}},
		tests: []tests{{"tests/index", "TestBuild_BesideAttachments"}},
	},
	{
		name:  "horizon: the etag that new feeds stand at is told before it is on disk",
		edits: []edit{{"internal/horizon/horizon.go", "\tif h.env.Synced {\n\t\th.env.OwnSyncs.Add(1) // as", "\tif false {\n\t\th.env.OwnSyncs.Add(1) // as"}},
		tests: []tests{{"internal/feed", "TestChanges_BesideHeldDeletions"}},
	},
	{
		name:  "expiry: what is not due any more is passed before that is on disk",
		edits: []edit{{"internal/expiry/expiry.go", "\tif s.env.Synced {\n\t\t// What", "\tif false {\n\t\t// What"}},
		tests: []tests{{"internal/expiry", "TestSweep_PutOffBesideSync"}},
	},
	{
		name:  "the depth of a trusted body is not looked at",
		edits: []edit{{"internal/codec/codec.go", "\tif m.Info.View == nil || m.Info.Depth > limits.MaxDepth {", "\tif m.Info.View == nil {"}},
		tests: []tests{{"internal/codec", "TestEncode_TrustedIsScanned$|TestShape"}},
	},
	{
		name:  "the size of a trusted body is not looked at",
		edits: []edit{{"internal/codec/codec.go", "\tif len(body)+m.leftOutBytes(v) > limits.MaxBytes || m.Info", "\tif m.Info"}},
		tests: []tests{{"internal/codec", "TestEncode_TrustedIsScanned$|TestShape"}},
	},
	{
		name:  "repeated keys of a trusted body are not looked at",
		edits: []edit{{"internal/codec/codec.go", " || m.Info.textKeys && repeatsKeys(body) {", " {"}},
		tests: []tests{{"internal/codec", "TestEncode_TrustedIsScanned$|TestShape"}},
	},
	{
		name:  "names in tags of a trusted body are not looked at",
		edits: []edit{{"internal/codec/typeinfo.go", "w.sound && isPlainName(name) && arePlainOptions(options)", "w.sound && arePlainOptions(options)"}},
		tests: []tests{{"internal/codec", "TestEncode_TrustedIsScanned$|TestShape"}},
	},
	{
		name:  "@metadata in a tag is trusted",
		edits: []edit{{"internal/codec/typeinfo.go", `strings.IndexByte("-_.", c)`, `strings.IndexByte("-_.@", c)`}},
		tests: []tests{{"internal/codec", "TestEncode_TrustedIsScanned$|TestShape"}},
	},
	{
		name:  "a method of a pointer is overlooked",
		edits: []edit{{"internal/codec/typeinfo.go", "\t\tif t.Implements(i) || reflect.PointerTo(t).Implements(i) {", "\t\tif t.Implements(i) {"}},
		tests: []tests{{"internal/codec", "TestEncode_TrustedIsScanned$|TestShape"}},
	},
	{
		name:  "an interface is overlooked",
		edits: []edit{{"internal/codec/typeinfo.go", "\t\tw.quiet = false // it can hold a value of any type\n\t\tw.times = true\n", "\t\tw.times = true\n\t\treturn 0\n"}},
		tests: []tests{{"internal/codec", "TestEncode_TrustedIsScanned$|TestShape"}},
	},
	{
		name:  "a field that is left out uncovers another",
		edits: []edit{{"internal/codec/typeinfo.go", "\t\tif f.Anonymous || names[name] {", "\t\tif f.Anonymous {"}},
		tests: []tests{{"internal/codec", "TestEncode_TrustedIsScanned$|TestShape"}},
	},
	{
		name:  "an embedded struct is trusted",
		edits: []edit{{"internal/codec/typeinfo.go", "\t\tif f.Anonymous || names[name] {", "\t\tif names[name] {"}},
		tests: []tests{{"internal/codec", "TestEncode_TrustedIsScanned$|TestShape"}},
	},
	{
		name:  "a map whose keys may become one is trusted",
		edits: []edit{{"internal/codec/typeinfo.go", "\t\t\tw.sound = false // two times", "\t\t\t_ = 0 // two times"}},
		tests: []tests{{"internal/codec", "TestEncode_TrustedIsScanned$|TestShape"}},
	},
	{
		name:  "one type of 18 is trusted, json.Number",
		edits: []edit{{"internal/codec/typeinfo.go", "\t\tw.sound = w.sound && t != reflect.TypeFor[json.Number]()\n", ""}},
		tests: []tests{{"internal/codec", "TestEncode_TrustedIsScanned$|TestShape"}},
	},
	{
		name:  "a user's MarshalJSON is called by two goroutines",
		edits: []edit{{"internal/codec/codec.go", "\tif !m.Info.Quiet || n < ManyValues {", "\tif n < ManyValues {"}},
		tests: []tests{{"internal/codec", "TestEncode_UserCodeOnOneGoroutine$"}},
	},
	{
		name:  "what a session keeps lies in memory that is used again",
		edits: []edit{{"internal/codec/codec.go", "\te.room, e.last = nil, nil\n", "\te.room, e.last = e.room[:0], nil\n"}},
		tests: []tests{{"internal/codec", "TestEncode_NothingShared$"}},
	},
	{
		name:  "a stale document enters the cache after a write",
		edits: []edit{{"internal/docs/cache.go", "\tif stripe.writing.Load() != 0 || stripe.epoch.Load() != t.epoch {", "\tif false && stripe != nil {"}},
		tests: []tests{{"internal/docs", "TestCache_Writes$"}},
	},
	{
		name:  "a write does not remove the document from the cache",
		edits: []edit{{"internal/docs/cache.go", "\tif e := s.entries[hash]; e != nil {\n\t\ts.remove(e)\n\t}\n\treturn hash\n", "\treturn hash\n"}},
		tests: []tests{{".", "TestDocumentCache_NothingStale$"}},
	},
	{
		name:  "a page begins again at the first document that is not clustered",
		edits: []edit{{"internal/docs/cursor.go", "\t\tif lo, hi, any := limits.bounds(space, \"\"); any {", "\t\tlimits.after = \"\"\n\t\tif lo, hi, any := limits.bounds(space, \"\"); any {"}},
		tests: []tests{{".", "TestDocuments_AgainstFilter$"}},
	},
	{
		name:  "the cache keeps a document that is written, under all verbs at once",
		edits: []edit{{"internal/docs/cache.go", "\tif e := s.entries[hash]; e != nil {\n\t\ts.remove(e)\n\t}\n\treturn hash\n", "\treturn hash\n"}},
		tests: []tests{{"tests/storm", "TestStorm$"}},
	},
	{
		name:  "what a refused transaction staged is not rolled back, under all verbs at once",
		edits: []edit{{"storage/lsm/queue.go", "\t\tif r.err != nil {\n\t\t\te.staged.rollback(before)\n", "\t\tif false {\n\t\t\te.staged.rollback(before)\n"}},
		tests: []tests{{"tests/storm", "TestStorm$"}},
	},
	{
		name:  "Get of a transaction reads the engine, under all verbs at once",
		edits: []edit{{"internal/txn/txn.go", "t.docs.ReadFrom(t.ahead, t.snapshot, folded)", "t.docs.ReadFrom(t.ahead, t.db.Env.Engine, folded)"}},
		tests: []tests{{"tests/storm", "TestStorm$"}},
	},
	{
		name:  "all writers wait for the disk while one reads there what it replaces",
		edits: []edit{{"internal/write/disk.go", "return d.heat.Load() >= slowLeast", "return false"}},
		tests: []tests{{"internal/write", "TestSlowReads$"}},
	},
	{
		name:  "a transaction reads under the lock what it writes without having read it",
		edits: []edit{{"internal/txn/update.go", "t.db.Writer.Prefetch(ctx, t.ops)", "t.db.Writer.Prefetch(ctx, nil)"}},
		tests: []tests{{"internal/write", "TestSlowReads$"}},
	},
}
