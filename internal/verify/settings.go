package verify

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// readSettings reads what describes the database, and looks for keys of no known kind.
func (v *verifier) readSettings() error {
	v.settings, v.ceilingOK = format.Settings{Separator: ids.DefaultSeparator}, true
	v.origins, v.byNumber = make(map[uint64]format.Origin), make(map[uint32]*openIndex)
	v.byCollection, v.catalogOK = make(map[string]*catalog.Collection), true
	if err := v.readNodes(); err != nil {
		return err
	}
	found := make(map[string]bool)
	err := v.readAll(format.SpaceMeta, func(_ storage.Reader, key, value []byte) error {
		name, rest := cutName(key)
		if len(rest) > 0 || key[len(key)-1] != 0 {
			v.damage(KeyMalformed, key, "the key of a record ends in 00 after its name")
			return nil
		}
		found[name] = true
		v.record(name, key, value)
		return nil
	})
	if err != nil {
		return err
	}
	if !found[format.SettingsName] {
		v.damage(SettingsRecord, metaKey(format.SettingsName), "the record is missing")
	}
	own, there := v.origins[v.settings.Node]
	if !there {
		v.damage(NodeMissing, format.NodeKey(v.settings.Node), "the database writes as node %d, which has no record", v.settings.Node)
	}
	v.rules = ids.Rules{Separator: v.settings.Separator, NodeTag: own.Tag, CaseSensitive: v.settings.CaseSensitive, MaxBytes: ids.MaxBytes}
	v.separator, v.nodeTags = v.rules.Fold(v.settings.Separator), map[string]bool{v.rules.Fold(own.Tag): true}
	return v.readUnknown()
}

func metaKey(name string) []byte { return format.AppendKey(nil, format.SpaceMeta, name) }

// readNodes reads the records of nodes.
func (v *verifier) readNodes() error {
	return v.readAll(format.SpaceNode, func(_ storage.Reader, key, value []byte) error {
		var o format.Origin
		switch {
		case len(key) != 5:
			v.damage(KeyMalformed, key, "the key of a node has 5 bytes, this one has %d", len(key))
		case json.Unmarshal(value, &o) != nil || ids.CheckNodeTag(o.Tag) != nil || o.ID == "":
			v.damage(NodeRecord, key, "the record is no node tag and database ID: %.200q", value)
		default:
			v.origins[uint64(binary.BigEndian.Uint32(key[1:]))] = o
		}
		return nil
	})
}

// record reads one record under 'm'.
func (v *verifier) record(name string, key, value []byte) {
	var err error
	switch {
	case name == format.SettingsName:
		if err = json.Unmarshal(value, &v.settings); err == nil {
			err = ids.CheckSeparator(v.settings.Separator)
		}
		if err != nil {
			v.settings.Separator = ids.DefaultSeparator
			v.damage(SettingsRecord, key, "%v: %.200q", err, value)
		}
	case name == format.CountsName:
		if v.counts, err = format.DecodeCountState(value); err != nil {
			v.damage(CountsState, key, "%v", err)
		}
		v.counted = err == nil
	case name == format.SizesName:
		if v.sizes, err = format.DecodeCountState(value); err != nil {
			v.damage(CountsState, key, "%v", err)
		}
		v.sized = err == nil
	case name == format.IndexesName:
		v.readCatalog(key, value)
	case name == format.RevisionsName:
		if err := revisions.CheckStored(value); err != nil {
			v.damage(RevisionsConfig, key, "%v", err)
		}
	case name == format.EtagName:
		if v.ceiling, err = etagIn(value); err != nil {
			v.damage(EtagRecord, key, "%v", err)
		}
		v.ceilingOK = err == nil
	case name == format.MarkName, name == format.WalkedName, name == format.DefinitionsName:
		if _, err := etagIn(value); err != nil {
			v.damage(EtagRecord, key, "%v", err)
		}
	case name == format.TimesName:
		if err := json.Unmarshal(value, &v.times); err != nil {
			v.damage(TimesState, key, "%v: %.200q", err, value)
		} else {
			v.timed = true
		}
	case name == format.BackupsName:
		if err := json.Unmarshal(value, new(format.Backups)); err != nil {
			v.damage(BackupsRecord, key, "%v: %.200q", err, value)
		}
	case name == format.RewrittenName, name == format.RevisedName:
		if _, err := format.DecodeNumber(value); err != nil {
			v.damage(BackupsRecord, key, "%v", err)
		}
	case name == format.MembershipName:
		v.membership(key, value)
	case name == format.SeenName:
		if err := json.Unmarshal(value, new(format.Seen)); err != nil {
			v.damage(ClusterRecord, key, "%v: %.200q", err, value)
		}
	case name == format.StandbyName:
		if err := json.Unmarshal(value, new(format.Standby)); err != nil {
			v.damage(StandbyRecord, key, "%v: %.200q", err, value)
		}
	case name == format.RestoringName:
		v.damage(RestoreUnfinished, key, "a restore, or a copy, into this store was not finished")
	case strings.HasPrefix(name, format.RenamePrefix):
		var r format.Rename
		if err := json.Unmarshal(value, &r); err != nil || metadata.CheckCollection(r.From) != nil || metadata.CheckCollection(r.To) != nil {
			v.damage(RenameRecord, key, "the record is no pair of names: %.200q", value)
		}
	case strings.HasPrefix(name, format.FloorPrefix):
		if _, err := etagIn(value); err != nil {
			v.damage(FloorRecord, key, "%v", err)
		}
	default:
		v.damage(KeyUnknown, key, "no record of this name is known")
	}
}

