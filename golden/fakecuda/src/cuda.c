/* The simulated libcuda.so.1: each call is a message to a process that holds the simulated GPUs (golden/fakecuda), started
 * by cuInit from $ASSAY_SIM_DIR/program and gone when this process is. Without that directory there is no device.
 *
 * A message is a struct request, then its blob; the answer a struct reply, then its blob. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
typedef int CUresult;
enum { OK = 0, INVALID = 1, NOT_INITIALIZED = 3, NO_DEVICE = 100, UNKNOWN = 999 };

/* The order is that of fakecuda's calls. */
enum call { INIT, VERSION, COUNT, GET, UUID, NAME, PCI, ATTRIBUTE, RETAIN, RELEASE, SYNC, LOAD, UNLOAD, FUNCTION, SET_ATTR, GET_ATTR,
            OCCUPANCY, ALLOC, FREE, WRITE, READ, LAUNCH, CURRENT, CAN_PEER, STREAM, EVENT, RECORD, ELAPSED, TO_DEVICE, TO_HOST, INSIDE, BETWEEN };

struct request { uint32_t call, blob; uint64_t arg[6]; };
struct reply { int32_t result; uint32_t blob; uint64_t out; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int peer = -1, started;

/* Marks the library as no GPU's. */
API int cuAssaySimulated(void) { return 1; }

static int all(ssize_t (*f)(int, void *, size_t), void *p, size_t n) {
  while (n > 0) {
    ssize_t k = f(peer, p, n);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return -1;
    p = (char *)p + k;
    n -= k;
  }
  return 0;
}
static ssize_t put(int fd, void *p, size_t n) { return send(fd, p, n, MSG_NOSIGNAL); }
static ssize_t get(int fd, void *p, size_t n) { return read(fd, p, n); }

/* Sends a call with a blob of n bytes; the answer's blob goes to `into`, which has room for `room` bytes. */
static CUresult ask(struct request r, const void *blob, size_t n, uint64_t *out, void *into, size_t room) {
  struct reply a;
  CUresult result = UNKNOWN;
  pthread_mutex_lock(&lock);
  if (peer < 0) {
    pthread_mutex_unlock(&lock);
    return started ? NO_DEVICE : NOT_INITIALIZED;
  }
  r.blob = n;
  if (all(put, &r, sizeof r) || (n && all(put, (void *)blob, n)) || all(get, &a, sizeof a)) goto lost;
  char *rest = malloc(a.blob + 1);
  if (!rest || all(get, rest, a.blob)) { free(rest); goto lost; }
  if (into && room) memcpy(into, rest, a.blob < room ? a.blob : room);
  free(rest);
  if (out) *out = a.out;
  result = a.result;
  pthread_mutex_unlock(&lock);
  return result;
lost:
  close(peer);
  peer = -1;
  started = 1;
  pthread_mutex_unlock(&lock);
  return UNKNOWN;
}
#define CALL(c, ...) ((struct request){.call = (c), .arg = {__VA_ARGS__}})

static int start(void) {
  const char *dir = getenv("ASSAY_SIM_DIR");
  char file[4096], program[4096];
  if (!dir || snprintf(file, sizeof file, "%s/program", dir) >= (int)sizeof file) return -1;
  int fd = open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t n = read(fd, program, sizeof program - 1);
  close(fd);
  if (n <= 0) return -1;
  program[n] = 0;
  program[strcspn(program, "\n")] = 0;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) return -1;
  char *argv[] = {program, "sim", "cuda", "--dir", (char *)dir, NULL};
  pid_t pid = fork();
  if (pid == 0) {
    /* dup2 onto 3 clears close-on-exec, unless it is 3 already. */
    if (pair[1] == 3) fcntl(3, F_SETFD, 0); else dup2(pair[1], 3);
    execv(program, argv);
    _exit(127);
  }
  close(pair[1]);
  if (pid < 0) { close(pair[0]); return -1; }
  peer = pair[0];
  return 0;
}

API CUresult cuInit(unsigned flags) {
  pthread_mutex_lock(&lock);
  if (peer < 0 && !started) { started = 1; start(); }
  pthread_mutex_unlock(&lock);
  return ask(CALL(INIT, flags), NULL, 0, NULL, NULL, 0);
}

/* Every other call whose answer is one number. */
static CUresult one(struct request r, uint64_t *v) { return ask(r, NULL, 0, v, NULL, 0); }
#define NUMBER(type, p, ...) { uint64_t number = 0; CUresult e = one(CALL(__VA_ARGS__), &number); if (!e) *(p) = (type)number; return e; }

