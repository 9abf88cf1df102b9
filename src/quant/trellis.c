/* trellis.c - a matrix as a path through a random table: rotation, scales, feedback, path.
 *
 * In the rotated matrix X (cols x rows here: a run is a piece of a column of X) an error D costs
 * tr(D M' D^T) with M' = H_c^T S_c M S_c H_c / order. Columns are laid one after the other; the
 * error of each is made good by those still open, as in feedback.c. Rows do not know one another,
 * so each part of the rows is work of its own. */
#include "base/support.h"
#include "linalg/matrix.h"
#include "trellis.h"
#include "viterbi.h"
#include <math.h>
#include <string.h>

#define RIDGE 0.01 /* of the mean square of an input: what the data do not show is not free */

typedef struct encoder {
    const trellis_job *job;
    pare_trellis t;
    pare_mat goal;   /* cols x rows: what is to be laid, in units of the table */
    pare_mat push;   /* cols x cols; v NULL: no feedback */
    int16_t *table;  /* by reversed states, and as the decoder has it */
    int16_t *worth;  /* of each row's error, 2^15 at most; NULL: 1 */
    uint8_t *fresh;  /* the new bits of each weight, cols x rows; the newest is the lowest */
    uint16_t *scale; /* of the rows as they lie in the matrix, or one */
    uint32_t *order; /* the row that is k-th on the path, and in goal */
    int exponent;
    unsigned shift;
    bool failed;
} encoder;

/* ---- sizes ----------------------------------------------------------------------------------- */

static size_t parts_of(size_t n, size_t size)
{
    return n > size ? (n + size / 2) / size : 1;
}

static pare_trellis shape_of(size_t rows, size_t cols, double bits, bool each_row, bool rotate)
{
    pare_trellis t = {.rows = rows, .cols = cols, .row_scales = each_row};
    t.eighths = (unsigned)lrint(bits * 8);
    t.state_bits = TRELLIS_STATE_BITS;
    t.row = t.col = (hadamard){1, 0};
    if (rotate) t.col = hadamard_for(cols, TRELLIS_MOST_GROWTH);
    if (rotate && !each_row) {
        t.row = hadamard_for(rows, TRELLIS_MOST_GROWTH / 2);
        t.col = hadamard_for(cols, TRELLIS_MOST_GROWTH / hadamard_order(t.row));
    }
    t.row_parts = parts_of(rows, TRELLIS_RUN);
    t.col_parts = rows >= TRELLIS_RUN / 2 ? cols : parts_of(cols, TRELLIS_RUN / rows);
    return t;
}

bool trellis_possible(size_t rows, size_t cols, double bits)
{
    if (rows == 0 || cols == 0) return false;
    const pare_trellis t = shape_of(rows, cols, bits, false, false);
    return trellis_check(&t, NULL) == PARE_OK;
}

uint64_t trellis_bytes(size_t rows, size_t cols, double bits, bool each_row)
{
    const pare_trellis t = shape_of(rows, cols, bits, each_row, false);
    return pare_coded_trellis_bytes(&t);
}

/* ---- rotation -------------------------------------------------------------------------------- */

/* goal = (H_r^T S_r W S_c H_c)^T / (orders) */
static void rotate(encoder *e, const int8_t *row_sign, const int8_t *col_sign, double *line)
{
    const size_t rows = e->t.rows, cols = e->t.cols;
    const double unit = 1.0 / (double)(hadamard_order(e->t.row) * hadamard_order(e->t.col));
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++)
            line[j] = (double)e->job->w[e->order[i] * cols + j] * row_sign[e->order[i]] *
                      col_sign[j] * unit;
        hadamard_apply(line, cols, 1, e->t.col, true);
        for (size_t j = 0; j < cols; j++) pare_row_mut(&e->goal, j)[i] = line[j];
    }
    for (size_t j = 0; j < cols; j++)
        hadamard_apply(pare_row_mut(&e->goal, j), rows, 1, e->t.row, true);
}

