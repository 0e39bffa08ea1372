package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/authority"
	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

func (a *app) operatorCmd() *cobra.Command {
	return a.groupCmd("operator", "Give people access from elsewhere", "  assay operator issue alice", a.operatorIssueCmd())
}

func (a *app) operatorIssueCmd() *cobra.Command {
	var dir string
	role := string(authority.RoleOperator)
	ttl := policy.Duration(30 * 24 * time.Hour)
	return a.command(spec{
		use: "issue NAME", short: "Make an operator's certificate", args: cobra.ExactArgs(1),
		long: `Writes NAME.crt, NAME.key and ca.crt into a directory. The private key is made here and never leaves; whoever has it is
NAME until the certificate expires.

The certificate carries a role, and each may do what the one before it may:
  viewer    reads everything and changes nothing
  user      submits jobs; cancels, holds, releases and requeues its own. They run as the user of that name
  operator  deals with nodes, cases, tickets and all jobs; freezes and thaws; withdraws a rollout
  admin     policy, accounts, keys, operators; enrols and retires nodes; guard reset

Root on the control host is an admin without a certificate. A call beyond a role is refused, and stands in assay audit.`,
		example: `  assay operator issue alice --dir alice-assay
  assay operator issue carol --role user
  assay operator issue grafana --role viewer --ttl 90d
  assay --server https://control1:7420 --cert alice.crt --key alice.key --ca ca.crt fleet`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVarP(&dir, "dir", "d", ".", "directory for the files; it is made if need be")
			cmd.Flags().StringVar(&role, "role", role, "what it allows: viewer, user, operator or admin")
			cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions([]string{"viewer", "user", "operator", "admin"}, cobra.ShellCompDirectiveNoFileComp))
			durationFlag(cmd, &ttl, "ttl", "how long the certificate is good")
		},
		run: func(ctx context.Context, c *client.Client, args []string) error {
			name := args[0]
			if !authority.ValidName(name) {
				return &usageError{fmt.Sprintf("%q is no operator's name", name), "letters, digits, dot, dash and underscore"}
			}
			if _, err := authority.ParseRole(role); err != nil {
				return &usageError{fmt.Sprintf("--role %q: no such role", role), "viewer, user, operator and admin are"}
			}
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			files := []string{filepath.Join(dir, name+".key"), filepath.Join(dir, name+".crt"), filepath.Join(dir, "ca.crt")}
			for _, f := range files[:2] {
				if _, err := os.Lstat(f); !errors.Is(err, fs.ErrNotExist) {
					return &refusal{f + " is there already", "remove it, or name another directory with --dir"}
				}
			}
			csr, key, err := authority.NewRequest(name)
			if err != nil {
				return err
			}
			got, err := c.IssueOperator(ctx, wire.OperatorAsk{Name: name, Role: role, CSR: csr, TTL: ttl.D().String()})
			if err != nil {
				return err
			}
			for i, data := range [][]byte{key, got.Certificate, got.CA} {
				mode := fs.FileMode(0o644)
				if i == 0 {
					mode = 0o600
				}
				if err := os.WriteFile(files[i], data, mode); err != nil {
					return err
				}
				fmt.Fprintln(a.out, files[i])
			}
			if len(got.URLs) > 0 {
				fmt.Fprintf(a.err, "try: assay --server %s --cert %s --key %s --ca %s fleet\n", got.URLs[0], files[1], files[0], files[2])
			}
			return nil
		},
	})
}
