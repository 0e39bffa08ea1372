package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/agent/sim"
	"github.com/assay-gpu/assay/agent/sim/dcgmlib"
	"github.com/assay-gpu/assay/agent/sim/nvmllib"
	"github.com/assay-gpu/assay/checks/strictyaml"
	"github.com/assay-gpu/assay/golden/fakecuda"
)

func newSim() *cobra.Command {
	c := &cobra.Command{
		Use: "sim", Short: "Simulated hardware, for tests and demonstrations", Args: usageArgs(cobra.NoArgs),
		Long: "Sim makes and changes the hardware of a simulated node, which `assay-agent run --sim DIR` reads in place of this machine.",
		Example: "  assay-agent sim init --dir /tmp/gpu001 --node gpu001 --scenario fleet.yaml\n" +
			"  assay-agent sim set --dir /tmp/gpu001 --gpu 3 remap_failed=true\n  assay-agent sim xid --dir /tmp/gpu001 --gpu 3 79",
	}
	var dir string
	c.PersistentFlags().StringVar(&dir, "dir", os.Getenv(sim.EnvDir), "the simulated node's `DIR` (default $"+sim.EnvDir+")")
	c.AddCommand(simInit(&dir), simSet(&dir), simHost(&dir), simXID(&dir), simKmsg(&dir), simFallOffBus(&dir), simReset(&dir), simReboot(&dir), simRun(&dir), simShow(&dir), simCalls(&dir), simLibrary(), simCUDA(&dir))
	return c
}

// simDo makes a command of a function on a node's directory. What is wrong there is the caller's input.
func simDo(dir *string, use, short string, args cobra.PositionalArgs, do func(c *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: usageArgs(args),
		RunE: func(c *cobra.Command, args []string) error {
			if *dir == "" {
				return usage(errors.New("no --dir: which simulated node?"))
			}
			return usage(do(c, args))
		},
	}
}

func simInit(dir *string) *cobra.Command {
	var node, scenario, library string
	c := simDo(dir, "init", "Make a simulated node, freshly booted", cobra.NoArgs, func(*cobra.Command, []string) error {
		sc, err := sim.ParseScenario("", nil)
		if scenario != "" {
			sc, err = sim.LoadScenario(scenario)
		}
		if err != nil {
			return err
		}
		if library == "" {
			if library, err = simLibraryPath(*dir); err != nil {
				return err
			}
		}
		return sim.Init(*dir, sc, node, library)
	})
	c.Flags().StringVar(&node, "node", "gpu001", "the node's `NAME`")
	c.Flags().StringVar(&scenario, "scenario", "", "scenario `FILE` (default: eight healthy GPUs)")
	c.Flags().StringVar(&library, "library", "", "the simulated NVML `LIBRARY` (default: that beside this program, else built anew)")
	return c
}

// simLibraryPath finds the simulated library that came with this program, or builds one beside the node's directory.
func simLibraryPath(dir string) (string, error) {
	if exe, err := os.Executable(); err == nil {
		p := filepath.Join(filepath.Dir(exe), "sim", "libnvidia-ml.so.1")
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	p := filepath.Join(dir, "libnvidia-ml.sim.so")
	return p, nvmllib.Build(p)
}

func simLibrary() *cobra.Command {
	var cuda, dcgm bool
	c := &cobra.Command{
		Use: "library FILE", Short: "Build the simulated NVML library, the CUDA driver or DCGM", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if cuda {
				return fakecuda.Build(args[0])
			}
			if dcgm {
				return dcgmlib.Build(args[0])
			}
			return nvmllib.Build(args[0])
		},
	}
	c.Flags().BoolVar(&cuda, "cuda", false, "build libcuda.so.1")
	c.Flags().BoolVar(&dcgm, "dcgm", false, "build libdcgm.so.4")
	return c
}

func simSet(dir *string) *cobra.Command {
	var gpu int
	c := simDo(dir, "set NAME=VALUE…", "Change a GPU, or the node", cobra.MinimumNArgs(1), func(_ *cobra.Command, args []string) error {
		changes := map[string]string{}
		var faults []error
		for _, a := range args {
			k, v, ok := strings.Cut(a, "=")
			if !ok {
				faults = append(faults, fmt.Errorf("%q: want NAME=VALUE", a))
			}
			changes[k] = v
		}
		if err := errors.Join(faults...); err != nil {
			return err
		}
		return sim.Set(*dir, gpu, changes)
	})
	c.Flags().IntVar(&gpu, "gpu", -1, "`INDEX` of the GPU; -1 is the node")
	return c
}

