package main

import (
	"context"
	"fmt"

	"github.com/jaydb/jay"
)

// expirationCommand shows and changes whether documents expire and are refreshed.
type expirationCommand struct {
	Refresh bool   `help:"Switch refresh, and not expiration."`
	Switch  string `arg:"" optional:"" enum:"on,off," default:"" help:"on or off; it shows both settings without."`
}

// expirationResult is what expiration prints with --json.
type expirationResult struct {
	Expiration jay.ExpirationConfiguration `json:"expiration"`
	Refresh    jay.RefreshConfiguration    `json:"refresh"`
}

// Help is shown by jay expiration --help.
func (*expirationCommand) Help() string {
	return `Where expiration is off, @expires in the metadata of a document has no effect, and documents whose instant has passed are shown. It is on in new databases, and off in those that RavenDB's clients create with jay serve. Switching on deletes what has expired meanwhile, when a program has the database open for writing.

Examples:

    jay expiration
    jay expiration off
    jay expiration on --refresh`
}

// Run changes the setting and prints both.
func (c *expirationCommand) Run(ctx context.Context, a *app) error {
	if c.Refresh && c.Switch == "" {
		return usageError{text: "--refresh goes with on or off"}
	}
	return a.withDatabase(c.Switch != "", func(db *jay.DB) error {
		disabled, err := c.Switch == "off", error(nil)
		switch {
		case c.Switch == "":
		case c.Refresh:
			err = db.ConfigureRefresh(ctx, jay.RefreshConfiguration{Disabled: disabled})
		default:
			err = db.ConfigureExpiration(ctx, jay.ExpirationConfiguration{Disabled: disabled})
		}
		if err != nil {
			return err
		}
		r := expirationResult{db.ExpirationConfiguration(), db.RefreshConfiguration()}
		if a.json {
			return a.printLine(r)
		}
		return a.print(fmt.Sprintf("expiration is %s, refresh is %s\n", onOrOff(r.Expiration.Disabled), onOrOff(r.Refresh.Disabled)))
	})
}

func onOrOff(disabled bool) string {
	if disabled {
		return "off"
	}
	return "on"
}
