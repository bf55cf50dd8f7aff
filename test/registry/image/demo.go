package image

// Demo is the image of the demo program at hostPath; the program tells version to whoever asks.
func Demo(hostPath, version string) (Spec, error) {
	spec, err := Binary(hostPath)
	if err != nil {
		return Spec{}, err
	}
	spec.Env = append(spec.Env, "DEMO_VERSION="+version)
	spec.ExposedPorts = []string{"8080/tcp"}
	spec.StopSignal = "SIGTERM"
	return spec, nil
}
