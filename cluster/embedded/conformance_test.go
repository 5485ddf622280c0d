package embedded_test

import (
	"testing"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/cluster/etcd"
)

// Ensure that a coordinator on one member does what cluster.Coordinator says.
func TestConformance(t *testing.T) {
	t.Parallel()
	member := alone(t, nil)
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

// Ensure the same for three members that lose each other.
func TestConformance_Three(t *testing.T) {
	long(t)
	t.Parallel()
	c := startCell(t, 3, nil)
	clustertest.Run(t, func(t *testing.T) clustertest.Setup {
		c.mend()
		c.waitForLeader()
		return clustertest.Setup{
			Connect: func(t *testing.T) cluster.Coordinator {
				coordinator, err := etcd.Open(etcd.Config{Endpoints: c.endpoints(), Prefix: "test/" + t.Name() + "/"})
				if err != nil {
					t.Fatal(err)
				}
				return coordinator
			},
			LoseMajority: func(t *testing.T) {
				for i := range c.members {
					c.isolate(i)
				}
				c.waitForNoLeader()
			},
			RestoreMajority: func(t *testing.T) {
				c.mend()
				c.waitForLeader()
			},
		}
	})
}
