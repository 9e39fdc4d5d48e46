/* CUDA's driver without a GPU: records launches and tensor maps for a test to look at. */
#include <cuda.h>
#include <stdint.h>
#include <string.h>

enum { MOST = 64, ARGUMENT_BYTES = 128 };

typedef struct launch {
  uint32_t place[7], is_early;
  uint64_t stream;
  char function[64];
  unsigned char arguments[MOST][ARGUMENT_BYTES];
} launch;

typedef struct encoded {
  int32_t dtype, rank;
  uint64_t address, sizes[5], strides[4];
  uint32_t box[5], steps[5];
  int32_t modes[4], walks, lower[3], upper[3];
} encoded;

launch last_launch;
encoded maps[MOST];
int32_t launches, map_count, width_count, widths[MOST];
int32_t major = 9, minor = 0, version = 13000, fail_launch, fail_load, fail_encode, refuses_cubins;
int32_t shared_attribute, loaded_now, unloaded;
static char names[MOST][64];
static int name_count;
static char zeros[512];

CUresult cuCtxGetDevice(CUdevice *device) { return *device = 0, CUDA_SUCCESS; }

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  (void)device;
  switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = major; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = minor; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 227 * 1024; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 4; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *found) { return *found = version, CUDA_SUCCESS; }

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  if (refuses_cubins) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  return *module = (CUmodule)(uintptr_t)image, CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                            CUjit_option *options, void **values) {
  if (count != 2 || options[0] != CU_JIT_ERROR_LOG_BUFFER) return CUDA_ERROR_INVALID_VALUE;
  if (fail_load) return strcpy(values[0], "line 1: nonsense"), CUDA_ERROR_INVALID_PTX;
  return *module = (CUmodule)(uintptr_t)image, CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  (void)module;
  strcpy(names[name_count], name);
  *function = (CUfunction)(uintptr_t)names[name_count++];
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) { return (void)module, unloaded++, CUDA_SUCCESS; }

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  (void)function;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_ERROR_INVALID_VALUE;
  return shared_attribute = value, CUDA_SUCCESS;
}

static CUresult load(CUfunction function) { return (void)function, loaded_now++, CUDA_SUCCESS; }

CUresult cuGetProcAddress(const char *symbol, void **found, int least, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status) {
  CUresult (*address)(CUfunction) = load;
  (void)least, (void)flags, (void)status;
  if (strcmp(symbol, "cuFuncLoad")) return CUDA_ERROR_NOT_FOUND;
  return memcpy(found, &address, sizeof address), CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t size) {
  *address = ((CUdeviceptr)(uintptr_t)zeros + 255) / 256 * 256;
  return size == 256 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemsetD8(CUdeviceptr address, unsigned char value, size_t size) {
  return memset((void *)(uintptr_t)address, value, size), CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address) { return (void)address, CUDA_SUCCESS; }

CUresult cuGetErrorName(CUresult result, const char **name) {
  *name = result == CUDA_ERROR_INVALID_PTX ? "CUDA_ERROR_INVALID_PTX" : "CUDA_ERROR_OF_A_TEST";
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, CUfunction function, int threads,
                                                     size_t shared_bytes) {
  (void)function, (void)shared_bytes;
  return *count = 2048 / threads, CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction function,
                                      const CUlaunchConfig *config) {
  int each = (int)(2048 / config->blockDimX), size = (int)config->attrs[0].value.clusterDim.x;
  (void)function;
  if (config->numAttrs != 1 || config->gridDimX % size) return CUDA_ERROR_INVALID_VALUE;
  return *count = 3 * each / size + each / size, CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments,
                          void **extra) {
  int n;
  if (fail_launch || extra) return CUDA_ERROR_LAUNCH_FAILED;
  memcpy(last_launch.place, config, sizeof last_launch.place);
  last_launch.stream = (uint64_t)(uintptr_t)config->hStream;
  last_launch.is_early = 0;
  for (n = 0; n < (int)config->numAttrs; n++)
    last_launch.is_early |=
        config->attrs[n].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
        config->attrs[n].value.programmaticStreamSerializationAllowed;
  strcpy(last_launch.function, (const char *)function);
  for (n = 0; n < width_count; n++) memcpy(last_launch.arguments[n], arguments[n], widths[n]);
  launches++;
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType dtype, cuuint32_t rank,
                                void *address, const cuuint64_t *sizes, const cuuint64_t *strides,
                                const cuuint32_t *box, const cuuint32_t *steps,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  encoded *made = &maps[map_count];
  int32_t modes[4] = {(int32_t)interleave, (int32_t)swizzle, (int32_t)promotion, (int32_t)fill};
  if (fail_encode || (uintptr_t)map % 64) return CUDA_ERROR_INVALID_VALUE;
  memset(made, 0, sizeof *made);
  made->dtype = (int32_t)dtype;
  made->rank = (int32_t)rank;
  made->address = (uint64_t)(uintptr_t)address;
  memcpy(made->sizes, sizes, rank * sizeof *sizes);
  memcpy(made->strides, strides, (rank > 1 ? rank - 1 : 1) * sizeof *strides);
  memcpy(made->box, box, rank * sizeof *box);
  memcpy(made->steps, steps, rank * sizeof *steps);
  memcpy(made->modes, modes, sizeof modes);
  memset(map, 0, sizeof *map);
  memcpy(map, &map_count, sizeof map_count);
  map_count++;
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType dtype, cuuint32_t rank,
                                 void *address, const cuuint64_t *sizes, const cuuint64_t *strides,
                                 const int *lower, const int *upper, cuuint32_t channels,
                                 cuuint32_t positions, const cuuint32_t *steps,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  encoded *made = &maps[map_count];
  cuuint32_t box[5] = {channels, positions, 0, 0, 0};
  CUresult result = cuTensorMapEncodeTiled(map, dtype, rank, address, sizes, strides, box, steps,
                                           interleave, swizzle, promotion, fill);
  if (result) return result;
  made->walks = 1;
  memcpy(made->lower, lower, (rank - 2) * sizeof *lower);
  memcpy(made->upper, upper, (rank - 2) * sizeof *upper);
  return CUDA_SUCCESS;
}
