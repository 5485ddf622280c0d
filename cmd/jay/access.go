package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
)

// remoteFlags say how a command proves to a server who asks, and which servers it trusts.
// They are for all commands that talk over HTTP: those with --url, top and follow.
type remoteFlags struct {
	Token string `group:"every" name:"token" placeholder:"TOKEN" help:"Token for --url, top and follow, $$JAY_TOKEN unless given."`
	CA    string `group:"rare" name:"url-ca" placeholder:"FILE" help:"Authorities that have signed the certificate of the server of --url, top or follow, in PEM. The default is those of the system."`
	Cert  string `group:"rare" name:"url-cert" placeholder:"FILE" help:"Client certificate for that server, in PEM."`
	Key   string `group:"rare" name:"url-key" placeholder:"FILE" help:"Its private key, in PEM."`
}

// access is the way to a server.
type access struct {
	token  string
	client *http.Client
}

// access reads the files of the flags. The token of the environment counts if none is given.
func (f remoteFlags) access(getenv func(string) string) (access, error) {
	a := access{token: f.Token}
	if a.token == "" {
		a.token = getenv("JAY_TOKEN")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	a.client = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a redirect target would get the token
	}
	if f.CA == "" && f.Cert == "" && f.Key == "" {
		return a, nil
	}
	if (f.Cert == "") != (f.Key == "") {
		return a, usageError{text: "--url-cert and --url-key belong together"}
	}
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return a, err
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return a, fmt.Errorf("%s holds no certificate in PEM", f.CA)
		}
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return a, fmt.Errorf("--url-cert: %w", err)
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return a, nil
}

// given returns the name of a flag that was given, or "".
func (f remoteFlags) given() string {
	for _, flag := range []struct{ name, value string }{{"--token", f.Token}, {"--url-ca", f.CA}, {"--url-cert", f.Cert}, {"--url-key", f.Key}} {
		if flag.value != "" {
			return flag.name
		}
	}
	return ""
}

// check refuses to send a token to another machine without encryption.
func (a access) check(u *url.URL) error {
	if a.token != "" && u.Scheme != "https" && !isLoopbackHost(u.Hostname()) {
		return usageError{text: "a token is not sent without TLS to another machine: use https"}
	}
	return nil
}

// do sends a request with the token.
func (a access) do(request *http.Request) (*http.Response, error) {
	if a.token != "" {
		request.Header.Set("Authorization", "Bearer "+a.token)
	}
	reply, err := a.client.Do(request)
	if cause, is := errors.AsType[*url.Error](err); is {
		err = cause.Err // without the URL's parameters
	}
	return reply, err
}