API CUresult cuDriverGetVersion(int *v) { uint64_t n = 12040; CUresult e = one(CALL(VERSION), &n); *v = (int)n; return e == NOT_INITIALIZED || e == NO_DEVICE ? OK : e; }
API CUresult cuDeviceGetCount(int *n) NUMBER(int, n, COUNT)
API CUresult cuDeviceGet(int *d, int i) NUMBER(int, d, GET, i)
API CUresult cuDeviceGetUuid_v2(void *u, int d) { return ask(CALL(UUID, d), NULL, 0, NULL, u, 16); }
static CUresult words(struct request r, char *s, int n) { if (n < 1) return INVALID; memset(s, 0, n); return ask(r, NULL, 0, NULL, s, n - 1); }
API CUresult cuDeviceGetName(char *s, int n, int d) { return words(CALL(NAME, d), s, n); }
API CUresult cuDeviceGetPCIBusId(char *s, int n, int d) { return words(CALL(PCI, d), s, n); }
API CUresult cuDeviceGetAttribute(int *v, int a, int d) NUMBER(int, v, ATTRIBUTE, a, d)
API CUresult cuDevicePrimaryCtxRetain(void **c, int d) NUMBER(void *, c, RETAIN, d)
API CUresult cuDevicePrimaryCtxRelease_v2(int d) { return one(CALL(RELEASE, d), NULL); }
API CUresult cuCtxSetCurrent(void *c) { return one(CALL(CURRENT, (uint64_t)c), NULL); }
API CUresult cuCtxSynchronize(void) { return one(CALL(SYNC), NULL); }
API CUresult cuModuleUnload(void *m) { return one(CALL(UNLOAD, (uint64_t)m), NULL); }
/* How long an image is, which no caller says: PTX ends with a zero byte, machine code with the last of its tables and sections. */
static size_t image_size(const void *image) {
  const Elf64_Ehdr *e = image;
  if (memcmp(e, ELFMAG, SELFMAG)) return strlen(image);
  size_t end = e->e_shoff + (size_t)e->e_shnum * sizeof(Elf64_Shdr), segments = e->e_phoff + (size_t)e->e_phnum * sizeof(Elf64_Phdr);
  if (segments > end) end = segments;
  const Elf64_Shdr *s = (const void *)((const char *)image + e->e_shoff);
  for (int i = 0; i < e->e_shnum; i++)
    if (s[i].sh_type != SHT_NOBITS && s[i].sh_offset + s[i].sh_size > end) end = s[i].sh_offset + s[i].sh_size;
  return end;
}

API CUresult cuModuleLoadDataEx(void **m, const void *image, unsigned n, int *options, void **values) {
  char log[8192] = "";
  uint64_t v = 0;
  CUresult e = ask(CALL(LOAD), image, image_size(image), &v, log, sizeof log - 1);
  if (!e) *m = (void *)v;
  char *to = NULL;
  size_t room = 0;
  for (unsigned i = 0; i < n; i++) { /* CU_JIT_ERROR_LOG_BUFFER and its size */
    if (options[i] == 5) to = values[i];
    if (options[i] == 6) room = (size_t)values[i];
  }
  if (to && room) { strncpy(to, log, room - 1); to[room - 1] = 0; }
  return e;
}

/* The sizes of a function's parameters, which cuLaunchKernel has no other way to know. */
#define FUNCTIONS 256
#define PARAMS 32
static struct { uint64_t f; uint32_t n, size[PARAMS]; } known[FUNCTIONS];
API CUresult cuModuleGetFunction(void **f, void *m, const char *name) {
  uint32_t size[PARAMS + 1] = {0};
  uint64_t v = 0;
  CUresult e = ask(CALL(FUNCTION, (uint64_t)m), name, strlen(name), &v, size, sizeof size);
  if (e) return e;
  int i = v % FUNCTIONS; /* one that was there before has been unloaded since */
  known[i].f = v;
  known[i].n = size[0] < PARAMS ? size[0] : PARAMS;
  memcpy(known[i].size, size + 1, sizeof known[i].size);
  *f = (void *)v;
  return OK;
}
API CUresult cuFuncSetAttribute(void *f, int a, int v) { return one(CALL(SET_ATTR, (uint64_t)f, a, v), NULL); }
API CUresult cuFuncGetAttribute(int *v, int a, void *f) NUMBER(int, v, GET_ATTR, (uint64_t)f, a)
API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, void *f, int threads, size_t shared) NUMBER(int, n, OCCUPANCY, (uint64_t)f, threads, shared)
API CUresult cuMemAlloc_v2(uint64_t *p, size_t n) NUMBER(uint64_t, p, ALLOC, n)
API CUresult cuMemFree_v2(uint64_t p) { return one(CALL(FREE, p), NULL); }
API CUresult cuMemcpyHtoD_v2(uint64_t p, const void *from, size_t n) { return ask(CALL(WRITE, p), from, n, NULL, NULL, 0); }
API CUresult cuMemcpyDtoH_v2(void *to, uint64_t p, size_t n) { return ask(CALL(READ, p, n), NULL, 0, NULL, to, n); }
API CUresult cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                            void *stream, void **params, void **extra) {
  (void)stream; (void)extra;
  char blob[PARAMS * 8];
  size_t n = 0;
  if (gy != 1 || gz != 1 || by != 1 || bz != 1) return INVALID;
  int i = (uint64_t)f % FUNCTIONS;
  if (known[i].f != (uint64_t)f) return 400; /* CUDA_ERROR_INVALID_HANDLE */
  for (uint32_t k = 0; k < known[i].n; k++) {
    if (known[i].size[k] > 8) return INVALID;
    memcpy(blob + n, params[k], known[i].size[k]);
    n += known[i].size[k];
  }
  return ask(CALL(LAUNCH, (uint64_t)f, gx, bx, shared), blob, n, NULL, NULL, 0);
}

