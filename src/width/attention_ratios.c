/* attention_ratios.c - attention weights before and after a cut: the largest |ln(a / a^)| of a
 * layer, proven.
 *
 * All theorems claim that attention is preserved, so the certificate says how well. Queries and
 * keys of layer l are the outputs of a model that ends there: its blocks before l, and a head [Wq;
 * Wk]. An enclosure of that model gives them with radii; with q, k off by at most rq, rk in each
 * entry a score is off by at most
 *
 *     |scale| (rk |q|_1 + rq |k|_1 + dk rq rk)
 *
 * and its rounding. For a row
 *
 *     ln a_j - ln a^_j = (s_j - s^_j) - (lse s - lse s^),
 *
 * and lse moves by no more than the largest of its scores. Rows with one key have a = a^ = 1.
 *
 * Rotary positions rotate midpoints and radii: a rotated entry is off by at most sqrt(2) of what
 * the plane's entries were; the angle t f is rounded once, cos and sin are within 3 units of
 * 2^-53, two products and a sum follow: (|t f| + 12) 2^-52 of |a| + |b| covers all of that. */
#include "model/inputs.h"
#include "prove.h"
#include "cert/prove.h"
#include "linalg/dd.h"
#include "linalg/elementary.h"
#include "linalg/matrix.h"
#include <math.h>
#include <string.h>

typedef struct side { /* one model at one layer */
    const pare_model *m;
    pare_model part; /* borrowed: ends in queries and keys */
    pare_model_norms *norms;
    const pare_attn *attn;
    pare_enclosure e; /* n x (queries, keys) */
    double *s, *r;    /* of one row: scores and their radii */
} side;

/* Wq above Wk, in f64 (an exact widening), with their biases. */
static pare_dense stack_qk(pare_work *w, const pare_attn *a)
{
    const size_t q = a->wq.rows, k = a->wk.rows;
    pare_mat m = mat_zeros(w, q + k, a->din);
    double *const b = vec_zeros(w, q + k);
    if (w->st) return (pare_dense){0};
    pare_mat queries = pare_mat_part(&m, 0, 0, q, a->din);
    pare_mat keys = pare_mat_part(&m, q, 0, k, a->din);
    pare_weight_widen(&queries, &a->wq, 0, 0);
    pare_weight_widen(&keys, &a->wk, 0, 0);
    for (size_t i = 0; pare_has(&a->bq) && i < q; i++) b[i] = pare_weight_at(&a->bq, i);
    for (size_t i = 0; pare_has(&a->bk) && i < k; i++) b[q + i] = pare_weight_at(&a->bk, i);
    return (pare_dense){{PARE_F64, q + k, a->din, m.v}, {PARE_F64, 1, q + k, b}};
}

static void open_side(pare_work *w, side *o, const pare_model *m, size_t l)
{
    *o = (side){.m = m, .part = *m, .attn = &m->blocks[l].attn};
    o->part.nblocks = l;
    o->part.head = (pare_output_head){.norm = o->attn->in_norm, .out = stack_qk(w, o->attn)};
    if (!w->st) w->st = pare_model_norms_new(&o->norms, w->arena, &o->part, SILENT_EXEC(w), w->err);
}

/* Rotates one head's part of a row; returns by how much more its entries are off. */
static double rotate_head(const side *o, const pare_head *h, double *x, double t)
{
    const bool pairs = o->m->embedding.pos.interleaved;
    double off = 0;
    for (size_t f = 0; f < h->planes; f++) {
        const size_t one = pairs ? 2 * f : f, two = pairs ? 2 * f + 1 : f + h->planes;
        const double angle = t * pare_weight_at(&o->attn->freqs, h->freq + f);
        const double a = x[one], b = x[two];
        double s, c;
        pare_sincos(angle, &s, &c);
        if (!(fabs(angle) <= PARE_SINCOS_MOST)) off = INFINITY; /* no sine is proven beyond */
        x[one] = a * c - b * s;
        x[two] = a * s + b * c;
        off = fmax(off, (fabs(angle) + 12) * 0x1p-52 * (fabs(a) + fabs(b)));
    }
    return off;
}

static void rotate_rows(side *o)
{
    if (!pare_has(&o->attn->freqs)) return;
    for (size_t i = 0; i < o->e.rows; i++) {
        double *const q = o->e.mid + i * o->e.cols, *const k = q + o->attn->wq.rows, off = 0;
        for (size_t h = 0; h < o->attn->nheads; h++) {
            const pare_head *const at = &o->attn->heads[h];
            off = fmax(off, rotate_head(o, at, q + at->q, (double)i));
            bool done = false; /* keys that several heads share are rotated once */
            for (size_t e = 0; e < h; e++) done = done || o->attn->heads[e].k == at->k;
            if (!done) off = fmax(off, rotate_head(o, at, k + at->k, (double)i));
        }
        o->e.rad[i] = (1.41421356237309515 * o->e.rad[i] + off) * (1 + 0x1p-50);
    }
}

