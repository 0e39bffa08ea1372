package nvml

import (
	"fmt"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/counter"
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

// A linkPart is what is asked for of a link by calls of its own, and kept: the far end and the version change only with the
// cabling, and counters come in turn where a cycle has no room for all of them.
type linkPart struct {
	askedFar bool
	far      string // PCI address; empty: not told

	askedVersion bool
	version      int

	counted               bool // its turn has come once
	replay, recovery, crc counter.Reading
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

// links reads every link of the GPU: one call, whatever their number, where the driver has fields for them; what it has none
// for is asked for as drivers before it were asked. A few more calls, of those that are left of the cycle's, go to what is not
// known yet of far ends and versions.
func (c *child) links(d *device, r *nvlink.Reading) (call string, ret gonvml.Return) {
	if r.Have == checks.Unread || r.Have == checks.Read && d.links == 0 || d.linkless {
		return "", gonvml.SUCCESS
	}
	for _, read := range []func(*device, *nvlink.Reading) (string, gonvml.Return){
		c.linkFields, c.linkStates, c.oldLinkFields, c.linkCounters, c.linkVersions, c.remotes,
	} {
		if call, ret = read(d, r); ret == gonvml.ERROR_GPU_IS_LOST {
			return call, ret
		}
	}
	return call, ret
}

// linkFields reads all links by the fields that take a link's number as their scope.
func (c *child) linkFields(d *device, r *nvlink.Reading) (string, gonvml.Return) {
	if d.links > 0 {
		r.Links = make([]nvlink.Link, d.links)
	}
	for i := range r.Links {
		r.Links[i] = table(nil).link()
	}
	if d.links == 0 || d.noLinkFields {
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
	d.noLinkFields = none(values, func(i int) bool { return ids[i%len(ids)] != gonvml.FI_DEV_NVLINK_REMOTE_NVLINK_ID }) // it is older
	for link := range r.Links {
		t := table{}
		for i, f := range ids {
			t[f] = values[link*len(ids)+i]
		}
		r.Links[link] = t.link()
		d.linkVersion = max(d.linkVersion, r.Links[link].Version)
	}
	return callFields, ret
}

// none reports whether the driver supports none of the values that count.
func none(values []value, counts func(i int) bool) bool {
	for i, v := range values {
		if v.have != checks.NotSupported && counts(i) {
			return false
		}
	}
	return true
}

// link is a link by its fields; without any it is as one that the driver has none for.
func (t table) link() nvlink.Link {
	state := t.of(gonvml.FI_DEV_NVLINK_GET_STATE)
	l := nvlink.Link{
		Have: state.have, State: nvlink.State(state.n), Version: t[gonvml.FI_DEV_NVLINK_GET_VERSION].n, SpeedMBps: t[gonvml.FI_DEV_NVLINK_GET_SPEED].n,
		Replay: t.of(gonvml.FI_DEV_NVLINK_ERROR_DL_REPLAY).counter(), Recovery: t.of(gonvml.FI_DEV_NVLINK_ERROR_DL_RECOVERY).counter(),
		CRC:       t.of(gonvml.FI_DEV_NVLINK_ERROR_DL_CRC).counter(),
		Effective: t.of(gonvml.FI_DEV_NVLINK_COUNT_EFFECTIVE_BER).ber(), Symbol: t.of(gonvml.FI_DEV_NVLINK_COUNT_SYMBOL_BER).ber(),
	}
	if far := t[gonvml.FI_DEV_NVLINK_REMOTE_NVLINK_ID]; far.have == checks.Read {
		l.RemoteLink = &far.n
	}
	return l
}

// ber is a bit error rate.
func (v value) ber() nvlink.BER {
	if v.have != checks.Read {
		return nvlink.BER{Have: v.have}
	}
	return nvlink.Unpack(v.u)
}

// remotes fills in far ends, and asks for those of active links that were not asked for.
func (c *child) remotes(d *device, r *nvlink.Reading) (string, gonvml.Return) {
	const call = "nvmlDeviceGetNvLinkRemotePciInfo"
	asked := 0
	for i := range r.Links {
		part := d.part(i)
		if !part.askedFar && r.Links[i].State == nvlink.Active && asked < remotesPerCycle && c.left() > 0 {
			asked++
			part.askedFar = true
			ret := c.call(call, func() gonvml.Return {
				p, ret := d.GetNvLinkRemotePciInfo(i)
				if ret == gonvml.SUCCESS {
					part.far = fmt.Sprintf("%04x:%02x:%02x.0", p.Domain, p.Bus, p.Device)
				}
				return ret
			}, call+"_v2", call)
			if ret == gonvml.ERROR_GPU_IS_LOST {
				return call, ret
			}
		}
		r.Links[i].Remote = part.far
	}
	return call, gonvml.SUCCESS
}

// part is what is kept of link i.
func (d *device) part(i int) *linkPart {
	for len(d.parts) <= i {
		d.parts = append(d.parts, linkPart{})
	}
	return &d.parts[i]
}