/* H^T S M S H / order, with M's transpose in between: it is symmetric. */
static void rotate_moments(pare_mat *m, hadamard h, const int8_t *sign)
{
    const size_t n = m->rows;
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < n; j++) pare_row_mut(m, i)[j] *= sign[j];
            hadamard_apply(pare_row_mut(m, i), n, 1, h, true);
        }
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < i; j++) {
                const double t = pare_row(m, i)[j];
                pare_row_mut(m, i)[j] = pare_row(m, j)[i];
                pare_row_mut(m, j)[i] = t;
            }
    }
    for (size_t i = 0; i < n * n; i++) m->v[i] /= (double)hadamard_order(h);
}

/* push[k][r]: what column r > k takes of column k's error. */
static pare_status find_push(encoder *e, pare_arena *a, const int8_t *sign, pare_err *err)
{
    const size_t n = e->t.cols;
    double mean = 0;
    pare_mat m = pare_mat_new(a, n, n);
    e->push = pare_mat_new(a, n, n);
    if (!m.v || !e->push.v) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) pare_row_mut(&m, i)[j] = pare_row(e->job->moments, i)[j];
    rotate_moments(&m, e->t.col, sign);
    for (size_t i = 0; i < n; i++) mean += pare_row(&m, i)[i] / (double)n;
    if (!(mean > 0)) {
        e->push.v = NULL;
        return PARE_OK;
    }
    for (size_t i = 0; i < n; i++) pare_row_mut(&m, i)[i] += RIDGE * mean;
    const pare_status st = pare_spd_inverse(&e->push, &m, err);
    for (size_t k = 0; !st && k < n; k++) { /* Cholesky's elimination, rows scaled by the pivot */
        double *const row = pare_row_mut(&e->push, k);
        for (size_t i = k + 1; i < n; i++) {
            double *const other = pare_row_mut(&e->push, i);
            const double by = row[i] / row[k];
            for (size_t j = i; j < n; j++) other[j] -= by * row[j];
        }
        for (size_t j = k + 1; j < n; j++) row[j] /= row[k];
    }
    return st;
}

/* ---- scales ---------------------------------------------------------------------------------- */

/* How much wider than the weights the table is, at 0, 1, ... bits: what left the least square error
 * of normal weights. */
static double spread_of(double bits)
{
    static const double at[] = {0.90, 0.92, 1.00, 1.06, 1.08, 1.09, 1.09, 1.09, 1.09};
    const size_t k = (size_t)bits;
    return k >= 8 ? at[8] : at[k] + (bits - (double)k) * (at[k + 1] - at[k]);
}

/* What row i has for the 1 of the table's normal distribution. */
static double deviation_of(const encoder *e, size_t first, size_t count)
{
    double sum = 0;
    for (size_t j = 0; j < e->t.cols; j++)
        for (size_t i = first; i < first + count; i++)
            sum += pare_row(&e->goal, j)[i] * pare_row(&e->goal, j)[i];
    return sqrt(sum / (double)(count * e->t.cols));
}

/* Scales of 16 bits, the largest with its highest bit set; goals in units of the table. */
static pare_status find_scales(encoder *e, pare_arena *a, pare_err *err)
{
    const size_t n = e->t.row_scales ? e->t.rows : 1, of = e->t.rows / n;
    const double spread = spread_of(e->job->bits) / TRELLIS_UNIT;
    double *const unit = pare_alloc(a, n, sizeof *unit), most = 0;
    e->scale = pare_alloc(a, n, sizeof *e->scale);
    if (!unit || !e->scale) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const double d = e->job->deviation > 0 ? e->job->deviation : deviation_of(e, i, of);
        unit[i] = d * spread;
        most = fmax(most, unit[i]);
    }
    if (most > 0) frexp(most, &e->exponent);
    e->exponent -= 16;
    if (!isfinite(most) || e->exponent < -64 || e->exponent > 64)
        return pare_fail(err, PARE_ERR_INPUT,
                         "weights of deviation %g: no scale from 2^-64 to 2^64 fits",
                         most / spread);
    for (size_t i = 0; i < n; i++) {
        const double s = nearbyint(ldexp(unit[i], -e->exponent));
        e->scale[n > 1 ? e->order[i] : i] = (uint16_t)fmin(s, UINT16_MAX);
    }
    for (size_t j = 0; j < e->t.cols; j++)
        for (size_t i = 0; i < e->t.rows; i++) {
            const double s = ldexp(e->scale[n > 1 ? e->order[i] : 0], e->exponent);
            double *const g = &pare_row_mut(&e->goal, j)[i];
            *g = s > 0 ? *g / s : 0;
        }
    return PARE_OK;
}

