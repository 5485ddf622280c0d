package script

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// date is a JavaScript Date, in UTC. It cannot be changed. One that is no point in time has no milliseconds.
type date struct {
	at    time.Time
	valid bool
}

// maxMilliseconds is the greatest distance of a date from 1970.
const maxMilliseconds = 8.64e15

// dateOf returns the date of milliseconds since 1970.
func dateOf(milliseconds float64) *date {
	if math.IsNaN(milliseconds) || math.Abs(milliseconds) > maxMilliseconds {
		return &date{}
	}
	return &date{time.UnixMilli(int64(milliseconds)).UTC(), true}
}

// dateLayouts are those of texts that are dates: RavenDB's and those of RFC 3339. Without an offset a text is in UTC.
var dateLayouts = []string{"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02", "2006-01", "2006"}

// parseDate returns the date of a text.
func parseDate(text string) *date {
	if len(text) > 64 {
		return &date{}
	}
	for _, layout := range dateLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return dateOf(float64(at.UnixMilli()))
		}
	}
	return &date{}
}

// parseMilliseconds is Date.parse.
func parseMilliseconds(_ *run, _ int, args []value) (value, error) {
	switch v := arg(args, 0).(type) {
	case string:
		return tidy(parseDate(v).milliseconds()), nil
	case *date:
		return tidy(v.milliseconds()), nil
	}
	return math.NaN(), nil
}

func (d *date) milliseconds() float64 {
	if !d.valid {
		return math.NaN()
	}
	return float64(d.at.UnixMilli())
}

// text is that of toISOString, and not JavaScript's in a zone of the machine.
func (d *date) text() string {
	if !d.valid {
		return "Invalid Date"
	}
	text := d.at.Format("-01-02T15:04:05.000Z")
	switch year := d.at.Year(); {
	case year < 0:
		return fmt.Sprintf("-%06d", -year) + text
	case year > 9999:
		return fmt.Sprintf("+%06d", year) + text
	default:
		return fmt.Sprintf("%04d", year) + text
	}
}

// append appends the date as JSON.
func (d *date) append(dst []byte) []byte {
	if !d.valid {
		return append(dst, "null"...)
	}
	return strconv.AppendQuote(dst, d.text())
}

// date parses new Date(...). A date of now is not there: the same query gives the same answers.
func (p *parser) date() (node, error) {
	t := p.tok()
	if p.peek(2).text != "(" || p.peek(3).text == ")" {
		return nil, p.missing("new Date() of the present time")
	}
	p.i += 3
	n := &newDate{place: t.place}
	values, spread, err := p.arguments(")")
	for _, is := range spread {
		if is && err == nil {
			err = p.missing("... in new Date()")
		}
	}
	n.arguments = values
	return n, err
}

func (n *newDate) eval(r *run, s *scope) (value, error) {
	var args []value
	for _, a := range n.arguments {
		v, err := a.eval(r, s)
		if err != nil {
			return nil, err
		}
		args = append(args, v)
	}
	if err := r.allocate(n.place, 48); err != nil {
		return nil, err
	}
	if len(args) == 1 {
		if text, is := args[0].(string); is {
			return parseDate(text), nil
		}
		if args[0] == undefined {
			return &date{}, nil
		}
		return dateOf(number(args[0])), nil
	}
	return fromParts(args), nil
}

// fromParts returns the date of a year, a month from 0, a day, and so on.
func fromParts(args []value) *date {
	parts := [7]int{2: 1}
	for i := range min(len(args), len(parts)) {
		f := number(args[i])
		if math.IsNaN(f) || math.Abs(f) > 1e9 {
			return &date{}
		}
		parts[i] = int(f)
	}
	if parts[0] >= 0 && parts[0] < 100 {
		parts[0] += 1900
	}
	if parts[0] < -271_821 || parts[0] > 275_760 {
		return &date{}
	}
	return dateOf(float64(time.Date(parts[0], time.Month(parts[1]+1), parts[2], parts[3], parts[4], parts[5], 0, time.UTC).UnixMilli()) + float64(parts[6]))
}

// dateMethods are the methods of dates. All are in UTC.
var dateMethods map[string]method

func init() {
	dateMethods = make(map[string]method)
	part := func(name string, of func(time.Time) int) {
		m := func(_ *run, _ int, this value, _ []value) (value, error) {
			if d := this.(*date); d.valid {
				return int64(of(d.at)), nil
			}
			return math.NaN(), nil
		}
		dateMethods["get"+name], dateMethods["getUTC"+name] = m, m
	}
	part("FullYear", time.Time.Year)
	part("Month", func(t time.Time) int { return int(t.Month()) - 1 })
	part("Date", time.Time.Day)
	part("Day", func(t time.Time) int { return int(t.Weekday()) })
	part("Hours", time.Time.Hour)
	part("Minutes", time.Time.Minute)
	part("Seconds", time.Time.Second)
	part("Milliseconds", func(t time.Time) int { return t.Nanosecond() / 1e6 })
	for _, name := range []string{"getTime", "valueOf"} {
		dateMethods[name] = func(_ *run, _ int, this value, _ []value) (value, error) {
			return tidy(this.(*date).milliseconds()), nil
		}
	}
	dateMethods["toISOString"] = func(_ *run, place int, this value, _ []value) (value, error) {
		d := this.(*date)
		if !d.valid {
			return nil, fail(place, "toISOString needs a valid date")
		}
		return d.text(), nil
	}
	dateMethods["toJSON"] = func(_ *run, _ int, this value, _ []value) (value, error) {
		d := this.(*date)
		if !d.valid {
			return nil, nil
		}
		return d.text(), nil
	}
}
