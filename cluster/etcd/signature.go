package etcd

import (
	"context"
	"errors"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/credentials"
)

// signature adds the token of the user to requests. The client of etcd has a mechanism of its
// own, which also sends the old token with the request for a new one. etcd 3.4 refuses that
// request if it does not know the token, as after a restart of all members; the client then
// asks for a new token again, within the first request, until its time is over.
type signature struct {
	token atomic.Pointer[string] // "" if etcd asks for none; nil before signing in
}

var _ credentials.PerRPCCredentials = (*signature)(nil)

// made reports whether requests can be sent.
func (s *signature) made() bool { return s.token.Load() != nil }

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (s *signature) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token := s.token.Load()
	if token == nil || *token == "" {
		return nil, nil
	}
	return map[string]string{rpctypes.TokenFieldNameGRPC: *token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials: endpoints with http are
// the operator's decision.
func (s *signature) RequireTransportSecurity() bool { return false }

// signIn asks for a token, unless there is one. The caller holds connecting.
func (c *Coordinator) signIn(ctx context.Context, client *clientv3.Client) error {
	if c.signature.made() {
		return nil
	}
	within, cancel := c.attemptContext(ctx, minRead)
	defer cancel()
	token := ""
	switch found, err := client.Authenticate(within, c.config.Username, c.config.Password); {
	case err == nil:
		token = found.Token
	case !errors.Is(rpctypes.Error(err), rpctypes.ErrAuthNotEnabled):
		return err
	}
	c.signature.token.Store(&token)
	return nil
}

// isUnsigned reports whether etcd has refused a request because of its token: it has changed
// nothing, and may be made again with another one.
func isUnsigned(err error) bool {
	known := rpctypes.Error(err)
	return errors.Is(known, rpctypes.ErrInvalidAuthToken) || errors.Is(known, rpctypes.ErrAuthOldRevision) || errors.Is(known, rpctypes.ErrUserEmpty)
}
