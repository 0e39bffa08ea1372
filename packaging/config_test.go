package packaging

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/checks/policy/policyfile"
)

// The sample policy is the built-in one, every value shown: who copies it changes nothing.
func TestSamplePolicyIsTheDefault(t *testing.T) {
	data, err := os.ReadFile("config/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policyfile.Load("policy.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	if want := policy.Default(); !reflect.DeepEqual(policyfile.Print(p), policyfile.Print(want)) {
		t.Errorf("the sample sets\n%s\nthe default is\n%s", policyfile.Print(p), policyfile.Print(want))
	}
	if got, want := keys(data), keys(policyfile.Print(policy.Default())); !reflect.DeepEqual(got, want) {
		t.Errorf("the sample shows\n%v\nthe policy has\n%v", got, want)
	}
}

// The stricter profile that is shipped beside it can be put in force, and sets what it says it sets.
func TestBriefPolicyIsOne(t *testing.T) {
	data, err := os.ReadFile("config/policy-brief.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policyfile.Load("policy-brief.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range policyfile.Diff(policy.Default(), p) {
		got[c.Path] = c.New
	}
	want := map[string]string{
		"inventory.count": "8", "ecc.max_volatile_corrected": "100", "thermal.max_core": "87", "nvlink.max_crc_per_second": "0", "nvlink.max_retries_per_minute": "0",
	}
	for _, gen := range []string{"gen1", "gen2", "gen3", "gen4", "gen5", "gen6"} {
		want["pcie.repeats_per_minute_and_lane."+gen] = "0"
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the profile sets\n%v\nwant\n%v", got, want)
	}
	if p.ECC.WatchCorrectedPerHour != 10 || p.Mode != policy.Observe {
		t.Errorf("%d corrected errors an hour are watched, mode %s", p.ECC.WatchCorrectedPerHour, p.Mode)
	}
}

// keys lists the keys of a YAML file of nested maps in order, with their indentation.
func keys(data []byte) (list []string) {
	for line := range bytes.Lines(data) {
		text := string(line)
		if trimmed := strings.TrimSpace(text); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		key, _, _ := strings.Cut(text, ":")
		list = append(list, key)
	}
	return list
}

// assayd's sample is what it takes without a file: the program itself says so.
func TestSampleAssaydIsTheDefault(t *testing.T) {
	if testing.Short() {
		t.Skip("builds assayd")
	}
	const sample = "config/assayd.yaml"
	binary := build(t, "assayd")
	config := func(args ...string) string {
		cmd := exec.Command(binary, append([]string{"config"}, args...)...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("assayd config %v: %v\n%s", args, err, stderr.String())
		}
		return string(out)
	}
	built := config()
	if got := config("--config", sample); got != built {
		t.Errorf("with %s:\n%s\nwithout:\n%s", sample, got, built)
	}
	shows(t, sample, keys([]byte(built)))
}

var (
	yamlTag = regexp.MustCompile("`yaml:\"([a-z_]+)\"`")
	setting = regexp.MustCompile(`(?m)^([a-z_]+): *(.*?) *(?:#.*)?$`)
)

// The agent's sample shows every setting but those for tests, with the value that its program has built in, and the
// program reads it.
func TestSampleAgentIsTheDefault(t *testing.T) {
	const sample = "config/agent.yaml"
	data, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../cmd/assay-agent/config.go")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range yamlTag.FindAllStringSubmatch(string(source), -1) {
		if m[1] != "sim" && m[1] != "interval" {
			want = append(want, m[1])
		}
	}
	if len(want) < 10 {
		t.Fatalf("found only the settings %v in config.go", want)
	}
	shows(t, sample, want)
	for _, m := range setting.FindAllStringSubmatch(string(data), -1) {
		if m[1] != "metrics_listen" && m[2] != `""` && !strings.Contains(string(source), `"`+m[2]+`"`) {
			t.Errorf("%s: %s is %s, which is not built in", sample, m[1], m[2])
		}
	}
	if testing.Short() {
		return
	}
	// Whatever the hardware here, which is none; a fault in the file would be 64.
	cmd := exec.Command(build(t, "assay-agent"), "check", "--config", sample, "--run-dir", t.TempDir(), "--state-dir", t.TempDir(), "--kmsg", "/dev/null", "--nvml-library", "none.so")
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("assay-agent check --config %s: %v, want exit 2: nothing could be read\n%s", sample, err, out)
	}
}

// shows fails the test for every setting that a sample does not show, if only as a comment.
func shows(t *testing.T, sample string, settings []string) {
	t.Helper()
	data, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings {
		if !strings.HasPrefix(s, " ") && !strings.HasPrefix(s, "-") && !strings.Contains("\n"+string(data), "\n"+s+":") && !strings.Contains(string(data), "\n# "+s+":") {
			t.Errorf("%s does not show %s", sample, s)
		}
	}
}

// build builds a program of the tree for a test.
func build(t *testing.T, program string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), program)
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "../cmd/"+program).CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", program, err, out)
	}
	return binary
}
