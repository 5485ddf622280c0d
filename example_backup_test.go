package jay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/standby"
)

// A full backup, an incremental one that follows it, and the database that both make.
func ExampleDB_Backup() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.Put(ctx, "users/ann", json.RawMessage(`{"Name":"Ann"}`), jay.InCollection("Users"))

	var monday, tuesday bytes.Buffer
	info, err := db.Backup(ctx, &monday)
	if err != nil {
		log.Fatal(err)
	}
	db.Put(ctx, "users/bob", json.RawMessage(`{"Name":"Bob"}`), jay.InCollection("Users"))
	next, err := db.Backup(ctx, &tuesday, jay.BackupSince(info.ID))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("full:", info.Documents, "document; since then:", next.Documents)

	dir := filepath.Join(os.TempDir(), fmt.Sprint("jay-restored-", os.Getpid()))
	defer os.RemoveAll(dir)
	restored, err := jay.Restore(ctx, dir, jay.RestoreOptions{CopyTag: "B"}, &monday, &tuesday)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("restored:", restored.Documents, "documents, under the tag", restored.NodeTag)
	// Output:
	// full: 1 document; since then: 1
	// restored: 2 documents, under the tag B
}

// A backup in a file, and the database that it makes.
func ExampleDB_BackupTo() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.Put(ctx, "users/ann", json.RawMessage(`{"Name":"Ann"}`), jay.InCollection("Users"))

	dir, err := os.MkdirTemp("", "jay-backups-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	monday := filepath.Join(dir, "monday.backup")
	if _, err := db.BackupTo(ctx, monday); err != nil {
		log.Fatal(err)
	}
	restored, err := jay.RestoreFrom(ctx, filepath.Join(dir, "new.db"), jay.RestoreOptions{CopyTag: "B"}, monday)
	fmt.Println(restored.Documents, err)
	// Output: 1 <nil>
}

// Progress of a backup that none is going to follow.
func ExampleBackupOption() {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	var out bytes.Buffer
	_, err = db.Backup(context.Background(), &out, jay.BackupOnce(), jay.BackupProgress(func(bytes int64) {}))
	fmt.Println(err)
	// Output: <nil>
}

// What a backup is can be read from its beginning.
func ExampleBackupInfo() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.Put(ctx, "a", json.RawMessage(`{}`))
	var out bytes.Buffer
	made, err := db.Backup(ctx, &out)
	if err != nil {
		log.Fatal(err)
	}
	read, err := jay.ReadBackup(&out)
	fmt.Println(read.ID == made.ID, read.Etag, read.Base == "", err)
	// Output: true 1 true <nil>
}

// A backup that was cut short.
func ExampleBackupError() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	var out bytes.Buffer
	if _, err := db.Backup(ctx, &out); err != nil {
		log.Fatal(err)
	}
	out.Truncate(out.Len() - 1)
	_, err = jay.VerifyBackup(ctx, nil, &out)
	var damage *jay.BackupError
	fmt.Println(errors.As(err, &damage), damage.Problem)
	// Output: true it ends here, without its trailer: it was cut short, or never completed
}

// If nothing is known of the base, make a full backup.
func ExampleBackupBaseError() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	var out bytes.Buffer
	_, err = db.Backup(ctx, &out, jay.BackupSince("the ID of the last one"))
	var base *jay.BackupBaseError
	if errors.As(err, &base) {
		out.Reset()
		_, err = db.Backup(ctx, &out)
	}
	fmt.Println(base.Base, err)
	// Output: the ID of the last one <nil>
}

// In the place of the original, whose counters were seen to be below these numbers.
func ExampleRestoreOptions() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.Put(ctx, "invoices|", json.RawMessage(`{}`))
	var out bytes.Buffer
	if _, err := db.Backup(ctx, &out); err != nil {
		log.Fatal(err)
	}

	dir := filepath.Join(os.TempDir(), fmt.Sprint("jay-in-place-", os.Getpid()))
	defer os.RemoveAll(dir)
	floors := jay.Counters{Etag: 1_000_000, Identities: map[string]int64{"invoices|": 5000}}
	if _, err := jay.Restore(ctx, dir, jay.RestoreOptions{SameTag: true, Floors: floors}, &out); err != nil {
		log.Fatal(err)
	}
	restored, err := jay.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer restored.Close()
	m, err := restored.Put(ctx, "invoices|", json.RawMessage(`{}`))
	fmt.Println(m.ID, err)
	// Output: invoices/5001 <nil>
}