// etagIn decodes a record that is an etag.
func etagIn(value []byte) (uint64, error) {
	if len(value) != 8 || binary.BigEndian.Uint64(value) > math.MaxInt64 {
		return 0, fmt.Errorf("the record is no etag: %x", shorten(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

// readCatalog opens the indexes.
func (v *verifier) readCatalog(key, value []byte) {
	var record catalog.Record
	if err := json.Unmarshal(value, &record); err != nil {
		v.catalogOK = false
		v.damage(CatalogRecord, key, "%v: %.200q", err, value)
		return
	}
	for _, lack := range record.Lacks() {
		v.lacks("%s", lack)
	}
	for _, e := range record.Indexes {
		ix, err := catalog.Open(e)
		if err == nil && (len(ix.Fields) == 0 && ix.Unknown == nil || e.State != index.Ready && e.State != index.Building && e.State != index.Dropping) {
			err = fmt.Errorf("state %q, %d fields", e.State, len(ix.Fields))
		}
		if err != nil {
			v.catalogOK = false
			v.damage(CatalogRecord, key, "index %d, %q: %v", e.Number, e.Name, err)
			continue
		}
		if e.Number == 0 || e.Number >= record.Next || v.byNumber[e.Number] != nil {
			v.damage(IndexNumber, key, "index %q has number %d, and the next one is to have %d", e.Name, e.Number, record.Next)
		}
		open := &openIndex{Index: ix, ready: e.State == index.Ready && ix.Unknown == nil}
		v.byNumber[e.Number] = open
		v.indexes = append(v.indexes, open)
		if ix.Unknown != nil {
			v.lacks("%s: its entries are not compared with the documents", strings.TrimPrefix(ix.Unknown.Error(), "jay: "))
		}
		if e.State == index.Building {
			v.lacks("index %q of %s is being built: its entries are not compared with the documents", e.Name, e.Collection)
		}
		if !open.ready {
			continue
		}
		if v.byCollection[ix.Collection] == nil {
			v.byCollection[ix.Collection] = new(catalog.Collection)
		}
		v.byCollection[ix.Collection].Add(ix)
	}
	for _, ci := range v.byCollection {
		ci.Prepare()
	}
}

// readUnknown looks for keys between those of the known kinds.
func (v *verifier) readUnknown() error {
	lo := []byte(nil)
	for _, space := range format.Spaces {
		if err := v.unknownIn(lo, []byte{space.First}); err != nil {
			return err
		}
		lo = []byte{space.First + 1}
	}
	return v.unknownIn(lo, nil)
}

func (v *verifier) unknownIn(lo, hi []byte) error {
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return nil
	}
	return v.walk(lo, hi, func(_ storage.Reader, key, _ []byte) error {
		v.damage(KeyUnknown, key, "no key of this kind is known")
		return nil
	})
}

// checkEtag checks an etag that a record has, and its node.
func (v *verifier) checkEtag(key []byte, node, etag uint64) {
	if _, found := v.origins[node]; !found {
		v.damage(NodeMissing, key, "it was written by node %d, which has no record", node)
	}
	switch {
	case etag == 0 || etag > math.MaxInt64:
		v.damage(EtagForeign, key, "its etag is %d", etag)
	case etag > v.ceiling && v.ceilingOK:
		v.damage(EtagBehind, key, "its etag is %d, and etags are reserved up to %d only", etag, v.ceiling)
	}
}
