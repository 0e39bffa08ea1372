package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/client"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// A verified is what can be said of a certificate in a file.
type verified struct {
	Certificate certificate.Certificate `json:"certificate"`
	Verdict     string                  `json:"verdict"` // valid, invalid
	Why         string                  `json:"why"`
}

func (a *app) certVerifyCmd() *cobra.Command {
	var keyFile string
	cmd := a.command(spec{
		use: "verify FILE", short: "Check a certificate that was given to you: signature, dates, and whether it still stands", args: cobra.ExactArgs(1), local: true,
		long: `FILE is what assay cert show NODE -o json writes; - is standard input. With --keys, a file with what the API's /v1/keys gives, nothing
is asked of the control plane, and only signature and dates are checked. Otherwise the control plane is asked for its keys,
and whether the node holds this certificate now. Exits 1 when it is not valid, 2 when its key is not known.`,
		example: "  assay cert show gpu003 -o json >cert.json && assay cert verify cert.json",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&keyFile, "keys", "", "file with the fleet's public keys, as the API's /v1/keys gives them")
		},
		run: func(ctx context.Context, _ *client.Client, args []string) error {
			k, err := a.readCertificate(args[0])
			if err != nil {
				return err
			}
			if keyFile != "" {
				var keys wire.Keys
				data, err := os.ReadFile(keyFile)
				if err == nil {
					err = json.Unmarshal(data, &keys)
				}
				if err != nil {
					return &usageError{"keys: " + err.Error(), "want what the API's /v1/keys gives"}
				}
				return a.verdict(k, keys, nil)
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			defer c.Close()
			keys, err := c.Keys(ctx)
			if err != nil {
				return err
			}
			all, err := c.Certificates(ctx)
			if err != nil {
				return err
			}
			return a.verdict(k, keys, all)
		},
	})
	return cmd
}

func (a *app) readCertificate(name string) (k certificate.Certificate, err error) {
	var data []byte
	if name == "-" {
		data, err = io.ReadAll(io.LimitReader(a.in, 1<<20))
	} else {
		data, err = os.ReadFile(name)
	}
	if err == nil {
		err = json.Unmarshal(data, &k)
	}
	if err == nil && (k.Serial == 0 || k.Node == "") {
		err = fmt.Errorf("%s: no certificate: it has no serial or no node", name)
	}
	if err != nil {
		return k, &usageError{err.Error(), "want what assay cert show NODE -o json writes"}
	}
	return k, nil
}

// verdict judges k; held are all certificates that stand now, nil when nobody was asked.
func (a *app) verdict(k certificate.Certificate, keys wire.Keys, held []certificate.Certificate) error {
	if err := certificate.Verify(k, keys.Trusted); err != nil {
		return err
	}
	v := verified{Certificate: k, Verdict: "valid", Why: fmt.Sprintf("signed with key %s, until %s", k.KeyID, a.when(k.Expires))}
	now := slices.IndexFunc(held, func(x certificate.Certificate) bool { return x.Node == k.Node })
	switch {
	case !a.now().Before(k.Expires):
		v.Verdict, v.Why = "invalid", "it expired at "+a.when(k.Expires)
	case held != nil && now < 0:
		v.Verdict, v.Why = "invalid", k.Node+" holds no certificate any more: it was revoked"
	case held != nil && held[now].Serial != k.Serial:
		v.Verdict, v.Why = "invalid", fmt.Sprintf("%s holds certificate %d now", k.Node, held[now].Serial)
	case held == nil:
		v.Why += "; whether it was revoked since was not asked"
	}
	err := a.emit(v, func() error {
		return a.facts([2]string{"Certificate", fmt.Sprintf("%d of %s, %s, %s", k.Serial, clean(k.Node), k.Level, count(len(k.GPUs), "GPU"))},
			[2]string{"Verdict", v.Verdict}, [2]string{"Why", clean(v.Why)}, [2]string{"Not tested", clean(strings.Join(k.NotTested, ", "))})
	})
	if err == nil && v.Verdict != "valid" {
		return errFault
	}
	return err
}

func (a *app) certRotateCmd() *cobra.Command {
	var reason string
	return a.command(spec{
		use: "rotate --reason TEXT", short: "Have another key sign certificates from now on", args: cobra.NoArgs,
		long: `The key before stays trusted by every agent, so no certificate ends. It is refused while a certificate rests on a key still
older: that one would no longer be trusted.`,
		example: "  assay cert rotate --reason 'yearly'",
		flags:   func(cmd *cobra.Command) { reasonFlag(cmd, &reason) },
		run: func(ctx context.Context, c *client.Client, _ []string) error {
			keys, err := c.RotateKey(ctx, reason)
			if err != nil {
				return err
			}
			return a.emit(keys, func() error {
				var ids []string
				for id := range keys.Trusted {
					ids = append(ids, id)
				}
				slices.Sort(ids)
				return a.facts([2]string{"Signs", keys.Current}, [2]string{"Since", a.when(keys.Since)}, [2]string{"Trusted", strings.Join(ids, ", ")})
			})
		},
	})
}
