package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/agent/atomicfile"
	"github.com/assay-gpu/assay/agent/probe/child"
	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/golden/replay"
	"github.com/assay-gpu/assay/golden/worker"
)

// Bounds on one run of a site's step. Its address space is not bounded: CUDA reserves far more than it uses.
const (
	stepOutput = 4 << 10
	stepFiles  = 4096
	stepWrites = 1 << 30
)

func newGoldenReplay() *cobra.Command {
	c := &cobra.Command{
		Use: "replay", Short: "Hold a step of your own to the digests that it gave before", Args: usageArgs(cobra.NoArgs),
		Long: "A step is any executable that prints a digest for a seed: it is called with the seed as its last argument and prints one line of\n" +
			"8 to 128 hexadecimal digits. Record it on a node that is known to be good; verify it on every other of the same GPU model and\n" +
			"driver. What differs is watched, never a fault by itself.",
		Example: "  assay-agent golden replay record -o step.json --by ops --seed 1,2,3 -- /opt/site/step --layers 4\n  assay-agent golden replay verify step.json",
	}
	c.AddCommand(newReplayRun(), newReplayRecord(), newReplayVerify())
	return c
}

// stepFlags are those of every command that runs a step.
type stepFlags struct {
	timeout      time.Duration
	user         string
	library, sim string
}

func (f *stepFlags) add(c *cobra.Command) {
	c.Flags().DurationVar(&f.timeout, "timeout", 2*time.Minute, "`TIME` that one run may take")
	c.Flags().StringVar(&f.user, "user", "", "run the step as this `USER`")
	c.Flags().StringVar(&f.library, "library", "libcuda.so.1", "CUDA driver `LIBRARY` that says which GPUs there are")
	c.Flags().StringVar(&f.sim, "sim", "", "the GPUs are those of the simulated node in `DIR`")
}

func (f *stepFlags) check() error {
	if f.timeout < 100*time.Millisecond || f.timeout > time.Hour {
		return fmt.Errorf("--timeout %s: want 100ms to 1h", f.timeout)
	}
	return nil
}

// run runs the step once.
func (f *stepFlags) run(ctx context.Context, argv []string, seed string) replay.Run {
	r := replay.Run{Seed: seed}
	if err := child.Trusted(argv[0]); err != nil && os.Geteuid() == 0 && (f.user == "" || f.user == "root") {
		r.Err = fmt.Sprintf("not safe to run as root: %v", err)
		return r
	}
	o := child.Run(ctx, child.Spec{
		Argv: append(slices.Clone(argv), seed), User: f.user, Timeout: f.timeout, Grace: 2 * time.Second, Output: stepOutput,
		Env:    []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=/", "ASSAY_REPLAY_SEED=" + seed},
		Limits: &child.Limits{Files: stepFiles, FileSize: stepWrites}, Helper: selfCommand("probe", "limits"),
	})
	switch {
	case o.Err != "":
		r.Err = "not run: " + o.Err
	case o.Stuck:
		r.Err = "it is still there after SIGKILL"
	case o.TimedOut:
		r.Err = fmt.Sprintf("it did not end within %s", f.timeout)
	case o.Cut:
		r.Err = fmt.Sprintf("it printed more than %d bytes", stepOutput)
	case o.Signal != 0:
		r.Err = "ended by " + o.Signal.String()
	case o.Exit != 0:
		r.Err = fmt.Sprintf("exit status %d", o.Exit)
	default:
		d, err := replay.Digest(string(o.Stdout))
		if err != nil {
			r.Err = err.Error()
		}
		r.Digest = d
	}
	return r
}

