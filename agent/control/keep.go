package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// KeepEvidence brings a file of a case's evidence to the control plane, trying until ctx ends. It returns an error at once
// when the file will never be taken.
func (c *Client) KeepEvidence(ctx context.Context, id, name, sum string, data []byte) (wire.EvidenceKept, error) {
	path := wire.PathKeep + "/" + sum + "?" + url.Values{"case": {id}, "name": {name}}.Encode()
	b := c.backoff()
	for {
		var kept wire.EvidenceKept
		resp, _, err := c.do(ctx, http.MethodPut, path, data)
		if err == nil {
			err = json.NewDecoder(resp.Body).Decode(&kept)
			resp.Body.Close()
			if err == nil {
				return kept, nil
			}
		}
		var se *StatusError
		if errors.As(err, &se) && (se.Final() || se.Code == http.StatusForbidden || se.Code == http.StatusUnauthorized || se.Code == http.StatusNotFound) {
			return kept, err
		}
		if !b.wait(ctx) {
			return kept, err
		}
	}
}
