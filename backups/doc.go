// Package backups keeps backups of a database by itself: a full one now and then, what has changed since in between,
// each read to its end before it counts, old ones removed.
//
//	keeper, err := backups.Open(db, backups.Options{Dir: "/backups/shop", Every: time.Hour, Keep: 48})
//	if err != nil {
//		return err
//	}
//	defer keeper.Close()
//	go keeper.Run(ctx)
//
// # Files
//
// A directory has the backups of one database, and belongs to one [Keeper] at a time. Files are numbered in the order in which
// they were made, whatever the clock says: 00000001-full.jaybackup, 00000002-since.jaybackup, … A full one and those
// that follow it are a chain, and each is needed to restore the later ones. jay.RestoreFrom restores the
// files that [Chain] returns. A file appears when it is complete and on disk; what a process leaves that ends meanwhile
// is removed by the next Keeper.
//
// # When a chain ends
//
// A new full backup begins when the last one is older than Options.Full, when the database cannot tell any more what has
// changed, and when a link of the chain is missing or damaged: a Keeper reads the chain to its end before it
// first follows it, and looks at the names and the beginnings of all files each time.
//
// # Encryption
//
// The backups of a database with keys are encrypted with its newest one: see Options.EncryptionKeys. The key may change from one link of a chain to the next. Where
// no database is open, [Files] reads a directory with keys.
//
// # What is removed
//
// Only whole chains, oldest first, after a new backup was found whole, and only while enough newer ones are left: see
// Options.Keep and KeepFor. The newest whole chain is never removed, and neither is one whose key
// is missing. A full disk removes nothing.
//
// All methods are safe for concurrent use; one backup is made at a time.
package backups
