/* packed.c - packed matrices (packed.h): packing, single entries, and products over threads. */
#include "base/array.h"
#include "base/simd.h"
#include "packed.h"
#include "tiles.h"
#include <string.h>

enum {
    SMALL_WORK = 1 << 18, /* multiplications below which a second thread costs more than it gives */
    BLOCK_WORK = 1 << 17, /* ... of one block, at least */
    WIDE = 4              /* panels that a wide tile takes */
};

/* ---- packing ----------------------------------------------------------------------------------- */

bool packed_takes(size_t cols, size_t group)
{
    return least(cols, group) <= PACKED_MOST_GROUP && (group >= cols || group % PACKED_STEP == 0);
}

static bool is_half(packed_kind kind)
{
    return kind == PACKED_F16 || kind == PACKED_BF16;
}

static size_t panel_bytes(const packed_matrix *w)
{
    return w->depth * PARE_PANEL / (w->kind == PACKED_INT4 ? 2 : 1) * (is_half(w->kind) ? 2 : 1);
}

/* Where entry (r, c) lies: its byte. In 4 bits: the upper half of it for c % 8 >= 4. */
static size_t byte_of(const packed_matrix *w, size_t r, size_t c)
{
    const size_t panel = r / PARE_PANEL * panel_bytes(w), o = r % PARE_PANEL;
    if (is_half(w->kind)) return panel + 2 * (c * PARE_PANEL + o);
    const size_t inputs = w->kind == PACKED_INT4 ? 8 : 4;
    return panel + c / inputs * PARE_PANEL * 4 + 4 * o + c % 4;
}

static size_t scale_of(const packed_matrix *w, size_t r, size_t c)
{
    return (r / PARE_PANEL * w->groups + c / w->group) * PARE_PANEL + r % PARE_PANEL;
}

/* As the numbers of the file are expanded: product and sum each rounded. */
static float entry(const packed_matrix *w, size_t r, size_t c)
{
    const uint8_t *const at = w->codes + byte_of(w, r, c);
    if (is_half(w->kind)) {
        uint16_t h;
        memcpy(&h, at, sizeof h);
        return w->kind == PACKED_F16 ? pare_f16_to_f32(h) : pare_bf16_to_f32(h);
    }
    const int code = w->kind == PACKED_INT8 ? *at : *at >> (c % 8 < 4 ? 0 : 4) & 15;
    const size_t s = scale_of(w, r, c);
    const float product = w->scale[s] * (float)(code - w->zero);
    return w->offset ? product + w->offset[s] : product;
}

static double entry_at(const pare_packed_weight *self, size_t i)
{
    const packed_matrix *const w = (const packed_matrix *)self;
    return (double)entry(w, i / w->cols, i % w->cols);
}

void packed_row(float *to, const packed_matrix *w, size_t r)
{
    for (size_t c = 0; c < w->cols; c++) to[c] = entry(w, r, c);
}

/* Integers are: their scales were looked at when they were read. */
bool packed_finite(const packed_matrix *w, size_t *where)
{
    const unsigned infinite = w->kind == PACKED_F16 ? 0x7c00 : 0x7f80;
    for (size_t i = 0; is_half(w->kind) && i < w->rows * w->cols; i++) {
        uint16_t h;
        memcpy(&h, w->codes + byte_of(w, i / w->cols, i % w->cols), sizeof h);
        if ((h & infinite) != infinite) continue;
        if (where) *where = i;
        return false;
    }
    return true;
}

/* An empty matrix with room for its codes. */
static packed_matrix *new_matrix(uint8_t **codes, pare_arena *a, packed_kind kind, size_t rows,
                                 size_t cols)
{
    size_t bytes;
    packed_matrix *const w = pare_alloc(a, 1, sizeof *w);
    if (!w) return NULL;
    *w = (packed_matrix){
        .base = {entry_at, !is_half(kind)}, .kind = kind, .rows = rows, .cols = cols};
    w->depth = blocks_of(cols, PACKED_STEP) * PACKED_STEP;
    w->group = w->depth;
    w->groups = 1;
    if (!pare_mul(&bytes, blocks_of(rows, PARE_PANEL), panel_bytes(w))) return NULL;
    w->codes = *codes = pare_alloc(a, bytes, 1);
    return w->codes ? w : NULL;
}

static const float *pack_scales(const packed_matrix *w, pare_arena *a, const float *from)
{
    size_t n;
    if (!pare_mul(&n, blocks_of(w->rows, PARE_PANEL) * PARE_PANEL, w->groups)) return NULL;
    float *const to = pare_alloc(a, n, sizeof *to);
    for (size_t r = 0; to && r < w->rows; r++)
        for (size_t g = 0; g < w->groups; g++)
            to[scale_of(w, r, g * w->group)] = from[r * w->groups + g];
    return to;
}

