package policy

// RetiredPages holds the limits of package retired, in pages.
type RetiredPages struct {
	Full  int `json:"full" yaml:"full"`   // the table: as many, pending ones counted as one, are a soft Fail, rma
	Watch int `json:"watch" yaml:"watch"` // as many are watched
}

// defaultRetiredPages: DCGM's hard and soft limit.
func defaultRetiredPages() RetiredPages { return RetiredPages{Full: 63, Watch: 15} }

func (v *validator) retiredPages(r RetiredPages) {
	atLeast(v, "retired_pages.full", r.Full, 1)
	atLeast(v, "retired_pages.watch", r.Watch, 0)
}
