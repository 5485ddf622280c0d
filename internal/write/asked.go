package write

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// hashAsked returns a hash of what prepared ops ask for. Ops that ask for something else
// have another one, also those that differ in a condition only. It is stored with the result of
// a call that has a request ID: see docs/format.md.
//
// Part of the on-disk format. Must not change.
func hashAsked(ops []*Op) string {
	hash := sha256.New()
	drawn := drawnIDs(ops)
	var head []byte
	for _, o := range ops {
		switch {
		case !o.Loaded:
			body := o.Body
			if drawn != nil {
				body = []byte(drawn.Replace(string(body)))
			}
			head = binary.AppendUvarint(o.appendAsked(head[:0]), uint64(len(body)))
			hash.Write(head)
			hash.Write(body)
		case o.Attaching != nil:
			hash.Write(o.Attaching.appendAsked(appendAskedText(head[:0], o.RequestID)))
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// drawnIDs replaces IDs that were drawn for the call, in the bodies that refer to them, by what a
// repeated call has in their place; nil if none was drawn.
func drawnIDs(ops []*Op) *strings.Replacer {
	var pairs []string
	for _, o := range ops {
		if o.Drawn {
			pairs = append(pairs, `"`+o.RequestID+`"`, "\x00"+strconv.Itoa(len(pairs))+"\x00")
		}
	}
	if pairs == nil {
		return nil
	}
	return strings.NewReplacer(pairs...)
}

// appendAsked appends everything that was asked for except the body. Preparing has replaced
// the collection, and does so alike when the batch is used again.
func (o *Op) appendAsked(dst []byte) []byte {
	dst = append(dst, byte(o.Verb))
	dst = appendFlags(dst, o.HiLo, o.Named, o.AnyVersion, o.KeepRevision, o.KeepReplaced, o.KeptTimed, o.KeepExpires, o.KeepRefresh)
	id := o.RequestID
	if o.Drawn {
		id = ""
	}
	for _, text := range []string{id, o.Prefix, o.Collection, o.InCollection, string(o.Custom), string(o.Kept)} {
		dst = appendAskedText(dst, text)
	}
	dst = appendFlags(dst, o.Expected != nil, o.Timing != nil, o.Patching != nil, o.Exchanging != nil, o.Guard != nil)
	if o.Expected != nil {
		dst = appendAskedText(dst, *o.Expected)
	}
	if t := o.Timing; t != nil {
		dst = binary.AppendVarint(dst, int64(t.TTL))
		dst = appendAskedTime(appendAskedTime(dst, t.Expires), t.Refresh)
	}
	if p := o.Patching; p != nil {
		dst = binary.AppendUvarint(appendFlags(dst, p.OrInsert, p.PatchInsert), uint64(len(p.Edits)))
		for _, e := range p.Edits {
			dst = e.AppendArguments(dst)
		}
	}
	if x := o.Exchanging; x != nil {
		dst = binary.AppendUvarint(appendFlags(dst, x.Delete), x.Index)
	}
	if g := o.Guard; g != nil {
		dst = binary.AppendUvarint(appendFlags(dst, g.Any), g.Index)
	}
	dst = binary.AppendUvarint(dst, uint64(len(o.LeaveOut)))
	for _, member := range o.LeaveOut {
		dst = appendAskedText(dst, member)
	}
	if o.Attaching != nil {
		dst = o.Attaching.appendAsked(dst)
	}
	return dst
}

// appendAsked appends the changes of attachments, which only sessions make beside a body.
func (a *Attaching) appendAsked(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(a.Changes)))
	for i := range a.Changes {
		c := &a.Changes[i]
		for _, text := range []string{c.Remove, c.Entry.Name, c.Entry.ContentType, string(c.Entry.Hash[:])} {
			dst = appendAskedText(dst, text)
		}
	}
	return dst
}

func appendAskedText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

func appendAskedTime(dst []byte, t *time.Time) []byte {
	if t == nil {
		return appendAskedText(dst, "")
	}
	return appendAskedText(dst, t.UTC().Format(time.RFC3339Nano))
}

// appendFlags appends up to eight flags, as one byte.
func appendFlags(dst []byte, flags ...bool) []byte {
	b := byte(0)
	for i, flag := range flags {
		if flag {
			b |= 1 << i
		}
	}
	return append(dst, b)
}
