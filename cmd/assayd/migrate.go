package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator"
	"github.com/assay-gpu/assay/coordinator/store"
)

func migrateCommand() *cobra.Command {
	var f storeFlags
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Move the embedded store to an external etcd",
		Long: `migrate copies what the embedded store of this host holds to the etcd of --etcd-endpoints, which must hold nothing of assay's.
Stop assayd first; agents may run on, and hooks go on with the certificates they hold. Nothing is void afterwards: nobody wrote
meanwhile. The embedded store stays as it is; move it away once the new one serves.`,
		Example: "  systemctl stop assayd\n  assayd migrate --config /etc/assay/assayd.yaml --etcd-endpoints https://etcd1:2379,https://etcd2:2379,https://etcd3:2379\n  systemctl start assayd   # with etcd_endpoints in its config",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := load(f.file, cmd.Flags())
			if err != nil {
				return err
			}
			if len(c.EtcdEndpoints) == 0 {
				return usageError{errors.New("--etcd-endpoints: where to?")}
			}
			log := newLogger(c)
			to, err := openStore(cmd.Context(), c, log)
			if err != nil {
				return err
			}
			defer to.close()
			c.EtcdEndpoints, c.EtcdCA, c.EtcdCert, c.EtcdKey = nil, "", "", ""
			from, err := openStore(cmd.Context(), c, log)
			if err != nil {
				return err
			}
			defer from.close()
			keys, err := coordinator.Move(cmd.Context(), from.store, to.store)
			if errors.Is(err, store.ErrNotEmpty) {
				return usageError{fmt.Errorf("the external etcd: %w", err)}
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d keys moved; name the endpoints in assayd's config, and move %s away when it serves\n", keys, filepath.Join(c.StateDir, "etcd"))
			return nil
		},
	}
	f.bind(cmd)
	return cmd
}
