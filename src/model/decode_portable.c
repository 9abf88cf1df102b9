/* decode_portable.c - the kernels of the decoder in plain C. */
#include "base/vexp.h"
#include <stddef.h>

#define TARGET
typedef struct lanes {
    float v[16];
} lanes;

static inline lanes lanes_load(const float *p)
{
    lanes r;
    memcpy(r.v, p, sizeof r.v);
    return r;
}
static inline void lanes_store(float *p, lanes a)
{
    memcpy(p, a.v, sizeof a.v);
}
static inline lanes lanes_set(float a)
{
    lanes r;
    for (size_t i = 0; i < 16; i++) r.v[i] = a;
    return r;
}
static inline lanes lanes_add(lanes a, lanes b)
{
    lanes r;
    for (size_t i = 0; i < 16; i++) r.v[i] = a.v[i] + b.v[i];
    return r;
}
static inline lanes lanes_sub(lanes a, lanes b)
{
    lanes r;
    for (size_t i = 0; i < 16; i++) r.v[i] = a.v[i] - b.v[i];
    return r;
}
static inline lanes lanes_mul(lanes a, lanes b)
{
    lanes r;
    for (size_t i = 0; i < 16; i++) r.v[i] = a.v[i] * b.v[i];
    return r;
}
static inline lanes lanes_fma(lanes a, lanes b, lanes c)
{
    lanes r;
    for (size_t i = 0; i < 16; i++) r.v[i] = a.v[i] * b.v[i] + c.v[i];
    return r;
}
static inline lanes lanes_max(lanes a, lanes b) /* a nan in a stays */
{
    lanes r;
    for (size_t i = 0; i < 16; i++) r.v[i] = b.v[i] > a.v[i] ? b.v[i] : a.v[i];
    return r;
}
static inline float lanes_sum(lanes a)
{
    for (size_t half = 8; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++) a.v[i] += a.v[i + half];
    return a.v[0];
}
static inline float lanes_largest(lanes a)
{
    float most = a.v[0];
    for (size_t i = 1; i < 16; i++) most = a.v[i] > most ? a.v[i] : most;
    return most;
}
static inline lanes lanes_exp(lanes x)
{
    for (size_t i = 0; i < 16; i++) x.v[i] = pare_exp_scalar(x.v[i]);
    return x;
}

#include "decode_lanes.h"

const decode_kernels decode_portable = {attend, norm, add};
