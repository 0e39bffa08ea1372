/* The state of a simulated node as the library reads it: one file, DIR/nvml.state, replaced by rename whenever it changes.
 * agent/sim/nvmlstate.go writes the same layout; little-endian, natural alignment, no padding that is not named. */
#ifndef ASSAY_SIM_STATE_H
#define ASSAY_SIM_STATE_H

#include <stdint.h>

#define SIM_MAGIC 0x59415341u /* "ASAY" */
#define SIM_LAYOUT 4u
#define SIM_GPUS 16
#define SIM_LINKS 18
#define SIM_FIELDS 512 /* values of nvmlDeviceGetFieldValues for each GPU */
#define SIM_FUNCTIONS 64 /* call counters for each GPU; more than functions.def names */

enum sim_init { SIM_INIT_OK, SIM_INIT_HANG, SIM_INIT_ERROR };

enum sim_flag {
	SIM_MISSING = 1 << 0,      /* the driver does not count it */
	SIM_LOST = 1 << 1,         /* every call on it: NVML_ERROR_GPU_IS_LOST */
	SIM_ECC = 1 << 2,          /* ECC is on */
	SIM_ECC_PENDING = 1 << 3,  /* ECC mode after the next reset */
	SIM_SRAM = 1 << 4,         /* SRAM error threshold exceeded */
	SIM_REMAP_PENDING = 1 << 5,
	SIM_REMAP_FAILED = 1 << 6,
	SIM_PERSISTENCE = 1 << 7,
	SIM_MIG = 1 << 8,
	SIM_MIG_PENDING = 1 << 9,
	SIM_MARGIN = 1 << 10, /* it has nvmlDeviceGetMarginTemperature */
};

/* A counter is value, and rises by per_minute since since_ns (CLOCK_REALTIME). */
struct sim_counter {
	uint64_t value;
	uint64_t per_minute;
	int64_t since_ns;
};

/* A field of nvmlDeviceGetFieldValues; what is not listed is not supported. */
struct sim_field {
	uint32_t field, scope;
	uint32_t type; /* nvmlValueType_t */
	int32_t ret;
	struct sim_counter counter;
};

struct sim_gpu {
	char uuid[96];
	char name[96];
	char serial[32];
	uint32_t domain, bus, device, pci_device_id;
	uint32_t flags;
	uint32_t recovery;      /* NVML field 230 */
	uint32_t remap[2];      /* rows remapped after correctable, uncorrectable errors */
	struct sim_counter ecc[2][2]; /* [corrected, uncorrected][volatile, aggregate] */
	uint64_t clock_reasons;       /* nvmlClocksEventReason* */
	int32_t temperature, margin;  /* °C */
	int32_t threshold[4];         /* by nvmlTemperatureThresholds_t; 0: not supported */
	uint32_t utilization;         /* percent */
	uint32_t compute_mode;
	uint32_t fabric_state, fabric_status, fabric_health, fabric_summary; /* state 0: not supported */
	uint32_t bank[5];             /* max, high, partial, low, none */
	uint32_t fields;              /* in use, of sim_fields */
	uint32_t process[8];           /* process ids; 0 ends the list */
	uint32_t remote[SIM_LINKS][3]; /* each link's far end: domain, bus, device; all 0: not told */
	uint64_t not_supported; /* bit per function */
	uint64_t hang;          /* bit per function */
	uint64_t unreadable;    /* bit per function: it fails with an unknown error */
};

struct sim_node {
	uint32_t magic, layout;
	uint32_t gpus;       /* slots in use, missing GPUs included */
	uint32_t init;       /* enum sim_init */
	int32_t init_return; /* what nvmlInit returns for SIM_INIT_ERROR */
	uint32_t newest_field; /* the highest that the driver knows; 0: all */
	char driver[80];
	char nvml[80];
	struct sim_gpu gpu[SIM_GPUS];
};

/* The file: the node, and what is too much to copy at each call. */
struct sim_file {
	struct sim_node node;
	struct sim_field field[SIM_GPUS][SIM_FIELDS];
};

/* DIR/nvml.events: XIDs as NVML raises them, one after the other; an instance of all ones is none. */
struct sim_event {
	uint32_t slot, code, gpu_instance, compute_instance;
};

/* DIR/nvml.calls: how often each function was called, on each slot and, last, on none. */
struct sim_calls {
	uint64_t count[SIM_GPUS + 1][SIM_FUNCTIONS];
};

#endif
