package socket

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
)

// Ask sends one request to the agent on path and returns the answer's exit status and text.
func Ask(ctx context.Context, path, verb string, env map[string]string) (exit int, text string, err error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return 0, "", err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	var b strings.Builder
	fmt.Fprintf(&b, "ASSAY1 %s\n", verb)
	for _, n := range Names {
		if v, ok := env[n]; ok {
			fmt.Fprintf(&b, "%s=%s\n", n, v)
		}
	}
	b.WriteString("\n")
	if _, err := io.WriteString(c, b.String()); err != nil {
		return 0, "", fmt.Errorf("ask the agent on %s: %w", path, err)
	}
	data, err := io.ReadAll(io.LimitReader(c, 4<<20))
	if err != nil {
		return 0, "", fmt.Errorf("ask the agent on %s: %w", path, err)
	}
	first, rest, _ := strings.Cut(string(data), "\n")
	switch first {
	case "0":
	case "1":
		exit = 1
	default:
		return 0, "", fmt.Errorf("ask the agent on %s: it closed without an answer", path)
	}
	if verb != "status" {
		rest = strings.TrimSuffix(rest, "\n") // the empty line that ends a hook's answer
	}
	return exit, rest, nil
}
