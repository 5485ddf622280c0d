// Command measure has measurements of one feature each, beside what a user would have without it or instead of it.
//
//	go run ./measure NAME [-rounds R] [-slice D] [-dir DIR] [-profile FILE] [-smoke] [flags of its own]
//	go run ./measure -smoke
//
// Without a name it lists them; -h after a name lists the flags. -smoke alone runs each of them shortly, to see that they work. It ends with status 1
// if one fails, and with status 2 after wrong arguments.
package main

import (
	"fmt"
	"os"

	"github.com/jaydb/jay/bench/attachments"
	"github.com/jaydb/jay/bench/bombs"
	"github.com/jaydb/jay/bench/contended"
	"github.com/jaydb/jay/bench/expiry"
	"github.com/jaydb/jay/bench/feeds"
	"github.com/jaydb/jay/bench/garbage"
	"github.com/jaydb/jay/bench/harness"
	"github.com/jaydb/jay/bench/importing"
	"github.com/jaydb/jay/bench/indexbuild"
	"github.com/jaydb/jay/bench/live"
	"github.com/jaydb/jay/bench/revisions"
)

func main() {
	if is, err := importing.Load(); is {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(harness.Main([]harness.Measurement{
		attachments.Measurement, bombs.Measurement, contended.Measurement, expiry.Measurement, feeds.Measurement,
		garbage.Measurement, importing.Measurement, indexbuild.Measurement, live.Measurement, revisions.Measurement,
	}, os.Args[1:], os.Stderr))
}
