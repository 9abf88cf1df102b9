/* seedlm.c - for every block of weights the seed whose columns come nearest (SeedLM).
 *
 * Of a seed with columns U the coefficients are those of least squares, rounded to 4 bits under the
 * smallest power of two that holds them:
 *
 *     t = U^+ w,    e = ceil log2(max |t_p| / 7.5),    q_p = round(t_p 2^-e)
 *
 * and the seed with the least |w - 2^e U q| is taken. No q comes nearer than the projection of w, so
 * most seeds are ruled out by their share |Q^T w|^2 of |w|^2 alone, Q an orthonormal basis of U's
 * columns (f32, seedlm_lanes.h); SLACK is more than this can be wrong by. What is compared in the
 * end is computed in f64 without contraction, so that the choice is the same on any machine. */
#include "seedlm.h"
#include "base/simd.h"
#include "base/support.h"
#include "model/seeds.h"
#include <math.h>
#include <string.h>

#define SLACK     1e-4
#define DEPENDENT 1e-3 /* of a column's length, beside those before it: they are as good as one */
enum {
    BATCH = 128 /* blocks of one piece of work */,
    GROUPS = (SEEDS_STATES + SEEDLM_LANES) / SEEDLM_LANES
};

seedlm_shape seedlm_shape_of(unsigned bits)
{
    static const seedlm_shape shapes[] = {
        [2] = {16, 3}, [3] = {12, 4}, [4] = {8, 3}, [5] = {8, 5}, [6] = {6, 4}};
    PARE_ASSERT(bits >= PARE_QUANT_LEAST_BITS && bits <= PARE_QUANT_MOST_SEEDS);
    return shapes[bits];
}

uint64_t seedlm_bytes(size_t rows, size_t cols, unsigned bits)
{
    const seedlm_shape s = seedlm_shape_of(bits);
    return pare_coded_seeds_bytes(rows, cols, s.n, s.columns);
}

/* ---- the columns of a seed ------------------------------------------------------------------- */

/* Its columns U = Q R. */
typedef struct columns {
    double u[SEEDS_MOST_COLUMNS][SEEDS_MOST_BLOCK], q[SEEDS_MOST_COLUMNS][SEEDS_MOST_BLOCK];
    double r[SEEDS_MOST_COLUMNS][SEEDS_MOST_COLUMNS];
} columns;

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* False: they are dependent, or nearly. */
static bool columns_of(columns *c, uint32_t seed, const seedlm_shape *s)
{
    for (size_t i = 0; i < s->n; i++)
        for (size_t p = 0; p < s->columns; p++) {
            seed = seeds_next(seed);
            c->u[p][i] = ((double)seed - 0x1p15) * 0x1p-15;
        }
    for (size_t p = 0; p < s->columns; p++) {
        double *const q = c->q[p];
        memcpy(q, c->u[p], s->n * sizeof *q);
        for (size_t k = 0; k < p; k++) {
            c->r[k][p] = dot(c->q[k], q, s->n);
            for (size_t i = 0; i < s->n; i++) q[i] -= c->r[k][p] * c->q[k][i];
        }
        c->r[p][p] = sqrt(dot(q, q, s->n));
        if (!(c->r[p][p] > DEPENDENT * sqrt(dot(c->u[p], c->u[p], s->n)))) return false;
        for (size_t i = 0; i < s->n; i++) q[i] /= c->r[p][p];
    }
    return true;
}

/* ---- the search ------------------------------------------------------------------------------ */

typedef struct search {
    const quant_job *job;
    seedlm_shape shape;
    float *basis; /* GROUPS of them; zeros where columns are dependent */
    int exponent;
    pare_seed_block *block;
    size_t blocks;
    seedlm_scan_fn *scan;
} search;

static void fill_basis(void *self, size_t group)
{
    const search *const s = self;
    float *const to = s->basis + group * s->shape.columns * s->shape.n * SEEDLM_LANES;
    columns c;
    for (size_t l = 0; l < SEEDLM_LANES; l++) {
        const uint32_t seed = (uint32_t)(group * SEEDLM_LANES + l);
        if (seed == 0 || seed > SEEDS_STATES || !columns_of(&c, seed, &s->shape)) continue;
        for (size_t p = 0; p < s->shape.columns; p++)
            for (size_t i = 0; i < s->shape.n; i++)
                to[(p * s->shape.n + i) * SEEDLM_LANES + l] = (float)c.q[p][i];
    }
}

