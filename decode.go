package jay

import (
	"encoding/json"

	quick "github.com/go-json-experiment/json/v1"
)

// decodeJSON stores a body in the struct that v points to, as json.Unmarshal
// does. Types that hold no code of the user's (shape.view) are decoded by the
// package that is to be encoding/json from Go 1.27 on, in little more than half
// of the time; whatever it does not like encoding/json decides, so that the
// errors are those that programs know. See docs/decisions/0014-decoding.md.
func (m *mapping) decodeJSON(body []byte, v any) error {
	if m.shape.view != nil && !m.shape.quoted && quick.Unmarshal(body, v) == nil {
		return nil
	}
	return json.Unmarshal(body, v)
}
