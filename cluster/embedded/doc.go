// Package embedded runs a member of an etcd cluster inside the program. So one program on
// three machines is a cluster, without another server to operate.
//
//	member, err := embedded.Start(embedded.Config{
//		Name: "a", Dir: "/var/lib/shop/etcd",
//		PeerURL: "https://10.0.0.1:2380", ClientURL: "https://10.0.0.1:2379",
//		Peers:   map[string]string{"a": "https://10.0.0.1:2380", "b": "https://10.0.0.2:2380", "c": "https://10.0.0.3:2380"},
//		PeerTLS: files, ClientTLS: files,
//	})
//	if err != nil {
//		return err
//	}
//	defer member.Close()
//	coordinator, err := etcd.Open(etcd.Config{Endpoints: clientURLs, TLS: config})
//
// The coordinator that talks to the members is in the module
// github.com/jaydb/jay/cluster/etcd. Give it the client URLs of all members, so that the
// program keeps working while its own member is down.
//
// # How many
//
// Three members tolerate the loss of one, five the loss of two. Two members are worse than
// one: the loss of either stops the cluster. A member needs a disk that syncs quickly,
// about 100 MB of memory, and a network whose round trip is well below Config.Heartbeat.
//
// # Security
//
// An etcd without TLS serves everyone who can reach it. A URL with http must therefore
// have a loopback address; on other addresses both sides of each connection show a
// certificate (TLS). Config.Insecure allows http in a network that is protected by other
// means.
//
// # Limits
//
// When etcd cannot write its files, it ends its process. An embedded member only fails:
// Done is closed, and Err returns the cause. Restart the member when the cause is gone.
package embedded
