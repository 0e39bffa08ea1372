/* A simulated libnvidia-ml.so.1: the part of NVML that assay calls, over the state of one simulated node.
 *
 * The node's directory is $ASSAY_SIM_DIR or, without it, the directory the library was opened from. Each call looks
 * whether DIR/nvml.state was replaced, counts itself in DIR/nvml.calls and answers from the state as it is now.
 * Names, structures and return codes are those of NVIDIA's nvml.h, version 13. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "state.h"

#define EXPORT __attribute__((visibility("default")))

typedef int ret_t;
enum {
	OK = 0,
	UNINITIALIZED = 1,
	INVALID_ARGUMENT = 2,
	NOT_SUPPORTED = 3,
	NOT_FOUND = 6,
	INSUFFICIENT_SIZE = 7,
	DRIVER_NOT_LOADED = 9,
	TIMEOUT = 10,
	GPU_IS_LOST = 15,
	VERSION_MISMATCH = 25,
	UNKNOWN = 999,
};

enum function {
#define F(name) FN_##name,
#include "functions.def"
#undef F
};

typedef struct { int unused; } *device_t;
static struct { int unused; } slots[SIM_GPUS]; /* a device handle points at its slot */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char dir[3072];
static const struct sim_file *state; /* mapped; keeps the inode in use, so that its number tells old from new */
static ino_t state_inode;
static struct sim_calls *calls;
static int started; /* nvmlInit less nvmlShutdown */

static void find_dir(void)
{
	const char *env = getenv("ASSAY_SIM_DIR");
	if (env && *env) {
		snprintf(dir, sizeof dir, "%s", env);
		return;
	}
	Dl_info info;
	if (dladdr((void *)&find_dir, &info) && info.dli_fname) {
		snprintf(dir, sizeof dir, "%s", info.dli_fname);
		char *slash = strrchr(dir, '/');
		if (slash)
			*slash = 0;
		else
			strcpy(dir, ".");
	}
}

