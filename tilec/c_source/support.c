/* -- what every kernel's launch has in common ------------------------------------------------- */

enum {
  VECTOR_BYTES = @vector_bytes@,
  MAP_ALIGNMENT = @map_alignment@,
  STATIC_SHARED_BYTES = @static_shared_bytes@,
  PORTABLE_CTAS = @portable_ctas@,
  FIRST_EARLY_DRIVER = @first_early_driver@,
  FIRST_TO_LOAD_LATER = @first_to_load_later@,
  SHORT_ROUNDS = @short_rounds@,
  LEFT_OUT = @left_out@,
  MOST_RANK = @most_rank@,
  OVERFLOWS = 1,
  DIVIDES_BY_ZERO = 2
};

#define ANY INT64_MIN
static const int64_t index_limit_32 = @index_limit_32@;
static const int64_t largest_stride = @largest_stride@;
static const int64_t grid_limits[3] = {@grid_limits@};

/* A GPU that code is for: one of this capability, or a later one. */
typedef struct target {
  int major, minor, is_forward_compatible, shared_bytes;
} target;

/* What the kernel was compiled for: ANY, or the only value; and a divisor. */
typedef struct parameter {
  int argument;
  tilec_dtype dtype;
  int rank, element_bytes, alignment, is_written;
  int64_t sizes[TILEC_MOST_DIMENSIONS], size_divisors[TILEC_MOST_DIMENSIONS];
  int64_t strides[TILEC_MOST_DIMENSIONS], stride_divisors[TILEC_MOST_DIMENSIONS];
} parameter;

/* How the copy engine sees an array, innermost dimension first. */
typedef struct recipe {
  int array, rank, stores;
  int dims[MOST_RANK];
  cuuint32_t box[MOST_RANK];
  CUtensorMapDataType dtype;
  CUtensorMapSwizzle swizzle;
  int walks; /* in im2col mode: a box of channels and positions, which begin at `lower` */
  int lower[MOST_RANK];
  cuuint32_t steps[MOST_RANK];
} recipe;

/* How programs become CTAs. */
typedef struct program {
  int threads, shared_bytes, cluster[3];
  int is_persistent, is_dynamic, starts_early, has_roles, stripes, programs_per_cta, rounds;
  int64_t most_programs;
} program;

static tilec_error problem(tilec_status status, int argument, int axis) {
  tilec_error error = {status, argument, axis, CUDA_SUCCESS};
  return error;
}

static tilec_error driver(CUresult result) {
  tilec_error error = {result == CUDA_SUCCESS ? TILEC_OK : TILEC_DRIVER, -1, -1, result};
  return error;
}

/* Whole numbers as in Python, but for what 64 bits do not hold. */

static int64_t plus(int64_t x, int64_t y, int *wrong) {
  if (y > 0 ? x > INT64_MAX - y : x < INT64_MIN - y) return *wrong |= OVERFLOWS, 0;
  return x + y;
}

static int64_t minus(int64_t x, int64_t y, int *wrong) {
  if (y < 0 ? x > INT64_MAX + y : x < INT64_MIN + y) return *wrong |= OVERFLOWS, 0;
  return x - y;
}

static int is_small(int64_t x) { return x >= INT32_MIN && x <= INT32_MAX; }

static int64_t times(int64_t x, int64_t y, int *wrong) {
  if (is_small(x) && is_small(y)) return x * y; /* without a division, which takes longest here */
  if (x > 0 ? y > INT64_MAX / x || y < INT64_MIN / x
            : x < -1 ? y > INT64_MIN / x || y < INT64_MAX / x : x == -1 && y == INT64_MIN)
    return *wrong |= OVERFLOWS, 0;
  return x * y;
}

