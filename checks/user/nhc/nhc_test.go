package nhc

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/policy/policyfile"
)

// Each case is a configuration, in the case itself or by file:
//
//	import [file=NAME] [nodes=A,B,…] [without=CHECK,…]    the fragment
//	match [MASK]                                          which of the hosts below it names
func TestImport(t *testing.T) {
	datadriven.Walk(t, "testdata/import", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "import":
				return fragment(t, d)
			case "match":
				mask, hosts, _ := strings.Cut(d.Input, "\n")
				m := parseMask(mask)
				if m.Fault != "" {
					return m.Fault + "\n"
				}
				var out []string
				for _, h := range strings.Fields(hosts) {
					if m.Match(h) {
						out = append(out, h)
					}
				}
				return strings.Join(out, " ") + "\n"
			}
			t.Fatalf("%s: %s?", d.Pos, d.Cmd)
			return ""
		})
	})
}

func fragment(t *testing.T, d *datadriven.TestData) string {
	text, name := d.Input, "nhc.conf"
	o := options()
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "file":
			name = a.Vals[0]
			b, err := os.ReadFile("testdata/" + name)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		case "nodes":
			o.Hosts = a.Vals
		case "without":
			lack := a.Vals
			o.Has = func(id string) bool {
				for _, l := range lack {
					if l == id {
						return false
					}
				}
				return true
			}
		default:
			t.Fatalf("%s: %s?", d.Pos, a.Key)
		}
	}
	return Fragment(name, Plan(Parse(text), o))
}

func options() Options {
	return Options{Program: "/usr/sbin/nhc", Has: func(string) bool { return true }, Compress: func(hosts []string) []string { return hosts }}
}

// What needs no check but those of assay's that are always there is a policy as it stands.
func TestTheFragmentIsAPolicy(t *testing.T) {
	b, err := os.ReadFile("testdata/01-nhc-dgx.conf")
	if err != nil {
		t.Fatal(err)
	}
	o := options()
	o.Has = func(string) bool { return false }
	for i := range 20 {
		o.Hosts = append(o.Hosts, fmt.Sprintf("gnode%02d", i))
	}
	p, err := policyfile.Load("fragment.yaml", []byte(Fragment("x", Plan(Parse(string(b)), o))))
	if err != nil {
		t.Fatal(err)
	}
	ids := p.UserIDs()
	if want := "user/nhc-fs_mount_rw-7 user/nhc-fs_used-10 user/nhc-hw_cpuinfo-3 user/nhc-hw_eth-6 user/nhc-hw_ib-5 user/nhc-ps_loadavg-11"; strings.Join(ids, " ") != want {
		t.Errorf("got %v, want %s", ids, want)
	}
	here := p.For("gnode03", "")
	if _, ok := here.UserChecks["nhc-hw_cpuinfo-3"]; !ok || len(policy.Validate(here)) > 0 {
		t.Errorf("%v, %v", here.UserChecks, policy.Validate(here))
	}
	if _, ok := p.For("gnode12", "").UserChecks["nhc-hw_cpuinfo-3"]; ok {
		t.Error("a check is on a node that its mask does not name")
	}
}

// Every function of NHC's is built in, or it is said why not; and nothing is said of what NHC does not have.
func TestEveryFunctionIsSpokenOf(t *testing.T) {
	for name := range functions {
		_, own := builtIn[name]
		if _, why := beyond[name]; own == why {
			t.Errorf("%s: built in %t, and why not %t: want one", name, own, why)
		}
	}
	for name := range beyond {
		if !functions[name] {
			t.Errorf("NHC has no %s", name)
		}
	}
}

// Whatever the file holds, the fragment is a policy file or has nothing to set; each line of the file is told of; and a
// comment or an empty line more changes nothing but numbers.
func FuzzImport(f *testing.F) {
	b, err := os.ReadFile("testdata/01-nhc-dgx.conf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	for _, s := range []string{
		"", "* || x", "||", "a", "* ||", "|| x", "{a[1-2]} || check_fs_used / 90%", "!/^a(/ || x", "* || export A=1 B=\"x y\"", "* || 'unclosed", "* || a \\\n b",
		"{n[9-1]} || check_hw_physmem 1g 1g 5%", "[!a] || x", "@(a|b) || x", "%x% || y", "* || check_fs_mount -t x -f /a -f /b", "* || check_fs_size / 1e99e", "* || A=$(reboot)", "* || \x00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := Parse(text)
		o := options()
		o.Has = func(string) bool { return false }
		o.Hosts = []string{"a1", "b2"}
		items := Plan(lines, o)
		if len(items) != len(lines) {
			t.Fatalf("%d lines, %d items", len(lines), len(items))
		}
		for _, it := range items {
			if it.Why == "" && it.Kind != Void || it.Kind == User && it.Set == nil {
				t.Fatalf("%+v", it)
			}
			for _, h := range o.Hosts {
				it.Line.Mask.Match(h)
			}
		}
		out := Fragment("f", items)
		if Count(items)[User] <= 64 && !strings.ContainsAny(text, "\x00") && len(text) < 2000 {
			// The loader refuses more than 200 open brackets, wherever they stand: no file of people's has them.
			open := strings.Count(out, "{") + strings.Count(out, "[")
			if _, err := policyfile.Load("f", []byte(out)); err != nil && !strings.Contains(err.Error(), "overrides[") && open <= 200 {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		more := Parse("# a comment\n\n" + text)
		if len(more) != len(lines) {
			t.Fatalf("%d lines, and %d after a comment", len(lines), len(more))
		}
		for i := range lines {
			if more[i].Number != lines[i].Number+2 || more[i].Text != lines[i].Text || more[i].Check != lines[i].Check {
				t.Fatalf("%+v after a comment is %+v", lines[i], more[i])
			}
		}
	})
}
