// Package identity is who a node's agent is towards the control plane: its key, its certificate, the authority it
// trusts, and where the control plane is. Enroll makes it from a one-time token; the key never leaves the node.
package identity

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/assay-gpu/assay/agent/atomicfile"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Names of the files under STATE_DIR/identity.
const (
	fileCert    = "node.crt"
	fileKey     = "node.key"
	fileCA      = "ca.crt"
	fileControl = "control.json"
	fileLearned = "learned.json"
)

// An Identity is a node's standing with the control plane.
type Identity struct {
	Node string
	URLs []string
	TLS  *tls.Config
	Ends time.Time // when the node's certificate ends, by the wall clock
}

// control is control.json, and learned.json without the node.
type control struct {
	URLs []string `json:"urls"`
	Node string   `json:"node,omitempty"`
}

// Load reads the identity under stateDir. A node that was never enrolled gives an error that is fs.ErrNotExist.
func Load(stateDir string) (Identity, error) {
	dir := filepath.Join(stateDir, "identity")
	var c control
	found, err := atomicfile.ReadJSON(filepath.Join(dir, fileControl), &c)
	if err != nil {
		return Identity{}, fmt.Errorf("identity: %w", err)
	}
	if !found {
		return Identity{}, fmt.Errorf("identity: this node is not enrolled: %w", fs.ErrNotExist)
	}
	var pems [3][]byte
	for i, name := range []string{fileCA, fileCert, fileKey} {
		if pems[i], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return Identity{}, &BrokenError{err}
		}
	}
	cfg, err := authority.ClientTLS(pems[0], pems[1], pems[2])
	if err != nil {
		return Identity{}, &BrokenError{err}
	}
	var learned control
	if _, err := atomicfile.ReadJSON(filepath.Join(dir, fileLearned), &learned); err == nil && len(learned.URLs) > 0 {
		c.URLs = learned.URLs // one that cannot be read leaves those of the enrolment
	}
	id := Identity{Node: c.Node, URLs: c.URLs, TLS: cfg}
	if leaf, err := x509.ParseCertificate(cfg.Certificates[0].Certificate[0]); err == nil {
		id.Ends = leaf.NotAfter
	}
	return id, nil
}

// Learn remembers which control hosts there are, in place of those of the enrolment. Enrolling anew forgets them.
func Learn(stateDir string, urls []string) error {
	return atomicfile.WriteJSON(filepath.Join(stateDir, "identity", fileLearned), control{URLs: urls})
}

// A BrokenError says that a node was enrolled and its identity is damaged.
type BrokenError struct{ Err error }

func (e *BrokenError) Error() string { return "identity: " + e.Err.Error() }
func (e *BrokenError) Unwrap() error { return e.Err }

// Hint says how to make it anew.
func (e *BrokenError) Hint() string {
	return "make a new token on the control host (assay node enroll NODE), then: assay-agent enroll --token TOKEN"
}

// Enroll turns a token into the node's identity under stateDir. The server must prove with its certificate that it is
// the one the token names, before the secret is sent.
func Enroll(ctx context.Context, stateDir, tokenText string) (Identity, error) {
	token, err := authority.ParseToken(tokenText)
	if err != nil {
		return Identity{}, err
	}
	pinned, err := authority.PinnedTLS(token.CA)
	if err != nil {
		return Identity{}, err
	}
	csr, key, err := authority.NewRequest("node:" + token.Node)
	if err != nil {
		return Identity{}, err
	}
	got, err := ask(ctx, token, pinned, csr)
	if err != nil {
		return Identity{}, err
	}
	if fingerprint(got.CA) != token.CA {
		return Identity{}, &authority.PinError{Want: token.CA, Why: "the authority it sent has another fingerprint"}
	}
	if _, err := authority.ClientTLS(got.CA, got.Certificate, key); err != nil {
		return Identity{}, fmt.Errorf("enrol %s: what the control plane sent does not fit: %w", token.Node, err)
	}
	urls := got.URLs
	if len(urls) == 0 {
		urls = token.URLs
	}
	if err := save(stateDir, control{URLs: urls, Node: token.Node}, got, key); err != nil {
		return Identity{}, err
	}
	return Load(stateDir)
}