/* What the error of a row counts, in units of its scale: between nothing but the absolute error (the
 * scale) and nothing but the relative one (1), because norms follow; a quarter at least, below
 * which 16-bit costs would no longer see it. And what the caller says the row is worth. */
static pare_status find_worth(encoder *e, pare_arena *a, pare_err *err)
{
    const size_t n = e->t.rows;
    if (!e->t.row_scales && !e->job->worth) return PARE_OK;
    double *const w = pare_alloc(a, n, sizeof *w), square = 0, scale = 0;
    e->worth = pare_alloc(a, n, sizeof *e->worth);
    if (!w || !e->worth) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) scale += (double)e->scale[e->t.row_scales ? i : 0] / (double)n;
    for (size_t i = 0; i < n; i++) {
        const size_t row = e->order[i];
        const double own = scale > 0 ? e->scale[e->t.row_scales ? row : 0] / scale : 1;
        w[i] = fmax(sqrt(own), 0.25);
        if (e->job->worth) w[i] *= sqrt(fmax(e->job->worth[row], 0));
        square += w[i] * w[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) { /* 3 deviations are the most */
        const double q = square > 0 ? w[i] / (3 * sqrt(square)) * 32768 : 1;
        e->worth[i] = (int16_t)fmax(1, fmin(nearbyint(q), INT16_MAX));
    }
    return PARE_OK;
}

/* ---- the path -------------------------------------------------------------------------------- */

typedef struct rows_work {
    encoder *e;
    size_t first, count; /* rows */
    viterbi_run run;
    int16_t *target, *worth, *memory;
    uint32_t *state;
    pare_mat error; /* of the columns since goals were last settled */
} rows_work;

static uint32_t reversed(uint32_t v, unsigned bits)
{
    uint32_t r = 0;
    for (unsigned k = 0; k < bits; k++) r |= (v >> k & 1) << (bits - 1 - k);
    return r;
}

static int16_t target_of(double goal)
{
    return (int16_t)fmax(-INT16_MAX, fmin(INT16_MAX, nearbyint(goal * VITERBI_UNIT)));
}

/* Columns from .. to - 1 as one run: new bits, and the entries that the ring of these bits has. */
static void lay_columns(rows_work *w, size_t from, size_t to)
{
    encoder *const e = w->e;
    const size_t count = w->count;
    const uint32_t mask = (UINT32_C(1) << e->t.state_bits) - 1;
    w->run.n = (to - from) * count;
    for (size_t t = 0; t < w->run.n; t++) {
        const size_t j = from + t / count, i = w->first + t % count;
        w->target[t] = target_of(pare_row(&e->goal, j)[i]);
        if (w->worth) w->worth[t] = e->worth[i];
    }
    viterbi(w->state, &w->run, w->memory);
    uint32_t state = w->state[w->run.n - 1];
    for (size_t t = 0; t < w->run.n; t++) {
        const size_t j = from + t / count, i = w->first + t % count;
        const uint64_t k = trellis_bits(&e->t, t + 1) - trellis_bits(&e->t, t);
        const uint32_t bits = w->state[t] & ((UINT32_C(1) << k) - 1);
        state = (state << k | bits) & mask;
        e->fresh[j * e->t.rows + i] = (uint8_t)bits;
        w->state[t] = state;
    }
}

/* What the columns still open take of the errors of from .. to - 1, those up to `end` now and the
 * others when the block is full. */
