package verify

import "github.com/jaydb/jay/internal/format"

// spaces has what each key space needs here beside a step of Run that reads its keys.
// TestSpaces looks for both.
var spaces = map[byte]struct {
	// describe says in words what a key is; it returns "" for a key of no form that is known.
	describe func(key []byte) string

	// missing and wrong are the kinds of damage where a document needs a record that is not
	// there, or that has another value. They are "" where documents need no record.
	missing, wrong Kind
}{
	format.SpaceAttachments:  {describe: describeAttachment},
	format.SpaceChunks:       {describe: describeChunk},
	format.SpaceMembers:      {describe: describeMember, missing: MemberMissing, wrong: MemberValue},
	format.SpaceDocument:     {describe: named("document %q")},
	format.SpaceChanges:      {describe: describeChange, missing: ChangeMissing, wrong: ChangeWrong},
	format.SpaceDefinitions:  {describe: describeDefinition},
	format.SpaceHiLo:         {describe: named("HiLo tag %q")},
	format.SpaceIdentity:     {describe: named("identity %q")},
	format.SpaceCounts:       {describe: describeCount},
	format.SpaceMeta:         {describe: named("record %q of the database")},
	format.SpaceNode:         {describe: describeNode},
	format.SpaceCluster:      {describe: describeCluster},
	format.SpaceRequests:     {describe: describeRequest},
	format.SpaceRevisions:    {describe: describeRevision},
	format.SpaceSubscription: {describe: named("subscription %q")},
	format.SpaceTimes:        {describe: describeDue, missing: TimeMissing, wrong: TimeWrong},
	format.SpaceExchange:     {describe: named("compare-exchange value %q")},
	format.SpaceIndex:        {describe: describeEntry, missing: EntryMissing, wrong: EntryWrong},
	format.SpaceIndexState:   {describe: describeIndexState},
	format.SpaceLeases:       {describe: describeLease},
}
