package raven

import (
	"encoding/json"
	"math/bits"

	"github.com/jaydb/jay/server/internal/serve"
)

// memberSet is a set of the members of commands.
type memberSet uint32

const (
	hasID memberSet = 1 << iota
	hasChangeVector
	hasOriginalChangeVector
	hasIndex
	hasDocument
	hasIDPrefixed
	hasForceRevision
	hasPatch
	hasPatchIfMissing
	hasCreateIfMissing
	hasReturnDocument
	hasIDs
	hasName
	hasContentType
	hasDestinationID
	hasDestinationName
	hasOfRefused
)

// memberNames are the names of the members, in the order of their bits.
var memberNames = []string{"Id", "ChangeVector", "OriginalChangeVector", "Index", "Document", "IdPrefixed", "ForceRevisionCreationStrategy", "Patch", "PatchIfMissing", "CreateIfMissing",
	"ReturnDocument", "Ids", "Name", "ContentType", "DestinationId", "DestinationName", "Counters, TimeSeries, From, To, FromEtl, JsonPatch, TrackedEntities or NewName"}

// commandMembers are the members that the commands of each type heed. A single-node batch
// does not heed OriginalChangeVector, which clients send with each PUT and DELETE.
var commandMembers = map[string]memberSet{
	"PUT":                   hasID | hasChangeVector | hasOriginalChangeVector | hasDocument | hasForceRevision,
	"DELETE":                hasID | hasChangeVector | hasOriginalChangeVector | hasIDPrefixed,
	"PATCH":                 hasID | hasChangeVector | hasPatch | hasPatchIfMissing | hasCreateIfMissing | hasReturnDocument,
	"BatchPATCH":            hasIDs | hasPatch | hasPatchIfMissing,
	"CompareExchangePUT":    hasID | hasIndex | hasDocument,
	"CompareExchangeDELETE": hasID | hasIndex,
	"AttachmentPUT":         hasID | hasChangeVector | hasName | hasContentType,
	"AttachmentDELETE":      hasID | hasChangeVector | hasName,
	"AttachmentCOPY":        hasID | hasChangeVector | hasName | hasDestinationID | hasDestinationName,
	"AttachmentMOVE":        hasID | hasChangeVector | hasName | hasDestinationID | hasDestinationName,
	"ForceRevisionCreation": hasID,
}

// given returns the members that the command has. One that is null or empty is not there,
// but for an empty ChangeVector, which asks for what does not exist.
func (cmd *command) given() (set memberSet) {
	add := func(there bool, member memberSet) {
		if there {
			set |= member
		}
	}
	has := func(text json.RawMessage) bool { return len(text) > 0 && string(text) != "null" }
	add(cmd.ID != nil && *cmd.ID != "", hasID)
	add(cmd.ChangeVector != nil, hasChangeVector)
	add(cmd.OriginalChangeVector != nil, hasOriginalChangeVector)
	add(cmd.Index != nil, hasIndex)
	add(has(cmd.Document), hasDocument)
	add(cmd.IDPrefixed, hasIDPrefixed)
	add(cmd.ForceRevisionCreated != "" && cmd.ForceRevisionCreated != "None", hasForceRevision)
	add(cmd.Patch != nil, hasPatch)
	add(cmd.PatchIfMissing != nil, hasPatchIfMissing)
	add(has(cmd.CreateIfMissing), hasCreateIfMissing)
	add(cmd.ReturnDocument, hasReturnDocument)
	add(len(cmd.IDs) > 0, hasIDs)
	add(cmd.Name != "", hasName)
	add(cmd.ContentType != "", hasContentType)
	add(cmd.DestinationID != "", hasDestinationID)
	add(cmd.DestinationName != "", hasDestinationName)
	add(has(cmd.Counters) || has(cmd.TimeSeries) || has(cmd.From) || has(cmd.To) || has(cmd.FromEtl) ||
		has(cmd.JSONPatch) || has(cmd.TrackedEntities) || has(cmd.NewName), hasOfRefused)
	return set
}

// checkMembers refuses members that only commands of other types have. Commands of unknown
// types are refused elsewhere.
func (cmd *command) checkMembers() error {
	allowed, known := commandMembers[cmd.Type]
	if !known {
		return nil
	}
	given := cmd.given()
	if extra := given &^ allowed; extra != 0 {
		return serve.BadRequest("a command of type %s has no %s", cmd.Type, memberNames[bits.TrailingZeros32(uint32(extra))])
	}
	if given&hasPatchIfMissing != 0 && given&hasCreateIfMissing != 0 {
		return serve.BadRequest("PatchIfMissing has no effect with CreateIfMissing")
	}
	return nil
}
