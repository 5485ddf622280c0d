// Package sample chooses which cases of a long test a short run makes: others each day, and
// all of them within a fortnight. A run in full makes all of them.
//
//	today := sample.Of(t, 10)
//	for i, c := range cases {
//		if today.Has(i) {
//			try(t, c)
//		}
//	}
//
// Tests whose cases are random need no sample: each of their runs is another one. They make
// fewer rounds in a short run.
package sample

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// Fortnight is how many days in a row make all cases of each test, and so the most parts
// into which the cases of a test can be divided.
const Fortnight = 14

// Variable names the environment variable that repeats the sample of a day, as in
// JAY_SEED=20261125.
const Variable = "JAY_SEED"

const layout = "20060102"

// Sample is a part of a test's cases. The zero value is not a sample.
type Sample struct {
	day         int // since 1970, or 0 in full
	part, parts int
}

// Of returns the part of today, one of so many parts, and logs what repeats it. Today is the
// date in UTC, or that of Variable. In a run without -short there is one part.
//
// It panics if there are more parts than days in a fortnight.
func Of(t testing.TB, parts int) Sample {
	t.Helper()
	if !testing.Short() {
		return Sample{parts: 1}
	}
	day, err := today()
	if err != nil {
		t.Fatal(err)
	}
	s := on(day, parts)
	t.Logf("part %d of %d; %s=%s repeats it", s.part+1, parts, Variable, day.Format(layout))
	return s
}

// Has reports whether case i, counted from 0, is in the sample.
func (s Sample) Has(i int) bool { return i%s.parts == s.part }

// Seed is what a test whose random cases have a fixed seed adds to it: 0 in full, and the day
// in a short run, which makes fewer of them.
func (s Sample) Seed() uint64 { return uint64(s.day) }

// Rounds returns one part of n rounds, at least one, for tests whose rounds follow one another.
func (s Sample) Rounds(n int) int { return max(1, (n+s.parts-1)/s.parts) }

// on returns the part of a day.
func on(day time.Time, parts int) Sample {
	if parts < 1 || parts > Fortnight {
		panic(fmt.Sprintf("sample: %d parts, want 1 to %d", parts, Fortnight))
	}
	days := int(day.Unix() / int64(24*time.Hour/time.Second))
	return Sample{day: days, part: days % parts, parts: parts}
}

// today returns the day whose sample is made. It is the same for all tests of a process,
// though midnight passes.
var today = sync.OnceValues(func() (time.Time, error) {
	return dayOf(os.Getenv(Variable), time.Now())
})

// dayOf returns the day that text names, or that of now if it is empty.
func dayOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return now.UTC().Truncate(24 * time.Hour), nil
	}
	day, err := time.Parse(layout, text)
	if err != nil || day.Unix() < 0 {
		return time.Time{}, fmt.Errorf("%s is %q, want a date since 1970 such as 20261125", Variable, text)
	}
	return day, nil
}
