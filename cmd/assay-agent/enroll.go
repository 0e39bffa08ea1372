package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-gpu/assay/agent/identity"
)

func newEnroll() *cobra.Command {
	var token, stateDir string
	c := &cobra.Command{
		Use: "enroll --token TOKEN", Short: "Turn a token into this node's identity", Args: usageArgs(cobra.NoArgs),
		Long: "Enroll makes a key, which never leaves the node, and has the control plane certify it. The token is printed by\n" +
			"`assay node enroll NODE` on the control host and works once. A daemon that runs takes the identity up by itself.",
		Example: "  assay-agent enroll --token assay1.eyJ1…\n  ssh control assay node enroll gpu001 | assay-agent enroll --token -",
	}
	c.Flags().StringVar(&token, "token", "", "the `TOKEN`; - takes the first one on standard input")
	c.Flags().StringVar(&stateDir, "state-dir", defaults().StateDir, "where the identity is kept: `DIR`")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if token == "" {
			return usage(errors.New("no --token: make one on the control host with: assay node enroll NODE"))
		}
		if token == "-" {
			data, err := io.ReadAll(io.LimitReader(c.InOrStdin(), 64<<10))
			if err != nil {
				return err
			}
			token = firstToken(string(data))
		}
		id, err := identity.Enroll(c.Context(), stateDir, strings.TrimSpace(token))
		if err != nil {
			return &exitError{exitFault, err}
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "enrolled as %s with %s\n", id.Node, strings.Join(id.URLs, ", "))
		return err
	}
	return c
}

// firstToken is the first word that is a token: what is piped in may be the table that `assay node enroll` prints.
func firstToken(text string) string {
	for word := range strings.FieldsSeq(text) {
		if strings.HasPrefix(word, "assay1.") {
			return word
		}
	}
	return text
}

// socketPath is where to ask a running agent: the socket given, else the node's own if it is there, else the common one.
func socketPath(runDir, socket, node string) string {
	if socket != "" {
		return socket
	}
	if node == "" {
		node = os.Getenv("SLURMD_NODENAME")
	}
	if node != "" && !strings.ContainsRune(node, '/') {
		own := runDir + "/" + node + ".sock"
		if _, err := os.Stat(own); err == nil {
			return own
		}
	}
	return runDir + "/agent.sock"
}
