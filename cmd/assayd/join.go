package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/store/embedded"
)

func joinCommand() *cobra.Command {
	var f storeFlags
	cmd := &cobra.Command{
		Use:   "join FILE",
		Short: "Make this host a control host of a fleet that has one",
		Long: `join takes the invitation that assayd invite made on another control host, starts the embedded etcd as a learner, which has
no vote, and copies what the others hold. Then start assayd: it gets its vote when it serves. Killed at any point, it can be run
again. The invitation is as secret as the fleet; remove it afterwards.`,
		Example: "  assayd join --config /etc/assay/assayd.yaml ctl2.json && systemctl enable --now assayd",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := load(f.file, cmd.Flags())
			if err != nil {
				return err
			}
			return join(cmd.Context(), c, args[0], cmd.OutOrStdout())
		},
	}
	f.bind(cmd)
	return cmd
}

func join(ctx context.Context, c config, file string, out io.Writer) error {
	in, data, err := readInvitation(file)
	if err != nil {
		return err
	}
	switch {
	case in.Name != c.Name:
		return usageError{fmt.Errorf("the invitation is for %s, and name in the config of this host is %s", in.Name, c.Name)}
	case in.URL != c.EtcdPeer:
		return usageError{fmt.Errorf("the invitation is for %s, and etcd_peer in the config of this host is %q", in.URL, c.EtcdPeer)}
	}
	if err := c.take(in, data); err != nil {
		return err
	}
	srv, err := startMember(ctx, c, newLogger(c))
	if err != nil {
		return &joinError{err}
	}
	defer srv.Close()
	if !srv.Learner() {
		fmt.Fprintf(out, "%s votes already; start assayd if it does not run\n", c.Name)
		return nil
	}
	if err := catchUp(ctx, srv, in.Index, out); err != nil {
		return &joinError{err}
	}
	fmt.Fprintf(out, "%s has caught up; start assayd, which gets it its vote, and remove %s\n", c.Name, file)
	return nil
}

// take puts what the invitation brings where assayd serve finds it. A store that came by another way is left alone.
func (c config) take(in invitation, data []byte) error {
	before, err := c.joinedBy()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(c.etcdDir())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	stored := slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "member" })
	if stored && (before == nil || !before.At.Equal(in.At)) {
		return usageError{fmt.Errorf("%s holds a store that is not from this invitation: stop assayd and move %s and %s away first", c.etcdDir(), c.etcdDir(), c.member(""))}
	}
	// The invitation comes last: with it the rest is there.
	return errors.Join(c.keep(caFile, in.CA), c.keep(pairFile, in.Identity), c.keep(inviteFile, data))
}

// lookEvery is how often a learner is looked at while it catches up.
const lookEvery = 200 * time.Millisecond

// catchUp waits until the learner has all that there was when it was invited, and tells how far it is.
func catchUp(ctx context.Context, srv *embedded.Server, to uint64, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(srv.Stopped(ctx)) }()
	told := time.Time{}
	for {
		have := srv.Applied()
		if time.Since(told) >= time.Second || have >= to {
			fmt.Fprintf(out, "copied %d of %d entries\n", min(have, to), to)
			told = time.Now()
		}
		if have >= to {
			return nil
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A joinError says that the etcd of a host that is to join does not run among the others.
type joinError struct{ error }

func (e *joinError) Unwrap() error { return e.error }
func (e *joinError) Error() string { return "join: " + e.error.Error() }

// Hint says what to do.
func (e *joinError) Hint() string {
	return "see that the other control hosts run and reach this one's etcd_peer; when a host has joined or left since the invitation was made, make it anew"
}
