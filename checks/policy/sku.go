package policy

import (
	"strings"
	"unicode"
)

// MatchSKU reports whether pattern names the product: its words follow each other among the product's, letter case aside.
// Words end at whatever is neither a letter nor a digit, so that H100 names "NVIDIA H100 80GB HBM3", A100 SXM4 and
// A100-SXM4 name "NVIDIA A100-SXM4-80GB", and A10 names none of the A100s. An empty pattern names no product.
func MatchSKU(pattern, product string) bool {
	want, have := words(pattern), words(product)
	if len(want) == 0 {
		return false
	}
	for i := 0; i+len(want) <= len(have); i++ {
		if equalFold(have[i:i+len(want)], want) {
			return true
		}
	}
	return false
}

func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func equalFold(a, b []string) bool {
	for i := range a {
		if !strings.EqualFold(a[i], b[i]) {
			return false
		}
	}
	return true
}
