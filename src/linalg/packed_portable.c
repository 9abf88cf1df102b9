/* packed_portable.c - the kernels of packed matrices for every CPU. */
#include "packed_tile.h"

void packed_f32_portable(const packed_job *j)
{
    packed_f32(j);
}

void packed_round_portable(const packed_rounding *r)
{
    packed_round(r);
}

/* Codes of inputs i .. i + 3 of a panel, each times its q: sum[o] += ... */
static void add_four(int32_t *sum, const uint8_t *codes, const int8_t *q, int shift, int mask)
{
    for (size_t o = 0; o < PARE_PANEL; o++)
        for (size_t b = 0; b < 4; b++) sum[o] += (codes[4 * o + b] >> shift & mask) * (int)q[b];
}

static void panel_row(const packed_job *j, size_t row, size_t panel)
{
    const packed_product *const p = &j->p;
    const packed_matrix *const w = p->w;
    const bool nibbles = w->kind == PACKED_INT4;
    const uint8_t *codes = w->codes + panel * w->depth * PARE_PANEL / (nibbles ? 2u : 1u);
    const int8_t *const q = j->q + row * w->depth;
    float y[PARE_PANEL] = {0};
    for (size_t g = 0, i = 0; g < w->groups; g++) {
        const size_t end = w->depth - i < w->group ? w->depth : i + w->group;
        const int32_t all = j->qsums[row * w->groups + g];
        int32_t sum[PARE_PANEL] = {0};
        for (; i < end; i += PACKED_STEP) {
            add_four(sum, codes, q + i, 0, nibbles ? 15 : 255);
            if (!nibbles) codes += 4 * PARE_PANEL;
            add_four(sum, codes, q + i + 4, nibbles ? 4 : 0, nibbles ? 15 : 255);
            codes += 4 * PARE_PANEL;
        }
        const float scale = j->scales[row * w->groups + g];
        const size_t at = (panel * w->groups + g) * PARE_PANEL;
        for (size_t o = 0; o < PARE_PANEL; o++) {
            y[o] += w->scale[at + o] * scale * (float)(sum[o] - w->zero * all);
            if (w->offset) y[o] += w->offset[at + o] * (scale * (float)all);
        }
    }
    for (size_t o = 0, at = panel * PARE_PANEL; o < PARE_PANEL && at < p->outs; o++, at++) {
        float *const to = p->y + row * p->ldy + at;
        *to = y[o] + (p->bias ? p->bias[at] : 0) + (p->add ? *to : 0);
    }
}

void packed_int8_portable(const packed_job *j)
{
    for (size_t e = j->first; e < j->first + j->panels; e++)
        for (size_t r = 0; r < j->p.n; r++) panel_row(j, r, e);
}
