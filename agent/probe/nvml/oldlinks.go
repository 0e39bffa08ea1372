package nvml

import (
	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/assay-gpu/assay/checks"
	"github.com/assay-gpu/assay/checks/counter"
	"github.com/assay-gpu/assay/checks/nvlink"
)

// What drivers told of links before they had fields with a link's number as their scope (R520): the state by a call for each
// link, speed and counters by a field for each link. NVIDIA/nccl src/graph/topo.cc reads GPUs before Hopper the old way still.

// linkStates asks for the state of each link by a call of its own where no field tells it. Where no field tells how many
// there are, the first that the driver does not know ends them.
func (c *child) linkStates(d *device, r *nvlink.Reading) (string, gonvml.Return) {
	const call = "nvmlDeviceGetNvLinkState"
	for _, l := range r.Links {
		if l.Have != checks.NotSupported {
			return "", gonvml.SUCCESS
		}
	}
	counted, known := d.links > 0, false
	for i := 0; i < maxLinks && (!counted || i < d.links); i++ {
		if c.left() == 0 { // only in a first cycle, of a chip that no driver as old as this knows
			*r = nvlink.Reading{Err: "more links than a cycle has calls for; they are read in the next"}
			return call, gonvml.SUCCESS
		}
		var state gonvml.EnableState
		ret := c.call(call, func() (ret gonvml.Return) {
			state, ret = d.GetNvLinkState(i)
			return ret
		})
		if ret == gonvml.ERROR_GPU_IS_LOST {
			return call, ret
		}
		if ret == gonvml.ERROR_INVALID_ARGUMENT {
			ret = gonvml.ERROR_NOT_SUPPORTED // no such link
		}
		if !counted {
			if ret == gonvml.ERROR_NOT_SUPPORTED || ret == gonvml.ERROR_FUNCTION_NOT_FOUND {
				break
			}
			r.Links = append(r.Links, table(nil).link())
		}
		l := &r.Links[i]
		if l.Have, _ = availability(call, ret); l.Have == checks.Read && state == gonvml.FEATURE_ENABLED {
			l.State = nvlink.Active
		}
		known = known || l.Have != checks.NotSupported
		if ret == gonvml.ERROR_FUNCTION_NOT_FOUND {
			break
		}
	}
	d.links = len(r.Links)
	switch {
	case known:
		r.Have, r.Err = checks.Read, ""
	case counted:
		*r = nvlink.Reading{Have: checks.NotSupported, Err: "this driver does not tell the state of links"}
	default:
		d.linkless = true
	}
	return call, gonvml.SUCCESS
}

// oldFields numbers the fields that there are for each link by itself, of the first twelve.
var oldFields = struct{ speed, replay, recovery, flit, data [12]uint32 }{
	speed:    numbered(gonvml.FI_DEV_NVLINK_SPEED_MBPS_L0, gonvml.FI_DEV_NVLINK_SPEED_MBPS_L6),
	replay:   numbered(gonvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L0, gonvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L6),
	recovery: numbered(gonvml.FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L0, gonvml.FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L6),
	flit:     numbered(gonvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0, gonvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6),
	data:     numbered(gonvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L0, gonvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L6),
}

// numbered gives the fields of links 0 to 5, which count up from the first, and of 6 to 11, which do from the seventh.
func numbered(first, seventh uint32) (ids [12]uint32) {
	for i := range uint32(6) {
		ids[i], ids[i+6] = first+i, seventh+i
	}
	return ids
}

