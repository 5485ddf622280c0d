package simulation_test

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

func timePasses(w *world) {
	d := []time.Duration{0, time.Minute, time.Hour, 24 * time.Hour}[w.intn(4)]
	w.clock.Add(int64(d))
	w.figures.time += max(d, 0)
	time.Sleep(10 * time.Second) // in which all that looks at the clock does; a day has a million ticks of Pebble's
	fmt.Fprintf(w.log, "%v. ", d)
	w.due()
}

func setClock(w *world) {
	d := []time.Duration{-time.Hour, -time.Second, time.Minute, time.Hour, 1000 * time.Hour}[w.intn(5)]
	w.clock.Add(int64(d))
	w.figures.time += max(d, 0)
	fmt.Fprintf(w.log, "by %v. ", d)
	w.due()
}

// due does what is due.
func (w *world) due() {
	e := &entry{each: true}
	for _, key := range slices.Sorted(maps.Keys(w.model.state)) {
		if to, gone := w.expired(w.model.state[key]); gone {
			e.changes = append(e.changes, change{key, to})
		}
	}
	w.call(e, nil, func() (func(), error) { return nil, second(w.db.Sweep(ctx)) })
}
