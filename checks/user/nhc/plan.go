package nhc

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// An Item is what becomes of one line.
type Item struct {
	Line  Line
	Kind  Kind
	Why   string         // in words: what does it, or why nothing can
	Set   map[string]any // the policy values to set, by the policy file's names; nil for none
	Nodes []string       // the hostlists of the nodes that they are for; nil for all
}

// A Kind is what can become of a line.
type Kind string

const (
	BuiltIn Kind = "built in"   // a check of assay's own looks at it
	User    Kind = "user check" // it goes on as an executable, by NHC or a shell
	Void    Kind = "not needed" // it steers NHC itself, or does nothing
	Refused Kind = "refused"    // it cannot be taken over as it stands
)

// Options say what a plan may rest on.
type Options struct {
	Hosts    []string                // the hosts there are, for masks that name them by pattern; none: such lines are refused
	Compress func([]string) []string // writes hosts as hostlists
	Has      func(check string) bool // whether there is a check of that id
	Program  string                  // NHC's own path on the nodes
}

// Plan says what becomes of each line.
func Plan(lines []Line, o Options) []Item {
	p := planner{Options: o}
	var out []Item
	for _, l := range lines {
		it := p.line(l)
		if other, path := contradicts(out, it); path != "" {
			it = p.instead(l, it.Nodes, other, path)
		}
		it.Line = l
		if l.Mask.Note != "" {
			it.Why += "; " + l.Mask.Note
		}
		out = append(out, it)
	}
	return out
}

type planner struct {
	Options
	vars []variables // set by earlier lines, for the checks that NHC itself goes on with
}

type variables struct {
	mask string
	sets []Set
}

func (p *planner) line(l Line) Item {
	if l.Mask.Fault != "" {
		return Item{Kind: Refused, Why: l.Mask.Fault}
	}
	if l.Sets != nil {
		return p.variables(l)
	}
	nodes, why := p.nodes(l.Mask)
	if why != "" {
		return Item{Kind: Refused, Why: why}
	}
	it := p.check(l)
	it.Nodes = nodes
	if nodes != nil && len(nodes) == 0 {
		return Item{Kind: Void, Why: "its mask names none of the hosts there are"}
	}
	return it
}

// nodes gives the hostlists of a mask, nil for every node.
func (p *planner) nodes(m Mask) (lists []string, why string) {
	switch {
	case m.Every():
		return nil, ""
	case m.Names != nil && !m.Not:
		return m.Names, ""
	case len(p.Hosts) == 0:
		return nil, "its mask is a pattern: say with --nodes which hosts there are"
	}
	var in []string
	for _, h := range p.Hosts {
		if m.Match(h) {
			in = append(in, h)
		}
	}
	if len(in) == len(p.Hosts) {
		return nil, ""
	}
	if len(in) == 0 {
		return []string{}, ""
	}
	return p.Compress(in), ""
}

// steering are variables that steer NHC itself, with what stands for them here.
var steering = map[string]string{
	"MARK_OFFLINE": "mode and guard say who drains", "NHC_CHECK_ALL": "every check always runs", "TIMEOUT": "each check has a timeout of its own", "DETACHED_MODE": "nothing waits for a check",
	"DEBUG": "", "VERBOSE": "", "SILENT": "", "LOGFILE": "the agent logs", "NHC_RM": "Slurm is known", "ONLINE_NODE": "resume needs a certificate", "OFFLINE_NODE": "the control plane drains",
	"SLURM_SC_OFFLINE_ARGS": "the control plane drains", "SLURM_SC_ONLINE_ARGS": "resume needs a certificate", "SLURM_SCONTROL": "", "SLURM_SINFO": "", "RESULTFILE": "", "HOSTNAME": "the node's name is the agent's", "NAME": "",
	"NHC_CHECK_FORKED": "each check is a process of its own", "DETACHED_MODE_FAIL_NODATA": "nothing waits for a check", "IGNORE_EMPTY_NOTE": "", "NVIDIA_HEALTHMON": "the GPU checks are built in", "NVIDIA_HEALTHMON_ARGS": "the GPU checks are built in",
}

func (p *planner) variables(l Line) Item {
	var why []string
	var kept []Set
	for _, s := range l.Sets {
		switch text, ok := steering[s.Name]; {
		case ok && text == "":
			why = append(why, s.Name+" steers NHC only")
		case ok:
			why = append(why, s.Name+": "+text)
		default:
			kept = append(kept, s)
			why = append(why, s.Name+" is given to the checks below that NHC goes on with")
		}
	}
	if len(kept) > 0 {
		p.vars = append(p.vars, variables{l.Mask.Text, kept})
	}
	return Item{Kind: Void, Why: strings.Join(why, "; ")}
}

