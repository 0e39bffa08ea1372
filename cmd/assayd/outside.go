package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"github.com/assay-gpu/assay/coordinator/rma"
)

// A webhook sends pages as JSON to a URL.
type webhook struct{ url string }

// Page posts {"node","reason","text","at"}; any status but 2xx is an error.
func (w *webhook) Page(ctx context.Context, node, reason, text string) error {
	body, err := json.Marshal(map[string]string{"node": node, "reason": reason, "text": text, "at": time.Now().UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	return w.post(ctx, body)
}

// Tell posts an RMA ticket.
func (w *webhook) Tell(ctx context.Context, t rma.Ticket) error {
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, hookDeadline)
	defer cancel()
	return w.post(ctx, body)
}

func (w *webhook) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("webhook %s: %s", w.url, resp.Status)
	}
	return nil
}

// powerDeadline bounds the site's power-cycle command.
const powerDeadline = 2 * time.Minute

// A command is a program of the site's with its first arguments.
type command []string

// Cycle runs the command with the node's name as its last argument.
func (c command) Cycle(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, powerDeadline, fmt.Errorf("%s: no answer in %s", c[0], powerDeadline))
	defer cancel()
	out, err := exec.CommandContext(ctx, c[0], append(append([]string{}, c[1:]...), node)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", c[0], node, err, strings.TrimSpace(string(out[:min(len(out), 512)])))
	}
	return nil
}

// hookDeadline bounds one call of the site's ticket system.
const hookDeadline = 30 * time.Second

// Tell runs the command with the ticket as JSON on its standard input.
func (c command) Tell(ctx context.Context, t rma.Ticket) error {
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, hookDeadline, fmt.Errorf("%s: no answer in %s", c[0], hookDeadline))
	defer cancel()
	cmd := exec.CommandContext(ctx, c[0], c[1:]...)
	cmd.Stdin, cmd.WaitDelay = bytes.NewReader(body), time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", c[0], err, strings.TrimSpace(string(out[:min(len(out), 512)])))
	}
	return nil
}
