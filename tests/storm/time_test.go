package storm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
)

// What of the storm hangs on time: documents with attachments, documents that expire, and
// readers that follow all writes.

const (
	stormFiles    = 3 // documents with attachments that one goroutine writes and no other
	stormContents = 5 // contents, which all share
)

// timed is what one goroutine knows of its documents.
type timed struct {
	files    map[string]map[string]int // contents by document and name
	cutFiles map[string]bool           // documents whose attachments Close may have cut
	fleeting map[string]time.Time      // when documents expire
}

func newTimed() timed {
	return timed{make(map[string]map[string]int), make(map[string]bool), make(map[string]time.Time)}
}

// content returns a content: none, some bytes, or more than a chunk.
func content(n int) []byte {
	sizes := [stormContents]int{0, 1, 100, 5000, 300_000}
	return bytes.Repeat([]byte{'a' + byte(n)}, sizes[n])
}

func (g *gust) file() string { return fmt.Sprintf("files/%d/%d", g.g, g.IntN(stormFiles)) }

// attach puts, copies or removes an attachment of a document of its own, or the document.
func (g *gust) attach() error {
	id, name := g.file(), fmt.Sprint("n", g.IntN(3))
	all, there := g.files[id]
	if !there {
		g.cutFiles[id] = true
		if _, err := g.db.Put(ctx, id, []byte(`{}`), jay.InCollection("Files")); err != nil {
			return err
		}
		all = make(map[string]int)
		g.files[id] = all
		delete(g.cutFiles, id)
	}
	at, after := g.db.Attachments(id), maps.Clone(all)
	var err error
	switch g.cutFiles[id] = true; g.IntN(6) {
	case 0:
		err = at.Delete(ctx, name)
		delete(after, name)
	case 1:
		to := fmt.Sprint("n", g.IntN(3))
		n, found := all[name]
		err = at.Copy(ctx, name, id, to)
		switch {
		case found:
			after[to] = n
		case errors.Is(err, jay.ErrNoAttachment):
			err = nil
		}
	case 2:
		err = g.db.Delete(ctx, id)
		after = nil
	default:
		n := g.IntN(stormContents)
		_, err = at.Put(ctx, name, bytes.NewReader(content(n)))
		after[name] = n
	}
	if err != nil {
		return err
	}
	delete(g.cutFiles, id)
	if g.files[id] = after; after == nil {
		delete(g.files, id)
	}
	return nil
}

// readAttachments compares the attachments of a document of its own.
func (g *gust) readAttachments() error {
	id := g.file()
	if g.files[id] == nil {
		return nil
	}
	got, err := attachmentsOf(g.db, id)
	if err == nil && !maps.Equal(got, g.files[id]) {
		g.wrong("%s has the attachments %v, want %v", id, got, g.files[id])
	}
	return err
}

