package harness

// Net is the network of a run.
type Net struct{ k *Kit }
