package script

import "encoding/json"

// jsonMethods are the functions of JSON.
func jsonMethods() map[string]*function {
	return map[string]*function{
		"stringify": native(func(r *run, place int, args []value) (value, error) {
			if arg(args, 1) != undefined && arg(args, 1) != nil || arg(args, 2) != undefined {
				return nil, &Error{place: place, Message: "JSON.stringify with a replacer or with blanks is not there", Missing: true}
			}
			switch arg(args, 0).(type) {
			case undefinedType, *function:
				return undefined, nil
			}
			lenient := r.lenient
			r.lenient, r.stringify = false, true // members that are undefined are left out, and what is no number is null
			defer func() { r.lenient, r.stringify = lenient, false }()
			raw, err := r.encode(nil, arg(args, 0), 0)
			return string(raw), err
		}),
		"parse": native(func(r *run, place int, args []value) (value, error) {
			text, err := r.text(arg(args, 0))
			if err != nil {
				return nil, err
			}
			if !json.Valid([]byte(text)) {
				return nil, fail(place, "JSON.parse: %.100q is no JSON", text)
			}
			return r.decode([]byte(text))
		}),
	}
}
