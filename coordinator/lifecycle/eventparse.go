package lifecycle

import (
	"fmt"
	"strings"
)

// EventNames lists every event's name in the text form.
var EventNames = []string{"enrol", "seen", "hard_fault", "soft_fault", "reset_wanted", "screened", "expired", "jobs_changed",
	"slurm_drained", "slurm_resumed", "slurm_reason", "slurm_undrained", "effect_ended", "deadline_passed", "silent", "back", "room",
	"order_drain", "order_resume", "order_cancel", "order_hold", "order_unhold", "order_rma", "order_repaired", "order_retire", "order_case"}

func (e Enrol) String() string          { return write("enrol", &e) }
func (e Seen) String() string           { return write("seen", &e) }
func (e HardFault) String() string      { return write("hard_fault", &e) }
func (e SoftFault) String() string      { return write("soft_fault", &e) }
func (e ResetWanted) String() string    { return write("reset_wanted", &e) }
func (e Screened) String() string       { return write("screened", &e) }
func (e Expired) String() string        { return write("expired", &e) }
func (e JobsChanged) String() string    { return write("jobs_changed", &e) }
func (e SlurmDrained) String() string   { return write("slurm_drained", &e) }
func (e SlurmResumed) String() string   { return write("slurm_resumed", &e) }
func (e SlurmReason) String() string    { return write("slurm_reason", &e) }
func (e SlurmUndrained) String() string { return write("slurm_undrained", &e) }
func (e EffectEnded) String() string    { return write("effect_ended", &e) }
func (e DeadlinePassed) String() string { return write("deadline_passed", &e) }
func (e Silent) String() string         { return write("silent", &e) }
func (e Back) String() string           { return write("back", &e) }
func (e Room) String() string           { return write("room", &e) }
func (e OrderDrain) String() string     { return write("order_drain", &e) }
func (e OrderResume) String() string    { return write("order_resume", &e) }
func (e OrderCancel) String() string    { return write("order_cancel", &e) }
func (e OrderHold) String() string      { return write("order_hold", &e) }
func (e OrderUnhold) String() string    { return write("order_unhold", &e) }
func (e OrderRMA) String() string       { return write("order_rma", &e) }
func (e OrderRepaired) String() string  { return write("order_repaired", &e) }
func (e OrderRetire) String() string    { return write("order_retire", &e) }
func (e OrderCase) String() string      { return write("order_case", &e) }

type fielder interface{ fields(*codec) }

func write(name string, f fielder) string {
	c := &codec{writing: true}
	f.fields(c)
	if c.out.Len() == 0 {
		return name
	}
	return name + " " + c.out.String()
}

// ParseEvent reads the text form that String writes. The error names the key that is wrong.
func ParseEvent(line string) (Event, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	read, ok := readers[name]
	if !ok {
		return nil, fmt.Errorf("event %q: want one of %s", name, strings.Join(EventNames, " "))
	}
	ps, err := pairs(rest)
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", name, err)
	}
	c := &codec{in: ps}
	ev := read(c)
	c.rest()
	if c.err != nil {
		return nil, fmt.Errorf("event %s: %w", name, c.err)
	}
	return ev, nil
}

func reader[E Event, P interface {
	*E
	fielder
}](c *codec) Event {
	var e E
	P(&e).fields(c)
	return e
}

var readers = map[string]func(*codec) Event{
	"enrol": reader[Enrol], "seen": reader[Seen], "hard_fault": reader[HardFault], "soft_fault": reader[SoftFault],
	"reset_wanted": reader[ResetWanted], "screened": reader[Screened], "expired": reader[Expired], "jobs_changed": reader[JobsChanged],
	"slurm_drained": reader[SlurmDrained], "slurm_resumed": reader[SlurmResumed], "slurm_reason": reader[SlurmReason],
	"slurm_undrained": reader[SlurmUndrained], "effect_ended": reader[EffectEnded], "deadline_passed": reader[DeadlinePassed],
	"silent": reader[Silent], "back": reader[Back], "room": reader[Room], "order_drain": reader[OrderDrain],
	"order_resume": reader[OrderResume], "order_cancel": reader[OrderCancel], "order_hold": reader[OrderHold],
	"order_unhold": reader[OrderUnhold], "order_rma": reader[OrderRMA], "order_repaired": reader[OrderRepaired],
	"order_retire": reader[OrderRetire], "order_case": reader[OrderCase],
}
