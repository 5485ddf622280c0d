package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/etcd"
)

// A coordinator is opened without etcd: the first call connects. Package embedded has an
// example with an etcd.
func ExampleOpen() {
	coordinator, err := etcd.Open(etcd.Config{Endpoints: []string{"http://127.0.0.1:1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer coordinator.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err = coordinator.Read(ctx, "leader")
	fmt.Println("no majority:", errors.Is(err, cluster.ErrNoMajority))
	fmt.Println("unreachable:", errors.Is(err, etcd.ErrUnreachable))
	// Output:
	// no majority: true
	// unreachable: true
}

// An Error says what to do.
func ExampleError() {
	coordinator, err := etcd.Open(etcd.Config{Endpoints: []string{"http://127.0.0.1:1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer coordinator.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err = coordinator.Read(ctx, "leader")
	if failure, is := errors.AsType[*etcd.Error](err); is {
		fmt.Println(failure.Op, failure.Endpoints)
		fmt.Println(failure.Do)
	}
	// Output:
	// read [http://127.0.0.1:1]
	// check that the addresses are the client URLs of etcd, that it runs there, and that no firewall is between
}

// A configuration that cannot be names the field.
func ExampleConfig() {
	_, err := etcd.Open(etcd.Config{Endpoints: []string{"10.0.0.1:2379"}})
	fmt.Println(err)
	// Output: etcd: configuration: Endpoints: a URL such as https://10.0.0.1:2379, got "10.0.0.1:2379"
}
