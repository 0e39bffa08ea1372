package api

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// pageMost bounds the limit of one page.
const pageMost = 10_000

// listed answers a list: whole and in its own order, or, with limit in the query, that many items after the one that continue
// names, by their keys. Keys are unique, so that a page neither repeats nor leaves out what was there all the time, whatever
// comes and goes between two pages.
func listed[T any](c call, all []T, err error, key func(T) string) (any, error) {
	if err != nil {
		return nil, err
	}
	if all == nil {
		all = []T{} // an empty list, not null
	}
	q := c.r.URL.Query()
	text, after := q.Get("limit"), q.Get("continue")
	if text == "" {
		if after != "" {
			return nil, Errorf(http.StatusBadRequest, "continue goes with limit")
		}
		return all, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > pageMost {
		return nil, Errorf(http.StatusBadRequest, "limit=%.40q: want a number from 1 to %d", text, pageMost)
	}
	last, err := base64.RawURLEncoding.DecodeString(after)
	if err != nil {
		return nil, Errorf(http.StatusBadRequest, "continue=%.80q is none that was answered", after)
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	if after != "" {
		i, found := slices.BinarySearchFunc(all, string(last), func(x T, k string) int { return strings.Compare(key(x), k) })
		if found {
			i++
		}
		all = all[i:]
	}
	if len(all) > limit {
		all = all[:limit]
		next := base64.RawURLEncoding.EncodeToString([]byte(key(all[limit-1])))
		c.w.Header().Set(wire.ContinueHeader, next)
		q.Set("continue", next)
		c.w.Header().Set("Link", "<"+c.r.URL.Path+"?"+q.Encode()+`>; rel="next"`)
	}
	return all, nil
}
