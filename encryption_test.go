package jay_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/child"
	"github.com/jaydb/jay/keys"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	stores "github.com/jaydb/jay/storage/memory"
	"github.com/jaydb/jay/storage/storagetest"
)

// keyOf returns a key whose secret follows from its ID.
func keyOf(id string) jay.EncryptionKey {
	return jay.EncryptionKey{ID: id, Secret: []byte(strings.Repeat(id, 32)[:32])}
}

// keyring returns the keys with these IDs, the newest first.
func keyring(newest string, older ...string) jay.EncryptionKeys {
	var all []jay.EncryptionKey
	for _, id := range older {
		all = append(all, keyOf(id))
	}
	return keys.Of(keyOf(newest), all...)
}

// filesOf returns the names and contents of the files of a directory, which may be in use.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil // the engine has removed it meanwhile
		}
		all[path] = string(text)
		return err
	}))
	return all
}

// Ensure that an encrypted database opens with its keys only, that a plain one opens without only, whichever function opens the directory, and that
// a refusal changes no file.
func TestEncryption_Doors(t *testing.T) {
	t.Parallel()
	plain, secret := filepath.Join(t.TempDir(), "plain"), filepath.Join(t.TempDir(), "secret")
	for dir, k := range map[string]jay.EncryptionKeys{plain: nil, secret: keyring("a")} {
		db, err := jay.Open(dir, &jay.Options{EncryptionKeys: k})
		must(t, err)
		put(t, db, "users/1", `{"Name":"Ada"}`)
		must(t, db.Close())
	}
	wrong := keys.Of(jay.EncryptionKey{ID: "a", Secret: bytes.Repeat([]byte("x"), 32)})
	for _, row := range []struct {
		name string
		dir  string
		keys jay.EncryptionKeys
		want string // "" for none
	}{
		{"encrypted", secret, keyring("a"), ""},
		{"plain", plain, nil, ""},
		{"encrypted, with a newer key too", secret, keyring("b", "a"), ""},
		{"encrypted, without keys", secret, nil, "no keys were given"},
		{"encrypted, without its key", secret, keyring("b"), `key "a"`},
		{"encrypted, with another secret", secret, wrong, "not the one that the database was encrypted with"},
		{"plain, with keys", plain, keyring("a"), "the database is not encrypted"},
	} {
		for name, call := range map[string]func(o *jay.Options) error{
			"Open, read only": func(o *jay.Options) error {
				o.ReadOnly = true
				return openAndClose(row.dir, o)
			},
			"VerifyDir": func(o *jay.Options) error {
				r, err := jay.VerifyDir(ctx, row.dir, o, nil)
				if err == nil && (r.Found != 0 || r.Documents != 1) {
					t.Errorf("%s: VerifyDir found %d damages and %d documents", row.name, r.Found, r.Documents)
				}
				return err
			},
			"Repair": func(o *jay.Options) error {
				into := filepath.Join(t.TempDir(), "into")
				r, err := jay.Repair(ctx, row.dir, into, o, nil)
				if err == nil && r.Documents != 1 {
					t.Errorf("%s: Repair saved %d documents", row.name, r.Documents)
				}
				if err == nil && (o.EncryptionKeys == nil) != (openAndClose(into, nil) == nil) {
					t.Errorf("%s: what Repair has made is not encrypted as its original is", row.name)
				}
				return err
			},
			"Promote": func(o *jay.Options) error {
				_, err := jay.Promote(ctx, row.dir, jay.PromoteOptions{CopyTag: "B", Options: o})
				if row.want == "" && errors.Is(err, jay.ErrStandby) {
					return nil // it opens, and is no standby
				}
				return err
			},
		} {
			before := filesOf(t, row.dir)
			err := call(&jay.Options{EncryptionKeys: row.keys})
			if row.want == "" && err != nil || row.want != "" && (!errors.Is(err, jay.ErrKey) || errors.Is(err, jay.ErrCorrupt) || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("%s, %s: got %v, want ErrKey with %q", row.name, name, err, row.want)
			}
			if row.want == "" {
				continue
			}
			after := filesOf(t, row.dir)
			for path, text := range after {
				if before[path] != text {
					t.Errorf("%s, %s: %s was changed", row.name, name, path)
				}
			}
			equal(t, len(after), len(before))
		}
		before := filesOf(t, row.dir)
		err := openAndClose(row.dir, &jay.Options{EncryptionKeys: row.keys})
		if row.want == "" && err != nil || row.want != "" && (!errors.Is(err, jay.ErrKey) || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), row.dir)) {
			t.Errorf("%s, Open: got %v, want ErrKey with %q and the directory", row.name, err, row.want)
		}
		if after := filesOf(t, row.dir); row.want != "" && len(after) != len(before) {
			t.Errorf("%s: Open has changed the directory", row.name)
		}
	}
}

