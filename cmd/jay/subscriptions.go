package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jaydb/jay"
)

// subscriptionsCommand lists and manages subscriptions.
type subscriptionsCommand struct {
	List     subscriptionsListCommand     `cmd:"" default:"1" help:"List subscriptions, with their progress and lag."`
	Create   subscriptionsCreateCommand   `cmd:"" help:"Create a subscription, unless it exists."`
	Failures subscriptionsFailuresCommand `cmd:"" help:"List the documents that a worker could not process."`
	Retry    subscriptionsRetryCommand    `cmd:"" help:"Send documents again that have failed."`
	Reset    subscriptionsResetCommand    `cmd:"" help:"Begin again with all documents, or behind a token."`
	Disable  subscriptionsDisableCommand  `cmd:"" help:"Keep workers from a subscription."`
	Enable   subscriptionsEnableCommand   `cmd:"" help:"Let workers come back."`
	Drop     subscriptionsDropCommand     `cmd:"" help:"Remove a subscription."`
}

// subscriptionsListCommand lists subscriptions.
type subscriptionsListCommand struct{}

// Help is shown by jay subscriptions list --help.
func (*subscriptionsListCommand) Help() string {
	return `Behind is the lag: how many etags lie between the last acknowledged change and the newest one. A subscription that no program works on any more shows a lag that grows: drop it, or disable it, as one that asks for deletions keeps their records.

Examples:

    jay subscriptions
    jay subscriptions --json | jq 'select(.behind > 10000) | .name'`
}

// Run prints the subscriptions.
func (*subscriptionsListCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		all, err := db.Subscriptions().List(ctx)
		if err != nil {
			return err
		}
		if a.json {
			for _, info := range all {
				if err := a.printLine(info); err != nil {
					return err
				}
			}
			return nil
		}
		table := newFigures("Subscription", "Behind", "Acknowledged", "Failing", "Dead", "State")
		for _, info := range all {
			table.add(info.Name, info.Behind, info.Acknowledged, info.Failing, info.Dead, subscriptionState(info))
		}
		var queries strings.Builder
		for _, info := range all {
			fmt.Fprintf(&queries, "%s: %s\n", info.Name, info.Query)
		}
		return a.print(table.render(a.width) + "\n\n" + queries.String())
	})
}

// subscriptionState describes the state of a subscription in a few words.
func subscriptionState(info jay.SubscriptionInfo) string {
	switch {
	case info.Missed:
		return "has missed deletions: reset it"
	case info.Disabled:
		return "disabled"
	case info.LastBatch.IsZero():
		return "no batch yet"
	}
	return "last batch " + info.LastBatch.UTC().Format(time.RFC3339)
}

// subscriptionsCreateCommand creates a subscription.
type subscriptionsCreateCommand struct {
	Name        string        `arg:"" help:"Name of the subscription."`
	Query       string        `arg:"" help:"RQL with from, where and select."`
	Since       string        `placeholder:"TOKEN" help:"Begin behind this token of jay changes, or with now, instead of with all documents."`
	Deletions   bool          `help:"Send deletions, too."`
	MaxFailures int           `placeholder:"N" help:"How often a document may fail before it is dead, 5 unless told."`
	RetryDelay  time.Duration `placeholder:"D" help:"Time after which a document that has failed is sent again, a second unless told."`
}

// Run creates the subscription.
func (c *subscriptionsCreateCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		return db.Subscriptions().Ensure(ctx, jay.Subscription{
			Name: c.Name, Query: c.Query, Since: c.Since, Deletions: c.Deletions, MaxFailures: c.MaxFailures, RetryDelay: c.RetryDelay,
		})
	})
}

// subscriptionsFailuresCommand lists documents that have failed.
type subscriptionsFailuresCommand struct {
	Name string `arg:"" help:"Name of the subscription."`
}

// Run prints a line of JSON for each document.
func (c *subscriptionsFailuresCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		all, err := db.Subscriptions().Failures(ctx, c.Name)
		if err != nil {
			return err
		}
		for _, f := range all {
			if err := a.printLine(f); err != nil {
				return err
			}
		}
		return nil
	})
}

// subscriptionsRetryCommand sends documents again.
type subscriptionsRetryCommand struct {
	Name string   `arg:"" help:"Name of the subscription."`
	IDs  []string `arg:"" optional:"" name:"id" help:"The documents; all that have failed unless told."`
}

// Run prints how many documents will be sent again.
func (c *subscriptionsRetryCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error {
		n, err := db.Subscriptions().Retry(ctx, c.Name, c.IDs...)
		if err != nil {
			return err
		}
		if a.json {
			return a.printLine(struct {
				Documents int `json:"documents"`
			}{n})
		}
		return a.print(fmt.Sprintf("%d to be sent again\n", n))
	})
}

// subscriptionsResetCommand resets a subscription.
type subscriptionsResetCommand struct {
	Name  string `arg:"" help:"Name of the subscription."`
	Since string `placeholder:"TOKEN" help:"Behind this token of jay changes, or now."`
}

// Run resets the subscription.
func (c *subscriptionsResetCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error { return db.Subscriptions().Reset(ctx, c.Name, c.Since) })
}

// subscriptionsDisableCommand disables a subscription.
type subscriptionsDisableCommand struct {
	Name string `arg:"" help:"Name of the subscription."`
}

// Run disables the subscription.
func (c *subscriptionsDisableCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error { return db.Subscriptions().Disable(ctx, c.Name) })
}

// subscriptionsEnableCommand enables a subscription.
type subscriptionsEnableCommand struct {
	Name string `arg:"" help:"Name of the subscription."`
}

// Run enables the subscription.
func (c *subscriptionsEnableCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error { return db.Subscriptions().Enable(ctx, c.Name) })
}

// subscriptionsDropCommand removes a subscription.
type subscriptionsDropCommand struct {
	Name string `arg:"" help:"Name of the subscription."`
}

// Run drops the subscription.
func (c *subscriptionsDropCommand) Run(ctx context.Context, a *app) error {
	return a.withDatabase(false, func(db *jay.DB) error { return db.Subscriptions().Drop(ctx, c.Name) })
}
