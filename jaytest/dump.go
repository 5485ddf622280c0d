package jaytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jaydb/jay"
)

// Dump returns the database as text. The text has the documents in the order of their IDs, each
// with its collection, its custom metadata, its attachments and its body. It also has the indexes,
// the subscriptions, the numbers of revisions, and the counters.
//
// Dump leaves out change vectors, etags and @last-modified, which depend on how often and when a
// document was written, and not on its content. It also leaves out the documents of HiLo, which
// repeat the counters. The counter of HiLo is the highest number that was granted: the end of the
// range from which the database draws, or, after a Restart, the last number that the database drew.
func Dump(t T, db *jay.DB) string {
	t.Helper()
	d := &dumper{t: t, db: db}
	for _, part := range []struct {
		name string
		dump func() error
	}{{"documents", d.documents}, {"indexes", d.indexes}, {"subscriptions", d.subscriptions}, {"revisions", d.revisions}, {"counters", d.counters}} {
		before := d.Len()
		fmt.Fprintf(d, "# %s\n", part.name)
		head := d.Len()
		if err := part.dump(); err != nil {
			t.Fatalf("jaytest: dump: %s: %v", part.name, err)
		}
		if d.Len() == head {
			d.Truncate(before) // an empty part
			continue
		}
		d.WriteByte('\n')
	}
	return strings.TrimSuffix(d.String(), "\n")
}

// dumper writes a dump.
type dumper struct {
	bytes.Buffer
	t  T
	db *jay.DB
}

// hiloCollection holds the documents of HiLo.
const hiloCollection = "@hilo"

func (d *dumper) documents() error {
	for doc, err := range d.db.Documents(background, jay.Scan{}) {
		if err != nil {
			return err
		}
		m := doc.Metadata()
		if m.Collection == hiloCollection {
			continue
		}
		fmt.Fprintf(d, "%s (%s)\n", m.ID, m.Collection)
		if len(m.Custom) > 0 {
			if err := d.indented("  @metadata ", m.Custom); err != nil {
				return err
			}
		}
		for _, a := range m.Attachments {
			fmt.Fprintf(d, "  @attachment %q %q %d bytes %s\n", a.Name, a.ContentType, a.Size, a.Hash)
		}
		if err := d.indented("  ", doc.Body()); err != nil {
			return err
		}
	}
	return nil
}

// indented writes JSON over several lines, as a change of one member is a change of one
// line then.
func (d *dumper) indented(head string, text []byte) error {
	d.WriteString(head)
	if err := json.Indent(&d.Buffer, text, "  ", "  "); err != nil {
		return err
	}
	return d.WriteByte('\n')
}

func (d *dumper) indexes() error {
	infos, err := d.db.Indexes(background, "")
	if err != nil {
		return err
	}
	for _, ix := range infos {
		fmt.Fprintf(d, "%s %q on %s", ix.Collection, ix.Name, strings.Join(ix.Fields, ", "))
		if ix.Unique {
			d.WriteString(", unique")
		}
		if ix.Where != "" {
			fmt.Fprintf(d, ", where %s", ix.Where)
		}
		if ix.Kind != "" {
			fmt.Fprintf(d, ", %s", strings.Join(append([]string{ix.Kind}, ix.OptionTexts()...), " "))
		}
		if ix.State != jay.IndexReady {
			fmt.Fprintf(d, ", %v", ix.State)
		}
		d.WriteByte('\n')
	}
	return nil
}

func (d *dumper) subscriptions() error {
	all, err := d.db.Subscriptions().List(background)
	if err != nil {
		return err
	}
	for _, s := range all {
		fmt.Fprintf(d, "%s: %s\n", s.Name, s.Query)
	}
	return nil
}

func (d *dumper) revisions() error {
	all, err := d.db.Revisions().Counts(background)
	if err != nil {
		return err
	}
	for _, c := range all {
		fmt.Fprintf(d, "%s %d\n", c.Collection, c.Revisions)
	}
	return nil
}

func (d *dumper) counters() error {
	c, err := d.db.Counters(background)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Identities)) {
		fmt.Fprintf(d, "identity %s %d\n", name, c.Identities[name])
	}
	for _, tag := range slices.Sorted(maps.Keys(c.HiLo)) {
		fmt.Fprintf(d, "hilo %s %d\n", tag, c.HiLo[tag])
	}
	return nil
}