static void enclose_side(pare_work *w, side *o, const pare_input *in, size_t longest)
{
    o->s = vec_zeros(w, longest);
    o->r = vec_zeros(w, longest);
    if (!w->st)
        w->st = pare_enclose(&o->e, w->arena, &o->part, o->norms, in, SILENT_EXEC(w), w->err);
    if (!w->st) rotate_rows(o);
}

/* Scores of query i for its keys, with radii; returns lse of them. */
static double row_scores(side *o, size_t head, const uint32_t *keys, size_t n, size_t i)
{
    const pare_head *const h = &o->attn->heads[head];
    const double *const q = o->e.mid + i * o->e.cols + h->q;
    const double unit = (double)(h->dk + 4) * 0x1p-52, scale = fabs(h->scale);
    double most = -INFINITY, sum = 0;
    for (size_t j = 0; j < n; j++) {
        const double *const k = o->e.mid + keys[j] * o->e.cols + o->attn->wq.rows + h->k;
        const double rq = o->e.rad[i], rk = o->e.rad[keys[j]];
        double dot = 0, size = 0, sq = 0, sk = 0;
        for (size_t t = 0; t < h->dk; t++) {
            dot += q[t] * k[t];
            size += fabs(q[t] * k[t]);
            sq += fabs(q[t]);
            sk += fabs(k[t]);
        }
        o->s[j] = h->scale * dot;
        /* 1 + 2 unit: the radius itself is rounded too. */
        o->r[j] =
            scale * (rk * sq + rq * sk + (double)h->dk * rq * rk + unit * size) * (1 + 2 * unit) +
            0x1p-1000;
        if (o->s[j] > most) most = o->s[j];
    }
    for (size_t j = 0; j < n; j++) sum += pare_exp(o->s[j] - most);
    return most + pare_dd_log(sum).hi;
}

/* What a computed difference of two lse may be off by: n terms, exp and log within 4 units in the
 * last place, and the scores' own sizes. */
static double lse_rounding(const side *o, size_t n)
{
    double size = 1;
    for (size_t j = 0; j < n; j++) size = fmax(size, fabs(o->s[j]));
    return 4 * (double)(n + 16) * 0x1p-52 * size;
}

static double largest_radius(const double *v, size_t n)
{
    double most = 0;
    for (size_t j = 0; j < n; j++) most = !(v[j] <= most) ? v[j] : most;
    return most;
}

static void compare_row(ratio_bound *out, side *f, side *g, size_t head, const uint32_t *keys,
                        size_t n, size_t i)
{
    const double moved = row_scores(f, head, keys, n, i) - row_scores(g, head, keys, n, i);
    const double off =
        largest_radius(f->r, n) + largest_radius(g->r, n) + lse_rounding(f, n) + lse_rounding(g, n);
    for (size_t j = 0; j < n; j++) {
        const double ratio = fabs((f->s[j] - g->s[j]) - moved);
        /* Four more roundings of numbers no larger than these; a nan becomes inf. */
        const double bound = (ratio + f->r[j] + g->r[j] + off) * (1 + 0x1p-48);
        out->proven = pare_ub_max(out->proven, pare_ub_of(isnan(bound) ? INFINITY : bound));
        if (ratio > out->measured) out->measured = ratio;
    }
}

static void one_sequence(pare_work *w, ratio_bound *out, side *a, side *b, const pare_input *in)
{
    const pare_mark mark = pare_arena_mark(w->arena);
    const pare_graph keys = key_graph(w, &a->m->pattern, in->graph, in->tokens);
    size_t longest = 0;
    for (size_t i = 0; !w->st && i < keys.n; i++)
        if (keys.ptr[i + 1] - keys.ptr[i] > longest) longest = keys.ptr[i + 1] - keys.ptr[i];
    enclose_side(w, a, in, longest);
    enclose_side(w, b, in, longest);
    for (size_t h = 0; !w->st && h < a->attn->nheads; h++)
        for (size_t i = 0; i < keys.n; i++) {
            const size_t n = keys.ptr[i + 1] - keys.ptr[i];
            if (n > 1) compare_row(out, a, b, h, keys.idx + keys.ptr[i], n, i);
        }
    pare_arena_reset(w->arena, mark);
}

ratio_bound attention_ratios(pare_work *w, const pare_model *f, const pare_model *g,
                             const pare_inputs *set, size_t l)
{
    ratio_bound out = {pare_ub_exact(0), 0};
    const pare_mark mark = pare_arena_mark(w->arena);
    side a, b;
    open_side(w, &a, f, l);
    open_side(w, &b, g, l);
    for (size_t i = 0; !w->st && i < set->n; i++)
        for (size_t s = 0; !w->st && s < set->in[i].batch; s++) {
            const pare_input one = pare_input_sequence(&set->in[i], s);
            one_sequence(w, &out, &a, &b, &one);
        }
    pare_arena_reset(w->arena, mark);
    if (w->st) out.proven = pare_ub_inf();
    return out;
}
