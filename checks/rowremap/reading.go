// Package rowremap judges a GPU's row remapper, which swaps faulty HBM rows for spare ones.
//
// A pending remap takes effect at the next GPU reset and is safe to compute on until then.
// A failed remap is grounds for RMA. Source: NVIDIA, "GPU Memory Error Management", response flags.
package rowremap

import "github.com/assay-gpu/assay/checks"

// A Reading is one GPU's remapper state from nvmlDeviceGetRemappedRows.
type Reading struct {
	Have          checks.Availability `json:"have"`
	Err           string              `json:"err,omitempty"` // why Have is Unread
	Correctable   int                 `json:"correctable"`   // rows remapped after correctable errors, over the GPU's life
	Uncorrectable int                 `json:"uncorrectable"` // rows remapped after uncorrectable errors, over the GPU's life
	Pending       bool                `json:"pending"`       // a remap waits for a GPU reset
	Failed        bool                `json:"failed"`        // a remap has failed at some time
	HaveBanks     checks.Availability `json:"have_banks"`
	Banks         Banks               `json:"banks"`
}

// Banks is how many memory banks have how many of their spare rows left. Source: nvmlDeviceGetRowRemapperHistogram.
type Banks struct {
	Max     int `json:"max"` // all of them
	High    int `json:"high"`
	Partial int `json:"partial"`
	Low     int `json:"low"`
	None    int `json:"none"` // the next remap there fails
}
