package lifecycle

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/checks"
)

func (a *At) fields(c *codec) { c.time("at", &a.Time) }

func (e *Enrol) fields(c *codec) {
	e.At.fields(c)
	c.flag("adopt", &e.Adopt, false)
	c.text("leaf", &e.Leaf)
	c.text("by", &e.By)
}

func (e *Seen) fields(c *codec) {
	e.At.fields(c)
	inventoryFields(&e.Inventory, c)
}

func (e *HardFault) fields(c *codec) {
	e.At.fields(c)
	findingFields(&e.Finding, c, checks.Finding{Verdict: checks.Fail, Hard: true})
	jobFields(&e.Job, c)
	c.flag("own_gpu", &e.OwnGPU, false)
}

func (e *SoftFault) fields(c *codec) {
	e.At.fields(c)
	findingFields(&e.Finding, c, checks.Finding{Verdict: checks.Fail})
	jobFields(&e.Job, c)
}

func (e *ResetWanted) fields(c *codec) {
	e.At.fields(c)
	findingFields(&e.Finding, c, checks.Finding{Verdict: checks.Pass, Action: checks.ResetGPU})
}

func (e *Screened) fields(c *codec) {
	e.At.fields(c)
	c.text("screen", &e.Screen)
	c.text("why", (*string)(&e.Why))
	enum(c, "level", &e.Level, checks.NoLevel)
	enum(c, "verdict", &e.Verdict, checks.Unknown)
	c.texts("tested", &e.Tested)
	c.texts("not_tested", &e.NotTested)
	c.text("suite", &e.Suite)
	c.number("stale", &e.Stale)
	inventoryFields(&e.Inventory, c)
	groups(c, "finding", &e.Findings, func(f *checks.Finding, in *codec) {
		findingFields(f, in, checks.Finding{Verdict: checks.Fail})
	})
}

func (e *JobsChanged) fields(c *codec) {
	e.At.fields(c)
	groups(c, "job", &e.Jobs, func(j *JobRef, in *codec) {
		in.text("id", &j.ID)
		in.number("nodes", &j.Nodes)
		in.number("restarts", &j.Restarts)
	})
}

func (e *SlurmDrained) fields(c *codec) {
	e.At.fields(c)
	c.text("user", &e.User)
	c.text("reason", &e.Reason)
	c.flag("by_slurm", &e.BySlurm, false)
}

func (e *SlurmResumed) fields(c *codec) {
	e.At.fields(c)
	c.text("user", &e.User)
}

func (e *SlurmReason) fields(c *codec) {
	e.At.fields(c)
	c.text("user", &e.User)
	c.text("reason", &e.Reason)
	c.flag("by_slurm", &e.BySlurm, false)
}

func (e *SlurmUndrained) fields(c *codec) {
	e.At.fields(c)
	c.text("user", &e.User)
}

func (e *EffectEnded) fields(c *codec) {
	e.At.fields(c)
	c.text("id", &e.ID)
	c.text("kind", &e.Kind)
	c.text("outcome", &e.Outcome)
	c.text("detail", &e.Detail)
}

func (e *OrderDrain) fields(c *codec)  { order(&e.At, &e.By, &e.Reason, c) }
func (e *OrderCancel) fields(c *codec) { order(&e.At, &e.By, &e.Reason, c) }
func (e *OrderRMA) fields(c *codec)    { order(&e.At, &e.By, &e.Reason, c) }
func (e *OrderRetire) fields(c *codec) { order(&e.At, &e.By, &e.Reason, c) }

func (e *OrderResume) fields(c *codec) {
	order(&e.At, &e.By, &e.Reason, c)
	c.text("accept_risk", &e.AcceptRisk)
}

func (e *OrderHold) fields(c *codec) {
	order(&e.At, &e.By, &e.Reason, c)
	c.time("until", &e.Until)
}

func (e *OrderUnhold) fields(c *codec) {
	e.At.fields(c)
	c.text("by", &e.By)
	c.text("owner", &e.Owner)
}

func (e *OrderRepaired) fields(c *codec) {
	e.At.fields(c)
	c.text("by", &e.By)
	c.text("outcome", &e.Outcome)
}

func order(at *At, by, reason *string, c *codec) {
	at.fields(c)
	c.text("by", by)
	c.text("reason", reason)
}

func (e *OrderCase) fields(c *codec) {
	order(&e.At, &e.By, &e.Reason, c)
	c.text("case", &e.Case)
	c.text("verb", &e.Verb)
	c.time("until", &e.Until)
}

// findingFields carries a finding; what implied says is left out.
func findingFields(f *checks.Finding, c *codec, implied checks.Finding) {
	c.text("check", &f.Check)
	c.number("code", &f.Code)
	subjectFields(&f.Subject, c)
	enum(c, "verdict", &f.Verdict, implied.Verdict)
	enum(c, "action", &f.Action, implied.Action)
	c.flag("hard", &f.Hard, implied.Hard)
	c.text("reason", &f.Reason)
	c.number("count", &f.Count)
	c.text("incident", &f.Incident)
	c.flag("secondary", &f.Secondary, false)
	c.time("found", &f.At)
	c.text("boot", &f.BootID)
	c.text("evidence", &f.Evidence)
}

func subjectFields(s *checks.Subject, c *codec) {
	c.text("kind", (*string)(&s.Kind))
	c.text("node", &s.Node)
	c.optional("gpu", &s.GPUIndex)
	c.text("uuid", &s.GPUUUID)
	c.text("pci", &s.PCI)
	c.text("mig", &s.MIG)
	c.optional("link", &s.Link)
	c.text("port", &s.Port)
	c.optional("sm", &s.SM)
}

func inventoryFields(v *checks.Inventory, c *codec) {
	c.text("node", &v.Node)
	c.text("boot", &v.BootID)
	c.text("host_serial", &v.NodeSerial)
	c.text("driver", &v.Driver)
	groups(c, "gpu", &v.GPUs, func(g *checks.GPU, in *codec) {
		in.text("node", &g.Node)
		in.number("index", &g.Index)
		in.text("uuid", &g.UUID)
		in.text("pci", &g.PCI)
		in.text("name", &g.Name)
		in.text("serial", &g.Serial)
	})
}

func jobFields(j **checks.Job, c *codec) {
	fields := func(in *codec) {
		in.text("id", &(*j).ID)
		in.number("restarts", &(*j).Restarts)
		in.text("user", &(*j).User)
		in.number("nodes", &(*j).Nodes)
		indices(&(*j).GPUs, in)
	}
	if c.writing {
		if *j != nil {
			c.group("job", fields)
		}
		return
	}
	v := &checks.Job{}
	*j = v
	if !c.group("job", fields) {
		*j = nil
	}
}

// indices carries a job's GPU indices, as gpus=0,1. An empty list and no list are different: gpus="" and nothing.
func indices(vs *[]int, c *codec) {
	if c.writing {
		if *vs != nil {
			ss := make([]string, len(*vs))
			for i, v := range *vs {
				ss[i] = strconv.Itoa(v)
			}
			c.put("gpus", word(strings.Join(ss, ",")))
		}
		return
	}
	s, ok := c.take("gpus", false)
	if !ok {
		return
	}
	*vs = []int{}
	for f := range strings.SplitSeq(s, ",") {
		if s == "" {
			return
		}
		n, err := strconv.Atoi(f)
		if err != nil {
			c.fail("gpus", fmt.Errorf("%q: want indices, as 0,1", s))
			return
		}
		*vs = append(*vs, n)
	}
}
