package sim

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-gpu/assay/agent/sim/nvmllib"
	"github.com/assay-gpu/assay/golden/fakecuda"
)

// A GPUChange is what to change of one GPU; what is nil stays. Its fields are those of GPU, by the same names.
type GPUChange struct {
	UUID                 *string  `yaml:"uuid" json:"uuid,omitempty"`
	Name                 *string  `yaml:"name" json:"name,omitempty"`
	Serial               *string  `yaml:"serial" json:"serial,omitempty"`
	ECCEnabled           *bool    `yaml:"ecc_enabled" json:"ecc_enabled,omitempty"`
	ECCPending           *bool    `yaml:"ecc_pending" json:"ecc_pending,omitempty"`
	VolatileCorrected    *uint64  `yaml:"volatile_corrected" json:"volatile_corrected,omitempty"`
	VolatileUncorrected  *uint64  `yaml:"volatile_uncorrected" json:"volatile_uncorrected,omitempty"`
	AggregateCorrected   *uint64  `yaml:"aggregate_corrected" json:"aggregate_corrected,omitempty"`
	AggregateUncorrected *uint64  `yaml:"aggregate_uncorrected" json:"aggregate_uncorrected,omitempty"`
	SRAMThreshold        *bool    `yaml:"sram_threshold" json:"sram_threshold,omitempty"`
	RemapCorrectable     *uint32  `yaml:"remap_correctable" json:"remap_correctable,omitempty"`
	RemapUncorrectable   *uint32  `yaml:"remap_uncorrectable" json:"remap_uncorrectable,omitempty"`
	RemapPending         *bool    `yaml:"remap_pending" json:"remap_pending,omitempty"`
	RemapFailed          *bool    `yaml:"remap_failed" json:"remap_failed,omitempty"`
	RecoveryAction       *uint32  `yaml:"recovery_action" json:"recovery_action,omitempty"`
	Lost                 *bool    `yaml:"lost" json:"lost,omitempty"`
	Missing              *bool    `yaml:"missing" json:"missing,omitempty"`
	Hang                 *string  `yaml:"hang" json:"hang,omitempty"`
	NotSupported         []string `yaml:"not_supported" json:"not_supported,omitempty"`
	Unreadable           []string `yaml:"unreadable" json:"unreadable,omitempty"`
	ComputeFaults        *string  `yaml:"compute_faults" json:"compute_faults,omitempty"`
	CUDAHang             *bool    `yaml:"cuda_hang" json:"cuda_hang,omitempty"`
	CUDAError            *int     `yaml:"cuda_error" json:"cuda_error,omitempty"`
	DCGMError            *int     `yaml:"dcgm_error" json:"dcgm_error,omitempty"`
	Persists             *bool    `yaml:"persists" json:"persists,omitempty"`
	HealsAfterReboots    *int     `yaml:"heals_after_reboots" json:"heals_after_reboots,omitempty"`
	PartsChange          `yaml:",inline"`
}

// A NodeChange is what to change of the node as a whole.
type NodeChange struct {
	Driver            *string  `yaml:"driver" json:"driver,omitempty"`
	NodeSerial        *string  `yaml:"node_serial" json:"node_serial,omitempty"`
	Init              *string  `yaml:"init" json:"init,omitempty"`
	SymbolsMissing    []string `yaml:"symbols_missing" json:"symbols_missing,omitempty"`
	NewestField       *int     `yaml:"newest_field" json:"newest_field,omitempty"`
	DCGM              *string  `yaml:"dcgm" json:"dcgm,omitempty"`
	Diag              *string  `yaml:"dcgm_diag" json:"dcgm_diag,omitempty"`
	Persists          *bool    `yaml:"persists" json:"persists,omitempty"`
	HealsAfterReboots *int     `yaml:"heals_after_reboots" json:"heals_after_reboots,omitempty"`
}

// A fault is one thing wrong with a change: the key and what is wrong.
type fault struct{ key, message string }

func (f fault) Error() string { return f.key + ": " + f.message }

