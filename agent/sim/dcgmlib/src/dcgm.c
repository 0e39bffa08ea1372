/* A simulated libdcgm.so.4: the part of DCGM's API that assay calls, over the state of one simulated node.
 *
 * The node's directory is $ASSAY_SIM_DIR. DIR/dcgm.state holds what to answer, one thing a line; agent/sim writes it. What a host
 * engine remembers between its clients is kept in DIR/dcgm.watches. Names, structures and return codes are those of
 * NVIDIA's dcgm_structs.h and dcgm_agent.h of DCGM 4; the sizes below are those that DCGM itself asserts. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define VERSION(type, v) (uint32_t)(sizeof(type) | ((uint32_t)(v) << 24))

enum { OK = 0, BADPARAM = -1, UNINITIALIZED = -10, VER_MISMATCH = -12, CONNECTION_NOT_VALID = -21, INSUFFICIENT_SIZE = -31, NVML_NOT_LOADED = -56 };
enum { ALL_GPUS = 0x7fffffff, FE_GPU = 1, HANDLE = 0x7fffffff, MAX_INCIDENTS = 1024, MAX_GPUS = 32 };

typedef struct {
	uint32_t version, persistAfterDisconnect, timeoutMs, addressIsUnixSocket;
} connect_v2;
typedef struct {
	uint32_t version;
	char raw[512];
} version_v2;
typedef struct {
	uint32_t version;
	uintptr_t group;
	uint32_t systems;
	int64_t interval;
	double keep;
} health_set_v2;
typedef struct {
	uint32_t system, health;
	struct {
		char msg[1024];
		uint32_t code;
	} error;
	struct {
		uint32_t group, id;
	} entity;
} incident;
typedef struct {
	uint32_t version, overall, count;
	incident incidents[MAX_INCIDENTS];
} health_v5;
typedef struct {
	uint32_t version, condition, mode, isolation, action, validation, response;
	struct {
		uint32_t tag;
		union {
			uint8_t boolean;
			int64_t value;
		} u;
	} parms[7];
} policy_v1;
typedef struct {
	uint32_t version;
	struct {
		uint32_t version, count;
		struct {
			uint32_t version, mem, sm;
		} set[256];
	} clocks;
	uint32_t thermals[3], power[6];
	struct {
		uint32_t version;
		char brand[256], name[256], pci[256], serial[256], uuid[256], vbios[256], inforom[256];
		uint32_t device, subsystem;
		char driver[256];
		uint32_t virtualization;
	} id;
	uint32_t memory[5], settings[4];
} attributes_v3;

/* DCGM's own: dcgmConnectV2Params_version 0x02000010, dcgmHealthResponse_version5 and, of the same parts, version4 0x0401050c with
 * 64 incidents; dcgmPolicy_version 16777360, dcgmDeviceAttributes_version3 0x3001464. */
_Static_assert(VERSION(connect_v2, 2) == 0x02000010, "dcgmConnectV2Params_v2");
_Static_assert(sizeof(incident) == (0x1050c - 12) / 64, "dcgmIncidentInfo_t");
_Static_assert(sizeof(health_v5) == 12 + 1024 * sizeof(incident), "dcgmHealthResponse_v5");
_Static_assert(VERSION(policy_v1, 1) == 16777360, "dcgmPolicy_v1");
_Static_assert(VERSION(attributes_v3, 3) == 0x3001464, "dcgmDeviceAttributes_v3");

static int started, embedded, checks;

static FILE *open_in_dir(const char *name, const char *mode)
{
	const char *dir = getenv("ASSAY_SIM_DIR");
	char path[4096];
	if (!dir || snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
		return NULL;
	return fopen(path, mode);
}

/* is reports whether the state has the line "word value"; a value of NULL fits any, and is copied to out. */
static int is(const char *word, const char *value, char *out, size_t room)
{
	FILE *f = open_in_dir("dcgm.state", "r");
	char line[2048];
	int found = 0;
	if (!f)
		return 0;
	while (!found && fgets(line, sizeof line, f)) {
		char *v = strchr(line, ' ');
		if (!v)
			continue;
		*v++ = 0;
		v[strcspn(v, "\n")] = 0;
		if (strcmp(line, word) == 0 && (!value || strcmp(v, value) == 0)) {
			found = 1;
			if (out)
				snprintf(out, room, "%s", v);
		}
	}
	fclose(f);
	return found;
}

/* hang never returns when the state says that this function hangs. */
static void hang(const char *function)
{
	while (is("hang", function, NULL, 0))
		usleep(20000);
}

EXPORT int dcgmInit(void)
{
	hang("dcgmInit");
	started = 1;
	return OK;
}

EXPORT int dcgmShutdown(void)
{
	started = 0;
	return OK;
}

static int reach(uintptr_t *handle)
{
	if (!started)
		return UNINITIALIZED;
	if (!handle)
		return BADPARAM;
	*handle = HANDLE;
	return OK;
}

EXPORT int dcgmStartEmbedded(int mode, uintptr_t *handle)
{
	hang("dcgmStartEmbedded");
	if (mode != 1 && mode != 2)
		return BADPARAM;
	embedded = 1;
	return reach(handle);
}

EXPORT int dcgmConnect_v2(const char *address, connect_v2 *p, uintptr_t *handle)
{
	hang("dcgmConnect_v2");
	if (!address || !p)
		return BADPARAM;
	if (p->version != VERSION(connect_v2, 2))
		return VER_MISMATCH;
	if (!is("engine", "up", NULL, 0))
		return CONNECTION_NOT_VALID;
	/* One engine is simulated, at one address: that of policy's default, or a socket of the node's. */
	if (strcmp(address, "127.0.0.1:5555") != 0 && !(p->addressIsUnixSocket && address[0] == '/'))
		return CONNECTION_NOT_VALID;
	return reach(handle);
}

EXPORT int dcgmDisconnect(uintptr_t handle) { return handle == HANDLE ? OK : BADPARAM; }
EXPORT int dcgmStopEmbedded(uintptr_t handle) { return handle == HANDLE ? OK : BADPARAM; }

static int version(version_v2 *v)
{
	char number[32] = "";
	if (!v)
		return BADPARAM;
	if (v->version != VERSION(version_v2, 2))
		return VER_MISMATCH;
	is("version", NULL, number, sizeof number);
	snprintf(v->raw, sizeof v->raw, "version:%s;arch:x86_64;buildtype:Release;buildid:1;builddate:2026-01-01;commit:0;branch:rel", number);
	return OK;
}

EXPORT int dcgmVersionInfo(version_v2 *v) { return version(v); }
EXPORT int dcgmHostengineVersionInfo(uintptr_t handle, version_v2 *v) { return handle == HANDLE ? version(v) : BADPARAM; }

/* gpus reads the state's "gpu INDEX UUID PCI" lines. */
static int gpus(int index, char *uuid, char *pci)
{
	FILE *f = open_in_dir("dcgm.state", "r");
	char line[2048];
	int n = 0, i;
	char u[128], p[64];
	if (!f)
		return 0;
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "gpu %d %127s %63s", &i, u, p) == 3) {
			n++;
			if (i == index && uuid) {
				strcpy(uuid, u);
				strcpy(pci, p);
				n = -1;
				break;
			}
		}
	fclose(f);
	return n;
}

