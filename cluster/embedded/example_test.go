package embedded_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/embedded"
	"github.com/jaydb/jay/cluster/etcd"
)

// A member in the program, and a coordinator that talks to it. With three machines each starts a
// member, names all of them in Peers, and the client URLs of all in Endpoints.
func Example() {
	dir, err := os.MkdirTemp("", "jay-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	member, err := embedded.Start(embedded.Config{Name: "a", Dir: dir, ClientURL: "http://127.0.0.1:0", PeerURL: "http://127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	defer member.Close()
	coordinator, err := etcd.Open(etcd.Config{Endpoints: []string{member.ClientURL()}})
	if err != nil {
		log.Fatal(err)
	}
	defer coordinator.Close()

	ctx := context.Background()
	first, err := coordinator.Commit(ctx, []cluster.Condition{{Key: "leader"}}, []cluster.Change{{Key: "leader", Value: []byte("A")}})
	if err != nil {
		log.Fatal(err)
	}
	second, err := coordinator.Commit(ctx, []cluster.Condition{{Key: "leader"}}, []cluster.Change{{Key: "leader", Value: []byte("B")}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first.Committed(), second.Committed(), string(second.Actual[0].Value))
	// Output: true false A
}

// Status shows the members as they see themselves.
func ExampleMember() {
	dir, err := os.MkdirTemp("", "jay-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	member, err := embedded.Start(embedded.Config{Name: "a", Dir: dir, ClientURL: "http://127.0.0.1:0", PeerURL: "http://127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	defer member.Close()
	ctx := context.Background()
	if err := member.Ready(ctx); err != nil {
		log.Fatal(err)
	}
	coordinator, err := etcd.Open(etcd.Config{Endpoints: []string{member.ClientURL()}})
	if err != nil {
		log.Fatal(err)
	}
	defer coordinator.Close()
	list, err := coordinator.Status(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, endpoint := range list {
		fmt.Println(endpoint.Version > etcd.MinVersion, endpoint.Leader == endpoint.ID, endpoint.Err)
	}
	fmt.Println(len(member.Peers()), member.Leader())
	// Output:
	// true true <nil>
	// 1 true
}

// A configuration that other machines could reach without TLS is refused.
func ExampleConfig() {
	_, err := embedded.Start(embedded.Config{Name: "a", Dir: "data", ClientURL: "http://10.0.0.1:2379"})
	fmt.Println(err)
	// Output:
	// embedded etcd: configuration: not secure: ClientURL: 10.0.0.1:2379 can be reached from other machines without TLS: use https with ClientTLS, or set Insecure in a network that is protected otherwise
}
