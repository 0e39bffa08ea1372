package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/assay-gpu/assay/coordinator/wire"
	"github.com/assay-gpu/assay/scheduler/rules"
)

// Rules returns the records kept; with whole, those too that hold where none were.
func (c *Client) Rules(ctx context.Context, whole bool) (rules.File, error) {
	return call[rules.File](ctx, c, http.MethodGet, wire.PathRules, url.Values{"whole": {strconv.FormatBool(whole)}}, nil)
}

// SetRules keeps records in place of those of the same names, and returns all that are kept.
func (c *Client) SetRules(ctx context.Context, f rules.File) (rules.File, error) {
	return call[rules.File](ctx, c, http.MethodPost, wire.PathRules, nil, f)
}

// DropRule deletes a record: of kind account, qos, partition or reservation.
func (c *Client) DropRule(ctx context.Context, kind, name string) (rules.File, error) {
	return call[rules.File](ctx, c, http.MethodDelete, wire.PathRules+"/"+url.PathEscape(kind)+"/"+url.PathEscape(name), nil, nil)
}

// Accounts returns all accounts, each with its users after it, and how they stand.
func (c *Client) Accounts(ctx context.Context) ([]wire.Account, error) {
	return call[[]wire.Account](ctx, c, http.MethodGet, wire.PathAccounts, nil, nil)
}
