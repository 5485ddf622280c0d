package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/keys"
	"github.com/jaydb/jay/keys/passphrase"
)

// secretWords is a passphrase, which is read once: from a file, or from the terminal.
type secretWords struct {
	file string // "" for the terminal

	stdin  any // asked for the terminal, if it is one
	stderr io.Writer

	mu    sync.Mutex
	fresh bool   // a new database gets it: it is typed twice. Guarded by mu.
	text  []byte // nil until it was read. Guarded by mu.
}

// newWords returns the passphrase of a file, or of the terminal for "".
func newWords(file string, stdin io.Reader, stderr io.Writer) *secretWords {
	return &secretWords{file: file, stdin: stdin, stderr: stderr}
}

// expect says whether the next read is of a passphrase that nothing has yet.
func (w *secretWords) expect(fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fresh = fresh
}

// read returns the passphrase, whatever the ID of the key.
func (w *secretWords) read(id string) (text []byte, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.text != nil {
		return w.text, nil
	}
	if w.file != "" {
		text, err = passphrase.File(w.file)(id)
	} else {
		text, err = w.ask()
	}
	if err == nil {
		w.text = text
	}
	return text, err
}

// ask reads it from the terminal, without an echo.
func (w *secretWords) ask() ([]byte, error) {
	terminal, prompts, closeTerminal, err := w.terminal()
	if err != nil {
		return nil, err
	}
	defer closeTerminal()
	if !w.fresh {
		return readHidden(terminal, prompts, "Passphrase: ")
	}
	text, err := readHidden(terminal, prompts, "New passphrase: ")
	if err != nil {
		return nil, err
	}
	again, err := readHidden(terminal, prompts, "The same again: ")
	if err == nil && !bytes.Equal(text, again) {
		err = explained{"the two passphrases are not the same: nothing was changed", jay.ErrKey}
	}
	return text, err
}

// terminal returns the terminal that is asked: standard input if it is one, and else that of the process, as standard input may have documents.
func (w *secretWords) terminal() (in *os.File, out io.Writer, done func(), err error) {
	if f, is := w.stdin.(*os.File); is && term.IsTerminal(int(f.Fd())) {
		return f, w.stderr, func() {}, nil
	}
	f, err := os.OpenFile(terminalName, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, nil, explained{"there is no terminal to ask for the passphrase: name a file that has it with --passphrase-file", errors.Join(jay.ErrKey, err)}
	}
	if runtime.GOOS == "windows" { // where it can only be read
		return f, w.stderr, func() { _ = f.Close() }, nil
	}
	return f, f, func() { _ = f.Close() }, nil
}