static int64_t over(int64_t x, int64_t y, int *wrong) {
  if (y == 0) return *wrong |= DIVIDES_BY_ZERO, 0;
  if (y == -1) return minus(0, x, wrong);
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

static int64_t modulo(int64_t x, int64_t y, int *wrong) {
  if (y == 0) return *wrong |= DIVIDES_BY_ZERO, 0;
  if (y == -1) return 0;
  return x % y + (x % y != 0 && (x < 0) != (y < 0) ? y : 0);
}

static int64_t cdiv(int64_t x, int64_t y, int *wrong) {
  return minus(0, over(minus(0, x, wrong), y, wrong), wrong);
}

static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }
static int64_t most(int64_t x, int64_t y) { return x > y ? x : y; }

/* Whether x is a multiple of y > 0, which mostly is a power of two. */
static int is_multiple(int64_t x, int64_t y) {
  return y & (y - 1) ? x % y == 0 : !((uint64_t)x & (uint64_t)(y - 1));
}

static int64_t from_unsigned(uint64_t x, int *wrong) {
  if (x > INT64_MAX) return *wrong |= OVERFLOWS, 0;
  return (int64_t)x;
}

/* A size or stride as an argument. What does not fit leads nowhere: the stride of an axis of size 1
   may be anything. */
static int32_t index_32(int64_t x) { return is_small(x) ? (int32_t)x : 0; }
static int64_t index_64(int64_t x) { return x; }

/* Whether an array has no element. */
static int is_empty(const tilec_array *array) {
  int axis;
  for (axis = 0; axis < array->rank; axis++)
    if (array->shape[axis] == 0) return 1;
  return 0;
}

/* Whether sizes and the bytes between the first and the last element fit 32-bit indices. */
static int fits_32(const parameter *expected, const tilec_array *array) {
  int64_t bytes = expected->element_bytes;
  int axis, wrong = 0;
  for (axis = 0; axis < array->rank; axis++)
    if (array->shape[axis] >= index_limit_32) return 0;
  if (is_empty(array)) return 1;
  for (axis = 0; axis < array->rank; axis++) {
    int64_t stride = array->strides[axis];
    int64_t reach = times(array->shape[axis] - 1, stride < 0 ? -stride : stride, &wrong);
    bytes = plus(bytes, times(reach, expected->element_bytes, &wrong), &wrong);
  }
  return !wrong && bytes < index_limit_32;
}

/* Checks one array against what the kernel was compiled for. */
static tilec_error check_array(const parameter *expected, const tilec_array *array) {
  int axis, argument = expected->argument;
  int empty;
  if (array->dtype != expected->dtype) return problem(TILEC_DTYPE, argument, -1);
  if (array->rank != expected->rank) return problem(TILEC_RANK, argument, -1);
  if (array->address % (CUdeviceptr)expected->alignment)
    return problem(TILEC_ALIGNMENT, argument, -1);
  empty = is_empty(array);
  for (axis = 0; axis < array->rank; axis++) {
    int64_t size = array->shape[axis];
    if (size < 0 || (expected->sizes[axis] != ANY && size != expected->sizes[axis]) ||
        !is_multiple(size, expected->size_divisors[axis]))
      return problem(TILEC_SIZE, argument, axis);
  }
  for (axis = 0; axis < array->rank; axis++) {
    int64_t stride = array->strides[axis];
    if (array->shape[axis] <= 1 || empty) continue; /* it leads nowhere */
    if ((expected->is_written && stride == 0) || /* elements that are one in memory */
        (expected->strides[axis] != ANY && stride != expected->strides[axis]) ||
        !is_multiple(stride, expected->stride_divisors[axis]))
      return problem(TILEC_STRIDE, argument, axis);
  }
  return problem(TILEC_OK, -1, -1);
}

static tilec_error check_arrays(const parameter *expected, int count,
                                const tilec_array *const *arrays, int index_bits) {
  int n;
  for (n = 0; n < count; n++) {
    tilec_error error = check_array(&expected[n], arrays[n]);
    if (error.status) return error;
    if (index_bits == 32 && !fits_32(&expected[n], arrays[n]))
      return problem(TILEC_TOO_LARGE, expected[n].argument, -1);
  }
  return problem(TILEC_OK, -1, -1);
}

