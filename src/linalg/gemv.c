/* gemv.c - panels: packing, the choice of a kernel, and the cut over threads.
 *
 * One token against all weights is bound by memory: the weights are laid out once in the order in
 * which they will be read, and large ones are read by all threads. */
#include "base/simd.h"
#include "packed.h"
#include "gemv.h"
#include <string.h>

enum {
    small_work = 1 << 17, /* multiplications below which a second thread costs more than it gives */
    block_work = 1 << 16  /* ... of one block, at least */
};

static gemv_fn *kernel(void)
{
#if defined(__x86_64__)
    if (simd_best() >= SIMD_AVX512) return gemv_avx512;
    if (simd_best() >= SIMD_AVX2) return gemv_avx2;
#endif
    return gemv_portable;
}

/* ---- packing ------------------------------------------------------------------------------ */

typedef struct pack_job {
    const pare_weight *w;
    size_t from, in;
    float *to;
} pack_job;

static void pack_panel(void *ctx, size_t panel)
{
    const pack_job *const j = ctx;
    const size_t first = panel * PARE_PANEL, left = j->w->rows - first;
    const size_t rows = left < PARE_PANEL ? left : PARE_PANEL;
    float *const to = j->to + panel * j->in * PARE_PANEL;
    for (size_t o = 0; o < rows; o++) {
        const size_t at = (first + o) * j->w->cols + j->from;
        for (size_t i = 0; i < j->in; i++)
            to[i * PARE_PANEL + o] = (float)pare_weight_at(j->w, at + i);
    }
}

/* Whole matrices that lie in panels already. */
static bool are_packed(const pare_part *part, size_t parts, size_t in)
{
    bool packed = parts > 0 && parts <= PARE_PANEL_PARTS;
    for (size_t p = 0; packed && p < parts; p++)
        packed = packed_of(part[p].w) && part[p].from == 0 && part[p].w->cols == in;
    return packed;
}

pare_status pare_panels_new(pare_panels *out, pare_arena *a, const pare_part *part, size_t parts,
                            size_t in, const pare_exec *exec, pare_err *err)
{
    *out = (pare_panels){.in = in};
    bool biased = false;
    for (size_t p = 0; p < parts; p++) {
        PARE_ASSERT(part[p].from <= part[p].w->cols && in <= part[p].w->cols - part[p].from);
        out->out += pare_padded(part[p].w->rows);
        biased = biased || (part[p].b && pare_has(part[p].b));
    }
    const bool packed = are_packed(part, parts, in);
    size_t count;
    float *const v =
        !packed && pare_mul(&count, out->out, in ? in : 1) ? pare_alloc(a, count, sizeof *v) : NULL;
    float *const bias = biased ? pare_alloc(a, out->out, sizeof *bias) : NULL;
    if ((!v && !packed) || (biased && !bias)) return pare_no_memory(err);
    size_t at = 0;
    for (size_t p = 0; p < parts; p++) {
        if (packed) {
            out->packed[out->npacked++] = packed_of(part[p].w);
        } else {
            pack_job j = {part[p].w, part[p].from, in, v + at * in};
            pare_parallel(exec, pare_padded(part[p].w->rows) / PARE_PANEL, pack_panel, &j);
        }
        const size_t biases = part[p].b && pare_has(part[p].b) ? part[p].w->rows : 0;
        for (size_t o = 0; o < biases; o++) bias[at + o] = (float)pare_weight_at(part[p].b, o);
        at += pare_padded(part[p].w->rows);
    }
    out->v = v;
    out->bias = bias;
    return PARE_OK;
}

/* ---- products ------------------------------------------------------------------------------ */

typedef struct split {
    gemv_job all;
    gemv_fn *fn;
    size_t panels; /* of a block */
} split;

static void one_block(void *ctx, size_t b)
{
    const split *const s = ctx;
    gemv_job j = s->all;
    const size_t first = b * s->panels, left = j.panels - first;
    j.panels = left < s->panels ? left : s->panels;
    j.w += first * j.in * PARE_PANEL;
    j.y += first * PARE_PANEL;
    if (j.bias) j.bias += first * PARE_PANEL;
    s->fn(&j);
}

void pare_panels_apply(float *y, size_t ldy, const pare_panels *p, const float *x, size_t ldx,
                       size_t n, bool add, const pare_exec *exec)
{
    PARE_ASSERT(p->npacked == 0);
    split s = {.all = {.y = y,
                       .w = p->v,
                       .x = x,
                       .bias = p->bias,
                       .ldy = ldy,
                       .ldx = ldx,
                       .in = p->in,
                       .n = n,
                       .panels = p->out / PARE_PANEL,
                       .add = add},
               .fn = kernel()};
    const double panel_work = (double)n * (double)(p->in * PARE_PANEL);
    if (panel_work * (double)s.all.panels < small_work) {
        s.fn(&s.all);
        return;
    }
    s.panels = panel_work < block_work ? (size_t)(block_work / panel_work) + 1 : 1;
    if (s.panels < 4 && n == 1) s.panels = 4; /* what a wide tile takes */
    pare_parallel(exec, (s.all.panels + s.panels - 1) / s.panels, one_block, &s);
}
