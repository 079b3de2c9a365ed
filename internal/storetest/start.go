package storetest

var startCases = []testCase{
	{name: "odd work ids", run: startOddIDs},
}

// A work id is the customer's text: it is compared byte by byte, and any valid text is one.
func startOddIDs(b *bench) {
	t := b.session()
	for _, w := range oddTexts {
		if w == "" {
			continue
		}
		c := b.start(t, w, started(), hold)
		if h := c.now(); h.ID.Work != w {
			b.Errorf("work %q came back as %q", w, h.ID.Work)
		}
		if got := b.load(c.id); len(got) != 1 || got[0].Instance.ID != c.id {
			b.Errorf("work %q does not load: %+v", w, got)
		}
	}
}
