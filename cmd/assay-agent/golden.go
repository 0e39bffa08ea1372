package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/golden"
	"github.com/assay-gpu/assay/golden/kernels"
	"github.com/assay-gpu/assay/golden/ref"
	"github.com/assay-gpu/assay/golden/worker"
)

func newGolden() *cobra.Command {
	c := &cobra.Command{
		Use: "golden", Short: "Known inputs, known outputs: does each SM compute what it should?", Args: usageArgs(cobra.NoArgs),
		Example: "  assay-agent golden run\n  assay-agent golden run --suite soak --gpu 3 --json >result.jsonl\n  assay-agent golden coverage result.jsonl\n  assay-agent golden verify",
	}
	c.AddCommand(newGoldenList(), newGoldenRun(), newGoldenVerify(), newGoldenCoverage(), newGoldenReport(), newGoldenCampaign(), newGoldenCorpus(), newGoldenVectors(), newGoldenReplay())
	return c
}

func newGoldenList() *cobra.Command {
	var explain bool
	c := &cobra.Command{
		Use: "list", Short: "List the kernels: what each tests, on what, and how far it is trusted", Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if explain {
				return explainKernels(c.OutOrStdout())
			}
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(tw, "KERNEL\tUNIT\tFROM\tGRADE\tDIGEST")
			for _, k := range kernels.All() {
				fmt.Fprintf(tw, "%s\t%s\tsm_%d\t%s\t%s\n", k.ID, k.Unit, k.MinCC, golden.Lab, golden.KernelDigest(k))
			}
			for _, k := range golden.CopyTests() {
				fmt.Fprintf(tw, "%s\t%s\tsm_%d\t%s\t%s\n", k.ID, k.Unit, k.MinCC, golden.Lab, k.Digest())
			}
			return tw.Flush()
		},
	}
	c.Flags().BoolVar(&explain, "explain", false, "say what each does, why it is exact, and what it cannot see")
	return c
}

func explainKernels(w io.Writer) error {
	for _, k := range kernels.All() {
		if _, err := fmt.Fprintf(w, "%s (%s)\n  unit    %s\n  step    %s\n  exact   %s\n  blind   %s\n  target  %s, PTX %s; %d steps a run\n", k.ID, k.Rule, k.Unit, k.Does, k.Exact, k.Blind, k.Target, k.PTX, k.Steps); err != nil {
			return err
		}
	}
	for _, k := range golden.CopyTests() {
		if _, err := fmt.Fprintf(w, "%s (%s)\n  unit    %s\n  copies  %s\n  exact   %s\n  blind   %s\n", k.ID, k.Rule, k.Unit, k.Does, k.Exact, k.Blind); err != nil {
			return err
		}
	}
	return nil
}

// goldenFlags are those of run and of its child.
type goldenFlags struct {
	suite, size, library, sim, sysfs string
	seed                             int
	kernels, first                   []string
	within, lasting                  time.Duration
	own                              corpusFlags
}

func (f *goldenFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.suite, "suite", "prolog", "`SUITE` to run: prolog, epilog, idle, soak or intake")
	c.Flags().StringVar(&f.size, "size", "", "full, or reduced for simulated GPUs (default: full; reduced with --sim)")
	c.Flags().StringVar(&f.library, "library", "libcuda.so.1", "CUDA driver `LIBRARY` to load")
	c.Flags().IntVar(&f.seed, "seed", -1, "first `SEED`, 0 to 63 (default: at random)")
	c.Flags().StringSliceVar(&f.kernels, "kernel", nil, "only these `KERNELS`, or tests of copies, of the suite")
	c.Flags().StringVar(&f.sysfs, "sysfs", "/sys", "where sysfs is mounted, `DIR`")
	c.Flags().StringSliceVar(&f.first, "first", nil, "`KERNELS` of the suite to run first, as those that once caught a device")
	f.own.add(c)
	c.Flags().DurationVar(&f.within, "within", 0, "`TIME` the run may take (default: by suite)")
	c.Flags().DurationVar(&f.lasting, "for", 0, "go round and round the suite for this `TIME`")
}