func simHost(dir *string) *cobra.Command {
	c := simDo(dir, "host CHANGE", "Change the node itself: its ports, file systems, memory, disks and processes", cobra.ExactArgs(1), func(_ *cobra.Command, args []string) error {
		var change sim.HostChange
		if err := strictyaml.Decode("CHANGE", []byte(args[0]), &change); err != nil {
			return err
		}
		return sim.ChangeHost(*dir, change)
	})
	c.Example = "  assay-agent sim host --dir /tmp/gpu001 'ports: {mlx5_3: {down: true}}'\n" +
		"  assay-agent sim host --dir /tmp/gpu001 '{mounts: {/home: {hang: true}}, stuck: {4242: {name: python, gpu: true}}}'"
	return c
}

func simXID(dir *string) *cobra.Command {
	var gpu int
	var text string
	var eventOnly, logOnly bool
	c := simDo(dir, "xid CODE", "Write the driver's line for an XID to the kernel log, and raise NVML's event", cobra.ExactArgs(1), func(_ *cobra.Command, args []string) error {
		code, err := strconv.Atoi(args[0])
		if err != nil {
			return fmt.Errorf("xid %q: want a number", args[0])
		}
		via := sim.LogAndEvent
		switch {
		case eventOnly && logOnly:
			return errors.New("--event-only and --log-only: want one of them, or none for both")
		case eventOnly:
			via = sim.EventOnly
		case logOnly:
			via = sim.LogOnly
		}
		return sim.XIDBy(*dir, gpu, code, text, via)
	})
	c.Flags().IntVar(&gpu, "gpu", 0, "`INDEX` of the GPU")
	c.Flags().StringVar(&text, "text", "", "the message's `TEXT` (default: the driver's usual words)")
	c.Flags().BoolVar(&eventOnly, "event-only", false, "raise the event and write no line")
	c.Flags().BoolVar(&logOnly, "log-only", false, "write the line and raise no event")
	return c
}

func simKmsg(dir *string) *cobra.Command {
	var o sim.KmsgOptions
	c := simDo(dir, "kmsg TEXT", "Write a line to the kernel log; - reads lines from standard input", cobra.ExactArgs(1), func(c *cobra.Command, args []string) error {
		if args[0] != "-" {
			return sim.Kmsg(*dir, args[0], o)
		}
		data, err := io.ReadAll(c.InOrStdin())
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(data)) {
			if err := sim.Kmsg(*dir, strings.TrimSuffix(line, "\n"), o); err != nil {
				return err
			}
		}
		return nil
	})
	c.Flags().IntVar(&o.Priority, "priority", 3, "syslog `LEVEL`")
	c.Flags().BoolVar(&o.Raw, "raw", false, "write the text as it stands, without a prefix")
	return c
}

func simFallOffBus(dir *string) *cobra.Command {
	var gpu int
	c := simDo(dir, "fall-off-bus", "Lose a GPU, with the driver's lines", cobra.NoArgs, func(*cobra.Command, []string) error { return sim.FallOffBus(*dir, gpu) })
	c.Flags().IntVar(&gpu, "gpu", 0, "`INDEX` of the GPU")
	return c
}

func simReset(dir *string) *cobra.Command {
	var gpu string
	c := simDo(dir, "reset", "Reset a GPU", cobra.NoArgs, func(*cobra.Command, []string) error {
		i, err := simIndex(*dir, gpu)
		if err != nil {
			return err
		}
		return sim.Reset(*dir, i)
	})
	c.Flags().StringVar(&gpu, "gpu", "0", "index or `UUID` of the GPU")
	return c
}

// simIndex is the index of the GPU with that index or UUID.
func simIndex(dir, gpu string) (int, error) {
	if i, err := strconv.Atoi(gpu); err == nil {
		return i, nil
	}
	s, err := sim.Read(dir)
	if err != nil {
		return 0, err
	}
	for _, g := range s.GPUs {
		if g.UUID == gpu {
			return g.Index, nil
		}
	}
	return 0, fmt.Errorf("no GPU %q on the simulated node %s", gpu, s.Node)
}

func simReboot(dir *string) *cobra.Command {
	return simDo(dir, "reboot", "Reboot the node: a new boot id, an empty kernel log", cobra.NoArgs, func(*cobra.Command, []string) error { return sim.Reboot(*dir) })
}

func simRun(dir *string) *cobra.Command {
	return simDo(dir, "run", "Play the scenario's timed events", cobra.NoArgs, func(c *cobra.Command, _ []string) error { return sim.Run(c.Context(), *dir) })
}

func simShow(dir *string) *cobra.Command {
	return simDo(dir, "show", "Print the node's hardware and how often each driver call was made, as JSON", cobra.NoArgs, func(c *cobra.Command, _ []string) error {
		s, err := sim.Read(*dir)
		if err != nil {
			return err
		}
		enc := json.NewEncoder(c.OutOrStdout())
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			sim.State
			Calls map[string]int `json:"calls"`
		}{s, sim.Calls(*dir)})
	})
}
