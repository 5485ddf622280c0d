package env

import (
	"strconv"

	"github.com/jaydb/jay/internal/format"
)

// ChangeVector returns the change vector of the version that node wrote with this
// etag.
func (e *Env) ChangeVector(node, etag uint64) string { return e.Origins.ChangeVector(node, etag) }

// Origins are the databases behind node numbers. They do not change while the
// database is open.
type Origins map[uint64]format.Origin

// ChangeVector returns the change vector of the version that node wrote with this
// etag.
func (all Origins) ChangeVector(node, etag uint64) string {
	o := all[node]
	var scratch [64]byte
	b := append(scratch[:0], o.Tag...)
	b = append(b, ':')
	b = strconv.AppendUint(b, etag, 10)
	b = append(b, '-')
	return string(append(b, o.ID...))
}
