#ifndef TILEC_ARRAYS
#define TILEC_ARRAYS 1

enum { TILEC_MOST_DIMENSIONS = 8 };

/* The element types of arrays. */
typedef enum tilec_dtype {
@dtypes@
} tilec_dtype;

/* Memory of the GPU. `address`: of the element at 0, ..., 0. `shape`, `strides`: in elements. */
typedef struct tilec_array {
  CUdeviceptr address;
  tilec_dtype dtype;
  int rank;
  int64_t shape[TILEC_MOST_DIMENSIONS];
  int64_t strides[TILEC_MOST_DIMENSIONS];
} tilec_array;

typedef enum tilec_status {
  TILEC_OK,
  TILEC_DRIVER,     /* a function of the driver failed: `result` */
  TILEC_NO_CODE,    /* there is no code for this GPU */
  TILEC_DTYPE,      /* an array has another element type */
  TILEC_RANK,       /* an array has another number of dimensions */
  TILEC_ALIGNMENT,  /* an array begins at an address that the kernel was not compiled for */
  TILEC_SIZE,       /* the kernel was not compiled for such a size */
  TILEC_STRIDE,     /* the kernel was not compiled for such a stride, or writes where it is 0 */
  TILEC_TOO_LARGE,  /* an array is too large for the kernel's 32-bit indices */
  TILEC_TENSOR_MAP, /* the copy engine cannot address the array */
  TILEC_LIMIT,      /* sizes, or the grid, are beyond the kernel's 32-bit indices */
  TILEC_GRID        /* the grid is negative, too large, or divides by zero */
} tilec_status;

/* What went wrong. `argument`: its number, `axis`: the dimension, from 0; -1 where none is meant. */
typedef struct tilec_error {
  tilec_status status;
  int argument;
  int axis;
  CUresult result;
} tilec_error;

#endif
