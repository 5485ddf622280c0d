package write

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// hashAsked returns a hash of what prepared ops ask for. Ops that ask for something else
// have another one, also those that differ in a condition only. It is stored with the result of
// a call that has a request ID: see docs/format.md.
//
// Part of the on-disk format. Must not change.
func hashAsked(ops []*Op) string {
	hash := sha256.New()
	var head []byte
	for _, o := range ops {
		head = binary.AppendUvarint(o.appendAsked(head[:0]), uint64(len(o.Body)))
		hash.Write(head)
		hash.Write(o.Body)
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// appendAsked appends everything that was asked for except the body. Preparing has replaced
// the collection, and does so alike when the batch is used again. Attachments are not
// there: batches change none.
func (o *Op) appendAsked(dst []byte) []byte {
	dst = append(dst, byte(o.Verb))
	dst = appendFlags(dst, o.HiLo, o.Named, o.AnyVersion, o.KeepRevision, o.KeepReplaced, o.KeptTimed, o.KeepExpires, o.KeepRefresh)
	for _, text := range []string{o.RequestID, o.Prefix, o.Collection, o.InCollection, string(o.Custom), string(o.Kept)} {
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
