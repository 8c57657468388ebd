# `make` lists the targets. The modules are those of go.work.
MODULES  := $(shell sed -n 's|^[[:space:]]*\./\([^[:space:]]*\).*|\1|p' go.work)
PACKAGES := $(MODULES:%=./%/...)

# What a caller may set, for example: make test TESTFLAGS='-run Vectors' PACKAGES=./test/integration/...
TESTFLAGS ?=
FUZZTIME  ?= 5s
BENCHFLAGS ?=

GO_BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w'
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

.PHONY: run
run: ## start everything with an embedded PostgreSQL and play a conversation (Ctrl-C ends it)
	build/setup.sh run
	$(GO_BUILD) -o bin/verbatim ./cmd/verbatim
	bin/verbatim up --demo

.PHONY: build
build: ## compile the commands into bin/
	$(GO_BUILD) -o bin/verbatim ./cmd/verbatim
	$(GO_BUILD) -o bin/ingest ./services/ingest/cmd/ingest
	$(GO_BUILD) -o bin/auditview ./services/auditview/cmd/auditview

.PHONY: test
test: bin/testreport ## run all tests of all modules with the race detector (needs Docker)
	build/setup.sh test
	build/with-containers.sh bin/testreport go test -json -race -timeout 15m $(TESTFLAGS) $(PACKAGES)

.PHONY: lint
lint: bin/golangci-lint ## check style, layers, formatting and the modules' tidiness
	bin/golangci-lint run $(PACKAGES)
	bin/golangci-lint fmt --diff $(MODULES)
	@for module in $(MODULES) build build/tools; do \
	  (cd $$module && GOWORK=off go mod tidy -diff) || { echo "lint: $$module/go.mod is not tidy" >&2; exit 1; }; \
	done

.PHONY: fmt
fmt: bin/golangci-lint ## format all Go code
	bin/golangci-lint fmt $(MODULES)

.PHONY: fuzz-smoke
fuzz-smoke: ## run every fuzz target for FUZZTIME
	FUZZTIME=$(FUZZTIME) build/fuzz-smoke.sh $(MODULES)

.PHONY: bench
bench: ## measure beside floors by hand (README's tables; needs Docker); BENCH=append,reads picks, BENCH=large takes long
	build/with-containers.sh go run ./test/bench $(BENCHFLAGS)

.PHONY: bench-smoke
bench-smoke: ## run the benchmark so briefly that only its working is checked
	build/with-containers.sh go run ./test/bench -smoke $(BENCHFLAGS)

.PHONY: vuln
vuln: ## look for known vulnerabilities (needs the internet)
	@for module in $(MODULES); do (cd $$module && go run $(GOVULNCHECK) ./...) || exit 1; done

.PHONY: image
image: ## make the PostgreSQL image that the tests and deploy/compose.yaml use
	build/postgres-image/build.sh

.PHONY: images
images: ## make the images of the services
	build/service-images.sh

.PHONY: clean
clean: ## remove what the other targets made, but no data
	rm -rf bin artifacts

bin/testreport: $(wildcard build/testreport/*.go) build/go.mod
	cd build && GOWORK=off go build -o ../bin/testreport ./testreport

bin/golangci-lint: build/tools/go.mod build/tools/go.sum
	cd build/tools && GOWORK=off go build -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
