package apiserver

import (
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
)

// KubernetesVersion is the release whose API is served. The build sets the same by linker flags, with the commit; a binary built without
// them must still not call itself v0.0.0, which kubectl refuses.
const KubernetesVersion = "v1.37.2"

// servedVersion is the effective version with what /version says.
type servedVersion struct {
	basecompatibility.EffectiveVersion
	info apimachineryversion.Info
}

// Info returns what /version says.
func (v servedVersion) Info() *apimachineryversion.Info { return &v.info }

func newServedVersion() servedVersion {
	effective := compatibility.DefaultBuildEffectiveVersion()
	v := servedVersion{EffectiveVersion: effective, info: *effective.Info()}
	if v.info.GitVersion == "" || v.info.Major == "" || v.info.GitVersion[:2] == "v0" {
		v.info.Major, v.info.Minor, v.info.GitVersion = "1", "37", KubernetesVersion
	}
	return v
}
