package query

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// ErrFacet is returned for an invalid facet. The error says which facet, and why.
var ErrFacet = errors.New("jay: invalid facet")

// Facet counts the answers of a query by the values of a field, or by ranges. A query with facets
// returns one row for each facet.
type Facet struct {
	Setup   string       // the ID of a document that has facets, in place of all that follows; "" for none
	Name    string       // in the answer
	Field   Field        // by whose values the documents are counted; the zero Field with Ranges, and for all documents together
	Ranges  []Expr       // a document counts in each range of which the condition is true
	Columns []Column     // what is computed in addition to the count: sum, avg, min, max, first or last of a field, under a name
	Options FacetOptions // not with Ranges
}

// FacetOptions choose terms, which are the values of a facet's field. The zero value takes all of
// them, in the order of values.
type FacetOptions struct {
	Order     FacetOrder
	Start     int  // how many terms are left out
	Size      int  // the greatest number of terms, if HasSize
	HasSize   bool // false means no limit
	Remaining bool // the terms that follow are listed
}

// FacetOrder is the order of the terms of a facet.
type FacetOrder uint8

const (
	FacetValueAsc  FacetOrder = iota // by value, in the order of all values
	FacetValueDesc                   // the other way round
	FacetCountAsc                    // by the number of documents; equal numbers by value
	FacetCountDesc                   // by the number of documents, greatest first; equal numbers by value
)

// facetOrders are the names of orders, RavenDB's TermSortMode.
var facetOrders = [...]string{FacetValueAsc: "ValueAsc", FacetValueDesc: "ValueDesc", FacetCountAsc: "CountAsc", FacetCountDesc: "CountDesc"}

// Bounds of facets.
const (
	MaxFacets      = 64  // of one query
	MaxFacetRanges = 256 // of one facet, and of its columns
)

// check returns ErrFacet for a facet that has no meaning.
func (f *Facet) check() error {
	switch {
	case len(f.Ranges) > MaxFacetRanges || len(f.Columns) > MaxFacetRanges:
		return fmt.Errorf("%w: %d ranges and %d functions, %d are the most of each", ErrFacet, len(f.Ranges), len(f.Columns), MaxFacetRanges)
	case len(f.Ranges) > 0 && !f.Field.isZero():
		return fmt.Errorf("%w: it has a field and ranges", ErrFacet)
	case len(f.Ranges) > 0 && f.Options != FacetOptions{}:
		return fmt.Errorf("%w: options are of the terms of a field, and ranges are given as they are written", ErrFacet)
	case f.Options.Start < 0 || f.Options.Size < 0 || int(f.Options.Order) >= len(facetOrders):
		return fmt.Errorf("%w: options with start %d, size %d and order %d", ErrFacet, f.Options.Start, f.Options.Size, f.Options.Order)
	}
	for _, c := range f.Columns {
		if (c.Func < FuncSum || c.Func > FuncMax) && !c.isPicked() {
			return fmt.Errorf("%w: %s: a facet counts, and has sum, avg, min, max, first and last of fields", ErrFacet, funcText(c.Func, c.Field))
		}
	}
	return nil
}

// facetOptions are the options of a facet as RavenDB's clients send them.
type facetOptions struct {
	TermSortMode          string
	IncludeRemainingTerms bool
	Start                 int
	PageSize              *int `json:",omitempty"`
}

// ParseFacetOptions parses options as RavenDB's clients send them: TermSortMode, Start, PageSize
// and IncludeRemainingTerms. It returns ErrFacet for others.
func ParseFacetOptions(raw []byte) (o FacetOptions, err error) {
	var given facetOptions
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&given); err != nil {
		return o, fmt.Errorf("%w: options: %w", ErrFacet, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return o, fmt.Errorf("%w: options: there is something behind the object", ErrFacet)
	}
	at := slices.Index(facetOrders[:], cmp.Or(given.TermSortMode, facetOrders[0]))
	if at < 0 {
		return o, fmt.Errorf("%w: options: TermSortMode %q, and not ValueAsc, ValueDesc, CountAsc or CountDesc", ErrFacet, given.TermSortMode)
	}
	o = FacetOptions{Order: FacetOrder(at), Start: given.Start, Remaining: given.IncludeRemainingTerms}
	if given.PageSize != nil && *given.PageSize != math.MaxInt32 { // which is none in the C# client
		o.Size, o.HasSize = *given.PageSize, true
	}
	if o.Start < 0 || o.Size < 0 {
		return o, fmt.Errorf("%w: options: Start %d and PageSize %d", ErrFacet, o.Start, o.Size)
	}
	return o, nil
}

// appendOptions is the inverse of ParseFacetOptions.
func (o FacetOptions) appendOptions(dst []byte) []byte {
	given := facetOptions{facetOrders[o.Order], o.Remaining, o.Start, nil}
	if o.HasSize {
		given.PageSize = &o.Size
	}
	raw, _ := json.Marshal(given)
	return append(dst, raw...)
}
