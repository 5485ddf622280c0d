// Package native has the Go functions of a program, by name and version, that make entries of the bodies of documents. It decides what a
// function may give: so many entries, of so many bytes; and that a panic is an error of the document.
package native

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Bounds of a name, and of what a function gives for one document. docs/limits.md has them.
const (
	MaxName    = 128 // bytes, also of a version
	MaxEntries = 10_000
	MaxBytes   = 8 << 20
)

// Function makes entries of a body: JSON values, which it leaves to the caller. The same body gives the same entries.
type Function func(body []byte) (entries [][]byte, err error)

// ID names a function.
type ID struct{ Name, Version string }

// String returns the ID for people, as a query writes it but for signs in names.
func (id ID) String() string { return fmt.Sprintf("function('%s', '%s')", id.Name, id.Version) }

var known = struct {
	sync.RWMutex
	byID map[ID]Function
}{byID: make(map[ID]Function)}

// Check returns why there can be no function of this ID, or nil.
func (id ID) Check() error {
	if err := check("name", id.Name); err != nil {
		return err
	}
	return check("version", id.Version)
}

func check(what, text string) error {
	if text == "" || len(text) > MaxName || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '\ufffd' }) {
		return fmt.Errorf("the %s of a function has 1 to %d bytes of UTF-8, and no control characters, and %.60q is none", what, MaxName, text)
	}
	return nil
}

// Register makes a function known to the program, and returns what makes it unknown again. It panics if the ID is not valid, or taken.
func Register(id ID, fn Function) (undo func()) {
	if err := id.Check(); err != nil {
		panic("jay: " + err.Error())
	}
	known.Lock()
	defer known.Unlock()
	if known.byID[id] != nil {
		panic(fmt.Sprintf("jay: %v is registered twice", id))
	}
	known.byID[id] = fn
	return func() {
		known.Lock()
		defer known.Unlock()
		delete(known.byID, id)
	}
}

// Find returns a function, or nil.
func Find(id ID) Function {
	known.RLock()
	defer known.RUnlock()
	return known.byID[id]
}

// Versions returns the versions of a function that are known, in the order of texts.
func Versions(name string) (versions []string) {
	known.RLock()
	defer known.RUnlock()
	for id := range known.byID {
		if id.Name == name {
			versions = append(versions, id.Version)
		}
	}
	slices.Sort(versions)
	return versions
}

// Unknown is the error of a query that needs a function which the program has not registered.
type Unknown struct{ ID }

// Error names the function, and the versions that there are.
func (u *Unknown) Error() string {
	if versions := Versions(u.Name); len(versions) > 0 {
		return fmt.Sprintf("this program has not registered %v: it has the versions %q", u.ID, versions)
	}
	return fmt.Sprintf("this program has not registered %v", u.ID)
}

// errFailed is the text in front of what a function says.
var errFailed = errors.New("the function failed")

// Run calls a function. A panic, an error, and entries beyond the bounds are its error.
func (fn Function) Run(body []byte) (entries [][]byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			entries, err = nil, fmt.Errorf("%w: panic: %v", errFailed, p)
		}
	}()
	entries, err = fn(bytes.Clone(body)) // it may keep what it is given, or change it
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFailed, err)
	}
	size := 0
	for _, e := range entries {
		size += len(e)
	}
	switch {
	case len(entries) > MaxEntries:
		return nil, fmt.Errorf("%w: it gives %d entries, and %d are the most", errFailed, len(entries), MaxEntries)
	case size > MaxBytes:
		return nil, fmt.Errorf("%w: its entries have %d bytes, and %d are the most", errFailed, size, MaxBytes)
	}
	return entries, nil
}
