package main

import (
	"testing"
	"time"
)

func TestProgressBar(t *testing.T) {
	for _, x := range []struct {
		name      string
		done, all int
		took      time.Duration
		want      string
	}{
		{"nothing done: nobody knows how long", 0, 10, time.Second, "easy [                              ] 0 of 10"},
		{"a third", 100, 300, time.Minute, "easy [==========                    ] 100 of 300, 2m left"},
		{"done", 10, 10, time.Minute, "easy [==============================] 10 of 10"},
	} {
		t.Run(x.name, func(t *testing.T) {
			if got := barLine("easy", x.done, x.all, x.took); got != x.want {
				t.Errorf("got  %q\nwant %q", got, x.want)
			}
		})
	}
}
