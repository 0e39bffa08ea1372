# assay: build, try, test. `make help` lists the targets.
#
# Needs git, make and Go; what else a target needs it installs first (see .ci/deps).

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
PREFIX   ?= /usr
SYSCONF  ?= /etc
DESTDIR  ?=
FUZZTIME ?= 60s
SOAKRUNS ?= 3
SOAKCHECKS ?= 1000000

# One value everywhere: another one would compile the cgo packages again.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

# The same source and Go version give the same bytes, wherever the tree lies.
BUILD := $(GO) build -trimpath -buildvcs=false
STAMP := -X main.version=$(VERSION)

# Two packages at a time: several start servers, and a small machine must not make them miss their deadlines.
SUM     := $(GO) tool gotestsum --format pkgname --format-hide-empty-pkg --hide-summary skipped --
TIMEOUT := 40m

.PHONY: all deps deps-build demo test test-fast lint fuzz bench bench-slurm soak soak-scheduler install clean help golden-generate golden-cubins sass-gate bin/assay bin/assay-agent bin/assay-hook bin/assayd bin/sim/libnvidia-ml.so.1 bin/sim/libcuda.so.1 bin/sim/libdcgm.so.4

## all: the four programs in bin/, and the simulated NVML, CUDA driver and DCGM in bin/sim/
all: bin/assay bin/assay-agent bin/assay-hook bin/assayd bin/sim/libnvidia-ml.so.1 bin/sim/libcuda.so.1 bin/sim/libdcgm.so.4

bin/assay bin/assayd:
	@echo "build $@"
	@CGO_ENABLED=0 $(BUILD) -ldflags '-s -w $(STAMP)' -o $@ ./cmd/$(@F)

bin/assay-hook:
	@echo "build $@"
	@CGO_ENABLED=0 $(BUILD) -ldflags '-s -w $(STAMP)' -o $@ ./cmd/assay-hook

bin/assay-agent: | deps-build
	@echo "build $@"
	@CGO_ENABLED=1 $(BUILD) -ldflags '$(STAMP)' -o $@ ./cmd/assay-agent

bin/sim/libnvidia-ml.so.1: bin/assay-agent | deps-build
	@echo "build $@"
	@mkdir -p bin/sim
	@bin/assay-agent sim library $@

bin/sim/libcuda.so.1: bin/assay-agent | deps-build
	@echo "build $@"
	@mkdir -p bin/sim
	@bin/assay-agent sim library --cuda $@

bin/sim/libdcgm.so.4: bin/assay-agent | deps-build
	@echo "build $@"
	@mkdir -p bin/sim
	@bin/assay-agent sim library --dcgm $@
	@ln -sfn ../assay-agent bin/sim/dcgmi

## demo: a control plane and eight simulated nodes; two break, are quarantined, and one is resumed
demo: all
	@bin/assayd demo

## test: everything CI runs, from lint to the stories on a real Slurm
test: deps all lint
	@.ci/test '$(TIMEOUT)'

## test-fast: what needs no server; under a minute when the build cache is warm
test-fast: | deps-build
	@$(SUM) -short -p 2 -timeout 2m ./...

## lint: go vet, staticcheck, gofmt, and the rules on who may import what
lint: | deps-build
	@.ci/lint

## fuzz: every fuzz target for FUZZTIME (60s; 5m for a release)
fuzz: | deps-build
	@.ci/fuzz '$(FUZZTIME)'

## bench: the figures of packaging/docs/benchmarks.md
bench: deps all
	@.ci/bench

## bench-slurm: gangs a second on 10,000 nodes, beside a real slurmctld on the same tree
bench-slurm: deps
	@packaging/bench/slurm.sh

## soak: all tests SOAKRUNS (3) times over, shuffled, under the race detector; then the scheduler's proofs in full, which take a day
soak: deps all
	@$(SUM) -race -count=$(SOAKRUNS) -shuffle=on -p 2 -timeout 3h ./...
	@$(MAKE) soak-scheduler

