package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/rules"
)

// named finds a record of a list.
func named[T any](list []T, name string, of func(T) string) (any, bool) {
	i := slices.IndexFunc(list, func(x T) bool { return of(x) == name })
	if i < 0 {
		return nil, false
	}
	return list[i], true
}

func (a *app) accountCmd() *cobra.Command {
	return a.ruleCmd(ruleKind{
		name: "account", plural: "accounts, their users, and how they stand", example: "physics parent=science share=10 nominal=gpu=256 borrow=gpu=64 users=ann,bob=2",
		find: func(f rules.File, n string) (any, bool) {
			return named(f.Accounts, n, func(x rules.Account) string { return x.Name })
		},
		fresh: func(n string) any { return &rules.Account{Name: n} },
		names: offerAccounts,
		put:   func(f *rules.File, r any) { f.Accounts = append(f.Accounts, r.(rules.Account)) },
		list:  (*app).listAccounts,
	}, "Keep the tree of accounts: shares, quotas, limits, users", a.ruleLoadCmd(), a.ruleDumpCmd(), a.priorityCmd())
}

func (a *app) listAccounts(ctx context.Context, c *client.Client) error {
	as, err := c.Accounts(ctx)
	if err != nil {
		return err
	}
	return a.emit(as, func() error {
		deep := map[string]int{"": 0, "root": 0}
		header := []string{"account", "user", "share", "nominal", "borrow", "lend", "held", "free", "running", "queued", "gpu hours", "fair"}
		var rows [][]string
		for _, x := range as {
			if x.User == "" {
				deep[x.Name] = deep[x.Parent] + 1
			}
			rows = append(rows, accountRow(x, max(deep[x.Name]-1, 0)))
		}
		return a.rows(header, rows)
	})
}

func accountRow(x wire.Account, depth int) []string {
	s := x.Standing
	fair := "-"
	if s.Fair > 0 || x.User != "" {
		fair = strconv.FormatFloat(s.Fair, 'f', 3, 64)
	}
	return []string{strings.Repeat("  ", depth) + clean(x.Name), dash(clean(x.User)), x.Share.String(), dash(clean(string(x.Nominal))), dash(clean(string(x.Borrow))),
		dash(clean(string(x.Lend))), dash(amounts(s.Held)), dash(amounts(s.Available)), strconv.Itoa(s.Running), strconv.Itoa(s.Queued),
		strconv.FormatFloat(s.Billed/3600, 'f', 1, 64), fair}
}

// amounts writes GPUs and nodes, as gpu=8,node=1.
func amounts(m map[string]int64) string {
	var parts []string
	for _, k := range []string{"gpu", "node"} {
		if n, ok := m[k]; ok {
			parts = append(parts, fmt.Sprintf("%s=%d", k, n))
		}
	}
	return strings.Join(parts, ",")
}

func (a *app) qosCmd() *cobra.Command {
	return a.ruleCmd(ruleKind{
		name: "qos", plural: "QOS", example: "high priority=100 preempts=normal limits.per_user=gpu=64 limits.wall=2-00",
		find: func(f rules.File, n string) (any, bool) {
			return named(f.QOS, n, func(x rules.QOS) string { return x.Name })
		},
		fresh: func(n string) any { return &rules.QOS{Name: n} },
		names: offerQOS,
		put:   func(f *rules.File, r any) { f.QOS = append(f.QOS, r.(rules.QOS)) },
		list: func(a *app, ctx context.Context, c *client.Client) error {
			f, err := c.Rules(ctx, true)
			if err != nil {
				return err
			}
			return a.emit(f.QOS, func() error {
				var rows [][]string
				for _, q := range f.QOS {
					rows = append(rows, []string{clean(q.Name), strconv.Itoa(q.Priority), dash(clean(strings.Join(q.Preempts, ","))), dash(qosFlags(q)), dash(limitsText(q.Limits))})
				}
				return a.rows([]string{"qos", "priority", "goes before", "flags", "limits"}, rows)
			})
		},
	}, "Keep classes of service: priority, limits, who goes before whom")
}

