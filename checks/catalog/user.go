package catalog

import (
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/user"
)

func userChecks() []Check {
	return []Check{
		{
			ID: user.ID, Title: "what the site's own executables find", Unit: "as the executable says",
			Doc: `Runs the executables that policy names under user_checks, each in a process group of its own with a deadline and
bounds on output and memory, as the user that policy says, and takes what they find for findings of check user/NAME. They
speak JSON (a finding a line), the exit statuses of Nagios plugins, or any exit status but 0 for a fault. One that cannot be
run, is too slow, prints too much or prints junk leaves its verdict open. Mode, action and share are set for each under its
id, or for all under user.`,
			Source:  "policy user_checks; monitoring-plugins.org for the exit statuses; mej/nhc by `assay-agent check import nhc`",
			Applies: "nodes for which policy names such executables",
			Action:  "drain, or what the executable says; never hard",
			Cost:    "1 process a check every 5m, or as policy says",
			Thresholds: []Threshold{
				{"user_checks", func(p policy.Policy) any { return p.UserChecks }},
			},
			Revision: 1,
			Neighbours: Neighbours{
				NHC:        "is nothing else: shell functions of its own and of the site, the first that fails drains",
				Gpud:       "plugins: a script's output matched by rules, healthy or not",
				NVSentinel: "none; events of others by its own interface",
				DCGM:       "none; plugins of the diagnostic are NVIDIA's",
			},
		},
	}
}

// JudgeUser judges one run of a user check, unless policy turns it off.
func JudgeUser(name string, o user.Outcome, known checks.Inventory, p policy.Policy) []checks.Finding {
	return aside(user.CheckID(name), user.Judge(known.Node, name, p.UserChecks[name], o), known, p)
}
