package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// A bar shows on a terminal how far something has come, and when it will be done.
type bar struct {
	a       *app
	what    string
	on      bool
	began   time.Time
	shown   time.Time
	printed bool
}

// progress begins a bar on stderr; where that is no terminal it shows nothing.
func (a *app) progress(what string) *bar {
	f, ok := a.err.(*os.File)
	return &bar{a: a, what: what, on: ok && term.IsTerminal(int(f.Fd())), began: time.Now()}
}

// barWidth is the characters of a full bar, barEvery how often it is drawn.
const (
	barWidth = 30
	barEvery = 100 * time.Millisecond
)

func (b *bar) show(done, all int) {
	now := time.Now()
	if !b.on || all == 0 || now.Sub(b.shown) < barEvery {
		return
	}
	b.shown, b.printed = now, true
	fmt.Fprintf(b.a.err, "\r\x1b[K%s", barLine(b.what, done, all, now.Sub(b.began)))
}

// barLine is the bar as text: what, how much of it, and how long it will still take at the pace so far.
func barLine(what string, done, all int, took time.Duration) string {
	full := barWidth * done / all
	left := ""
	if done > 0 && done < all {
		left = ", " + span(time.Duration(float64(took)*float64(all-done)/float64(done))) + " left"
	}
	return fmt.Sprintf("%s [%s%s] %d of %d%s", what, strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), done, all, left)
}

func (b *bar) clear() {
	if b.printed {
		fmt.Fprint(b.a.err, "\r\x1b[K")
	}
}
