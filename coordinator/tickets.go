package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-gpu/assay/coordinator/api"
	"github.com/assay-gpu/assay/coordinator/lifecycle"
	"github.com/assay-gpu/assay/coordinator/rma"
	"github.com/assay-gpu/assay/coordinator/wire"
)

// ticketEvery is how often the site's hooks are told what is new; ticketAgain how long after one that failed.
const (
	ticketEvery = time.Second
	ticketAgain = 30 * time.Second
)

func (t *tx) ticket(id string) (rma.Ticket, bool) {
	if k, ok := t.tickets[id]; ok {
		return k, true
	}
	k, ok := t.base.tickets[id]
	return k, ok
}

func (t *tx) keepTicket(k rma.Ticket) {
	t.tickets[k.ID] = k
	t.put(keyTickets+k.ID, k)
}

// openTicket is the node's ticket that is not closed.
func (t *tx) openTicket(node string) (rma.Ticket, bool) {
	for _, of := range []map[string]rma.Ticket{t.tickets, t.base.tickets} {
		for id := range of {
			if k, _ := t.ticket(id); k.Node == node && !k.Done() {
				return k, true
			}
		}
	}
	return rma.Ticket{}, false
}

// ticketFollows moves a node's ticket with the node: it opens when the part is given up, and what is in the node afterwards
// says how it ended.
func (t *tx) ticketFollows(before, after lifecycle.Node, ev lifecycle.Event, by string) {
	if before.State != lifecycle.RMA && after.State == lifecycle.RMA {
		t.sendBack(after, ev, by)
		return
	}
	if len(t.base.tickets)+len(t.tickets) == 0 {
		return
	}
	k, ok := t.openTicket(after.Name)
	if !ok {
		return
	}
	switch {
	case after.State == lifecycle.Retired:
		k = k.Close(by, "the node was retired", t.now)
	case before.State == lifecycle.RMA && after.State != lifecycle.RMA, k.State == rma.Returned && fitted(k, after) != "":
		note := ""
		if r, ok := ev.(lifecycle.OrderRepaired); ok {
			note = r.Outcome
		}
		k.Fitted = fitted(k, after)
		if state := rma.Returned; k.Fitted == "" {
			k = k.Move(state, by, note, t.now)
		} else {
			k = k.Move(rma.Replaced, by, strings.TrimSpace(k.Fitted+" "+note), t.now)
		}
		k.Outcome = cmp.Or(note, k.Outcome)
	case k.State != rma.Replaced && k.State != rma.Returned:
		return
	case before.State != lifecycle.Certified && after.State == lifecycle.Certified:
		outcome := cmp.Or(k.Outcome, "replaced by "+k.Fitted)
		k = k.Move(rma.Verified, by, "the screen passed", t.now).Close(by, outcome, t.now)
	case before.State == lifecycle.Screening && after.State == lifecycle.Quarantined:
		// What is in the node fails too: is it the slot?
		k = k.Move(rma.Opened, by, "what is in the node failed its screen: "+after.Case.Cause, t.now)
		k.Blame = t.blame(k, after)
	default:
		return
	}
	t.keepTicket(k)
}

// fitted names what is in the ticket's place now; empty when that is the same part, or cannot be seen.
func fitted(k rma.Ticket, n lifecycle.Node) string {
	slot, _, _ := strings.Cut(k.Slot, " ")
	if slot == "" {
		if s := n.Inventory.NodeSerial; s != "" && s != k.Serial {
			return s
		}
		return ""
	}
	for _, g := range n.Inventory.GPUs {
		if g.PCI == slot && partID(g) != cmp.Or(k.Serial, k.UUID) {
			return partID(g)
		}
	}
	return ""
}

// sendBack opens a ticket for the part of the node's case.
func (t *tx) sendBack(n lifecycle.Node, ev lifecycle.Event, by string) {
	id := "R-" + strings.TrimPrefix(n.Case.ID, "Q-")
	for i := 2; ; i++ {
		if _, taken := t.ticket(id); !taken {
			break
		}
		id = fmt.Sprintf("R-%s-%d", strings.TrimPrefix(n.Case.ID, "Q-"), i)
	}
	k := rma.Ticket{ID: id, Case: n.Case.ID, Node: n.Name, Part: n.Case.Part, Cause: n.Case.Cause, Opened: t.now, Owner: n.Case.Owner}
	if g, ok := boardOf(n, n.Case.Part); ok {
		k.Serial, k.UUID, k.Product, k.Slot = g.Serial, g.UUID, g.Name, fmt.Sprintf("%s GPU %d", g.PCI, g.Index)
	} else {
		k.Serial = n.Inventory.NodeSerial
	}
	note := ""
	if o, ok := ev.(lifecycle.OrderRMA); ok {
		note = o.Reason
	}
	k = k.Move(rma.Opened, by, note, t.now)
	k.Blame = t.blame(k, n)
	t.keepTicket(k)
}

