/* npy.h - the .npy format in pieces, for npy.c (files) and npz.c (members). Messages do not name
 * the file: the caller puts it in front. */
#ifndef PARE_SRC_NPY_H
#define PARE_SRC_NPY_H
#include <pare/base.h>

#define PARE_NPY_HEADER_MAX 512 /* what pare_npy_header_print can need */

typedef struct pare_npy_header {
    pare_dtype dtype;
    size_t item; /* bytes of an element */
    bool fortran, swap;
    size_t ndim, shape[PARE_MAX_DIMS];
    size_t start; /* offset of the data */
    size_t data_bytes;
} pare_npy_header;

/* `bytes` is the whole .npy; the data must fill it exactly. */
PARE_MUST_USE pare_status pare_npy_header_parse(pare_npy_header *h, const uint8_t *bytes, size_t n,
                                                pare_err *err);
/* The array of a parsed header. Data that lies in `arena` already (`stays`) and needs no change is
 * borrowed, else copied there. */
PARE_MUST_USE pare_status pare_npy_place(pare_array *out, pare_arena *arena,
                                         const pare_npy_header *h, const uint8_t *bytes, bool stays,
                                         pare_err *err);
/* The header of a file that holds `a`, the same bytes numpy writes. */
PARE_MUST_USE pare_status pare_npy_header_print(char buf[PARE_NPY_HEADER_MAX], size_t *bytes,
                                                const pare_array *a, pare_err *err);
#endif