typedef struct block_search {
    double w[SEEDS_MOST_BLOCK], square;
    double error; /* of `best` */
    pare_seed_block best;
} block_search;

/* The seed becomes the best one if it is. */
static void try_seed(block_search *b, const search *s, uint32_t seed)
{
    columns c;
    double t[SEEDS_MOST_COLUMNS], most = 0, error = 0;
    int e;
    if (seed == 0 || !columns_of(&c, seed, &s->shape)) return;
    for (size_t p = s->shape.columns; p-- > 0;) {
        t[p] = dot(c.q[p], b->w, s->shape.n);
        for (size_t k = p + 1; k < s->shape.columns; k++) t[p] -= c.r[p][k] * t[k];
        t[p] /= c.r[p][p];
        most = fmax(most, fabs(t[p]));
    }
    if (frexp(most / (SEEDS_MOST_Q + 0.5), &e) == 0.5) e--;
    const int shift = e < s->exponent                      ? 0
                      : e > s->exponent + SEEDS_MOST_SHIFT ? SEEDS_MOST_SHIFT
                                                           : e - s->exponent;
    const double unit = ldexp(1, s->exponent + shift);
    pare_seed_block now = {.seed = (uint16_t)seed, .shift = (uint8_t)shift};
    for (size_t p = 0; p < s->shape.columns; p++)
        now.q[p] = (int8_t)fmin(SEEDS_MOST_Q, fmax(SEEDS_LEAST_Q, nearbyint(t[p] / unit)));
    for (size_t i = 0; i < s->shape.n; i++) {
        double is = 0;
        for (size_t p = 0; p < s->shape.columns; p++) is += now.q[p] * c.u[p][i];
        error += (b->w[i] - unit * is) * (b->w[i] - unit * is);
    }
    if (!(error < b->error)) return;
    b->error = error;
    b->best = now;
}

static float least_share(const block_search *b)
{
    return b->square > 0 ? (float)(1 - b->error / b->square - SLACK) : INFINITY;
}

static void take_hits(block_search *b, const search *s, const seedlm_hit *hit, size_t hits,
                      size_t first)
{
    for (size_t k = 0; k < hits; k++) {
        block_search *const of = &b[hit[k].block];
        if (hit[k].share >= least_share(of)) try_seed(of, s, (uint32_t)first + hit[k].seed);
    }
}

/* The blocks from `first` on: their weights, zeros behind the last one. */
static void open_blocks(block_search *b, float *w, const search *s, size_t first)
{
    const size_t n = s->shape.n, all = s->job->rows * s->job->cols;
    for (size_t k = 0; k < BATCH; k++) {
        const size_t from = (first + k) * n;
        b[k] = (block_search){.best = {.seed = 1}};
        for (size_t i = 0; i < n && from + i < all; i++) b[k].w[i] = (double)s->job->w[from + i];
        b[k].square = b[k].error = dot(b[k].w, b[k].w, n);
        const double unit = b[k].square > 0 ? 1 / sqrt(b[k].square) : 0;
        for (size_t i = 0; i < n; i++) w[k * n + i] = (float)(b[k].w[i] * unit);
    }
}

