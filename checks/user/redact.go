package user

import (
	"encoding/json"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// left stands for text that was left out.
const left = "redacted"

// Redact leaves out every text that an executable wrote by itself, as nobody knows what it names, and keeps what it is judged
// by: its judgement differs in reasons and evidence alone.
func Redact(u policy.UserCheck, o Outcome) Outcome {
	for _, s := range []*string{&o.Err, &o.Stderr} {
		if strings.TrimSpace(*s) != "" {
			*s = left
		}
	}
	if u.FormatOr() != policy.FormatJSON {
		if text, _, _ := strings.Cut(firstLine(o.Stdout), "|"); strings.TrimSpace(text) != "" {
			o.Stdout = left + "\n"
		} else {
			o.Stdout = "" // at most performance data, which nothing is judged by
		}
		return o
	}
	var b strings.Builder
	for line := range strings.Lines(o.Stdout) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(redactRow(line) + "\n")
		}
	}
	o.Stdout = b.String()
	return o
}

// redactRow writes a finding anew, without its texts. A line that is no finding stays none.
func redactRow(line string) string {
	f, err := judge{}.row(line)
	if err != nil {
		return left
	}
	r := row{Verdict: &f.Verdict, Action: &f.Action, Code: f.Code, Count: f.Count, Reason: left}
	if f.Subject != (checks.Subject{Kind: checks.KindNode}) {
		r.Subject = &f.Subject
	}
	if f.Evidence != "" {
		r.Evidence = left
	}
	data, err := json.Marshal(r)
	if err != nil {
		return left
	}
	return string(data)
}
