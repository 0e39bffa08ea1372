package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestBypass(t *testing.T) {
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	past := time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	for _, tt := range []struct {
		name, text string
		mode       os.FileMode
		on         bool
		message    string // part
	}{
		{"holds until it expires", "owner: alice\nreason: agent upgrade, change 4711\nexpires: " + soon + "\n", 0o644, true, "bypassed until " + soon + " by alice: agent upgrade, change 4711"},
		{"holds with other lines and blanks", "# note\n\n  owner :  alice \nreason: x\nexpires: " + soon + "\r\nticket: 1", 0o644, true, "by alice: x"},
		{"ends by itself", "owner: alice\nreason: x\nexpires: " + past + "\n", 0o644, false, "it expired at " + past + " (alice: x)"},
		{"needs an owner", "reason: x\nexpires: " + soon + "\n", 0o644, false, "it needs lines"},
		{"needs a reason", "owner: alice\nreason:\nexpires: " + soon + "\n", 0o644, false, "it needs lines"},
		{"needs an end", "owner: alice\nreason: x\n", 0o644, false, "it needs lines"},
		{"needs an end in full", "owner: alice\nreason: x\nexpires: tomorrow\n", 0o644, false, "tomorrow is no time"},
		{"an empty file is none", "", 0o644, false, "it needs lines"},
		{"not from a file all may write", "owner: eve\nreason: x\nexpires: " + soon + "\n", 0o666, false, "not be writable by all"},
		{"junk is none", "\x00\xff\x1b[2J", 0o644, false, "it needs lines"},
	} {
		path := filepath.Join(t.TempDir(), "bypass")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, tt.mode); err != nil {
			t.Fatal(err)
		}
		message, on := bypass(path)
		if on != tt.on || !strings.Contains(message, tt.message) {
			t.Errorf("%s: bypass = %q, %v; want %q, %v", tt.name, message, on, tt.message, tt.on)
		}
	}
}

// What stands at the bypass file's place and is no file must neither bypass nor hang the hook.
func TestBypassOddFiles(t *testing.T) {
	dir := t.TempDir()
	if message, on := bypass(filepath.Join(dir, "none")); message != "" || on {
		t.Errorf("no file: %q, %v", message, on)
	}
	if message, on := bypass(dir); on || message == "" {
		t.Errorf("a directory: %q, %v", message, on)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if message, on := bypass(fifo); on || !strings.Contains(message, "no regular file") {
		t.Errorf("a fifo: %q, %v", message, on)
	}
}