// options checks the flags, all of them, and makes a child's options of them.
func (f *goldenFlags) options() (worker.Options, error) {
	o := worker.Options{Library: f.library, Seed: f.seed, Within: f.within, For: f.lasting, Sysfs: f.sysfs}
	var faults []error
	note := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	var err error
	o.Suite, err = golden.LookupSuite(f.suite)
	note(err)
	if f.size == "" {
		f.size = "full"
		if f.sim != "" {
			f.size = "reduced"
		}
	}
	o.Size, err = golden.SizeOf(f.size)
	note(err)
	if f.seed < -1 || f.seed >= golden.Seeds {
		note(fmt.Errorf("--seed %d: want 0 to %d", f.seed, golden.Seeds-1))
	}
	if f.seed == -1 {
		o.Seed = rand.IntN(golden.Seeds)
	}
	for _, name := range f.kernels {
		if c, ok := golden.LookupCopy(name); ok {
			o.Kernels = append(o.Kernels, c.ID)
			continue
		}
		k, ok := kernels.Lookup(name)
		if !ok {
			note(fmt.Errorf("--kernel %q: no such kernel; golden list shows all", name))
		}
		o.Kernels = append(o.Kernels, k.ID)
	}
	for _, name := range f.first {
		k, ok := kernels.Lookup(name)
		if !ok {
			note(fmt.Errorf("--first %q: no such kernel; golden list shows all", name))
		}
		o.First = append(o.First, k.ID)
	}
	own, err := f.own.collection()
	note(err)
	if own != nil {
		o.Own = own
	} else if o.Suite.Name == golden.CorpusSuite().Name {
		note(errors.New("--suite corpus runs the programs of --corpora: which?"))
	}
	if f.within < 0 || f.lasting < 0 {
		note(fmt.Errorf("--within %s, --for %s: want times above 0", f.within, f.lasting))
	}
	return o, usage(errors.Join(faults...))
}

// command is a child's command line.
func (f *goldenFlags) command(o worker.Options, more ...string) []string {
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	args := []string{exe, "probe", "golden", "--library", o.Library, "--suite", o.Suite.Name, "--size", o.Size.Name, "--seed", strconv.Itoa(o.Seed), "--sysfs", o.Sysfs}
	if o.Kernels != nil {
		args = append(args, "--kernel", strings.Join(o.Kernels, ","))
	}
	if len(o.First) > 0 {
		args = append(args, "--first", strings.Join(o.First, ","))
	}
	args = append(args, f.own.args()...)
	args = append(args, "--within", o.Within.String(), "--for", o.For.String())
	return append(args, more...)
}

// newGoldenChild is the child's side of run. It is not for people.
func newGoldenChild() *cobra.Command {
	var f goldenFlags
	var list bool
	c := &cobra.Command{
		Use: "golden", Short: "Run golden kernels on the one GPU that this process may see", Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := f.options()
			if err != nil {
				return err
			}
			if list {
				ds, err := worker.List(o.Library)
				if err != nil {
					return err
				}
				return json.NewEncoder(c.OutOrStdout()).Encode(ds)
			}
			return worker.Child(c.Context(), c.OutOrStdout(), o)
		},
	}
	f.add(c)
	c.Flags().BoolVar(&list, "list", false, "list the GPUs instead")
	return c
}

func newGoldenRun() *cobra.Command {
	var f goldenFlags
	var only []string
	var asJSON, simulated bool
	var replay string
	c := &cobra.Command{
		Use: "run", Short: "Run a suite on every SM of every GPU and compare every word", Args: usageArgs(cobra.NoArgs),
		Long: "Run starts one process a GPU, has each golden kernel run on every SM, and compares every word with what the CPU reference says.\n" +
			"A missing library, no GPU, any CUDA error and a timeout leave the GPU unknown: exit 2. A wrong result is exit 1 when its kernel\n" +
			"is of grade prod for the GPU's compute capability, and is watched otherwise.",
		Example: "  assay-agent golden run\n  assay-agent golden run --sim /tmp/gpu001 --seed 7\n  assay-agent golden run --suite soak --for 1h --first k18_mma_f16",
		RunE: func(c *cobra.Command, _ []string) error {
			again, err := f.replay(c, replay)
			if err != nil {
				return usage(err)
			}
			o, err := f.options()
			if err != nil {
				return err
			}
			if f.sim != "" {
				if o.Library, err = placeCUDA(f.sim, c.Flags().Changed("library"), o.Library); err != nil {
					return err
				}
				if !c.Flags().Changed("sysfs") {
					o.Sysfs = sim.In(f.sim).Sysfs
				}
			}
			return goldenRun(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), &f, o, only, again, asJSON, simulatedGrades(simulated))
		},
	}
	f.add(c)
	c.Flags().StringVar(&f.sim, "sim", "", "run on the simulated node in `DIR`")
	c.Flags().StringSliceVar(&only, "gpu", nil, "only these GPUs: `UUIDS` or indices")
	c.Flags().StringVar(&replay, "replay", "", "run what a report names as `REPLAY` again, and say whether it is wrong again")
	c.Flags().BoolVar(&asJSON, "json", false, "print one result a GPU, as JSON lines")
	c.Flags().BoolVar(&simulated, "trust-simulated", false, "let kernels count as of grade prod on simulated GPUs")
	return c
}

