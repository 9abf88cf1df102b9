/* tile_slopes.h - the slopes kernels of tile.h, one for each kind of CPU. */
#ifndef PARE_ATTENTION_TILE_SLOPES_H
#define PARE_ATTENTION_TILE_SLOPES_H
#include <stddef.h>

void slopes_portable(float *s, float *t, const float *lse, const float *mean, size_t keys,
                     size_t v);
#if defined(__x86_64__)
void slopes_avx512(float *s, float *t, const float *lse, const float *mean, size_t keys, size_t v);
void slopes_avx2(float *s, float *t, const float *lse, const float *mean, size_t keys, size_t v);
#endif

#endif