static void *map(const char *name, size_t size, int writable)
{
	char path[4096];
	struct stat st;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	void *p = MAP_FAILED;
	if (fstat(fd, &st) == 0 && st.st_size >= (off_t)size) {
		p = mmap(NULL, size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
		if (p != MAP_FAILED && !writable)
			state_inode = st.st_ino;
	}
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

/* refresh maps the state anew when it was replaced. With the lock held. */
static void refresh(void)
{
	char path[4096];
	struct stat st;
	if (!dir[0])
		find_dir();
	if (!calls)
		calls = map("nvml.calls", sizeof *calls, 1);
	snprintf(path, sizeof path, "%s/nvml.state", dir);
	if (stat(path, &st) != 0 || (state && st.st_ino == state_inode))
		return;
	struct sim_file *n = map("nvml.state", sizeof *n, 0);
	if (!n)
		return;
	if (n->node.magic != SIM_MAGIC || n->node.layout != SIM_LAYOUT || n->node.gpus > SIM_GPUS) {
		munmap(n, sizeof *n);
		return;
	}
	if (state)
		munmap((void *)state, sizeof *state);
	state = n;
}

static void count(enum function fn, int slot)
{
	if (calls)
		__atomic_fetch_add(&calls->count[slot][fn], 1, __ATOMIC_RELAXED);
}

static void hang(void)
{
	for (;;)
		pause(); /* a signal's handler may run; the call never returns */
}

/* look copies the node into *n. */
static ret_t look(struct sim_node *n)
{
	pthread_mutex_lock(&lock);
	refresh();
	ret_t r = !started ? UNINITIALIZED : !state ? DRIVER_NOT_LOADED : OK;
	if (r == OK)
		*n = state->node;
	pthread_mutex_unlock(&lock);
	return r;
}

/* enter begins a call on no GPU. */
static ret_t enter(enum function fn, struct sim_node *n)
{
	ret_t r = look(n);
	count(fn, SIM_GPUS);
	return r;
}

/* on begins a call on the GPU in slot: it copies the GPU into *g, and hangs, or fails, where the state says so. */
static ret_t on(enum function fn, int slot, struct sim_gpu *g)
{
	pthread_mutex_lock(&lock);
	refresh();
	count(fn, slot);
	ret_t r = !started ? UNINITIALIZED : !state ? DRIVER_NOT_LOADED : (uint32_t)slot >= state->node.gpus ? INVALID_ARGUMENT : OK;
	if (r == OK)
		*g = state->node.gpu[slot];
	pthread_mutex_unlock(&lock);
	if (r != OK)
		return r;
	if (g->hang >> fn & 1)
		hang();
	if (g->flags & (SIM_LOST | SIM_MISSING))
		return GPU_IS_LOST;
	if (g->not_supported >> fn & 1)
		return NOT_SUPPORTED;
	if (g->unreadable >> fn & 1)
		return UNKNOWN;
	return OK;
}

/* now is what a counter has risen to. */
static uint64_t now(const struct sim_counter *c)
{
	struct timespec t;
	if (!c->per_minute || clock_gettime(CLOCK_REALTIME, &t) != 0)
		return c->value;
	int64_t ns = t.tv_sec * 1000000000ll + t.tv_nsec - c->since_ns;
	if (ns < 0)
		ns = 0;
	return c->value + (uint64_t)((unsigned __int128)c->per_minute * (uint64_t)ns / 60000000000ull);
}

static int slot_of(device_t d)
{
	char *p = (char *)d, *base = (char *)slots;
	if (p < base || p >= base + sizeof slots || (p - base) % sizeof slots[0])
		return -1;
	return (int)((p - base) / sizeof slots[0]);
}

#define ON(fn, d, g)                                                                                                          \
	struct sim_gpu g;                                                                                                     \
	int slot_ = slot_of(d);                                                                                               \
	if (slot_ < 0)                                                                                                        \
		return INVALID_ARGUMENT;                                                                                      \
	ret_t r_ = on(FN_##fn, slot_, &g);                                                                                    \
	if (r_ != OK)                                                                                                         \
		return r_;

static ret_t text(char *out, unsigned int room, const char *s)
{
	if (!out)
		return INVALID_ARGUMENT;
	if (strlen(s) + 1 > room)
		return INSUFFICIENT_SIZE;
	strcpy(out, s);
	return OK;
}

static ret_t start(enum function fn)
{
	pthread_mutex_lock(&lock);
	refresh();
	count(fn, SIM_GPUS);
	uint32_t how = state ? state->node.init : SIM_INIT_ERROR;
	ret_t r = how == SIM_INIT_OK ? OK : state ? state->node.init_return : DRIVER_NOT_LOADED;
	if (how == SIM_INIT_OK)
		started++;
	pthread_mutex_unlock(&lock);
	if (how == SIM_INIT_HANG)
		hang();
	return r;
}

EXPORT ret_t nvmlInit_v2(void) { return start(FN_nvmlInit_v2); }
EXPORT ret_t nvmlInitWithFlags(unsigned int flags) { (void)flags; return start(FN_nvmlInitWithFlags); }

EXPORT ret_t nvmlShutdown(void)
{
	pthread_mutex_lock(&lock);
	refresh();
	count(FN_nvmlShutdown, SIM_GPUS);
	ret_t r = started ? OK : UNINITIALIZED;
	if (started)
		started--;
	pthread_mutex_unlock(&lock);
	return r;
}

EXPORT const char *nvmlErrorString(ret_t r)
{
	switch (r) {
	case OK: return "Success";
	case UNINITIALIZED: return "Uninitialized";
	case INVALID_ARGUMENT: return "Invalid Argument";
	case NOT_SUPPORTED: return "Not Supported";
	case 4: return "Insufficient Permissions";
	case NOT_FOUND: return "Not Found";
	case INSUFFICIENT_SIZE: return "Insufficient Size";
	case DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case TIMEOUT: return "Timeout";
	case 12: return "NVML Shared Library Not Found";
	case 13: return "Function Not Found";
	case GPU_IS_LOST: return "GPU is lost";
	case 16: return "GPU requires reset";
	case 18: return "Driver/library version mismatch";
	case VERSION_MISMATCH: return "Argument version mismatch";
	default: return "Unknown Error";
	}
}

EXPORT ret_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	struct sim_node n;
	ret_t r = enter(FN_nvmlSystemGetDriverVersion, &n);
	return r != OK ? r : text(version, length, n.driver);
}

EXPORT ret_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
	struct sim_node n;
	ret_t r = enter(FN_nvmlSystemGetNVMLVersion, &n);
	return r != OK ? r : text(version, length, n.nvml);
}

EXPORT ret_t nvmlDeviceGetCount_v2(unsigned int *out)
{
	struct sim_node n;
	ret_t r = enter(FN_nvmlDeviceGetCount_v2, &n);
	if (r != OK)
		return r;
	if (!out)
		return INVALID_ARGUMENT;
	*out = 0;
	for (uint32_t i = 0; i < n.gpus; i++)
		*out += !(n.gpu[i].flags & SIM_MISSING);
	return OK;
}

static ret_t open_slot(enum function fn, int slot, device_t *out)
{
	struct sim_gpu g;
	ret_t r = on(fn, slot, &g);
	if (r == OK)
		*out = (device_t)&slots[slot];
	return r;
}

EXPORT ret_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, device_t *out)
{
	struct sim_node n;
	ret_t r = look(&n);
	if (r != OK)
		return r;
	if (!out)
		return INVALID_ARGUMENT;
	for (uint32_t i = 0; i < n.gpus; i++)
		if (!(n.gpu[i].flags & SIM_MISSING) && index-- == 0)
			return open_slot(FN_nvmlDeviceGetHandleByIndex_v2, (int)i, out);
	count(FN_nvmlDeviceGetHandleByIndex_v2, SIM_GPUS);
	return INVALID_ARGUMENT;
}

