package etcd

// A member of etcd in memory, whose answers a test decides: those of a full quota depend on
// moments that no test can choose, and those to an old token on the version of etcd.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/jaydb/jay/cluster"
)

// fake is such a member.
type fake struct {
	pb.UnimplementedKVServer
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedAuthServer
	url string

	mu       sync.Mutex
	records  map[string]*mvccpb.KeyValue
	revision int64
	full     []bool // of the next transactions that put: whether one that is answered with "no space" is carried out
	then     func() // after such a transaction that was carried out; nil for nothing
	token    string // that requests need; "" for none
	tokens   int
	refused  int // requests for a token that were refused
}

func newFake(t *testing.T) *fake {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{url: "http://" + listener.Addr().String(), records: make(map[string]*mvccpb.KeyValue), revision: 1}
	server := grpc.NewServer()
	pb.RegisterKVServer(server, f)
	pb.RegisterMaintenanceServer(server, f)
	pb.RegisterAuthServer(server, f)
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
	return f
}

// set changes the state.
func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// known reports whether a request has the token that is needed. mu is held.
func (f *fake) known(ctx context.Context) (has, known bool) {
	md, _ := metadata.FromIncomingContext(ctx)
	sent := md.Get(rpctypes.TokenFieldNameGRPC)
	return len(sent) > 0, f.token == "" || len(sent) > 0 && sent[0] == f.token
}

func (f *fake) header() *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: 7, Revision: f.revision}
}

func (f *fake) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &pb.StatusResponse{Header: f.header(), Version: "3.4.23"}, nil
}

// Authenticate refuses a request with an unknown token, as etcd 3.4 does.
func (f *fake) Authenticate(ctx context.Context, r *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if has, known := f.known(ctx); has && !known {
		f.refused++
		return nil, rpctypes.ErrGRPCInvalidAuthToken
	}
	f.tokens++
	f.token = fmt.Sprint("token ", f.tokens)
	return &pb.AuthenticateResponse{Header: f.header(), Token: f.token}, nil
}

func (f *fake) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.known(ctx); !known {
		return nil, rpctypes.ErrGRPCInvalidAuthToken
	}
	puts := slices.ContainsFunc(r.Success, func(op *pb.RequestOp) bool { return op.GetRequestPut() != nil })
	refuse, carryOut := false, true
	if puts && len(f.full) > 0 {
		refuse, carryOut, f.full = true, f.full[0], f.full[1:]
	}
	if !carryOut {
		return nil, rpctypes.ErrGRPCNoSpace
	}
	resp := &pb.TxnResponse{Succeeded: true}
	for _, c := range r.Compare {
		now, want := int64(0), c.GetModRevision()
		for key, kv := range f.records {
			if len(c.RangeEnd) > 0 && strings.HasPrefix(key, string(c.Key)) || key == string(c.Key) {
				now = kv.ModRevision
			}
		}
		resp.Succeeded = resp.Succeeded && now == want
	}
	ops := r.Success
	if !resp.Succeeded {
		ops = r.Failure
	} else if puts {
		f.revision++
	}
	for _, op := range ops {
		switch {
		case op.GetRequestPut() != nil:
			put := op.GetRequestPut()
			f.records[string(put.Key)] = &mvccpb.KeyValue{Key: put.Key, Value: put.Value, ModRevision: f.revision}
			resp.Responses = append(resp.Responses, &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{}}})
		case op.GetRequestRange() != nil:
			get, found := op.GetRequestRange(), &pb.RangeResponse{}
			for key, kv := range f.records {
				if len(get.RangeEnd) > 0 && strings.HasPrefix(key, string(get.Key)) || key == string(get.Key) {
					found.Kvs = append(found.Kvs, kv)
				}
			}
			resp.Responses = append(resp.Responses, &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: found}})
		default:
			return nil, errors.New("the fake puts and reads only")
		}
	}
	resp.Header = f.header()
	if refuse {
		if f.then != nil {
			f.then()
		}
		return nil, rpctypes.ErrGRPCNoSpace
	}
	return resp, nil
}

