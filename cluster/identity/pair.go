package identity

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
)

const (
	pemCertificate = "CERTIFICATE"
	pemPrivateKey  = "PRIVATE KEY"
)

// pair is a certificate with its key.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// newSerial draws the number that tells certificates of one authority apart.
func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

// sign issues the template for a fresh key. A nil signer makes it sign itself.
func sign(template *x509.Certificate, signer *pair) (*pair, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	if template.SerialNumber, err = newSerial(); err != nil {
		return nil, err
	}
	parent, parentKey := template, key
	if signer != nil {
		parent, parentKey = signer.cert, signer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &pair{cert: cert, key: key}, nil
}

func (p *pair) certPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: p.cert.Raw})
}

// encode renders certificate and key as the content of one file.
func (p *pair) encode() ([]byte, error) {
	key, err := encodeKey(p.key)
	if err != nil {
		return nil, err
	}
	return append(p.certPEM(), key...), nil
}

func (p *pair) tls() *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{p.cert.Raw}, PrivateKey: p.key, Leaf: p.cert}
}

// decodePair reads what encode wrote, and refuses a key that does not belong to the certificate.
func decodePair(data []byte) (*pair, error) {
	certBlock, rest := pem.Decode(data)
	if certBlock == nil || certBlock.Type != pemCertificate {
		return nil, errors.New("it does not begin with a PEM certificate")
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("its certificate does not parse: %w", err)
	}
	key, err := decodeKey(rest)
	if err != nil {
		return nil, err
	}
	if public, ok := cert.PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(key.Public()) {
		return nil, errors.New("its key does not belong to its certificate")
	}
	return &pair{cert: cert, key: key}, nil
}

func encodeKey(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemPrivateKey, Bytes: der}), nil
}

func decodeKey(data []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(bytes.TrimSpace(data))
	if block == nil || block.Type != pemPrivateKey {
		return nil, errors.New("it has no PEM private key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("its private key does not parse: %w", err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("its private key is not an ECDSA key on P-256")
	}
	return key, nil
}
