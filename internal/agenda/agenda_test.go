package agenda_test

import (
	"testing"
	"time"

	"github.com/jaydb/jay/internal/agenda"
)

func at(second int) time.Time { return time.Unix(int64(second), 0).UTC() }

// from returns where the entries of a snapshot begin that is taken now.
func from(a *agenda.Agenda) time.Time { return a.From(a.Begin()) }

// Ensure that the start never passes an entry that a look may not have seen, whenever its
// transaction commits.
func TestAgenda_From(t *testing.T) {
	for name, test := range map[string]struct {
		during func(a *agenda.Agenda) // between the look and what it has swept
		want   int
	}{
		"nothing":             {func(*agenda.Agenda) {}, 10},
		"staged and running":  {func(a *agenda.Agenda) { a.Staged(at(5)) }, 5},
		"staged and ended":    {func(a *agenda.Agenda) { a.Staged(at(5)); a.Ended(at(5)) }, 5},
		"the earliest counts": {func(a *agenda.Agenda) { a.Staged(at(7)); a.Staged(at(5)); a.Staged(at(6)) }, 5},
		"later":               {func(a *agenda.Agenda) { a.Staged(at(20)); a.Ended(at(20)) }, 10},
	} {
		a := agenda.New()
		a.Looks()
		test.during(a)
		a.Swept(at(10))
		if got := from(a); !got.Equal(at(test.want)) {
			t.Errorf("%s: got %v, want %v", name, got, at(test.want))
		}
	}

	// One that was staged before the look, and commits after it.
	a := agenda.New()
	a.Staged(at(5))
	a.Looks()
	a.Ended(at(5))
	a.Swept(at(10))
	if got := from(a); !got.Equal(at(5)) {
		t.Errorf("staged before: got %v, want %v", got, at(5))
	}
	a.Looks() // it sees it
	a.Swept(at(10))
	if got := from(a); !got.Equal(at(10)) {
		t.Errorf("at the next look: got %v, want %v", got, at(10))
	}
	a.Looks()
	a.Swept(at(8))
	if got := from(a); !got.Equal(at(10)) {
		t.Errorf("an earlier clock: got %v, want %v", got, at(10))
	}
}

// Ensure that a reader whose snapshot may have an entry before the start, which was staged
// while the snapshot was taken, looks everywhere.
func TestAgenda_From_Lowered(t *testing.T) {
	a := agenda.New()
	a.Looks()
	a.Swept(at(10))
	mark := a.Begin()
	a.Staged(at(5))
	a.Ended(at(5))
	a.Looks() // the sweeper has done it, after the snapshot
	a.Swept(at(12))
	if got := a.From(mark); !got.IsZero() {
		t.Errorf("got %v, want everything", got)
	}
	mark = a.Begin()
	a.Staged(at(20))
	a.Looks()
	a.Swept(at(15))
	if got := a.From(mark); !got.Equal(at(12)) {
		t.Errorf("got %v, want %v", got, at(12))
	}
}

// Ensure that a commit wakes the worker exactly if it is due before the worker looks
// again, and that none is lost between a look and its sleep, or between a sleep and its end.
func TestAgenda_Wakes(t *testing.T) {
	woken := func(a *agenda.Agenda) bool {
		select {
		case <-a.Awaken():
			return true
		default:
			return false
		}
	}
	commit := func(a *agenda.Agenda, second int) { a.Staged(at(second)); a.Ended(at(second)) }
	a := agenda.New()
	started := 0
	a.Serve(func() { started++ })
	commit(a, 100)
	if !woken(a) || started != 1 || !a.Used() {
		t.Fatal("the first entry does not start the worker")
	}
	a.Looks()
	a.Waits(at(100))
	commit(a, 100)
	commit(a, 101)
	if woken(a) {
		t.Error("what is due later wakes the worker")
	}
	commit(a, 99)
	if !woken(a) || started != 1 {
		t.Error("what is due earlier does not wake the worker")
	}
	a.Looks()
	commit(a, 1000)
	a.Waits(at(99))
	if !woken(a) {
		t.Error("a commit during a look was lost")
	}
	a.Looks()
	a.Waits(time.Time{})
	commit(a, 1<<40) // far beyond the nanoseconds of an int64
	if a.Leave() {
		t.Error("the worker ends though there is something to do")
	}
	if !woken(a) || !a.Leave() {
		t.Error("the worker does not end")
	}
	if commit(a, 5); started != 2 {
		t.Error("the worker does not start again")
	}
}