func openAndClose(dir string, o *jay.Options) error {
	db, err := jay.Open(dir, o)
	if err != nil {
		return err
	}
	return db.Close()
}

// Ensure that keys are refused where nothing would be encrypted.
func TestEncryption_OtherEngines(t *testing.T) {
	t.Parallel()
	o := func() *jay.Options { return &jay.Options{EncryptionKeys: keyring("a")} }
	other := o()
	other.Engine = new(stores.Driver)
	_, memory := jay.OpenMemory(o())
	_, look := jay.Look(t.TempDir(), o())
	_, convert := jay.EncryptDir(ctx, "db", other, nil)
	for name, err := range map[string]error{"another engine": openAndClose("db", other), "memory": memory, "Look": look, "EncryptDir": convert} {
		if !errors.Is(err, jay.ErrOption) {
			t.Errorf("%s: got %v, want ErrOption", name, err)
		}
	}
}

// Ensure that keys that cannot be had are an ErrKey with the cause, and that a directory which would be made is not.
func TestEncryption_NoKeys(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	path := filepath.Join(t.TempDir(), "keys")
	must(t, os.WriteFile(path, []byte(keys.Line(keyOf("a"))), 0o644))
	must(t, os.Chmod(path, 0o644))
	for name, k := range map[string]jay.EncryptionKeys{
		"a missing file":  keys.File(path + ".missing"),
		"no variable":     keys.Env("JAY_TEST_NO_SUCH_VARIABLE"),
		"a short secret":  keys.Of(jay.EncryptionKey{ID: "a", Secret: make([]byte, 16)}),
		"a long ID":       keys.Of(jay.EncryptionKey{ID: strings.Repeat("a", 65), Secret: make([]byte, 32)}),
		"no ID":           keys.Of(jay.EncryptionKey{Secret: make([]byte, 32)}),
		"others can read": keys.File(path),
	} {
		if err := openAndClose(dir, &jay.Options{EncryptionKeys: k}); !errors.Is(err, jay.ErrKey) {
			t.Errorf("%s: got %v, want ErrKey", name, err)
		}
		if db, err := jay.Open(dir, &jay.Options{MustExist: true}); !errors.Is(err, jay.ErrNoDatabase) {
			t.Errorf("%s: there is a database: %v, %v", name, db, err)
		}
	}
}

// Ensure that a database is encrypted, gets a new key and is decrypted in its directory, and that each asks for the right state.
func TestEncryptDir(t *testing.T) {
	t.Parallel()
	disk := storagetest.NewDisk()
	options := func(k jay.EncryptionKeys) *jay.Options { return &jay.Options{FS: disk, EncryptionKeys: k} }
	opens := func(step string, k jay.EncryptionKeys) {
		t.Helper()
		db, err := jay.Open("db", options(k))
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		equal(t, body(t, db, "users/1"), `{"Name":"Ada"}`)
		must(t, db.Close())
	}
	db := open(t, "db", options(nil))
	put(t, db, "users/1", `{"Name":"Ada"}`)
	must(t, db.Close())

	refused := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	}
	_, err := jay.RotateDir(ctx, "db", options(keyring("a")), nil)
	refused("RotateDir of a plain database", err, jay.ErrUsage)
	_, err = jay.DecryptDir(ctx, "db", options(keyring("a")), nil)
	refused("DecryptDir of a plain database", err, jay.ErrUsage)
	_, err = jay.EncryptDir(ctx, "db", options(nil), nil)
	refused("EncryptDir without keys", err, jay.ErrKey)
	_, err = jay.EncryptDir(ctx, "none", options(keyring("a")), nil)
	refused("EncryptDir of nothing", err, jay.ErrNoDatabase)

	calls := 0
	done, err := jay.EncryptDir(ctx, "db", options(keyring("a")), func(p jay.ConvertProgress) {
		if calls++; p.Files != calls || p.Bytes > p.Total {
			t.Errorf("progress %+v after %d files", p, calls)
		}
	})
	must(t, err)
	if done.Files != calls || done.Copied != calls || done.Bytes != done.Total || calls < 3 {
		t.Errorf("done is %+v after %d calls", done, calls)
	}
	opens("encrypted", keyring("a"))
	_, err = jay.EncryptDir(ctx, "db", options(keyring("a")), nil)
	refused("EncryptDir of an encrypted database", err, jay.ErrUsage)

	_, err = jay.RotateDir(ctx, "db", options(keyring("b", "a")), nil)
	must(t, err)
	opens("with the newer key", keyring("b"))
	_, err = jay.Open("db", options(keyring("a")))
	refused("Open with the older key", err, jay.ErrKey)
	done, err = jay.RotateDir(ctx, "db", options(keyring("b")), nil)
	must(t, err)
	if done.Copied != 0 {
		t.Errorf("a second RotateDir has copied %d files", done.Copied)
	}

	_, err = jay.DecryptDir(ctx, "db", options(keyring("a")), nil)
	refused("DecryptDir with the older key", err, jay.ErrKey)
	_, err = jay.DecryptDir(ctx, "db", options(keyring("b")), nil)
	must(t, err)
	opens("decrypted", nil)
}

