package jaytest

import (
	"math/rand/v2"

	"github.com/jaydb/jay"
)

// FillDisk fills the disk: from now on no file can grow, and no file can be made. The error is
// storagetest.ErrFull, which is a syscall.ENOSPC. The write that meets it returns
// jay.ErrUnknownOutcome, and later writes return jay.ErrFailed. Reads go on, except those that would have
// to show the write of unknown outcome, such as queries of its collection. Restart makes room and opens the
// database again.
func (db *DB) FillDisk() { db.Disk.Fill() }

// FailSyncs lets n more commits reach the disk. From then on syncs and writes fail with
// storagetest.ErrInjected, as on a dead disk.
func (db *DB) FailSyncs(n int) { db.Disk.FailAfter(n) }

// FailReads makes every read of a document fail with jay.ErrUnreadable, as on a dead disk. It first
// compacts the database and opens it again, because otherwise documents would be read from memory.
// So it replaces DB.DB, as Restart does.
func (db *DB) FailReads() {
	db.t.Helper()
	if err := db.Compact(background); err != nil {
		db.t.Fatalf("jaytest: compact: %v", err)
	}
	db.Restart()
	db.Disk.FailReads(1)
}

// Heal ends all faults of the disk. A database that has failed still refuses writes until Restart.
func (db *DB) Heal() {
	db.Disk.Heal()
	db.Disk.FailReads(0)
}

// maxPowerCuts is how many syncs EveryPowerCut follows.
const maxPowerCuts = 1000

// EveryPowerCut tests what a power failure leaves of an operation. It runs act once for each sync
// of act, each time in a new database that prepare has filled. The power fails at that sync. act
// runs to its end, but nothing it writes after that remains. EveryPowerCut then opens the database
// as the machine would find it, calls Check, and passes the database to check. It does so twice for
// each sync: once the disk keeps nothing that was not synced, and once about half of it. Finally,
// check gets the database after an act without a failure. EveryPowerCut returns the number of power
// failures.
//
// check tests the promise of the operation, such as: all of it is there, or none. An act that syncs
// nothing, or more than 1,000 times, fails the test. act may use several goroutines if they have
// ended when it returns. prepare may be nil.
func EveryPowerCut(t T, opts *jay.Options, prepare, act, check func(db *DB)) (cuts int) {
	t.Helper()
	for n := range maxPowerCuts {
		for _, keep := range []int{0, 50} {
			if !powerCut(t, opts, n, keep, prepare, act, check) {
				if n == 0 {
					t.Fatalf("jaytest: EveryPowerCut: the operation synced nothing, so that no power failure was tested")
				}
				return cuts
			}
			cuts++
		}
	}
	t.Fatalf("jaytest: EveryPowerCut: the operation syncs more than %d times", maxPowerCuts)
	return cuts
}

// powerCut cuts the power at the sync of act that n others precede. It returns false if
// there is none.
func powerCut(t T, opts *jay.Options, n, keep int, prepare, act, check func(db *DB)) bool {
	t.Helper()
	db := newDB(t, opts)
	db.open()
	if prepare != nil {
		prepare(db)
	}
	cut := db.Disk.CutPower(n, keep, rand.New(rand.NewPCG(uint64(keep), 1)))
	act(db)
	db.Disk.OnSync(nil)
	found := cut.Disk()
	db.stop()
	if found != nil {
		db.Disk = found
	}
	db.open()
	Check(t, db.DB)
	check(db)
	db.stop()
	return found != nil
}