// oldLinkFields reads speed and counters of all links in one call where linkFields told no counter of any.
func (c *child) oldLinkFields(d *device, r *nvlink.Reading) (string, gonvml.Return) {
	if r.Have != checks.Read || d.noOldFields || counting(r.Links) {
		return "", gonvml.SUCCESS
	}
	var request []gonvml.FieldValue
	links := r.Links[:min(len(r.Links), len(oldFields.speed))]
	for i := range links {
		for _, f := range []uint32{oldFields.speed[i], oldFields.replay[i], oldFields.recovery[i], oldFields.flit[i], oldFields.data[i]} {
			request = append(request, gonvml.FieldValue{FieldId: f})
		}
		request = append(request, gonvml.FieldValue{FieldId: gonvml.FI_DEV_NVLINK_REMOTE_NVLINK_ID, ScopeId: uint32(i)})
	}
	values, ret := c.ask(d, request)
	if ret == gonvml.ERROR_GPU_IS_LOST {
		return callFields, ret
	}
	each := len(request) / max(len(links), 1)
	d.noOldFields = none(values, func(i int) bool { return request[i].FieldId != gonvml.FI_DEV_NVLINK_REMOTE_NVLINK_ID })
	for i := range links {
		l, v := &links[i], values[i*each:]
		if v[0].have == checks.Read {
			l.SpeedMBps = v[0].n
		}
		l.Replay, l.Recovery, l.CRC = v[1].counter(), v[2].counter(), v[3].counter().Plus(v[4].counter())
		if v[5].have == checks.Read {
			l.RemoteLink = &v[5].n
		}
	}
	return callFields, ret
}

// counting reports whether any counter of any link was told, or could not be read.
func counting(links []nvlink.Link) bool {
	for _, l := range links {
		if l.Replay.Have != checks.NotSupported || l.Recovery.Have != checks.NotSupported || l.CRC.Have != checks.NotSupported {
			return true
		}
	}
	return false
}

// linkCounters asks for counters by calls of their own where no field tells any: four for a link, a few links a cycle, each
// in its turn. A link shows what it was read at last.
func (c *child) linkCounters(d *device, r *nvlink.Reading) (string, gonvml.Return) {
	const call, each = "nvmlDeviceGetNvLinkErrorCounter", 4
	if r.Have != checks.Read || counting(r.Links) || !c.hasAny([]string{call}) {
		return "", gonvml.SUCCESS
	}
	for n := 0; n < len(r.Links) && c.left() >= each; n++ {
		i := d.turn % len(r.Links)
		d.turn++
		var of [each]counter.Reading
		for kind := range of {
			ret := c.call(call, func() (ret gonvml.Return) {
				of[kind].Now, ret = d.GetNvLinkErrorCounter(i, gonvml.NvLinkErrorCounter(kind))
				return ret
			})
			if ret == gonvml.ERROR_GPU_IS_LOST {
				return call, ret
			}
			if of[kind].Have, _ = availability(call, ret); of[kind].Have != checks.Read {
				of[kind].Now = 0
			}
		}
		part := d.part(i)
		part.counted = true
		part.replay, part.recovery = of[gonvml.NVLINK_ERROR_DL_REPLAY], of[gonvml.NVLINK_ERROR_DL_RECOVERY]
		part.crc = of[gonvml.NVLINK_ERROR_DL_CRC_FLIT].Plus(of[gonvml.NVLINK_ERROR_DL_CRC_DATA])
	}
	for i := range r.Links {
		part := d.part(i)
		r.Links[i].Replay, r.Links[i].Recovery, r.Links[i].CRC, r.Links[i].InTurn = part.replay, part.recovery, part.crc, !part.counted
	}
	return call, gonvml.SUCCESS
}

// linkVersions fills in versions where no field tells them, and asks for those that were not asked for.
func (c *child) linkVersions(d *device, r *nvlink.Reading) (string, gonvml.Return) {
	const call = "nvmlDeviceGetNvLinkVersion"
	if !d.noLinkFields {
		return "", gonvml.SUCCESS
	}
	for i := range r.Links {
		part := d.part(i)
		if !part.askedVersion && c.left() > 0 {
			part.askedVersion = true
			ret := c.call(call, func() gonvml.Return {
				v, ret := d.GetNvLinkVersion(i)
				if ret == gonvml.SUCCESS {
					part.version = int(v)
				}
				return ret
			})
			if ret == gonvml.ERROR_GPU_IS_LOST {
				return call, ret
			}
		}
		r.Links[i].Version = part.version
	}
	return call, gonvml.SUCCESS
}
