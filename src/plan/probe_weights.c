/* probe_weights.c - singular values of all weights of a model, head by head: what a matrix of lower
 * rank would lose. */
#include "linalg/matrix.h"
#include "probe.h"
#include <math.h>
#include <string.h>

/* Above so many multiplications the eigenvalues of the Gram matrix are taken: seconds, not minutes
 * for an embedding, and nothing above PARE_PROBE_RANK is lost. */
#define DIRECT 3e8

typedef struct piece { /* of a stored matrix */
    const pare_weight *w;
    size_t r, c;
} piece;

typedef struct listing {
    pare_probe *p;
    piece *piece; /* NULL: counting */
    size_t n;
} listing;

/* ---- which matrices ------------------------------------------------------------------------- */

static void put(listing *l, const char *name, size_t block, size_t head, piece from, size_t rows,
                size_t cols)
{
    if (!pare_has(from.w) || rows == 0 || cols == 0) return;
    if (l->piece) {
        pare_spectrum *const s = &l->p->spectra[l->n];
        *s = (pare_spectrum){.block = block, .head = head, .rows = rows, .cols = cols};
        snprintf(s->name, sizeof s->name, "%s", name);
        l->piece[l->n] = from;
    }
    l->n++;
}

static void put_whole(listing *l, const char *name, size_t block, const pare_weight *w)
{
    put(l, name, block, SIZE_MAX, (piece){w, 0, 0}, w->rows, w->cols);
}

/* Heads that share keys and values name the same rows: these are listed with the first. */
static bool first_with(const pare_attn *a, size_t i, bool values)
{
    for (size_t k = 0; k < i; k++)
        if (values ? a->heads[k].v == a->heads[i].v : a->heads[k].k == a->heads[i].k) return false;
    return true;
}

static void put_model(listing *l, const pare_model *m)
{
    static const char *const gated[] = {"gate", "up", "down"};
    l->n = 0;
    put_whole(l, "embedding", SIZE_MAX, &m->embedding.table);
    put_whole(l, "input", SIZE_MAX, &m->embedding.map.w);
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        const pare_ffn *const f = &m->blocks[b].ffn;
        if (a->kind != PARE_ATTN_NONE) {
            for (size_t i = 0; i < a->nheads; i++) {
                const pare_head *const h = &a->heads[i];
                put(l, "Wq", b, i, (piece){&a->wq, h->q, 0}, h->dk, a->din);
                if (first_with(a, i, false))
                    put(l, "Wk", b, i, (piece){&a->wk, h->k, 0}, h->dk, a->din);
                if (first_with(a, i, true))
                    put(l, "Wv", b, i, (piece){&a->wv, h->v, 0}, h->dv, a->din);
                put(l, "Wo", b, i, (piece){&a->wo, 0, h->o}, a->dout, h->dv);
            }
            put_whole(l, "matrix", b, &a->matrix);
            put_whole(l, "mix", b, &a->mix);
            if (a->skip.kind == PARE_SKIP_DENSE) put_whole(l, "skip 1", b, &a->skip.w);
        }
        if (f->kind != PARE_FFN_NONE) {
            for (size_t i = 0; i < f->nlayers; i++) {
                char name[24];
                snprintf(name, sizeof name, "W%zu", i + 1);
                put_whole(l, f->kind == PARE_FFN_GATED && i < 3 ? gated[i] : name, b,
                          &f->layers[i].w);
            }
            if (f->skip.kind == PARE_SKIP_DENSE) put_whole(l, "skip 2", b, &f->skip.w);
        }
    }
    put_whole(l, "dense", SIZE_MAX, &m->head.dense.w);
    if (!m->head.tied) put_whole(l, "output", SIZE_MAX, &m->head.out.w);
}

/* ---- singular values ------------------------------------------------------------------------ */

double effective_rank(const double *s, size_t n)
{
    double sum = 0, entropy = 0;
    for (size_t i = 0; i < n; i++) sum += s[i];
    if (!(sum > 0)) return 0;
    for (size_t i = 0; i < n; i++)
        if (s[i] > 0) entropy -= s[i] / sum * log(s[i] / sum);
    return exp(entropy);
}

size_t rank_above(const double *s, size_t n, double cut)
{
    size_t r = 0;
    while (r < n && s[r] > cut * s[0]) r++;
    return r;
}

