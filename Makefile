# `make` alone lists the targets.
.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := /bin/sh

GOLANGCI_VERSION := v2.15.0
GOLANGCI := bin/golangci-lint-$(GOLANGCI_VERSION)

# The race detector needs a C compiler. Looked up when it is used: `deps` may have
# installed one by then. It does not watch SQLite's own code, which is C in the form of Go: nothing there is ours, and
# the tests would spend most of their time on it. No more than this one package: what others share with us, such as
# instances of generic types, would go unwatched too.
RACE = $(shell scripts/deps.sh -have gcc && echo -race -gcflags=modernc.org/sqlite/lib=-race=false)

# Much of what the tests do is wait, for processes and disks: two cores have room for more than two at a time.
PARALLEL := -p 3 -parallel 4

# Each process would sleep for a second at its end, for reports of other threads.
export GORACE := atexit_sleep_ms=0

# Properties of which each check is a whole world: the race detector does not stand so many goroutines.
WORLDS := ^TestRebuildAfterAnyHistory$$|^TestReconcilerBringsHome$$|^TestTheBooksOfAnOldScriptAreTakenOver$$

# Long stories in virtual time, which the detector makes five times longer: it watches them at night.
STORIES := ^TestPoisonStarvesNoOther$$|^TestAnOutageIsOverWhenItIsOver$$|^TestWhoWaitsForATryKeepsNoPlace$$

# Starts a PostgreSQL for the command and stops it afterwards, unless
# AMENDS_TEST_POSTGRES names one.
WITH_POSTGRES := bin/withpostgres

##@ Every day

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check
check: fmt vet build ## While you work, two to five minutes: no PostgreSQL, no processes, no race detector; cached.
	go test -short work

.PHONY: test
test: deps fmt vet models unit ## All that must hold before a commit, in about twenty minutes on two cores.

.PHONY: lint
lint: $(GOLANGCI) ## The linters of .golangci.yml, each with its reason there.
	for dir in $$(go list -m -f '{{.Dir}}'); do (cd "$$dir" && "$(CURDIR)/$(GOLANGCI)" run ./...) || exit; done

##@ The parts of make test

.PHONY: deps
deps: ## Install gcc, spin, PostgreSQL, PgBouncer, sqlite3, libfaketime and Chromium where we may, else say what is skipped.
	@scripts/deps.sh gcc spin postgresql pgbouncer sqlite3 libfaketime chromium

.PHONY: fmt
fmt: ## Fail if gofmt would change a file.
	@files=$$(gofmt -l .) && test -z "$$files" || { echo "not formatted, run gofmt -w on:"; echo "$$files"; exit 1; }

.PHONY: vet
vet: ## go vet, the benchmarks included.
	go vet work

.PHONY: build
build: ## Build everything, the benchmarks included.
	go build work

.PHONY: runbook
runbook: $(WITH_POSTGRES) ## Play docs/runbook.md beside the example with its faults on, on SQLite and PostgreSQL.
	$(WITH_POSTGRES) go test -count=1 -v -run '^TestRunbook$$' ./docs
	$(WITH_POSTGRES) go test -count=1 -run '^(TestSQLite|TestPostgres)$$/^runbook$$' ./internal/command

.PHONY: models
models: ## Check the models, if they changed since they passed.
	@scripts/model.sh -changed

.PHONY: unit
unit: $(WITH_POSTGRES) ## The Go tests, with the race detector and a PostgreSQL.
	$(WITH_POSTGRES) go test $(RACE) $(PARALLEL) -timeout 60m -skip '$(WORLDS)|$(STORIES)' work
	go test -run '$(WORLDS)|$(STORIES)' ./reconcile ./coordinator

##@ Longer

.PHONY: model
model: ## Check saga.pml and fetch.pml: the protocol holds, and each mutant fails.
	scripts/model.sh

.PHONY: nightly
nightly: export AMENDS_MODEL = full
nightly: export AMENDS_NIGHTLY = 1
nightly: deps fmt vet model lint night shuffled $(WITH_POSTGRES) ## Every seed, scene and broken switch, in random order again and again, fuzzing, soak.
	FUZZTIME=10m scripts/fuzz.sh
	$(MAKE) simulate
	$(MAKE) postgres-versions
	$(MAKE) deploy-check
	$(MAKE) release-check
	$(MAKE) vuln
	$(MAKE) mutants
	$(MAKE) soak RUNS=10

.PHONY: night
night: export AMENDS_NIGHTLY = 1
night: $(WITH_POSTGRES) ## The Go tests with all they have, those that take hours among them.
	$(WITH_POSTGRES) go test $(RACE) -p 1 -parallel 4 -timeout 4h -skip '$(WORLDS)' work
	RAPID_CHECKS=500 go test -count=2 -shuffle=on -timeout 2h -run '$(WORLDS)' ./reconcile

