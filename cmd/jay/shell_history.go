package main

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// history has what was typed into shells. It implements term.History: the editor walks
// over it, and the shell adds whole statements to it.
type history struct {
	file    string   // where it is kept, "" for nowhere
	entries []string // the newest last
}

// Bounds of the history.
const (
	historyEntries    = 1000
	historyEntryBytes = 4000 // the editor takes lines of 4,096 characters
)

// historyFile returns the file of the history: $JAY_HISTORY, or one in the directory for
// the state of programs.
func historyFile(getenv func(string) string) string {
	if file := getenv("JAY_HISTORY"); file != "" {
		return file
	}
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "jay", "history")
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		if dir, err := os.UserCacheDir(); err == nil {
			return filepath.Join(dir, "jay", "history")
		}
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "jay", "history")
	}
	return ""
}

// openHistory reads a history, of which only the user may see the file: what was typed
// holds documents. It cuts a file that has grown long.
func openHistory(file string) (*history, error) {
	h := &history{file: file}
	if file == "" {
		return h, nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return h, err
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	read := 0
	for lines.Scan() {
		read++
		h.remember(lines.Text())
	}
	if err := lines.Err(); err != nil {
		return h, err
	}
	if read > 2*historyEntries {
		err = replaceHistory(file, h.entries)
	}
	return h, errors.Join(err, os.Chmod(file, 0o600))
}

// replaceHistory writes the file anew.
func replaceHistory(file string, entries []string) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), ".history-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = temporary.WriteString(strings.Join(entries, "\n") + "\n")
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}

// save adds a statement, whose lines become one. One with a comment to the end of a line,
// or with a line break inside of a text, is kept line by line.
func (h *history) save(text string) error {
	var entries []string
	if strings.Contains(text, "//") || !foldable(text) {
		entries = strings.Split(text, "\n")
	} else {
		entries = []string{strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), " ")}
	}
	entries = slices.DeleteFunc(entries, func(e string) bool { return !h.remember(e) })
	if len(entries) == 0 || h.file == "" {
		return nil
	}
	f, err := os.OpenFile(h.file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(entries, "\n") + "\n") // one write: two shells may append
	return errors.Join(err, f.Close())
}

// foldable reports whether no text in quotes has a line break.
func foldable(text string) bool {
	quote := rune(0)
	for _, r := range text {
		switch {
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case r == quote:
			quote = 0
		case r == '\n' && quote != 0:
			return false
		}
	}
	return true
}

// remember adds an entry, unless it is empty, too long, or the same as the one before.
func (h *history) remember(entry string) bool {
	entry = strings.TrimSpace(entry)
	if entry == "" || len(entry) > historyEntryBytes || len(h.entries) > 0 && h.entries[len(h.entries)-1] == entry {
		return false
	}
	h.entries = append(h.entries, entry)
	if n := len(h.entries) - historyEntries; n > 0 {
		h.entries = h.entries[n:]
	}
	return true
}

// find returns the newest entry older than the nth newest that has text in it, and its
// number; -1 for none.
func (h *history) find(text string, n int) int {
	for i := n + 1; i < h.Len(); i++ {
		if strings.Contains(h.At(i), text) {
			return i
		}
	}
	return -1
}

// Add implements term.History. The editor adds lines, and the shell whole statements.
func (*history) Add(string) {}

// Len implements term.History.
func (h *history) Len() int { return len(h.entries) }

// At implements term.History: 0 is the newest entry.
func (h *history) At(i int) string { return h.entries[len(h.entries)-1-i] }
