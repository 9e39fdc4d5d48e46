/* @name@, for @targets@: loads and launches it by CUDA's driver. Made by tilec. */
#ifndef TILEC_KERNEL_@name@
#define TILEC_KERNEL_@name@

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

@support@
/* @name@ in one context. `log` has what the driver's assembler said where loading failed. */
typedef struct @name@_kernel {
  CUmodule module;
  CUfunction function;
  CUdeviceptr zeros;
  int code, resident_ctas, multiprocessors, takes_early_launches;
  char log[2048];
} @name@_kernel;

/* Loads the code for the GPU of the current context. */
tilec_error @name@_load(@name@_kernel *kernel);

/* Launches on a stream of that context, which is current; waits for nothing. Any number of threads
   may launch a kernel that is loaded.
@documented@ */
tilec_error @name@_launch(const @name@_kernel *kernel, @arguments@);

/* Frees what loading took; no launch may be under way. */
tilec_error @name@_unload(@name@_kernel *kernel);

/* Writes what went wrong as a line of text, cut off at `size`; returns `text`. */
char *@name@_explain(tilec_error error, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