func qosFlags(q rules.QOS) string {
	var out []string
	for _, f := range []struct {
		on   bool
		name string
	}{{q.NoDecay, "no_decay"}, {q.DenyOnLimit, "deny_on_limit"}, {q.NoReserve, "no_reserve"}, {q.OverPartQOS, "over_part_qos"}} {
		if f.on {
			out = append(out, f.name)
		}
	}
	return strings.Join(out, ",")
}

// limitsText writes what limits are set, as per_user=gpu=64 wall=02:00:00.
func limitsText(l rules.Limits) string {
	body, err := json.Marshal(l)
	set := map[string]any{}
	if err != nil || json.Unmarshal(body, &set) != nil {
		return ""
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(set)) {
		parts = append(parts, fmt.Sprintf("%s=%v", k, set[k]))
	}
	return clean(strings.Join(parts, " "))
}

func (a *app) partitionCmd() *cobra.Command {
	return a.ruleCmd(ruleKind{
		name: "partition", plural: "partitions", example: "long nodes='gpu[001-064]' max_time=7-00 default_time=12:00:00 allow_accounts=science",
		find: func(f rules.File, n string) (any, bool) {
			return named(f.Partitions, n, func(x rules.Partition) string { return x.Name })
		},
		fresh: func(n string) any { return &rules.Partition{Name: n} },
		names: offerPartitions,
		put:   func(f *rules.File, r any) { f.Partitions = append(f.Partitions, r.(rules.Partition)) },
		list: func(a *app, ctx context.Context, c *client.Client) error {
			f, err := c.Rules(ctx, true)
			if err != nil {
				return err
			}
			return a.emit(f.Partitions, func() error {
				var rows [][]string
				for _, p := range f.Partitions {
					name, state, nodes := clean(p.Name), p.State, p.Nodes
					if p.Default || len(f.Partitions) == 1 {
						name += "*"
					}
					if state == "" {
						state = "up"
					}
					if nodes == "" {
						nodes = "ALL"
					}
					rows = append(rows, []string{name, state, clean(nodes), strconv.Itoa(max(p.Tier, 1)), timeText(p.MaxTime), timeText(p.DefaultTime), dash(positive(int64(p.MaxNodes))),
						dash(clean(p.QOS)), dash(clean(strings.Join(p.AllowAccts, ",")))})
				}
				return a.rows([]string{"partition", "state", "nodes", "tier", "max time", "default time", "max nodes", "qos", "accounts"}, rows)
			})
		},
	}, "Keep parts of the fleet with rules of their own")
}

func timeText(t rules.Time) string {
	if t == 0 {
		return "-"
	}
	return t.String()
}

func (a *app) reservationCmd() *cobra.Command {
	return a.ruleCmd(ruleKind{
		name: "reservation", plural: "reservations and maintenance windows", example: "course nodes='gpu[001-004]' start=2026-12-24T08:00 duration=4h repeat=weekly accounts=teaching",
		find: func(f rules.File, n string) (any, bool) {
			return named(f.Reservations, n, func(x rules.Reservation) string { return x.Name })
		},
		fresh: func(n string) any { return &rules.Reservation{Name: n} },
		names: offerReservations,
		put:   func(f *rules.File, r any) { f.Reservations = append(f.Reservations, r.(rules.Reservation)) },
		list: func(a *app, ctx context.Context, c *client.Client) error {
			f, err := c.Rules(ctx, true)
			if err != nil {
				return err
			}
			return a.emit(f.Reservations, func() error {
				if len(f.Reservations) == 0 {
					fmt.Fprintln(a.err, "no reservations")
					return nil
				}
				var rows [][]string
				for _, r := range f.Reservations {
					nodes, who := r.Nodes, strings.Join(append(slices.Clone(r.Users), r.Accounts...), ",")
					if nodes == "" {
						nodes = "ALL"
					}
					if r.Maint {
						who = "maintenance"
					}
					rows = append(rows, []string{clean(r.Name), clean(nodes), r.Start.Local().Format(time.RFC3339), r.Duration.String(), dash(r.Repeat), clean(who), dash(clean(r.Reason))})
				}
				return a.rows([]string{"reservation", "nodes", "start", "duration", "repeat", "for", "reason"}, rows)
			})
		},
	}, "Keep nodes for some, or from all, for a time")
}
