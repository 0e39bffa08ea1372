package golden

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-gpu/assay/golden/kernels"
)

// A CopyTest is what is known of one test of the copy engines and the links. It runs on the whole GPU, and on no SM.
type CopyTest struct {
	ID    string
	Rule  string // its number in the suite
	Unit  string // the unit under test, with its names in a fault file
	Does  string
	Exact string
	Blind string // what it cannot see
	MinCC int    // the lowest compute capability
	Links bool   // it needs a second GPU
}

const copied = "data is moved, not computed; every word depends on its whole offset, and what it replaces is its complement"

var copyTests = []CopyTest{
	{
		ID: "k21_h2d", Rule: "K21", Unit: "PCIe and copy engine, to the GPU (pcie, copy_engine)", MinCC: 70, Exact: copied,
		Does:  "copies four patterns from pinned memory, in large and odd sizes and alignments; the GPU compares every word, the host reads odd ones back",
		Blind: "pageable and managed memory; copies that the SMs make; lengths above one buffer",
	},
	{
		ID: "k21_d2h", Rule: "K21", Unit: "PCIe and copy engine, from the GPU (pcie, copy_engine)", MinCC: 70, Exact: copied,
		Does:  "as k21_h2d, the other way: the GPU makes the pattern, the host compares every byte",
		Blind: "as k21_h2d",
	},
	{
		ID: "k21_both", Rule: "K21", Unit: "PCIe, both directions at once (pcie, copy_engine)", MinCC: 70, Exact: copied,
		Does:  "copies to and from the GPU at the same time, on two streams, and compares both",
		Blind: "copy engines beyond the two that the driver chooses",
	},
	{
		ID: "k21_d2d", Rule: "K21", Unit: "copies within the GPU (copy_engine)", MinCC: 70, Exact: copied,
		Does:  "copies between two buffers of the GPU, which the GPU fills and compares",
		Blind: "the copy engines, on drivers that have the SMs make such copies",
	},
	{
		ID: "k22_peer", Rule: "K22", Unit: "NVLink, to and from each GPU with peer access (nvlink, copy_engine)", MinCC: 70, Exact: copied, Links: true,
		Does:  "copies to another GPU and back, each GPU making what it sends and comparing what it gets",
		Blind: "which of the links a wrong word came over; loads, stores and atomics over the links; multicast in the switches",
	},
}

// CopyTests gives the tests of copies in the order in which they run.
func CopyTests() []CopyTest { return append([]CopyTest{}, copyTests...) }

// LookupCopy gives a copy test by its ID.
func LookupCopy(id string) (CopyTest, bool) {
	for _, c := range copyTests {
		if c.ID == id {
			return c, true
		}
	}
	return CopyTest{}, false
}

