package embedded_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/embedded"
	"github.com/jaydb/jay/cluster/etcd"
)

// refused calls a coordinator, and checks that the error is of a kind, names the endpoint, and
// says each of the texts. It must come long before the context ends.
func refused(t *testing.T, what string, config etcd.Config, kind, general error, says ...string) {
	t.Helper()
	c := open(t, config)
	ctx := within(t)
	_, err := c.Read(ctx, "x")
	if !errors.Is(err, kind) || !errors.Is(err, general) {
		t.Errorf("%s: got %v", what, err)
		return
	}
	if ctx.Err() != nil {
		t.Errorf("%s: refused only when the context has ended", what)
	}
	for _, text := range append(says, config.Endpoints[0]) {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: the error does not say %q: %v", what, text, err)
		}
	}
	var complete *etcd.Error
	if !errors.As(err, &complete) || complete.Do == "" {
		t.Errorf("%s: the error does not say what to do: %v", what, err)
	}
	if _, err := c.Commit(ctx, nil, []cluster.Change{put("x", "1")}); !errors.Is(err, kind) || errors.Is(err, cluster.ErrUnknownOutcome) {
		t.Errorf("%s: a commit: got %v", what, err)
	}
}

// authority signs certificates.
type authority struct {
	t           *testing.T
	dir, name   string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir(), name: name}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.key = newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	write(t, a.file("ca.pem"), "CERTIFICATE", der)
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// issue writes a certificate for 127.0.0.1, or for another host, and its key.
func (a *authority) issue(name, host string, until time.Time) embedded.TLS {
	a.t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	key := newKey(a.t)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	write(a.t, a.file(name+".pem"), "CERTIFICATE", der)
	write(a.t, a.file(name+"-key.pem"), "EC PRIVATE KEY", private)
	return embedded.TLS{Certificate: a.file(name + ".pem"), Key: a.file(name + "-key.pem"), Authorities: a.file("ca.pem")}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func write(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, authorities string, files embedded.TLS) *tls.Config {
	t.Helper()
	config, err := etcd.LoadTLS(authorities, files.Certificate, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// secure starts a member whose client URL has TLS.
func secure(t *testing.T, files embedded.TLS) *embedded.Member {
	t.Helper()
	return alone(t, func(c *embedded.Config) {
		c.ClientURL, c.ClientTLS = "https://127.0.0.1:0", files
	})
}

// Ensure that each way in which TLS can be wrong is an error of its own, at once.
func TestRefused_TLS(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	tomorrow, yesterday := time.Now().Add(24*time.Hour), time.Now().Add(-time.Hour)
	node := ours.issue("node", "127.0.0.1", tomorrow)
	member := secure(t, ours.issue("server", "127.0.0.1", tomorrow))
	url := member.ClientURL()
	good := load(t, ours.file("ca.pem"), node)

	c := open(t, etcd.Config{Endpoints: []string{url}, TLS: good})
	commit(t, c, nil, put("x", "1"))

	for _, row := range []struct {
		what string
		url  string
		tls  *tls.Config
		says string
	}{
		{"no authority", url, nil, "an authority that is not trusted"},
		{"another authority", url, load(t, theirs.file("ca.pem"), node), "an authority that is not trusted"},
		{"no certificate", url, load(t, ours.file("ca.pem"), embedded.TLS{}), "demands a certificate"},
		{"a certificate of another authority", url, load(t, ours.file("ca.pem"), theirs.issue("stranger", "127.0.0.1", tomorrow)), "demands a certificate"},
		{"an expired certificate", url, load(t, ours.file("ca.pem"), ours.issue("late", "127.0.0.1", yesterday)), "refuses the certificate"},
		{"plain text", strings.Replace(url, "https", "http", 1), nil, "demands TLS"},
		{"etcd's certificate has expired", secure(t, ours.issue("old", "127.0.0.1", yesterday)).ClientURL(), good, "is valid from"},
		{"etcd's certificate is another host's", secure(t, ours.issue("elsewhere", "etcd.example.com", tomorrow)).ClientURL(), good, "names other hosts"},
		{"etcd speaks plain text", strings.Replace(alone(t, nil).ClientURL(), "http", "https", 1), good, "speaks plain text"},
	} {
		refused(t, row.what, etcd.Config{Endpoints: []string{row.url}, TLS: row.tls}, etcd.ErrCertificate, cluster.ErrRefused, row.says)
	}
	if got := value(t, c, "x"); got != "1" {
		t.Errorf("got %q", got)
	}
}

// Ensure that a user that etcd does not let in has an error that says so, and that one that it
// does let in can work, also when its token has expired.
func TestRefused_Users(t *testing.T) {
	t.Parallel()
	member := alone(t, nil)
	admin := rawClient(t, member.ClientURL(), "", "")
	ctx := within(t)
	for _, step := range []func() error{
		func() error { _, err := admin.RoleAdd(ctx, "root"); return err },
		func() error { _, err := admin.UserAdd(ctx, "root", "secret"); return err },
		func() error { _, err := admin.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := admin.RoleAdd(ctx, "jay"); return err },
		func() error {
			_, err := admin.RoleGrantPermission(ctx, "jay", "jay/", clientv3.GetPrefixRangeEnd("jay/"), clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := admin.UserAdd(ctx, "node", "password"); return err },
		func() error { _, err := admin.UserGrantRole(ctx, "node", "jay"); return err },
		func() error { _, err := admin.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	endpoints := []string{member.ClientURL()}
	c := open(t, etcd.Config{Endpoints: endpoints, Username: "node", Password: "password"})
	commit(t, c, nil, put("x", "1"))
	refused(t, "a wrong password", etcd.Config{Endpoints: endpoints, Username: "node", Password: "wrong"}, etcd.ErrAuth, cluster.ErrRefused, "password")
	refused(t, "an unknown user", etcd.Config{Endpoints: endpoints, Username: "nobody", Password: "password"}, etcd.ErrAuth, cluster.ErrRefused, "user")
	refused(t, "no user", etcd.Config{Endpoints: endpoints}, etcd.ErrAuth, cluster.ErrRefused, "Username")
	refused(t, "keys of others", etcd.Config{Endpoints: endpoints, Username: "node", Password: "password", Prefix: "other/"}, etcd.ErrAuth, cluster.ErrRefused, "grant-permission")

	// The user is made again: the token that the coordinator has is worth nothing.
	root := rawClient(t, endpoints[0], "root", "secret")
	if _, err := root.UserChangePassword(ctx, "node", "password"); err != nil {
		t.Fatal(err)
	}
	commit(t, c, nil, put("x", "2"))
}

// Ensure that wrong addresses are errors that name them, by the context's deadline.
func TestRefused_WrongAddress(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	for what, url := range map[string]string{"nothing listens": "http://127.0.0.1:1", "a web server": web.URL, "no such host": "http://host.invalid:2379"} {
		c := open(t, etcd.Config{Endpoints: []string{url}})
		// The longer the call may take, the more it finds out.
		for limit := time.Nanosecond; ; limit = max(2*limit, 300*time.Millisecond) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			begin := time.Now()
			_, err := c.Commit(ctx, nil, []cluster.Change{put("x", "1")})
			cancel()
			if !errors.Is(err, cluster.ErrNoMajority) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, cluster.ErrUnknownOutcome) || !strings.Contains(err.Error(), url) {
				t.Errorf("%s, %v: got %v", what, limit, err)
			}
			if took := time.Since(begin) - limit; took > time.Minute {
				t.Errorf("%s: a call with %v took %v more", what, limit, took)
			}
			if errors.Is(err, etcd.ErrUnreachable) {
				break
			}
			if limit > time.Minute {
				t.Errorf("%s: got %v, want an ErrUnreachable", what, err)
				break
			}
		}
		if endpoints, err := c.Status(within(t)); err != nil || len(endpoints) != 1 || endpoints[0].Err == nil {
			t.Errorf("%s: status: %+v, %v", what, endpoints, err)
		}
	}
}

// oldEtcd is a server that says that it is an etcd 3.3.
type oldEtcd struct {
	pb.UnimplementedMaintenanceServer
}

func (oldEtcd) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Header: &pb.ResponseHeader{ClusterId: 7}, Version: "3.3.27"}, nil
}

// Ensure that an etcd that is too old is refused.
func TestRefused_TooOld(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterMaintenanceServer(server, oldEtcd{})
	go server.Serve(listener)
	defer server.Stop()
	refused(t, "etcd 3.3", etcd.Config{Endpoints: []string{"http://" + listener.Addr().String()}}, etcd.ErrTooOld, cluster.ErrRefused, "3.3.27", "upgrade")
}

// Ensure that endpoints of two clusters are refused, whether both can be reached at the beginning
// or one only later.
func TestRefused_TwoClusters(t *testing.T) {
	t.Parallel()
	a, b := alone(t, nil), alone(t, func(c *embedded.Config) { c.Token = "another" })
	refused(t, "two clusters", etcd.Config{Endpoints: []string{a.ClientURL(), b.ClientURL()}}, etcd.ErrTwoClusters, cluster.ErrOtherCluster, "one cluster")

	p := newProxy(t)
	p.set(func() { p.target = strings.TrimPrefix(a.ClientURL(), "http://") })
	c := open(t, etcd.Config{Endpoints: []string{p.url()}})
	commit(t, c, nil, put("x", "1"))
	p.set(func() { p.target = strings.TrimPrefix(b.ClientURL(), "http://") })
	p.cut()
	if _, err := c.Read(within(t), "x"); !errors.Is(err, etcd.ErrTwoClusters) {
		t.Errorf("another etcd at the same address: got %v", err)
	}
}

// Ensure that keys of other programs, damaged ones, and those of a newer version are refused,
// and stay as they are.
func TestRefused_OtherKeys(t *testing.T) {
	t.Parallel()
	member := alone(t, nil)
	raw := rawClient(t, member.ClientURL(), "", "")
	ctx := within(t)
	for _, row := range []struct {
		what, prefix, key, value string
		kind, general            error
		says                     string
	}{
		{"another program's keys", "one/", "one/users", "x", cluster.ErrOtherCluster, cluster.ErrOtherCluster, "one/users"},
		{"another program's format", "two/", "two/format", "x", cluster.ErrOtherCluster, cluster.ErrOtherCluster, "Prefix"},
		{"a format of nothing", "three/", "three/format", `{"jay":0}`, cluster.ErrOtherCluster, cluster.ErrOtherCluster, "Prefix"},
		{"a newer format", "four/", "four/format", `{"jay":2,"etcd":"1","epoch":1}`, etcd.ErrNewer, cluster.ErrRefused, "upgrade"},
		{"a restored etcd", "five/", "five/format", `{"jay":1,"etcd":"abcdef","epoch":1}`, etcd.ErrRestored, cluster.ErrRefused, "Accept"},
	} {
		if _, err := raw.Put(ctx, row.key, row.value); err != nil {
			t.Fatal(err)
		}
		refused(t, row.what, etcd.Config{Endpoints: []string{member.ClientURL()}, Prefix: row.prefix}, row.kind, row.general, row.says)
		found, err := raw.Get(ctx, row.prefix, clientv3.WithPrefix())
		if err != nil || len(found.Kvs) != 1 || string(found.Kvs[0].Value) != row.value {
			t.Errorf("%s: the keys have changed: %v, %v", row.what, found.Kvs, err)
		}
	}
}

// Ensure that a full quota is an error that says what to do, that reads go on, and that
// the same coordinator can write again when there is room.
func TestRefused_Quota(t *testing.T) {
	t.Parallel()
	member := alone(t, func(c *embedded.Config) { c.QuotaBytes = 2 << 20 })
	c := open(t, etcd.Config{Endpoints: []string{member.ClientURL()}})
	index := commit(t, c, nil, put("x", "1"))
	ctx := within(t)
	var err error
	for large := (cluster.Result{}); err == nil; { // etcd notices the size some moments later
		large, err = c.Commit(ctx, []cluster.Condition{{Key: "large", Index: large.Index}}, []cluster.Change{put("large", strings.Repeat("x", 256<<10))})
	}
	if !errors.Is(err, etcd.ErrQuota) || !errors.Is(err, cluster.ErrRefused) || errors.Is(err, cluster.ErrUnknownOutcome) || !strings.Contains(err.Error(), "alarm disarm") {
		t.Fatalf("got %v", err)
	}
	if _, err := c.Commit(ctx, []cluster.Condition{{Key: "x", Index: index}}, []cluster.Change{put("x", "2")}); !errors.Is(err, etcd.ErrQuota) {
		t.Errorf("a small commit: got %v", err)
	}
	if got := value(t, c, "x"); got != "1" {
		t.Errorf("got %q", got)
	}
	list, err := c.Status(ctx)
	if err != nil || len(list[0].Alarms) == 0 {
		t.Errorf("the status has no alarm: %+v, %v", list, err)
	}

	// What an operator does.
	raw := rawClient(t, member.ClientURL(), "", "")
	now, err := raw.Get(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Defragment(ctx, member.ClientURL()); err != nil {
		t.Fatal(err)
	}
	if _, err := raw.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	commit(t, c, []cluster.Condition{{Key: "x", Index: index}}, put("x", "2"))
}

// Ensure that what is too large is an ErrTooLarge that changes nothing.
func TestRefused_TooLarge(t *testing.T) {
	t.Parallel()
	member := alone(t, nil)
	c := open(t, etcd.Config{Endpoints: []string{member.ClientURL()}})
	large := strings.Repeat("x", cluster.MaxValueBytes)
	var many []cluster.Change
	for i := range cluster.MinTransaction + 1 {
		many = append(many, put(string(rune('a'+i%26))+strings.Repeat("k", i), "x"))
	}
	for what, changes := range map[string][]cluster.Change{
		"two large values":  {put("a", large), put("b", large)},
		"many large values": {put("a", large), put("b", large), put("c", large), put("d", large)},
		"many operations":   many,
	} {
		_, err := c.Commit(within(t), nil, changes)
		if !errors.Is(err, cluster.ErrTooLarge) || errors.Is(err, cluster.ErrUnknownOutcome) {
			t.Errorf("%s: got %.300v", what, err)
		}
	}
	if found, err := c.Page(within(t), "", "", 10); err != nil || len(found) > 0 {
		t.Errorf("got %d records, %v", len(found), err)
	}
}
