package policy

// RowRemap holds the limits of package rowremap.
type RowRemap struct {
	MaxCorrectable     int `json:"max_correctable" yaml:"max_correctable"`         // rows; more is a soft Fail (10: Anubis, ATC'24: 83 % of such nodes regress)
	WatchUncorrectable int `json:"watch_uncorrectable" yaml:"watch_uncorrectable"` // rows; as many are watched (512: DCGM warns)
}

func defaultRowRemap() RowRemap {
	return RowRemap{MaxCorrectable: 10, WatchUncorrectable: 512}
}

func (v *validator) rowRemap(r RowRemap) {
	atLeast(v, "row_remap.max_correctable", r.MaxCorrectable, 0)
	atLeast(v, "row_remap.watch_uncorrectable", r.WatchUncorrectable, 1)
}
