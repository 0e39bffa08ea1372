// Package thermal judges how far a GPU and its memory are from the temperature at which the hardware slows itself down.
//
// Which limit is the right one depends on the product. Newer ones give the distance to it themselves (the margin, with
// thresholds relative to it); on older ones it is the slowdown threshold. The maximum operating temperature is not: a board
// may sit one degree below that and forty below its slowdown. A finding says which sensor it read and which limit it took
// (NVIDIA/DCGM #270).
package thermal

import "github.com/assay-gpu/assay/checks"

// A Reading is one GPU's temperatures, in °C. Sources: nvmlDeviceGetTemperature, nvmlDeviceGetMarginTemperature,
// nvmlDeviceGetTemperatureThreshold; nvmlDeviceGetFieldValues, NVML_FI_DEV_MEMORY_TEMP and NVML_FI_DEV_TEMPERATURE_*_TLIMIT.
type Reading struct {
	Core   Degrees `json:"core"`
	Memory Degrees `json:"memory"`

	Margin          Degrees `json:"margin"`           // from the core to its limit; below 0 beyond it
	SlowdownMargin  Degrees `json:"slowdown_margin"`  // the margin at which the hardware slows down, as −2
	OperatingMargin Degrees `json:"operating_margin"` // the margin of the maximum operating temperature, as 0

	Slowdown  Degrees `json:"slowdown"`   // the core temperature at which the hardware slows down
	Operating Degrees `json:"operating"`  // the core's maximum operating temperature
	MemoryMax Degrees `json:"memory_max"` // the memory's maximum operating temperature
}

// A Degrees is one temperature or threshold.
type Degrees struct {
	Have checks.Availability `json:"have"`
	C    int                 `json:"c"`
	Err  string              `json:"err,omitempty"` // why Have is Unread
}

// At is a temperature that was read.
func At(c int) Degrees { return Degrees{Have: checks.Read, C: c} }

func (d Degrees) read() bool { return d.Have == checks.Read }
