package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

// statsCommand shows figures about the database.
type statsCommand struct {
	Disk   bool          `help:"Also show what collections and indexes take on disk, about."`
	Memory bool          `help:"Also show how --max-memory is divided, and what is used of it."`
	Watch  time.Duration `placeholder:"D" help:"Show it again after each D, such as 1s, until Ctrl-C: work in the background goes on."`
}

// Help is shown by jay stats --help.
func (*statsCommand) Help() string {
	return `Sizes are those of IDs, metadata and bodies before compression; what the directory takes up is shown below.

Examples:

    jay stats
    jay stats --disk
    jay stats --json | jq '.collections[] | select(.documents > 1000) | .name'`
}

// Run prints the figures.
func (c *statsCommand) Run(ctx context.Context, a *app) error {
	if c.Watch < 0 || c.Watch > 0 && c.Watch < 10*time.Millisecond {
		return usageError{text: "--watch must be 10ms or more", command: a.command}
	}
	return a.withDatabase(false, func(db *jay.DB) error {
		for {
			err := c.show(ctx, a, db)
			if c.Watch == 0 || err != nil {
				if c.Watch > 0 && ctx.Err() != nil {
					return nil
				}
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(c.Watch):
			}
		}
	})
}

// show prints the figures once.
func (c *statsCommand) show(ctx context.Context, a *app, db *jay.DB) error {
	stats := countedStats
	if c.Watch > 0 {
		stats = func(ctx context.Context, db *jay.DB) (jay.Stats, error) { return db.Stats(ctx) }
	}
	s, err := stats(ctx, db)
	if err != nil {
		return err
	}
	indexes, err := db.Indexes(ctx, "")
	if err != nil {
		return err
	}
	r := newStatsResult(a.dir, s, indexes)
	if c.Memory {
		if a.looked {
			return usageError{text: "--memory shows the memory of this command, and another program has the database open: DB.Stats of that program shows its own", command: a.command}
		}
		r.Memory = &s.Memory
	}
	if c.Disk {
		usage, err := db.DiskUsage(ctx)
		if err != nil {
			return err
		}
		r.Disk = &usage
	}
	return c.print(a, s, r)
}

// print prints figures.
func (c *statsCommand) print(a *app, s jay.Stats, r statsResult) (err error) {
	if a.json {
		err = a.printLine(r)
	} else {
		if c.Watch > 0 && a.width > 0 {
			err = a.clear()
		}
		if err == nil {
			err = a.printStats(s, r)
		}
	}
	if err != nil {
		return err
	}
	return a.stdout.Flush()
}

// diskTable is the table of what takes space on disk.
func diskTable(u *jay.DiskUsage, width int) string {
	t := newFigures("On disk", "Size, about")
	for _, c := range u.Collections {
		t.add(c.Name, size(c.Bytes))
	}
	for _, i := range u.Indexes {
		t.add("index "+i.Collection+" "+i.Name, size(i.Bytes))
	}
	for _, part := range []struct {
		name  string
		bytes int64
	}{{"documents with other IDs", u.OtherDocuments}, {"revisions", u.Revisions}, {"attachments", u.Attachments}, {"order of writes", u.Changes}, {"other", u.Other}, {"log", u.LogBytes}} {
		if part.bytes > 0 {
			t.add(part.name, size(part.bytes))
		}
	}
	t.total("all files", size(u.TotalBytes))
	free := ""
	if u.FreeBytes >= 0 {
		free = fmt.Sprintf("Free on the disk: %s\n", size(u.FreeBytes))
	}
	return t.render(width) + "\n" + free + "\n"
}

// noProgress is the time after which stats gives up waiting for a count that makes no
// progress.
const noProgress = 5 * time.Second

