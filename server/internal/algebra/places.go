package algebra

import "strings"

// places translates what definitions have for places.
type places struct{ *translator }

// made returns the place that CreateSpatialField makes, of a latitude and a longitude or of a member that has WKT or GeoJSON.
func (t places) made(n *node, name string, args []*node, s *scope) (value, error) {
	if strings.HasPrefix(name, "c") != t.script {
		return value{}, t.fail(n.at, "the function %.100s is not there", name)
	}
	if t.reducing {
		return value{}, t.fail(n.at, "%s: a place is made in a map", name)
	}
	if len(args) < 1 || len(args) > 2 {
		return value{}, t.fail(n.at, "%s takes a latitude and a longitude, or a member with WKT", name)
	}
	v, err := t.eval(args[0], s)
	if err != nil {
		return v, err
	}
	if len(args) == 1 {
		if v.shape != isReference || v.root != ofDocument && v.root != ofElement || len(v.path) == 0 {
			return v, t.fail(n.at, "%s: a text of a place is a member of the document", name)
		}
		return value{shape: isPlace, text: v.pathText(), maybe: true}, nil
	}
	latitude, err := t.coordinate(v)
	if err != nil {
		return v, err
	}
	if v, err = t.eval(args[1], s); err != nil {
		return v, err
	}
	longitude, err := t.coordinate(v)
	return pointOf(latitude, longitude), err
}

// coordinate returns a latitude or a longitude. One that is missing makes no place.
func (t places) coordinate(v value) (value, error) {
	o, err := t.operand(v)
	if err == nil && o.kind != anyKind && o.kind != nullKind && !isNumber(o.kind) {
		err = t.fail(v.at, "a latitude or a longitude is a number, and this is %s", kindNames[o.kind])
	}
	return o, err
}

func pointOf(latitude, longitude value) value {
	of := [2]value{latitude, longitude}
	return value{shape: isPlace, text: call("spatial.point", anyKind, true, latitude.text, longitude.text).text, values: of[:]}
}

// chosen returns a place or null, by a condition: a point without a latitude is none.
func (t places) chosen(at int, c condition, yes, no value) (value, error) {
	if yes.shape != isPlace {
		c, yes, no = not(c), no, yes
	}
	if no.shape != isScalar || !no.constant || no.kind != nullKind || len(yes.values) != 2 {
		return yes, t.fail(at, "a choice of places is one of a latitude and a longitude, or null")
	}
	latitude := yes.values[0]
	latitude.text = "if(" + c.in(orderOr) + ", " + latitude.text + ", null)"
	return pointOf(latitude, yes.values[1]), nil
}
