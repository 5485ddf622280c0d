package jay_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster/clustertest"
)

// ExampleClusterStats has two nodes make identities together, one of which is cut off for a while.
func ExampleClusterStats() {
	coordinator := clustertest.NewMemory() // in a program: package cluster/etcd
	there := coordinator.Connect()
	a, err := jay.OpenMemory(&jay.Options{NodeTag: "A", Cluster: coordinator.Connect()})
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	b, err := jay.OpenMemory(&jay.Options{NodeTag: "B", Cluster: there})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	insert := func(ctx context.Context, db *jay.DB, id string) {
		switch m, err := db.Insert(ctx, id, []byte(`{}`)); {
		case errors.Is(err, jay.ErrNoMajority):
			fmt.Println("no majority")
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println(m.ID)
		}
	}
	ctx := context.Background()
	insert(ctx, a, "invoices|")
	insert(ctx, b, "invoices|")
	there.Cut()
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	insert(limited, b, "invoices|")
	insert(ctx, b, "invoices/draft")
	there.Mend()

	stats, err := b.Stats(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stats.Cluster.NodeTag, stats.Cluster.Joined, stats.Cluster.Refusal == "")
	// Output:
	// invoices/1
	// invoices/2
	// no majority
	// invoices/draft
	// B true true
}