.PHONY: shuffled
shuffled: unexport AMENDS_NIGHTLY
shuffled: $(WITH_POSTGRES) ## Those of make test twice, in random order, with ten thousand checks of each property.
	RAPID_CHECKS=10000 $(WITH_POSTGRES) go test $(RACE) $(PARALLEL) -count=2 -shuffle=on -timeout 2h -skip '$(WORLDS)' work

.PHONY: postgres-versions
postgres-versions: ## The suite of stores, and the example under kills, on PostgreSQL 14, 15, 16, 17 and 18, from npm.
	scripts/postgres-versions.sh

.PHONY: simulate
simulate: ## Whole histories in virtual time: 100,000 webhooks of 10,000 objects; and 10,000 orders with books, mail and a lost ledger.
	AMENDS_SIMULATE=full go test -count=1 -p 1 -timeout 1h -v ./reconcile/simulation/...

.PHONY: soak
soak: $(WITH_POSTGRES) ## Twenty seeds of 2000 orders and 50 kills in four modes, on SQLite and PostgreSQL.
	$(WITH_POSTGRES) scripts/soak.sh

.PHONY: mutants
mutants: ## Which changes of the machine and of the memory store no test notices, by gremlins.
	@scripts/mutants.sh

.PHONY: bench
bench: ## Sagas per second and what each costs, beside the floor.
	@$(MAKE) --no-print-directory -C bench bench

.PHONY: bench-against
bench-against: ## Sagas and callbacks per second beside those of another commit, in turn: make bench-against REV=main~1
	@REV=$(REV) $(MAKE) --no-print-directory -C bench bench
	@REV=$(REV) $(MAKE) --no-print-directory -C bench callbacks

.PHONY: bench-processes
bench-processes: ## 1, 2 and 4 processes on one Postgres.
	@$(MAKE) --no-print-directory -C bench processes

.PHONY: bench-growth
bench-growth: ## What a million finished works cost a new one.
	@$(MAKE) --no-print-directory -C bench growth

.PHONY: bench-forget
bench-forget: ## What letting go of finished works costs new ones.
	@$(MAKE) --no-print-directory -C bench forget

.PHONY: bench-inbox
bench-inbox: ## Deliveries made durable per second, and gate decisions per second.
	@$(MAKE) --no-print-directory -C bench inbox

.PHONY: bench-claims
bench-claims: ## Due instances claimed per second, and what an empty look costs.
	@$(MAKE) --no-print-directory -C bench claims

.PHONY: bench-pages
bench-pages: ## How long each page of the console takes over a million instances.
	@$(MAKE) --no-print-directory -C bench pages

.PHONY: bench-month
bench-month: ## Thirty days of a ledger with retention: how large it gets, and whether it slows down.
	@$(MAKE) --no-print-directory -C bench month

.PHONY: bench-size
bench-size: ## What a finished instance takes on disk.
	@$(MAKE) --no-print-directory -C bench size

.PHONY: bench-resume
bench-resume: ## kill -9 with 2,000 instances in flight: seconds until another process has finished them.
	@$(MAKE) --no-print-directory -C bench resume

.PHONY: bench-reconcile
bench-reconcile: ## A plan over ten million listed objects, from stored listings. N=1000000 for fewer.
	@$(MAKE) --no-print-directory -C bench reconcile

##@ Deploying and releasing

.PHONY: deploy-check
deploy-check: ## Read every file of deploy/ and the Dockerfile as systemd, Compose, Prometheus and Kubernetes do.
	@scripts/deploy-check.sh

.PHONY: release-check
release-check: ## What must hold before a release besides make test: licences, builds for every machine, goreleaser's configuration.
	@scripts/release-check.sh

.PHONY: release
release: ## Check, and make the tag: make release VERSION=v0.1.0
	@scripts/release.sh '$(VERSION)'

.PHONY: licenses
licenses: ## Write LICENSES.md, after a module has come or gone.
	@scripts/licenses.sh

.PHONY: vuln
vuln: ## Known vulnerabilities in what is called, as govulncheck knows them.
	@scripts/vuln.sh

##@ Tools

.PHONY: tools
tools: $(GOLANGCI) $(WITH_POSTGRES) ## Build the tools above into bin/.

$(GOLANGCI):
	GOBIN=$(CURDIR)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv bin/golangci-lint $@

# go build knows best whether anything changed.
.PHONY: $(WITH_POSTGRES)
$(WITH_POSTGRES):
	@go build -o $@ ./internal/pgtest/withpostgres
