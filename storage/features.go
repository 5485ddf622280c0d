package storage

// BaseFormat is the format number of a new store, and of an older store after it was opened for
// writing. The number of a store rises above BaseFormat only when a feature is first used.
//
// Part of the on-disk format. Must not change.
const BaseFormat = 4

// Format is the number of the newest database format that this version reads: the format of keys
// and values, and of everything stored with them. An engine whose stores outlive the program
// records the [StoreFormat] in each store, and refuses a store with a higher number with a
// [FormatError].
const Format = BaseFormat + len(AllFeatures)

// Feature is a kind of stored data that a version has introduced, and that older programs do not
// know. A store that does not use the feature keeps its number, so that older programs still open
// it.
type Feature struct {
	Format int    `json:"format"` // the number that a store has at least, once it uses the feature
	Name   string `json:"name"`   // for people: one or two words in lower case
}

// AllFeatures are the features of this version, in the order of their numbers, which follow
// BaseFormat without a gap. A change of the stored bytes adds a row here, a row to the table of
// docs/format.md, and a call of Tx.RequireFeature where the new bytes are first written.
//
// Part of the on-disk format. A row must not change.
var AllFeatures = [...]Feature{FeatureDefinitions, FeatureUTC, FeatureStandby, FeatureDeletedIDs, FeatureKeptSums, FeatureExpressions, FeatureText, FeatureComputed, FeaturePlaces, FeatureVectors, FeatureLoads, FeatureEncrypted, FeatureSchemas}

// FeatureDefinitions are definitions that are kept in the database.
var FeatureDefinitions = Feature{5, "definitions"}

// FeatureUTC is an index that takes text without an offset as an instant in UTC, or has a condition
// that does.
var FeatureUTC = Feature{6, "as utc"}

// FeatureStandby is a store that follows the store of another database. Only the other database
// writes.
var FeatureStandby = Feature{7, "standby"}

// FeatureDeletedIDs is the change of a deleted document whose ID differs from its folded form: the
// change has the ID as it was written.
var FeatureDeletedIDs = Feature{8, "deleted ids"}

// FeatureKeptSums is an index of the kind "groups", which keeps counts and sums.
var FeatureKeptSums = Feature{9, "kept sums"}

// FeatureExpressions is an index of an expression, an index with an expression in its condition, or
// an index that notes the documents for which an expression fails.
var FeatureExpressions = Feature{10, "index expressions"}

// FeatureText is an index of the kind "text", which finds documents by their words.
var FeatureText = Feature{11, "text"}

// FeatureComputed is a computed index.
var FeatureComputed = Feature{12, "computed indexes"}

// FeaturePlaces is an index of the kind "places", which finds documents by the locations of their
// places.
var FeaturePlaces = Feature{13, "places"}

// FeatureVectors is an index of the kind "vectors", which finds documents by the similarity of
// their vectors.
var FeatureVectors = Feature{14, "vectors"}

// FeatureLoads is an index that reads fields of documents to which other documents refer.
var FeatureLoads = Feature{15, "loads"}

// FeatureEncrypted is a store whose files are encrypted. It is a property of an engine's files, not
// of the keys and values in them: Engine.Format does not return it, and RequireFeature ignores it.
// So a copy, a backup or a standby of an encrypted store need not be encrypted.
var FeatureEncrypted = Feature{16, "encrypted"}

// FeatureSchemas are rules about the documents of collections: see package schema.
var FeatureSchemas = Feature{17, "schemas"}

// Features are the features that a program, or an engine of it, knows: AllFeatures, or, in tests,
// the features of another version. There are at most 64.
type Features []Feature

// Newest returns the number of the newest format.
func (known Features) Newest() int { return BaseFormat + len(known) }

// Format returns the format of a store that uses some of the features.
func (known Features) Format(used FeatureSet) StoreFormat {
	f := StoreFormat{Number: BaseFormat}
	for i, feature := range known {
		if used&(1<<i) != 0 {
			f.Number, f.Features = feature.Format, append(f.Features, feature)
		}
	}
	return f
}

// All returns the set of all features.
func (known Features) All() FeatureSet { return 1<<len(known) - 1 }

// FeatureSet has a bit for each of some Features. The first Feature has the lowest bit.
type FeatureSet uint64

// StoreFormat says which format a store has. The zero value says nothing.
type StoreFormat struct {
	// Number is the newest format that a program must know to open the store: that of the last of
	// Features, or BaseFormat; less in a store that an older version made and that is only read.
	Number int

	// Features are in use, or a transaction was about to use them: ascending.
	Features []Feature
}

// Needs are the features that a transaction needs, for engines. The zero value is none.
type Needs struct {
	Features FeatureSet
	Unknown  *FormatError // names those that are not known; or nil
}

// Add adds a feature, of which only the number may be given.
func (n *Needs) Add(known Features, f Feature) {
	i := f.Format - BaseFormat - 1
	if i >= 0 && i < len(known) && (f.Name == "" || f.Name == known[i].Name) {
		n.Features |= 1 << i
		return
	}
	if n.Unknown == nil {
		n.Unknown = &FormatError{What: "database", Newest: known.Newest()}
	}
	n.Unknown.Found = max(n.Unknown.Found, f.Format)
	if f.Name != "" {
		n.Unknown.Features = append(n.Unknown.Features, f.Name)
	}
}

// Err returns Unknown as an error.
func (n *Needs) Err() error {
	if n.Unknown == nil {
		return nil
	}
	return n.Unknown
}
