package identity

import (
	"crypto/ecdsa"
	"path/filepath"
)

// loadServiceAccountKey reads the signing key, or makes it.
func (i *Identity) loadServiceAccountKey() (err error) {
	path := filepath.Join(i.dir, serviceAccountFile)
	data, err := readFile(path)
	if err != nil {
		return err
	}
	if data == nil {
		i.saKey, err = makeServiceAccountKey(path)
		return err
	}
	if i.saKey, err = decodeKey(data); err != nil {
		return damagedRoot(path, err)
	}
	return nil
}

func makeServiceAccountKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	data, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return key, writeFile(path, data)
}
