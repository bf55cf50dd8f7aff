package core

import "time"

// Delays of this package. Changing one changes what users see in status.
const (
	// firstDelay is the wait before the second start or pull; it doubles up to maxDelay.
	firstDelay = 10 * time.Second
	maxDelay   = 5 * time.Minute
	// resetAfter is how long a container must have run for its back-off to start anew.
	resetAfter = 10 * time.Minute
	// retryFirst and retryMax bound the retries of everything that is neither a crash nor a pull.
	retryFirst = 250 * time.Millisecond
	retryMax   = 20 * time.Second
	// errPullShown is how long ErrImagePull is shown before ImagePullBackOff replaces it.
	errPullShown = 2 * time.Second
	// backOffEventEvery spaces the BackOff Events of one container.
	backOffEventEvery = 15 * time.Second
	// minGrace is the shortest time between the stop signal and SIGKILL.
	minGrace = time.Second
	// defaultGrace is terminationGracePeriodSeconds of a pod that names none.
	defaultGrace = 30 * time.Second
	// sidecarGrace is what a sidecar gets when the others have used up the pod's grace period.
	sidecarGrace = 2 * time.Second
	// killRetry is the wait between two attempts to kill what does not die.
	killRetry = 5 * time.Second
)

// crashDelay is the wait after the n-th crash in a row (n = 1 restarts at once).
func crashDelay(n int) time.Duration {
	if n <= 1 {
		return 0
	}
	return doubled(firstDelay, maxDelay, n-2)
}

func pullDelay(failures int) time.Duration { return doubled(firstDelay, maxDelay, failures-1) }

func retryDelay(failures int) time.Duration { return doubled(retryFirst, retryMax, failures-1) }

// doubled is first * 2^n, at most most.
func doubled(first, most time.Duration, n int) time.Duration {
	for ; n > 0 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}
