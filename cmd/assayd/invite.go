package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/store"
)

func inviteCommand() *cobra.Command {
	var f storeFlags
	var at, file string
	cmd := &cobra.Command{
		Use:   "invite NAME",
		Short: "Let another host join the control plane",
		Long: `invite adds a host to the embedded etcd of the control hosts, as a learner without a vote, and writes the invitation that
assayd join takes there: its certificate and key, and whom to ask. Run it on a control host whose assayd runs with etcd_peer in its
config. It can be run again. The file is as secret as the fleet: carry it over yourself, and remove it afterwards.

Two control hosts stop when either is down; three go on without one. So invite two.`,
		Example: "  assayd invite --config /etc/assay/assayd.yaml ctl2 --at https://ctl2:7421 --write ctl2.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := load(f.file, cmd.Flags())
			if err != nil {
				return err
			}
			return invite(cmd.Context(), cmd, c, args[0], at, file)
		},
	}
	f.bind(cmd)
	cmd.Flags().StringVar(&at, "at", "", "etcd_peer of the new host: https://HOST:PORT at which the others will reach it")
	cmd.Flags().StringVar(&file, "write", "", "file for the invitation; it must not be there yet")
	return cmd
}

func invite(ctx context.Context, cmd *cobra.Command, c config, name, at, file string) error {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "https" || u.Port() == "" || file == "" {
		return usageError{fmt.Errorf("--at %q and --write %q: want https://HOST:PORT, and a file", at, file)}
	}
	if !authority.ValidName(name) {
		return usageError{fmt.Errorf("%q is no name: letters, digits, dot, dash and underscore", name)}
	}
	st, status, closer, err := membersBeside(ctx, c)
	if err != nil {
		return err
	}
	defer closer()
	members, err := st.Members(ctx)
	if err != nil {
		return err
	}
	in := invitation{Format: invitationFormat, Fleet: c.Fleet, Name: name, URL: at, Members: map[string]string{}, Index: status.Index, At: time.Now().UTC()}
	for _, m := range members {
		switch {
		case m.URL == at && m.Name == "": // invited before
			continue
		case m.URL == at, m.Name == name:
			return usageError{fmt.Errorf("%s at %s is a control host already; assayd leave %s removes one that is gone", m.Name, m.URL, m.Name)}
		case m.ID == status.Self && m.URL != c.EtcdPeer:
			return usageError{fmt.Errorf("this host's etcd has no peers yet: name etcd_peer in its config and restart assayd")}
		}
		in.Members[m.Name] = m.URL
	}
	auth, err := coordinator.StoredAuthority(ctx, st)
	if err != nil {
		return err
	}
	in.CA = auth.CertPEM()
	if in.Identity, err = auth.Member([]string{u.Hostname()}, memberTTL); err != nil {
		return err
	}
	if err := st.AddLearner(ctx, at); err != nil {
		return err
	}
	if _, err := writeNew(file, func(w *os.File) (int, error) { return 1, json.NewEncoder(w).Encode(in) }); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s is invited: carry %s over, and run assayd join there\n", name, file)
	return nil
}

// membersBeside opens the store of the assayd that runs on this host, with how its etcd stands.
func membersBeside(ctx context.Context, c config) (*store.Store, store.MemberStatus, func(), error) {
	if len(c.EtcdEndpoints) > 0 {
		return nil, store.MemberStatus{}, nil, usageError{fmt.Errorf("the etcd of etcd_endpoints is your own: change its members with etcdctl")}
	}
	st, endpoint, err := beside(ctx, c)
	if err != nil {
		return nil, store.MemberStatus{}, nil, err
	}
	if st == nil {
		return nil, store.MemberStatus{}, nil, fmt.Errorf("no assayd serves %s on this host: start it first", c.StateDir)
	}
	closer := func() { _ = st.Close() } // nothing is under way
	status, err := st.Status(ctx, endpoint)
	if err != nil {
		closer()
		return nil, store.MemberStatus{}, nil, err
	}
	return st, status, closer, nil
}

func membersCommand() *cobra.Command {
	var f storeFlags
	cmd := &cobra.Command{
		Use:     "members",
		Short:   "List the control hosts whose embedded etcd holds the state",
		Example: "  assayd members --config /etc/assay/assayd.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := load(f.file, cmd.Flags())
			if err != nil {
				return err
			}
			st, status, closer, err := membersBeside(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer closer()
			members, err := st.Members(cmd.Context())
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tPEER URL\tSTANDS")
			for _, m := range members {
				fmt.Fprintf(w, "%s\t%s\t%s\n", m.Name, m.URL, standing(m, status.Self))
			}
			return w.Flush()
		},
	}
	f.bind(cmd)
	return cmd
}

func standing(m store.Member, self uint64) string {
	switch {
	case m.Name == "":
		return "invited"
	case m.Learner:
		return "joining"
	case m.ID == self:
		return "votes, this host"
	}
	return "votes"
}

func leaveCommand() *cobra.Command {
	var f storeFlags
	cmd := &cobra.Command{
		Use:   "leave NAME",
		Short: "Remove a control host that is stopped or dead",
		Long: `leave removes a host from the embedded etcd of the control hosts, for good, or takes an invitation back (named by its URL). Run it
on another control host, after assayd was stopped there. What the removed one stored is of no use to anybody: move it away
before the host is invited again. It is refused where those that are left would have no majority.`,
		Example: "  assayd leave --config /etc/assay/assayd.yaml ctl3",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := load(f.file, cmd.Flags())
			if err != nil {
				return err
			}
			st, status, closer, err := membersBeside(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer closer()
			members, err := st.Members(cmd.Context())
			if err != nil {
				return err
			}
			i := slices.IndexFunc(members, func(m store.Member) bool { return m.Name == args[0] || m.URL == args[0] })
			switch {
			case i < 0:
				return usageError{fmt.Errorf("%s is no control host: assayd members lists them", args[0])}
			case members[i].ID == status.Self:
				return usageError{fmt.Errorf("%s is this host: stop assayd here, and run this on another control host", args[0])}
			}
			if err := st.RemoveMember(cmd.Context(), members[i]); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is removed\n", args[0])
			return nil
		},
	}
	f.bind(cmd)
	return cmd
}
