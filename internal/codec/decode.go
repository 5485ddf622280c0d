package codec

import (
	"encoding/json"

	jsonv1 "github.com/go-json-experiment/json/v1"
)

// DecodeJSON stores a body in the struct that v points to, as json.Unmarshal does.
// Types that run no user code (TypeInfo.View) are decoded by the package that
// becomes encoding/json in Go 1.27, in little more than half the time. What that
// package refuses is decoded again by encoding/json, so that the errors are those
// that programs know. See docs/decisions/0014-decoding.md.
func (m *Mapping) DecodeJSON(body []byte, v any) error {
	if m.Info.View != nil && !m.Info.Quoted && jsonv1.Unmarshal(body, v) == nil {
		return nil
	}
	return json.Unmarshal(body, v)
}