// attachmentsOf reads the attachments of a document, none if it is not there.
func attachmentsOf(db *jay.DB, id string) (map[string]int, error) {
	list, err := db.Attachments(id).List(ctx)
	if errors.Is(err, jay.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := make(map[string]int)
	for _, info := range list {
		r, err := db.Attachments(id).Get(ctx, info.Name)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		_, err = r.WriteTo(&b)
		if err = errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
		all[info.Name] = -1
		for n := range stormContents {
			if bytes.Equal(b.Bytes(), content(n)) {
				all[info.Name] = n
			}
		}
	}
	return all, nil
}

// expire puts a document that expires soon, or moves when it does.
func (g *gust) expire() error {
	id := fmt.Sprintf("fleeting/%d/%d", g.g, g.IntN(50))
	at := time.Now().Add(time.Duration(g.IntN(20_000)) * time.Microsecond)
	g.fleeting[id] = time.Time{} // not known, if this is cut
	_, err := g.db.Put(ctx, id, []byte(`{}`), jay.InCollection("Fleeting"), jay.ExpiresAt(at))
	if err == nil {
		g.fleeting[id] = at
	}
	return err
}

// sweep does what is due, now and then: afterwards nothing is there that was due before.
func (g *gust) sweep() error {
	if g.IntN(10) != 0 {
		return nil
	}
	begun := time.Now()
	if _, err := g.db.Sweep(ctx); err != nil {
		return err
	}
	for id, at := range g.fleeting {
		if at.IsZero() || at.After(begun.Add(-time.Microsecond)) {
			continue
		}
		switch _, err := g.db.Get(ctx, id); {
		case err == nil:
			g.wrong("%s is there, %s after it has expired", id, begun.Sub(at))
		case !errors.Is(err, jay.ErrNotFound):
			return err
		}
		delete(g.fleeting, id)
	}
	return nil
}

// checkAttachments compares all attachments of a database that was just opened, and how
// often each content is counted. It takes over what Close may have cut.
func (s *storm) checkAttachments(gusts []*gust) {
	s.t.Helper()
	want := jay.AttachmentStats{}
	counted := make(map[int]bool)
	for _, g := range gusts {
		for i := range stormFiles {
			id := fmt.Sprintf("files/%d/%d", g.g, i)
			got, err := attachmentsOf(s.db, id)
			must(s.t, err)
			if g.cutFiles[id] {
				delete(g.cutFiles, id)
				if g.files[id] = got; got == nil {
					delete(g.files, id)
				}
			}
			if !maps.Equal(got, g.files[id]) {
				s.wrong("%s has the attachments %v, want %v", id, got, g.files[id])
			}
			for _, n := range got {
				if n < 0 {
					s.wrong("%s has an attachment that was never put", id)
					continue
				}
				size := int64(len(content(n)))
				want.Attachments++
				want.Bytes += size
				if !counted[n] {
					counted[n] = true
					want.Contents++
					want.StoredBytes += size
				}
			}
		}
	}
	got, err := s.db.Stats(ctx)
	must(s.t, err)
	if got.Attachments.Removing = 0; got.Attachments != want {
		s.wrong("attachments: %+v, want %+v", got.Attachments, want)
	}
}

// followers are readers that follow all writes of a storm, round by round.
type followers struct {
	feeds []*stormFeed
	done  map[uint64]bool // etags that the worker of the subscription has acknowledged
	sent  map[uint64]bool // in its newest batch
}

// stormFeed is a feed and what its reader holds.
type stormFeed struct {
	token string
	etag  uint64
	etags map[string]uint64 // of all documents, by folded ID
}

const stormFeeds = 3

func newFollowers() *followers {
	f := &followers{done: make(map[uint64]bool), sent: make(map[uint64]bool)}
	for range stormFeeds {
		f.feeds = append(f.feeds, &stormFeed{etags: make(map[string]uint64)})
	}
	return f
}

// begin lets the readers follow until the database is closed.
func (s *storm) begin(group *sync.WaitGroup) {
	db := s.db
	for i, f := range s.followers.feeds {
		random := rand.New(rand.NewPCG(uint64(i), 5))
		group.Go(func() {
			for {
				left := 1 + random.IntN(5000) // changes until it comes again
				for c, err := range db.Changes(ctx, f.token) {
					if errors.Is(err, jay.ErrClosed) {
						return
					}
					if err != nil {
						s.wrong("feed %d: %v", i, err)
						return
					}
					f.apply(s, c)
					if left--; left == 0 {
						break
					}
				}
			}
		})
	}
	group.Go(func() {
		err := db.Subscriptions().Work(ctx, "storm", &jay.WorkOptions{BatchDocuments: 50}, func(_ context.Context, b *jay.SubscriptionBatch) error {
			s.followers.acknowledged()
			for _, item := range b.Items {
				s.followers.send(s, item)
			}
			return nil
		})
		if !errors.Is(err, jay.ErrClosed) {
			s.wrong("subscription: %v", err)
		}
	})
}

func (f *stormFeed) apply(s *storm, c jay.Change) {
	if c.Etag <= f.etag {
		s.wrong("Changes: etag %d of %s comes after %d", c.Etag, c.ID, f.etag)
	}
	f.etag, f.token = c.Etag, c.Token()
	if folded := ids.Fold(c.ID); c.Deleted {
		delete(f.etags, folded)
	} else {
		f.etags[folded] = c.Etag
	}
}

// acknowledged notes that the batch before is done.
func (f *followers) acknowledged() {
	maps.Copy(f.done, f.sent)
	clear(f.sent)
}

// send notes that an item was sent.
func (f *followers) send(s *storm, item jay.SubscriptionItem) {
	if f.done[item.Etag] {
		s.wrong("subscription: %s at %d was acknowledged, and comes again", item.ID, item.Etag)
	}
	f.sent[item.Etag] = true
}

// checkFollowers lets the readers catch up with a database that was just opened, and
// compares what they hold.
func (s *storm) checkFollowers() {
	s.t.Helper()
	for i, f := range s.followers.feeds {
		for c, err := range s.db.Changes(ctx, f.token, jay.UntilCaughtUp()) {
			must(s.t, err)
			f.apply(s, c)
		}
		// Documents that expire go meanwhile.
		maps.DeleteFunc(f.etags, func(id string, _ uint64) bool { return strings.HasPrefix(id, "fleeting/") })
		documents := 0
		for doc, err := range s.db.Documents(ctx, jay.Scan{}) {
			must(s.t, err)
			if doc.Collection() == "Fleeting" {
				continue
			}
			documents++
			if etag := f.etags[ids.Fold(doc.ID())]; etag != doc.Metadata().Etag {
				s.wrong("feed %d has %s at %d, and it is at %d", i, doc.ID(), etag, doc.Metadata().Etag)
			}
		}
		if len(f.etags) != documents {
			s.wrong("feed %d has %d documents, and there are %d", i, len(f.etags), documents)
		}
	}
	doubtful := maps.Clone(s.followers.sent) // acknowledged, perhaps, when the database was closed
	clear(s.followers.sent)
	must(s.t, s.db.Subscriptions().Work(ctx, "storm", &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, b *jay.SubscriptionBatch) error {
		for _, item := range b.Items {
			s.followers.send(s, item)
		}
		s.followers.acknowledged()
		return nil
	}))
	for doc, err := range s.db.Documents(ctx, jay.Scan{Collection: "Storm"}) {
		must(s.t, err)
		if etag := doc.Metadata().Etag; !s.followers.done[etag] && !doubtful[etag] {
			s.wrong("subscription: %s at %d was never sent", doc.ID(), etag)
		}
	}
	maps.Copy(s.followers.done, doubtful)
}
