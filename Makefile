# Everything a checkout is good for. `make help` lists it; `make test` is what CI runs.
#
#   make run  ARGS='--bots 8 --for 10s'
#   make bench PKG=./views BENCH=Runs COUNT=10 | tee old.txt
#   make fuzz FUZZTIME=5m

PKG      ?= ./...
ARGS     ?=
BENCH    ?= .
COUNT    ?= 1
FUZZTIME ?= 1m
ROUNDS   ?= 10

# Stamping builds with the commit fails where the checkout belongs to another user, and nothing here reads the stamp.
export GOFLAGS := $(strip $(GOFLAGS) -buildvcs=false)

# Test results are never taken from a cache: most tests here are about timing and order. What go test would vet, vet has
# vetted, and more; doing it again for each build takes as long as some of the tests.
GOTEST := go test -count=1 -timeout=5m -vet=off

# What is not of the library's module: packages that bring a dependency of their own. ./... does not reach them.
NESTED := snapshot/zstd

# $(call each,command) runs a command in each of them.
each = for dir in $(NESTED); do (cd $$dir && $(1)) || exit 1; done

# $(call stage,name,command) runs a command and says how long it took. A stage that fails ends everything.
stage = @echo "== $(1)"; start=$$(date +%s); \
	if $(2); then echo "== $(1): $$(($$(date +%s) - start)) s"; \
	else echo "== $(1): FAILED after $$(($$(date +%s) - start)) s" >&2; exit 1; fi

.NOTPARALLEL:
.PHONY: help run test tools fmt vet lint unit race debug simd fuzz-short bench bench-check bench-compare fuzz faults faults-short sim sim-long planted worlds pages test-page page-pictures page-load loads stress soak soak-loads repeats cover clean

help: ## lists the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

# Built first and put in the place of the recipe's shell, so that Ctrl-C and SIGTERM reach the
# server itself and it can end cleanly: under "go run" a killed make leaves it behind.
run: ## runs the arena: a server, 64 bots, and a port to join by hand
	@mkdir -p bin && go build -o bin/airlock ./cmd/airlock
	@exec bin/airlock arena $(ARGS)

test: fmt vet lint unit race debug faults-short sim simd fuzz-short ## runs every check: the command CI runs

tools: bin/staticcheck bin/stress bin/benchstat ## builds staticcheck, stress and benchstat into bin

bin/%: tools/go.mod tools/go.sum
	$(call stage,tools: building $@,mkdir -p bin && go -C tools build -o ../$@ $(TOOL_$*) && touch $@)

TOOL_staticcheck := honnef.co/go/tools/cmd/staticcheck
TOOL_stress      := golang.org/x/tools/cmd/stress
TOOL_benchstat   := golang.org/x/perf/cmd/benchstat

fmt:
	$(call stage,fmt: gofmt,files=$$(gofmt -l .) && { [ -z "$$files" ] || { printf 'not formatted:\n%s\n' "$$files"; false; }; })

# Only two packages have other files in the debug build.
vet:
	$(call stage,vet: go vet in both builds,go vet ./... && go vet -tags ecsdebug ./internal/check ./pool && ($(call each,go vet ./...)))

lint: bin/staticcheck
	$(call stage,lint: staticcheck in both builds,bin/staticcheck ./... && bin/staticcheck -tags ecsdebug ./internal/check ./pool && ($(call each,"$(CURDIR)/bin/staticcheck" ./...)))

unit:
	$(call stage,unit: tests and import rules,$(GOTEST) ./... && ($(call each,$(GOTEST) ./...)))

# Under the race detector a step of a model takes ten times as long: a tenth of the walks, unless RAPID_CHECKS says
# otherwise, and the short forms of what is long. Left out is where nothing runs beside anything.
ALONE := internal/(bitset|tidy|planted.*|fault|browser.*)|cmd/airlock|examples/(guide|cookbook|views|worlds|externalarray)|views/wide

race: export RAPID_CHECKS := $(or $(RAPID_CHECKS),10)
race:
	$(call stage,race: tests with the race detector,$(GOTEST) -short -race $$(go list ./... | grep -Ev '/($(ALONE))$$') && ($(call each,$(GOTEST) -short -race ./...)))

