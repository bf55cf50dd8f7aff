package replicagroup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	kjson "sigs.k8s.io/json"
)

// versionLength is how many hexadecimal digits name a version of a template.
const versionLength = 10

// versionOf names what a template says: the same for the same content, in whatever order it was written.
func versionOf(template json.RawMessage) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(template))
	decoder.UseNumber()
	var content any
	if err := decoder.Decode(&content); err != nil {
		return "", fmt.Errorf("cannot read the template: %w", err)
	}
	canonical, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("cannot read the template: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])[:versionLength], nil
}

// parseTemplate reads a template; what it says and a pod does not have is an error.
func parseTemplate(template json.RawMessage) (*corev1.PodTemplateSpec, error) {
	var t corev1.PodTemplateSpec
	unknown, err := kjson.UnmarshalStrict(template, &t)
	if err := errors.Join(append(unknown, err)...); err != nil {
		return nil, fmt.Errorf("cannot read spec.podTemplate: %w", err)
	}
	return &t, nil
}

// checkTemplate tells what is wrong with a template, as the API would tell when a pod is made from it.
func checkTemplate(template json.RawMessage) error {
	t, err := parseTemplate(template)
	if err != nil {
		return err
	}
	if len(t.Spec.Containers) == 0 {
		return errors.New("spec.podTemplate.spec.containers: a replica needs a container")
	}
	defaulted := corev1.PodTemplate{Template: *t}
	corev1defaults.SetObjectDefaults_PodTemplate(&defaulted)
	var internal core.PodTemplateSpec
	if err := corev1defaults.Convert_v1_PodTemplateSpec_To_core_PodTemplateSpec(&defaulted.Template, &internal, nil); err != nil {
		return fmt.Errorf("cannot read spec.podTemplate: %w", err)
	}
	path := field.NewPath("spec", "podTemplate")
	wrong := corevalidation.ValidatePodTemplateSpec(&internal, path, podutil.GetValidationOptionsFromPodTemplate(&internal, nil))
	if internal.Spec.RestartPolicy != core.RestartPolicyAlways {
		wrong = append(wrong, field.NotSupported(path.Child("spec", "restartPolicy"), internal.Spec.RestartPolicy, []core.RestartPolicy{core.RestartPolicyAlways}))
	}
	if internal.Spec.ActiveDeadlineSeconds != nil {
		wrong = append(wrong, field.Forbidden(path.Child("spec", "activeDeadlineSeconds"), "a replica has no end"))
	}
	return wrong.ToAggregate()
}

// hydrates tells whether replicas of the template say when they have caught up, by a probe or a gate.
func hydrates(t *corev1.PodTemplateSpec) bool {
	if len(t.Spec.ReadinessGates) > 0 {
		return true
	}
	for _, c := range t.Spec.Containers {
		if c.ReadinessProbe != nil {
			return true
		}
	}
	return false
}
