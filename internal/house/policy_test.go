package house

// policy says who may import whom.
//
//	a, b < c, d    c and d may import a and b, and everything those may import
//	a !< b         never, whatever the other lines say: b imports no a
//
// A name is one package of this module, or of another if its first part has a dot.
// A name that ends in /... is that package and all below it. In capitals:
// STD is the standard library without testing, ANY every package outside of this
// module but testing.
//
//nolint:dupword // one line ends with the name that the next begins with
const policy = `
	# Definitions and the machine are pure: no I/O, no clock, no chance, no log. The functions that
	# read a clock are in TestMachineReadsNoClock.
	STD < internal/program < saga < internal/machine
	golang.org/x/text/... < internal/machine # names of people are compared: tables, no I/O
	os, os/..., io/ioutil, net, net/..., syscall, unsafe !< internal/program, saga, internal/machine
	database/..., log, log/..., math/rand/..., crypto/rand, plugin !< internal/program, saga, internal/machine # runtime only names the functions of a panic

	# They are below everything that stores, sends or runs.
	STD, github.com/go-json-experiment/json/jsontext, golang.org/x/text/... < internal/reading # what other systems send
	saga, internal/reading < sagahttp
	internal/machine < internal/ledger
	github.com/jmoiron/sqlx < internal/ledger

	# A store keeps what its roles need kept, in a database of its own: never the coordinator, nor what reconciles.
	STD, github.com/pressly/goose/v3/... < migrations
	STD < internal/address/file < internal/address # of a file without a driver of Postgres
	github.com/lib/pq < internal/address < store/internal/... # an address is read before a database is opened
	internal/ledger, migrations < store/internal/...
	internal/intake, internal/plan, internal/scan, reconcile/schedule < store/internal/... < store/memory, store/sqlite, store/postgres
	github.com/jmoiron/sqlx, golang.org/x/sync/... < store/internal/...
	github.com/lib/pq/..., golang.org/x/sys/unix < store/internal/... # TCP_USER_TIMEOUT
	modernc.org/sqlite/..., github.com/gofrs/flock < store/sqlite
	coordinator, reconcile, reconcile/webhook !< store/internal/..., store/memory, store/sqlite, store/postgres, store
	store/sqlite, store/postgres < store

	# The coordinator runs sagas over whichever ledger it is given: no driver.
	saga < internal/adoption
	internal/ledger, golang.org/x/time/... < internal/flow # what may be sent where, when: no log, no definition
	sagahttp, internal/flow, internal/adoption < coordinator
	github.com/sirupsen/logrus/..., golang.org/x/sync/... < coordinator
	github.com/lib/pq/..., modernc.org/... !< coordinator
	internal/reading < callback
	coordinator < callback, approval # answers and votes by HTTP
	coordinator, internal/intake < internal/finding < internal/command # what does not move, for people and for metrics
	coordinator, internal/finding, reconcile/schedule, github.com/prometheus/client_golang/... < amendsprom # metrics: of a store the contract alone, no driver
	coordinator, go.opentelemetry.io/otel/attribute, go.opentelemetry.io/otel/codes, go.opentelemetry.io/otel/trace < amendsotel # traces; the SDK is the program's choice

	# The receiver verifies, stores and answers. Effects hang off the ledger.
	saga, golang.org/x/time/... < internal/asking < internal/intake < reconcile/inbox
	internal/reading < internal/intake
	github.com/sirupsen/logrus < reconcile/inbox
	STD < internal/faults < internal/plan, internal/asking, sagahttp, reconcile/schedule # what is wrong with a configuration
	STD < internal/nap < internal/flow, internal/asking, store/internal/..., reconcile/schedule # waiting, until a context ends
	STD < internal/tee < coordinator, reconcile/inbox, reconcile/schedule # one listener of several
	reconcile/inbox < reconcile/webhook
	golang.org/x/sync/semaphore < reconcile/webhook
	STD < reconcile/simulation, reconcile/simulation/whole # only tests
	coordinator, internal/ledger !< reconcile/inbox
	saga < internal/plan # pure, like the machine
	reconcile/inbox, internal/plan < internal/scan
	saga, github.com/sirupsen/logrus, github.com/robfig/cron/v3 < reconcile/schedule # cron for parsing only: one process cannot know what ran
	coordinator, internal/scan, reconcile/schedule, github.com/sirupsen/logrus, golang.org/x/sync/... < reconcile
	coordinator !< reconcile/webhook

	# What people read and do is decided once, in the desk. Command and console render it; neither knows the other.
	coordinator, internal/scan, reconcile/schedule, internal/finding, internal/plan, migrations, store < internal/desk < internal/command, console
	STD < internal/visible < internal/command, console, approval
	store < internal/serving < internal/command, console, cmd/..., examples/... # what the command hands to the console
	docs < internal/command
	internal/ledger, internal/machine, reconcile/schedule, store < retention < internal/desk # it lets go of what is kept
	coordinator, sagahttp, reconcile/webhook, store, internal/desk, internal/finding < alert # it tells what the desk knows
	ANY, coordinator, sagahttp, store < internal/command < cmd/..., examples/..., bench/...
	ANY, coordinator, callback < console < cmd/..., examples/..., bench/...
	internal/command !< console
	console !< internal/command
	amendsprom, amendsotel < cmd/..., examples/..., bench/...
	STD, testing/..., coordinator, sagahttp < docs # the programs that the pages show

	# Programs wire; nobody imports them.
	ANY, coordinator, sagahttp, store/memory, store < cmd/..., examples/..., bench/...
	reconcile, reconcile/webhook, callback, approval, amendsprom < examples/...
	reconcile, internal/pgtest/... < bench/...

	# Test kits alone import testing, and no program contains one.
	testing/..., coordinator, store/memory < sagatest/...
	STD, testing/... < internal/pace < internal/prove < internal/storetest
	testing/..., internal/ledger < internal/ledgertest
	internal/ledgertest, internal/intake, internal/plan, internal/scan, reconcile/schedule, store/memory, pgregory.net/rapid < internal/storetest
	STD, github.com/lib/pq/..., github.com/jmoiron/sqlx < internal/pgtest/...
	STD, testing/... < internal/spin
	STD, testing/..., github.com/santhosh-tekuri/jsonschema/v6 < internal/answers # beside tests
	internal/pace < internal/axe # beside tests that have a browser
	STD < internal/address/addresstest # beside tests
	STD, reconcile/webhook < internal/outside # the systems that the examples and their tests are against
	coordinator, internal/ledger, store !< internal/outside
	internal/outside < examples/..., bench/...
	internal/command, console, reconcile/schedule < examples/... # the play reads the ledger as the command does
	STD < internal/house
	STD < internal/apart/... # a module of its own, only tests
	ANY < internal/kubecheck # a program and a module of its own, which reads deploy/kubernetes
`

// unwanted modules are imported by no file, tests included.
var unwanted = map[string]string{
	"github.com/stretchr/testify": "the standard library says what failed as well, and users would inherit it",
	"github.com/pkg/errors":       "errors and %w do it",
	"github.com/golang/mock":      "use the memory ledger, or embed it and override one method",
	"go.uber.org/mock":            "use the memory ledger, or embed it and override one method",
}

// clocks are the functions of the standard library that read or await time.
var clocks = map[string][]string{
	"time":    {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
}
