// Package nvlink judges a GPU's NVLinks: which should be up and are not, and which are up and bad.
//
// A link that is inactive may be so by design: a product wires fewer than its chip has (Azure azurehpc-health-checks #162:
// 12 of 18), a PCIe board may have no bridge (NVSentinel #1481). So there is no count that holds everywhere. A link is
// broken when it was active earlier in this boot, when most peers of this node have it, or when policy names a number;
// all links of all GPUs inactive on a baseboard is the fabric manager's or the driver's doing, not a link's.
package nvlink

import (
	"math"
	"time"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/counter"
)

// A Reading is one GPU's links. Sources: nvmlDeviceGetFieldValues, fields NVML_FI_DEV_NVLINK_*, by link.
type Reading struct {
	Have  checks.Availability `json:"have"`
	Err   string              `json:"err,omitempty"`   // why Have is not Read
	Links []Link              `json:"links,omitempty"` // by number: all that the chip has
	Over  time.Duration       `json:"over,omitempty"`  // since the counters' earlier reading; 0 without one
}

// A Link is one NVLink of a GPU.
type Link struct {
	Have       checks.Availability `json:"have"`
	State      State               `json:"state"`
	Seen       bool                `json:"seen,omitempty"`        // it was active earlier in this boot
	Version    int                 `json:"version,omitempty"`     // as the driver counts them: 6 is NVLink 4.0, 7 is 5.0; 0: not known
	SpeedMBps  int                 `json:"speed_mbps,omitempty"`  // one direction, MB/s; 0: not known
	Remote     string              `json:"remote,omitempty"`      // PCI address of the other end; empty: not asked yet, or not told
	RemoteLink *int                `json:"remote_link,omitempty"` // the link's number at the other end
	Replay     counter.Reading     `json:"replay"`                // data link transmit replays
	Recovery   counter.Reading     `json:"recovery"`              // retrainings after an error
	CRC        counter.Reading     `json:"crc"`                   // receive CRC errors
	InTurn     bool                `json:"in_turn,omitempty"`     // an old driver's counters are asked for a few links at a time; this one's turn has not come
	Effective  BER                 `json:"effective_ber"`         // after error correction
	Symbol     BER                 `json:"symbol_ber"`            // before it
}

// A State is a link's state, by NVML's numbers: NVML_NVLINK_STATE_*.
type State int

const (
	Inactive        State = 0
	Active          State = 1
	Sleep           State = 2 // low power; it wakes by itself
	TrafficDisabled State = 3 // trained, but carries no traffic
)

func (s State) up() bool { return s == Active || s == Sleep || s == TrafficDisabled }

// A BER is a bit error rate as NVML packs it: mantissa × 10^−exponent.
type BER struct {
	Have     checks.Availability `json:"have"`
	Mantissa int                 `json:"mantissa,omitempty"`
	Exponent int                 `json:"exponent,omitempty"`
}

// Unpack reads NVML's form: the exponent in bits 0 to 7, the mantissa in bits 8 to 11.
func Unpack(v uint64) BER {
	return BER{Have: checks.Read, Exponent: int(v & 0xff), Mantissa: int(v >> 8 & 0xf)}
}

// Value is the rate as a number; 0 when it was not read.
func (b BER) Value() float64 {
	if b.Have != checks.Read {
		return 0
	}
	return float64(b.Mantissa) * math.Pow10(-b.Exponent)
}

// A Named is one of a link's counters, with what it counts.
type Named struct {
	What string // in the singular, as "CRC"
	counter.Reading
}

// Counters are the link's error counters.
func (l Link) Counters() [3]Named {
	return [3]Named{{"replay", l.Replay}, {"recovery", l.Recovery}, {"CRC", l.CRC}}
}

// Errors adds up what all links have counted since the driver was loaded. The sum is unread when any counter was not read, and
// not supported when none is told.
func (r Reading) Errors() (n uint64, have checks.Availability) {
	if r.Have != checks.Read {
		return 0, r.Have
	}
	have = checks.NotSupported
	for _, l := range r.Links {
		for _, c := range l.Counters() {
			switch c.Have {
			case checks.Read:
				n, have = n+c.Now, checks.Read
			case checks.Unread:
				return 0, checks.Unread
			}
		}
	}
	return n, have
}
