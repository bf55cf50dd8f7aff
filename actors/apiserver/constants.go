package apiserver

import "time"

const (
	// storagePrefix precedes every key.
	storagePrefix = "/registry"
	// eventLife is how long an Event is kept.
	eventLife = time.Hour
	// encodingsBytes bounds the encodings of single objects that are kept for the next list.
	encodingsBytes = 24 << 20
	// requestTimeout bounds every request that is not a watch or a stream.
	requestTimeout = 60 * time.Second
	// minWatchTimeout is the shortest time a watch without a time-out of its own lives; the longest is twice that.
	minWatchTimeout = 30 * time.Minute
	// maxRequestBodyBytes is the largest body of a write, the limit upstream uses.
	maxRequestBodyBytes = 3 * 1024 * 1024
	// maxPatchCopyBytes bounds what the copy operations of one JSON patch may add.
	maxPatchCopyBytes = 3 * 1024 * 1024
	// maxReadsInFlight and maxWritesInFlight bound the requests over the network that are worked on at once.
	maxReadsInFlight, maxWritesInFlight = 400, 200
	// tokenMaxLife is the longest life a ServiceAccount token is issued for.
	tokenMaxLife = 365 * 24 * time.Hour
	// tokenCacheLife is how long the verdict on a token is reused.
	tokenCacheLife = 10 * time.Second
	// certificateVerdictLife is how long a verified client certificate is not verified again, maxCertificateVerdicts how many are remembered.
	certificateVerdictLife, maxCertificateVerdicts = 5 * time.Minute, 1024
	// informerResync is how often an informer replays what it holds; 0 is never: the store drops no event.
	informerResync = 0
	// dialTimeout bounds connecting to a kubelet or a pod, keepAlivePeriod is how often such a connection is probed, idleTimeout how long it
	// is kept unused, idleConnections how many are.
	dialTimeout, keepAlivePeriod, idleTimeout, idleConnections = 10 * time.Second, 30 * time.Second, 90 * time.Second, 16
	// aggregationRetryPause is how long a failed pass over the aggregated ClusterRoles waits for the next.
	aggregationRetryPause = time.Second
	// policyWorkers is how many objects of the RBAC policy are worked on at once.
	policyWorkers = 16
	// definitionsTimeout bounds how long Close waits for the stored CustomResourceDefinitions to be read.
	definitionsTimeout = 2 * time.Second
	// quotaWorkers is how many namespaces' writes are held against their quotas at once, as upstream.
	quotaWorkers = 5
	// lookupTimeout bounds finding the endpoints of a Service.
	lookupTimeout = 10 * time.Second
	// defaultServiceCIDR is where ClusterIPs come from unless configured.
	defaultServiceCIDR = "10.96.0.0/16"
	// firstNodePort and nodePorts span the ports that Services of type NodePort get.
	firstNodePort, nodePorts = 30000, 2768
	// defaultKubeletPort is where a kubelet is looked for whose Node does not say.
	defaultKubeletPort = 10250
	// issuer is who ServiceAccount tokens are from, and their default audience.
	issuer = "https://kubernetes.default.svc"
	// inProcessAddress stands for the server in requests that never leave the process.
	inProcessAddress = "http://nodeactor.invalid"
)