# The packages that the debug build has most of its checks in, and scripts that end alike in every build. make soak runs
# everything in that build.
DEBUGGED := ./handles ./archetype ./registry ./pool ./internal/check

debug:
	$(call stage,debug: tests of the ecsdebug build,$(GOTEST) -short -tags ecsdebug $(DEBUGGED) && $(GOTEST) -tags ecsdebug -run SavedScripts ./stress)

# The vector bodies exist on amd64 only. The experiment is part of every build's key, so the first run also
# builds the standard library once more.
simd:
	$(call stage,simd: vet and tests of views/wide with GOEXPERIMENT=simd,if [ "$$(go env GOARCH)" = amd64 ]; then export GOEXPERIMENT=simd && go vet ./views/wide && $(GOTEST) ./views/wide; else echo "skipped: there are no vector bodies for $$(go env GOARCH)"; fi)

# Functions that hang on the points of package fault, see there. Without the tag there is nothing of them in a build.
faults-short:
	$(call stage,faults: stops and cancellations at every point,go vet -tags faults ./internal/fault ./logic && $(GOTEST) -tags faults -run Point ./internal/fault ./logic)

SIM_SEEDS ?= 1000
SIM := Simulation|EverySchedule|FailingSeed

# Fresh seeds each time: the first one is printed, and one that fails with the command that repeats it.
sim:
	$(call stage,sim: $(SIM_SEEDS) fresh seeds of 2000 frames and every schedule of few preemptions,AIRLOCK_SIM_SEEDS=$(SIM_SEEDS) go test -count=1 -timeout=20m -tags faults -run '$(SIM)' -v ./logic)

# What reads bytes from elsewhere, and handles. Seeds of all targets run as tests; make fuzz fuzzes all, for longer.
fuzz-short:
	$(call stage,fuzz: what reads bytes from elsewhere for a second each,scripts/fuzz 1s ./handles ./snapshot ./declare)

bench: ## runs benchmarks: PKG, BENCH, COUNT
	go test -run='^$$' -bench='$(BENCH)' -count=$(COUNT) -timeout=60m $(PKG)

# The vector kernels have a target of their own, so they are built in where there are any. Only a run of everything
# is written into docs: with ARGS="-run 'query|create' -size 262144" the table is printed, and that is all.
bench-check: bin/staticcheck ## checks the module of the benchmarks, which make test leaves out: nobody's program has it, and what draws its chart takes long to build
	cd bench && go vet ./... && "$(CURDIR)/bin/staticcheck" ./... && $(GOTEST) ./...

bench-compare: ## measures beside other libraries, into docs/PERFORMANCE.md; with ARGS, prints only
	cd bench && if [ "$$(go env GOARCH)" = amd64 ]; then export GOEXPERIMENT=simd; fi && go run . $(or $(ARGS),-write)

fuzz: ## fuzzes each target for FUZZTIME: PKG, FUZZTIME
	scripts/fuzz $(FUZZTIME) $(PKG)

FAULTS := Point|EverySchedule|AmidAnUndo|EndsInEveryWay|RandomEndings|NeverReturns|ContextThatEnds|Vanish|SlowLogic|FullIsFull|FullPool|Misbehave|Forged|Script

faults: ## injects every fault as often as is promised: 10,000 panics and cancellations, 1,000 stops at each point; every schedule of 3 preemptions
	$(call stage,faults: the long counts,AIRLOCK_FAULTS=1 go test -count=1 -timeout=20m -tags faults -run '$(FAULTS)' ./internal/fault ./logic ./stress)

planted: ## runs the tests with each bug of internal/planted, and writes what finds it into docs/RELIABILITY.md; with ARGS, prints only
	go vet -tags planted ./... && go run ./internal/planted/hunt $(or $(ARGS),-write docs/RELIABILITY.md)

sim-long: ## simulates 20,000 seeds of the handshake, every schedule of 3 preemptions, and engines with mistakes in them
	$(call stage,sim: the long counts,AIRLOCK_FAULTS=1 AIRLOCK_SIM_SEEDS=20000 go test -count=1 -timeout=3h -tags faults -run '$(SIM)' -v ./logic)

PROGRAMS ?= 2000

worlds: ## runs PROGRAMS random declared worlds with both backends and 1, 2 and 4 workers, 256 steps each
	DECLARE_PROGRAMS=$(PROGRAMS) go test -count=1 -timeout=60m -run TestRandomProgramsAgree -v ./declare

