package secretset

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// validFor is long because nothing but ingest trusts the authority, which signs
// this one certificate: a deployment must not stop on a date that nobody watches.
const validFor = 10 * 365 * 24 * time.Hour

// clockSkew lets a machine whose clock is behind accept the certificate.
const clockSkew = time.Hour

// pems are a certificate for one host, its key and the authority that signed it.
type pems struct{ ca, cert, key string }

func newCertificate(host string, now time.Time) (pems, error) {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pems{}, fmt.Errorf("the relay's certificate: %w", err)
	}
	authority := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Verbatim relay authority"},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(validFor),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	ca, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	if err != nil {
		return pems{}, fmt.Errorf("the relay's certificate: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pems{}, fmt.Errorf("the relay's certificate: %w", err)
	}
	leaf := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(validFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, leaf, authority, &key.PublicKey, authorityKey)
	if err != nil {
		return pems{}, fmt.Errorf("the relay's certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pems{}, fmt.Errorf("the relay's certificate: %w", err)
	}
	return pems{ca: encode("CERTIFICATE", ca), cert: encode("CERTIFICATE", cert), key: encode("PRIVATE KEY", private)}, nil
}

func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: the program ends instead
	b[0] &= 0x7f
	b[15] |= 1
	return new(big.Int).SetBytes(b[:])
}

func encode(kind string, der []byte) string {
	return strings.TrimSuffix(string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})), "\n")
}
