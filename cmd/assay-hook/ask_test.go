package main

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// agent is a small agent: it reads a whole request and hands the connection to answer.
func agent(t *testing.T, answer func(conn net.Conn, request string)) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "agent.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				var req strings.Builder
				for r := bufio.NewScanner(conn); r.Scan() && r.Text() != ""; {
					req.WriteString(r.Text() + "\n")
				}
				answer(conn, req.String())
			}()
		}
	}()
	return socket
}

func says(text string) func(net.Conn, string) {
	return func(c net.Conn, _ string) { c.Write([]byte(text)) }
}

func TestAsk(t *testing.T) {
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	flood := strings.Repeat("all work and no play\n", 1<<16)
	for _, tt := range []struct {
		name    string
		answer  func(net.Conn, string)
		refused bool
		message string // whole, or the part of a long one
		err     string // part; "" for none
	}{
		{"a pass says nothing more", says("0\n"), false, "", ""},
		{"a refusal has its reason", says("1\nassay:Q-7F3K xid 79 GPU 3 off the bus\n"), true, "assay:Q-7F3K xid 79 GPU 3 off the bus", ""},
		{"several lines become one", says("0\nobserve: xid 79\nobserve: ecc\n"), false, "observe: xid 79; observe: ecc", ""},
		{"escape sequences are disarmed", says("1\n\x1b[2Jgone\x07\r\n\xff\n"), true, "[2Jgone; ?", ""},
		{"a hung agent is not waited for", func(net.Conn, string) { <-hang }, false, "", "no answer in time"},
		{"a closed connection is no refusal", func(net.Conn, string) {}, false, "", "closed without an answer"},
		{"half an answer is no refusal", says("1"), false, "", "closed without an answer"},
		{"ten is not one", says("10\n"), false, "", "which is no answer"},
		{"one with a carriage return is not one", says("1\r\n"), false, "", "which is no answer"},
		{"one with a space is not one", says(" 1\n"), false, "", "which is no answer"},
		{"junk is no refusal", says("\x00\x01\xfe\xff\x1b]0;junk"), false, "", "which is no answer"},
		{"an HTTP server is no agent", says("HTTP/1.1 400 Bad Request\r\n"), false, "", "which is no answer"},
		{"an endless first line is cut off", says(strings.Repeat("1", 1<<20)), false, "", "which is no answer"},
		{"an endless message is cut off", says("1\n" + flood), true, "all work and no play; all", ""},
		{"bytes may come one at a time", func(c net.Conn, _ string) {
			for _, b := range []byte("1\nslow") {
				c.Write([]byte{b})
				time.Sleep(5 * time.Millisecond)
			}
		}, true, "slow", ""},
		{"a verdict counts though its message hangs", func(c net.Conn, _ string) { c.Write([]byte("1\nbecause")); <-hang }, true, "because", ""},
		{"an agent that trickles junk does not stretch the budget", func(c net.Conn, _ string) {
			for range 1000 {
				if _, err := c.Write([]byte("0")); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		}, false, "", "which is no answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			socket := agent(t, tt.answer)
			start := time.Now()
			a := ask(socket, request("prolog", nil), now()+int64(400*time.Millisecond))
			if took := time.Since(start); took > 800*time.Millisecond {
				t.Errorf("took %v of a budget of 400 ms", took)
			}
			if a.refused != tt.refused || !strings.HasPrefix(a.message, tt.message) || len(a.message) > maxAnswer {
				t.Errorf("refused %v, message %.200q; want %v, %q", a.refused, a.message, tt.refused, tt.message)
			}
			if (a.err == "") != (tt.err == "") || !strings.Contains(a.err, tt.err) {
				t.Errorf("err = %q, want %q", a.err, tt.err)
			}
		})
	}
}

// What ends an answer is its empty line: an agent that is slow to close holds up no job.
func TestAskStopsAtTheEmptyLine(t *testing.T) {
	for text, want := range map[string]string{"0\n\n": "", "0\nobserve: xid 79\n\n": "observe: xid 79", "1\n\n": ""} {
		hold := make(chan struct{})
		socket := agent(t, func(c net.Conn, _ string) { c.Write([]byte(text)); <-hold })
		start := now()
		a := ask(socket, request("prolog", nil), start+10*second)
		if took := now() - start; took >= tail {
			t.Errorf("%q: waited %d ms for a stream that stays open", text, took/1_000_000)
		}
		close(hold)
		if a.err != "" || a.message != want || a.refused != (text[0] == '1') {
			t.Errorf("%q: %+v", text, a)
		}
	}
}

func TestAskWithoutAgent(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead.sock")
	l, err := net.Listen("unix", dead)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	file := filepath.Join(dir, "file.sock")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for socket, want := range map[string]string{
		dead: "nobody listens", file: "nobody listens", filepath.Join(dir, "none.sock"): "it is not there",
		filepath.Join(dir, strings.Repeat("x", 200)): "invalid argument",
	} {
		if a := ask(socket, request("prolog", nil), now()+second); !strings.Contains(a.err, want) || a.refused {
			t.Errorf("ask(%q) = %+v, want an error with %q", socket, a, want)
		}
	}
}

// An agent that accepts nobody has a full queue after a while; connect itself must then keep to the budget.
func TestAskFullQueue(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "agent.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var held []net.Conn
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	for range 10_000 {
		c, err := net.DialTimeout("unix", socket, 50*time.Millisecond)
		if err != nil {
			break
		}
		held = append(held, c)
	}
	start := time.Now()
	a := ask(socket, request("prolog", nil), now()+int64(300*time.Millisecond))
	if took := time.Since(start); !strings.Contains(a.err, "no answer in time") || took > time.Second {
		t.Errorf("ask = %+v after %v, want no answer in time within 300 ms", a, took)
	}
}

func TestSocketPath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "gpu001.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, node, want string }{
		{"a node's own socket", "gpu001", "gpu001.sock"},
		{"no socket of that name", "gpu002", "agent.sock"},
		{"no name", "", "agent.sock"},
		{"a name that climbs", "../../etc/x", "agent.sock"},
		{"a hidden name", ".gpu001", "agent.sock"},
		{"a name too long for a socket", strings.Repeat("n", 120), "agent.sock"},
	} {
		if got := socketPath(dir, tt.node); got != dir+"/"+tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
