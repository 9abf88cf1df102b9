/* safetensors.h - reading the container: names, types, shapes, where the bytes are. */
#ifndef PARE_MODEL_SAFETENSORS_H
#define PARE_MODEL_SAFETENSORS_H
#include <pare/base.h>

typedef struct st_tensor {
    const char *name;
    pare_dtype dtype;
    size_t ndim, shape[PARE_MAX_DIMS];
    size_t begin, end;   /* offsets from the first data byte */
    const uint8_t *data; /* in the blob; may be unaligned in foreign files */
} st_tensor;

typedef struct st_file {
    pare_blob *blob; /* borrowed */
    const char *header;
    size_t header_bytes, data_bytes; /* data_bytes: what the tensors cover */
    size_t n;
    st_tensor *tensors;        /* by offset */
    const st_tensor **by_name; /* the same, for st_find */
    size_t nmeta;
    const char **meta_key, **meta_value;
} st_file;

bool st_looks_like(const pare_blob *b); /* by its first bytes */
/* Refuses, naming the tensor: unknown types, sizes that do not match, overlaps, ranges outside the
 * file, a header claim beyond the file, duplicate names. */
PARE_MUST_USE pare_status st_open(st_file *out, pare_arena *a, pare_blob *b, pare_err *err);
const st_tensor *st_find(const st_file *f, const char *name); /* NULL when absent */
const char *st_meta(const st_file *f, const char *key);       /* NULL when absent */
#endif
