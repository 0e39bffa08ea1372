package sim

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Node is the state the scenario gives one node at its start, without boot id and time.
func (sc Scenario) Node(node string) (State, error) {
	if sc.names != nil && !sc.names[node] {
		return State{}, fmt.Errorf("node %s is not among the scenario's nodes: %s", node, sc.Nodes)
	}
	s := State{Node: node, Model: sc.Model, Driver: sc.Driver, NodeSerial: hostSerial(node), Host: newHost()}
	count, changes := sc.Count, []map[int]GPUChange{sc.GPUs}
	merge(&s, sc.NodeChange)
	if err := s.Host.change(sc.Host); err != nil {
		return s, fmt.Errorf("scenario's host: %w", err)
	}
	for _, o := range sc.Overrides {
		if !o.names[node] {
			continue
		}
		if o.Model != "" {
			s.Model = o.Model
		}
		if o.Count != 0 {
			count = o.Count
		}
		merge(&s, o.NodeChange)
		if err := s.Host.change(o.Host); err != nil {
			return s, fmt.Errorf("scenario's override of %s: host: %w", o.Nodes, err)
		}
		changes = append(changes, o.GPUs)
	}
	for i := range count {
		g := GPU{Index: i, PCI: address(i), Name: models[s.Model].name, ECCEnabled: true, ECCPending: true, Parts: models[s.Model].healthy()}
		g.UUID, g.Serial = identity(node, i)
		if models[s.Model].gddr {
			g.NotSupported = []string{"nvmlDeviceGetRemappedRows", "nvmlDeviceGetRowRemapperHistogram", "nvmlDeviceGetMigMode"}
		}
		for _, c := range changes {
			if c, ok := c[i]; ok {
				if err := g.apply(c, time.Time{}); err != nil {
					return State{}, fmt.Errorf("scenario: node %s: %w", node, err)
				}
			}
		}
		s.GPUs = append(s.GPUs, g)
	}
	for _, ev := range sc.Events {
		if ev.names == nil || ev.names[node] {
			s.Events = append(s.Events, ev)
		}
	}
	return s, nil
}

// Init makes dir the simulated hardware of one node of the scenario, freshly booted. What dir held of another simulation
// is replaced. libPath is the library that nvmllib.Build made.
func Init(dir string, sc Scenario, node, libPath string) error {
	s, err := sc.Node(node)
	if err != nil {
		return err
	}
	if s.Library, err = filepath.Abs(libPath); err != nil {
		return err
	}
	if _, err := os.Stat(s.Library); err != nil {
		return fmt.Errorf("simulated NVML: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return locked(dir, func() error {
		if err := os.RemoveAll(In(dir).Sysfs); err != nil {
			return err
		}
		// In place: a library that runs has the file mapped.
		calls, err := os.OpenFile(filepath.Join(dir, "nvml.calls"), os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		_, err = calls.Write(make([]byte, callsSize))
		if err := errors.Join(err, calls.Close()); err != nil {
			return err
		}
		return s.boot(dir)
	})
}

// boot gives the node a new boot id and an empty kernel log and saves it. With the lock held.
func (s *State) boot(dir string) error {
	s.BootID, s.BootedAt = newBootID(), time.Now().UTC()
	for i := range s.GPUs {
		s.GPUs[i].RatesSince = s.BootedAt
	}
	if err := s.save(dir); err != nil {
		return err
	}
	// Neither a host engine nor the driver remembers anything from before the boot.
	for _, name := range []string{"dcgm.watches", "nvml.events"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// The boot id first: who sees the new log then finds the new id.
	if err := replace(In(dir).BootID, []byte(s.BootID+"\n")); err != nil {
		return err
	}
	log := kmsgRecord{priority: 5, text: "Linux version 6.1.0-assay-sim (simulated hardware)"}.encode(0, 0)
	log = append(log, kmsgRecord{priority: 5, text: fmt.Sprintf("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  %s", s.Driver)}.encode(1, 1)...)
	return replace(In(dir).Kmsg, log)
}

// newBootID is a random UUID, as the kernel makes one at each boot.
func newBootID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return strings.ToLower(fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16]))
}
