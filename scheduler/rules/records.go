package rules

import (
	"fmt"
	"strings"
	"time"
)

// An Account is one vertex of the tree of accounts. Who is charged to it, and all below it, share what it may have.
type Account struct {
	Name        string `json:"name" yaml:"name"`
	Parent      string `json:"parent,omitempty" yaml:"parent"` // empty: root
	Description string `json:"description,omitempty" yaml:"description"`
	Share       Share  `json:"share,omitzero" yaml:"share"` // of its siblings' sum, for fair share
	// What it owns of the fleet: nominal, what it may borrow above that, and what of it others may borrow. Without nominal it
	// draws on its parent's; without the others there is no limit.
	Nominal  Amounts  `json:"nominal,omitempty" yaml:"nominal"`
	Borrow   Amounts  `json:"borrow,omitempty" yaml:"borrow"`
	Lend     Amounts  `json:"lend,omitempty" yaml:"lend"`
	Priority int      `json:"priority,omitempty" yaml:"priority"` // for the association factor
	Users    []User   `json:"users,omitempty" yaml:"users"`       // who may use it; none named: everybody
	QOS      []string `json:"qos,omitempty" yaml:"qos"`           // that its jobs may have, its own or the first above it that says; none: any
	Default  bool     `json:"default,omitempty" yaml:"default"`   // of those who name no account and are named in none, or in several
	Limits   Limits   `json:"limits,omitzero" yaml:"limits"`
}

// A User is one who may use an account: his name, and after = his share of it, as ann or bob=3.
type User struct {
	Name  string
	Share Share
}

// UnmarshalText reads a user.
func (u *User) UnmarshalText(b []byte) error {
	name, share, given := strings.Cut(string(b), "=")
	*u = User{Name: name}
	if given {
		if err := u.Share.UnmarshalText([]byte(share)); err != nil {
			return err
		}
	}
	if name == "" || strings.ContainsAny(name, "/\x00\n ") {
		return fmt.Errorf("user %q: want a login name, and after = a share", b)
	}
	return nil
}

// MarshalText writes a user.
func (u User) MarshalText() ([]byte, error) {
	if u.Share == 0 {
		return []byte(u.Name), nil
	}
	return []byte(u.Name + "=" + u.Share.String()), nil
}

// A QOS is a class of service.
type QOS struct {
	Name        string   `json:"name" yaml:"name"`
	Description string   `json:"description,omitempty" yaml:"description"`
	Priority    int      `json:"priority,omitempty" yaml:"priority"`
	UsageFactor *float64 `json:"usage_factor,omitempty" yaml:"usage_factor"` // what its jobs use counts so many times; left out: once
	Preempts    []string `json:"preempts,omitempty" yaml:"preempts"`         // QOS whose jobs go after its own
	Grace       Time     `json:"grace,omitzero" yaml:"grace"`                // that its jobs have when they are pushed out
	Exempt      Time     `json:"exempt,omitzero" yaml:"exempt"`              // for so long its jobs are not pushed out
	NoDecay     bool     `json:"no_decay,omitempty" yaml:"no_decay"`
	DenyOnLimit bool     `json:"deny_on_limit,omitempty" yaml:"deny_on_limit"`
	NoReserve   bool     `json:"no_reserve,omitempty" yaml:"no_reserve"`
	OverPartQOS bool     `json:"over_part_qos,omitempty" yaml:"over_part_qos"`
	Limits      Limits   `json:"limits,omitzero" yaml:"limits"`
}

