# nodeactor: build, run, test. `make help` lists the targets.

SHELL      := /bin/bash
.SHELLFLAGS := -o pipefail -c
VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
KUBE       := v1.37.2
BIN        := bin
GOFLAGS_P  := -p 2
KUBE_LD    := -X k8s.io/component-base/version.gitVersion=$(KUBE) -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37 \
              -X k8s.io/component-base/version.gitTreeState=clean -X k8s.io/component-base/version.gitCommit=nodeactor-$(VERSION) \
              -X k8s.io/client-go/pkg/version.gitVersion=$(KUBE) -X k8s.io/client-go/pkg/version.gitMajor=1 -X k8s.io/client-go/pkg/version.gitMinor=37
LD         := -s -w -X main.version=$(VERSION) $(KUBE_LD)
# What is run under the race detector, in one build of each package; the end-to-end tests drive the real binary instead, and
# the proofs run in virtual time, many thousand times.
UNIT       := $(shell go list ./... 2>/dev/null | grep -v -e /test/e2e -e /test/crash -e /test/vm -e /test/faultmatrix -e /test/sim -e /test/interop -e /test/readme)

# How each test ended is kept by target, for what is claimed in docs/features.md to be compared with it.
RESULTS    := $(BIN)/results
SHOW       := go run ./test/features show

.PHONY: help deps build run test lint unit proofs sim faults e2e vm proved features stall interop churn bench bench-operators crash linear trials clean
help: ## Show the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | column -t -s "$$(printf '\t')"

deps: ## Install the system packages that building and testing need (Debian 12/13).
	@hack/deps.sh build

build: deps binaries ## Build the daemon, its runtime helper, kubectl and the demo image into bin/.

.PHONY: binaries
binaries:
	CGO_ENABLED=1 go build $(GOFLAGS_P) -tags netgo,osusergo -ldflags '-s -w' -o $(BIN)/nodeactor-runtime ./cmd/nodeactor-runtime
	CGO_ENABLED=1 go build $(GOFLAGS_P) -ldflags '$(LD)' -o $(BIN)/nodeactor ./cmd/nodeactor
	CGO_ENABLED=1 go build $(GOFLAGS_P) -ldflags '$(LD)' -o $(BIN)/nodeactor-kubectl ./cmd/nodeactor-kubectl
	CGO_ENABLED=0 go build $(GOFLAGS_P) -ldflags '-s -w' -o $(BIN)/demo ./cmd/demo
	go run $(GOFLAGS_P) ./cmd/demo-image -o $(BIN)/demo-image.tar -binary $(BIN)/demo -tag nodeactor.io/demo:v1 -tag nodeactor.io/demo:v2

run: build ## Start a node here, with a demo Deployment of two replicas; Ctrl-C stops it.
	@hack/run-demo.sh

test: ## Everything: formatting, vet, staticcheck, import rules, unit tests under the race detector, the proofs of supervision, end-to-end and cgroup v2 tests, and whether they proved every feature that is claimed.
	@hack/deps.sh test
	@rm -rf $(RESULTS)
	@$(MAKE) --no-print-directory lint binaries unit proofs e2e vm proved

lint: ## gofmt, go vet, staticcheck.
	@hack/lint.sh

unit: ## Unit and integration tests, with the race detector.
	go test -json $(GOFLAGS_P) -race -shuffle=on -timeout 15m $(UNIT) | $(SHOW) $(RESULTS)/unit.jsonl

proofs: ## Every fault in every child, 10,000 seeds of a storm over the whole tree, and what README.md says of operators, a thousand nodes of one included.
	go test -json $(GOFLAGS_P) -count=1 -timeout 15m ./test/faultmatrix ./test/sim ./test/readme | $(SHOW) -v $(RESULTS)/proofs.jsonl

sim: ## A million seeds of that storm; SEEDS, FIRST and JOBS choose others.
	@test/sim/run.sh

faults: binaries ## Every fault in every child of a real node (needs root).
	NODEACTOR_BIN=$(CURDIR)/$(BIN) NODEACTOR_FAULTS=all go test -count=1 -timeout 30m -v -run TestFaultsOfARealNode ./test/e2e/

e2e: binaries ## End-to-end tests: the real binary, the real kubectl, real containers (needs root).
	NODEACTOR_BIN=$(CURDIR)/$(BIN) go test -json -count=1 -timeout 15m -p 1 ./test/e2e/ ./test/crash/ ./test/interop/ | $(SHOW) $(RESULTS)/e2e.jsonl

proved: ## Whether the last run of unit, proofs and e2e has proved every feature that docs/features.md claims.
	@go run ./test/features check $(RESULTS)/{unit,proofs,e2e}.jsonl

features: ## Write docs/features.md anew from its rows and the names of the tests.
	@go run ./test/features write

stall: binaries ## A hundred stalls of the disk under load, four of them for half a minute (needs root, takes five minutes).
	NODEACTOR_BIN=$(CURDIR)/$(BIN) NODEACTOR_STALLS=$${STALLS:-100} go test -count=1 -timeout 30m -v -run TestP01 ./test/e2e/

vm: binaries ## Runtime and pod tests inside a virtual machine with pure cgroup v2.
	@hack/vm.sh

churn: ## A day of updates (CHURN, 200,000) of 1,000 objects in half a minute: the store's file stays small.
	NODEACTOR_CHURN=$${CHURN:-200000} NODEACTOR_QUIET=1m NODEACTOR_REWRITE_KILLS=50 go test -count=1 -v -timeout 30m -run 'TestP23|TestP25|TestP21_Kill' ./store/

interop: binaries ## A kube-apiserver as it is published on a node's etcd API, for INTEROP_MINUTES (4) under load, and etcd's own tools (needs root).
	NODEACTOR_BIN=$(CURDIR)/$(BIN) INTEROP_MINUTES=$${INTEROP_MINUTES:-4} go test -count=1 -timeout 60m -v ./test/interop/

bench-operators: ## What an operator of 100,000 manifests costs, and what three processes on one store do (five minutes; needs nothing but Go).
	go run $(GOFLAGS_P) ./test/bench --only operators --out $${BENCH_OUT:-$${TMPDIR:-/tmp}/bench.jsonl}

crash: binaries ## Kill the daemon a thousand times under load and damage its files 500 times, and look for lost writes (about 25 min).
	CRASH_ROUNDS=1000 CRASH_CASES=500 NODEACTOR_BIN=$(CURDIR)/$(BIN) go test -count=1 -v -timeout 2h ./test/crash/

trials: ## A thousand stopped lease holders, and a hundred killed ones of each kind (STOPS, KILLS): no stale effect, who takes over when.
	OPERATORS_STOPS=$${STOPS:-1000} OPERATORS_KILLS=$${KILLS:-100} go test -count=1 -v -timeout 1h -run 'TestF095|TestF096' ./test/operators/

linear: ## Three members of a store under crashes, pauses and partitions, judged; LINEAR_SECONDS (300) and LINEAR_SEED choose others.
	LINEAR_SECONDS=$${LINEAR_SECONDS:-300} go test -count=1 -v -timeout 2h ./test/linear/

bench: binaries ## The measures of ARCHITECTURE.md beside the upstream control plane (needs BENCH_KIT).
	@test/bench/run.sh

clean: ## Remove what was built.
	rm -rf $(BIN)
