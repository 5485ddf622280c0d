package server_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/jaydb/jay/server"
)

// Ensure that a server's files are for their owner only, in a data directory that is there
// and open to others, too: those of its own database, of databases and of attachments.
// With GroupReadable the group reads them, but for the access file.
func TestData_FilesAreNotForOthers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no mode")
	}
	for _, group := range []bool{false, true} {
		data := t.TempDir()
		if err := os.Chmod(data, 0o755); err != nil {
			t.Fatal(err)
		}
		h := startIn(t, data, func(o *server.Options) { o.Database.GroupReadable = group })
		h.create("a")
		h.want(201, "PUT", "/databases/a/docs?id=x", `{"n":1}`)
		h.want(201, "PUT", "/databases/a/attachments?id=x&name=n", "text")
		forbidden := fs.FileMode(0o077)
		if group {
			forbidden = 0o027
		}
		if _, err := server.AccessOf(data).CreateToken("ann", server.Rights{"*": server.AdminRight}, time.Time{}); err != nil {
			t.Fatal(err)
		}
		n := 0
		err := filepath.WalkDir(data, func(name string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || name == data {
				return nil // the engine removes files that it does not need any more
			}
			if err != nil {
				return err
			}
			info, err := d.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			n++
			mode := info.Mode().Perm()
			if closed := d.Name() == "access.json" || d.Name() == "LOOK"; mode&forbidden != 0 || closed && mode&0o077 != 0 || group && !closed && mode&0o040 == 0 {
				t.Errorf("group %v: %s has mode %o", group, name, mode)
			}
			return nil
		})
		if err != nil || n < 10 {
			t.Error(n, err)
		}
	}
}
