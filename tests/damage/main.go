// Damage is a campaign against databases on disk. It builds databases that
// were closed in peace, closed under load and killed under load, damages one
// file of a copy at a time, and judges what a program then sees: every
// document and every index entry, what can be written, and all of it again
// after a reopen.
//
//	go run ./tests/damage              # the whole campaign, some minutes
//	go run ./tests/damage -share 100   # one case of a hundred
//
// It uses the public API only. Databases are built, and cases judged, by child
// processes, so that a panic or a hang is an outcome, too. It exits with 1 if
// acknowledged data vanished without an error from a database that had been
// closed, or if there was a panic, a hang, or an error of no documented kind
// anywhere.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
)

// config is what the campaign is run with.
type config struct {
	dir      string // for the databases
	out      string // file of the report in JSON; "" for none
	seed     uint64
	share    int   // one case of so many is run
	random   int   // random bytes of large files, over all images
	images   int   // how many there are
	tail     int64 // bytes at the end of the live log that are all flipped
	parallel int
	timeout  time.Duration // after which a case hangs
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == buildCommand {
		exit(buildChild(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == judgeCommand {
		exit(judgeChild(os.Stdin, os.Stdout))
	}

	var c config
	flag.StringVar(&c.dir, "dir", memoryDir(), "directory for the databases, best in memory")
	flag.StringVar(&c.out, "out", "", "write the outcomes to this JSON file")
	flag.Uint64Var(&c.seed, "seed", 1, "of the random choices")
	flag.IntVar(&c.share, "share", 1, "run one case of so many")
	flag.IntVar(&c.random, "random", 10_000, "random bytes of large files to flip")
	flag.Int64Var(&c.tail, "tail", 4096, "bytes at the end of the live log to flip, all of them")
	flag.IntVar(&c.parallel, "parallel", 2, "cases at a time")
	flag.DurationVar(&c.timeout, "timeout", time.Minute, "after which a case hangs")
	flag.Parse()

	r, err := campaign(c, os.Stderr)
	if err != nil {
		exit(err)
	}
	r.print(os.Stdout)
	if c.out != "" {
		if err := r.save(c.out); err != nil {
			exit(err)
		}
	}
	if r.failed() {
		os.Exit(1)
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "damage:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// memoryDir returns a directory that costs no disk, if the system has one.
func memoryDir() string {
	const shared = "/dev/shm"
	if info, err := os.Stat(shared); err == nil && info.IsDir() && runtime.GOOS == "linux" {
		return shared
	}
	return os.TempDir()
}
