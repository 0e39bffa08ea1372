package bandwidth

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/policy"
)

// A GPU is one GPU of a node with what was measured of it.
type GPU struct {
	checks.GPU
	Reading
}

// minPeers is how many other GPUs of the same product there must be to compare with.
const minPeers = 2

// lane is what one lane of a generation gives each way, in bytes a second, its encoding off: 8b/10b up to Gen 2, 128b/130b
// from Gen 3 on, and of Gen 6 242 bytes of each 256. PCI Express Base Specification.
var lane = [...]float64{0, 0.25e9, 0.5e9, 8e9 / 8 * 128 / 130, 16e9 / 8 * 128 / 130, 32e9 / 8 * 128 / 130, 64e9 / 8 * 242 / 256}

// Judge turns the readings of a node's GPUs into findings, in their order. width is the lanes that policy wants of a GPU, 0
// for what GPU and port can do. It does no I/O. None of its faults is hard: the GPU still works.
func Judge(gpus []GPU, p policy.Bandwidth, width int) []checks.Finding {
	var out []checks.Finding
	for i, g := range gpus {
		f := checks.Finding{Check: ID, Subject: g.Subject()}
		switch g.Have {
		case checks.Read:
			one(&f, g, peers(gpus, i), p, width)
		case checks.NotSupported:
			f.Verdict, f.Reason = checks.NotApplicable, "copies to and from the host are not tested: "+g.Err
		default:
			f.Reason = "the bandwidth of copies was not measured"
			if g.Err != "" {
				f.Reason += ": " + g.Err
			}
		}
		out = append(out, f)
	}
	return out
}

// peers are the others of the same product that were measured; nil when they are too few.
func peers(gpus []GPU, i int) (out []Reading) {
	for k, o := range gpus {
		if k != i && o.Have == checks.Read && o.Name == gpus[i].Name {
			out = append(out, o.Reading)
		}
	}
	if len(out) < minPeers {
		return nil
	}
	return out
}

func one(f *checks.Finding, g GPU, peers []Reading, p policy.Bandwidth, width int) {
	full, link := expected(g.Reading, width)
	f.Evidence = evidence(g.Reading, link)
	var faults, figures []string
	for _, d := range []struct {
		name string
		of   func(Reading) Rate
	}{{"to the GPU", func(r Reading) Rate { return r.ToGPU }}, {"from the GPU", func(r Reading) Rate { return r.FromGPU }}} {
		got := d.of(g.Reading).Median
		figure := fmt.Sprintf("%s %.1f GB/s", d.name, got/1e9)
		var why []string
		if full > 0 {
			figure += fmt.Sprintf(", %.0f %% of what %s gives", 100*got/full, link)
			if got/full < p.MinShare {
				why = append(why, fmt.Sprintf("%.0f %% wanted", 100*p.MinShare))
			}
		}
		if len(peers) > 0 {
			others := median(peers, d.of)
			if got/others < p.PeerShare {
				why = append(why, fmt.Sprintf("the node's other GPUs reach %.1f GB/s", others/1e9))
			}
		}
		if got/1e9 < p.MinGBps {
			why = append(why, fmt.Sprintf("%.1f GB/s wanted", p.MinGBps))
		}
		if figures = append(figures, figure); len(why) > 0 {
			faults = append(faults, figure+"; "+strings.Join(why, "; "))
		}
	}
	known := full > 0 || len(peers) > 0 || p.MinGBps > 0
	switch {
	case len(faults) > 0:
		f.Verdict, f.Action, f.Reason = checks.Fail, checks.Drain, strings.Join(faults, "; ")
		if l := g.Link; l != nil && l.Gen > 0 && l.Width > 0 {
			f.Reason += fmt.Sprintf("; the link ran at Gen%d x%d", l.Gen, l.Width)
		}
	case known:
		f.Verdict, f.Reason = checks.Pass, strings.Join(figures, "; ")
	default:
		f.Reason = strings.Join(figures, "; ") + "; how fast it should be is not known: no link that sysfs shows, too few GPUs alike, and no bandwidth.min_gbps"
		if g.Link == nil {
			f.Verdict = checks.NotApplicable
		}
	}
}

// expected is what the link gives each way when it runs as both its ends can, in bytes a second, and that link in words; 0
// where that is not known.
func expected(r Reading, width int) (float64, string) {
	if r.Link == nil {
		return 0, ""
	}
	gen, lanes := less(r.Link.MaxGen, r.Link.PortGen), less(r.Link.MaxWidth, r.Link.PortWidth)
	if width > 0 {
		lanes = width
	}
	if gen < 1 || gen >= len(lane) || lanes < 1 {
		return 0, ""
	}
	return lane[gen] * float64(lanes), fmt.Sprintf("Gen%d x%d", gen, lanes)
}

// less is the lower of two ends' figures, of which 0 is not known.
func less(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

func median(rs []Reading, of func(Reading) Rate) float64 {
	var v []float64
	for _, r := range rs {
		v = append(v, of(r).Median)
	}
	slices.Sort(v)
	return v[(len(v)-1)/2]
}

func evidence(r Reading, link string) string {
	text := fmt.Sprintf("to_gpu=%.2f to_gpu_worst=%.2f from_gpu=%.2f from_gpu_worst=%.2f near=%t", r.ToGPU.Median/1e9, r.ToGPU.Worst/1e9, r.FromGPU.Median/1e9, r.FromGPU.Worst/1e9, r.Near)
	if link != "" {
		text += " link=" + strings.ReplaceAll(link, " ", "")
	}
	if l := r.Link; l != nil {
		text += fmt.Sprintf(" gen=%d width=%d", l.Gen, l.Width)
	}
	return text
}