// blame says whether the ledger shows the board or the slot to be at fault.
func (t *tx) blame(k rma.Ticket, n lifecycle.Node) string {
	slot, _, _ := strings.Cut(k.Slot, " ")
	id := cmp.Or(k.Serial, k.UUID)
	if g, ok := boardOf(n, n.Case.Part); ok {
		id, slot = partID(g), g.PCI
	}
	all := make(map[string]rma.Part, len(t.base.parts)+len(t.parts))
	for id := range t.base.parts {
		all[id] = t.part(id)
	}
	for id, p := range t.parts {
		all[id] = p
	}
	return rma.Attribute(id, n.Name, slot, n.Case.Cause, all)
}

// remind pages a ticket's owner.
func (t *tx) remind(id string) {
	k, ok := t.ticket(id)
	if !ok || !k.Overdue(t.now) {
		return
	}
	t.page(k.Node, "rma_overdue", fmt.Sprintf("%s: ticket %s of %s is %s since %s; owner %s", k.Node, id, cmp.Or(k.Serial, k.UUID, k.Part), k.State, k.Moved.Format(time.DateOnly), k.Owner))
	t.keepTicket(k.Reminded(t.now))
}

// Tickets implements api.Repairs: newest first.
func (c *Coordinator) Tickets(_ context.Context, openOnly bool) (out []rma.Ticket, err error) {
	err = c.read(func(_ *lead, s *state, _ time.Time) error {
		out = []rma.Ticket{}
		for _, k := range s.tickets {
			if !openOnly || !k.Done() {
				out = append(out, k)
			}
		}
		slices.SortFunc(out, func(a, b rma.Ticket) int { return cmp.Or(b.Opened.Compare(a.Opened), strings.Compare(a.ID, b.ID)) })
		return nil
	})
	return out, err
}

// Ticket implements api.Repairs.
func (c *Coordinator) Ticket(_ context.Context, id string) (out rma.Ticket, err error) {
	err = c.read(func(_ *lead, s *state, _ time.Time) error {
		var ok bool
		if out, ok = s.tickets[id]; !ok {
			return &notFoundError{"ticket " + id, "`assay rma list --all` shows those kept"}
		}
		return nil
	})
	return out, err
}

// MoveTicket implements api.Repairs: a person's word on where a part is.
func (c *Coordinator) MoveTicket(ctx context.Context, by, id string, v wire.TicketVerb) (rma.Ticket, error) {
	l, err := c.leading()
	if err != nil {
		return rma.Ticket{}, err
	}
	err = l.do(ctx, func(t *tx) error {
		k, ok := t.ticket(id)
		if !ok {
			return &notFoundError{"ticket " + id, "`assay rma list --all` shows those kept"}
		}
		if v.State != "" {
			if k, err = k.Advance(v.State, by, v.Note, t.now); err != nil {
				return err
			}
		} else {
			k = k.Move(k.State, by, v.Note, t.now)
		}
		k.Vendor, k.Owner = cmp.Or(v.Vendor, k.Vendor), cmp.Or(v.Owner, k.Owner)
		if !v.Warranty.IsZero() {
			k.Warranty = v.Warranty
		}
		t.keepTicket(k)
		t.record(wire.HistoryEntry{Node: k.Node, Event: fmt.Sprintf("rma ticket=%s state=%s note=%s", id, k.State, quote(v.Note)), Case: k.Case, By: by})
		return nil
	})
	if err != nil {
		return rma.Ticket{}, err
	}
	return c.Ticket(ctx, id)
}

// Parts implements api.Repairs: by serial; none named are all.
func (c *Coordinator) Parts(_ context.Context, serials []string) (out []rma.Part, err error) {
	err = c.read(func(_ *lead, s *state, _ time.Time) error {
		out = []rma.Part{}
		if len(serials) == 0 {
			serials = sortedKeys(s.parts)
		}
		for _, id := range serials {
			p, ok := s.parts[id]
			if !ok {
				return &notFoundError{"part " + id, "`assay rma parts` lists those known"}
			}
			out = append(out, p)
		}
		return nil
	})
	return out, err
}

// tellTickets tells the site's hooks of every ticket that has changed, until they take it.
func (l *lead) tellTickets(ctx context.Context) error {
	if len(l.cfg.Tickets) == 0 {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	again := map[string]time.Time{}
	for l.settle(ctx); pause(ctx, ticketEvery); {
		var news []rma.Ticket
		l.mu.RLock()
		for id, k := range l.st.tickets {
			if k.Told < k.Seq && time.Now().After(again[id]) {
				news = append(news, k)
			}
		}
		l.mu.RUnlock()
		for _, k := range news {
			if err := l.tellTicket(ctx, k); err != nil && ctx.Err() == nil {
				l.log.Warn("ticket hook", "ticket", k.ID, "node", k.Node, "state", k.State, "err", err)
				again[k.ID] = time.Now().Add(ticketAgain)
			}
		}
	}
	return context.Cause(ctx)
}

func (l *lead) tellTicket(ctx context.Context, k rma.Ticket) error {
	if !l.term.Valid() {
		return errDeposed
	}
	for _, h := range l.cfg.Tickets {
		if err := h.Tell(ctx, k); err != nil {
			return err
		}
	}
	return l.do(ctx, func(t *tx) error {
		if now, ok := t.ticket(k.ID); ok && now.Told < k.Seq {
			now.Told = k.Seq
			t.keepTicket(now)
		}
		return nil
	})
}

var _ api.Repairs = (*Coordinator)(nil)
