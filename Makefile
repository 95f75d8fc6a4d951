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
	@grep -hE '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

build: need-go ## build bin/cotenant
	$(GO) build -trimpath -o bin/cotenant ./cmd/cotenant

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

clean: ## remove what the other targets made
	rm -rf bin out report.html

.PHONY: need-go
need-go:
	@command -v $(GO) >/dev/null || { echo "make: $(GO) not found; install Go 1.26 or later (https://go.dev/doc/install) and put it on PATH" >&2; exit 1; }
