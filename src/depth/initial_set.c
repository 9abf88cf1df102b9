/* initial_set.c - the set of tokens behind the embedding: the embedded vocabulary word by word, or
 * a box of vectors through map and norm; positions add a set of their own. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "initial_set.h"
#include <math.h>

/* ---- sets ------------------------------------------------------------------------------------ */

typedef struct limits {
    pare_mat lo, hi; /* 1 x columns */
} limits;

static limits column_limits(pare_work *k, const imat *t)
{
    limits s = {work_matrix(k, 1, t->mid.cols), work_matrix(k, 1, t->mid.cols)};
    for (size_t j = 0; !k->st && j < t->mid.cols; j++) {
        s.lo.v[j] = INFINITY;
        s.hi.v[j] = -INFINITY;
        for (size_t i = 0; i < t->mid.rows; i++) {
            const double x = pare_row(&t->mid, i)[j], r = t->rad.v ? pare_row(&t->rad, i)[j] : 0;
            const double lo = r == 0 ? x : nextafter(x - r, -INFINITY);
            const double hi = r == 0 ? x : nextafter(x + r, INFINITY);
            if (!(lo >= s.lo.v[j])) s.lo.v[j] = lo; /* a nan stays */
            if (!(hi <= s.hi.v[j])) s.hi.v[j] = hi;
        }
    }
    return s;
}

/* All rows of t, any of which may be a token. */
static token_set table_set(pare_work *k, const token_norm *at, const imat *t)
{
    const bool in_basis = at->kind == NORM_BOX && at->q.mid.v;
    const imat coords = in_basis ? imat_mul(k, t, &at->q) : *t;
    if (k->st) return (token_set){0};
    const limits s = column_limits(k, &coords);
    const size_t d = s.lo.cols;
    imat c = imat_zero(k, 1, d);
    pare_mat half = work_matrix(k, 1, d), width = work_matrix(k, 1, d);
    double half_max = 0, width_max = 0;
    for (size_t j = 0; !k->st && j < d; j++) {
        const double lo = s.lo.v[j], hi = s.hi.v[j], mid = lo / 2 + hi / 2;
        const double far = fmax(hi - mid, mid - lo);
        c.mid.v[j] = mid;
        half.v[j] = far == 0 ? 0 : pare_ub_of(far).v;
        width.v[j] = hi - lo == 0 ? 0 : pare_ub_of(hi - lo).v;
        half_max = fmax(half_max, half.v[j]);
        width_max = fmax(width_max, width.v[j]);
    }
    token_set r = {in_basis ? imat_mul(k, &c, &at->back) : c, half, width};
    if (at->kind == NORM_INF) {
        r.w = up_row(k, 1, half_max);
        r.d = up_row(k, 1, width_max);
    } else if (at->kind == NORM_TWO) { /* the largest distance of a row of t to c */
        pare_ub most = {0};
        for (size_t i = 0; !k->st && i < t->mid.rows; i++) {
            const pare_mark mark = pare_arena_mark(k->arena);
            const imat row = imat_part(t, i, 0, 1, t->mid.cols), off = imat_diff(k, &row, &c);
            most = pare_ub_max(most, imat_fro(k, &off));
            pare_arena_reset(k->arena, mark);
        }
        r.w = up_row(k, 1, most.v);
        r.d = k->st ? r.w : up_scale(k, &r.w, pare_ub_exact(2));
    }
    return r;
}

/* Vectors with entries at most w around 0, differing by at most d, through a map (NULL: none). */
static token_set box_set(pare_work *k, const token_norm *at, const imat *map, size_t width,
                         double w, double d)
{
    const token_norm raw = norm_plain(at->kind, width);
    const pare_ub root =
        at->kind == NORM_TWO ? pare_ub_sqrt(pare_ub_exact((double)width)) : pare_ub_exact(1);
    const double twice = 2 * w, apart = d >= 0 && d < twice ? d : twice;
    const pare_mat size = up_row(k, raw.k, pare_ub_mul(root, pare_ub_exact(w)).v);
    const pare_mat gap = up_row(k, raw.k, pare_ub_mul(root, pare_ub_exact(apart)).v);
    const imat one = map ? *map : imat_identity(k, width);
    const pare_mat m = norm_of_map(k, &raw, at, &one);
    return (token_set){imat_zero(k, 1, one.mid.cols), up_mul(k, &size, &m), up_mul(k, &gap, &m)};
}

/* ---- the embedding -------------------------------------------------------------------------------- */

typedef struct embedding_map {
    bool mapped;
    imat early, late; /* what is added before and after the input map goes through these */
    bool has_early, has_late;
    imat shift; /* 1 x d */
} embedding_map;

static bool embedding_map_of(pare_work *k, embedding_map *out, const pare_embedding *s, size_t d)
{
    affine_map norm;
    *out = (embedding_map){.mapped = pare_has(&s->map.w)};
    if (!affine_norm(k, &norm, &s->norm, d)) return false;
    imat b = imat_row(k, &s->map.b, 0, d);
    if (norm.any) {
        const imat moved = imat_mul(k, &b, &norm.a);
        b = imat_sum(k, &moved, &norm.shift);
        out->late = norm.a;
        out->has_late = true;
    }
    out->shift = b;
    out->has_early = out->mapped || norm.any;
    if (out->mapped) {
        const imat w = imat_weight(k, &s->map.w, 0, 0, d, s->width, true);
        out->early = affine_after(k, &w, &norm);
    } else {
        out->early = out->late;
    }
    return true;
}