EXPORT ret_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, device_t *out)
{
	struct sim_node n;
	unsigned int domain, bus, device, function = 0;
	ret_t r = look(&n);
	if (r != OK)
		return r;
	if (!bus_id || !out || sscanf(bus_id, "%x:%x:%x.%x", &domain, &bus, &device, &function) < 3)
		return INVALID_ARGUMENT;
	for (uint32_t i = 0; i < n.gpus; i++) {
		const struct sim_gpu *g = &n.gpu[i];
		if (!(g->flags & SIM_MISSING) && g->domain == domain && g->bus == bus && g->device == device && function == 0)
			return open_slot(FN_nvmlDeviceGetHandleByPciBusId_v2, (int)i, out);
	}
	count(FN_nvmlDeviceGetHandleByPciBusId_v2, SIM_GPUS);
	return NOT_FOUND;
}

EXPORT ret_t nvmlDeviceGetIndex(device_t d, unsigned int *out)
{
	struct sim_node n;
	ON(nvmlDeviceGetIndex, d, g)
	ret_t r = look(&n);
	if (r != OK)
		return r;
	if (!out)
		return INVALID_ARGUMENT;
	*out = 0;
	for (int i = 0; i < slot_; i++)
		*out += !(n.gpu[i].flags & SIM_MISSING);
	return OK;
}

EXPORT ret_t nvmlDeviceGetUUID(device_t d, char *out, unsigned int length)
{
	ON(nvmlDeviceGetUUID, d, g)
	return text(out, length, g.uuid);
}

EXPORT ret_t nvmlDeviceGetName(device_t d, char *out, unsigned int length)
{
	ON(nvmlDeviceGetName, d, g)
	return text(out, length, g.name);
}