func (c GPUChange) faults() (fs []fault) {
	fs = c.PartsChange.faults()
	if c.Hang != nil && *c.Hang != "" && *c.Hang != "all" && !slices.Contains(nvmllib.Functions, *c.Hang) {
		fs = append(fs, fault{"hang", fmt.Sprintf("%q: want all, or one of %s", *c.Hang, strings.Join(deviceFunctions(), ", "))})
	}
	for _, list := range []struct {
		key   string
		names []string
	}{{"not_supported", c.NotSupported}, {"unreadable", c.Unreadable}} {
		for i, name := range list.names {
			if _, field := fieldNumber(name); !field && !slices.Contains(deviceFunctions(), name) {
				fs = append(fs, fault{fmt.Sprintf("%s[%d]", list.key, i), fmt.Sprintf("%q: want one of %s, or a field as field_82", name, strings.Join(deviceFunctions(), ", "))})
			}
		}
	}
	if c.UUID != nil && !strings.HasPrefix(*c.UUID, "GPU-") {
		fs = append(fs, fault{"uuid", fmt.Sprintf("%q: want a GPU's UUID, as GPU-…", *c.UUID)})
	}
	for _, t := range []struct {
		key  string
		text *string
		room int
	}{{"uuid", c.UUID, 95}, {"name", c.Name, 95}, {"serial", c.Serial, 29}} {
		if t.text != nil && len(*t.text) > t.room {
			fs = append(fs, fault{t.key, fmt.Sprintf("%d bytes: NVML has room for %d", len(*t.text), t.room)})
		}
	}
	if c.ComputeFaults != nil {
		if err := fakecuda.CheckFaults(*c.ComputeFaults); err != nil {
			fs = append(fs, fault{"compute_faults", err.Error()})
		}
	}
	if c.DCGMError != nil && *c.DCGMError != 0 {
		if _, ok := dcgmErrors[*c.DCGMError]; !ok {
			fs = append(fs, fault{"dcgm_error", fmt.Sprintf("%d: want one of %v, or 0 for none", *c.DCGMError, slices.Sorted(maps.Keys(dcgmErrors)))})
		}
	}
	if c.CUDAError != nil && (*c.CUDAError < 0 || *c.CUDAError > 999) {
		fs = append(fs, fault{"cuda_error", fmt.Sprintf("%d: want a CUresult, 1 to 999, or 0 for none", *c.CUDAError)})
	}
	if c.HealsAfterReboots != nil && *c.HealsAfterReboots < 0 {
		fs = append(fs, fault{"heals_after_reboots", "want 0 or more"})
	}
	return fs
}

func (c NodeChange) faults() (fs []fault) {
	if c.Init != nil && !slices.Contains(Inits, *c.Init) {
		fs = append(fs, fault{"init", fmt.Sprintf("%q: want one of %s, or empty", *c.Init, strings.Join(Inits[1:], ", "))})
	}
	for _, w := range []struct {
		key  string
		have *string
		want []string
	}{{"dcgm", c.DCGM, DCGMs}, {"dcgm_diag", c.Diag, Diags}} {
		if w.have != nil && !slices.Contains(w.want, *w.have) {
			fs = append(fs, fault{w.key, fmt.Sprintf("%q: want one of %s, or empty", *w.have, strings.Join(w.want[1:], ", "))})
		}
	}
	for i, name := range c.SymbolsMissing {
		if !slices.Contains(nvmllib.Functions, name) {
			fs = append(fs, fault{fmt.Sprintf("symbols_missing[%d]", i), fmt.Sprintf("%q: want one of %s", name, strings.Join(nvmllib.Functions, ", "))})
		}
	}
	if n := c.NewestField; n != nil && (*n < 0 || *n > 999) {
		fs = append(fs, fault{"newest_field", fmt.Sprintf("%d: want a field of NVML, as 160, or 0 for all", *n)})
	}
	if c.Driver != nil && (*c.Driver == "" || len(*c.Driver) > 70) {
		fs = append(fs, fault{"driver", fmt.Sprintf("%q: want a version, as 550.54.15", *c.Driver)})
	}
	if c.HealsAfterReboots != nil && *c.HealsAfterReboots < 0 {
		fs = append(fs, fault{"heals_after_reboots", "want 0 or more"})
	}
	return fs
}

// deviceFunctions are the functions called on one GPU.
func deviceFunctions() []string {
	return slices.DeleteFunc(slices.Clone(nvmllib.Functions), func(s string) bool {
		return !strings.HasPrefix(s, "nvmlDevice") || s == "nvmlDeviceGetCount_v2"
	})
}

// merge sets each field of the struct that into points to from the field of change that has the same name and is set. A map
// is left to the caller.
func merge(into, change any) {
	to, from := reflect.ValueOf(into).Elem(), reflect.ValueOf(change)
	for i := range from.NumField() {
		v := from.Field(i)
		if from.Type().Field(i).Anonymous {
			merge(into, v.Interface())
			continue
		}
		if v.IsNil() || v.Kind() == reflect.Map {
			continue
		}
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		to.FieldByName(from.Type().Field(i).Name).Set(v)
	}
}

