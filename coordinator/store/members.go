package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// memberWait bounds a change of the members: it is a raft entry, and a leader that has just changed makes it wait.
const memberWait = 10 * time.Second

// A Member is one etcd of a cluster.
type Member struct {
	ID      uint64
	Name    string // empty: it was added, and has not started yet
	URL     string // where the other members reach it
	Learner bool   // it has no vote yet
}

// Members lists the members of etcd, by name.
func (s *Store) Members(ctx context.Context) ([]Member, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	r, err := s.client.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("list members: %w", causeOf(ctx, err))
	}
	return membersOf(r.Members), nil
}

func membersOf(from []*etcdserverpb.Member) []Member {
	var out []Member
	for _, m := range from {
		x := Member{ID: m.ID, Name: m.Name, Learner: m.IsLearner}
		if len(m.PeerURLs) > 0 {
			x.URL = m.PeerURLs[0]
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b Member) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return out
}

// A MembersError says that etcd refused to change its members. They are as they were.
type MembersError struct {
	Do  string // what was to be done
	Err error
}

func (e *MembersError) Error() string { return fmt.Sprintf("%s: %v", e.Do, e.Err) }
func (e *MembersError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *MembersError) Hint() string {
	switch {
	case errors.Is(e.Err, rpctypes.ErrTooManyLearners):
		return "one host joins at a time: let the one that was invited before finish, or take it back with assayd leave"
	case errors.Is(e.Err, rpctypes.ErrUnhealthy), errors.Is(e.Err, rpctypes.ErrMemberNotEnoughStarted):
		return "it would leave the members that run without a majority: start those that are down first"
	}
	return "see that most members run: assayd members"
}

// AddLearner adds a member without a vote, which others reach at url once it starts. It weighs nothing until it is promoted.
// One that is there already with that URL is left as it is.
func (s *Store) AddLearner(ctx context.Context, url string) error {
	have, err := s.Members(ctx)
	if err != nil || slices.ContainsFunc(have, func(m Member) bool { return m.URL == url }) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, memberWait)
	defer cancel()
	for {
		_, err := s.client.MemberAddAsLearner(ctx, []string{url})
		if err == nil {
			return nil
		}
		// etcd calls itself unhealthy until it has been connected to the others for five seconds.
		if !errors.Is(err, rpctypes.ErrUnhealthy) || ctx.Err() != nil {
			return &MembersError{"add " + url, err}
		}
		sleep(ctx, time.Second)
	}
}

// MoveMember says where the others reach a member from now on.
func (s *Store) MoveMember(ctx context.Context, id uint64, url string) error {
	ctx, cancel := context.WithTimeout(ctx, memberWait)
	defer cancel()
	if _, err := s.client.MemberUpdate(ctx, id, []string{url}); err != nil {
		return &MembersError{"tell the members of " + url, causeOf(ctx, err)}
	}
	return nil
}

// RemoveMember removes a member for good. One that is not there any more is no error. What it stored is of no use to anybody after.
func (s *Store) RemoveMember(ctx context.Context, m Member) error {
	ctx, cancel := context.WithTimeout(ctx, memberWait)
	defer cancel()
	if _, err := s.client.MemberRemove(ctx, m.ID); err != nil && !errors.Is(err, rpctypes.ErrMemberNotFound) {
		return &MembersError{"remove " + cmp.Or(m.Name, m.URL), causeOf(ctx, err)}
	}
	return nil
}

// A MemberStatus is who answers at an endpoint, and how far it is.
type MemberStatus struct {
	Self  uint64 // the member that answered
	Index uint64 // of the newest entry in its log
}

// Status asks one endpoint how it stands.
func (s *Store) Status(ctx context.Context, endpoint string) (MemberStatus, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	r, err := s.client.Status(ctx, endpoint)
	if err != nil {
		return MemberStatus{}, fmt.Errorf("status of %s: %w", endpoint, causeOf(ctx, err))
	}
	return MemberStatus{Self: r.Header.MemberId, Index: r.RaftIndex}, nil
}
