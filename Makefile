# Cotenant. `make help` lists the targets; the README shows them at work.
#
# GO and PYTHON may be overridden: make test PYTHON=/usr/bin/python3
GO     ?= go
PYTHON ?= python3

# The binaries are pure Go: no C compiler is needed to build or to run them.
export CGO_ENABLED ?= 0

.PHONY: demo test check bench help build test-go test-python race fuzz proto wheel clean

demo: build ## build, then show it all on what ships, services and jobs: tables and report.html
	bin/cotenant demo

test: test-go test-python ## all tests

check: ## format, linters, arrows between folders, file sizes (fetches the linters once)
	@GO=$(GO) .ci/check

bench: build-bench ## hold the quality bounds of scenarios/ against what the code reaches (SMOKE=1: the quick part)
	bin/bench $(if $(SMOKE),-smoke) $(BENCH)

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

build: need-go ## build bin/cotenant, and bin/kubectl-cotenant, a link to it: on PATH it is `kubectl cotenant`
	$(GO) build -trimpath -o bin/cotenant ./cmd/cotenant
	ln -sf cotenant bin/kubectl-cotenant

.PHONY: build-bench
build-bench: need-go
	$(GO) build -trimpath -o bin/bench ./scenarios/bench

test-go: need-go ## the Go tests alone
	$(GO) test $(TESTFLAGS) ./...

test-python: ## the Python tests alone; those that need PyTorch skip where it is absent, and say so
	@PYTHON=$(PYTHON) .ci/python-tests

wheel: need-go ## the Python package with the Go program in it, into bin/ (PLATFORM=linux/arm64 ... for another)
	@GO=$(GO) $(PYTHON) python/wheel_backend.py --out bin $(if $(PLATFORM),--platform $(PLATFORM))

race: need-go ## the packages that run goroutines, under the race detector (needs a C compiler)
	@GO=$(GO) .ci/race

fuzz: need-go ## every fuzz target for FUZZ (default 5s)
	@GO=$(GO) .ci/fuzz $(or $(FUZZ),5s)

proto: need-go ## write the Go code of serve/proto anew from its .proto (fetches the compiler once)
	$(GO) run -C .ci/proto .

# What Kubernetes' programs say that they are: its own build sets it so.
KUBERNETES := v1.37.2
KUBERNETES_LDFLAGS := -X k8s.io/component-base/version.gitVersion=$(KUBERNETES) -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37

.PHONY: kubernetes-build kubernetes-image kubernetes-test kubernetes-up kubernetes-demo
kubernetes-build: need-go ## a real Kubernetes control plane, and our programs for it, into kubernetes/bin (about 8 minutes on 2 free cores the first time)
	cd kubernetes/tools/etcd && $(GO) build -o ../../bin/etcd go.etcd.io/etcd/server/v3
	cd kubernetes && $(GO) build -ldflags "$(KUBERNETES_LDFLAGS)" -o bin/ ./cmd/...
	cd kubernetes/tools/apiserver && $(GO) build -ldflags "$(KUBERNETES_LDFLAGS)" -o ../../bin/ tool
	cd kubernetes/tools/kwok && $(GO) build -o ../../bin/ tool
	cd kubernetes/tools/helm && $(GO) build -o ../../bin/ tool

# The image's program is static and stripped, whatever CGO_ENABLED is; GOARCH=arm64
# makes another.
IMAGE ?= cotenant-scheduler:0.1.0
kubernetes-image: need-go ## the scheduler's container image, as a tarball: kubernetes/bin/cotenant-scheduler.tar (IMAGE=NAME:TAG)
	cd kubernetes && CGO_ENABLED=0 GOOS=linux $(GO) build -trimpath -buildvcs=false -ldflags "-s -w $(KUBERNETES_LDFLAGS)" -o bin/static/ ./cmd/cotenant-scheduler
	cd kubernetes && GOARCH= $(GO) run ./cmd/image --program bin/static/cotenant-scheduler --name $(IMAGE) --version $(lastword $(subst :, ,$(IMAGE))) --out bin/cotenant-scheduler.tar

kubernetes-test: kubernetes-build kubernetes-image ## the tests of kubernetes/, against that control plane
	cd kubernetes && $(GO) test $(TESTFLAGS) ./...

kubernetes-up: kubernetes-build ## run that control plane with NODES (default 10) nodes until Ctrl-C, the stock scheduler and ours beside it, and print its kubeconfig
	kubernetes/bin/controlplane up --nodes $(or $(NODES),10) --ours

kubernetes-demo: kubernetes-build ## the stock scheduler and ours on the same workloads, side by side, and what each placement is worth
	kubernetes/bin/controlplane demo

clean: ## remove what the other targets made
	rm -rf bin out report.html kubernetes/bin

.PHONY: need-go
need-go:
	@command -v $(GO) >/dev/null || { echo "make: $(GO) not found; install Go 1.26 or later (https://go.dev/doc/install) and put it on PATH" >&2; exit 1; }