// A ChangeError holds every fault of one Set.
type ChangeError struct{ Faults []string }

func (e *ChangeError) Error() string { return strings.Join(e.Faults, "\n") }

// Hint says what was done.
func (e *ChangeError) Hint() string { return "nothing was changed" }

// Set changes GPU gpu of the node in dir or, with gpu -1, the node as a whole. The keys are those of the scenario file;
// lists are written with commas. A *ChangeError lists all that is wrong; then nothing is changed.
func Set(dir string, gpu int, changes map[string]string) error {
	s, err := Read(dir)
	if err != nil {
		return err
	}
	var e ChangeError
	var onGPU GPUChange
	var onNode NodeChange
	var parsed interface{ faults() []fault } = &onGPU
	if gpu == -1 {
		parsed = &onNode
	} else if _, err := s.gpu(gpu); err != nil {
		e.Faults = append(e.Faults, err.Error())
	}
	for _, f := range append(parse(parsed, changes), parsed.faults()...) {
		e.Faults = append(e.Faults, f.Error())
	}
	if len(e.Faults) > 0 {
		return &e
	}
	return change(dir, func(s *State) error {
		if gpu == -1 {
			merge(s, onNode)
			return nil
		}
		return s.GPUs[gpu].apply(onGPU, time.Now())
	})
}

// parse fills the change that into points to from text, by the names in its yaml tags.
func parse(into any, changes map[string]string) (fs []fault) {
	fields, names := fieldsOf(reflect.ValueOf(into).Elem())
	keys := make([]string, 0, len(changes))
	for k := range changes {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if part := strings.SplitN(k, ".", 3); len(part) == 3 && fields[part[0]].Kind() == reflect.Map {
			fs = append(fs, parsePart(fields[part[0]], k, part[1], part[2], changes[k])...)
			continue
		}
		f, ok := fields[k]
		if !ok || f.Kind() == reflect.Map {
			fs = append(fs, fault{k, "unknown; known are " + strings.Join(names, ", ")})
			continue
		}
		if err := parseValue(f, changes[k]); err != nil {
			fs = append(fs, fault{k, err.Error()})
		}
	}
	return fs
}

// fieldsOf are the fields of a change by the names in their yaml tags, those of embedded structs among them. The names are
// as people write them.
func fieldsOf(v reflect.Value) (fields map[string]reflect.Value, names []string) {
	fields = map[string]reflect.Value{}
	for i := range v.NumField() {
		t := v.Type().Field(i)
		name := t.Tag.Get("yaml")
		switch {
		case t.Anonymous:
			more, moreNames := fieldsOf(v.Field(i))
			maps.Copy(fields, more)
			names = append(names, moreNames...)
			continue
		case t.Type.Kind() == reflect.Map:
			_, sub := fieldsOf(reflect.New(t.Type.Elem()).Elem())
			for _, s := range sub {
				names = append(names, name+".N."+s)
			}
		default:
			names = append(names, name)
		}
		fields[name] = v.Field(i)
	}
	return fields, names
}

// parsePart sets one field of the element number of a map of changes, as state of 3 in nvlink.3.state.
func parsePart(m reflect.Value, key, number, name, text string) []fault {
	i, err := strconv.Atoi(number)
	if err != nil {
		return []fault{{key, fmt.Sprintf("%q: want a number", number)}}
	}
	part := reflect.New(m.Type().Elem())
	if m.IsNil() {
		m.Set(reflect.MakeMap(m.Type()))
	} else if was := m.MapIndex(reflect.ValueOf(i)); was.IsValid() {
		part.Elem().Set(was)
	}
	fs := parse(part.Interface(), map[string]string{name: text})
	for j := range fs {
		fs[j].key = key
	}
	m.SetMapIndex(reflect.ValueOf(i), part.Elem())
	return fs
}

func parseValue(f reflect.Value, text string) error {
	if f.Kind() == reflect.Slice {
		list := []string{}
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		f.Set(reflect.ValueOf(list))
		return nil
	}
	v := reflect.New(f.Type().Elem())
	switch e := v.Elem(); e.Kind() {
	case reflect.String:
		e.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q: want true or false", text)
		}
		e.SetBool(text == "true")
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q: want a whole number", text)
		}
		e.SetInt(int64(n))
	default:
		n, err := strconv.ParseUint(text, 10, e.Type().Bits())
		switch {
		case errors.Is(err, strconv.ErrRange):
			return fmt.Errorf("%q: too large", text)
		case err != nil:
			return fmt.Errorf("%q: want a whole number, not below 0", text)
		}
		e.SetUint(n)
	}
	f.Set(v)
	return nil
}
