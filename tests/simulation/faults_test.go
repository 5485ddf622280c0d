package simulation_test

import (
	"fmt"
	"math/rand/v2"

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
var faults = append(machineFaults, storeFaults...)

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
	w.cut = w.disk.CutPower(w.intn(most), w.intn(101), w.pieces())
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

// afterFailure ends a failure of the disk: with the process, or with the power.
func afterFailure(w *world) {
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