EXPORT ret_t nvmlDeviceGetSerial(device_t d, char *out, unsigned int length)
{
	ON(nvmlDeviceGetSerial, d, g)
	return g.serial[0] ? text(out, length, g.serial) : NOT_SUPPORTED;
}

struct pci_info {
	char bus_id_legacy[16];
	unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32];
};

EXPORT ret_t nvmlDeviceGetPciInfo_v3(device_t d, struct pci_info *out)
{
	ON(nvmlDeviceGetPciInfo_v3, d, g)
	if (!out)
		return INVALID_ARGUMENT;
	memset(out, 0, sizeof *out);
	snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "%04X:%02X:%02X.0", g.domain & 0xffff, g.bus & 0xff, g.device & 0xff);
	snprintf(out->bus_id, sizeof out->bus_id, "%08X:%02X:%02X.0", g.domain, g.bus, g.device);
	out->domain = g.domain;
	out->bus = g.bus;
	out->device = g.device;
	out->pci_device_id = g.pci_device_id;
	return OK;
}

EXPORT ret_t nvmlDeviceGetEccMode(device_t d, unsigned int *current, unsigned int *pending)
{
	ON(nvmlDeviceGetEccMode, d, g)
	if (!current || !pending)
		return INVALID_ARGUMENT;
	*current = !!(g.flags & SIM_ECC);
	*pending = !!(g.flags & SIM_ECC_PENDING);
	return OK;
}

EXPORT ret_t nvmlDeviceGetTotalEccErrors(device_t d, unsigned int error_type, unsigned int counter_type, unsigned long long *out)
{
	ON(nvmlDeviceGetTotalEccErrors, d, g)
	if (error_type > 1 || counter_type > 1 || !out)
		return INVALID_ARGUMENT;
	if (!(g.flags & SIM_ECC))
		return NOT_SUPPORTED; /* as a driver does while ECC is off */
	*out = now(&g.ecc[error_type][counter_type]);
	return OK;
}

struct sram_status {
	unsigned int version;
	unsigned long long aggregate_unc_parity, aggregate_unc_secded, aggregate_cor;
	unsigned long long volatile_unc_parity, volatile_unc_secded, volatile_cor;
	unsigned long long bucket_l2, bucket_sm, bucket_pcie, bucket_mcu, bucket_other;
	unsigned int threshold_exceeded;
};

EXPORT ret_t nvmlDeviceGetSramEccErrorStatus(device_t d, struct sram_status *out)
{
	ON(nvmlDeviceGetSramEccErrorStatus, d, g)
	if (!out)
		return INVALID_ARGUMENT;
	if (out->version != (sizeof *out | 1u << 24))
		return VERSION_MISMATCH;
	if (!(g.flags & SIM_ECC))
		return NOT_SUPPORTED;
	unsigned int version = out->version;
	memset(out, 0, sizeof *out);
	out->version = version;
	out->threshold_exceeded = !!(g.flags & SIM_SRAM);
	return OK;
}

EXPORT ret_t nvmlDeviceGetRemappedRows(device_t d, unsigned int *corrected, unsigned int *uncorrected, unsigned int *pending,
				       unsigned int *failed)
{
	ON(nvmlDeviceGetRemappedRows, d, g)
	if (!corrected || !uncorrected || !pending || !failed)
		return INVALID_ARGUMENT;
	*corrected = g.remap[0];
	*uncorrected = g.remap[1];
	*pending = !!(g.flags & SIM_REMAP_PENDING);
	*failed = !!(g.flags & SIM_REMAP_FAILED);
	return OK;
}

EXPORT ret_t nvmlDeviceGetRowRemapperHistogram(device_t d, unsigned int *out)
{
	ON(nvmlDeviceGetRowRemapperHistogram, d, g)
	if (!out)
		return INVALID_ARGUMENT;
	for (int i = 0; i < 5; i++)
		out[i] = g.bank[i];
	return OK;
}

