package inspect

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/hilo"
)

func (in *inspection) warn(kind string, name, format string, args ...any) {
	in.report.Warnings = append(in.report.Warnings, Warning{Kind: kind, Name: name, Text: fmt.Sprintf(format, args...)})
}

// checkPrefixes warns about prefixes that collections share. IDs without a prefix
// belong to no collection in particular.
func (in *inspection) checkPrefixes() {
	rows := in.report.Prefixes
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Prefix == rows[0].Prefix {
			n++
		}
		if n > 1 && rows[0].Prefix != "" {
			in.warn(WarnSharedPrefix, rows[0].Prefix, "documents of %d collections have IDs that begin with %q, such as %q and %q", n, rows[0].Prefix, rows[0].Collection, rows[1].Collection)
		}
		rows = rows[n:]
	}
}

// checkNumbers warns about HiLo numbers that were not granted, including those of
// prefixes without a tag.
func (in *inspection) checkNumbers() {
	highest := make(map[string]int64)
	for prefix, t := range in.tags {
		highest[prefix] = t.Highest
	}
	for _, row := range in.foldedRows {
		highest[row.Prefix] = max(highest[row.Prefix], row.HighestHiLo)
	}
	for _, prefix := range slices.Sorted(maps.Keys(highest)) {
		granted := int64(0)
		if t := in.tags[prefix]; t != nil {
			granted = t.Mark
			if t.Max != nil {
				granted = max(granted, *t.Max)
			}
		}
		if n := highest[prefix]; n > granted {
			in.warn(WarnAboveMark, prefix, "number %d of %q is in use, but HiLo has counted up to %d; it will be passed over, or put a Max of %d in the HiLo document", n, prefix, granted, n)
		}
	}
}

// checkIdentity warns about one identity.
func (in *inspection) checkIdentity(prefix string, i *Identity) {
	if i.NeedsFloor {
		in.warn(WarnNeedsFloor, i.Name, "identity %q of this copy waits for a number that the original has not passed; give it with SeedIdentity", i.Name)
	}
	if i.Highest <= i.Last {
		return
	}
	if t := in.tags[prefix]; t != nil && i.Highest <= t.Mark && in.db.HiLo.Generation != hilo.HiLo4 {
		return // more likely a number of HiLo2
	}
	in.warn(WarnAboveIdentity, i.Name, "document %q is above the last number of identity %q, %d; it will be passed over, or seed the identity with %d", prefix+strconv.FormatInt(i.Highest, 10), i.Name, i.Last, i.Highest)
}

// hiloDocument compares the document of a tag, nil if there is none, with its mark.
func (in *inspection) hiloDocument(t *tagState, doc *docs.Document) {
	name := format.HiLoPrefix + t.Tag
	if t.NeedsFloor {
		in.warn(WarnNeedsFloor, t.Tag, "HiLo tag %q of this copy waits for a number that the original has not passed: its ids have no node tag; give the number with RaiseCounters", t.Tag)
	}
	if doc == nil {
		if t.recorded {
			in.warn(WarnHiLoMissing, t.Tag, "document %q is not there, though numbers up to %d are granted; nothing is lost, the next range creates it anew", name, t.Mark)
		}
		return
	}

	t.Document = true
	hi, _ := hilo.NumberOf(doc.JSON(), hilo.ServerHiField)
	t.ServerHi = hi
	switch {
	case hi > 0 && in.db.HiLo.Capacity == 0:
		in.warn(WarnNeedsCapacity, t.Tag, "document %q has a ServerHi, of HiLo2010: no range is granted until Options.HiLoCapacity says how many numbers its clients reserve", name)
		return
	case hi == 0 && gjson.GetBytes(doc.JSON(), format.HiLoMax).Type != gjson.Number:
		in.warn(WarnHiLoWithoutMax, t.Tag, "document %q has no number in %s; the next range goes on from the mark, %d, and puts it right", name, format.HiLoMax, t.Mark)
		return
	}
	used, err := in.db.Ranges.MaxOf(doc.JSON())
	if err != nil {
		used = math.MaxInt64 // no number is left above it
	}
	t.Max = &used
	switch {
	case used > t.Mark:
		in.warn(WarnHiLoEdited, t.Tag, "document %q has Max %d, but only numbers up to %d are granted; the next range goes on from the Max", name, used, t.Mark)
	case used < t.Mark:
		in.warn(WarnHiLoEdited, t.Tag, "document %q has Max %d, but numbers up to %d are granted; the next range goes on from there, and puts it right", name, used, t.Mark)
	}
}