// place says what this node's GPUs and driver are. Without a driver there are none.
func (f *stepFlags) place(ctx context.Context, c *cobra.Command) (replay.Place, error) {
	p := replay.Place{Node: defaultNode(), GPUs: []string{}}
	if f.sim != "" {
		var err error
		if f.library, err = placeCUDA(f.sim, c.Flags().Changed("library"), f.library); err != nil {
			return p, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stageTime, fmt.Errorf("the driver did not answer within %s", stageTime))
	defer cancel()
	ds, err := worker.Devices(ctx, selfCommand("probe", "golden", "--library", f.library, "--list"))
	if err != nil {
		fmt.Fprintf(c.ErrOrStderr(), "no GPU is seen: %v\n", err)
		return p, nil
	}
	for _, d := range ds {
		name := d.Name
		if d.Simulated {
			name += " (simulated)"
		}
		if !slices.Contains(p.GPUs, name) {
			p.GPUs = append(p.GPUs, name)
		}
		p.Driver = d.Driver
	}
	slices.Sort(p.GPUs)
	return p, nil
}

func defaultNode() string {
	h, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return h
}

func executableSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func newReplayRun() *cobra.Command {
	var f stepFlags
	var seed uint64
	c := &cobra.Command{
		Use: "run -- STEP [ARG…]", Short: "Run a step once, within its bounds, and print its digest", Args: usageArgs(cobra.MinimumNArgs(1)),
		Example: "  assay-agent golden replay run --seed 7 -- /opt/site/step --layers 4",
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(f.check(), absolute(args)); err != nil {
				return usage(err)
			}
			r := f.run(c.Context(), args, strconv.FormatUint(seed, 10))
			if r.Err != "" {
				return &exitError{exitUnknown, fmt.Errorf("%s, seed %d: %s", args[0], seed, r.Err)}
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), r.Digest)
			return err
		},
	}
	f.add(c)
	c.Flags().Uint64Var(&seed, "seed", 1, "`SEED` to run it with")
	return c
}

func absolute(args []string) error {
	if !filepath.IsAbs(args[0]) {
		return fmt.Errorf("step %q: want an absolute path", args[0])
	}
	return nil
}

func newReplayRecord() *cobra.Command {
	var f stepFlags
	var file, by string
	var seeds []uint
	var times int
	c := &cobra.Command{
		Use: "record -- STEP [ARG…]", Short: "Record what a step gives on this node", Args: usageArgs(cobra.MinimumNArgs(1)),
		Long: "Record runs the step several times with each seed and writes down the digests with where they come from. A step that gives two\n" +
			"digests for one seed is not recorded: exit 1.",
		Example: "  assay-agent golden replay record -o step.json --by ops --seed 1,2,3 -- /opt/site/step --layers 4",
		RunE: func(c *cobra.Command, args []string) error {
			faults := []error{f.check(), absolute(args)}
			if file == "" || by == "" {
				faults = append(faults, errors.New("-o and --by are both needed: where does the record go, and who stands for it?"))
			}
			if times < 2 || times > 1000 || len(seeds) == 0 {
				faults = append(faults, fmt.Errorf("--times %d with %d seeds: want 2 to 1000 runs with each of at least one seed", times, len(seeds)))
			}
			if err := errors.Join(faults...); err != nil {
				return usage(err)
			}
			r := replay.Record{Format: replay.Format, Command: args, By: by, At: time.Now().UTC().Truncate(time.Second), Runs: times, Digests: map[string]string{}}
			var err error
			if r.SHA256, err = executableSum(args[0]); err != nil {
				return usage(err)
			}
			if r.Place, err = f.place(c.Context(), c); err != nil {
				return err
			}
			for _, s := range seeds {
				seed := strconv.FormatUint(uint64(s), 10)
				for range times {
					one := f.run(c.Context(), args, seed)
					switch was := r.Digests[seed]; {
					case one.Err != "":
						return &exitError{exitUnknown, fmt.Errorf("%s, seed %s: %s", args[0], seed, one.Err)}
					case was != "" && was != one.Digest:
						return &exitError{exitFault, fmt.Errorf("%s, seed %s: gave %s and %s: it is not deterministic here, or this GPU is not", args[0], seed, was, one.Digest)}
					}
					r.Digests[seed] = one.Digest
				}
			}
			b, err := json.MarshalIndent(r, "", "  ")
			if err != nil {
				return err
			}
			if err := atomicfile.Write(file, append(b, '\n'), 0o644); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d seeds, %d runs each, all the same\n", file, len(r.Digests), times)
			return err
		},
	}
	f.add(c)
	c.Flags().StringVarP(&file, "output", "o", "", "write the record to `FILE`")
	c.Flags().StringVar(&by, "by", "", "`NAME` of who stands for it")
	c.Flags().UintSliceVar(&seeds, "seed", []uint{1, 2, 3, 4}, "`SEEDS` to record")
	c.Flags().IntVar(&times, "times", 3, "`RUNS` with each seed")
	return c
}