static void push_errors(rows_work *w, size_t from, size_t to, size_t begin, size_t end)
{
    encoder *const e = w->e;
    for (size_t k = from; k < to; k++) {
        double *const error = pare_row_mut(&w->error, k - begin);
        const double *const goal = pare_row(&e->goal, k) + w->first;
        for (size_t i = 0; i < w->count; i++)
            error[i] =
                goal[i] - e->table[w->state[(k - from) * w->count + i]] / (double)VITERBI_UNIT;
        for (size_t r = k + 1; r < end; r++) {
            double *const other = pare_row_mut(&e->goal, r) + w->first;
            const double by = pare_row(&e->push, k)[r];
            for (size_t i = 0; i < w->count; i++) other[i] -= by * error[i];
        }
    }
}

static void lay_all(rows_work *w)
{
    encoder *const e = w->e;
    enum { BLOCK = 64 };
    const pare_trellis *const t = &e->t;
    for (size_t part = 0; part < t->col_parts;) {
        const size_t begin = trellis_part(t->cols, t->col_parts, part);
        size_t end = begin, next = part;
        while (next < t->col_parts && (end - begin < BLOCK || end == begin)) {
            const size_t to = trellis_part(t->cols, t->col_parts, next + 1);
            if (to - begin > BLOCK && end > begin) break;
            end = to, next++;
        }
        for (; part < next; part++) {
            if (pare_stopped(e->job->exec, NULL)) return;
            const size_t from = trellis_part(t->cols, t->col_parts, part),
                         to = trellis_part(t->cols, t->col_parts, part + 1);
            lay_columns(w, from, to);
            if (e->push.v) push_errors(w, from, to, begin, end);
        }
        if (!e->push.v || end == t->cols) continue;
        pare_mat open = pare_mat_part(&e->goal, end, w->first, t->cols - end, w->count);
        const pare_mat push = pare_mat_part(&e->push, begin, end, end - begin, t->cols - end);
        const pare_mat error = pare_mat_part(&w->error, 0, 0, end - begin, w->count);
        pare_gemm(&open, -1, &push, true, &error, false, 1);
    }
}

static void lay_rows(void *ctx, size_t part)
{
    encoder *const e = ctx;
    const pare_trellis *const t = &e->t;
    const size_t first = trellis_part(t->rows, t->row_parts, part),
                 count = trellis_part(t->rows, t->row_parts, part + 1) - first;
    const size_t wide = (t->cols + t->col_parts - 1) / t->col_parts, most = wide * count;
    pare_arena *const a = pare_arena_new();
    rows_work w = {.e = e, .first = first, .count = count};
    w.run = (viterbi_run){.table = e->table,
                          .state_bits = t->state_bits,
                          .eighths = t->eighths,
                          .shift = e->shift,
                          .n = most};
    if (a) {
        w.target = pare_alloc(a, most, sizeof *w.target);
        w.state = pare_alloc(a, most, sizeof *w.state);
        w.memory = pare_alloc(a, viterbi_memory(&w.run), sizeof *w.memory);
        w.error = pare_mat_new(a, 64 > wide ? 64 : wide, count);
        if (e->worth) w.worth = pare_alloc(a, most, sizeof *w.worth);
    }
    w.run.target = w.target, w.run.weight = w.worth;
    if (!a || !w.target || !w.state || !w.memory || !w.error.v || (e->worth && !w.worth))
        e->failed = true;
    else
        lay_all(&w);
    pare_arena_free(a);
}