static ret_t clock_reasons(const struct sim_gpu *g, unsigned long long *out)
{
	if (!out)
		return INVALID_ARGUMENT;
	*out = g->clock_reasons;
	return OK;
}

EXPORT ret_t nvmlDeviceGetCurrentClocksEventReasons(device_t d, unsigned long long *out)
{
	ON(nvmlDeviceGetCurrentClocksEventReasons, d, g)
	return clock_reasons(&g, out);
}

EXPORT ret_t nvmlDeviceGetCurrentClocksThrottleReasons(device_t d, unsigned long long *out)
{
	ON(nvmlDeviceGetCurrentClocksThrottleReasons, d, g)
	return clock_reasons(&g, out);
}

EXPORT ret_t nvmlDeviceGetTemperature(device_t d, unsigned int sensor, unsigned int *out)
{
	ON(nvmlDeviceGetTemperature, d, g)
	if (sensor != 0 || !out)
		return INVALID_ARGUMENT;
	*out = (unsigned int)g.temperature;
	return OK;
}

EXPORT ret_t nvmlDeviceGetTemperatureThreshold(device_t d, unsigned int type, unsigned int *out)
{
	ON(nvmlDeviceGetTemperatureThreshold, d, g)
	if (!out)
		return INVALID_ARGUMENT;
	if (type >= sizeof g.threshold / sizeof g.threshold[0] || !g.threshold[type])
		return NOT_SUPPORTED;
	*out = (unsigned int)g.threshold[type];
	return OK;
}

struct margin {
	unsigned int version;
	int margin;
};

EXPORT ret_t nvmlDeviceGetMarginTemperature(device_t d, struct margin *out)
{
	ON(nvmlDeviceGetMarginTemperature, d, g)
	if (!out)
		return INVALID_ARGUMENT;
	if (out->version != (sizeof *out | 1u << 24))
		return VERSION_MISMATCH;
	if (!(g.flags & SIM_MARGIN))
		return NOT_SUPPORTED;
	out->margin = g.margin;
	return OK;
}

struct utilization {
	unsigned int gpu, memory;
};

EXPORT ret_t nvmlDeviceGetUtilizationRates(device_t d, struct utilization *out)
{
	ON(nvmlDeviceGetUtilizationRates, d, g)
	if (!out)
		return INVALID_ARGUMENT;
	out->gpu = g.utilization;
	out->memory = g.utilization / 2;
	return OK;
}

EXPORT ret_t nvmlDeviceGetPersistenceMode(device_t d, unsigned int *out)
{
	ON(nvmlDeviceGetPersistenceMode, d, g)
	if (!out)
		return INVALID_ARGUMENT;
	*out = !!(g.flags & SIM_PERSISTENCE);
	return OK;
}

EXPORT ret_t nvmlDeviceGetComputeMode(device_t d, unsigned int *out)
{
	ON(nvmlDeviceGetComputeMode, d, g)
	if (!out)
		return INVALID_ARGUMENT;
	*out = g.compute_mode;
	return OK;
}

EXPORT ret_t nvmlDeviceGetMigMode(device_t d, unsigned int *current, unsigned int *pending)
{
	ON(nvmlDeviceGetMigMode, d, g)
	if (!current || !pending)
		return INVALID_ARGUMENT;
	*current = !!(g.flags & SIM_MIG);
	*pending = !!(g.flags & SIM_MIG_PENDING);
	return OK;
}

struct fabric_v2 {
	unsigned int version;
	unsigned char cluster_uuid[16];
	ret_t status;
	unsigned int clique_id;
	unsigned char state;
	unsigned int health;
};

struct fabric_v3 {
	unsigned int version;
	unsigned char cluster_uuid[16];
	ret_t status;
	unsigned int clique_id;
	unsigned char state;
	unsigned int health;
	unsigned char summary;
};

