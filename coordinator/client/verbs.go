package client

import (
	"bufio"
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/assay-gpu/assay/checks/policy"
	"github.com/assay-gpu/assay/coordinator/certificate"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// Fleet is the whole fleet in numbers.
func (c *Client) Fleet(ctx context.Context) (wire.Fleet, error) {
	return call[wire.Fleet](ctx, c, http.MethodGet, wire.PathFleet, nil, nil)
}

// Nodes returns the nodes of a hostlist, or all for "".
func (c *Client) Nodes(ctx context.Context, hostlist string) ([]wire.Node, error) {
	if hostlist != "" {
		return call[[]wire.Node](ctx, c, http.MethodGet, wire.PathNodes, url.Values{"names": {hostlist}}, nil)
	}
	return list[wire.Node](ctx, c, wire.PathNodes)
}

// Node returns one node.
func (c *Client) Node(ctx context.Context, node string) (wire.Node, error) {
	return call[wire.Node](ctx, c, http.MethodGet, nodePath(node), nil, nil)
}

// NodeHistory returns a node's transitions and decisions, oldest first.
func (c *Client) NodeHistory(ctx context.Context, node string) ([]wire.HistoryEntry, error) {
	return call[[]wire.HistoryEntry](ctx, c, http.MethodGet, nodePath(node)+"/history", nil, nil)
}

// Explain says why a node is where it is.
func (c *Client) Explain(ctx context.Context, node string) (wire.Explanation, error) {
	return call[wire.Explanation](ctx, c, http.MethodGet, nodePath(node)+"/explain", nil, nil)
}

// Drain takes a node out of service.
func (c *Client) Drain(ctx context.Context, node string, v wire.NodeVerb) (wire.Node, error) {
	return c.order(ctx, node, "drain", v)
}

// Resume puts a node back in service, or cancels a drain under way.
func (c *Client) Resume(ctx context.Context, node string, v wire.NodeVerb) (wire.Node, error) {
	return c.order(ctx, node, "resume", v)
}

// Hold keeps a node out on the caller's word.
func (c *Client) Hold(ctx context.Context, node string, v wire.NodeVerb) (wire.Node, error) {
	return c.order(ctx, node, "hold", v)
}

// Unhold removes a hold.
func (c *Client) Unhold(ctx context.Context, node string, v wire.NodeVerb) (wire.Node, error) {
	return c.order(ctx, node, "unhold", v)
}

// Retire ends assay's care for a node.
func (c *Client) Retire(ctx context.Context, node string, v wire.NodeVerb) (wire.Node, error) {
	return c.order(ctx, node, "retire", v)
}

// OpenRMA says that the suspected part goes back to the vendor.
func (c *Client) OpenRMA(ctx context.Context, node string, v wire.NodeVerb) (wire.Node, error) {
	return c.order(ctx, node, "rma", v)
}

// Repaired says that the part is back; the reason is the outcome.
func (c *Client) Repaired(ctx context.Context, node string, v wire.NodeVerb) (wire.Node, error) {
	return c.order(ctx, node, "repaired", v)
}

func (c *Client) order(ctx context.Context, node, verb string, v wire.NodeVerb) (wire.Node, error) {
	return call[wire.Node](ctx, c, http.MethodPost, nodePath(node)+"/"+verb, nil, v)
}

// Enroll makes enrolment tokens.
func (c *Client) Enroll(ctx context.Context, ask wire.EnrolAsk) ([]wire.EnrolToken, error) {
	return call[[]wire.EnrolToken](ctx, c, http.MethodPost, wire.PathEnrolment, nil, ask)
}

// IssueOperator has an operator's certificate signed.
func (c *Client) IssueOperator(ctx context.Context, ask wire.OperatorAsk) (wire.Enrolled, error) {
	return call[wire.Enrolled](ctx, c, http.MethodPost, wire.PathOperators, nil, ask)
}

// Guard shows budgets and storms.
func (c *Client) Guard(ctx context.Context) (wire.Guard, error) {
	return call[wire.Guard](ctx, c, http.MethodGet, wire.PathGuard, nil, nil)
}

// Freeze stops all automatic action.
func (c *Client) Freeze(ctx context.Context, reason string) (wire.Guard, error) {
	return call[wire.Guard](ctx, c, http.MethodPost, wire.PathGuard+"/freeze", nil, wire.GuardVerb{Reason: reason})
}

// Thaw lets automatic action go on.
func (c *Client) Thaw(ctx context.Context, reason string) (wire.Guard, error) {
	return call[wire.Guard](ctx, c, http.MethodPost, wire.PathGuard+"/thaw", nil, wire.GuardVerb{Reason: reason})
}

// Cases lists cases, the open ones alone or all.
func (c *Client) Cases(ctx context.Context, openOnly bool) ([]wire.Case, error) {
	return call[[]wire.Case](ctx, c, http.MethodGet, wire.PathCases, url.Values{"open": {strconv.FormatBool(openOnly)}}, nil)
}

// Case returns one case with findings and timeline.
func (c *Client) Case(ctx context.Context, id string) (wire.Case, error) {
	return call[wire.Case](ctx, c, http.MethodGet, wire.PathCases+"/"+url.PathEscape(id), nil, nil)
}

// Certificates lists every node's certificate.
func (c *Client) Certificates(ctx context.Context) ([]certificate.Certificate, error) {
	return list[certificate.Certificate](ctx, c, wire.PathCerts)
}

// Certificate returns a node's certificate.
func (c *Client) Certificate(ctx context.Context, node string) (certificate.Certificate, error) {
	return call[certificate.Certificate](ctx, c, http.MethodGet, wire.PathCerts+"/"+url.PathEscape(node), nil, nil)
}

// Policy returns the policy in force.
func (c *Client) Policy(ctx context.Context) (policy.Policy, error) {
	return call[policy.Policy](ctx, c, http.MethodGet, wire.PathPolicy, nil, nil)
}

// SetPolicy puts p in force and returns it with its new version.
func (c *Client) SetPolicy(ctx context.Context, p policy.Policy) (policy.Policy, error) {
	return call[policy.Policy](ctx, c, http.MethodPut, wire.PathPolicy, nil, p)
}

// Rollout shows the policy that is being rolled out; without a policy there is none.
func (c *Client) Rollout(ctx context.Context) (wire.Rollout, error) {
	return call[wire.Rollout](ctx, c, http.MethodGet, wire.PathRollout, nil, nil)
}

// RollOut puts a policy in force on a share of the nodes.
func (c *Client) RollOut(ctx context.Context, ask wire.RolloutAsk) (wire.Rollout, error) {
	return call[wire.Rollout](ctx, c, http.MethodPost, wire.PathRollout, nil, ask)
}

// Promote puts the rollout's policy in force everywhere.
func (c *Client) Promote(ctx context.Context, v wire.RolloutVerb) (policy.Policy, error) {
	return call[policy.Policy](ctx, c, http.MethodPost, wire.PathRollout+"/promote", nil, v)
}

// Withdraw ends a rollout; the policy in force holds everywhere again.
func (c *Client) Withdraw(ctx context.Context, v wire.RolloutVerb) (policy.Policy, error) {
	return call[policy.Policy](ctx, c, http.MethodPost, wire.PathRollout+"/withdraw", nil, v)
}

// Learned shows what the nodes of each product show.
func (c *Client) Learned(ctx context.Context) ([]policy.Learned, error) {
	return call[[]policy.Learned](ctx, c, http.MethodGet, wire.PathLearned, nil, nil)
}

// Audit says whether the history that is stored is what was written.
func (c *Client) Audit(ctx context.Context) (wire.Audit, error) {
	return call[wire.Audit](ctx, c, http.MethodGet, wire.PathAudit, nil, nil)
}

// An EventsAsk says which history entries to read.
type EventsAsk struct {
	After  string // after this cursor; "": from the oldest kept, unless Last is set
	Last   *int   // the newest so many
	Follow bool   // and then those to come
	Nodes  string // with Last: the newest so many of these nodes, a hostlist; what follows is of all
}

// Events reads history entries, oldest first. It ends after the first error; with Follow it ends with ctx.
func (c *Client) Events(ctx context.Context, ask EventsAsk) iter.Seq2[wire.HistoryEntry, error] {
	return func(yield func(wire.HistoryEntry, error) bool) {
		q := url.Values{}
		if ask.After != "" {
			q.Set("after", ask.After)
		}
		if ask.Last != nil {
			q.Set("last", strconv.Itoa(*ask.Last))
		}
		if ask.Nodes != "" {
			q.Set("nodes", ask.Nodes)
		}
		if ask.Follow {
			q.Set("follow", "true")
		}
		resp, err := c.send(ctx, http.MethodGet, wire.PathEvents, q, nil)
		if err != nil {
			yield(wire.HistoryEntry{}, err)
			return
		}
		defer resp.Body.Close()
		sc := bufio.NewScanner(resp.Body)
		sc.Buffer(make([]byte, 0, 64<<10), 4<<20)
		for sc.Scan() {
			line := sc.Bytes()
			if len(line) == 0 {
				continue // keepalive
			}
			var e wire.HistoryEntry
			if err := json.Unmarshal(line, &e); err != nil {
				yield(e, &UnreachableError{c.where(), err})
				return
			}
			if !yield(e, nil) {
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
		if err := sc.Err(); err != nil {
			yield(wire.HistoryEntry{}, &UnreachableError{c.where(), err})
		}
	}
}

func nodePath(node string) string { return wire.PathNodes + "/" + url.PathEscape(node) }