// encryptedVariable has the directory for the process that TestEncryption_NothingInTheClear kills.
const encryptedVariable = "JAY_ENCRYPTED_WRITER"

// markers are parts of the texts that fillMarked stores.
var markers = []string{"markerbody", "markerid", "markercollection", "markerindex", "markerattachment", "markerrevision", "markerexchange", "markersubscription", "markercounter"}

// fillMarked stores a marker in each way that a text is stored.
func fillMarked(t *testing.T, db *jay.DB) {
	t.Helper()
	must(t, db.EnsureIndex(ctx, "Markercollection", jay.Index{Name: "Markerindex", Fields: []string{"markerbody"}}))
	must(t, db.EnsureIndex(ctx, "Markercollection", jay.Index{Name: "Markerindexwords", Kind: "text", Fields: []string{"markerbody"}}))
	must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{}}))
	for range 3 {
		_, err := db.Put(ctx, "markerid/1", []byte(`{"markerbody":"markerbody markerrevision"}`), jay.InCollection("Markercollection"))
		must(t, err)
	}
	_, err := db.Put(ctx, "markercounter|", []byte(`{"markerbody":"markerbody"}`), jay.InCollection("Markercollection"))
	must(t, err)
	_, err = db.Attachments("markerid/1").Put(ctx, "markerattachment", strings.NewReader(strings.Repeat("markerattachment", 1000)))
	must(t, err)
	_, err = db.CompareExchange().Put(ctx, "markerexchange", "markerexchange", 0)
	must(t, err)
	must(t, db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "markersubscription", Query: "from Markercollection"}))
}

// TestEncryption_Process is the process that TestEncryption_NothingInTheClear kills.
func TestEncryption_Process(t *testing.T) {
	dir := os.Getenv(encryptedVariable)
	if dir == "" {
		t.Skip("only in a process of TestEncryption_NothingInTheClear")
	}
	db, err := jay.Open(dir, &jay.Options{EncryptionKeys: keyring("a"), MemTableBytes: 64 << 10})
	must(t, err)
	fillMarked(t, db)
	for n := 0; ; n++ {
		put(t, db, "markerid/last", fmt.Sprintf(`{"markerbody":%q}`, strings.Repeat("markerbody", 500)))
		fmt.Println("wrote", n)
	}
}