static imat mapped_table(pare_work *k, const pare_weight *w, const imat *map, bool has)
{
    const imat t = imat_weight(k, w, 0, 0, w->rows, w->cols, false);
    return has ? imat_mul(k, &t, map) : t;
}

/* The set of what positions add; zero where they add nothing. */
static token_set position_set(pare_work *k, const token_norm *at, const pare_embedding *s,
                              const embedding_map *m, size_t d)
{
    const bool late = s->pos.after_map, has = late ? m->has_late : m->has_early;
    const imat *const map = late ? &m->late : &m->early;
    if (s->pos.kind == PARE_POS_LEARNED) {
        const imat t = mapped_table(k, &s->pos.table, map, has);
        return table_set(k, at, &t);
    }
    const double size = s->pos.kind == PARE_POS_SINUSOIDAL ? 1 : 0;
    return box_set(k, at, has ? map : NULL, late ? d : s->width, size, -1);
}

bool initial_set(pare_work *k, token_set *out, const token_norm *at, const pare_model *m,
                 const depth_domain *d, const char **why)
{
    const pare_embedding *const s = &m->embedding;
    const size_t width = pare_model_width(m, 0);
    embedding_map map;
    *why = "the norm of the embedding divides by the size of its input";
    if (!embedding_map_of(k, &map, s, width)) return false;
    token_set words = {0};
    if (s->ids) {
        const imat t = mapped_table(k, &s->table, &map.early, map.has_early);
        words = table_set(k, at, &t);
    } else {
        words =
            box_set(k, at, map.has_early ? &map.early : NULL, s->width, fabs(d->phi0), d->diam0);
    }
    if (s->pos.kind == PARE_POS_LEARNED || s->pos.kind == PARE_POS_SINUSOIDAL) {
        const token_set p = position_set(k, at, s, &map, width);
        words = (token_set){imat_sum(k, &words.c, &p.c), up_sum(k, &words.w, &p.w),
                            up_sum(k, &words.d, &p.d)};
    }
    words.c = imat_sum(k, &words.c, &map.shift);
    *out = words;
    return true;
}

/* ---- bases ----------------------------------------------------------------------------------- */

/* Inputs of each length 1, 2, 4, ... LONGEST: in long ones the mean over the tokens, which
 * attention adds, hardly moves. */
enum { SAMPLES = 64, LONGEST = 16 };

typedef struct sampler {
    pare_mat *gram; /* one for each place */
    size_t nblocks;
} sampler;

static void add_gram(void *self, pare_tap tap, size_t block, pare_dtype t, const void *v,
                     size_t rows, size_t cols)
{
    sampler *const s = self;
    const size_t place = tap == PARE_TAP_EMBEDDING  ? 0
                         : tap == PARE_TAP_ATTN_OUT ? 2 * block + 1
                                                    : 2 * block + 2;
    if (tap != PARE_TAP_EMBEDDING && tap != PARE_TAP_ATTN_OUT && tap != PARE_TAP_FFN_OUT) return;
    PARE_ASSERT(t == PARE_F64 && s->gram[place].rows == cols);
    const pare_mat x = {rows, cols, cols, (double *)v};
    pare_gemm(&s->gram[place], 1, &x, true, &x, false, 1);
}

/* Directions without any token would be arbitrary: a small diagonal, growing entry by entry, makes
 * the basis the same on every machine. */
static void eigenbasis(pare_work *k, pare_mat *gram)
{
    const size_t d = gram->rows;
    double trace = 0;
    for (size_t i = 0; i < d; i++) trace += pare_row(gram, i)[i];
    if (!(trace > 0) || !isfinite(trace)) {
        *gram = (pare_mat){0};
        return;
    }
    for (size_t i = 0; i < d; i++)
        pare_row_mut(gram, i)[i] += 1e-7 * trace * (double)(i + 1) / (double)d;
    double *const w = pare_work_alloc(k, d, sizeof *w);
    pare_mat v = work_matrix(k, d, d);
    if (k->st) return;
    const pare_status st = pare_eigh(w, &v, gram, k->arena, k->err);
    if (st == PARE_ERR_MEMORY) pare_work_keep(k, st);
    *gram = st ? (pare_mat){0} : v;
}

pare_status sample_bases(pare_mat **out, pare_work *k, const pare_model *m, const pare_exec *exec)
{
    const size_t places = 2 * m->nblocks + 1;
    sampler s = {pare_work_alloc(k, places, sizeof *s.gram), m->nblocks};
    for (size_t p = 0; !k->st && p < places; p++) {
        const size_t b = p / 2, d = pare_model_width(m, b);
        const pare_attn *const at = p % 2 ? &m->blocks[b].attn : NULL;
        const size_t w = at && at->kind ? at->dout : d;
        s.gram[p] = work_matrix(k, w, w);
    }
    for (size_t n = 1; !k->st && n <= LONGEST && (!m->context || n <= m->context); n *= 2) {
        const pare_trace trace = {.fn = add_gram, .self = &s};
        pare_inputs set;
        k->st = pare_inputs_random(&set, k->arena, m, SAMPLES, n, n, k->err);
        for (size_t i = 0; !k->st && i < set.n; i++) {
            const size_t outputs = pare_output_rows(m, &set.in[i]) * pare_model_outputs(m);
            double *const y = pare_work_alloc(k, outputs, sizeof *y);
            if (!k->st) k->st = pare_forward_f64(y, m, &set.in[i], &trace, exec, k->err);
        }
    }
    for (size_t p = 0; !k->st && p < places; p++) eigenbasis(k, &s.gram[p]);
    *out = s.gram;
    return k->st;
}