// fingerprint is the SHA-256 of a PEM certificate's DER form, in hex; empty when it is no PEM.
func fingerprint(cert []byte) string {
	block, _ := pem.Decode(cert)
	if block == nil {
		return ""
	}
	sum := sha256.Sum256(block.Bytes)
	return hex.EncodeToString(sum[:])
}

// save writes the identity. control.json goes last: without it the node does not count as enrolled.
func save(stateDir string, c control, got wire.Enrolled, key []byte) error {
	dir := filepath.Join(stateDir, "identity")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	if err := errors.Join(atomicfile.Remove(filepath.Join(dir, fileControl)), atomicfile.Remove(filepath.Join(dir, fileLearned))); err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{fileKey, key}, {fileCert, got.Certificate}, {fileCA, got.CA}} {
		if err := atomicfile.Write(filepath.Join(dir, f.name), f.data, 0o600); err != nil {
			return fmt.Errorf("identity: %w", err)
		}
	}
	return atomicfile.WriteJSON(filepath.Join(dir, fileControl), c)
}

// ask sends the request to one URL of the token after another until one answers. A follower names its leader.
func ask(ctx context.Context, t authority.Token, pinned *tls.Config, csr []byte) (wire.Enrolled, error) {
	body, err := json.Marshal(wire.Enroll{Node: t.Node, Secret: t.Secret, CSR: csr})
	if err != nil {
		return wire.Enrolled{}, err
	}
	client := &http.Client{
		Timeout:   20 * time.Second,
		Transport: &http.Transport{TLSClientConfig: pinned, ForceAttemptHTTP2: true},
	}
	defer client.CloseIdleConnections()
	var errs []error
	urls := append([]string(nil), t.URLs...)
	for i := 0; i < len(urls) && i < len(t.URLs)+3; i++ {
		got, leader, err := askOne(ctx, client, urls[i], body)
		if err == nil {
			return got, nil
		}
		errs = append(errs, err)
		if strings.HasPrefix(leader, "https://") {
			urls = append(urls[:i+1], append([]string{leader}, urls[i+1:]...)...)
		}
		var refused *RefusedError
		if errors.As(err, &refused) && refused.Code/100 == 4 && leader == "" {
			break // the token itself is at fault; it is so everywhere
		}
	}
	return wire.Enrolled{}, fmt.Errorf("enrol %s: %w", t.Node, errors.Join(errs...))
}

// A RefusedError is the control plane's no.
type RefusedError struct {
	URL     string
	Code    int
	Problem wire.Problem
}

func (e *RefusedError) Error() string {
	why := e.Problem.Detail
	if why == "" {
		why = e.Problem.Title
	}
	if why == "" {
		why = http.StatusText(e.Code)
	}
	return fmt.Sprintf("%s answered %d: %s", e.URL, e.Code, why)
}

// Hint is the control plane's own advice.
func (e *RefusedError) Hint() string { return e.Problem.Hint }

func askOne(ctx context.Context, client *http.Client, url string, body []byte) (got wire.Enrolled, leader string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(url, "/")+wire.PathEnroll, bytes.NewReader(body))
	if err != nil {
		return got, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return got, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return got, "", fmt.Errorf("%s: %w", url, err)
	}
	if resp.StatusCode/100 != 2 {
		e := &RefusedError{URL: url, Code: resp.StatusCode}
		_ = json.Unmarshal(data, &e.Problem) // junk leaves the status alone to say it
		if resp.StatusCode == http.StatusMisdirectedRequest {
			leader = e.Problem.Leader
		}
		return got, leader, e
	}
	if err := json.Unmarshal(data, &got); err != nil {
		return got, "", fmt.Errorf("%s: %w", url, err)
	}
	return got, "", nil
}
