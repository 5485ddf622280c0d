package jay

import (
	"github.com/jaydb/jay/internal/codec"
)

// setBody makes the JSON of a value the body of its write.
func (o *op) setBody(m *codec.Mapping, e codec.Encoded) {
	if o.body, o.sound = e.Body, e.Stored; !o.sound {
		o.drop = m.Drop
	}
}
