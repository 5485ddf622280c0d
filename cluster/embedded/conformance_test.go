package embedded_test

import (
	"testing"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/cluster/embedded"
	"github.com/jaydb/jay/cluster/etcd"
)

// Ensure that the coordinator on one member does what cluster.Coordinator says.
func TestConformance(t *testing.T) {
	member, err := embedded.Start(embedded.Config{Name: "a", Dir: t.TempDir(), ClientURL: "http://127.0.0.1:0", PeerURL: "http://127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := member.Close(); err != nil {
			t.Error(err)
		}
	})
	clustertest.Run(t, func(t *testing.T) clustertest.Setup {
		return clustertest.Setup{
			Connect: func(t *testing.T) cluster.Coordinator {
				c, err := etcd.Open(etcd.Config{Endpoints: []string{member.ClientURL()}, Prefix: "test/" + t.Name() + "/"})
				if err != nil {
					t.Fatal(err)
				}
				return c
			},
		}
	})
}
