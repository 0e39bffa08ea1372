package agent

import (
	"maps"
	"regexp"

	"github.com/assay-gpu/assay/checks/catalog"
	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/user"
)

// Names of parts as DCGM and executables write them, known to the snapshot or not.
var (
	anyUUID    = regexp.MustCompile(`\b(?:GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`)
	anyMAC     = regexp.MustCompile(`\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b`)
	diagSerial = regexp.MustCompile(`("serial(?:_num)?"\s*:\s*")([^"]+)`)
)

// redactBeside leaves out what names parts, machines and users in what was read beside the snapshot. What the snapshot
// names is for the caller to replace.
func redactBeside(b catalog.Beside, p policy.Policy, word func(kind, s string) string) catalog.Beside {
	text := func(s string) string {
		s = anyUUID.ReplaceAllStringFunc(s, func(m string) string { return word("GPU-", m) })
		return addresses.ReplaceAllString(anyMAC.ReplaceAllString(s, "redacted"), "redacted")
	}
	if b.Health != nil {
		h := *b.Health
		h.Health.Err = text(h.Health.Err)
		h.Health.GPUs = append(h.Health.GPUs[:0:0], h.Health.GPUs...)
		for i := range h.Health.GPUs {
			h.Health.GPUs[i].UUID = text(h.Health.GPUs[i].UUID)
		}
		h.Health.Incidents = append(h.Health.Incidents[:0:0], h.Health.Incidents...)
		for i := range h.Health.Incidents {
			h.Health.Incidents[i].Text = text(h.Health.Incidents[i].Text)
		}
		b.Health = &h
	}
	if b.Diag != nil {
		d := *b.Diag
		d.Output = diagSerial.ReplaceAllStringFunc(text(d.Output), func(m string) string {
			part := diagSerial.FindStringSubmatch(m)
			return part[1] + word("serial-", part[2])
		})
		d.Missing, d.Trouble = text(d.Missing), text(d.Trouble)
		b.Diag = &d
	}
	if b.User != nil {
		runs := maps.Clone(b.User)
		for name, r := range runs {
			r.Outcome = user.Redact(p.UserChecks[name], r.Outcome)
			r.Outcome.Stdout = text(r.Outcome.Stdout)
			runs[name] = r
		}
		b.User = runs
	}
	return b
}

// redactPolicy leaves out what a policy tells of the site and no finding is made of: where DCGM is, who stands for golden
// records, what user checks are run with and as whom, and what holds for other nodes.
func redactPolicy(p policy.Policy, word func(kind, s string) string) policy.Policy {
	p.Overrides = nil
	if p.DCGM.Address != policy.Default().DCGM.Address {
		p.DCGM.Address = "redacted"
	}
	p.Golden.Records = append(p.Golden.Records[:0:0], p.Golden.Records...)
	for i := range p.Golden.Records {
		p.Golden.Records[i].By = word("person-", p.Golden.Records[i].By)
	}
	p.UserChecks = maps.Clone(p.UserChecks)
	for name, u := range p.UserChecks {
		if len(u.Command) > 0 {
			u.Command = []string{"/redacted"}
		}
		if u.User != "" {
			u.User = word("user-", u.User)
		}
		u.Env = maps.Clone(u.Env)
		for k := range u.Env {
			u.Env[k] = "redacted"
		}
		p.UserChecks[name] = u
	}
	return p
}
