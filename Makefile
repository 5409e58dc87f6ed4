# The commands of this project. README.md explains the first two.
#
#   make run         install what is missing, build, do the main job
#   make test        install what the tests need, vet, run all tests under the race detector
#   make check       what CI runs: formatting, lint, test, run
#   make build       bin/reins
#   make bench       benchmarks, and reins beside raw CDP
#   make chaos-long  the crash tests with 20 seeds a point
#   make fuzz        every fuzz test for FUZZTIME

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.PHONY: run test check build bench chaos-long fuzz needs needs-run fmt lint vet

GO ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 20s
SEEDS ?= 20
# One test binary at a time: several of them drive a browser, and two browsers
# starve each other on a small machine.
TEST := $(GO) test -race -count=1 -timeout 35m -p 1

# A checkout that git will not look at (another user's, or no git at all) builds without its commit's name.
ifneq ($(shell git status --porcelain >/dev/null 2>&1; echo $$?),0)
export GOFLAGS := $(GOFLAGS) -buildvcs=false
endif

run: needs-run build
	bin/reins demo run

test: needs
	$(MAKE) --no-print-directory vet
	$(GO) build -race ./...
	$(TEST) ./...

check:
	bash .ci/run

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/reins ./cmd

needs:
	bash .ci/needs test

needs-run:
	bash .ci/needs run

fmt:
	@bad=$$(gofmt -l .); if [ -n "$$bad" ]; then printf 'gofmt would change:\n%s\n' "$$bad" >&2; exit 1; fi

vet:
	$(GO) vet ./...

lint: vet
	$(GO) vet -tags reinsfaults ./...
	$(GO) run $(STATICCHECK) ./...

bench: needs-run build
	$(GO) test -run '^$$' -bench . -benchtime 1s -p 1 ./...
	bin/reins bench

chaos-long: needs
	REINS_CHAOS_SEEDS=$(SEEDS) REINS_CHAOS_ROUNDS=$(SEEDS) $(GO) test -race -count=1 -timeout 6h -v ./cmd/internal/crash

fuzz:
	@$(GO) list ./... | while read -r package; do \
	  for name in $$($(GO) test -list '^Fuzz' "$$package" | grep '^Fuzz' || true); do \
	    echo "$$package $$name"; \
	    $(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$package"; \
	  done; \
	done
