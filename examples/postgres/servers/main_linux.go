// Command servers runs PostgreSQL on three machines in network namespaces, with Patroni and etcd, as the tests of failovers do. It
// prints the address for programs, and then does what each line of its input says, with one line as the answer:
//
//	primary    the name of the primary server
//	kill       kills the machine of the primary server, and names it
//	start      starts that machine again, and answers when it is a standby
//
// At the end of its input all goes.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/jaydb/jay/internal/pgtest"
)

// patience is how long each step takes at most, on a machine that has other things to do.
const patience = 8 * time.Minute

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	cluster, err := pgtest.StartCluster()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, errors.New(cluster.Logs()))
		}
		err = errors.Join(err, cluster.Stop())
	}()
	fmt.Println(cluster.URL("jay_schema=invoices"))
	var killed *pgtest.Node
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var answer string
		switch command := in.Text(); command {
		case "primary":
			answer, err = cluster.Primary(patience)
		case "kill":
			if killed, err = cluster.Whole(patience); err == nil {
				answer, err = killed.Name(), killed.Signal(syscall.SIGKILL)
			}
		case "start":
			if killed == nil {
				return errors.New("no machine was killed")
			}
			if err = killed.Start(); err == nil {
				_, err = cluster.Whole(patience)
			}
			answer = killed.Name()
		default:
			err = fmt.Errorf("no command %q", command)
		}
		if err != nil {
			return err
		}
		fmt.Println(answer)
	}
	return nil
}