EXPORT int dcgmGetEntityGroupEntities(uintptr_t handle, int group, uint32_t *ids, int *count, uint32_t flags)
{
	FILE *f;
	char line[2048];
	int i, n = 0;
	(void)flags;
	hang("dcgmGetEntityGroupEntities");
	if (handle != HANDLE || group != FE_GPU || !ids || !count)
		return BADPARAM;
	if (gpus(-1, NULL, NULL) > *count)
		return INSUFFICIENT_SIZE;
	f = open_in_dir("dcgm.state", "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "gpu %d ", &i) == 1)
			ids[n++] = i;
	if (f)
		fclose(f);
	*count = n;
	return OK;
}

EXPORT int dcgmGetDeviceAttributes(uintptr_t handle, uint32_t gpu, attributes_v3 *a)
{
	if (handle != HANDLE || !a)
		return BADPARAM;
	if (a->version != VERSION(attributes_v3, 3))
		return VER_MISMATCH;
	return gpus(gpu, a->id.uuid, a->id.pci) == -1 ? OK : BADPARAM;
}

EXPORT int dcgmHealthGet(uintptr_t handle, uintptr_t group, uint32_t *systems)
{
	FILE *f;
	if (handle != HANDLE || group != ALL_GPUS || !systems)
		return BADPARAM;
	*systems = 0;
	if (embedded)
		return OK;
	f = open_in_dir("dcgm.watches", "r");
	if (f) {
		if (fscanf(f, "%x", systems) != 1)
			*systems = 0;
		fclose(f);
	}
	return OK;
}

EXPORT int dcgmHealthSet_v2(uintptr_t handle, health_set_v2 *p)
{
	FILE *f;
	hang("dcgmHealthSet_v2");
	if (handle != HANDLE || !p || p->group != ALL_GPUS || p->interval <= 0 || p->keep <= 0)
		return BADPARAM;
	if (p->version != VERSION(health_set_v2, 2))
		return VER_MISMATCH;
	if (embedded)
		return OK;
	f = open_in_dir("dcgm.watches", "w");
	if (!f)
		return BADPARAM;
	fprintf(f, "%x\n", p->systems);
	fclose(f);
	return OK;
}

EXPORT int dcgmUpdateAllFields(uintptr_t handle, int wait)
{
	hang("dcgmUpdateAllFields");
	return handle == HANDLE && wait == 1 ? OK : BADPARAM;
}

/* The first look of an engine of one's own gives no result yet, as DCGM's manual says. */
EXPORT int dcgmHealthCheck(uintptr_t handle, uintptr_t group, health_v5 *h)
{
	FILE *f;
	char line[2048];
	hang("dcgmHealthCheck");
	if (handle != HANDLE || group != ALL_GPUS || !h)
		return BADPARAM;
	if (h->version != VERSION(health_v5, 5))
		return VER_MISMATCH;
	if (is("nvml", "lost", NULL, 0))
		return NVML_NOT_LOADED;
	h->overall = h->count = 0;
	if (embedded && checks++ == 0)
		return OK;
	f = open_in_dir("dcgm.state", "r");
	while (f && fgets(line, sizeof line, f) && h->count < MAX_INCIDENTS) {
		incident *i = &h->incidents[h->count];
		int text = 0;
		if (sscanf(line, "incident %u %u %u %u %u %n", &i->system, &i->health, &i->error.code, &i->entity.group, &i->entity.id, &text) != 5 || !text)
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(i->error.msg, sizeof i->error.msg, "%s", line + text);
		if (i->health > h->overall)
			h->overall = i->health;
		h->count++;
	}
	if (f)
		fclose(f);
	return OK;
}

EXPORT int dcgmPolicyGet(uintptr_t handle, uintptr_t group, int count, policy_v1 *p, uintptr_t status)
{
	int i;
	if (handle != HANDLE || group != ALL_GPUS || !p || status)
		return BADPARAM;
	for (i = 0; i < count; i++) {
		if (p[i].version != VERSION(policy_v1, 1))
			return VER_MISMATCH;
		p[i].condition = is("policy", "reset", NULL, 0);
		p[i].action = p[i].condition;
	}
	return OK;
}
