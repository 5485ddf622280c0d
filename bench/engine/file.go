package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/jaydb/jay/bench/fixture"
)

var fileMaker = Maker{
	Name:      FileLog,
	Module:    "os",
	Synced:    "each write and an fdatasync (Linux; elsewhere fsync)",
	Unsynced:  "in the operating system's cache",
	Notes:     "No store: ID and JSON are written to a file of 16 MiB that was written before, so that nothing but their bytes must reach the disk. The least that a durable insert can take.",
	VariantOf: Raw,
	Open:      openFile,
}

// FileLog is the name of the engine that only writes to a file.
const FileLog = "file"

// fileBytes is the size of the file, which is full of zeros at first.
const fileBytes = 16 << 20

var errNotInserted = errors.New("a file takes only inserts")

// fileEngine appends records: lengths of ID and body, ID, body.
type fileEngine struct {
	mu     sync.Mutex
	file   *os.File
	at     int64
	synced bool
	record []byte
}

func openFile(s Settings) (Engine, error) {
	f, err := os.OpenFile(filepath.Join(s.Dir, "file"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	e := &fileEngine{file: f, synced: s.Synced}
	if n, err := f.Seek(0, io.SeekEnd); err != nil || n == 0 {
		_, failed := f.WriteAt(make([]byte, fileBytes), 0)
		return e, errors.Join(err, failed, f.Sync())
	}
	return e, e.Scan("", func(_ func() string, _ []byte) error { return nil })
}

// Insert implements Engine.
func (e *fileEngine) Insert(docs []Doc) error {
	for _, doc := range docs {
		if err := e.InsertOne(doc); err != nil {
			return err
		}
	}
	return nil
}

// InsertOne implements Engine.
func (e *fileEngine) InsertOne(doc Doc) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.record = binary.LittleEndian.AppendUint32(e.record[:0], uint32(len(doc.Bytes)))
	e.record = binary.LittleEndian.AppendUint32(e.record, uint32(len(doc.Body)))
	e.record = append(append(e.record, doc.Bytes...), doc.Body...)
	if e.at+int64(len(e.record)) > fileBytes {
		return errors.New("the file is full")
	}
	if _, err := e.file.WriteAt(e.record, e.at); err != nil {
		return err
	}
	e.at += int64(len(e.record))
	if !e.synced {
		return nil
	}
	return dataSync(e.file)
}

// Scan implements Engine. It notes where the records end.
func (e *fileEngine) Scan(prefix string, fn Visit) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]byte, fileBytes)
	if _, err := e.file.ReadAt(all, 0); err != nil {
		return err
	}
	for e.at = 0; e.at+8 < fileBytes; {
		n, size := int64(binary.LittleEndian.Uint32(all[e.at:])), int64(binary.LittleEndian.Uint32(all[e.at+4:]))
		if n == 0 {
			break
		}
		id := all[e.at+8 : e.at+8+n]
		body := all[e.at+8+n : e.at+8+n+size]
		e.at += 8 + n + size
		if !bytes.HasPrefix(id, []byte(prefix)) {
			continue
		}
		if err := fn(func() string { return string(id) }, bytes.Clone(body)); err != nil {
			return err
		}
	}
	return nil
}

// Get implements Engine. It reads the whole file.
func (e *fileEngine) Get(key Key) (found []byte, err error) {
	err = e.Scan("", func(id func() string, body []byte) error {
		if id() == key.Text {
			found = body
		}
		return nil
	})
	if err == nil && found == nil {
		err = ErrNotFound
	}
	return found, err
}

// GetTyped implements Engine.
func (e *fileEngine) GetTyped(key Key, into *fixture.Order) error { return decode(e, key, into) }

// Update implements Engine.
func (e *fileEngine) Update([]Doc) error { return errNotInserted }

// UpdateOne implements Engine.
func (e *fileEngine) UpdateOne(Doc) error { return errNotInserted }

// Delete implements Engine.
func (e *fileEngine) Delete([]Key) error { return errNotInserted }

// DeleteOne implements Engine.
func (e *fileEngine) DeleteOne(Key) error { return errNotInserted }

// Rest implements Engine.
func (e *fileEngine) Rest() error { return nil }

// Close implements Engine.
func (e *fileEngine) Close() error { return e.file.Close() }
