/* decode_kernels.h - the vector loops of the decoder besides its products, one table for each kind
 * of CPU. Rows are padded to whole panels; what is filled up holds zeros and stays so. */
#ifndef PARE_MODEL_DECODE_KERNELS_H
#define PARE_MODEL_DECODE_KERNELS_H
#include "vector_kernels.h" /* LANES: also the tokens side by side in the key and value cache */

/* A norm made ready: y = (x + offset - mean?) / divisor? * gain + bias. */
typedef struct decode_norm {
    bool on, center, divide;
    size_t d; /* entries that count */
    float eps, divisor, shift;
    const float *offset, *gain, *bias; /* padded; offset and bias may be NULL */
} decode_norm;

/* One query of one head over the cache. Token j, entry c of the keys is at
 * k[j / LANES * kstep + c * LANES + j % LANES]; values alike. */
typedef struct decode_query {
    float *y;       /* dv */
    const float *q; /* dk */
    const float *k, *v;
    size_t kstep, vstep, dk, dv;
    float scale;
    size_t to0, from1, to1; /* visible: [0, to0) and [from1, to1), to0 <= from1 < to1 */
    float *s;               /* scores: as many as tokens fit, up to whole LANES, and LANES more */
} decode_query;

typedef struct decode_kernels {
    void (*attend)(const decode_query *q);
    void (*norm)(float *y, const float *x, const decode_norm *n); /* y may be x */
    /* y += x * w; w may be NULL: ones. n is padded. */
    void (*add)(float *y, const float *x, const float *w, size_t n);
} decode_kernels;

extern const decode_kernels decode_portable;
#if defined(__x86_64__)
extern const decode_kernels decode_avx2, decode_avx512;
#endif
#endif