## soak-scheduler: placement against every choice there is on all small trees, and SOAKCHECKS (1,000,000) cases of each property
soak-scheduler:
	@ASSAY_SOAK=1 $(GO) test -count=1 -timeout 72h -v -run TestOptimum ./scheduler
	@$(GO) test -count=1 -timeout 72h ./scheduler ./scheduler/quota ./scheduler/timemap ./scheduler/backfill ./scheduler/cycle -skip 'TestOptimum|Mutants' -rapid.checks=$(SOAKCHECKS)

## golden-generate: the PTX of the golden kernels, by clang-19
golden-generate:
	@.ci/deps golden
	@.ci/golden-generate

## golden-cubins: the machine code of the golden kernels that is shipped, by ptxas 12.4, and the record of the SASS gate
golden-cubins:
	@.ci/cuda-tools
	@SASS_GATE=1 $(GO) test -count=1 -timeout 30m -run SASSGate -v ./golden/sass -update-gate

## sass-gate: assemble every golden kernel with ptxas 11.8 and 12.4 and hold the machine code to the record and to what is shipped
sass-gate:
	@.ci/cuda-tools
	@SASS_GATE=1 $(GO) test -count=1 -timeout 30m -run 'SASSGate|TheRealDriver|CorpusGate' -v ./golden/sass ./golden/worker ./golden/corpus

## install: into DESTDIR; configuration that exists is left alone
install: all
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/libexec/assay' '$(DESTDIR)$(PREFIX)/lib/systemd/system' \
	  '$(DESTDIR)$(PREFIX)/lib/tmpfiles.d' '$(DESTDIR)$(PREFIX)/lib/sysusers.d' '$(DESTDIR)$(PREFIX)/share/assay/prometheus' \
	  '$(DESTDIR)$(PREFIX)/share/assay/slurm' '$(DESTDIR)$(PREFIX)/share/doc/assay' '$(DESTDIR)$(SYSCONF)/assay'
	install -m 0755 bin/assay bin/assay-agent bin/assayd '$(DESTDIR)$(PREFIX)/bin/'
	install -m 0755 bin/assay-hook '$(DESTDIR)$(PREFIX)/libexec/assay/assay-hook'
	ln -sfn ../libexec/assay/assay-hook '$(DESTDIR)$(PREFIX)/bin/assay-hook'
	for hook in prolog epilog healthcheck; do ln -sfn assay-hook "$(DESTDIR)$(PREFIX)/libexec/assay/$$hook"; done
	install -m 0644 packaging/systemd/*.service '$(DESTDIR)$(PREFIX)/lib/systemd/system/'
	install -m 0644 packaging/systemd/jobs.conf '$(DESTDIR)$(PREFIX)/share/assay/assay-agent-jobs.conf'
	install -m 0644 packaging/systemd/tmpfiles.conf '$(DESTDIR)$(PREFIX)/lib/tmpfiles.d/assay.conf'
	install -m 0644 packaging/systemd/sysusers.conf '$(DESTDIR)$(PREFIX)/lib/sysusers.d/assay.conf'
	install -m 0644 packaging/prometheus/assay.rules.yml packaging/prometheus/scrape.yml '$(DESTDIR)$(PREFIX)/share/assay/prometheus/'
	install -m 0644 packaging/slurm/slurm.conf.snippet '$(DESTDIR)$(PREFIX)/share/assay/slurm/'
	install -m 0644 packaging/docs/*.md packaging/docs/*.svg packaging/docs/openapi.json '$(DESTDIR)$(PREFIX)/share/doc/assay/'
	for file in agent assayd policy policy-brief; do \
	  test -e "$(DESTDIR)$(SYSCONF)/assay/$$file.yaml" || install -m 0644 "packaging/config/$$file.yaml" "$(DESTDIR)$(SYSCONF)/assay/"; \
	done

## deps: what the tests need from Debian, where it is missing
deps:
	@.ci/deps test

deps-build:
	@.ci/deps build

## clean: remove what was built
clean:
	rm -rf bin coverage.out

## help: this list
help:
	@sed -n 's/^## \([^:]*\): \(.*\)/  make \1\t\2/p' Makefile | expand -t 20