func newReplayVerify() *cobra.Command {
	var f stepFlags
	var asJSON, finding bool
	c := &cobra.Command{
		Use: "verify FILE", Short: "Run a recorded step and compare", Args: usageArgs(cobra.ExactArgs(1)),
		Long: "Verify runs the step once with each recorded seed. Exit status: 0 all digests are the recorded ones, 1 one differs, 2 it could not\n" +
			"be compared: another executable, GPU model or driver, or a step that failed.\n" +
			"With --finding it speaks as a user check of format json, for policy's user_checks: what differs is watched, exit 0.",
		Example: "  assay-agent golden replay verify step.json\n  assay-agent golden replay verify step.json --finding",
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return usage(err)
			}
			b, err := os.ReadFile(args[0])
			if err != nil {
				return usage(err)
			}
			r, err := replay.Parse(b)
			if err != nil {
				return usage(fmt.Errorf("%s: %w", args[0], err))
			}
			out, why, err := f.verify(c, r)
			if err != nil {
				return err
			}
			switch {
			case finding:
				return json.NewEncoder(c.OutOrStdout()).Encode(replayFinding(out, why))
			case asJSON:
				err = json.NewEncoder(c.OutOrStdout()).Encode(map[string]string{"outcome": out.String(), "reason": why})
			default:
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", out, why)
			}
			switch {
			case err != nil || out == replay.Same:
				return err
			case out == replay.Differs:
				return &exitError{code: exitFault}
			}
			return &exitError{code: exitUnknown}
		},
	}
	f.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print the outcome as JSON")
	c.Flags().BoolVar(&finding, "finding", false, "print a finding, as a user check does")
	return c
}

func (f *stepFlags) verify(c *cobra.Command, r replay.Record) (replay.Outcome, string, error) {
	sum, err := executableSum(r.Command[0])
	if err != nil {
		return replay.NotShown, err.Error(), nil
	}
	here, err := f.place(c.Context(), c)
	if err != nil {
		return replay.NotShown, "", err
	}
	// What can never be compared is not run: a step may take minutes of a GPU.
	if out, why := replay.Judge(r, sum, here, recorded(r)); out != replay.Same {
		return out, why, nil
	}
	var runs []replay.Run
	for _, one := range recorded(r) {
		runs = append(runs, f.run(c.Context(), r.Command, one.Seed))
	}
	out, why := replay.Judge(r, sum, here, runs)
	return out, why, nil
}

// recorded gives the record's own runs, by seed.
func recorded(r replay.Record) []replay.Run {
	var runs []replay.Run
	for seed, d := range r.Digests {
		runs = append(runs, replay.Run{Seed: seed, Digest: d})
	}
	slices.SortFunc(runs, func(a, b replay.Run) int {
		x, _ := strconv.ParseUint(a.Seed, 10, 64) // Parse has read them
		y, _ := strconv.ParseUint(b.Seed, 10, 64)
		return cmp.Compare(x, y)
	})
	return runs
}

// replayFinding is the outcome as a user check tells it. Nothing in it can drain a node.
func replayFinding(out replay.Outcome, why string) map[string]string {
	f := map[string]string{"verdict": checks.Unknown.String(), "action": checks.None.String(), "reason": "replay: " + why}
	switch out {
	case replay.Same:
		f["verdict"] = checks.Pass.String()
	case replay.Differs:
		f["action"] = checks.Watch.String()
	}
	return f
}
