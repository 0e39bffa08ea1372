package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// OrderCase carries out take, give, note, extend or close on a case, and returns it after that.
func (c *Client) OrderCase(ctx context.Context, id, verb string, v wire.CaseVerb) (wire.Case, error) {
	return call[wire.Case](ctx, c, http.MethodPost, wire.PathCases+"/"+url.PathEscape(id)+"/"+verb, nil, v)
}

// Evidence writes a file of evidence to w. The error says so when it is not what sum, its SHA-256 in hex, says.
func (c *Client) Evidence(ctx context.Context, sum string, w io.Writer) error {
	resp, err := c.send(ctx, http.MethodGet, wire.PathEvidence+"/"+url.PathEscape(sum), nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, hash), resp.Body); err != nil {
		return &UnreachableError{c.where(), fmt.Errorf("evidence %.12s broke off: %w", sum, err)}
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return &UnreachableError{c.where(), fmt.Errorf("evidence %.12s came with the sum %.12s", sum, got)}
	}
	return nil
}
