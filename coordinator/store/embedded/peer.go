package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

// A Peer is how a member and those of other hosts meet: over TLS 1.3, each end with a certificate of the fleet's authority
// that is a member's. Nothing else that the authority has signed is let in.
type Peer struct {
	URL      string            // https://HOST:PORT at which the others reach this one; it listens on the port
	CA       string            // file with the authority's certificate, PEM
	Identity string            // file with certificate and key, PEM, read anew for each connection
	Name     string            // the common name that a member's certificate has
	Others   map[string]string // when Dir is empty: the members that there are, their peer URLs by name; nil: a cluster of one is founded
}

// into makes etcd's configuration that of a member with peers.
func (p *Peer) into(c *embed.Config) error {
	u, err := url.Parse(p.URL)
	if err != nil || u.Scheme != "https" || u.Port() == "" {
		return fmt.Errorf("etcd peer URL %q: want https://HOST:PORT", p.URL)
	}
	listen := *u
	if net.ParseIP(u.Hostname()) == nil {
		listen.Host = "0.0.0.0:" + u.Port() // a name may mean another address tomorrow
	}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{listen}, []url.URL{*u}
	c.PeerTLSInfo = transport.TLSInfo{
		CertFile: p.Identity, KeyFile: p.Identity, TrustedCAFile: p.CA, ClientCertAuth: true,
		AllowedCNs: []string{p.Name}, SkipClientSANVerify: true, // a peer may come from an address that is not its name's
	}
	c.TlsMinVersion = "TLS1.3"
	c.ElectionMs = uint(electionMany.Milliseconds())
	c.SnapshotCatchUpEntries = embed.NewConfig().SnapshotCatchUpEntries
	members := []string{c.Name + "=" + p.URL}
	for name, at := range p.Others {
		members = append(members, name+"="+at)
	}
	c.InitialCluster = strings.Join(members, ",")
	if len(p.Others) > 0 {
		c.ClusterState = embed.ClusterStateFlagExisting
	}
	return nil
}

// Learner reports whether the member has no vote yet. Then it answers no linearizable read.
func (s *Server) Learner() bool { return s.etcd.Server.IsLearner() }

// Applied is the index of the last entry of raft's log that the member has applied.
func (s *Server) Applied() uint64 { return s.etcd.Server.AppliedIndex() }

// How often a learner asks for its vote, and how long one answer may take.
const (
	promoteEvery = 500 * time.Millisecond
	promoteWait  = 5 * time.Second
)

// Promote gives a learner its vote as soon as the leader finds that it has caught up. It is asked again and again until ctx ends,
// and told of each try that came too early. A member that votes already is left as it is.
func (s *Server) Promote(ctx context.Context, told func(why error)) error {
	for s.Learner() {
		call, cancel := context.WithTimeout(ctx, promoteWait)
		_, err := s.etcd.Server.PromoteMember(call, uint64(s.etcd.Server.MemberID()))
		cancel()
		if err != nil {
			told(err)
		}
		select {
		case <-time.After(promoteEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.etcd.Server.StopNotify():
			return s.why(errStopped)
		}
	}
	return nil
}

var errStopped = errors.New("it stopped")

// ErrRemoved says that the others have removed this member.
var ErrRemoved = errors.New("this member was removed from the control plane by another control host")

// why is err, or what is known to be behind it.
func (s *Server) why(err error) error {
	if s.etcd.Server.IsIDRemoved(uint64(s.etcd.Server.MemberID())) {
		return ErrRemoved
	}
	return err
}
