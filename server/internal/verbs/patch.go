package verbs

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/script"
	"github.com/jaydb/jay/server/internal/serve"
)

// The states of a patch, in RavenDB's spelling.
const (
	patchPatched     = "Patched"
	PatchCreated     = "Created"
	patchNotModified = "NotModified"
	PatchSkipped     = "Skipped"
	PatchMissing     = "DocumentDoesNotExist"
)

// PatchRequest is a script and its arguments.
type PatchRequest struct {
	Script string
	Values json.RawMessage

	program *script.Program
}

// Parse parses the script.
func (p *PatchRequest) Parse() (err error) {
	if strings.TrimSpace(p.Script) == "" {
		return serve.BadRequest("a patch needs a Script")
	}
	p.program, err = script.Parse(p.Script)
	return err
}

// Patching is a patch of one document in a transaction.
type Patching struct {
	Call     *serve.Call
	Memory   *serve.Holding // pays for what the transaction stores, until the caller ends it after the commit; not used with Test
	Patch    *PatchRequest
	Missing  *PatchRequest   // script to run on an empty document if there is none, or nil
	Create   json.RawMessage // document to store if there is none, or nil
	Expected *string         // expected version, or nil for any
	Skip     bool            // leave a document of another version alone
	Test     bool            // store nothing
	Others   []string        // with test, other documents that the script would put or delete
	names    []string        // names of the document in the script
	given    map[string]json.RawMessage
}

// Patched is the result of a patch.
type Patched struct {
	ID, Status   string
	Collection   string
	Before       []byte // JSON with its @metadata, or nil
	After        []byte // as the script leaves it
	Output       []string
	Meta         jay.Metadata // of the new version, once it is committed
	ChangeVector string       // of the old version
	Modified     time.Time
}

// Run patches the document in tx. It may run several times.
func (p *Patching) Run(ctx context.Context, tx *jay.Tx, id string) (*Patched, error) {
	out := &Patched{ID: id, Status: patchPatched}
	doc, err := tx.Get(ctx, id)
	if err != nil && !serve.IsMissing(err) {
		return nil, err
	}
	if doc == nil && p.Expected != nil && *p.Expected != "" || doc != nil && p.Expected != nil && *p.Expected != doc.ChangeVector() {
		actual := ""
		if doc != nil {
			actual = doc.ChangeVector()
		}
		if p.Skip {
			out.Status, out.ChangeVector = PatchSkipped, actual
			return out, nil
		}
		return nil, &jay.ConflictError{ID: id, Expected: *p.Expected, Actual: actual}
	}
	request, given := p.Patch, []byte(nil)
	switch {
	case doc != nil:
		if given, err = doc.MarshalJSON(); err != nil {
			return nil, err
		}
		out.Before, out.ID, out.Collection, out.ChangeVector, out.Modified = given, doc.ID(), doc.Collection(), doc.ChangeVector(), doc.Metadata().LastModified
	case len(p.Create) > 0 && string(p.Create) != "null":
		out.Status, out.After = PatchCreated, p.Create
		return out, p.store(ctx, tx, out)
	case p.Missing != nil:
		out.Status, request, given = PatchCreated, p.Missing, []byte(`{}`)
	default:
		out.Status = PatchMissing
		return out, nil
	}
	memory := p.Call.Server.Memory.Holding(p.Call.Sender())
	defer memory.End()
	if err := memory.Take(int64(len(given))); err != nil { // a copy of the document
		return nil, err
	}
	result, err := request.program.Run(ctx, script.Input{ID: id, Document: given, Args: request.Values, Parameters: p.given, Names: p.names, Take: memory.Take}, &scriptHost{ctx, p, tx})
	if err != nil {
		return nil, err
	}
	out.After, out.Output = result.Document, result.Output
	if doc != nil && !result.Changed {
		out.Status = patchNotModified
		return out, nil
	}
	return out, p.store(ctx, tx, out)
}

// store stores the new version.
func (p *Patching) store(ctx context.Context, tx *jay.Tx, out *Patched) error {
	if p.Test {
		return nil
	}
	if err := p.Memory.Take(serve.StoreBytes(out.After)); err != nil {
		return err
	}
	_, err := tx.Put(ctx, out.ID, out.After, jay.Returning(&out.Meta))
	return err
}

// scriptHost gives a script access to documents.
type scriptHost struct {
	ctx context.Context
	p   *Patching
	tx  *jay.Tx
}

// Load implements script.Host.
func (h *scriptHost) Load(id string) ([]byte, error) {
	doc, err := h.tx.Get(h.ctx, id)
	if serve.IsMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return doc.MarshalJSON()
}

// Put implements script.Host.
func (h *scriptHost) Put(id string, document []byte, changeVector string) (string, error) {
	if h.p.Test {
		if err := h.p.check(id); err != nil { // as a Put would
			return "", err
		}
		h.p.note("put", id)
		return id, nil
	}
	var opts []jay.WriteOption
	if changeVector != "" {
		opts = append(opts, jay.IfMatch(changeVector))
	}
	if err := h.p.Memory.Take(serve.StoreBytes(document)); err != nil {
		return "", err
	}
	meta, err := h.tx.Put(h.ctx, id, document, opts...)
	return meta.ID, err
}

// Delete implements script.Host.
func (h *scriptHost) Delete(id string) (bool, error) {
	found, err := h.tx.Exists(h.ctx, id)
	if found && h.p.Test {
		h.p.note("delete", id)
	}
	if err != nil || !found || h.p.Test {
		return found, err
	}
	return true, h.tx.Delete(h.ctx, id)
}

// check refuses an ID that is too long or has a wrong character.
func (p *Patching) check(id string) error {
	rules := ids.Rules{Separator: "/", NodeTag: p.Call.Server.Tag(p.Call.Name), MaxBytes: cmp.Or(p.Call.Server.Options.Database.MaxIDBytes, ids.MaxBytes)}
	request, strategy := ids.NewResolver(rules, false, false, nil).Request(id)
	if request == "" {
		return nil
	}
	return ids.NewResolver(rules, false, false, nil).Check(request, strategy)
}

// note records a change that a test does not make.
func (p *Patching) note(verb, id string) {
	if len(p.Others) < maxPreviewOthers {
		p.Others = append(p.Others, verb+" "+id)
	}
}

// maxPreviewOthers bounds the other documents that a preview lists.
const maxPreviewOthers = 20
