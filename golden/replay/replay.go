// Package replay holds a site's own deterministic step to what it gave before: an executable that prints a digest for a seed,
// and a record of the digests, with who made it, when, on which GPUs and with which driver.
//
// The contract: the step is called with its own arguments and the seed, a decimal number, after them; ASSAY_REPLAY_SEED holds
// the same number. It prints one line, a digest of 8 to 128 hexadecimal digits, on standard output, and ends with exit status 0.
// The same seed gives the same digest on every healthy GPU of the recorded model with the recorded driver. A step that does not
// keep to this proves nothing, and nor does one on another GPU, with another driver or with another executable.
//
// A digest that differs is watched and never a fault: no kernel of ours stands behind a site's step, and as likely as not the
// step is not as deterministic as it was thought to be.
package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Format is the version of a record's file.
const Format = 1

// A Record is what a step gave, and where that comes from.
type Record struct {
	Format  int               `json:"format"`
	Command []string          `json:"command"` // the executable's absolute path and its arguments
	SHA256  string            `json:"sha256"`  // of the executable
	By      string            `json:"by"`      // who stands for it
	At      time.Time         `json:"at"`
	Place   Place             `json:"place"`
	Runs    int               `json:"runs"`    // with each seed; all gave the same
	Digests map[string]string `json:"digests"` // by seed, in decimal
}

// A Place is what a digest may depend on, besides the step and the seed.
type Place struct {
	Node   string   `json:"node"`
	GPUs   []string `json:"gpus"`   // models, each once, in order; empty where no driver was seen
	Driver int      `json:"driver"` // CUDA version of the driver: 1000 · major + 10 · minor
}

// Parse reads a record. A field that it does not know refuses it.
func Parse(b []byte) (Record, error) {
	var r Record
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, err
	}
	var errs []error
	if r.Format != Format {
		errs = append(errs, fmt.Errorf("format %d: this program reads format %d", r.Format, Format))
	}
	if len(r.Command) == 0 || !strings.HasPrefix(r.Command[0], "/") {
		errs = append(errs, errors.New("command: want an absolute path and its arguments"))
	}
	if r.By == "" || r.At.IsZero() {
		errs = append(errs, errors.New("by and at: who made this record, and when?"))
	}
	if len(r.Digests) == 0 {
		errs = append(errs, errors.New("digests: none"))
	}
	for _, seed := range slices.Sorted(maps.Keys(r.Digests)) {
		if _, err := strconv.ParseUint(seed, 10, 64); err != nil {
			errs = append(errs, fmt.Errorf("seed %q: want a number", seed))
		}
		if !isDigest(r.Digests[seed]) {
			errs = append(errs, fmt.Errorf("seed %s: %q is no digest", seed, r.Digests[seed]))
		}
	}
	return r, errors.Join(errs...)
}

func isDigest(s string) bool {
	return len(s) >= 8 && len(s) <= 128 && strings.Trim(s, "0123456789abcdef") == ""
}

// Digest reads what a step printed.
func Digest(stdout string) (string, error) {
	s := strings.ToLower(strings.TrimSpace(stdout))
	if !isDigest(s) {
		return "", errors.New("it did not print one line with a digest of 8 to 128 hexadecimal digits")
	}
	return s, nil
}

// A Run is one run of the step.
type Run struct {
	Seed   string `json:"seed"`
	Digest string `json:"digest,omitempty"`
	Err    string `json:"err,omitempty"` // why there is no digest
}

// An Outcome is what a replay shows. The zero value: nothing.
type Outcome uint8

const (
	NotShown Outcome = iota // it could not be compared
	Same                    // every digest was the recorded one
	Differs                 // one was not
)

func (o Outcome) String() string { return [...]string{"not shown", "same", "differs"}[o] }

// Judge compares runs with the record. sha is the executable's SHA-256 now, here what the GPUs and the driver are now.
func Judge(r Record, sha string, here Place, runs []Run) (Outcome, string) {
	switch {
	case sha != r.SHA256:
		return NotShown, fmt.Sprintf("the executable is another than on %s: record it anew", r.At.UTC().Format(time.DateOnly))
	case !slices.Equal(here.GPUs, r.Place.GPUs):
		return NotShown, fmt.Sprintf("the record is of %s, this node has %s", models(r.Place.GPUs), models(here.GPUs))
	case here.Driver != r.Place.Driver:
		return NotShown, fmt.Sprintf("the record is of CUDA driver %d, this node has %d", r.Place.Driver, here.Driver)
	}
	for _, run := range runs { // what differs outranks what could not be had
		if want := r.Digests[run.Seed]; run.Err == "" && want != "" && run.Digest != want {
			return Differs, fmt.Sprintf("seed %s gave %s here, and %s on node %s on %s (by %s, %d runs)", run.Seed, run.Digest, want, r.Place.Node, r.At.UTC().Format(time.DateOnly), r.By, r.Runs)
		}
	}
	for _, run := range runs {
		switch {
		case run.Err != "":
			return NotShown, fmt.Sprintf("seed %s: %s", run.Seed, run.Err)
		case r.Digests[run.Seed] == "":
			return NotShown, fmt.Sprintf("seed %s: the record has no digest for it", run.Seed)
		}
	}
	if len(runs) == 0 {
		return NotShown, "the step was not run"
	}
	return Same, fmt.Sprintf("%d of %d digests are those of %s", len(runs), len(runs), r.At.UTC().Format(time.DateOnly))
}

func models(gpus []string) string {
	if len(gpus) == 0 {
		return "no GPU that was seen"
	}
	return strings.Join(gpus, ", ")
}
