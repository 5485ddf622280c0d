package standby_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/keys"
	"github.com/jaydb/jay/standby"
)

// Ensure that a standby is encrypted with keys of its own, from the copy that begins it to what it follows, whether its source is encrypted or not;
// and that it goes on with its keys only.
func TestStandby_Encrypted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := func(id string) *jay.Options {
		return &jay.Options{EncryptionKeys: keys.Of(jay.EncryptionKey{ID: id, Secret: bytes.Repeat([]byte(id), keys.SecretBytes)})}
	}
	for name, sourceOptions := range map[string]*jay.Options{"of an encrypted database": key("s"), "of a plain database": nil} {
		source, path := jaytest.Open(t, filepath.Join(dir, "source "+name), sourceOptions), filepath.Join(dir, name)
		put(t, source, "marker/1", `{"text":"marker"}`)
		if err := source.EnsureIndex(ctx, "Marker", jay.Index{Name: "marker", Fields: []string{"text"}}); err != nil {
			t.Fatal(err)
		}
		clean := func(when string) {
			t.Helper()
			if files := marked(t, path); len(files) > 0 {
				t.Errorf("a standby %s, %s: in the clear in %v", name, when, files)
			}
		}

		s, err := standby.Open(path, standby.From(source), standby.Options{Database: key("t")})
		must(t, err)
		await(t, s, source)
		clean("after its first copy")
		put(t, source, "marker/2", `{"text":"marker"}`)
		await(t, s, source)
		clean("in use")
		must(t, s.Close())
		clean("closed")
		if found := len(marked(t, filepath.Join(dir, "source "+name))) > 0; found != (sourceOptions == nil) {
			t.Errorf("the source %s: its text is in the clear: %v", name, found)
		}

		for what, opts := range map[string]*jay.Options{"without keys": nil, "with the keys of the source": key("s")} {
			s, err := standby.Open(path, standby.From(source), standby.Options{Database: opts})
			if err == nil {
				_, err = s.DB(ctx)
				must(t, s.Close())
			}
			if !errors.Is(err, jay.ErrKey) {
				t.Errorf("a standby %s, %s: got %v, want ErrKey", name, what, err)
			}
		}
		s, err = standby.Open(path, standby.From(source), standby.Options{Database: key("t")})
		must(t, err)
		put(t, source, "marker/3", `{"text":"marker"}`)
		await(t, s, source)
		db, err := s.DB(ctx)
		must(t, err)
		_, err = db.Get(ctx, "marker/3")
		must(t, err)
		must(t, s.Close())
		must(t, source.Close())
		clean("opened again")
	}
}

// marked returns the files of a directory that have the marker in the clear.
func marked(t *testing.T, dir string) (found []string) {
	t.Helper()
	files := 0
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the engine has removed it meanwhile
		}
		if strings.Contains(strings.ToLower(string(text)), "marker") && !strings.HasPrefix(d.Name(), "marker.") {
			found = append(found, path)
		}
		return err
	}))
	if files < 5 {
		t.Errorf("%s has %d files only", dir, files)
	}
	return found
}