/* Checks what 32-bit indices are computed of. A division by zero limits nothing. */
static tilec_error check_limits(const int64_t *values, const int64_t *limits, int count, int wrong) {
  int n;
  if (wrong & DIVIDES_BY_ZERO) return problem(TILEC_OK, -1, -1);
  if (wrong) return problem(TILEC_LIMIT, -1, -1);
  for (n = 0; n < count; n++)
    if (values[n] > limits[n] || values[n] < -limits[n]) return problem(TILEC_LIMIT, -1, -1);
  return problem(TILEC_OK, -1, -1);
}

/* The first place in some memory where a tensor map may lie: C99 has no types that are aligned. */
static CUtensorMap *aligned(char *memory) {
  uintptr_t odd = (uintptr_t)memory % MAP_ALIGNMENT;
  return (CUtensorMap *)(void *)(memory + (odd ? MAP_ALIGNMENT - odd : 0));
}

/* Where the bounding box of `count` positions ends along a dimension, from the array's last element. */
static int64_t upper_corner(const recipe *made, int n, int64_t count, int64_t size, int *wrong) {
  int64_t last = times(count > 1 ? count - 1 : 0, made->steps[n], wrong);
  return plus(last, made->lower[n] + 1 - size, wrong);
}

/* Encodes how the copy engine sees an array; an empty one is an element of `zeros`. `counts`: the
   positions in im2col mode along each dimension between channels and images, `wrong` where they
   cannot be computed. */
