package sample

import (
	"strings"
	"testing"
	"time"
)

// Ensure that a fortnight, whichever day it begins, makes each case of each division, and a
// day never more than its part of them.
func TestSample_FortnightHasAll(t *testing.T) {
	const cases = 100
	first := time.Date(2026, 2, 20, 0, 0, 0, 0, time.UTC)
	for parts := 1; parts <= Fortnight; parts++ {
		for begin := range 40 {
			made := make(map[int]bool)
			for day := range Fortnight {
				s := on(first.AddDate(0, 0, begin+day), parts)
				n := 0
				for i := range cases {
					if s.Has(i) {
						made[i] = true
						n++
					}
				}
				if most := (cases + parts - 1) / parts; n > most {
					t.Fatalf("%d parts, day %d: %d cases, want at most %d", parts, begin+day, n, most)
				}
			}
			if len(made) != cases {
				t.Fatalf("%d parts, the fortnight from day %d: %d cases, want %d", parts, begin, len(made), cases)
			}
		}
	}
}

// Ensure that a run in full makes all cases, and a short one those of its part alone.
func TestOf(t *testing.T) {
	s := Of(t, 7)
	made := 0
	for i := range 70 {
		if s.Has(i) {
			made++
		}
	}
	want := 70
	if testing.Short() {
		want = 10
	}
	if rounds := s.Rounds(70); made != want || rounds != want {
		t.Errorf("got %d cases and %d rounds, want %d", made, rounds, want)
	}
	if s.Rounds(1) != 1 || (s.Seed() > 0) != testing.Short() {
		t.Errorf("got %d rounds of 1, seed %d", s.Rounds(1), s.Seed())
	}
}

// Ensure that the day is the variable's, or else that of the clock in UTC, and that what is no
// day is refused with its text.
func TestDayOf(t *testing.T) {
	now := time.Date(2026, 11, 25, 23, 30, 0, 0, time.FixedZone("", -3600)) // the 26th in UTC
	for text, want := range map[string]string{"": "20261126", "20260301": "20260301"} {
		day, err := dayOf(text, now)
		if err != nil || day.Format(layout) != want {
			t.Errorf("%q: got %v, %v, want %s", text, day, err, want)
		}
	}
	for _, text := range []string{"7", "2026-11-25", "20261301", "19691231"} {
		if _, err := dayOf(text, now); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// Ensure that more parts than a fortnight has days are refused.
func TestOn_TooManyParts(t *testing.T) {
	for _, parts := range []int{0, Fortnight + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d parts are accepted", parts)
				}
			}()
			on(time.Now(), parts)
		}()
	}
}
