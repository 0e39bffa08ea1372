package nvml

import (
	"fmt"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/nvlink"
)

const (
	maxLinks = gonvml.NVLINK_MAX_LINKS
	// remotesPerCycle is how many far ends of links are asked for in one cycle, a call each. They change only with the
	// cabling; a cycle has no room for all of them.
	remotesPerCycle = 6
	// nvlink5 is the link version that counts bit error rates.
	nvlink5 = 7
)

// A remote is the far end of a link, once it was asked for.
type remote struct {
	asked bool
	pci   string // empty: not told
}

// linkFields are the fields of a link that every version has; berFields those of NVLink 5. Reading them on an older one would
// cost a driver call each, to be told that they are not supported.
var (
	linkFields = []uint32{
		gonvml.FI_DEV_NVLINK_GET_STATE, gonvml.FI_DEV_NVLINK_GET_VERSION, gonvml.FI_DEV_NVLINK_GET_SPEED, gonvml.FI_DEV_NVLINK_REMOTE_NVLINK_ID,
		gonvml.FI_DEV_NVLINK_ERROR_DL_REPLAY, gonvml.FI_DEV_NVLINK_ERROR_DL_RECOVERY, gonvml.FI_DEV_NVLINK_ERROR_DL_CRC,
	}
	berFields = []uint32{gonvml.FI_DEV_NVLINK_COUNT_EFFECTIVE_BER, gonvml.FI_DEV_NVLINK_COUNT_SYMBOL_BER}
)

// links reads every link of the GPU: one call, whatever their number, and a few more for far ends not known yet.
func (c *child) links(d *device, r *nvlink.Reading) (string, gonvml.Return) {
	if r.Have != checks.Read || d.links == 0 {
		return "", gonvml.SUCCESS
	}
	ids := linkFields
	if d.linkVersion >= nvlink5 {
		ids = append(ids[:len(ids):len(ids)], berFields...)
	}
	request := make([]gonvml.FieldValue, 0, d.links*len(ids))
	for link := range d.links {
		for _, f := range ids {
			request = append(request, gonvml.FieldValue{FieldId: f, ScopeId: uint32(link)})
		}
	}
	values, ret := c.ask(d, request)
	if ret == gonvml.ERROR_GPU_IS_LOST {
		return callFields, ret
	}
	known := false
	for link := range d.links {
		t := table{}
		for i, f := range ids {
			t[f] = values[link*len(ids)+i]
		}
		l := t.link()
		known = known || l.Have != checks.NotSupported
		d.linkVersion = max(d.linkVersion, l.Version)
		r.Links = append(r.Links, l)
	}
	if !known {
		*r = nvlink.Reading{Have: checks.NotSupported, Err: "this driver does not tell the state of links"}
		return callFields, ret
	}
	return c.remotes(d, r)
}

func (t table) link() nvlink.Link {
	state := t[gonvml.FI_DEV_NVLINK_GET_STATE]
	l := nvlink.Link{
		Have: state.have, State: nvlink.State(state.n), Version: t[gonvml.FI_DEV_NVLINK_GET_VERSION].n, SpeedMBps: t[gonvml.FI_DEV_NVLINK_GET_SPEED].n,
		Replay: t.counter(gonvml.FI_DEV_NVLINK_ERROR_DL_REPLAY), Recovery: t.counter(gonvml.FI_DEV_NVLINK_ERROR_DL_RECOVERY),
		CRC: t.counter(gonvml.FI_DEV_NVLINK_ERROR_DL_CRC), Effective: t.ber(gonvml.FI_DEV_NVLINK_COUNT_EFFECTIVE_BER), Symbol: t.ber(gonvml.FI_DEV_NVLINK_COUNT_SYMBOL_BER),
	}
	if far := t[gonvml.FI_DEV_NVLINK_REMOTE_NVLINK_ID]; far.have == checks.Read {
		l.RemoteLink = &far.n
	}
	return l
}

// ber is a bit error rate; a link too old to have been asked has none.
func (t table) ber(field uint32) nvlink.BER {
	v, asked := t[field]
	switch {
	case !asked:
		return nvlink.BER{Have: checks.NotSupported}
	case v.have != checks.Read:
		return nvlink.BER{Have: v.have}
	}
	return nvlink.Unpack(v.u)
}

// remotes fills in far ends, and asks for those of active links that were not asked for.
func (c *child) remotes(d *device, r *nvlink.Reading) (call string, ret gonvml.Return) {
	call = "nvmlDeviceGetNvLinkRemotePciInfo"
	for len(d.far) < len(r.Links) {
		d.far = append(d.far, remote{})
	}
	asked := 0
	for i := range r.Links {
		far := &d.far[i]
		if !far.asked && r.Links[i].State == nvlink.Active && asked < remotesPerCycle {
			asked++
			far.asked = true
			ret = c.call(call, func() gonvml.Return {
				p, ret := d.GetNvLinkRemotePciInfo(i)
				if ret == gonvml.SUCCESS {
					far.pci = fmt.Sprintf("%04x:%02x:%02x.0", p.Domain, p.Bus, p.Device)
				}
				return ret
			}, call+"_v2", call)
			if ret == gonvml.ERROR_GPU_IS_LOST {
				return call, ret
			}
		}
		r.Links[i].Remote = far.pci
	}
	return call, gonvml.SUCCESS
}
