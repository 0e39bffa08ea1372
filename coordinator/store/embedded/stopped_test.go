package embedded

import (
	"errors"
	"testing"
	"time"
)

// What etcd does when it ends by itself is told to whoever runs on it; what Close does is not.
func TestStopped(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*Server)
		told bool
	}{
		{"etcd stops by itself", func(s *Server) { s.etcd.Server.HardStop() }, true},
		{"a listener fails", func(s *Server) { s.etcd.Clients[0].Close() }, true},
		{"closed", (*Server).Close, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Start(t.Context(), Config{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			said := make(chan error, 1)
			go func() { said <- s.Stopped(t.Context()) }()
			select {
			case err := <-said:
				t.Fatalf("while it runs: %v", err)
			case <-time.After(50 * time.Millisecond):
			}
			c.end(s)
			select {
			case err := <-said:
				var stopped *StoppedError
				if errors.As(err, &stopped) != c.told || c.told && stopped.Dir != dir {
					t.Errorf("%v", err)
				}
			case <-time.After(10 * time.Second):
				t.Error("nothing was said")
			}
		})
	}
}
