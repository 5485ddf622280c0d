package jay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jaydb/jay"
)

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
	// settings documents changes collections counters expiry subscriptions results of requests cluster indexes attachments
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