// A Partition is a part of the fleet with rules of its own. Partitions may overlap.
type Partition struct {
	Name        string   `json:"name" yaml:"name"`
	Nodes       string   `json:"nodes,omitempty" yaml:"nodes"` // hostlist; empty or ALL: every node
	Default     bool     `json:"default,omitempty" yaml:"default"`
	State       string   `json:"state,omitempty" yaml:"state"`              // up (also empty), down, drain, inactive
	Tier        int      `json:"tier,omitempty" yaml:"tier"`                // PriorityTier
	JobFactor   int      `json:"job_factor,omitempty" yaml:"job_factor"`    // PriorityJobFactor
	MaxTime     Time     `json:"max_time,omitzero" yaml:"max_time"`         // left out: no limit
	DefaultTime Time     `json:"default_time,omitzero" yaml:"default_time"` // left out: max_time
	MinNodes    int      `json:"min_nodes,omitempty" yaml:"min_nodes"`
	MaxNodes    int      `json:"max_nodes,omitempty" yaml:"max_nodes"` // left out: no limit
	QOS         string   `json:"qos,omitempty" yaml:"qos"`             // whose limits hold first for all its jobs
	AllowQOS    []string `json:"allow_qos,omitempty" yaml:"allow_qos"`
	AllowAccts  []string `json:"allow_accounts,omitempty" yaml:"allow_accounts"` // and all accounts below them
	DenyAccts   []string `json:"deny_accounts,omitempty" yaml:"deny_accounts"`   // and all accounts below them
	Billing     Weights  `json:"billing,omitempty" yaml:"billing"`               // TRESBillingWeights, as gpu=1,cpu=0.1; left out: gpu=1
	BillingMode string   `json:"billing_mode,omitempty" yaml:"billing_mode"`     // sum (also empty), max, max_gres
}

// A Reservation keeps nodes for some, or from all, for a time.
type Reservation struct {
	Name     string    `json:"name" yaml:"name"`
	Nodes    string    `json:"nodes,omitempty" yaml:"nodes"` // hostlist; empty or ALL: every node
	Start    time.Time `json:"start" yaml:"start"`
	Duration Time      `json:"duration" yaml:"duration"`
	Repeat   string    `json:"repeat,omitempty" yaml:"repeat"` // daily, weekly; empty: once
	Users    []string  `json:"users,omitempty" yaml:"users"`   // whose jobs may run in it
	Accounts []string  `json:"accounts,omitempty" yaml:"accounts"`
	Maint    bool      `json:"maint,omitempty" yaml:"maint"` // for maintenance: nobody's jobs run
	Reason   string    `json:"reason,omitempty" yaml:"reason"`
}

// A Priority is how a job's place in the queue is worked out, and its start planned: Slurm's PriorityWeight… and bf_… and what
// goes with them.
type Priority struct {
	Age        *float64 `json:"age,omitempty" yaml:"age"`
	FairShare  *float64 `json:"fair_share,omitempty" yaml:"fair_share"`
	JobSize    *float64 `json:"job_size,omitempty" yaml:"job_size"`
	Partition  *float64 `json:"partition,omitempty" yaml:"partition"`
	QOS        *float64 `json:"qos,omitempty" yaml:"qos"`
	Assoc      *float64 `json:"assoc,omitempty" yaml:"assoc"`
	TRES       Weights  `json:"tres,omitempty" yaml:"tres"`          // as gpu=1000
	MaxAge     Time     `json:"max_age,omitzero" yaml:"max_age"`     // until age counts in full; left out: 7 days
	HalfLife   Time     `json:"half_life,omitzero" yaml:"half_life"` // of what was used; left out: 7 days
	Classic    bool     `json:"classic,omitempty" yaml:"classic"`    // classic fair share, not Fair Tree
	Damp       *float64 `json:"damp,omitempty" yaml:"damp"`          // FairShareDampeningFactor of classic
	FavorSmall bool     `json:"favor_small,omitempty" yaml:"favor_small"`
	ByTime     bool     `json:"small_relative_to_time,omitempty" yaml:"small_relative_to_time"`
	AccrueHeld bool     `json:"accrue_always,omitempty" yaml:"accrue_always"`
	Raw        bool     `json:"no_normal_all,omitempty" yaml:"no_normal_all"`
	// Who may pass a job that waits: conservative (also empty) whoever makes no planned start later, easy whoever makes that of
	// the first no later, none nobody.
	Backfill string `json:"backfill,omitempty" yaml:"backfill"`
	Depth    int    `json:"plan_depth,omitempty" yaml:"plan_depth"`     // jobs that get a planned start; left out: 1,000
	Ahead    Time   `json:"plan_ahead,omitzero" yaml:"plan_ahead"`      // how far plans look; left out: 7 days
	Renewed  bool   `json:"plan_renewed,omitempty" yaml:"plan_renewed"` // plan as if certificates were renewed in time
}