// functions are NHC's own checks. Source: scripts/*.nhc of mej/nhc 1.5.
var functions = words(`check_cmd_output check_cmd_status check_dmi_data_match check_dmi_raw_data_match check_file_contents check_file_stat
check_file_test check_fs_mount check_fs_mount_ro check_fs_mount_rw check_fs_free check_fs_size check_fs_used check_fs_inodes check_fs_ifree check_fs_iused
check_hw_cpuinfo check_hw_eth check_hw_gm check_hw_ib check_hw_mcelog check_hw_mem check_hw_mem_free check_hw_physmem check_hw_physmem_free check_hw_swap
check_hw_swap_free check_moab_sched check_moab_rm check_moab_torque check_net_ping check_net_socket check_nv_healthmon check_nvsmi_healthmon check_ps_blacklist check_ps_cpu
check_ps_daemon check_ps_kswapd check_ps_loadavg check_ps_mem check_ps_physmem check_ps_service check_ps_time check_ps_unauth_users check_ps_userproc_lineage`)

func words(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}

// alike are checks of sites' own that are often seen, and what assay has that may do the same. Source: the NHC templates of
// NVIDIA/deepops.
var alike = map[string]string{
	"check_num_nvme_devices":     "assay's nvme counts the disks: set nvme.count",
	"check_nvidia_smi_healthmon": "assay's GPU checks ask the driver themselves",
}

// check says what becomes of a command.
func (p *planner) check(l Line) Item {
	name, _, _ := strings.Cut(l.Check, " ")
	name = strings.Trim(name, "\t")
	if strings.HasPrefix(name, "check_") && !functions[name] {
		why := fmt.Sprintf("NHC has no %s: unless a script of the site's defines it, NHC fails every node that runs the line; if one does, it can go on as %s", name, p.command(l))
		if own, ok := alike[name]; ok {
			why += "; " + own
		}
		return Item{Kind: Refused, Why: why}
	}
	if b, ok := builtIn[name]; ok && l.Words != nil {
		if it, ok := b(l.Words[1:]); ok && p.Has(it.needs) {
			return Item{Kind: BuiltIn, Why: it.why, Set: it.set}
		}
	}
	why := "a shell command of the site's"
	switch {
	case functions[name]:
		why = "NHC goes on with it: " + beyondOf(name)
	case p.ofNHC(l):
		why = "NHC goes on with it: a shell command with words or variables of NHC's"
	}
	return p.user(l, name, why)
}

// helpers are what a shell knows within NHC only: its functions, and the variables that it fills in itself. Source:
// nhc and scripts/common.nhc, hw.nhc of mej/nhc 1.4.
var helpers = regexp.MustCompile(`(^|[^\w$./-])(die|log|dbg|syslog|mcheck|(mcheck|nhc|nhcmain|check)_\w+)([^\w./-]|$)|\$\{?(HOSTNAME_S|(NHC|HW|MOAB|NVIDIA)_\w+)\b`)

// ofNHC reports whether a shell command means nothing without NHC, or uses what other lines set.
func (p *planner) ofNHC(l Line) bool {
	return helpers.MatchString(l.Check) || slices.ContainsFunc(p.sets(l), func(s Set) bool {
		return regexp.MustCompile(`\$\{?` + regexp.QuoteMeta(s.Name) + `\b`).MatchString(l.Check)
	})
}

// user makes a user check of a line: NHC evaluates what is its own, a shell the rest.
func (p *planner) user(l Line, name, why string) Item {
	command := []string{"/bin/bash", "-c", l.Check}
	if functions[name] || p.ofNHC(l) {
		command = p.command(l)
	}
	u := map[string]any{"command": command, "format": "exit"}
	return Item{Kind: User, Why: why, Set: map[string]any{"user_checks": map[string]any{checkName(name, l.Number): u}}}
}

// command has NHC evaluate one check, with the variables that hold for it.
func (p *planner) command(l Line) []string {
	out := []string{p.Program, "-e", l.Check}
	for _, s := range p.sets(l) {
		out = append(out, s.Name+"="+s.Value)
	}
	return out
}

// sets are the variables that lines before have set for the hosts of a line.
func (p *planner) sets(l Line) (out []Set) {
	for _, v := range p.vars {
		if v.mask == "*" || v.mask == l.Mask.Text {
			out = append(out, v.sets...)
		}
	}
	return out
}

var notInName = regexp.MustCompile(`[^a-z0-9_-]+`)

// checkName names the user check of a line: by what it runs and where it stood.
func checkName(command string, line int) string {
	base := command
	if i := strings.LastIndexByte(base, '/'); i >= 0 {
		base = base[i+1:]
	}
	base = notInName.ReplaceAllString(strings.ToLower(strings.TrimPrefix(base, "check_")), "-")
	base = strings.Trim(base[:min(len(base), 24)], "-")
	if base == "" {
		base = "command"
	}
	return fmt.Sprintf("nhc-%s-%d", base, line)
}

// Count gives how many lines there are of each kind.
func Count(items []Item) map[Kind]int {
	out := map[Kind]int{}
	for _, it := range items {
		out[it.Kind]++
	}
	return out
}

// sortedKeys gives a map's keys, sorted.
func sortedKeys(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