// simulatedGrades promotes every kernel on the simulated GPU, and only there.
func simulatedGrades(on bool) golden.Grades {
	var g golden.Grades
	if on {
		for _, cc := range []int{70, 75, 80, 90, 100} {
			g.Records = append(g.Records, golden.Record{Digest: "*", Capability: cc, Simulated: true, By: "--trust-simulated"})
		}
	}
	return g
}

// suiteTime bounds a whole run; stageTime the silence of a child, driver start included.
func suiteTime(s golden.Suite) time.Duration {
	return map[string]time.Duration{"prolog": time.Minute, "epilog": 2 * time.Minute, "idle": time.Minute, "soak": 2 * time.Hour, "intake": 4 * time.Hour, "corpus": 30 * time.Minute}[s.Name]
}

const (
	stageTime = 20 * time.Second
	stopTerm  = time.Second
	stopKill  = 10 * time.Second
	stuckTime = 60 * time.Second
)

func goldenRun(ctx context.Context, stdout, stderr io.Writer, f *goldenFlags, o worker.Options, only []string, again *golden.Replay, asJSON bool, grades golden.Grades) error {
	listing, cancel := context.WithTimeoutCause(ctx, stageTime, fmt.Errorf("the driver did not answer within %s", stageTime))
	defer cancel()
	ds, err := worker.Devices(listing, f.command(o, "--list"))
	if err != nil {
		return &exitError{exitUnknown, err}
	}
	uuids, err := chooseGPUs(ds, only)
	if err != nil {
		return usage(err)
	}
	within := o.Within
	if within == 0 {
		within = suiteTime(o.Suite)
	}
	within = max(within, o.For+o.For/4)
	var others []string
	if o.Links() {
		for _, d := range ds {
			others = append(others, d.UUID)
		}
	}
	p := worker.Parent{Command: f.command(o), Others: others, Stage: min(stageTime, within), Total: within, Term: stopTerm, Kill: stopKill, Killed: stuckTime}
	results, stuck := p.Run(ctx, uuids)
	verdict := golden.Verified
	enc := json.NewEncoder(stdout)
	if err := f.own.keep(stderr, results); err != nil {
		return err
	}
	for _, r := range results {
		grades.Simulated = r.GPU.Simulated
		v := golden.Judge(r, grades)
		if asJSON {
			if err := enc.Encode(r); err != nil {
				return err
			}
		} else if err := printGolden(stdout, r, v); err != nil {
			return err
		}
		verdict = worse(verdict, v)
	}
	if stuck != nil {
		fmt.Fprintf(stderr, "assay-agent: %v\n", stuck)
		return &exitError{code: exitFault}
	}
	if again != nil {
		return sayReplay(stdout, *again, results, asJSON)
	}
	switch {
	case len(results) > 0 && verdict == golden.Verified:
		return nil
	case verdict == golden.Wrong:
		return &exitError{code: exitFault}
	}
	return &exitError{code: exitUnknown}
}

// worse folds verdicts: a wrong result by a kernel that is trusted outranks all; one that is only watched leaves the GPU
// unverified.
func worse(so golden.Outcome, v golden.Verdict) golden.Outcome {
	o := v.Outcome
	if o == golden.Wrong && v.Grade != golden.Prod {
		o = golden.NotTested
	}
	if so == golden.Wrong || o == golden.Wrong {
		return golden.Wrong
	}
	if so == golden.NotTested || o == golden.NotTested {
		return golden.NotTested
	}
	return golden.Verified
}

