package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator"
	"github.com/assay-gpu/assay/coordinator/store"
)

// A storeFlags names the store of a command that is not serve: as serve would have it, by its file and flags.
type storeFlags struct {
	file  string
	flags config
}

func (f *storeFlags) bind(cmd *cobra.Command) {
	f.flags = defaults()
	cmd.Flags().StringVar(&f.file, "config", "", "config file of assayd serve")
	f.flags.bind(cmd.Flags())
}

func backupCommand() *cobra.Command {
	var f storeFlags
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write everything that is stored to a file",
		Long: `backup writes state, history, cases, tickets, certificate authority and keys, as they stand at one moment, to a new file that
only its owner may read. It works beside a running assayd, and on one host of several is enough. Evidence is not in it: copy
the evidence directory of the state directory as well.`,
		Example: "  assayd backup --config /etc/assay/assayd.yaml /var/backups/assay-$(date +%F).gz",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := load(f.file, cmd.Flags())
			if err != nil {
				return err
			}
			st, closer, err := openBeside(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer closer()
			keys, err := writeNew(args[0], func(w *os.File) (int, error) {
				return coordinator.Backup(cmd.Context(), st, w, time.Now())
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d keys\n", args[0], keys)
			return nil
		},
	}
	f.bind(cmd)
	return cmd
}

// openBeside opens the store that an assayd of this host may be serving, or, where none does, opens it itself.
func openBeside(ctx context.Context, c config) (*store.Store, func(), error) {
	log := newLogger(c)
	if len(c.EtcdEndpoints) == 0 {
		st, _, err := beside(ctx, c)
		if err != nil {
			return nil, nil, err
		}
		if st != nil {
			return st, func() { _ = st.Close() }, nil // read from only
		}
		if _, err := os.Stat(c.etcdDir()); errors.Is(err, fs.ErrNotExist) {
			return nil, nil, usageError{fmt.Errorf("%s holds no store: is --state-dir right?", c.StateDir)}
		}
	}
	o, err := openStore(ctx, c, log)
	if err != nil {
		return nil, nil, err
	}
	return o.store, o.close, nil
}

// beside opens the embedded store that an assayd of this host serves; nil when none does.
func beside(ctx context.Context, c config) (st *store.Store, endpoint string, err error) {
	sock := filepath.Join(c.etcdDir(), "etcd.sock")
	conn, err := net.DialTimeout("unix", sock, time.Second)
	if err != nil {
		return nil, "", nil
	}
	conn.Close()
	st, err = store.Open(ctx, store.Config{Endpoints: []string{"unix://" + sock}, Logger: newLogger(c)})
	return st, "unix://" + sock, err
}

// writeNew writes a file that was not there, whole or not at all.
func writeNew(name string, write func(*os.File) (int, error)) (n int, err error) {
	if _, err := os.Lstat(name); err == nil {
		return 0, usageError{fmt.Errorf("%s: there is a file already", name)}
	}
	f, err := os.OpenFile(name+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, usageError{err}
	}
	defer os.Remove(name + ".part") // renamed away when all went well
	n, err = write(f)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	return n, os.Rename(name+".part", name)
}

func restoreCommand() *cobra.Command {
	var f storeFlags
	var check bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Fill an empty store from a backup",
		Long: `restore fills a store that holds nothing. Stop every assayd first, and move the old state away. What the backup cannot know is
not believed: every certificate, pending effect and enrolment token is void, and the policy observes. Start assayd, wait until
the nodes have reported, look at assay fleet, then let it act again with assay guard reset.`,
		Example: "  assayd restore --check /var/backups/assay-2026-11-29.gz\n  assayd restore --config /etc/assay/assayd.yaml /var/backups/assay-2026-11-29.gz",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := load(f.file, cmd.Flags())
			if err != nil {
				return err
			}
			in, err := os.Open(args[0])
			if err != nil {
				return usageError{err}
			}
			defer in.Close()
			out := coordinator.Restored{}
			if check {
				out, err = coordinator.CheckBackup(in, time.Now())
			} else {
				out, err = restoreInto(cmd.Context(), c, in)
			}
			if err != nil {
				return err
			}
			did := "restored"
			if check {
				did = "sound"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: backup of %s, %d keys, %d nodes; void: %d certificates, %d pending effects\n",
				did, out.At.Format(time.RFC3339), out.Keys, out.Nodes, out.Voided, out.Effects)
			return nil
		},
	}
	f.bind(cmd)
	cmd.Flags().BoolVar(&check, "check", false, "only read the backup, and say what is in it")
	return cmd
}

func restoreInto(ctx context.Context, c config, in *os.File) (coordinator.Restored, error) {
	c.EtcdPeer = "" // the authority that its peers' certificates need is in the backup
	o, err := openStore(ctx, c, newLogger(c))
	if err != nil {
		return coordinator.Restored{}, err
	}
	defer o.close()
	out, err := coordinator.Restore(ctx, o.store, in, time.Now())
	if errors.Is(err, store.ErrNotEmpty) {
		return out, usageError{fmt.Errorf("%w; stop assayd and move %s away first", err, c.etcdDir())}
	}
	return out, err
}