// countedStats returns the figures of a database when all its documents are counted,
// which takes a while the first time that a database of an older Jay is opened. If the
// count makes no progress, because a document is damaged, it returns the figures so
// far.
func countedStats(ctx context.Context, db *jay.DB) (jay.Stats, error) {
	seen, since := int64(-1), time.Now()
	for {
		s, err := db.Stats(ctx)
		if err != nil || !s.Counting {
			return s, err
		}
		counted := int64(0)
		for _, c := range s.Collections {
			counted += c.Documents + c.Bytes
		}
		if counted != seen {
			seen, since = counted, time.Now()
		} else if time.Since(since) > noProgress {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// statsResult is what stats prints with --json.
type statsResult struct {
	Dir           string              `json:"dir"` // with --url that URL
	Separator     string              `json:"separator"`
	NodeTag       string              `json:"nodeTag"`
	CaseSensitive bool                `json:"caseSensitive"`
	Prefixes      bool                `json:"prefixCollections"`
	Documents     int64               `json:"documents"`
	Bytes         int64               `json:"bytes"`
	Collections   []collectionResult  `json:"collections"`
	Revisions     []jay.RevisionCount `json:"revisions,omitempty"`
	Counters      jay.Counters        `json:"counters"`
	Expiry        jay.ExpiryStats     `json:"expiry"`
	Engine        jay.EngineStats     `json:"engine"`

	Attachments   jay.AttachmentStats   `json:"attachments"`
	Subscriptions jay.SubscriptionStats `json:"subscriptions"`

	Disk     *jay.DiskUsage   `json:"disk,omitempty"`     // --disk
	Memory   *jay.MemoryStats `json:"memory,omitempty"`   // --memory
	Counting bool             `json:"counting,omitempty"` // not all documents are counted yet
}

// collectionResult is the part of statsResult about one collection.
type collectionResult struct {
	jay.CollectionStats
	Indexes int `json:"indexes,omitempty"`
}

func newStatsResult(dir string, s jay.Stats, indexes []jay.IndexInfo) statsResult {
	r := statsResult{
		Dir:           dir,
		Separator:     s.Separator,
		NodeTag:       s.NodeTag,
		CaseSensitive: s.CaseSensitive,
		Prefixes:      s.PrefixCollections,
		Collections:   []collectionResult{}, // [] in JSON, not null
		Revisions:     s.Revisions,
		Counters:      s.Counters,
		Expiry:        s.Expiry,
		Engine:        s.Engine,
		Attachments:   s.Attachments,
		Subscriptions: s.Subscriptions,
		Counting:      s.Counting,
	}
	for _, one := range s.Collections {
		c := collectionResult{CollectionStats: one}
		for _, i := range indexes {
			if strings.EqualFold(i.Collection, one.Name) {
				c.Indexes++
			}
		}
		r.Collections = append(r.Collections, c)
		r.Documents += one.Documents
		r.Bytes += one.Bytes
	}
	return r
}

// memoryTable is the table of the shares of the memory.
func memoryTable(m *jay.MemoryStats) *figures {
	t := newFigures("Memory", "Used", "At most")
	for _, share := range m.Shares {
		t.add(share.Name, size(share.UsedBytes), size(share.Bytes))
	}
	t.total("all", "", size(m.BoundBytes))
	return t
}

func (a *app) printStats(s jay.Stats, all statsResult) error {
	collections := newFigures("Collection", "Documents", "Size", "Indexes")
	for _, c := range all.Collections {
		collections.add(c.Name, c.Documents, size(c.Bytes), c.Indexes)
	}
	collections.total("all", all.Documents, size(all.Bytes))

	counters := newFigures("Counter", "Last number")
	counters.add("etag (all writes)", s.Counters.Etag)
	for _, name := range slices.Sorted(maps.Keys(s.Counters.Identities)) {
		counters.add("identity "+name, s.Counters.Identities[name])
	}
	for _, tag := range slices.Sorted(maps.Keys(s.Counters.HiLo)) {
		counters.add("HiLo "+tag, s.Counters.HiLo[tag])
	}
	revisions := ""
	if len(s.Revisions) > 0 {
		t := newFigures("Revisions of", "Beside the documents")
		for _, c := range s.Revisions {
			t.add(c.Collection, c.Revisions)
		}
		revisions = t.render(a.width) + "\n\n"
	}

	prefixes := "suggest no collection"
	if s.PrefixCollections {
		prefixes = "suggest collections"
	}
	disk := size(int64(s.Engine.DiskBytes)) + " on disk"
	if n := s.Engine.ReclaimableBytes; n > 0 {
		disk += fmt.Sprintf(" (jay compact frees about %s)", size(int64(n)))
	}
	if s.Engine.Encrypted {
		disk += ", encrypted"
		if n := s.Engine.OlderKeys; n > 0 {
			disk += fmt.Sprintf(", %s with an older key", count(int64(n), "file"))
		}
	}
	attached := ""
	if n := s.Attachments; n.Attachments > 0 {
		attached = fmt.Sprintf("%s, %s, of which %s are stored\n\n", count(n.Attachments, "attachment"), size(n.Bytes), size(n.StoredBytes))
	}
	attached += subscriptionText(s.Subscriptions)
	onDisk := ""
	if all.Disk != nil {
		onDisk = diskTable(all.Disk, a.width)
	}
	if all.Counting {
		onDisk += "Not all documents are counted yet.\n\n"
	}
	if all.Memory != nil {
		onDisk += memoryTable(all.Memory).render(a.width) + "\n\n"
	}
	return a.print(fmt.Sprintf("%s\n\n%s\n\n%s%s%sDatabase %s: %s, separator %s, node tag %s, prefixes %s\n%s",
		collections.render(a.width), counters.render(a.width), revisions, attached, onDisk, all.Dir, disk, s.Separator, s.NodeTag, prefixes, expiryText(s.Expiry)))
}

// subscriptionText returns the line about subscriptions, if there are any.
func subscriptionText(s jay.SubscriptionStats) string {
	if s.Subscriptions == 0 {
		return ""
	}
	text := count(s.Subscriptions, "subscription")
	if s.Disabled > 0 {
		text += fmt.Sprintf(", %d of them disabled", s.Disabled)
	}
	if s.Behind > 0 {
		text += fmt.Sprintf(", up to %d etags behind", s.Behind)
	}
	return text + ": jay subscriptions lists them\n\n"
}

// expiryText returns the lines about expiry and refresh, if there are entries or one is off.
func expiryText(e jay.ExpiryStats) string {
	text := ""
	if e.Expiring+e.Refreshing > 0 {
		text = fmt.Sprintf("Due at some time: %d documents expire, %d are refreshed; due already: %d\n", e.Expiring, e.Refreshing, e.Due)
	}
	switch {
	case e.Disabled && e.RefreshDisabled:
		text += "Expiration and refresh are off: jay expiration switches them on\n"
	case e.Disabled:
		text += "Expiration is off: jay expiration switches it on\n"
	case e.RefreshDisabled:
		text += "Refresh is off: jay expiration switches it on\n"
	}
	if e.Kept > 0 {
		text += fmt.Sprintf("An older Jay has written %d documents with an @expires that stay: docs/expiry.md says why\n", e.Kept)
	}
	return text
}