func chooseGPUs(ds []golden.Device, only []string) ([]string, error) {
	var out []string
	for i, d := range ds {
		if len(only) == 0 || slices.Contains(only, d.UUID) || slices.Contains(only, strconv.Itoa(i)) {
			out = append(out, d.UUID)
		}
	}
	if len(out) < len(only) {
		return nil, fmt.Errorf("--gpu %s: the driver shows %d GPUs, %d of them named", strings.Join(only, ","), len(ds), len(out))
	}
	return out, nil
}

func printGolden(w io.Writer, r golden.Result, v golden.Verdict) error {
	name := r.GPU.UUID
	if r.GPU.Simulated {
		name += " (simulated)"
	}
	line := fmt.Sprintf("%s: %s", name, v.Outcome)
	if v.Outcome == golden.Wrong {
		line += fmt.Sprintf(" (grade %s)", v.Grade)
	}
	if _, err := fmt.Fprintf(w, "%s: %s; %d SMs, %.1f s, %.1f s of CPU\n", line, v.Reason, r.GPU.SMs, r.Seconds, r.CPUSeconds); err != nil {
		return err
	}
	if text := exposureLine(r); text != "" {
		if _, err := fmt.Fprintf(w, "  %s\n", text); err != nil {
			return err
		}
	}
	if text := copyRates(r); text != "" {
		_, err := fmt.Fprintf(w, "  copies, GB/s (worst): %s\n", text)
		return err
	}
	return nil
}

// copyRates are the bandwidths of a run's first seed, in a line.
func copyRates(r golden.Result) string {
	var out []string
	for _, s := range r.Stages {
		if s.Copy == nil || s.Seed != r.Stages[0].Seed {
			continue
		}
		for _, rate := range s.Copy.Rates {
			text := strings.ReplaceAll(rate.Direction, "_", " ")
			if s.Copy.Peer != "" {
				text += " " + s.Copy.Peer
			}
			if rate.Together {
				text += " both ways at once"
			}
			out = append(out, fmt.Sprintf("%s %.1f (%.1f)", text, rate.Median/1e9, rate.Worst/1e9))
		}
	}
	return strings.Join(out, ", ")
}

func newGoldenVerify() *cobra.Command {
	var sizeName string
	c := &cobra.Command{
		Use: "verify", Short: "Compute every embedded golden anew: does this CPU agree?", Args: usageArgs(cobra.NoArgs),
		Long: "Verify computes the goldens that are embedded in this program on this machine's CPU. A golden that differs is a finding\n" +
			"against the CPU, or its memory, and never against a GPU.",
		RunE: func(c *cobra.Command, _ []string) error {
			size, err := golden.SizeOf(sizeName)
			if err != nil {
				return usage(err)
			}
			return verifyGoldens(c.Context(), c.OutOrStdout(), size)
		},
	}
	c.Flags().StringVar(&sizeName, "size", "reduced", "full takes a minute or more of CPU, reduced a second")
	return c
}

func verifyGoldens(ctx context.Context, w io.Writer, size golden.Size) error {
	type job struct {
		k    kernels.Kernel
		seed int
	}
	jobs := make(chan job)
	var mu sync.Mutex
	var wg sync.WaitGroup
	good, bad := 0, 0
	for range runtime.NumCPU() {
		wg.Go(func() {
			for j := range jobs {
				want, err := golden.Known(j.k.ID, size, j.seed)
				got := golden.DigestOf(ref.Block(j.k.ID, uint64(j.seed), size.Threads, size.Steps(j.k)))
				mu.Lock()
				if err == nil && got == want {
					good++
				} else {
					bad++
					fmt.Fprintf(w, "%s seed %d: this CPU computes %s, embedded is %s\n", j.k.ID, j.seed, got, want)
				}
				mu.Unlock()
			}
		})
	}
	for _, k := range kernels.All() {
		for seed := range golden.Seeds {
			if ctx.Err() != nil {
				break
			}
			jobs <- job{k, seed}
		}
	}
	close(jobs)
	wg.Wait()
	if ctx.Err() != nil {
		return &exitError{exitUnknown, fmt.Errorf("stopped after %d goldens", good+bad)}
	}
	if _, err := fmt.Fprintf(w, "%d goldens of size %s agree, %d differ\n", good, size.Name, bad); err != nil {
		return err
	}
	if bad > 0 {
		return &exitError{code: exitFault}
	}
	return nil
}
