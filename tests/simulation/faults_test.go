package simulation_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/storagetest"
)

// fault is what a step meets.
type fault struct {
	name   string
	weight int
	before func(w *world)
	after  func(w *world)
}

// faults are all of them. The first one is none.
var faults = slices.Concat(machineFaults, storeFaults, clientFaults, clusterFaults)

// of reports whether a fault is one of these.
func (f fault) of(all []fault) bool {
	return slices.ContainsFunc(all, func(one fault) bool { return one.name == f.name })
}

// in reports whether a world has the fault.
func (f fault) in(world string) bool {
	if f.name == "" {
		return true
	}
	switch world {
	case shared:
		return f.of(storeFaults)
	case members:
		return f.of(machineFaults) || f.of(clusterFaults)
	case serving:
		return f.of(machineFaults) || f.of(clientFaults)
	}
	return f.of(machineFaults)
}

// machineFaults are those of one machine with one database.
var machineFaults = []fault{
	{"", 400, func(*world) {}, func(*world) {}},
	{"power goes in it", 10, cutIn, func(w *world) { w.reopen(w.found(), false) }},
	{"power goes in it and in recovery", 3, cutIn, func(w *world) { w.reopen(w.found(), true) }},
	{"power goes behind it", 4, func(*world) {}, func(w *world) { w.reopen(w.disk.Crash(w.intn(101), w.pieces()), false) }},
	{"killed behind it", 4, func(*world) {}, func(w *world) { w.reopen(w.disk.Crash(100, w.pieces()), w.intn(4) == 0) }},
	{"closed behind it", 4, func(*world) {}, func(w *world) {
		w.model.sync()
		w.reopen(w.disk, false)
	}},
	{"disk full", 2, func(w *world) {
		w.failed = true
		w.disk.Fill()
	}, afterFailure},
	{"disk fails", 4, func(w *world) {
		w.failed = true
		w.disk.FailAfter(w.intn(3))
	}, afterFailure},
	{"tables fail", 1, func(w *world) {
		w.failed = true
		w.disk.FailTables()
	}, afterFailure},
}

// cutIn cuts the power at a sync of the log, soon.
func cutIn(w *world) {
	most := 4
	if w.intn(4) == 0 {
		most = 40 // of long steps
	}
	w.cut = w.cutPower(w.intn(most))
}

// pieces decides which pieces stay of what was not synced. It is a generator of its own, as their number
// depends on what happens in the background.
func (w *world) pieces() *rand.Rand { return rand.New(rand.NewPCG(w.rand.Uint64(), 4)) }

// found returns the disk as the machine finds it: if nothing has cut the power yet, it goes now.
func (w *world) found() *storagetest.Disk {
	if d := w.cut.Disk(); d != nil {
		return d
	}
	return w.disk.Crash(w.intn(101), w.pieces())
}

// afterFailure ends a failure of the disk: with the process, or with the power. A database one of whose calls
// had an unknown outcome acknowledges no write until then, whatever the disk does.
func afterFailure(w *world) {
	if w.unknown {
		w.disk.Heal()
		if err := second(w.db.Put(ctx, "probe/1", []byte(`{}`))); !errors.Is(err, jay.ErrFailed) {
			w.fail("a write after an unknown outcome: %v, want %v", err, jay.ErrFailed)
		}
	}
	if w.intn(2) == 0 {
		fmt.Fprint(w.log, "restarted. ")
		w.reopen(w.disk, false)
		return
	}
	fmt.Fprint(w.log, "the power goes. ")
	w.reopen(w.disk.Crash(w.intn(101), w.pieces()), false)
}

func faultNamed(name string) int {
	for i, f := range faults {
		if f.name == name {
			return i
		}
	}
	panic(failure{fmt.Sprintf("there is no fault %q", name)})
}