# What Chromium opens: an arena, and a harbour with awkward names.
pages:
	@mkdir -p bin && go build -o bin/airlock ./cmd/airlock && go build -o bin/harbour ./internal/browser

test-page: pages ## opens the page of package inspect with Chromium, and looks at it; skipped where there is none
	$(call stage,page: with Chromium,scripts/browser page.mjs)

page-pictures: pages ## takes the pictures of the page and of the arena in docs; DIR is another place for them
	@scripts/browser pictures.mjs $(or $(DIR),docs)

LOAD ?= 4m

page-load: ## measures what the page costs the frames of the paced load, by turns, for LOAD, and compares hashes
	AIRLOCK_PAGE_LOAD=$(LOAD) go test -count=1 -timeout=60m -run 'TestPageLoad' -v ./inspect

# $(call load,build,scenario,time) runs a load on one of the two builds of the command; a violation ends everything.
# LOADS are flags for all of them.
load = bin/airlock$(1) stress --scenario $(2) --for $(3) $(LOADS)

LOADS ?=
RUNS  ?= docs/RELIABILITY.md

loads:
	@mkdir -p bin && go build -o bin/airlock ./cmd/airlock && go build -race -o bin/airlock-race ./cmd/airlock

stress: loads faults ## runs every load and every fault for a short time, with and without the race detector, and 1,000 seeds of the simulation: LOADS
	@$(MAKE) --no-print-directory sim
	@for n in 1 2 4 8; do GOMAXPROCS=$$n $(call load,-race,sync,10s) || exit 1; done
	@for name in batched crowd readers rollback history; do $(call load,-race,$$name,20s) || exit 1; done
	@for name in batched crowd readers rollback; do $(call load,-race,$$name,10s) --faults || exit 1; done
	@$(call load,,paced,40s)
	@$(call load,,churn,20s)
	@$(call load,,soak,1m)
	@$(call load,-race,soak,1m)

soak-loads: loads ## runs every load in its long form, and writes what was run to RUNS: some four hours
	@for n in 1 2 4 8; do GOMAXPROCS=$$n $(call load,-race,sync,5m) --write $(RUNS) || exit 1; done
	@$(call load,-race,batched,5m) --write $(RUNS)
	@$(call load,-race,crowd,2m) --write $(RUNS)
	@$(call load,,paced,30m) --write $(RUNS)
	@$(call load,,churn,2m) --write $(RUNS)
	@$(call load,-race,readers,5m) --write $(RUNS)
	@$(call load,-race,rollback,5m) --write $(RUNS)
	@$(call load,-race,history,5m) --write $(RUNS)
	@$(call load,-race,soak,30m) --write $(RUNS)
	@$(call load,,soak,2h) --write $(RUNS)

soak: soak-loads ## repeats all tests under the race detector, checks on, at several GOMAXPROCS, and runs soak-loads: PKG, ROUNDS
	go test -count=$(ROUNDS) -cpu=1,2,4,8 -race -tags=ecsdebug -timeout=4h $(PKG)
	scripts/repeat $(REPEATS) $(PKG)
	scripts/fuzz $(FUZZTIME) $(PKG)

REPEATS ?= 200

repeats: ## repeats each test in which goroutines run beside each other REPEATS times, under the race detector: PKG; LIMIT is seconds a test
	scripts/repeat $(REPEATS) $(PKG)

# What only the builds with faults and with checks have is reached in those.
COVER := -vet=off -count=1 -timeout=20m -coverpkg=./...

cover: ## measures which statements the tests reach, package by package: bin/cover.html
	@mkdir -p bin
	go test $(COVER) -coverprofile=bin/cover-plain.out $(PKG)
	go test $(COVER) -coverprofile=bin/cover-faults.out -tags faults -run 'Point|$(SIM)' ./internal/fault ./logic
	go test $(COVER) -coverprofile=bin/cover-debug.out -short -tags ecsdebug $(DEBUGGED)
	scripts/cover bin/cover.out bin/cover-plain.out bin/cover-faults.out bin/cover-debug.out
	go tool cover -html=bin/cover.out -o bin/cover.html

clean: ## removes what make made
	rm -rf bin internal/browser/node_modules