/* By the eigenvalues of w w^T or w^T w, whichever is smaller, in tiles of the longer side. */
static pare_status singular_values_by_gram(double *s, const piece *from, const pare_spectrum *shape,
                                           pare_arena *a, pare_err *err)
{
    const bool tall = shape->rows > shape->cols;
    const size_t n = shape->n, length = tall ? shape->rows : shape->cols, tile = 1024;
    pare_mat g = pare_mat_new(a, n, n);
    pare_mat part = tall ? pare_mat_new(a, tile, n) : pare_mat_new(a, n, tile);
    if (!g.v || !part.v) return pare_no_memory(err);
    for (size_t at = 0; at < length; at += tile) {
        const size_t take = length - at < tile ? length - at : tile;
        pare_mat some = pare_mat_part(&part, 0, 0, tall ? take : n, tall ? n : take);
        pare_weight_widen(&some, from->w, from->r + (tall ? at : 0), from->c + (tall ? 0 : at));
        pare_gemm(&g, 1, &some, tall, &some, !tall, 1);
    }
    const pare_status st = pare_eigh(s, NULL, &g, a, err);
    for (size_t i = 0; !st && i < n / 2; i++) {
        const double low = s[i];
        s[i] = s[n - 1 - i];
        s[n - 1 - i] = low;
    }
    for (size_t i = 0; !st && i < n; i++) s[i] = s[i] > 0 ? sqrt(s[i]) : 0;
    return st;
}

typedef struct sweep { /* all matrices, each by itself */
    const listing *l;
    pare_err *err; /* n */
} sweep;

static void measure_matrix(void *ctx, size_t i)
{
    const sweep *const s = ctx;
    const piece *const from = &s->l->piece[i];
    pare_spectrum *const it = &s->l->p->spectra[i];
    pare_err *const err = &s->err[i];
    pare_arena *const a = pare_arena_new();
    const double work = (double)it->n * (double)it->n * (double)(it->rows + it->cols);
    if (!a) {
        err->code = pare_no_memory(err);
    } else if (work > DIRECT) {
        err->code = singular_values_by_gram(it->s_est, from, it, a, err);
    } else {
        pare_mat w = pare_mat_new(a, it->rows, it->cols);
        if (w.v) pare_weight_widen(&w, from->w, from->r, from->c);
        err->code = w.v ? pare_svd(NULL, it->s_est, NULL, &w, a, err) : pare_no_memory(err);
    }
    pare_arena_free(a);
    if (err->code) return;
    double square = 0;
    for (size_t k = 0; k < it->n; k++) square += it->s_est[k] * it->s_est[k];
    it->rank_est = rank_above(it->s_est, it->n, PARE_PROBE_RANK);
    it->effective_est = effective_rank(it->s_est, it->n);
    it->stable_est = it->s_est[0] > 0 ? square / (it->s_est[0] * it->s_est[0]) : 0;
}

/* Wo stands between heads and the stream and is no map of Shirzad 2024; a single head has none. */
static bool is_of_table_1(const pare_spectrum *s)
{
    static const char *const names[] = {"Wq", "Wk", "Wv", "W1", "W2", "gate", "up", "down"};
    for (size_t i = 0; s->block != SIZE_MAX && i < sizeof names / sizeof *names; i++)
        if (strcmp(s->name, names[i]) == 0) return true;
    return false;
}

pare_status probe_weights(pare_probe *p, const pare_model *m, const pare_exec *exec, pare_err *err)
{
    listing l = {.p = p};
    norm_sum norms = {0};
    put_model(&l, m);
    const size_t n = l.n > 0 ? l.n : 1;
    p->nspectra = l.n;
    p->spectra = pare_alloc(p->arena, n, sizeof *p->spectra);
    l.piece = pare_alloc(p->arena, n, sizeof *l.piece);
    sweep s = {&l, pare_alloc(p->arena, n, sizeof *s.err)};
    if (!p->spectra || !l.piece || !s.err) return pare_no_memory(err);
    put_model(&l, m);
    for (size_t i = 0; i < l.n; i++) {
        pare_spectrum *const it = &p->spectra[i];
        it->n = it->rows < it->cols ? it->rows : it->cols;
        it->s_est = pare_alloc(p->arena, it->n, sizeof *it->s_est);
        if (!it->s_est) return pare_no_memory(err);
    }
    pare_parallel(exec, l.n, measure_matrix, &s);
    for (size_t i = 0; i < l.n; i++) {
        if (s.err[i].code)
            return pare_fail(err, s.err[i].code, "%s: %s", p->spectra[i].name, s.err[i].msg);
        if (is_of_table_1(&p->spectra[i])) norm_add(&norms, p->spectra[i].s_est[0]);
    }
    p->operators = norm_end(&norms);
    return PARE_OK;
}
