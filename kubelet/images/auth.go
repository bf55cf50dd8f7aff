package images

import (
	"encoding/json"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"k8s.io/kubernetes/pkg/credentialprovider"
)

// Keychain holds the registry credentials of the pull secrets of one pod. The zero value holds none: pulls are
// anonymous then. It is read-only after NewKeychain.
type Keychain struct {
	ring credentialprovider.BasicDockerKeyring
}

// NewKeychain reads the payloads of pull secrets, each either a .dockerconfigjson or a legacy .dockercfg. A payload that
// is not JSON is refused; the error never contains the payload.
func NewKeychain(payloads ...[]byte) (*Keychain, error) {
	k := &Keychain{}
	for i, raw := range payloads {
		auths, err := parseDockerConfig(raw)
		if err != nil {
			return nil, fmt.Errorf("cannot read pull secret %d: not a docker config", i)
		}
		k.ring.Add(nil, auths)
	}
	return k, nil
}

func parseDockerConfig(raw []byte) (credentialprovider.DockerConfig, error) {
	var modern struct {
		Auths *credentialprovider.DockerConfig `json:"auths"`
	}
	if err := json.Unmarshal(raw, &modern); err == nil && modern.Auths != nil {
		return *modern.Auths, nil
	}
	var legacy credentialprovider.DockerConfig
	err := json.Unmarshal(raw, &legacy)
	return legacy, err
}

// candidates lists the ways to authenticate for a reference, most specific credential first. Without a matching
// credential the only candidate is anonymous.
func (k *Keychain) candidates(ref string) []authn.Authenticator {
	if k == nil {
		return []authn.Authenticator{authn.Anonymous}
	}
	found, _ := k.ring.Lookup(repository(ref))
	if len(found) == 0 {
		return []authn.Authenticator{authn.Anonymous}
	}
	all := make([]authn.Authenticator, 0, len(found))
	for _, c := range found {
		all = append(all, authn.FromConfig(authn.AuthConfig{Username: c.Username, Password: c.Password}))
	}
	return all
}
