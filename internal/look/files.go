package look

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jaydb/jay/storage"
)

// This file has the checks of files, on both sides. The owner reads its files, as only it knows which are in use. Before each
// stepBytes it waits for the client, which may so slow it down or leave.

// stepBytes is how much of a file the owner reads before it waits for the client.
const stepBytes = 1 << 20

// maxFiles is how many files are listed.
const maxFiles = 1 << 20

// fileReply is an answer to askCheckFile.
type fileReply struct {
	Bytes int `json:"bytes,omitempty"` // that are about to be read

	Done   bool                   `json:"done,omitempty"`
	Damage []*storage.DamageError `json:"damage,omitempty"`
}

// errLeft ends the check of a file whose client has left.
var errLeft = errors.New("the client has left")

// sendFiles answers with the files of the engine.
func (c *client) sendFiles() error {
	files, err := c.files()
	if err != nil {
		return c.fail(err)
	}
	return c.replyJSON(files)
}

func (c *client) files() ([]storage.File, error) {
	checker, is := c.of.source.Engine.(storage.FileChecker)
	if !is {
		return nil, nil
	}
	files, err := checker.Files()
	return files[:min(len(files), maxFiles)], err
}

// checkFile answers with what is wrong with a file. It holds no mutex: no snapshot is used. The error is one of the connection.
func (c *client) checkFile(request content) error {
	name := string(request.text())
	if request.bad {
		return c.fail(errFrame)
	}
	files, err := c.files()
	if err != nil {
		return c.fail(err)
	}
	for _, f := range files { // no other file is read
		if f.Name == name {
			return c.checkListed(f)
		}
	}
	return c.replyJSON(fileReply{Done: true}) // it is not needed any more
}

func (c *client) checkListed(f storage.File) error {
	ctx, cancel := context.WithCancel(c.of.ctx)
	defer cancel()
	due := 0
	step := func() error {
		if err := c.replyJSON(fileReply{Bytes: due}); err != nil {
			return errLeft
		}
		due = 0
		if kind, _, err := c.wire.read(nil, maxRequest, stall); err != nil || kind != askGo {
			return errLeft
		}
		return ctx.Err()
	}
	damage, err := c.of.source.Engine.(storage.FileChecker).CheckFile(ctx, f, func(n int) error {
		if due += n; due < stepBytes {
			return nil
		}
		return step()
	})
	if err == nil && due > 0 {
		err = step()
	}
	if errors.Is(err, errLeft) {
		return err
	}
	if err != nil {
		return c.fail(err)
	}
	return c.replyJSON(fileReply{Done: true, Damage: damage})
}

// Files implements storage.FileChecker. An owner that cannot check its files has none.
func (e *engine) Files() ([]storage.File, error) {
	e.mu.Lock()
	can := e.stats.Files
	e.mu.Unlock()
	if !can {
		return nil, nil
	}
	reply, err := e.ask(askFiles, nil)
	if err != nil {
		return nil, err
	}
	var files []storage.File
	if json.Unmarshal(reply, &files) != nil || len(files) > maxFiles {
		return nil, unanswered(errFrame)
	}
	return files, nil
}

// CheckFile implements storage.FileChecker. Other calls wait for it.
func (e *engine) CheckFile(ctx context.Context, f storage.File, pace func(bytes int) error) ([]*storage.DamageError, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	kind, request := byte(askCheckFile), appendText(nil, []byte(f.Name))
	for {
		var reply fileReply
		err := e.askLocked(kind, request, &reply)
		if err != nil || reply.Done {
			return reply.Damage, err
		}
		if err := ctx.Err(); err != nil {
			return nil, e.leave(err)
		}
		if err := pace(reply.Bytes); err != nil {
			return nil, e.leave(err)
		}
		kind, request = askGo, nil
	}
}

// leave ends the connection in the middle of a conversation, and returns why. e.mu is held.
func (e *engine) leave(err error) error {
	e.broken = fmt.Errorf("%w: it was left: %w", storage.ErrUnavailable, err)
	return errors.Join(err, e.wire.conn.Close())
}

// askLocked is ask for a reply of JSON, while e.mu is held.
func (e *engine) askLocked(kind byte, request []byte, to any) error {
	reply, err := e.exchange(kind, request)
	if err != nil {
		return err
	}
	if json.Unmarshal(reply, to) != nil {
		return e.leave(unanswered(errFrame))
	}
	return nil
}
