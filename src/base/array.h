/* array.h - arrays as they travel: .npy and .npz (stored and deflated, CRC checked). */
#ifndef PARE_BASE_ARRAY_H
#define PARE_BASE_ARRAY_H
#include <pare/base.h>

/* Element i (row-major) as a number, whatever the dtype (but PARE_TEXT). The integer of a float is
 * cut towards zero; what does not fit is the nearest that does, a nan is 0. */
int64_t pare_array_i64(const pare_array *a, size_t i);
bool pare_array_is_integer(const pare_array *a); /* PARE_BOOL is one: 0 or 1 */

/* Widens half precision (exactly). */
float pare_f16_to_f32(uint16_t h);
float pare_bf16_to_f32(uint16_t h);
/* The nearest half precision, ties to even; beyond the largest one: infinity. */
uint16_t pare_f16_of(double x);
uint16_t pare_bf16_of(double x);

/* The array lives in `arena`. Fortran order is transposed into row-major, big-endian into
 * little-endian; bf16 travels as '<V2', which numpy keeps as raw bytes; PARE_TEXT has no data. */
PARE_MUST_USE pare_status pare_npy_read_blob(pare_array *out, pare_arena *arena, const pare_blob *b,
                                             pare_err *err);

/* Of a file that was read already; takes a reference of its own. */
PARE_MUST_USE pare_status pare_npz_open_blob(pare_npz **out, pare_arena *arena, pare_blob *b,
                                             pare_err *err);
size_t pare_npz_count(const pare_npz *z);               /* members */
const char *pare_npz_name(const pare_npz *z, size_t i); /* without ".npy" */
/* n members of these names, stored or deflated; whole or not at all. */
PARE_MUST_USE pare_status pare_npz_write(const char *path, size_t n, const char *const *names,
                                         const pare_array *arrays, bool deflate, bool overwrite,
                                         pare_err *err);
#endif