// readHidden reads a line from a terminal without an echo. A signal ends it, and the terminal is as it was before.
func readHidden(terminal *os.File, prompts io.Writer, prompt string) ([]byte, error) {
	fd := int(terminal.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		read <- line{text, err}
	}()
	for range 100 { // the prompt comes when the echo is off: what is typed at once is not seen
		if now, err := term.GetState(fd); err != nil || !reflect.DeepEqual(now, before) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := io.WriteString(prompts, prompt); err != nil {
		return nil, err
	}
	select {
	case l := <-read:
		_, err := io.WriteString(prompts, "\n")
		return l.text, andThen(l.err, err)
	case <-signals: // the read goes on until the process ends
		return nil, andThen(interrupted{context.Canceled}, term.Restore(fd, before)) // the context of the command may end a moment later
	}
}

// wordKeys are the keys of the database in a directory, from a passphrase. They implement jay.EncryptionKeys, and are safe for concurrent use.
type wordKeys struct {
	words *secretWords
	dir   func() string // which may change until a key is asked for

	mu   sync.Mutex
	keys map[string]jay.EncryptionKeys // by directory. Guarded by mu.
}

func newWordKeys(w *secretWords, dir func() string) *wordKeys {
	return &wordKeys{words: w, dir: dir, keys: make(map[string]jay.EncryptionKeys)}
}

// of returns the keys of the present directory.
func (k *wordKeys) of() jay.EncryptionKeys {
	k.mu.Lock()
	defer k.mu.Unlock()
	dir := k.dir()
	if k.keys[dir] == nil {
		k.keys[dir] = passphrase.InDir(dir, k.words.read)
	}
	return k.keys[dir]
}

// Newest implements jay.EncryptionKeys.
func (k *wordKeys) Newest() (jay.EncryptionKey, error) {
	needed, err := keys.NeededBy(k.dir())
	k.words.expect(err == nil && needed == "" || errors.Is(err, jay.ErrNoDatabase))
	return k.of().Newest()
}

// Key implements jay.EncryptionKeys.
func (k *wordKeys) Key(id string) (jay.EncryptionKey, error) {
	k.words.expect(false)
	return k.of().Key(id)
}

// keysIn returns keys for the database in another directory than that of the command line. Keys that are not from a passphrase are the same for all.
func keysIn(all jay.EncryptionKeys, dir string) jay.EncryptionKeys {
	if k, is := all.(*wordKeys); is {
		return newWordKeys(k.words, func() string { return dir })
	}
	return all
}

// hasWords reports whether a key was made of a passphrase.
func hasWords(id string) bool { return strings.HasPrefix(id, "$argon2id$") }

// otherKeys are the keys with which jay encrypt --rotate gives the database a new kind of key, or a new passphrase. They implement jay.EncryptionKeys.
type otherKeys struct {
	old, other jay.EncryptionKeys
	newest     func() (id string, err error) // of other
	both       bool                          // both are from passphrases
}

// newOtherKeys returns the keys that change those of the database in dir to those of a file, or to a passphrase if file is "".
func newOtherKeys(old jay.EncryptionKeys, dir string, file string, w *secretWords) *otherKeys {
	k := &otherKeys{old: old}
	if file != "" {
		k.other = keys.File(file)
		k.newest = func() (string, error) {
			key, err := k.other.Newest()
			return key.ID, err
		}
		return k
	}
	_, k.both = old.(*wordKeys)
	w.expect(true)
	k.other = passphrase.Keys("", w.read)
	k.newest = sync.OnceValues(func() (string, error) {
		if !k.both {
			return passphrase.NewID(passphrase.DefaultWork)
		}
		needed, err := keys.NeededBy(dir)
		if err != nil {
			return "", err
		}
		return passphrase.NextID(needed)
	})
	return k
}

// Newest implements jay.EncryptionKeys.
func (k *otherKeys) Newest() (jay.EncryptionKey, error) {
	id, err := k.newest()
	if err != nil {
		return jay.EncryptionKey{}, err
	}
	return k.other.Key(id)
}

// Key implements jay.EncryptionKeys. Files that an interrupted change has encrypted have the next ID of the present one if both are from passphrases, and else an ID of the other form.
func (k *otherKeys) Key(id string) (jay.EncryptionKey, error) {
	newest, err := k.newest()
	if err != nil {
		return jay.EncryptionKey{}, err
	}
	if id == newest || !k.both && hasWords(id) == hasWords(newest) {
		return k.other.Key(id)
	}
	return k.old.Key(id)
}

// explainKey returns what to do about a jay.ErrKey of a database, or "". given are the keys that it was opened with.
func explainKey(given jay.EncryptionKeys, dir string, err error) string {
	if other, is := given.(*otherKeys); is {
		given = other.old
	}
	_, words := given.(*wordKeys)
	needed, failed := keys.NeededBy(dir)
	switch known := failed == nil && needed != ""; {
	case known && hasWords(needed) && words && strings.Contains(err.Error(), "is not the one that the database was encrypted with"):
		return fmt.Sprintf("%s: the passphrase is another one", err)
	case known && hasWords(needed) && given == nil:
		return fmt.Sprintf("%s; it has a passphrase: --passphrase asks for it, and --passphrase-file or $JAY_PASSPHRASE_FILE names a file that has it", err)
	case known && hasWords(needed) && !words:
		return fmt.Sprintf("%s; the database has a passphrase: --passphrase asks for it, and --passphrase-file or $JAY_PASSPHRASE_FILE names a file that has it", err)
	case known && !hasWords(needed) && words:
		return fmt.Sprintf("%s; the database has keys of a file, and no passphrase: name the file with --key-file or $JAY_KEY_FILE", err)
	case given == nil:
		return fmt.Sprintf("%s; name its file of keys with --key-file or $JAY_KEY_FILE", err)
	}
	return ""
}
