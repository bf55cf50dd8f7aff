package identity

import "crypto/ecdsa"

// loadServiceAccountKey reads the signing key, or makes it.
func loadServiceAccountKey(path string) (*ecdsa.PrivateKey, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	if data != nil {
		key, err := decodeKey(data)
		if err != nil {
			return nil, damagedRoot(path, err)
		}
		return key, nil
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	if data, err = encodeKey(key); err != nil {
		return nil, err
	}
	return key, writeFile(path, data)
}