// What a restore has made.
func ExampleRestoreInfo() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Name"}})
	var out bytes.Buffer
	if _, err := db.Backup(ctx, &out); err != nil {
		log.Fatal(err)
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprint("jay-info-", os.Getpid()))
	defer os.RemoveAll(dir)
	var info jay.RestoreInfo
	info, err = jay.Restore(ctx, dir, jay.RestoreOptions{CopyTag: "B"}, &out)
	fmt.Println(len(info.Backups), info.Indexes, info.NodeTag, err)
	// Output: 1 1 B <nil>
}

// A checkpoint, read by two handles at once.
func ExampleDB_Checkpoint() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "jay")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := jay.Open(filepath.Join(dir, "db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.Put(ctx, "users/ann", json.RawMessage(`{"Name":"Ann"}`))
	if err := db.Checkpoint(ctx, filepath.Join(dir, "copy")); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		reader, err := jay.Open(filepath.Join(dir, "copy"), &jay.Options{ReadOnly: true})
		if err != nil {
			log.Fatal(err)
		}
		defer reader.Close()
		doc, err := reader.Get(ctx, "users/ann")
		fmt.Println(string(doc.Body()), err)
		_, err = reader.Put(ctx, "users/bob", json.RawMessage(`{}`))
		fmt.Println(errors.Is(err, jay.ErrReadOnly))
	}
	// Output:
	// {"Name":"Ann"} <nil>
	// true
	// {"Name":"Ann"} <nil>
	// true
}

// A restore says which indexes it has left out: here is a database that refuses none.
func ExampleLeftOutIndex() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Mail"}, Unique: true}); err != nil {
		log.Fatal(err)
	}
	var backup bytes.Buffer
	if _, err := db.Backup(ctx, &backup); err != nil {
		log.Fatal(err)
	}

	dir := filepath.Join(os.TempDir(), fmt.Sprint("jay-restored-indexes-", os.Getpid()))
	defer os.RemoveAll(dir)
	restored, err := jay.Restore(ctx, dir, jay.RestoreOptions{CopyTag: "B"}, &backup)
	if err != nil {
		log.Fatal(err)
	}
	for _, left := range restored.LeftOut {
		fmt.Println(left, left.Documents) // two documents with one address
	}
	fmt.Println(restored.Indexes, "index,", len(restored.LeftOut), "left out")
	// Output: 1 index, 0 left out
}

// Everything that is stored is read and compared, while the database is in use.
func ExampleDB_Verify() {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	check(err)
	defer db.Close()
	_, err = db.Put(ctx, "squirrels/hazel", json.RawMessage(`{"nuts":33}`))
	check(err)

	report, err := db.Verify(ctx, nil)
	check(err)
	fmt.Println(report.Found, "damages,", report.Documents, "document")
	// Output:
	// 0 damages, 1 document
}

// A check of a database in use leaves the disk time for others.
func ExampleVerifyOptions() {
	db, err := jay.OpenMemory(nil)
	check(err)
	defer db.Close()
	report, err := db.Verify(context.Background(), &jay.VerifyOptions{BytesPerSecond: 50 << 20, MaxDamages: 10})
	check(err)
	fmt.Println(report.Found)
	// Output:
	// 0
}

// Progress has the steps for a progress bar.
func ExampleVerifyProgress() {
	db, err := jay.OpenMemory(nil)
	check(err)
	defer db.Close()
	last := ""
	_, err = db.Verify(context.Background(), &jay.VerifyOptions{Progress: func(p jay.VerifyProgress) {
		if p.Step != last && p.Step != "files" {
			last = p.Step
			fmt.Print(p.Step, " ")
		}
	}})
	check(err)
	// Output:
	// settings leases documents changes collections counters expiry subscriptions definitions results of requests cluster indexes attachments
}

