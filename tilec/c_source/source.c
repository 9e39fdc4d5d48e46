/* @name@, for @targets@. Made by tilec; see @stem@.h. */
#include "@stem@.h"

#include <stdio.h>
#include <string.h>

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Woverlength-strings"
#endif

@support@
/* -- @name@ */

typedef struct scalars {
@scalars@
} scalars;

typedef tilec_error launch(const @name@_kernel *kernel, const tilec_array *const *arrays,
                           const scalars *numbers, const int64_t *grid, CUstream stream);

/* Code for one target. */
typedef struct code {
  const char *ptx;
  const unsigned char *cubin;
  const char *entry;
  const program *made;
  int has_tensor_maps;
  launch *run;
} code;

@tables@
static const code codes[] = {
@codes@};
static const char *const argument_names[] = {@names@};

static tilec_error prepare(@name@_kernel *kernel) {
  const code *found = &codes[kernel->code];
  int version = 0;
  tilec_error error =
      load_code(&kernel->module, found->ptx, found->cubin, kernel->log, sizeof kernel->log);
  if (error.status) return error;
  error = driver(cuModuleGetFunction(&kernel->function, kernel->module, found->entry));
  if (error.status) return error;
  if (found->made->shared_bytes > STATIC_SHARED_BYTES) {
    error = driver(cuFuncSetAttribute(kernel->function,
                                      CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                      found->made->shared_bytes));
    if (error.status) return error;
  }
  if (found->made->cluster[0] * found->made->cluster[1] * found->made->cluster[2] > PORTABLE_CTAS) {
    error = driver(cuFuncSetAttribute(kernel->function,
                                      CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    if (error.status) return error;
  }
  error = driver(cuDriverGetVersion(&version));
  if (error.status) return error;
  kernel->takes_early_launches = version >= FIRST_EARLY_DRIVER;
  error = load_now(kernel->function, version);
  if (error.status) return error;
  if (found->has_tensor_maps) {
    error = driver(cuMemAlloc(&kernel->zeros, 256));
    if (error.status) return error;
    error = driver(cuMemsetD8(kernel->zeros, 0, 256));
    if (error.status) return error;
  }
  return count_resident(&kernel->resident_ctas, found->made, kernel->function,
                        kernel->multiprocessors);
}

tilec_error @name@_load(@name@_kernel *kernel) {
  tilec_error error;
  memset(kernel, 0, sizeof *kernel);
  error = choose_target(&kernel->code, &kernel->multiprocessors, targets, @count@);
  if (error.status) return error;
  error = prepare(kernel);
  if (error.status) @name@_unload(kernel);
  return error;
}

tilec_error @name@_launch(const @name@_kernel *kernel, @arguments@) {
  const tilec_array *const arrays[] = {@arrays@};
  scalars numbers;
  const int64_t *const programs = @grid@;
@assigned@
  return codes[kernel->code].run(kernel, arrays, &numbers, programs, stream);
}

tilec_error @name@_unload(@name@_kernel *kernel) {
  tilec_error error = problem(TILEC_OK, -1, -1);
  if (kernel->zeros) error = driver(cuMemFree(kernel->zeros));
  if (kernel->module && !error.status) error = driver(cuModuleUnload(kernel->module));
  kernel->zeros = 0;
  kernel->module = NULL;
  return error;
}

char *@name@_explain(tilec_error error, char *text, size_t size) {
  static const char *const reasons[] = {
      "no error",
      "the driver refused it",
      "there is no code for this GPU; there is for @targets@",
      "another element type",
      "another number of dimensions",
      "an address that the kernel was not compiled for",
      "a size that the kernel was not compiled for",
      "a stride that the kernel was not compiled for, or 0 where it writes",
      "too large for 32-bit indices",
      "the copy engine cannot address it",
      "sizes or a grid beyond 32-bit indices",
      "a grid that is negative, too large, or divided by zero"};
  const char *name = "";
  char where[128] = "";
  if (error.status == TILEC_DRIVER) cuGetErrorName(error.result, &name);
  if (error.argument >= 0)
    snprintf(where, sizeof where, "argument %s: ", argument_names[error.argument]);
  if (error.axis >= 0)
    snprintf(where + strlen(where), sizeof where - strlen(where), "axis %d: ", error.axis);
  snprintf(text, size, "@name@: %s%s%s%s", where, reasons[error.status], *name ? ": " : "", name);
  return text;
}
