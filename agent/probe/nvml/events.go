package nvml

import (
	"fmt"
	"time"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/assay-gpu/assay/checks"
)

// An XIDEvent is an XID that the driver raised through NVML. It has the number and no text; NVML gives no time either.
type XIDEvent struct {
	GPU  checks.GPU `json:"gpu"`
	MIG  string     `json:"mig,omitempty"` // GPU instance, as 3, or GPU and compute instance, as 3/0
	Code int        `json:"code"`
	At   time.Time  `json:"-"` // when this process received it
}

// Times of the wait for events. While GPUs are being read for the first time it is shorter, so that each is soon listened
// to. After an error the driver is left alone for longer.
const (
	eventWait      = 2 * time.Second
	eventFirstWait = 100 * time.Millisecond
	eventFirst     = 5 * time.Second // after the last GPU was added
	eventPause     = 10 * time.Second
)

// noInstance stands for no MIG instance in an event. Source: nvml.h, nvmlEventData_t.
const noInstance = 1<<32 - 1

// A listener waits for the driver's XID events, in a goroutine of its own: a call of its that never returns holds up no
// reading, and its calls are not announced, so that no GPU is blamed for them. It registers only GPUs that have just been
// read, hence none that hangs or is blocked.
type listener struct {
	set  gonvml.EventSet
	add  chan *device
	tell func(XIDEvent)
	of   map[gonvml.Device]checks.GPU // by handle
	last time.Time                    // a GPU was added
}

// eventSymbols must all be there; of the wait, either form.
var eventSymbols = []string{"nvmlEventSetCreate", "nvmlDeviceRegisterEvents"}

// listen starts a listener; without one the kernel log tells alone, as with a library too old for events.
func (c *child) listen() {
	if c.listener != nil || !c.hasAny([]string{"nvmlEventSetWait_v2", "nvmlEventSetWait"}) {
		return
	}
	for _, s := range eventSymbols {
		if !c.hasAny([]string{s}) {
			return
		}
	}
	c.listener = &listener{
		add: make(chan *device, 64), of: map[gonvml.Device]checks.GPU{},
		tell: func(e XIDEvent) { c.send(message{Event: &e}) },
	}
	go c.listener.run(c.nvml)
}

// hear has a GPU's events listened to, once. It never waits: a listener that is stuck in a call takes in nothing more.
func (l *listener) hear(d *device) {
	if l == nil || d.heard {
		return
	}
	select {
	case l.add <- d:
		d.heard = true
	default:
	}
}

func (l *listener) run(lib gonvml.Interface) {
	var ret gonvml.Return
	if l.set, ret = lib.EventSetCreate(); ret != gonvml.SUCCESS {
		return
	}
	for {
		if len(l.of) == 0 {
			l.register(<-l.add) // waiting on an empty set is an error
			continue
		}
		select {
		case d := <-l.add:
			l.register(d)
			continue
		default:
		}
		wait := eventWait
		if time.Since(l.last) < eventFirst {
			wait = eventFirstWait
		}
		e, ret := l.set.Wait(uint32(wait / time.Millisecond))
		switch ret {
		case gonvml.SUCCESS:
			l.heard(e)
		case gonvml.ERROR_TIMEOUT:
		default: // ERROR_GPU_IS_LOST comes at once, again and again, while one of the set is lost
			time.Sleep(eventPause)
		}
	}
}

// register adds a GPU to the set. One that cannot raise XIDs is left out: the kernel log tells of it.
func (l *listener) register(d *device) {
	l.last = time.Now()
	if d.RegisterEvents(gonvml.EventTypeXidCriticalError, l.set) == gonvml.SUCCESS {
		l.of[d.Device] = d.gpu
	}
}

func (l *listener) heard(e gonvml.EventData) {
	gpu, known := l.of[e.Device]
	if !known || e.EventType&gonvml.EventTypeXidCriticalError == 0 || e.EventData == 0 || e.EventData > maxXID {
		return
	}
	x := XIDEvent{GPU: gpu, Code: int(e.EventData)}
	if e.GpuInstanceId != noInstance {
		x.MIG = fmt.Sprint(e.GpuInstanceId)
		if e.ComputeInstanceId != noInstance {
			x.MIG += fmt.Sprintf("/%d", e.ComputeInstanceId)
		}
	}
	l.tell(x)
}

// maxXID bounds what is taken for an XID: 999 stands for one that the driver does not know itself.
const maxXID = 1_000_000