static tilec_error encode(CUtensorMap *map, const recipe *made, const parameter *expected,
                          const tilec_array *array, const int64_t *counts, int wrong_counts,
                          CUdeviceptr zeros) {
  static const int64_t most_corners[] = {@most_corners@};
  cuuint64_t sizes[MOST_RANK], strides[MOST_RANK];
  cuuint32_t steps[MOST_RANK];
  int lower[MOST_RANK], upper[MOST_RANK];
  int n, argument = expected->argument, empty = is_empty(array);
  int64_t row = array->shape[made->dims[0]];
  if (array->address % VECTOR_BYTES && !empty) return problem(TILEC_TENSOR_MAP, argument, -1);
  if ((made->stores && row * expected->element_bytes % VECTOR_BYTES) ||
      (array->strides[made->dims[0]] != 1 && row > 1 && !empty))
    return problem(TILEC_TENSOR_MAP, argument, made->dims[0]);
  strides[0] = VECTOR_BYTES; /* of a row alone: the driver wants one */
  for (n = 0; n < made->rank; n++) {
    int axis = made->dims[n], wrong = 0;
    int64_t size = array->shape[axis];
    int64_t stride = times(array->strides[axis], expected->element_bytes, &wrong);
    if (size > index_limit_32) return problem(TILEC_TENSOR_MAP, argument, axis);
    sizes[n] = empty ? 1 : (cuuint64_t)size;
    steps[n] = 1;
    if (n == 0) continue;
    if (empty || size <= 1) stride = VECTOR_BYTES, wrong = 0; /* leads nowhere, and may be odd */
    if (wrong || stride % VECTOR_BYTES || stride < 0 || stride > largest_stride)
      return problem(TILEC_TENSOR_MAP, argument, axis);
    strides[n - 1] = (cuuint64_t)stride;
  }
  if (made->walks) {
    for (n = 0; n < made->rank - 2; n++) {
      int axis = made->dims[n + 1], wrong = wrong_counts;
      int64_t most = most_corners[made->rank - 3];
      int64_t corner = upper_corner(made, n, counts[n], array->shape[axis], &wrong);
      if (!empty && (wrong || corner > most || corner < -most))
        return problem(TILEC_TENSOR_MAP, argument, axis);
      lower[n] = empty ? 0 : made->lower[n];
      upper[n] = empty ? 0 : (int)corner;
      steps[n + 1] = made->steps[n];
    }
    return driver(cuTensorMapEncodeIm2col(
        map, made->dtype, (cuuint32_t)made->rank,
        (void *)(uintptr_t)(empty ? zeros : array->address), sizes, strides, lower, upper,
        made->box[0], made->box[1], steps, CU_TENSOR_MAP_INTERLEAVE_NONE, made->swizzle,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  }
  return driver(cuTensorMapEncodeTiled(
      map, made->dtype, (cuuint32_t)made->rank, (void *)(uintptr_t)(empty ? zeros : array->address),
      sizes, strides, made->box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, made->swizzle,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

/* The CTAs of a persistent kernel that take `clusters` programs evenly. */
static int64_t even_share(int64_t clusters, int64_t resident) {
  int64_t rounds, even;
  if (clusters <= resident) return clusters;
  rounds = (clusters + resident - 1) / resident;
  even = (clusters + rounds - 1) / rounds;
  return resident - even <= resident / LEFT_OUT ? even : resident;
}

/* Fills in how many CTAs run a grid of programs, and how many threads each has. `attribute` lives
   as long as `config`. A grid without programs leaves gridDimX 0. */
static tilec_error place(CUlaunchConfig *config, CUlaunchAttribute *attribute, const program *made,
                         const int64_t *grid, int wrong, int resident, int multiprocessors,
                         int takes_early, CUstream stream) {
  int64_t programs = 1, ctas = 1, clusters = 1;
  int axis, size = made->cluster[0] * made->cluster[1] * made->cluster[2], early = takes_early;
  memset(config, 0, sizeof *config);
  if (wrong) return problem(TILEC_GRID, -1, -1);
  for (axis = 0; axis < 3; axis++) {
    if (grid[axis] < 0 || grid[axis] > grid_limits[axis]) return problem(TILEC_GRID, -1, axis);
    programs = times(programs, grid[axis], &wrong);
    clusters = times(clusters, (grid[axis] + made->cluster[axis] - 1) / made->cluster[axis], &wrong);
  }
  if (!grid[0] || !grid[1] || !grid[2]) return problem(TILEC_OK, -1, -1);
  if (wrong) return problem(TILEC_GRID, -1, -1);
  if ((made->is_persistent ? programs : grid[0]) > made->most_programs)
    return problem(TILEC_LIMIT, -1, -1);
  config->gridDimY = config->gridDimZ = 1;
  config->blockDimX = (unsigned)made->threads;
  if (!made->is_persistent) {
    ctas = times(grid[0], made->stripes, &wrong);
    config->gridDimY = (unsigned)grid[1];
    config->gridDimZ = (unsigned)grid[2];
  } else if (made->is_dynamic) {
    ctas = times(clusters, size, &wrong);
  } else if (clusters > grid_limits[0] - (int64_t)resident * made->rounds * made->programs_per_cta) {
    return problem(TILEC_GRID, -1, -1);
  } else if (made->programs_per_cta > 1) {
    int64_t side = (int64_t)multiprocessors * made->programs_per_cta;
    int64_t each = (clusters + side - 1) / side;
    ctas = least(least(clusters, (int64_t)resident * made->rounds), multiprocessors * each);
  } else {
    int64_t side = most(1, resident / size);
    ctas = (made->has_roles ? even_share(clusters, side) : least(clusters, side)) * size;
  }
  if (wrong || ctas > grid_limits[0]) return problem(TILEC_GRID, -1, -1);
  if (made->programs_per_cta > 1) {
    int64_t each = least(made->programs_per_cta, (programs + ctas - 1) / ctas);
    config->blockDimX = (unsigned)(made->threads / made->programs_per_cta * each);
  }
  if (made->is_persistent) early = early && programs <= SHORT_ROUNDS * ctas;
  config->gridDimX = (unsigned)ctas;
  config->blockDimY = config->blockDimZ = 1;
  config->sharedMemBytes = (unsigned)made->shared_bytes;
  config->hStream = stream;
  if (made->starts_early && early) {
    memset(attribute, 0, sizeof *attribute);
    attribute->id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute->value.programmaticStreamSerializationAllowed = 1;
    config->attrs = attribute;
    config->numAttrs = 1;
  }
  return problem(TILEC_OK, -1, -1);
}

/* How many CTAs of a persistent kernel the GPU holds at once. */
static tilec_error count_resident(int *resident, const program *made, CUfunction function,
                                  int multiprocessors) {
  int size = made->cluster[0] * made->cluster[1] * made->cluster[2], found = 0;
  CUresult result;
  *resident = 0;
  if (!made->is_persistent || made->is_dynamic) return problem(TILEC_OK, -1, -1);
  if (size > 1) {
    CUlaunchAttribute attribute;
    CUlaunchConfig config;
    memset(&attribute, 0, sizeof attribute);
    memset(&config, 0, sizeof config);
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = (unsigned)size;
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    config.gridDimX = (unsigned)(size * multiprocessors);
    config.blockDimX = (unsigned)made->threads;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = (unsigned)made->shared_bytes;
    config.attrs = &attribute;
    config.numAttrs = 1;
    result = cuOccupancyMaxActiveClusters(&found, function, &config);
    *resident = found * size;
  } else {
    result = cuOccupancyMaxActiveBlocksPerMultiprocessor(&found, function, made->threads,
                                                         (size_t)made->shared_bytes);
    *resident = found * multiprocessors;
  }
  if (result == CUDA_SUCCESS && !found) return problem(TILEC_NO_CODE, -1, -1);
  return driver(result);
}

/* The number of the target whose code runs here, newest first; -1 if there is none. */
static tilec_error choose_target(int *number, int *multiprocessors, const target *targets,
                                 int count) {
  CUdevice device;
  CUresult result = cuCtxGetDevice(&device);
  int major = 0, minor = 0, shared_bytes = 0, n;
  if (!result)
    result = cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (!result)
    result = cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  if (!result)
    result = cuDeviceGetAttribute(&shared_bytes,
                                  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
  if (!result)
    result =
        cuDeviceGetAttribute(multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  if (result) return driver(result);
  for (n = 0; n < count; n++) {
    const target *found = &targets[n];
    int is_older = found->major < major || (found->major == major && found->minor < minor);
    int is_its_own = found->major == major && found->minor == minor;
    if ((is_its_own || (is_older && found->is_forward_compatible)) &&
        found->shared_bytes <= shared_bytes) {
      *number = n;
      return problem(TILEC_OK, -1, -1);
    }
  }
  return problem(TILEC_NO_CODE, -1, -1);
}

/* Loads a function's code now, as a stream that is being captured could not. */
static tilec_error load_now(CUfunction function, int version) {
  CUresult (*load)(CUfunction) = NULL;
  void *found = NULL;
  tilec_error error;
  if (version < FIRST_TO_LOAD_LATER) return problem(TILEC_OK, -1, -1);
  error = driver(cuGetProcAddress("cuFuncLoad", &found, FIRST_TO_LOAD_LATER,
                                  CU_GET_PROC_ADDRESS_DEFAULT, NULL));
  if (error.status) return error;
  memcpy(&load, &found, sizeof load);
  return driver(load(function));
}

/* Loads code into the current context: machine code where the driver takes it, else PTX. */
static tilec_error load_code(CUmodule *module, const char *ptx, const unsigned char *cubin,
                             char *log, unsigned log_bytes) {
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[2];
  values[0] = log;
  values[1] = (void *)(uintptr_t)log_bytes;
  if (cubin) {
    CUresult result = cuModuleLoadData(module, cubin);
    if (result != CUDA_ERROR_NO_BINARY_FOR_GPU) return driver(result);
  }
  return driver(cuModuleLoadDataEx(module, ptx, 2, options, values));
}