static void search_batch(void *self, size_t batch)
{
    search *const s = self;
    const size_t n = s->shape.n, first = batch * BATCH, wide = s->shape.columns * n * SEEDLM_LANES;
    const size_t count = s->blocks - first < BATCH ? s->blocks - first : BATCH;
    block_search b[BATCH];
    float w[BATCH * SEEDS_MOST_BLOCK], least[SEEDLM_TOGETHER];
    seedlm_hit hit[SEEDLM_TILE * SEEDLM_LANES * SEEDLM_TOGETHER];
    if (pare_stopped(s->job->exec, NULL)) return;
    open_blocks(b, w, s, first);
    for (size_t g = 0; g < GROUPS; g += SEEDLM_TILE)
        for (size_t k = 0; k < count; k += SEEDLM_TOGETHER) {
            for (size_t i = 0; i < SEEDLM_TOGETHER; i++) least[i] = least_share(&b[k + i]);
            const seedlm_scan scan = {.shape = s->shape,
                                      .basis = s->basis + g * wide,
                                      .groups = GROUPS - g < SEEDLM_TILE ? GROUPS - g : SEEDLM_TILE,
                                      .w = w + k * n,
                                      .least = least};
            const size_t hits = s->scan(hit, &scan);
            take_hits(b + k, s, hit, hits, g * SEEDLM_LANES);
        }
    for (size_t k = 0; k < count; k++) s->block[first + k] = b[k].best;
}

/* ---- a matrix -------------------------------------------------------------------------------- */

static seedlm_scan_fn *best_scan(void)
{
#if defined(__x86_64__)
    if (simd_best() == SIMD_AVX512) return seedlm_avx512;
    if (simd_best() == SIMD_AVX2) return seedlm_avx2;
#endif
    return seedlm_portable;
}

/* The exponent of the coefficients of the shift 0: that of the largest block's fits below the last. */
static pare_status find_exponent(search *s, pare_err *err)
{
    const size_t n = s->shape.n, all = s->job->rows * s->job->cols;
    double most = 0;
    for (size_t from = 0; from < all; from += n) {
        double square = 0;
        for (size_t i = from; i < from + n && i < all; i++)
            square += (double)s->job->w[i] * (double)s->job->w[i];
        most = fmax(most, square);
    }
    if (most > 0) {
        frexp(sqrt(most) / SEEDS_MOST_Q, &s->exponent);
        s->exponent += 1 - SEEDS_MOST_SHIFT;
    }
    if (isfinite(most) && s->exponent >= -64 && s->exponent <= 64) return PARE_OK;
    return pare_fail(err, PARE_ERR_INPUT, "blocks of length %g: no scale from 2^-64 to 2^64 fits",
                     sqrt(most));
}

static pare_status find_blocks(pare_seeds *out, pare_arena *scratch, const quant_job *job,
                               pare_err *err)
{
    search s = {.job = job, .shape = seedlm_shape_of((unsigned)job->bits), .scan = best_scan()};
    s.blocks = seeds_blocks(job->rows, job->cols, s.shape.n);
    s.block = pare_alloc(scratch, s.blocks, sizeof *s.block);
    s.basis =
        pare_alloc(scratch, GROUPS * s.shape.columns * s.shape.n * SEEDLM_LANES, sizeof(float));
    if (!s.block || !s.basis) return pare_no_memory(err);
    pare_status st = find_exponent(&s, err);
    if (!st) st = pare_parallel_until(job->exec, GROUPS, fill_basis, &s, err);
    if (!st)
        st = pare_parallel_until(job->exec, (s.blocks + BATCH - 1) / BATCH, search_batch, &s, err);
    *out = (pare_seeds){.rows = job->rows,
                        .cols = job->cols,
                        .n = s.shape.n,
                        .columns = s.shape.columns,
                        .exponent = s.exponent,
                        .block = s.block};
    return st;
}

pare_status seedlm_matrix(pare_coded *coded, float **expanded, pare_arena *a, const quant_job *job,
                          pare_err *err)
{
    pare_arena *const scratch = pare_arena_new();
    pare_seeds found;
    pare_weight w = {0};
    pare_status st = scratch ? find_blocks(&found, scratch, job, err) : pare_no_memory(err);
    if (!st) st = pare_coded_seeds(coded, a, &found, err);
    if (!st) st = pare_coded_expand(&w, NULL, scratch, coded->data, coded->bytes, SIZE_MAX, err);
    *expanded = st ? NULL : pare_alloc(a, job->rows * job->cols, sizeof **expanded);
    if (*expanded) memcpy(*expanded, w.data, job->rows * job->cols * sizeof **expanded);
    if (!st && !*expanded) st = pare_no_memory(err);
    pare_arena_free(scratch);
    return st;
}