// Ensure that no file of a database in use, of one whose process was killed, of a checkpoint, of a repaired copy and of a restored backup has a text
// of a document, an ID, a name of a collection or of an index, or an attachment in the clear.
func TestEncryption_NothingInTheClear(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	at := func(name string) string { return filepath.Join(top, name) }
	options := &jay.Options{EncryptionKeys: keyring("a")}
	// seen are the markers that the files of a directory have in the clear.
	seen := func(dir string) (found []string) {
		t.Helper()
		all := filesOf(t, dir)
		if len(all) < 8 {
			t.Errorf("%s has %d files only", dir, len(all))
		}
		for path, text := range all {
			for _, marker := range markers {
				if strings.Contains(strings.ToLower(text), marker) {
					found = append(found, path+" has "+marker)
				}
			}
		}
		return found
	}
	clean := func(when, dir string) {
		t.Helper()
		for _, found := range seen(dir) {
			t.Errorf("%s: %s in the clear", when, found)
		}
	}

	db, err := jay.Open(at("db"), options)
	must(t, err)
	fillMarked(t, db)
	stats, err := db.Stats(ctx)
	must(t, err)
	equal(t, stats.Engine.Encrypted, true)
	must(t, db.Checkpoint(ctx, at("copy")))
	must(t, db.Flush(ctx))
	clean("in use", at("db"))
	must(t, db.Compact(ctx))
	clean("compacted", at("db"))
	var stream bytes.Buffer
	_, err = db.Backup(ctx, &stream)
	must(t, err)
	must(t, db.Close())
	clean("closed", at("db"))
	clean("a checkpoint", at("copy"))
	_, err = jay.Repair(ctx, at("db"), at("repaired"), options, nil)
	must(t, err)
	clean("repaired", at("repaired"))

	// A restore obeys its own options: with keys, and without.
	_, err = jay.Restore(ctx, at("restored"), jay.RestoreOptions{CopyTag: "B", Options: options}, bytes.NewReader(stream.Bytes()))
	must(t, err)
	clean("restored", at("restored"))
	if err := openAndClose(at("restored"), nil); !errors.Is(err, jay.ErrKey) {
		t.Errorf("a restored database without its keys: got %v, want ErrKey", err)
	}
	_, err = jay.Restore(ctx, at("plain"), jay.RestoreOptions{CopyTag: "C", BackupKeys: options.EncryptionKeys}, bytes.NewReader(stream.Bytes()))
	must(t, err)
	for _, marker := range markers { // all of them are found where they are in the clear
		if !slices.ContainsFunc(seen(at("plain")), func(found string) bool { return strings.HasSuffix(found, marker) }) {
			t.Errorf("a database without keys does not have %s in the clear", marker)
		}
	}
	db = open(t, at("plain"), nil)
	stats, err = db.Stats(ctx)
	must(t, err)
	equal(t, stats.Engine.Encrypted, false)
	closeDB(t, db)

	writes := 0
	child.Start(t, "TestEncryption_Process", encryptedVariable+"="+at("killed")).KillAt(func(line string) bool {
		if strings.HasPrefix(line, "wrote") {
			writes++
		}
		return writes >= 100
	})
	clean("killed", at("killed"))
	db, err = jay.Open(at("killed"), options)
	must(t, err)
	body(t, db, "markerid/last")
	closeDB(t, db)
	clean("opened again after it was killed", at("killed"))
}

// Ensure that the encrypted database of format 16 (internal/fixture) opens with its key, answers, goes on and is whole; and that a program which does not know
// encryption refuses it by that name and changes nothing.
func TestFormat16_Encrypted(t *testing.T) {
	dir := t.TempDir()
	copyTree(t, filepath.Join("testdata", "format16", "encrypted"), dir)
	before := hashesOf(t, dir)
	older := storage.Features(storage.AllFeatures[:11])
	_, err := jay.Open(dir, &jay.Options{Engine: lsm.Driver{Options: lsm.Options{Features: older}}})
	var newer *jay.FormatError
	if !errors.As(err, &newer) || newer.Found != 16 || newer.Newest != 15 || !slices.Equal(newer.Features, []string{"encrypted"}) {
		t.Errorf("an older program: got %v", err)
	}
	equal(t, slices.Equal(before, hashesOf(t, dir)), true)
	texts := filesOf(t, dir)
	if err := openAndClose(dir, nil); !errors.Is(err, jay.ErrKey) {
		t.Errorf("without keys: got %v, want ErrKey", err)
	}
	for path, text := range filesOf(t, dir) {
		if texts[path] != text {
			t.Errorf("without keys: %s has changed", path)
		}
	}

	db := open(t, dir, &jay.Options{EncryptionKeys: keys.Of(jay.EncryptionKey{ID: "fixture", Secret: bytes.Repeat([]byte{0x5a}, 32)})})
	equal(t, body(t, db, "users/1"), `{"Name":"Ada"}`)
	put(t, db, "users/3", `{"Name":"Bob"}`, jay.InCollection("Users"))
	found, err := db.Query("Users").Where(jay.Eq("Name", "Bob")).NoScan().Count(ctx)
	must(t, err)
	equal(t, found, int64(2))
	report, err := db.Verify(ctx, nil)
	must(t, err)
	equal(t, report.Found, int64(0))
	closeDB(t, db)
}
