package house

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// order is a policy that has been read.
type order struct {
	rooms  []string                   // every name of this module, in the order of appearance
	above  map[string]map[string]bool // room → names it may import directly or through others
	denied map[string][]string        // room → names it never imports
}

// parse reads a policy. Each fault is an error that names its line.
func parse(text string) (*order, error) {
	o := &order{above: make(map[string]map[string]bool), denied: make(map[string][]string)}
	for number, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := o.add(line); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", number+1, line, err)
		}
	}
	o.close()
	return o, o.validate()
}

// add takes in one statement.
func (o *order) add(line string) error {
	if below, room, ok := strings.Cut(line, "!<"); ok {
		lower, err := names(below)
		if err != nil {
			return err
		}
		upper, err := names(room)
		for _, u := range upper {
			o.denied[u] = append(o.denied[u], lower...)
		}
		return err
	}
	groups := strings.Split(line, "<")
	if len(groups) < 2 {
		return fmt.Errorf("a statement has a < or a !<")
	}
	lower, err := names(groups[0])
	for _, group := range groups[1:] {
		if err != nil {
			return err
		}
		var upper []string
		if upper, err = names(group); err != nil {
			return err
		}
		for _, u := range upper {
			o.allow(u, lower)
		}
		lower = upper
	}
	return nil
}

func (o *order) allow(room string, lower []string) {
	if o.above[room] == nil {
		o.above[room] = make(map[string]bool)
		o.rooms = append(o.rooms, room)
	}
	for _, l := range lower {
		o.above[room][l] = true
	}
}

// names splits a list at its commas.
func names(list string) ([]string, error) {
	var all []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name == "" || strings.ContainsAny(name, " \t") {
			return nil, fmt.Errorf("%q is not a name", name)
		}
		all = append(all, name)
	}
	return all, nil
}

// close makes the order transitive.
func (o *order) close() {
	for changed := true; changed; {
		changed = false
		for _, room := range o.rooms {
			for lower := range o.above[room] {
				for lowest := range o.above[lower] {
					if !o.above[room][lowest] {
						o.above[room][lowest] = true
						changed = true
					}
				}
			}
		}
	}
}

// validate finds contradictions.
func (o *order) validate() error {
	for _, room := range o.rooms {
		if o.above[room][room] {
			return fmt.Errorf("%s is above itself", room)
		}
	}
	for room, lower := range o.denied {
		if o.above[room] == nil {
			return fmt.Errorf("%s never imports something, but has no place", room)
		}
		for _, l := range lower {
			if o.above[room][l] {
				return fmt.Errorf("%s both may and may not import %s", room, l)
			}
		}
	}
	return nil
}

// room returns the room of a package of this module: the longest name that matches.
func (o *order) room(pkg string) (string, bool) {
	var found string
	for _, room := range o.rooms {
		if matches(room, pkg) && len(room) > len(found) {
			found = room
		}
	}
	return found, found != ""
}

// judge says why a package of a room may not import another, or nil. The import is
// a path relative to this module if ours is true.
func (o *order) judge(room, imported string, ours bool) error {
	for _, pattern := range o.denied[room] {
		if matches(pattern, imported) {
			return fmt.Errorf("policy: %s !< %s", pattern, room)
		}
	}
	if ours {
		target, known := o.room(imported)
		if !known {
			return fmt.Errorf("%s has no place in the house", imported)
		}
		if target == room || o.above[room][target] {
			return nil
		}
		return fmt.Errorf("policy has no %s < %s", target, room)
	}
	for pattern := range o.above[room] {
		if matches(pattern, imported) {
			return nil
		}
	}
	return fmt.Errorf("policy does not let %s import it", room)
}

// matches reports whether a name of the policy covers a package.
func matches(name, pkg string) bool {
	isTesting := pkg == "testing" || strings.HasPrefix(pkg, "testing/")
	switch name {
	case "ANY":
		return !isTesting
	case "STD":
		first, _, _ := strings.Cut(pkg, "/")
		return !isTesting && !strings.Contains(first, ".")
	}
	if parent, ok := strings.CutSuffix(name, "/..."); ok {
		return pkg == parent || strings.HasPrefix(pkg, parent+"/")
	}
	return pkg == name
}

// A policy that contradicts itself or cannot be read is refused, with the reason.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{
		"a < b\nc < a\nb < c": "above itself",
		"a < b < c\na !< c":   "both may and may not import a",
		"a !< b":              "has no place",
		"a, b":                "line 1: a, b: a statement has a <",
		"# nothing\na < b c":  `line 2: a < b c: "b c" is not a name`,
		"a, < b":              `"" is not a name`,
	} {
		if _, err := parse(policy); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v; want one with %q", policy, err, want)
		}
	}
}

// What a policy allows is what stands left of a room, and left of that, and no more.
func TestJudge(t *testing.T) {
	t.Parallel()
	o, err := parse(`
		STD < low < mid < top/...     # a chain
		os/... !< low
		example.com/lib < mid
		low < side
		ANY, mid < prog
		testing/..., low < kit
	`)
	if err != nil {
		t.Fatal(err)
	}
	const ours, outside = true, false
	for _, tc := range []struct {
		room, imported string
		ours, allowed  bool
	}{
		{"mid", "low", ours, true},
		{"low", "mid", ours, false},
		{"top/...", "low", ours, true},
		{"top/...", "top/inner", ours, true},
		{"side", "mid", ours, false},
		{"side", "nowhere", ours, false},
		{"low", "strings", outside, true},
		{"low", "os", outside, false},
		{"low", "os/exec", outside, false},
		{"mid", "os", outside, true}, // only low renounced it
		{"low", "testing", outside, false},
		{"kit", "testing", outside, true},
		{"kit", "testing/quick", outside, true},
		{"prog", "testing", outside, false},
		{"prog", "example.com/other", outside, true},
		{"top/...", "example.com/lib", outside, true},
		{"top/...", "example.com/lib/deep", outside, false},
		{"side", "example.com/lib", outside, false},
	} {
		if err := o.judge(tc.room, tc.imported, tc.ours); (err == nil) != tc.allowed {
			t.Errorf("%s imports %s: %v; want allowed = %t", tc.room, tc.imported, err, tc.allowed)
		}
	}
	if room, _ := o.room("top/inner"); room != "top/..." {
		t.Errorf("room of top/inner = %q", room)
	}
	if !slices.Equal(o.rooms, []string{"low", "mid", "top/...", "side", "prog", "kit"}) {
		t.Errorf("rooms = %v", o.rooms)
	}
}
