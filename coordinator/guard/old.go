package guard

import (
	"encoding/json"
	"time"
)

// UnmarshalJSON also reads books that name each hard charge and each sighting, as they were kept before.
func (b *Books) UnmarshalJSON(data []byte) error {
	type plain Books
	var old struct {
		plain
		Hard []Entry `json:"hard"`
		Seen []struct {
			Node, Chassis, Reason string
			At                    time.Time
		} `json:"seen"`
	}
	if err := json.Unmarshal(data, &old); err != nil {
		return err
	}
	*b = Books(old.plain)
	for _, e := range old.Hard {
		hard, m := b.Hard.forget(e.Node).at(e.At, e.Schedulable)
		m.add(hard, e.Node, hardNames)
		b.Hard = hard
	}
	for _, s := range old.Seen {
		if b.Seen == nil {
			b.Seen = map[string]Tally{}
		}
		seen, m := b.Seen[s.Reason].at(s.At, 0)
		m.add(seen, s.Node, seenNames)
		m.addChassis(s.Chassis, seenOld)
		b.Seen[s.Reason] = seen
	}
	return nil
}

// seenOld is how many chassis are kept of each minute of books that say nothing of the policy.
const seenOld = 8

func (m *Minute) add(t Tally, node string, most int) {
	if t.named() < most {
		m.Nodes = append(m.Nodes, node)
	} else {
		m.More++
	}
}
