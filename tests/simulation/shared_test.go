package simulation_test

import (
	"fmt"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/storagetest"
)

// storeFaults are those of a store that two databases share.
var storeFaults = []fault{
	{"one is opened again", 8, func(*world) {}, func(w *world) {
		w.restart()
		w.examineBoth()
	}},
	{"store cannot be reached", 8, failCommits(storagetest.Unavailable, 3), afterCommits},
	{"replies are lost", 12, failCommits(storagetest.LostReply, 2), afterCommits},
	{"requests are lost", 8, failCommits(storagetest.LostRequest, 2), afterCommits},
	{"others commit first", 12, failCommits(storagetest.Conflicting, 8), afterCommits},
}

// failCommits makes the next commits of the store fail.
func failCommits(next storagetest.Outcome, most int) func(w *world) {
	return func(w *world) {
		w.failed = true
		w.store.Fail(next, 1+w.intn(most))
	}
}

// afterCommits ends what failCommits has begun: the store answers again, and perhaps the database that was
// called is opened anew. A call that declares or drops indexes and whose outcome is not known is made again, as its
// caller would: until then no database knows what to build.
func afterCommits(w *world) {
	w.store.Fail(storagetest.Committed, 0)
	w.failed = false
	if w.intn(2) == 0 {
		fmt.Fprint(w.log, "restarted. ")
		w.restart()
	}
	w.examine()
	if again := w.again; again != nil {
		fmt.Fprint(w.log, "again: ")
		w.again = nil
		again()
	}
	w.examineBoth()
}

// restart closes the database of the step and opens it again, while the other one goes on.
func (w *world) restart() {
	w.must(w.db.Close())
	var err error
	w.dbs[w.at], err = jay.Open(dir, w.options())
	if err != nil {
		w.dbs[w.at], w.db = nil, nil
		w.fail("open: %v", err)
	}
	w.db = w.dbs[w.at]
}

// openBoth opens the two databases of a shared store.
func (w *world) openBoth() {
	for range 2 {
		db, err := jay.Open(dir, w.options())
		w.must(err)
		w.dbs = append(w.dbs, db)
	}
	w.turn(0)
}

// turn gives the next step to one of the databases.
func (w *world) turn(at int) { w.at, w.db = at, w.dbs[at] }

// examineBoth compares what each of the two databases shows with what must be there. The one of the step
// comes first: it decides what has become of a call in doubt.
func (w *world) examineBoth() {
	at := w.at
	for i := range w.dbs {
		w.turn((at + i) % len(w.dbs))
		w.examine()
	}
	w.turn(at)
}

// endBoth examines and closes the two databases.
func (w *world) endBoth() {
	w.examineBoth()
	for _, db := range w.dbs {
		w.must(db.Close())
	}
	w.dbs, w.db = nil, nil
}
