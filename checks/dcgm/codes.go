package dcgm

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

//go:embed codes.tsv
var codesText string

// A Meaning is what DCGM's own table says of an error code.
type Meaning struct {
	Code     int
	Name     string // without DCGM_FR_
	Severity Severity
	Category Category
	Since    string // the first release examined that has it, as 4.2.3
}

// A Category is the part of the system that an error is about, as dcgmErrorCategory_t.
type Category int

// Categories that the rules go by.
const (
	SoftwareConfig  Category = 3
	SoftwareLibrary Category = 4
	SoftwareXID     Category = 5
	SoftwareCUDA    Category = 6
	SoftwareEUD     Category = 7
	SoftwareOther   Category = 8
	Internal        Category = 16
)

// tool reports whether the category is about DCGM, its libraries and its surroundings: nothing that hardware does.
func (c Category) tool() bool {
	switch c {
	case SoftwareLibrary, SoftwareCUDA, SoftwareEUD, SoftwareOther, Internal:
		return true
	}
	return false
}

var meanings = sync.OnceValue(func() map[int]Meaning {
	out := map[int]Meaning{}
	for line := range strings.Lines(codesText) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		m, err := parseMeaning(line)
		if err != nil {
			panic(err) // embedded above, and read by a test
		}
		out[m.Code] = m
	}
	return out
})

func parseMeaning(line string) (Meaning, error) {
	f := strings.Split(line, "\t")
	if len(f) != 5 {
		return Meaning{}, fmt.Errorf("codes.tsv: %q: want 5 fields", line)
	}
	var n [3]int
	for i, s := range []string{f[0], f[2], f[3]} {
		var err error
		if n[i], err = strconv.Atoi(s); err != nil {
			return Meaning{}, fmt.Errorf("codes.tsv: %q: %w", line, err)
		}
	}
	return Meaning{Code: n[0], Name: f[1], Severity: Severity(n[1]), Category: Category(n[2]), Since: f[4]}, nil
}

// Means gives what the table says of a code; false for one that is newer than the table.
func Means(code int) (Meaning, bool) {
	m, ok := meanings()[code]
	return m, ok
}