/* The bits of all runs, oldest first. */
static uint8_t *join_path(const encoder *e, pare_arena *a)
{
    const pare_trellis *const t = &e->t;
    uint8_t *const path = pare_alloc(a, (size_t)(trellis_path_bits(t) / 8 + 1), 1);
    uint64_t at = 0;
    for (size_t c = 0; path && c < t->col_parts; c++)
        for (size_t r = 0; r < t->row_parts; r++) {
            uint64_t n = 0;
            for (size_t j = trellis_part(t->cols, t->col_parts, c);
                 j < trellis_part(t->cols, t->col_parts, c + 1); j++)
                for (size_t i = trellis_part(t->rows, t->row_parts, r);
                     i < trellis_part(t->rows, t->row_parts, r + 1); i++, n++) {
                    const uint64_t k = trellis_bits(t, n + 1) - trellis_bits(t, n);
                    for (uint64_t b = k; b-- > 0; at++)
                        path[at / 8] |= (uint8_t)((e->fresh[j * t->rows + i] >> b & 1) << (at % 8));
                }
        }
    return path;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static pare_status find_table(encoder *e, pare_arena *a, pare_err *err)
{
    const size_t states = (size_t)1 << e->t.state_bits;
    int16_t *const table = pare_alloc(a, states, sizeof *table);
    uint32_t *const order = pare_alloc(a, states, sizeof *order);
    e->table = pare_alloc(a, states + VITERBI_PAD, sizeof *e->table);
    if (!table || !order || !e->table) return pare_no_memory(err);
    trellis_table(table, order, e->t.seed, e->t.stream, e->t.state_bits);
    for (uint32_t s = 0; s < states; s++)
        e->table[reversed(s, e->t.state_bits)] = (int16_t)(table[s] * VITERBI_UNIT);
    return PARE_OK;
}

static pare_status prepare(encoder *e, pare_arena *a, pare_err *err)
{
    const size_t rows = e->t.rows, cols = e->t.cols;
    int8_t *const row_sign = pare_alloc(a, rows, 1), *const col_sign = pare_alloc(a, cols, 1);
    double *const line = pare_alloc(a, cols, sizeof *line);
    e->goal = pare_mat_new(a, cols, rows);
    e->fresh = pare_alloc(a, cols, rows);
    e->order = pare_alloc(a, rows, sizeof *e->order);
    if (!e->order || !row_sign || !col_sign || !line || !e->goal.v || !e->fresh)
        return pare_no_memory(err);
    trellis_order(e->order, &e->t);
    trellis_signs(row_sign, &e->t, 1);
    trellis_signs(col_sign, &e->t, 2);
    rotate(e, row_sign, col_sign, line);
    pare_status st = find_scales(e, a, err);
    if (!st) st = find_worth(e, a, err);
    if (!st) st = find_table(e, a, err);
    if (!st && e->job->moments) st = find_push(e, a, col_sign, err);
    return st;
}

pare_status trellis_matrix(pare_coded *coded, float **expanded, pare_arena *a,
                           const trellis_job *job, pare_err *err)
{
    encoder e = {.job = job};
    e.t = shape_of(job->rows, job->cols, job->bits, job->each_row, job->rotate);
    e.t.seed = job->seed;
    e.t.stream = job->stream;
    e.t.shuffled = job->each_row && job->worth;
    if (job->state_bits) e.t.state_bits = job->state_bits;
    /* An error of 4.6 deviations costs the most that there is, half of that with each shift: finer
     * costs would take all states for equally bad where a weight is far out. */
    e.shift = (e.t.eighths > 40 ? 1u : 0u) + (job->worth || job->each_row ? 1u : 0u);
    pare_status st = trellis_check(&e.t, err);
    if (st) return st;
    pare_arena *const scratch = pare_arena_new();
    uint8_t *path = NULL;
    pare_weight w = {0};
    st = scratch ? prepare(&e, scratch, err) : pare_no_memory(err);
    if (!st) st = pare_parallel_until(job->exec, e.t.row_parts, lay_rows, &e, err);
    if (!st && !(e.failed || !(path = join_path(&e, scratch))))
        st = pare_coded_trellis(coded, a, &e.t, e.exponent, e.scale, path, err);
    else if (!st)
        st = pare_no_memory(err);
    if (!st) st = pare_coded_expand(&w, NULL, a, coded->data, coded->bytes, SIZE_MAX, err);
    pare_arena_free(scratch);
    if (!st) *expanded = (float *)(uintptr_t)w.data;
    return st;
}
