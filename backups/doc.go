// Package backups makes backups of a database on a schedule, and removes old ones. It makes a full
// backup from time to time, and incremental backups in between. It reads each backup to its end
// before the backup counts.
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
// A directory has the backups of one database, and belongs to one [Keeper] at a time. The Keeper
// numbers files in the order in which it makes them, whatever the clock says:
// 00000001-full.jaybackup, 00000002-since.jaybackup, … A full backup and the incremental backups
// that follow it are a chain. Each link of a chain is needed to restore the later links.
// jay.RestoreFrom restores the files that [Chain] returns. A file appears when it is complete and
// on disk. If a process ends while it writes a backup, the next Keeper removes what is left.
//
// # When a chain ends
//
// The next backup is a full one when the last full backup is older than Options.Full, when the
// database no longer knows what has changed, and when a link of the chain is missing or damaged. A
// Keeper reads the chain to its end before it first adds a link to it. It reads the names and the
// beginnings of all files before each backup.
//
// # Encryption
//
// A Keeper encrypts the backups of an encrypted database with the newest key of the database: see
// Options.EncryptionKeys. The key may change from one link of a chain to the next. [Files] reads a
// directory with keys where no database is open.
//
// # What is removed
//
// A Keeper removes only whole chains, the oldest first. It does so after it has read a new backup
// to its end, and only while enough newer backups are left: see Options.Keep and KeepFor. It never
// removes the newest whole chain, nor a chain whose key is missing. It removes nothing because a
// disk is full.
//
// All methods are safe for concurrent use; one backup is made at a time.
package backups
