package storetest

import "fmt"

// group is one part of the contract.
type group struct {
	name  string
	cases []testCase
}

// testCase is one rule of the contract.
type testCase struct {
	name   string // the rule in a few words
	run    func(*bench)
	breaks broken             // the switches that it must notice
	needs  func(Harness) bool // whether a harness can do what the case needs, nil: any can
}

// broken are stores that break a rule, really, in the database behind them, by the names of the
// switches.
type broken map[string]func(Store) Store

var groups = []group{
	{"values", valueCases}, {"ledger", raceCases}, {"inbox", inboxRaceCases}, {"fault", faultCases}, {"transaction", txCases},
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
