package simulation_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/look"
	"github.com/jaydb/jay/internal/parts"
	sharing "github.com/jaydb/jay/internal/shared"
)

// looking is a program that looks into the database, through a connection in memory.
type looking struct {
	listener *look.Listener // of the owner
	db       *jay.DB        // the looking side
}

// lookInto reads everything as another program does that looks into the database. Half of those who look stay for later steps.
func lookInto(w *world) {
	if w.failed || w.cut != nil {
		return
	}
	if w.looking == nil {
		w.looking = w.newLook()
	}
	there := w.looking.db
	if difference := differ(w.model.state, w.read(there), nil); difference != "" {
		w.fail("who looks into the database sees: %s", difference)
	}
	w.verify(there)
	w.checkQueries(there)
	if err := second(there.Put(ctx, "probe/1", []byte(`{}`))); !errors.Is(err, jay.ErrReadOnly) {
		w.fail("a write of one who looks: %v, want %v", err, jay.ErrReadOnly)
	}
	fmt.Fprintf(w.log, "%d documents. ", len(w.model.documents("")))
	if w.agreement != nil || w.intn(2) == 0 {
		w.lookAway()
	}
}

func (w *world) newLook() *looking {
	owner := parts.Of(w.db)
	shows := sharing.NewOwner(owner.Env.Engine, owner.Reserved.LastEtag, owner.Reserved.Session())
	l := &looking{listener: look.Pipes(look.Source{Engine: owner.Env.Engine, Snapshot: shows.Snapshot})}
	var err error
	l.db, err = jay.Open(dir, &jay.Options{Engine: look.Driver{Dial: l.listener.Dial}, ReadOnly: true, Now: w.now, HiLoMode: w.settings.mode})
	if err != nil {
		w.must(errors.Join(err, l.listener.Close()))
	}
	return l
}

// lookAway ends looking.
func (w *world) lookAway() {
	if w.looking != nil {
		w.must(errors.Join(w.looking.db.Close(), w.looking.listener.Close()))
		w.looking = nil
	}
}

// ownerEnds ends the owner's side. Who looks has to be told so by each call, and may look again.
func (w *world) ownerEnds() {
	if w.looking == nil {
		return
	}
	w.must(w.looking.listener.Close())
	if _, err := w.looking.db.Get(ctx, "probe/1"); !errors.Is(err, jay.ErrUnavailable) {
		w.fail("a read of one who looks into a database that was closed: %v, want %v", err, jay.ErrUnavailable)
	}
	w.must(w.looking.db.Close())
	w.looking = nil
}

// checkQueries compares answers of a copy of the database, one for each index, with those that must come.
func (w *world) checkQueries(db *jay.DB) {
	for _, collection := range collections[:2] {
		a := w.intn(7)
		n, err := db.Query(collection).Where(jay.Eq("a", a)).Count(ctx)
		w.must(err)
		if want := len(w.withA(collection, a)); n != int64(want) {
			w.fail("of a copy, a = %d in %s counts %d, want %d", a, collection, n, want)
		}
		all, err := db.Indexes(ctx, collection)
		w.must(err)
		ready := 0
		for _, ix := range all {
			if ix.State == jay.IndexReady && !strings.HasPrefix(ix.Name, partPrefix) {
				ready++
			}
		}
		want := 0
		for _, there := range w.model.indexes[collection] {
			if there {
				want++
			}
		}
		if ready != want && !w.unready && w.renaming == nil {
			w.fail("a copy has %d indexes of %s, want %d", ready, collection, want)
		}
	}
}
