package amendsprom_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/amends-dev/amends/amendsprom"
	"github.com/amends-dev/amends/store/memory"
)

// exported are the names of all series, those of a histogram included.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	synctest.Test(t, func(t *testing.T) {
		db, reg := memory.New(nil), prometheus.NewPedanticRegistry()
		history(t, db, amendsprom.New(reg))
		amendsprom.Ledger(reg, db, &amendsprom.LedgerOptions{Log: silent()})
		for _, f := range gathered(t, reg) {
			names[f.GetName()] = true
			if f.GetMetric()[0].GetHistogram() != nil {
				for _, end := range []string{"_bucket", "_sum", "_count"} {
					names[f.GetName()+end] = true
				}
			}
		}
	})
	return names
}

var named = regexp.MustCompile(`\bamends_\w+`)

// known fails for a metric in an expression that is not exported.
func known(t *testing.T, where, expr string, names map[string]bool) {
	t.Helper()
	found := named.FindAllString(expr, -1)
	if len(found) == 0 {
		t.Errorf("%s asks for nothing of ours: %s", where, expr)
	}
	for _, name := range found {
		if !names[name] {
			t.Errorf("%s asks for %s, which is not exported: %s", where, name, expr)
		}
	}
}

// Every metric that a rule names is exported, and every rule says which command to run.
func TestRules(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	names := exported(t)
	alerts := strings.Split(string(text), "- alert: ")[1:]
	if len(alerts) < 10 {
		t.Errorf("there are %d rules", len(alerts))
	}
	for _, a := range alerts {
		name, rest, _ := strings.Cut(a, "\n")
		_, expr, ok := strings.Cut(rest, "expr: ")
		expr, _, _ = strings.Cut(expr, "\n")
		if _, runbook, told := strings.Cut(rest, "runbook:"); !ok || !told || !strings.Contains(runbook, `amends `) || !strings.Contains(rest, "severity: ") {
			t.Errorf("%s lacks an expression, a severity or a command to run", name)
		}
		known(t, name, expr, names)
	}
}

// Every metric that the dashboard names is exported; its panels ask the data source that is chosen
// when it is imported, or on the page.
func TestDashboard(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	type source struct{ UID string }
	var d struct {
		Inputs     []struct{ Name string } `json:"__inputs"`
		Templating struct{ List []struct{ Name, Type string } }
		Panels     []struct {
			ID         int
			Title      string
			Datasource source
			Targets    []struct {
				Expr       string
				Datasource source
			}
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Inputs) != 1 || d.Inputs[0].Name != "DS_PROMETHEUS" || len(d.Panels) != 10 {
		t.Errorf("the dashboard has inputs %v and %d panels", d.Inputs, len(d.Panels))
	}
	// Where it is provisioned from a file, Grafana asks for no input: then a variable of the same name is meant.
	if v := d.Templating.List; len(v) != 1 || v[0].Name != "DS_PROMETHEUS" || v[0].Type != "datasource" {
		t.Errorf("the dashboard has the variables %v", v)
	}
	names, ids := exported(t), map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || len(p.Targets) == 0 {
			t.Errorf("panel %d (%s) is there twice, or asks nothing", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			known(t, p.Title, target.Expr, names)
			if p.Datasource.UID != "${DS_PROMETHEUS}" || target.Datasource != p.Datasource {
				t.Errorf("%s asks %v", p.Title, target.Datasource)
			}
		}
	}
}
