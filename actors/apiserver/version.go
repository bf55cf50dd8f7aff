package apiserver

import (
	"strings"

	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
	baseversion "k8s.io/component-base/version"
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
	return servedVersion{EffectiveVersion: effective, info: released(*effective.Info())}
}

// BuildVersion is what this build says of the Kubernetes in it.
func BuildVersion() apimachineryversion.Info { return released(baseversion.Get()) }

// released is a version that the build knows, or the release when it knows none.
func released(info apimachineryversion.Info) apimachineryversion.Info {
	if info.GitVersion == "" || info.Major == "" || strings.HasPrefix(info.GitVersion, "v0") {
		info.Major, info.Minor, info.GitVersion = "1", "37", KubernetesVersion
	}
	return info
}
