package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A Space is how full the etcd is that this process is connected to.
type Space struct {
	Used  int64 // bytes of the database in use
	Size  int64 // bytes of its file, which never shrinks by itself
	Quota int64 // bytes that the file may have; 0: not told
	Full  bool  // the no-space alarm is on, anywhere in the cluster: etcd takes no writes until it is disarmed
}

// Fragmented reports whether a defragmentation is worth its pause: most of a file of some size is free.
func (p Space) Fragmented() bool { return p.Size >= fragmentedFrom && 2*p.Used < p.Size }

const (
	fragmentedFrom = 256 << 20       // bytes of a file below which nothing is gained
	defragWait     = 2 * time.Minute // a file of 8 GiB takes about one
)

// Space asks each endpoint, and gives the fullest.
func (s *Store) Space(ctx context.Context) (Space, error) {
	var p Space
	for _, e := range s.client.Endpoints() {
		one, err := s.status(ctx, e)
		if err != nil {
			return Space{}, err
		}
		if one.DbSize >= p.Size {
			p.Used, p.Size, p.Quota = one.DbSizeInUse, one.DbSize, one.DbSizeQuota
		}
	}
	ctx, cancel := s.call(ctx)
	defer cancel()
	alarms, err := s.client.AlarmList(ctx)
	if err != nil {
		return Space{}, fmt.Errorf("list etcd's alarms: %w", causeOf(ctx, err))
	}
	for _, a := range alarms.Alarms {
		p.Full = p.Full || a.Alarm == etcdserverpb.AlarmType_NOSPACE
	}
	return p, nil
}

func (s *Store) status(ctx context.Context, endpoint string) (*clientv3.StatusResponse, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	r, err := s.client.Status(ctx, endpoint)
	if err != nil {
		return nil, fmt.Errorf("status of etcd %s: %w", endpoint, causeOf(ctx, err))
	}
	return r, nil
}

// Reclaim gives room back: it compacts to the newest revision, defragments each endpoint, during which that one answers
// nothing, and disarms the no-space alarm if the file is below its quota then. It gives the space after it.
func (s *Store) Reclaim(ctx context.Context) (Space, error) {
	e, err := s.Get(ctx, leaderKey)
	if err != nil {
		return Space{}, err
	}
	if err := s.Compact(ctx, e.readAt); err != nil {
		return Space{}, err
	}
	for _, e := range s.client.Endpoints() {
		dctx, cancel := context.WithTimeoutCause(ctx, defragWait, fmt.Errorf("not done within %s", defragWait))
		_, err := s.client.Defragment(dctx, e)
		cancel()
		if err != nil {
			return Space{}, fmt.Errorf("defragment etcd %s: %w", e, causeOf(dctx, err))
		}
	}
	p, err := s.Space(ctx)
	if err != nil || !p.Full || p.Quota > 0 && p.Size >= p.Quota {
		return p, err
	}
	if err := s.disarm(ctx); err != nil {
		return p, err
	}
	return s.Space(ctx)
}

// disarm ends the no-space alarms that are on.
func (s *Store) disarm(ctx context.Context) error {
	ctx, cancel := s.call(ctx)
	defer cancel()
	alarms, err := s.client.AlarmList(ctx)
	if err != nil {
		return fmt.Errorf("list etcd's alarms: %w", causeOf(ctx, err))
	}
	var errs []error
	for _, a := range alarms.Alarms {
		if a.Alarm != etcdserverpb.AlarmType_NOSPACE {
			continue
		}
		if _, err := s.client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: a.MemberID, Alarm: a.Alarm}); err != nil {
			errs = append(errs, fmt.Errorf("disarm etcd's no-space alarm: %w", causeOf(ctx, err)))
		}
	}
	return errors.Join(errs...)
}