EXPORT ret_t nvmlDeviceGetGpuFabricInfoV(device_t d, struct fabric_v3 *out)
{
	ON(nvmlDeviceGetGpuFabricInfoV, d, g)
	if (!out)
		return INVALID_ARGUMENT;
	if (out->version != (sizeof *out | 3u << 24) && out->version != (sizeof(struct fabric_v2) | 2u << 24))
		return VERSION_MISMATCH;
	if (!g.fabric_state)
		return NOT_SUPPORTED;
	out->status = (ret_t)g.fabric_status;
	out->clique_id = 0;
	out->state = (unsigned char)g.fabric_state;
	out->health = g.fabric_health;
	if (out->version >> 24 == 3)
		out->summary = (unsigned char)g.fabric_summary;
	return OK;
}

EXPORT ret_t nvmlDeviceGetNvLinkRemotePciInfo_v2(device_t d, unsigned int link, struct pci_info *out)
{
	ON(nvmlDeviceGetNvLinkRemotePciInfo_v2, d, g)
	if (!out || link >= SIM_LINKS)
		return INVALID_ARGUMENT;
	const uint32_t *r = g.remote[link];
	if (!r[0] && !r[1] && !r[2])
		return NOT_SUPPORTED;
	memset(out, 0, sizeof *out);
	snprintf(out->bus_id, sizeof out->bus_id, "%08X:%02X:%02X.0", r[0], r[1], r[2]);
	out->domain = r[0];
	out->bus = r[1];
	out->device = r[2];
	return OK;
}

struct process {
	unsigned int pid;
	unsigned long long memory;
	unsigned int gpu_instance, compute_instance;
};

EXPORT ret_t nvmlDeviceGetComputeRunningProcesses_v3(device_t d, unsigned int *count, struct process *out)
{
	ON(nvmlDeviceGetComputeRunningProcesses_v3, d, g)
	unsigned int n = 0;
	if (!count || (*count && !out))
		return INVALID_ARGUMENT;
	while (n < sizeof g.process / sizeof g.process[0] && g.process[n])
		n++;
	if (n > *count) {
		*count = n;
		return INSUFFICIENT_SIZE;
	}
	*count = n;
	for (unsigned int i = 0; i < n; i++)
		out[i] = (struct process){g.process[i], 512ull << 20, 0xffffffff, 0xffffffff};
	return OK;
}

struct field_value {
	unsigned int field, scope;
	long long timestamp, latency_usec;
	unsigned int type;
	ret_t ret;
	union {
		double d;
		unsigned int ui;
		unsigned long long ull;
	} value;
};

/* field is a value of the table of the GPU in slot; NULL: it has none. With the lock held. */
static const struct sim_field *field(int slot, uint32_t id, uint32_t scope)
{
	uint32_t fields = state->node.gpu[slot].fields;
	for (uint32_t i = 0; i < fields && i < SIM_FIELDS; i++) {
		const struct sim_field *f = &state->field[slot][i];
		if (f->field == id && f->scope == scope)
			return f;
	}
	return NULL;
}

/* answer fills in one value from the table of the GPU in slot. With the lock held. */
static void answer(struct field_value *v, int slot)
{
	uint32_t newest = state->node.newest_field;
	v->timestamp = v->latency_usec = 0;
	v->value.ull = 0;
	v->ret = NOT_SUPPORTED;
	if (newest && v->field > newest) {
		v->ret = INVALID_ARGUMENT;
		return;
	}
	const struct sim_field *f = field(slot, v->field, v->scope);
	if (!f)
		return;
	v->ret = f->ret;
	v->type = f->type;
	if (f->type == 1) /* unsigned int */
		v->value.ui = (unsigned int)now(&f->counter);
	else
		v->value.ull = now(&f->counter);
}

