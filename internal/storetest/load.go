package storetest

var loadCases = []testCase{
	{name: "one moment", run: loadMoment, breaks: broken{"one-moment": func(s Store) Store { return tornLoad{s} }}},
	{name: "behind a stale answer", run: loadBehindStale, breaks: broken{"load-current": func(s Store) Store { return &lagging{Store: s} }}},
}
