// Package etcd lets the nodes of a cluster agree through etcd (version 3.4 and later): its
// Coordinator is the cluster.Coordinator for jay.Options.Cluster.
//
//	coordinator, err := etcd.Open(etcd.Config{Endpoints: []string{"http://10.0.0.1:2379", "http://10.0.0.2:2379", "http://10.0.0.3:2379"}})
//	if err != nil {
//		return err
//	}
//	defer coordinator.Close()
//	db, err := jay.Open("shop.jay", &jay.Options{NodeTag: "A", Cluster: coordinator})
//
// etcd can run beside the program, or in it: package embedded of the module
// github.com/jaydb/jay/cluster/embedded starts a member.
//
// # What is in etcd
//
// Keys begin with Config.Prefix. A record of package cluster with the key k is under
// prefix + "r/" + k, and prefix + "format" says which format that is, and in which etcd cluster it
// was written. A Commit is one transaction: its conditions are compares of mod revisions, and its
// revision is the index of what it puts.
//
// # What goes wrong, and what happens then
//
// Each attempt of a request has a time limit. A read is retried, on another member, until
// the context ends. A commit is retried only if it has not left this process or was
// rejected: one that may have been carried out is an ErrUnknownOutcome and is never sent
// again. So leader changes, members that are down and broken connections cost time, but
// never more than the context allows. Nothing depends on clocks: no lease of etcd is used.
//
// An *Error names the endpoints, the problem and the remedy. Since Open does not connect,
// a wrong address, certificate or password is reported by the first call.
package etcd