func (f *fake) open(t *testing.T, config Config) *Coordinator {
	t.Helper()
	config.Endpoints = []string{f.url}
	c, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Ensure that "no space" in answer to a commit that etcd has carried out all the same is told
// from that to one that it has refused, by what the records show; and that it is an unknown
// outcome if they do not show it.
func TestCommit_NoSpace(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.open(t, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	change := func(key, value string) cluster.Change { return cluster.Change{Key: key, Value: []byte(value)} }
	first, err := c.Commit(ctx, nil, []cluster.Change{change("slot", "1"), change("value", "1")})
	if err != nil {
		t.Fatal(err)
	}
	conditions := []cluster.Condition{{Key: "slot", Index: first.Index}, {Key: "value", Index: first.Index}}
	changes := []cluster.Change{change("slot", "2"), change("value", "2")}

	f.set(func() { f.full = []bool{false} })
	if _, err := c.Commit(ctx, conditions, changes); !errors.Is(err, ErrQuota) || !errors.Is(err, cluster.ErrRefused) || errors.Is(err, cluster.ErrUnknownOutcome) {
		t.Errorf("not carried out: got %v, want ErrQuota alone", err)
	}
	f.set(func() { f.full = []bool{true} })
	second, err := c.Commit(ctx, conditions, changes)
	if err != nil || second.Index <= first.Index {
		t.Fatalf("carried out: got %v, %v, want a commit", second, err)
	}
	if records, err := c.Read(ctx, "slot", "value"); err != nil || records[0].Index != second.Index || string(records[1].Value) != "2" {
		t.Errorf("got %v, %v", records, err)
	}
	f.set(func() { f.full = []bool{true} })
	if _, err := c.Commit(ctx, conditions, []cluster.Change{change("slot", "3")}); !errors.Is(err, ErrQuota) || !errors.Is(err, cluster.ErrUnknownOutcome) {
		t.Errorf("changed by another: got %v, want ErrQuota and ErrUnknownOutcome", err)
	}
	f.set(func() { f.full = []bool{true} })
	if _, err := c.Commit(ctx, nil, []cluster.Change{change("slot", "4")}); !errors.Is(err, ErrQuota) || !errors.Is(err, cluster.ErrUnknownOutcome) {
		t.Errorf("without conditions: got %v, want ErrQuota and ErrUnknownOutcome", err)
	}

	call := cluster.CallPrefix + "db/run/1"
	f.set(func() { f.full = []bool{false} })
	if _, err := c.Commit(ctx, []cluster.Condition{{Key: call}}, []cluster.Change{change(call, "1")}); !errors.Is(err, ErrQuota) || errors.Is(err, cluster.ErrUnknownOutcome) {
		t.Errorf("a new call: got %v, want ErrQuota alone", err)
	}
	if _, err := c.Commit(ctx, nil, []cluster.Change{change(call, "1")}); err != nil {
		t.Fatal(err)
	}
	records, err := c.Read(ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	f.set(func() {
		f.full = []bool{true}
		f.then = func() { // somebody deletes the new value at once
			for key := range f.records {
				if strings.HasSuffix(key, "new") {
					delete(f.records, key)
				}
			}
		}
	})
	_, err = c.Commit(ctx, []cluster.Condition{{Key: "new"}, {Key: call, Index: records[0].Index}}, []cluster.Change{change("new", "1"), change(call, "2")})
	if !errors.Is(err, ErrQuota) || !errors.Is(err, cluster.ErrUnknownOutcome) {
		t.Errorf("carried out, and what it has created is deleted: got %v, want ErrQuota and ErrUnknownOutcome", err)
	}
	records, err = c.Read(ctx, call)
	if err != nil || string(records[0].Value) != "2" {
		t.Errorf("got %v, %v, want the call", records, err)
	}
}

// Ensure that a coordinator with a user signs in again when all members of etcd have been
// restarted, which know no tokens then, without sending the old one.
func TestUser_MembersRestarted(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.set(func() { f.token = "of somebody else" })
	c := f.open(t, Config{Username: "jay", Password: "secret"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		if _, err := c.Commit(ctx, nil, []cluster.Change{{Key: "x", Value: []byte("1")}}); err != nil {
			t.Fatal(err)
		}
		f.set(func() { f.token = "forgotten" })
		if _, err := c.Read(ctx, "x"); err != nil {
			t.Fatal(err)
		}
		f.set(func() {
			if f.refused > 0 {
				t.Errorf("%d requests for a token had the old one", f.refused)
			}
			f.token = "forgotten again"
		})
	}
}
