package server

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/jaydb/jay"
)

// ReadCertificates reads the certificates in a PEM file, for Options.ClientCAs and
// Access.AllowCertificate.
func ReadCertificates(file string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	all, err := parsePEM(text)
	if err == nil && len(all) == 0 {
		err = errors.New("it has no certificate")
	}
	if err != nil {
		return nil, fmt.Errorf("server: %w: %s: %w", jay.ErrOption, file, err)
	}
	return all, nil
}

func parsePEM(text []byte) (all []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return all, nil
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
}
