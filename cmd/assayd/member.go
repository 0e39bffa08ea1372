package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/assay-gpu/assay/agent/atomicfile"
	"github.com/assay-gpu/assay/coordinator"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/store"
	"github.com/assay-gpu/assay/coordinator/store/embedded"
)

// A control host whose embedded etcd has peers keeps in member/ of its state directory what it meets them with: the
// authority's certificate, its own certificate and key, and the invitation that it joined by. They are files, because etcd
// needs them before it serves, and the authority is in etcd.
const (
	memberDir  = "member"
	caFile     = "ca.pem"
	pairFile   = "identity.pem"
	inviteFile = "invitation.json"
)

// memberTTL is how long a member's certificate holds. A running assayd makes it anew when half of that is over.
const (
	memberTTL  = 2 * 365 * 24 * time.Hour
	renewEvery = 24 * time.Hour
)

func (c config) member(file string) string { return filepath.Join(c.StateDir, memberDir, file) }
func (c config) etcdDir() string           { return filepath.Join(c.StateDir, "etcd") }

// peer is how this host's embedded etcd meets others.
func (c config) peer() *embedded.Peer {
	return &embedded.Peer{URL: c.EtcdPeer, CA: c.member(caFile), Identity: c.member(pairFile), Name: authority.MemberName}
}

// keep writes one of the files, whole or not at all.
func (c config) keep(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Join(c.StateDir, memberDir), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(c.member(file), data, 0o600)
}

// identify sees to it that this host has a member's certificate for the URL in its config that holds for half its life at least.
func (c config) identify(auth *authority.Authority, now time.Time) error {
	u, err := url.Parse(c.EtcdPeer)
	if err != nil {
		return err
	}
	if have, err := os.ReadFile(c.member(pairFile)); err == nil && fresh(have, u.Hostname(), now) {
		return nil
	}
	pair, err := auth.Member([]string{u.Hostname()}, memberTTL)
	if err != nil {
		return err
	}
	return errors.Join(c.keep(caFile, auth.CertPEM()), c.keep(pairFile, pair))
}

func fresh(pair []byte, host string, now time.Time) bool {
	block, _ := pem.Decode(pair)
	if block == nil {
		return false
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	return err == nil && cert.VerifyHostname(host) == nil && cert.NotAfter.Sub(now) > memberTTL/2
}

// founded gives a host that has etcd_peer in its config for the first time its certificate: etcd is started without peers,
// to read or make the authority.
func founded(ctx context.Context, c config, log *slog.Logger) error {
	if _, err := os.Stat(c.member(pairFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("it does not serve without its peers; "+c.member(pairFile)+" is lost: invite and join this host anew"))
	defer cancel()
	alone := c
	alone.EtcdPeer = ""
	o, err := openStore(ctx, alone, log)
	if err != nil {
		return err
	}
	defer o.close()
	auth, err := coordinator.FoundAuthority(ctx, o.store, c.Name, c.Fleet, c.Lease.D())
	if err != nil {
		return err
	}
	return c.identify(auth, time.Now())
}

// settled brings the list of members up to date with this host's config: its URL may be another since it last ran.
func settled(ctx context.Context, c config, st *store.Store) (alone bool, err error) {
	members, err := st.Members(ctx)
	if err != nil {
		return false, err
	}
	for _, m := range members {
		if m.Name == c.Name && m.URL != c.EtcdPeer {
			if err := st.MoveMember(ctx, m.ID, c.EtcdPeer); err != nil {
				return false, err
			}
		}
	}
	return len(members) == 1, nil
}

// renew keeps the member's certificate from running out, until ctx ends.
func renew(ctx context.Context, c config, coord *coordinator.Coordinator, log *slog.Logger) error {
	if c.EtcdPeer == "" {
		return nil
	}
	auth, err := coord.Authority(ctx)
	for err == nil {
		if err := c.identify(auth, time.Now()); err != nil {
			log.Error("certificate for other control hosts not renewed", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(renewEvery):
		}
	}
	return quiet(ctx, err)
}

// An invitation is what a new control host joins by. It is as secret as the fleet.
type invitation struct {
	Format   string            `json:"format"` // "assay invitation 1"
	Fleet    string            `json:"fleet"`
	Name     string            `json:"name"`    // of the host that is invited, among the control hosts
	URL      string            `json:"url"`     // its etcd_peer
	Members  map[string]string `json:"members"` // those that there are: peer URLs by name
	Index    uint64            `json:"index"`   // of the newest entry of raft's log when it was made
	CA       []byte            `json:"ca"`      // PEM
	Identity []byte            `json:"identity"`
	At       time.Time         `json:"at"`
}

const invitationFormat = "assay invitation 1"

func readInvitation(file string) (in invitation, data []byte, err error) {
	if data, err = os.ReadFile(file); err != nil {
		return in, nil, usageError{err}
	}
	if err := json.Unmarshal(data, &in); err != nil || in.Format != invitationFormat || len(in.Members) == 0 {
		return in, nil, usageError{fmt.Errorf("%s: it is no invitation of this version, or not a whole one", file)}
	}
	return in, data, nil
}

// joinedBy is the invitation that this host joined by; nil when it founded its fleet.
func (c config) joinedBy() (*invitation, error) {
	in, _, err := readInvitation(c.member(inviteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &in, err
}
