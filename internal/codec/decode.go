package codec

import (
	"encoding/json"

	quick "github.com/go-json-experiment/json/v1"
)

// DecodeJSON stores a body in the struct that v points to, as json.Unmarshal
// does. Types that hold no code of the user's (shape.view) are decoded by the
// package that is to be encoding/json from Go 1.27 on, in little more than half
// of the time; whatever it does not like encoding/json decides, so that the
// errors are those that programs know. See docs/decisions/0014-decoding.md.
func (m *Mapping) DecodeJSON(body []byte, v any) error {
	if m.Info.View != nil && !m.Info.Quoted && quick.Unmarshal(body, v) == nil {
		return nil
	}
	return json.Unmarshal(body, v)
}
