/* pare/array.h - arrays as they travel: .npy and .npz (stored and deflated, CRC checked). */
#ifndef PARE_ARRAY_H
#define PARE_ARRAY_H
#include <pare/base.h>

typedef enum pare_dtype {
    PARE_BOOL,
    PARE_U8,
    PARE_I8,
    PARE_U16,
    PARE_I16,
    PARE_U32,
    PARE_I32,
    PARE_U64,
    PARE_I64,
    PARE_F16,
    PARE_BF16,
    PARE_F32,
    PARE_F64,
    PARE_TEXT /* fixed-width unicode of numpy ("<U7"): read so that a file with it opens, nothing
                 more */
} pare_dtype;

#define PARE_MAX_DIMS 8
typedef struct pare_array {
    pare_dtype dtype;
    size_t ndim, shape[PARE_MAX_DIMS];
    const void *data; /* row-major, little-endian; borrowed */
} pare_array;

size_t pare_dtype_size(pare_dtype t);         /* bytes of one element; 0 for PARE_TEXT */
const char *pare_dtype_name(pare_dtype t);    /* "F32": the safetensors name */
size_t pare_array_count(const pare_array *a); /* elements: the product of the shape */
/* Element i (row-major) as a number, whatever the dtype (but PARE_TEXT). The integer of a float is
 * cut towards zero; what does not fit is the nearest that does, a nan is 0. */
double pare_array_f64(const pare_array *a, size_t i);
int64_t pare_array_i64(const pare_array *a, size_t i);
bool pare_array_is_integer(const pare_array *a); /* PARE_BOOL is one: 0 or 1 */
/* "[3, 4]" for messages. */
const char *pare_shape_text(char buf[128], const size_t *shape, size_t ndim);

/* Widens half precision (exactly). */
float pare_f16_to_f32(uint16_t h);
float pare_bf16_to_f32(uint16_t h);

/* The array lives in `arena`. Fortran order is turned into row-major, big-endian into
 * little-endian; bf16 travels as '<V2', which numpy keeps as raw bytes; PARE_TEXT has no data. */
PARE_MUST_USE pare_status pare_npy_read(pare_array *out, pare_arena *arena, const char *path,
                                        pare_err *err);
PARE_MUST_USE pare_status pare_npy_read_blob(pare_array *out, pare_arena *arena, const pare_blob *b,
                                             pare_err *err);
/* Whole or not at all, little-endian. PARE_ERR_IO: what exists and may not be overwritten. */
PARE_MUST_USE pare_status pare_npy_write(const char *path, const pare_array *a, bool overwrite,
                                         pare_err *err);

/* An .npz opened: its members are decoded into `arena` one by one when they are asked for. */
typedef struct pare_npz pare_npz;
PARE_MUST_USE pare_status pare_npz_open(pare_npz **out, pare_arena *arena, const char *path,
                                        pare_err *err);
/* Of a file that was read already; takes a reference of its own. */
PARE_MUST_USE pare_status pare_npz_open_blob(pare_npz **out, pare_arena *arena, pare_blob *b,
                                             pare_err *err);
void pare_npz_close(pare_npz *z);         /* accepts NULL; arrays already decoded stay */
size_t pare_npz_count(const pare_npz *z); /* members */
const char *pare_npz_name(const pare_npz *z, size_t i); /* without ".npy" */
bool pare_npz_has(const pare_npz *z, const char *name);
/* PARE_ERR_INPUT naming file and member when it is missing or damaged. */
PARE_MUST_USE pare_status pare_npz_get(pare_array *out, const pare_npz *z, const char *name,
                                       pare_err *err);
/* n members of these names, stored or deflated; whole or not at all. */
PARE_MUST_USE pare_status pare_npz_write(const char *path, size_t n, const char *const *names,
                                         const pare_array *arrays, bool deflate, bool overwrite,
                                         pare_err *err);
#endif
