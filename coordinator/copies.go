package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/assay-gpu/assay/coordinator/wire"
)

// How long one copy of a file may take, how long another control host may take to say whether it has one, how long one that
// does not answer is left alone, and how often it is seen to that every file has its copies. A node that is in trouble waits
// for its evidence, and a host that hangs must not make it wait for each file.
const (
	copyWait  = 30 * time.Second
	peerWait  = 5 * time.Second
	peerRest  = time.Minute
	mendEvery = 10 * time.Minute
	peerTTL   = 365 * 24 * time.Hour
)

// evidenceGrace is how long a file that no case names is left: it may be about to be named.
const evidenceGrace = 24 * time.Hour

// others are the URLs of the other control hosts.
func (c Config) others() []string { return c.urls()[1:] }

// peerClient calls other control hosts, as this one.
func (l *lead) peerClient() (*http.Client, error) {
	l.peersMu.Lock()
	defer l.peersMu.Unlock()
	if l.peers == nil {
		cfg, err := l.auth.PeerTLS(l.cfg.Name, peerTTL)
		if err != nil {
			return nil, err
		}
		l.peers = &http.Client{Transport: &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute}}
	}
	return l.peers, nil
}

// askPeer makes one request for a file and returns an answer with status 2xx, its body open.
func (l *lead) askPeer(ctx context.Context, method, url, sum string, body io.Reader) (*http.Response, error) {
	peers, err := l.peerClient()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, url+wire.PathPeer+"/"+sum, body)
	if err != nil {
		return nil, err
	}
	resp, err := peers.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("%s: %w", url, fs.ErrNotExist)
	}
	return nil, fmt.Errorf("%s answered %s", url, resp.Status)
}

// copyOut brings a file to one other control host and says how many more have it now: one is enough.
func (l *lead) copyOut(ctx context.Context, sum string) int {
	for _, url := range l.cfg.others() {
		if l.resting(url) {
			continue
		}
		if err := l.copyTo(ctx, url, sum); err == nil {
			return 1
		} else if ctx.Err() == nil {
			l.rest(url)
			l.log.Warn("evidence not copied", "evidence", sum, "peer", url, "err", err)
		}
	}
	return 0
}

func (l *lead) copyTo(ctx context.Context, url, sum string) error {
	ctx, cancel := context.WithTimeout(ctx, copyWait)
	defer cancel()
	err := l.hasCopy(ctx, url, sum)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, _, err := l.cfg.Evidence.Get(sum)
	if err != nil {
		return err
	}
	defer f.Close()
	resp, err := l.askPeer(ctx, http.MethodPut, url, sum, f)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// hasCopy asks another control host whether it has a file; fs.ErrNotExist says that it has not.
func (l *lead) hasCopy(ctx context.Context, url, sum string) error {
	ctx, cancel := context.WithTimeout(ctx, peerWait)
	defer cancel()
	resp, err := l.askPeer(ctx, http.MethodHead, url, sum, nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// rest leaves a control host that failed alone for a while; mend tries again.
func (l *lead) rest(url string) {
	l.peersMu.Lock()
	defer l.peersMu.Unlock()
	if l.rested == nil {
		l.rested = map[string]time.Time{}
	}
	l.rested[url] = time.Now().Add(peerRest)
}

func (l *lead) resting(url string) bool {
	l.peersMu.Lock()
	defer l.peersMu.Unlock()
	return time.Now().Before(l.rested[url])
}

// copyIn takes a file over from whichever control host has it.
func (l *lead) copyIn(ctx context.Context, sum string) error {
	last := error(fs.ErrNotExist)
	for _, url := range l.cfg.others() {
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, copyWait)
			defer cancel()
			resp, err := l.askPeer(ctx, http.MethodGet, url, sum, nil)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			return l.cfg.Evidence.Put(sum, resp.Body)
		}()
		if err == nil {
			return nil
		}
		last = err
	}
	return last
}

// mend sees to it, again and again, that this host has the evidence of every case it keeps, that another has it too, and that
// what no case names is not kept for ever.
func (l *lead) mend(ctx context.Context) error {
	if l.cfg.Evidence == nil {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for pause(ctx, mendEvery) {
		named := map[string]bool{}
		l.mu.RLock()
		for _, k := range l.st.cases {
			for _, sum := range k.Evidence {
				named[sum] = true
			}
		}
		l.mu.RUnlock()
		for _, sum := range sortedKeys(named) {
			if ctx.Err() != nil || len(l.cfg.others()) == 0 {
				break
			}
			if !l.cfg.Evidence.Has(sum) && l.copyIn(ctx, sum) != nil {
				continue // it never left its node, or is lost: case show says so
			}
			l.copyOut(ctx, sum)
		}
		if n, err := l.cfg.Evidence.Sweep(func(sum string) bool { return named[sum] }, time.Now().Add(-evidenceGrace)); err != nil {
			l.log.Warn("old evidence not removed", "err", err)
		} else if n > 0 {
			l.log.Info("old evidence removed", "files", n)
		}
	}
	return context.Cause(ctx)
}
