package storetest

import "fmt"

// group is one part of the contract.
type group struct {
	name  string
	cases []testCase
}

// testCase is one rule of the contract.
type testCase struct {
	name    string // the rule in a few words
	run     func(*bench)
	breaks  broken             // the switches that it must notice
	needs   func(Harness) bool // whether a harness can do what the case needs, nil: any can
	unsound bool               // it leaves chains behind that no process writes
}

// broken are stores that break a rule, really, in the database behind them, by the names of the
// switches.
type broken map[string]func(Store) Store

var groups = []group{
	// What a coordinator needs.
	{"append", appendCases},
	{"start", startCases},
	{"invalid", invalidCases},
	{"record", recordCases},
	{"session", sessionCases},
	{"claim", claimCases},
	{"give back", giveBackCases},
	{"waiting", waitingCases},
	{"mail", mailCases},
	{"signal", signalCases},
	{"control", controlCases},
	{"load", loadCases},
	{"list", listCases},
	{"definition", definitionCases},
	{"duplicate", duplicateCases},
	{"race", raceCases},
	{"fault", faultCases},
	{"transaction", txCases},

	// What a reconciler needs.
	{"inbox", inboxCases},
	{"values", valueCases},
	{"judge", judgeCases},
	{"lease", leaseCases},
	{"update", updateCases},
	{"withdrawal", withdrawalCases},
	{"read", readCases},
	{"retention", retentionCases},
	{"plans", planCases},
	{"drifts", driftCases},
	{"sweep", sweepCases},
	{"inbox race", inboxRaceCases},
	{"crash", crashCases},
	{"turn", turnCases},
}

// breaker is one switch of the suite.
type breaker struct {
	testCase
	part string // the case that must notice, behind its group
	how  func(Store) Store
}

// switches are all switches of the suite by their names.
func switches() map[string]breaker {
	all := make(map[string]breaker)
	for _, g := range groups {
		for _, c := range g.cases {
			for name, how := range c.breaks {
				if _, twice := all[name]; twice {
					panic(fmt.Sprintf("storetest: two switches are named %s", name))
				}
				all[name] = breaker{testCase: c, part: g.name + "/" + c.name, how: how}
			}
		}
	}
	return all
}
