package faults_test

import (
	"fmt"
	"testing"

	"github.com/amends-dev/amends/internal/shopsim/faults"
)

// The plan is a function: these arrivals meet these faults on every machine.
func TestPlanIsFixed(t *testing.T) {
	t.Parallel()
	p := faults.Plan{Seed: 7, Rate: 0.5}
	var got []string
	for _, order := range []string{"1", "2", "3"} {
		for n := 1; n <= 5; n++ {
			f := p.At(faults.HTTP, "POST /invoices shop:order:"+order, n)
			got = append(got, fmt.Sprintf("%s %d %s %v", order, n, f.Kind, f.Late))
		}
	}
	want := []string{
		"1 1 error-after true", "1 2 cut-after true", "1 3 silent false", "1 4 cut-before false", "1 5  false",
		"2 1  true", "2 2 error-after false", "2 3  true", "2 4  true", "2 5  false",
		"3 1 cut-after false", "3 2  false", "3 3  false", "3 4  true", "3 5  false",
	}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// A higher rate adds faults and changes none; rate 0 has none, rate 1 has only
// faults, and after Patience arrivals there is peace at any rate.
func TestRate(t *testing.T) {
	t.Parallel()
	at := func(rate float64, key string, n int) faults.Fault {
		return faults.Plan{Seed: 1, Rate: rate}.At(faults.HTTP, key, n)
	}
	low, all := 0, 0
	for i := range 2000 {
		key := fmt.Sprint(i)
		if f := at(0, key, 1); f != (faults.Fault{}) {
			t.Fatalf("rate 0 gives %+v", f)
		}
		if at(1, key, 1).Kind == faults.None {
			t.Fatalf("rate 1 gives no fault for %s", key)
		}
		if f := at(1, key, faults.Patience+1); f != (faults.Fault{}) {
			t.Fatalf("after Patience: %+v", f)
		}
		small, big := at(0.2, key, 1).Kind, at(0.6, key, 1).Kind
		if small != faults.None {
			low++
			if big != small {
				t.Fatalf("%s: %s at the low rate, %s at the high", key, small, big)
			}
		}
		if big != faults.None {
			all++
		}
	}
	if low < 340 || low > 460 || all < 1120 || all > 1280 {
		t.Errorf("%d and %d faults in 2000 arrivals, want about 400 and 1200", low, all)
	}
}

// Other seeds, other faults; every kind on the menu is served.
func TestSeeds(t *testing.T) {
	t.Parallel()
	seen := map[faults.Kind]bool{}
	differ := 0
	for i := range 200 {
		a := faults.Plan{Seed: 1, Rate: 1}.At(faults.HTTP, fmt.Sprint(i), 1)
		b := faults.Plan{Seed: 2, Rate: 1}.At(faults.HTTP, fmt.Sprint(i), 1)
		seen[a.Kind] = true
		if a.Kind != b.Kind {
			differ++
		}
	}
	if differ < 100 {
		t.Errorf("two seeds differ in %d of 200 faults", differ)
	}
	for _, kind := range faults.HTTP {
		if !seen[kind] {
			t.Errorf("%s never came", kind)
		}
	}
}
