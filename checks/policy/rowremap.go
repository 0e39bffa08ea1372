package policy

// RowRemap holds the limits of package rowremap.
type RowRemap struct {
	MaxCorrectable int `json:"max_correctable" yaml:"max_correctable"` // rows; more is a soft Fail (10: Anubis, ATC'24: 83 % of such nodes regress)
}

func defaultRowRemap() RowRemap {
	return RowRemap{MaxCorrectable: 10}
}

func (v *validator) rowRemap(r RowRemap) {
	atLeast(v, "row_remap.max_correctable", r.MaxCorrectable, 0)
}