EXPORT ret_t nvmlDeviceGetFieldValues(device_t d, int n, struct field_value *values)
{
	ON(nvmlDeviceGetFieldValues, d, g)
	if (n <= 0 || !values)
		return INVALID_ARGUMENT;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < n; i++)
		answer(&values[i], slot_);
	pthread_mutex_unlock(&lock);
	return OK;
}

/* link_value is what the field of a link says, whether or not the driver has the field: the functions are older. */
static ret_t link_value(int slot, unsigned int link, uint32_t id, unsigned long long *out)
{
	pthread_mutex_lock(&lock);
	ret_t r = !field(slot, 91, 0) ? NOT_SUPPORTED : INVALID_ARGUMENT; /* no links at all, or not that many */
	const struct sim_field *f = field(slot, id, link);
	if (f) {
		*out = now(&f->counter);
		r = f->ret;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

EXPORT ret_t nvmlDeviceGetNvLinkState(device_t d, unsigned int link, unsigned int *out)
{
	unsigned long long v = 0;
	ON(nvmlDeviceGetNvLinkState, d, g)
	if (!out)
		return INVALID_ARGUMENT;
	ret_t r = link_value(slot_, link, 165, &v);
	*out = v != 0; /* it knows no sleep */
	return r;
}

EXPORT ret_t nvmlDeviceGetNvLinkVersion(device_t d, unsigned int link, unsigned int *out)
{
	unsigned long long v = 0;
	ON(nvmlDeviceGetNvLinkVersion, d, g)
	if (!out)
		return INVALID_ARGUMENT;
	ret_t r = link_value(slot_, link, 166, &v);
	*out = (unsigned int)v;
	return r;
}

EXPORT ret_t nvmlDeviceGetNvLinkErrorCounter(device_t d, unsigned int link, unsigned int kind, unsigned long long *out)
{
	static const uint32_t fields[] = {161, 162, 163}; /* replay, recovery, CRC of flow control digits */
	ON(nvmlDeviceGetNvLinkErrorCounter, d, g)
	if (!out || kind > 4)
		return INVALID_ARGUMENT;
	*out = 0;
	if (kind >= sizeof fields / sizeof fields[0]) { /* CRC and ECC of data: all CRC errors are counted above */
		unsigned long long state;
		return kind == 3 ? link_value(slot_, link, 165, &state) : NOT_SUPPORTED;
	}
	return link_value(slot_, link, fields[kind], out);
}

/* An event set hears what is appended to DIR/nvml.events after a GPU was registered with it. */
#define XID_CRITICAL_ERROR 8ull
typedef struct event_set {
	uint32_t slots; /* registered, a bit each */
	off_t from[SIM_GPUS];
	off_t at;
} *event_set_t;

struct event_data {
	device_t device;
	unsigned long long type, data;
	unsigned int gpu_instance, compute_instance;
};

/* open_events opens the file of events; *size is its length. */
static int open_events(off_t *size)
{
	char path[4096];
	struct stat st;
	snprintf(path, sizeof path, "%s/nvml.events", dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	*size = fd >= 0 && fstat(fd, &st) == 0 ? st.st_size : 0;
	return fd;
}

static off_t events_end(void)
{
	off_t size;
	int fd = open_events(&size);
	if (fd >= 0)
		close(fd);
	return size - size % (off_t)sizeof(struct sim_event);
}

EXPORT ret_t nvmlEventSetCreate(event_set_t *out)
{
	struct sim_node n;
	ret_t r = enter(FN_nvmlEventSetCreate, &n);
	if (r != OK)
		return r;
	if (!out || !(*out = calloc(1, sizeof **out)))
		return INVALID_ARGUMENT;
	(*out)->at = events_end();
	return OK;
}

EXPORT ret_t nvmlDeviceRegisterEvents(device_t d, unsigned long long types, event_set_t set)
{
	ON(nvmlDeviceRegisterEvents, d, g)
	if (!set || !types || types & ~XID_CRITICAL_ERROR)
		return INVALID_ARGUMENT;
	set->slots |= 1u << slot_;
	set->from[slot_] = events_end();
	return OK;
}

/* next_event reads the set's next event, if there is one. */
static int next_event(event_set_t set, struct event_data *out)
{
	struct sim_event e;
	off_t size;
	int fd = open_events(&size), found = 0;
	if (fd < 0)
		return 0;
	if (size < set->at) { /* booted */
		memset(set->from, 0, sizeof set->from);
		set->at = 0;
	}
	while (!found && pread(fd, &e, sizeof e, set->at) == (ssize_t)sizeof e) {
		off_t at = set->at;
		set->at += (off_t)sizeof e;
		if (e.slot >= SIM_GPUS || !(set->slots >> e.slot & 1) || at < set->from[e.slot])
			continue;
		*out = (struct event_data){(device_t)&slots[e.slot], XID_CRITICAL_ERROR, e.code, e.gpu_instance, e.compute_instance};
		found = 1;
	}
	close(fd);
	return found;
}

EXPORT ret_t nvmlEventSetWait_v2(event_set_t set, struct event_data *out, unsigned int timeout_ms)
{
	struct sim_node n;
	ret_t r = enter(FN_nvmlEventSetWait_v2, &n);
	if (r != OK)
		return r;
	if (!set || !out || !set->slots)
		return INVALID_ARGUMENT;
	/* A driver blocks; this looks every 50 ms, so that the waiting costs next to nothing here too. */
	for (unsigned int waited = 0;; waited += 50) {
		for (uint32_t i = 0; i < n.gpus; i++)
			if (set->slots >> i & 1 && n.gpu[i].hang >> FN_nvmlEventSetWait_v2 & 1)
				hang();
		if (next_event(set, out))
			return OK;
		if (waited >= timeout_ms)
			return TIMEOUT;
		usleep(50000);
		if ((r = look(&n)) != OK)
			return r;
	}
}

/* What a probe should not call is counted, and does nothing. */
static ret_t counted(enum function fn, int slot)
{
	struct sim_gpu g;
	if (slot < 0)
		return INVALID_ARGUMENT;
	ret_t r = on(fn, slot, &g);
	return r != OK ? r : NOT_SUPPORTED;
}

#define COUNTED(name, ...)                                                                                                    \
	EXPORT ret_t name(device_t d, ##__VA_ARGS__) { return counted(FN_##name, slot_of(d)); }

COUNTED(nvmlDeviceReadWritePRM_v1, void *p __attribute__((unused)))
COUNTED(nvmlDeviceReadPRMCounters_v1, void *p __attribute__((unused)))
COUNTED(nvmlDeviceValidateInforom)
COUNTED(nvmlDeviceClearEccErrorCounts, unsigned int type __attribute__((unused)))
COUNTED(nvmlDeviceResetNvLinkErrorCounters, unsigned int link __attribute__((unused)))
COUNTED(nvmlDeviceResetNvLinkUtilizationCounter, unsigned int link __attribute__((unused)), unsigned int counter __attribute__((unused)))
COUNTED(nvmlDeviceSetPersistenceMode, unsigned int mode __attribute__((unused)))

/* These two take a PCI address. */
EXPORT ret_t nvmlDeviceDiscoverGpus(void *pci)
{
	struct sim_node n;
	ret_t r = enter(FN_nvmlDeviceDiscoverGpus, &n);
	return r != OK ? r : !pci ? INVALID_ARGUMENT : NOT_SUPPORTED;
}

EXPORT ret_t nvmlDeviceRemoveGpu_v2(void *pci, unsigned int state, unsigned int link)
{
	struct sim_node n;
	(void)state;
	(void)link;
	ret_t r = enter(FN_nvmlDeviceRemoveGpu_v2, &n);
	return r != OK ? r : !pci ? INVALID_ARGUMENT : NOT_SUPPORTED;
}
