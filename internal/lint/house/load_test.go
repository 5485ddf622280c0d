package main

import (
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// whole is the house and its report, read once for all tests.
var whole = sync.OnceValues(func() (h *house, err error) {
	top, err := findTop()
	if err != nil {
		return nil, err
	}
	// The packages are listed by another process, of which a cached result of these tests would know nothing: reading
	// the folders here makes the result depend on their files.
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != top && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return load(top)
})

func loaded(t *testing.T) *house {
	t.Helper()
	h, err := whole()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func measured(t *testing.T) *report {
	t.Helper()
	r, err := loaded(t).measure()
	if err != nil {
		t.Fatal(err)
	}
	return r
}
