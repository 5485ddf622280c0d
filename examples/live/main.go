// Command live keeps a board of open tickets by a live query, is stopped, and goes on where
// it was after tickets have changed.
//
//	go run ./examples/live
package main

import (
	"context"
	"fmt"
	"log"
	"maps"
	"slices"
	"strings"

	"github.com/jaydb/jay"
)

// Ticket is a document.
type Ticket struct {
	ID     string
	Title  string
	Status string
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		return err
	}
	defer db.Close()
	tickets, err := jay.CollectionOf[Ticket](db)
	if err != nil {
		return err
	}
	put := func(id, title, status string) func() error {
		return func() error {
			_, err := tickets.Put(ctx, &Ticket{ID: id, Title: title, Status: status})
			return err
		}
	}
	for _, step := range []func() error{put("tickets/1", "printer", "open"), put("tickets/2", "lamp", "done")} {
		if err := step(); err != nil {
			return err
		}
	}

	b := board{open: make(map[string]string)}
	fmt.Println("The board begins:")
	if err := b.follow(ctx, tickets, []func() error{
		put("tickets/2", "lamp", "open"),
		put("tickets/1", "big printer", "open"),
		put("tickets/2", "lamp", "done"),
	}); err != nil {
		return err
	}
	for _, step := range []func() error{put("tickets/3", "door", "open"), put("tickets/1", "big printer", "done")} {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Println("It goes on after two changes:")
	return b.follow(ctx, tickets, nil)
}

// board is what a screen shows. A program keeps both fields together, in a file or in its own memory.
type board struct {
	open  map[string]string // titles by ID
	token string
}

// follow follows the open tickets. Each time that the board is current, it shows it and
// takes the next step; it ends after the last one.
func (b *board) follow(ctx context.Context, tickets *jay.Collection[Ticket], steps []func() error) error {
	for e, err := range tickets.Query().Where(jay.Eq("Status", "open")).Live(ctx, b.token) {
		if err != nil {
			return err
		}
		switch e.Kind {
		case jay.LiveEnter, jay.LiveChange:
			b.open[e.ID] = e.Value.Title
		case jay.LiveLeave:
			delete(b.open, e.ID)
		case jay.LiveCurrent:
			b.token = e.Token
			fmt.Println("  open:", strings.Join(slices.Sorted(maps.Values(b.open)), ", "))
			if len(steps) == 0 {
				return nil
			}
			if err := steps[0](); err != nil {
				return err
			}
			steps = steps[1:]
		}
	}
	return nil
}
