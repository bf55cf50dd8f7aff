package runtime

func daemonMain(string) int { return 2 }
