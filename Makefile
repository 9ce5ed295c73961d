# The main targets are "make run" and "make test". Recipes longer than a line are
# in scripts/.

# The clone may belong to another user, as in some containers. The go command then
# refuses to stamp the version, so the linker flags set it.
GIT      := git -c safe.directory='$(CURDIR)'
VERSION  ?= $(shell $(GIT) describe --tags --dirty 2>/dev/null || echo devel)
REVISION ?= $(shell $(GIT) rev-parse --short=11 HEAD 2>/dev/null || echo unknown)
LDFLAGS  = -s -w -X svc/internal/config.version=$(VERSION) -X svc/internal/config.revision=$(REVISION)
FUZZTIME ?= 20s

# The same compiler settings for everything except the race detector, which needs
# cgo, so that checks and tests reuse the build cache.
export CGO_ENABLED := 0
export GOFLAGS     := -trimpath

.DEFAULT_GOAL := help
.PHONY: help build run check test test-race test-short screenshots fuzz bench bench-large bench-lists bench-peers clean setup tools release test-release test-image

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/svc, one static binary
	go build -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/svc ./cmd/svc

# Defaults for trying svc out; the environment overrides them.
run: export SVC_RUNNER ?= builtin
run: export SVC_EXAMPLE ?= true
run: build ## build and start the server with the built-in runner and an example project
	bin/svc serve

check: bin/tools/staticcheck ## gofmt, vet, staticcheck and the rules of internal/arch
	scripts/check

test: setup build tools ## install missing programs and run all tests, on SQLite and PostgreSQL
	scripts/with-postgres scripts/test

test-race: setup build tools ## run the race detector on all tests of servers that are concurrent or wait for background jobs
	scripts/test race

test-short: ## run the quick tests on SQLite only
	go test -short ./...

screenshots: build ## take screenshots of the main pages into bin/screenshots, and those of the documentation into docs/images
	cd test/browser && SVC_PICTURES='$(CURDIR)/docs/images' go test -count=1 -run Pictures ./...
	cd test/browser && SVC_SCREENSHOTS='$(CURDIR)/bin/screenshots' go test -count=1 -run 'Screens|APIPage' ./...

fuzz: ## run each fuzz test for FUZZTIME (20s)
	scripts/fuzz $(FUZZTIME)

bench: build ## run the benchmarks
	go test -run '^$$' -bench . -skip 'Large|EveryList' -benchtime 1x -timeout 60m ./bench/...

bench-large: build ## run the benchmarks with a repository and an artifact of 1 GiB
	go test -run '^$$' -bench Large -benchtime 1x -timeout 60m ./bench/...

bench-lists: build ## measure each list of the API with each documented filter
	go test -run '^$$' -bench EveryList -benchtime 1x -timeout 4h ./bench/...

bench-peers: build ## compare with Gitea on this machine: make bench-peers GITEA=/path/to/gitea
	GITEA='$(GITEA)' go test -run '^$$' -bench Peers -benchtime 1x -timeout 60m -v ./bench/...

release: ## build archives, packages, checksums and bills of materials into bin/release
	scripts/release

test-release: ## build a release twice, and install, upgrade and remove its Debian package in a new root (needs root)
	scripts/test-release

test-image: build ## build the container image and run it (needs root, buildah and debootstrap)
	scripts/test-image

clean: ## remove build results
	rm -rf bin

setup: ## install the programs that the tests need
	scripts/setup

tools: ## build the tools that the tests need
	go -C tools build -buildvcs=false -o ../bin/tools/ tool

bin/tools/staticcheck: tools/go.mod tools/go.sum
	go -C tools build -buildvcs=false -o ../bin/tools/ honnef.co/go/tools/cmd/staticcheck
	@touch $@
