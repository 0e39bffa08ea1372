package packaging

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert       string
			Expr        string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

type ruleTests struct {
	Tests []struct {
		Name           string
		AlertRuleTests []struct {
			Alertname string `yaml:"alertname"`
			ExpAlerts []any  `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func TestPrometheusRules(t *testing.T) {
	t.Log(run(t, "promtool", "check", "rules", "prometheus/assay.rules.yml"))
	if testing.Short() {
		return // an hour of simulated time for each alert is not for every save
	}
	t.Log(run(t, "promtool", "test", "rules", "prometheus/assay.rules.test.yml"))
}

// An alert that nobody has seen fire is no alert yet, and one that nobody has seen quiet may never be.
func TestEveryAlertIsTestedAndHasARunbook(t *testing.T) {
	var rules ruleFile
	read(t, "prometheus/assay.rules.yml", &rules)
	var tests ruleTests
	read(t, "prometheus/assay.rules.test.yml", &tests)
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, a := range test.AlertRuleTests {
			if len(a.ExpAlerts) > 0 {
				fires[a.Alertname] = true
			} else {
				quiet[a.Alertname] = true
			}
		}
	}
	sections := anchors(t, "docs/runbooks.md")
	seen := map[string]bool{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || seen[r.Alert] {
				t.Errorf("group %s: rule %q has no name of its own", g.Name, r.Alert)
			}
			seen[r.Alert] = true
			if !fires[r.Alert] || !quiet[r.Alert] {
				t.Errorf("%s: tested firing %v, staying quiet %v", r.Alert, fires[r.Alert], quiet[r.Alert])
			}
			switch r.Labels["severity"] {
			case "page", "warn", "info":
			default:
				t.Errorf("%s: severity %q", r.Alert, r.Labels["severity"])
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s: needs summary and description", r.Alert)
			}
			url, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "#")
			if !strings.HasSuffix(url, "/packaging/docs/runbooks.md") || !sections[anchor] {
				t.Errorf("%s: no section of runbooks.md at %q", r.Alert, r.Annotations["runbook_url"])
			}
		}
	}
	if len(seen) == 0 {
		t.Error("no alerts")
	}
	for anchor := range sections {
		if strings.HasPrefix(anchor, "assay") && !seenFold(seen, anchor) {
			t.Errorf("runbooks.md has a section %q for an alert that does not exist", anchor)
		}
	}
}

func seenFold(seen map[string]bool, anchor string) bool {
	for name := range seen {
		if strings.EqualFold(name, anchor) {
			return true
		}
	}
	return false
}

// Every metric a rule reads is one that a program registers.
func TestRulesReadMetricsThatExist(t *testing.T) {
	var rules ruleFile
	read(t, "prometheus/assay.rules.yml", &rules)
	var code strings.Builder
	for _, s := range sources(t) {
		if !s.test && (under(s.dir, "agent/metrics") || under(s.dir, "coordinator/api")) {
			data, err := os.ReadFile("../" + s.file)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(data)
		}
	}
	metric := regexp.MustCompile(`assay_[a-z_]+`)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			for _, m := range metric.FindAllString(r.Expr, -1) {
				base := strings.TrimSuffix(strings.TrimSuffix(m, "_sum"), "_count")
				// The agent's are made with their prefix left out.
				if !strings.Contains(code.String(), `"`+base+`"`) && !strings.Contains(code.String(), `"`+strings.TrimPrefix(base, "assay_")+`"`) {
					t.Errorf("%s reads %s, which no program registers", r.Alert, base)
				}
			}
		}
	}
}