/* Copies are done when they are called, and take the time that the simulated link would: on their stream's clock, which events
 * read. */
API CUresult cuMemHostAlloc(void **p, size_t n, unsigned flags) {
  (void)flags;
  *p = aligned_alloc(4096, (n + 4095) & ~(size_t)4095);
  return *p ? OK : 2;
}
API CUresult cuMemFreeHost(void *p) { free(p); return OK; }
API CUresult cuStreamCreate(void **s, unsigned flags) NUMBER(void *, s, STREAM, flags)
API CUresult cuStreamDestroy_v2(void *s) { (void)s; return OK; }
API CUresult cuStreamSynchronize(void *s) { (void)s; return one(CALL(SYNC), NULL); }
API CUresult cuEventCreate(void **event, unsigned flags) NUMBER(void *, event, EVENT, flags)
API CUresult cuEventDestroy_v2(void *e) { (void)e; return OK; }
API CUresult cuEventRecord(void *e, void *s) { return one(CALL(RECORD, (uint64_t)e, (uint64_t)s), NULL); }
API CUresult cuEventElapsedTime(float *ms, void *from, void *to) { /* the answer is in picoseconds */
  uint64_t ps = 0;
  CUresult e = one(CALL(ELAPSED, (uint64_t)from, (uint64_t)to), &ps);
  if (!e) *ms = ps / 1e9;
  return e;
}
API CUresult cuDeviceCanAccessPeer(int *can, int d, int peer) NUMBER(int, can, CAN_PEER, d, peer)
API CUresult cuCtxEnablePeerAccess(void *c, unsigned flags) { (void)c; (void)flags; return OK; }
API CUresult cuMemcpyHtoDAsync_v2(uint64_t p, const void *from, size_t n, void *s) { return ask(CALL(TO_DEVICE, p, (uint64_t)s), from, n, NULL, NULL, 0); }
/* What lies at the other end goes along: a faulty copy may leave some of it. */
API CUresult cuMemcpyDtoHAsync_v2(void *to, uint64_t p, size_t n, void *s) { return ask(CALL(TO_HOST, p, (uint64_t)s), to, n, NULL, to, n); }
API CUresult cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void *s) { return one(CALL(INSIDE, to, from, n, (uint64_t)s), NULL); }
API CUresult cuMemcpyPeerAsync(uint64_t to, void *on, uint64_t from, void *of, size_t n, void *s) {
  return one(CALL(BETWEEN, to, (uint64_t)on, from, (uint64_t)of, n, (uint64_t)s), NULL);
}

API CUresult cuGetErrorName(CUresult e, const char **s) {
  static const struct { CUresult e; const char *s; } names[] = {
    {0, "CUDA_SUCCESS"}, {1, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"}, {3, "CUDA_ERROR_NOT_INITIALIZED"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"}, {100, "CUDA_ERROR_NO_DEVICE"}, {101, "CUDA_ERROR_INVALID_DEVICE"},
    {200, "CUDA_ERROR_INVALID_IMAGE"}, {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"}, {214, "CUDA_ERROR_ECC_UNCORRECTABLE"}, {218, "CUDA_ERROR_INVALID_PTX"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"}, {400, "CUDA_ERROR_INVALID_HANDLE"}, {500, "CUDA_ERROR_NOT_FOUND"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {702, "CUDA_ERROR_LAUNCH_TIMEOUT"}, {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS"}, {719, "CUDA_ERROR_LAUNCH_FAILED"}, {999, "CUDA_ERROR_UNKNOWN"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].e == e) { *s = names[i].s; return OK; }
  *s = NULL;
  return INVALID;
}
