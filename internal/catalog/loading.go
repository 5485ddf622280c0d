package catalog

import (
	"bytes"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/loads"
	"github.com/jaydb/jay/query"
)

// Indexes that load documents
//
// What a document has in such an index follows from its body and from those of the documents to which it refers. So its entries are made of
// an expanded body (package loads), in the transaction, and are made again when one of the others changes. Who refers to a document is
// kept under the number of the index, behind all entries:
//
//	'x' number(4) ff 00 referenced id 00 id 00 → nothing
//
// There is a key for each ID that the document refers to, whether there is such a document or not. Part of the on-disk format. Must not change.

// MaxReferrers bounds how many documents of one index are entered again by a write of the document that they load. docs/limits.md
// has it. A variable for tests.
var MaxReferrers = 1024

// Loader is a Keeper of a kind that reads bodies itself, and knows what it loads.
type Loader interface {
	// LoadedFields returns the fields that it reads, and the fan-out of which their elements are.
	LoadedFields() (query.Each, []query.Field)
}

// setLoads finds out what the index loads.
func (ix *Index) setLoads() error {
	fields := query.Fields(ix.Filter)
	var each query.Each
	if l, is := ix.Keeper.(Loader); is {
		var read []query.Field
		each, read = l.LoadedFields()
		fields = append(fields, read...)
	} else {
		for _, f := range ix.Fields {
			fields = append(fields, f.Query())
		}
	}
	paths, err := query.LoadedPaths(each, fields)
	if err != nil {
		return fmt.Errorf("%w: index %q: %w", errs.ErrIndex, ix.Info.Name, err)
	}
	if ix.Loads = loads.NewSpec(paths); ix.Loads == nil {
		return nil
	}
	switch ix.Keeper.(type) {
	case Computer:
	default:
		return fmt.Errorf("%w: index %q: one of the kind %q has no fields of documents that are loaded", errs.ErrIndex, ix.Info.Name, ix.Info.Kind)
	}
	if ix.Info.Unique {
		return fmt.Errorf("%w: index %q: a field of a document that is loaded is not unique: the other document would be refused for the sake of two that refer to it", errs.ErrIndex, ix.Info.Name)
	}
	return nil
}

// Add adds an index to those of the collection, before Prepare.
func (ci *Collection) Add(ix *Index) {
	if ix.Loads == nil {
		ci.Indexes = append(ci.Indexes, ix)
		return
	}
	ci.Loading = append(ci.Loading, Only(ix))
}

// Only returns the index of a collection of one.
func (ci *Collection) Only() *Index { return ci.Indexes[0] }

// WithoutLoads returns the catalog without the indexes that load documents.
func (c *Catalog) WithoutLoads() *Catalog {
	if len(c.Loading) == 0 {
		return c
	}
	less := *c
	less.All, less.Loading = nil, nil
	for _, ix := range c.All {
		if ix.Loads == nil {
			less.All = append(less.All, ix)
		}
	}
	less.ByCollection = make(map[string]*Collection, len(c.ByCollection))
	for name, ci := range c.ByCollection {
		of := *ci
		of.Loading = nil
		less.ByCollection[name] = &of
	}
	return &less
}

// AppendReferencePrefix appends what the keys of those begin with that refer to a document.
func AppendReferencePrefix(dst []byte, number uint32, referenced string) []byte {
	dst = append(format.AppendIndexPrefix(dst, number), format.SpaceErrors, 0)
	return append(append(dst, referenced...), 0)
}

// AppendReferenceKey appends the key of a reference of a document.
func AppendReferenceKey(dst []byte, number uint32, referenced, folded string) []byte {
	return append(append(AppendReferencePrefix(dst, number, referenced), folded...), 0)
}

// IsReference reports whether a key of an index is that of a reference.
func IsReference(key []byte) bool {
	return len(key) > 6 && key[5] == format.SpaceErrors && key[6] == 0
}

// Referrer returns the folded ID of the document that refers to another, in the memory of the key, and the ID of the other.
func Referrer(key []byte) (folded, referenced []byte, err error) {
	if IsReference(key) {
		referenced, rest, found := bytes.Cut(key[7:], []byte{0})
		if n := len(rest) - 1; found && len(referenced) > 0 && n > 0 && bytes.IndexByte(rest, 0) == n {
			return rest[:n], referenced, nil
		}
	}
	return nil, nil, fmt.Errorf("reference %x: %w", key, errs.ErrCorrupt)
}

// describeReference describes the key of a reference.
func describeReference(key []byte) string {
	folded, referenced, err := Referrer(key)
	if err != nil {
		return Hex(key)
	}
	return fmt.Sprintf("reference of document %q to %q", folded[:min(len(folded), maxShown)], referenced[:min(len(referenced), maxShown)])
}

// Describe says in words what a key of the index is, for people.
func (ix *Index) Describe(key []byte) string {
	if ix.Loads != nil && IsReference(key) {
		return describeReference(key)
	}
	return ix.Keeper.Describe(key)
}

// AppendID appends the folded ID of the document that an entry of an index belongs to, whose Keeper is a Decoder: see Decoder.
func (ix *Index) AppendID(dst, key, value []byte) ([]byte, error) {
	if ix.Loads == nil || !IsReference(key) {
		return ix.Decoder.AppendID(dst, key, value)
	}
	folded, _, err := Referrer(key)
	if err == nil && len(value) > 0 {
		err = fmt.Errorf("reference %x, value %x: %w", key, value, errs.ErrCorrupt)
	}
	return append(dst, folded...), err
}

// StoredFacts is that of the Keeper, which is a Stager, and of references.
func (ix *Index) StoredFacts(key, value []byte, add func(fact []byte, weight int64) error) error {
	if ix.Loads == nil || !IsReference(key) {
		return ix.Stager.StoredFacts(key, value, add)
	}
	if _, _, err := Referrer(key); err != nil || len(value) > 0 {
		return fmt.Errorf("reference %x, value %x: %w", key, value, errs.ErrCorrupt)
	}
	return add(key[format.IndexPrefix:], 1)
}

// ReferenceFact is the fact of a reference: see Stager.GivenFacts.
func ReferenceFact(referenced, folded string) []byte {
	return AppendReferenceKey(nil, 0, referenced, folded)[format.IndexPrefix:]
}