// copyIDs are those that one GPU can run and, with links, those that need another.
func copyIDs(links bool) (ids []string) {
	for _, c := range copyTests {
		if links || !c.Links {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Digest names the test's code, as KernelDigest does that of a kernel.
func (c CopyTest) Digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s", c.ID, kernels.CopySource())
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// CopyBytes is how much the large copies move at once. 32 MiB take 0.6 ms over PCIe Gen 5 x16, against which a start of some
// microseconds is 1 %.
func (s Size) CopyBytes() int {
	if s.divide > 1 {
		return 16 << 10
	}
	return 32 << 20
}

// A Transfer is one copy that is verified: a pattern, and which bytes of the buffer are copied.
type Transfer struct {
	Pattern int
	Offset  int // bytes
	Bytes   int
}

// Transfers gives the copies of a test, the whole buffer first.
func (s Size) Transfers() []Transfer {
	n := s.CopyBytes()
	return []Transfer{
		{0, 0, n}, {1, 0, n / 8}, {2, 0, n / 8}, {3, 0, n / 8},
		{0, 4, 4093}, {1, 1, 4099}, {3, 127, n / 16}, // odd sizes and alignments
	}
}

// CopySamples is how many copies one figure of bandwidth is taken from.
const CopySamples = 9

// A Copy is what a test of copies gave. Its counts are of copies whose every byte was compared.
type Copy struct {
	Peer     string        `json:"peer,omitempty"` // UUID of the other GPU
	Engines  int           `json:"engines"`        // that copy beside running kernels; cuDeviceGetAttribute 40
	Bytes    int           `json:"bytes"`          // of the largest copy
	Copies   int           `json:"copies"`         // that there should have been
	Verified int           `json:"verified"`       // that were right
	Near     bool          `json:"near"`           // the host's side ran on processors beside the GPU, as sysfs names them
	Rates    []Rate        `json:"rates,omitempty"`
	NoRate   string        `json:"no_rate,omitempty"` // why no bandwidth was measured
	Link     *Link         `json:"link,omitempty"`    // as sysfs shows it right after the measurement
	Wrong    *CopyMismatch `json:"wrong,omitempty"`   // the first wrong copy
}

// Directions of a Rate.
const (
	HostToDevice   = "host_to_device"
	DeviceToHost   = "device_to_host"
	DeviceToDevice = "device_to_device"
	ToPeer         = "to_peer"
	FromPeer       = "from_peer"
)

// A Rate is a bandwidth, by the events before and after each copy, in bytes a second.
type Rate struct {
	Direction string  `json:"direction"`
	Together  bool    `json:"together,omitempty"` // while copies went the other way as well
	Median    float64 `json:"median"`
	Worst     float64 `json:"worst"`
	Samples   int     `json:"samples"`
}

// A Link is a GPU's PCIe link. What is 0 was not told.
type Link struct {
	Gen      int `json:"gen"`   // now
	Width    int `json:"width"` // lanes, now
	MaxGen   int `json:"max_gen"`
	MaxWidth int `json:"max_width"`

	PortGen   int `json:"port_gen"` // what the port it sits in can do
	PortWidth int `json:"port_width"`
}

// A CopyMismatch is one wrong copy.
type CopyMismatch struct {
	Direction string `json:"direction"`
	Pattern   int    `json:"pattern"`
	Offset    int    `json:"offset"` // of the copied bytes in the buffer
	Bytes     int    `json:"bytes"`
	Words     int    `json:"words"` // that differ
	First     int    `json:"first"` // byte offset in the buffer of the lowest of them
	Expected  uint32 `json:"expected"`
	Got       uint32 `json:"got"`
	Bits      uint32 `json:"bits"`   // that differ in any
	Reread    bool   `json:"reread"` // compared again, and by the other side, it was the same
	Inputs    bool   `json:"inputs"` // what was copied was intact afterwards
}

// NoSM stands for the SM in the reruns of a test of copies.
const NoSM = -1

// RateOf makes a rate of the seconds that copies of so many bytes took. It is nil where they give none.
func RateOf(direction string, together bool, bytes int, seconds []float64) *Rate {
	var rates []float64
	for _, s := range seconds {
		if !(s > 0) || math.IsInf(s, 0) {
			return nil
		}
		rates = append(rates, float64(bytes)/s)
	}
	if len(rates) == 0 {
		return nil
	}
	slices.Sort(rates)
	return &Rate{Direction: direction, Together: together, Median: rates[len(rates)/2], Worst: rates[0], Samples: len(rates)}
}

// copyGap says why the stage does not speak for all of its copies, empty when it does.
func (s Stage) copyGap() string {
	switch c := s.Copy; {
	case c.Wrong != nil && !c.Wrong.Reread:
		return "a copy differed, and not when it was compared again"
	case c.Wrong != nil && !c.Wrong.Inputs:
		return "a copy differed, and so did what was copied"
	case !s.Canary.Tried:
		return "no canary was planted"
	case !s.Canary.Seen:
		return fmt.Sprintf("the canary at byte %d was not reported there and only there", s.Canary.Thread)
	case c.Copies < 1:
		return "nothing was copied"
	case c.Verified != c.Copies:
		return fmt.Sprintf("%d of %d copies verified", c.Verified, c.Copies)
	}
	return ""
}

func (s Stage) describeCopy() string {
	w := s.Copy.Wrong
	text := fmt.Sprintf("%s gave wrong data (%s", s.Kernel, strings.ReplaceAll(w.Direction, "_", " "))
	if s.Copy.Peer != "" {
		text += " " + s.Copy.Peer
	}
	return text + fmt.Sprintf("): %d words of %d bytes, the first at byte %d, bits %08x", w.Words, w.Bytes, w.First, w.Bits) + s.again(NoSM)
}

// peer is the other GPU's UUID, empty without one.
func (c *Copy) peer() string {
	if c == nil {
		return ""
	}
	return c.Peer
}

// slowest keeps the lower figure of each direction, of this run of the test and another.
func (c *Copy) slowest(o *Copy) {
	if c == nil || o == nil {
		return
	}
	if len(c.Rates) == 0 {
		c.Rates, c.NoRate, c.Link = o.Rates, o.NoRate, o.Link
		return
	}
	for i := range c.Rates {
		r := &c.Rates[i]
		for _, other := range o.Rates {
			if other.Direction != r.Direction || other.Together != r.Together {
				continue
			}
			if other.Median < r.Median {
				r.Median, c.Link = other.Median, o.Link
			}
			r.Worst = min(r.Worst, other.Worst)
			r.Samples += other.Samples
		}
	}
}