pare_status packed_integers(pare_weight *out, pare_arena *a, const pare_int_groups *g,
                            pare_err *err)
{
    PARE_ASSERT(packed_takes(g->cols, g->group) && g->rows > 0 && g->cols > 0);
    const packed_kind kind = g->bits <= 4 ? PACKED_INT4 : PACKED_INT8;
    uint8_t *codes = NULL;
    packed_matrix *const w = new_matrix(&codes, a, kind, g->rows, g->cols);
    if (!w) return pare_no_memory(err);
    if (g->group < g->cols) {
        w->group = g->group;
        w->groups = blocks_of(g->cols, g->group);
    }
    /* Integers of b bits begin at -2^(b-1), but at 0 where there are offsets and fewer than 8. */
    w->zero = kind == PACKED_INT8 ? 128 : g->offset ? 0 : 8;
    for (size_t r = 0; r < blocks_of(w->rows, PARE_PANEL) * PARE_PANEL; r++)
        for (size_t c = 0; c < w->depth; c++) {
            const bool there = r < w->rows && c < w->cols;
            const int code = (there ? g->q[r * w->cols + c] : 0) + w->zero;
            PARE_ASSERT(code >= 0 && code <= (kind == PACKED_INT8 ? 255 : 15));
            codes[byte_of(w, r, c)] |=
                (uint8_t)(kind == PACKED_INT4 && c % 8 >= 4 ? code << 4 : code);
        }
    w->scale = pack_scales(w, a, g->scale);
    w->offset = g->offset ? pack_scales(w, a, g->offset) : NULL;
    w->bytes = g->bytes;
    if (!w->scale || (g->offset && !w->offset)) return pare_no_memory(err);
    *out = (pare_weight){PARE_U8, w->rows, w->cols, w};
    return PARE_OK;
}

pare_status packed_halves(pare_weight *out, pare_arena *a, const uint8_t *from, size_t rows,
                          size_t cols, pare_dtype t, pare_err *err)
{
    PARE_ASSERT(t == PARE_F16 || t == PARE_BF16);
    uint8_t *codes = NULL;
    packed_matrix *const w =
        new_matrix(&codes, a, t == PARE_F16 ? PACKED_F16 : PACKED_BF16, rows, cols);
    if (!w) return pare_no_memory(err);
    w->bytes = 2 * rows * cols;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            memcpy(codes + byte_of(w, r, c), from + 2 * (r * cols + c), 2);
    *out = (pare_weight){PARE_U8, rows, cols, w};
    return PARE_OK;
}

/* ---- products ---------------------------------------------------------------------------------- */

typedef struct kernels {
    packed_fn *f32, *int8;
    packed_round_fn *round;
} kernels;

static kernels best_kernels(void)
{
    kernels k = {packed_f32_portable, packed_int8_portable, packed_round_portable};
#if defined(__x86_64__)
    if (simd_best() >= SIMD_AVX2)
        k = (kernels){packed_f32_avx2, packed_int8_avx2, packed_round_avx2};
    if (simd_best() >= SIMD_AVX512) {
        k.f32 = packed_f32_avx512;
        k.round = packed_round_avx512;
        if (__builtin_cpu_supports("avx512vnni")) k.int8 = packed_int8_vnni;
    }
#endif
    return k;
}

static size_t aligned(size_t bytes)
{
    return blocks_of(bytes, 64) * 64;
}

size_t packed_scratch(const packed_matrix *w, size_t n, bool int8)
{
    if (is_half(w->kind)) return 0;
    const size_t sums = aligned(n * w->groups * sizeof(float));
    return int8 ? 2 * sums + aligned(n * w->depth) : w->offset ? sums : 0;
}

/* The sum of x in every group of every row, in the order of the inputs. */
static void group_sums(float *to, const packed_product *p)
{
    for (size_t r = 0; r < p->n; r++)
        for (size_t g = 0, i = 0; g < p->w->groups; g++) {
            const size_t end = i + least(p->w->group, p->w->cols - i);
            float sum = 0;
            for (; i < end; i++) sum += p->x[r * p->ldx + i];
            *to++ = sum;
        }
}

static void round_rows(packed_job *j, const kernels *k, char *scratch)
{
    const packed_product *const p = &j->p;
    const packed_matrix *const w = p->w;
    const size_t sums = aligned(p->n * w->groups * sizeof(float));
    float *const scales = (float *)(void *)scratch;
    int32_t *const qsums = (int32_t *)(void *)(scratch + sums);
    int8_t *const q = (int8_t *)scratch + 2 * sums;
    for (size_t r = 0; r < p->n; r++) {
        const packed_rounding one = {p->x + r * p->ldx,
                                     w->cols,
                                     w->depth,
                                     w->group,
                                     q + r * w->depth,
                                     scales + r * w->groups,
                                     qsums + r * w->groups};
        k->round(&one);
    }
    j->q = q;
    j->scales = scales;
    j->qsums = qsums;
}

typedef struct split {
    packed_job all;
    packed_fn *fn;
    size_t panels; /* of a block */
} split;

static void one_block(void *ctx, size_t b)
{
    const split *const s = ctx;
    packed_job j = s->all;
    j.first = b * s->panels;
    j.panels = least(s->panels, s->all.panels - j.first);
    s->fn(&j);
}

void packed_apply(const packed_product *p, const packed_work *work)
{
    const kernels k = best_kernels();
    const size_t panels = blocks_of(p->w->rows, PARE_PANEL);
    split s = {.all = {.p = *p, .panels = panels}, .fn = k.f32};
    PARE_ASSERT(p->outs >= p->w->rows && p->outs <= panels * PARE_PANEL);
    if (p->n == 0) return;
    if (work->int8 && !is_half(p->w->kind)) {
        round_rows(&s.all, &k, work->scratch);
        s.fn = k.int8;
    } else if (p->w->offset) {
        group_sums(work->scratch, p);
        s.all.sums = work->scratch;
    }
    const double panel_work = (double)p->n * (double)(p->w->depth * PARE_PANEL);
    if (panel_work * (double)panels < SMALL_WORK) {
        s.fn(&s.all);
        return;
    }
    s.panels = panel_work < BLOCK_WORK ? (size_t)(BLOCK_WORK / panel_work) + 1 : 1;
    if (p->n == 1) s.panels = blocks_of(s.panels, WIDE) * WIDE;
    pare_parallel(work->exec, blocks_of(panels, s.panels), one_block, &s);
}
