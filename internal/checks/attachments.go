package checks

import (
	"context"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/parts"
)

// Contents compares the contents of attachments with the documents that have them.
func Contents(db any) error { return parts.Of(db).CheckContents(context.Background()) }

// RemoveContents removes the chunks that can be removed now.
func RemoveContents(db any) error {
	for {
		if more, err := RemoveSomeContents(db); !more || err != nil {
			return err
		}
	}
}

// RemoveSomeContents removes a batch of chunks.
func RemoveSomeContents(db any) (more bool, err error) {
	return parts.Of(db).Contents.RemoveSome(context.Background())
}

// WaitContents returns when nothing removes chunks in the background any more.
func WaitContents(db any) { parts.Of(db).Contents.Wait() }

// KeepChunks leaves the removal of chunks to RemoveContents, in databases that are opened
// until the returned function is called.
func KeepChunks() (restore func()) {
	knobs.KeepChunks = true
	return func() { knobs.KeepChunks = false }
}

// SetChunkBytes makes the chunks of databases that are opened until the returned
// function is called so large.
func SetChunkBytes(n int) (restore func()) {
	knobs.AttachmentChunkBytes = n
	return func() { knobs.AttachmentChunkBytes = 0 }
}

// Uploads returns how many uploads are in progress, or were broken off.
func Uploads(db any) (int, error) { return keysWith(db, format.UploadPrefix()) }

// ChunkKeys returns how many chunks there are.
func ChunkKeys(db any) (int, error) { return keysWith(db, []byte{format.SpaceChunks}) }

// keysWith counts the keys that begin so.
func keysWith(db any, prefix []byte) (n int, err error) {
	keys, err := storedKeys(Engine(db), prefix)
	return len(keys), err
}