// damagedDirectory is a database whose marker of the manifest is missing, as after a
// tool that skips empty files.
func damagedDirectory() (dir string) {
	dir, err := os.MkdirTemp("", "jay")
	check(err)
	db, err := jay.Open(dir, nil)
	check(err)
	_, err = db.Put(context.Background(), "squirrels/hazel", json.RawMessage(`{"nuts":33}`))
	check(err)
	check(db.Close())
	markers, err := filepath.Glob(filepath.Join(dir, "marker.manifest.*"))
	check(err)
	check(os.Remove(markers[0]))
	return dir
}

// A directory that is not opened any more can be read all the same.
func ExampleVerifyReport() {
	dir := damagedDirectory()
	defer os.RemoveAll(dir)
	report, err := jay.VerifyDir(context.Background(), dir, nil, nil)
	check(err)
	fmt.Println(report.Found, "damage,", report.Documents, "document can be read")
	// Output:
	// 1 damage, 1 document can be read
}

// A damage says what it is, what is lost, and what to do.
func ExampleDamage() {
	dir := damagedDirectory()
	defer os.RemoveAll(dir)
	report, err := jay.VerifyDir(context.Background(), dir, nil, nil)
	check(err)
	for _, damage := range report.Damages {
		fmt.Println(damage.Kind)
		fmt.Println(damage.Subject + ": " + damage.Problem)
		fmt.Println("lost:", damage.Loss)
	}
	// Output:
	// file-missing
	// file marker.manifest.*: the file is missing: no manifest is named
	// lost: everything
}

// What is left of a damaged directory is saved into a new one.
func ExampleRepairReport() {
	dir := damagedDirectory()
	defer os.RemoveAll(dir)
	into := dir + ".new"
	defer os.RemoveAll(into)
	report, err := jay.Repair(context.Background(), dir, into, nil, nil)
	check(err)
	fmt.Println(report.Documents, "document saved,", report.Missing, "lost;", report.After.Found, "damages are left")
	// Output:
	// 1 document saved, 0 lost; 0 damages are left
}

// What was lost is listed by what it is.
func ExampleLostItem() {
	dir := damagedDirectory()
	defer os.RemoveAll(dir)
	into := dir + ".new"
	defer os.RemoveAll(into)
	report, err := jay.Repair(context.Background(), dir, into, nil, nil)
	check(err)
	for _, item := range report.Lost {
		fmt.Println(item.What, item.ID, item.Why)
	}
	fmt.Println(len(report.Lost), "losses")
	// Output:
	// 0 losses
}

// A database that has lost a file is not opened, and nothing in it changes.
func ExampleDamageError() {
	dir, err := os.MkdirTemp("", "jay")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := jay.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := db.Close(); err != nil {
		log.Fatal(err)
	}
	markers, err := filepath.Glob(filepath.Join(dir, "marker.manifest.*"))
	if err != nil {
		log.Fatal(err)
	}
	if err := os.Remove(markers[0]); err != nil { // as a tool that skips empty files does
		log.Fatal(err)
	}

	_, err = jay.Open(dir, nil)
	var damage *jay.DamageError
	if errors.As(err, &damage) {
		fmt.Println(damage.File)
		fmt.Println(damage.Problem)
		fmt.Println("lost without it:", damage.Loss)
	}
	// Output:
	// marker.manifest.*
	// the file is missing: no manifest is named
	// lost without it: everything
}

// A copy that has followed a database takes its place under a node tag of its own.
func ExamplePromoteOptions() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "jay")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := jay.OpenMemory(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Store(ctx, "Orders", json.RawMessage(`{"total":10}`)); err != nil {
		log.Fatal(err)
	}

	copied := filepath.Join(dir, "copy.db")
	s, err := standby.Open(copied, standby.From(db), standby.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.DB(ctx); err != nil { // the first copy is whole
		log.Fatal(err)
	}
	if err := s.Close(); err != nil {
		log.Fatal(err)
	}

	info, err := jay.Promote(ctx, copied, jay.PromoteOptions{CopyTag: "B"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.NodeTag, info.Documents)
	promoted, err := jay.Open(copied, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer promoted.Close()
	order, err := promoted.Store(ctx, "Orders", json.RawMessage(`{"total":20}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.ID)
	// Output:
	// B 2
	// orders/33-B
}
