/* compare.c - both models on one input, layer by layer side by side: the difference of the outputs,
 * which rows keep their largest entry, and what claims about one layer are about. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- figures --------------------------------------------------------------------------------- */

figures *figures_new(job *j, size_t nlayers)
{
    figures *const f = take(j, 1, sizeof *f);
    bool *const flags = take(j, 3 * nlayers + 1, sizeof *flags);
    if (!f || !flags) return NULL;
    f->nlayers = nlayers;
    arb_ptr list[] = {f->difference, f->score, f->largest, f->hidden, f->collapse,
                      f->squares,    f->apart, f->without, f->row};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) arb_init(list[i]);
    f->ratio = _arb_vec_init((slong)nlayers);
    f->attention = _arb_vec_init((slong)nlayers);
    f->ffn = _arb_vec_init((slong)nlayers);
    f->has_ratio = flags;
    f->has_attention = flags + nlayers;
    f->has_ffn = flags + 2 * nlayers;
    return f;
}

void figures_free(figures *f)
{
    if (!f) return;
    arb_ptr list[] = {f->difference, f->score, f->largest, f->hidden, f->collapse,
                      f->squares,    f->apart, f->without, f->row};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) arb_clear(list[i]);
    _arb_vec_clear(f->ratio, (slong)f->nlayers);
    _arb_vec_clear(f->attention, (slong)f->nlayers);
    _arb_vec_clear(f->ffn, (slong)f->nlayers);
}

/* The larger of both. Of a nan the other is not taken: what is not known must not look known. */
static void raise_to(arb_t most, const arb_t x, slong prec)
{
    if (arb_is_finite(x) && arb_is_finite(most))
        arb_max(most, most, x, prec);
    else
        arb_indeterminate(most);
}

void figures_join(figures *all, const figures *one, slong prec)
{
    raise_to(all->difference, one->difference, prec);
    raise_to(all->score, one->score, prec);
    raise_to(all->largest, one->largest, prec);
    raise_to(all->hidden, one->hidden, prec);
    raise_to(all->collapse, one->collapse, prec);
    raise_to(all->row, one->row, prec);
    arb_add(all->squares, all->squares, one->squares, prec);
    arb_add(all->apart, all->apart, one->apart, prec);
    arb_add(all->without, all->without, one->without, prec);
    for (size_t l = 0; l < all->nlayers; l++) {
        raise_to(all->ratio + l, one->ratio + l, prec);
        raise_to(all->attention + l, one->attention + l, prec);
        raise_to(all->ffn + l, one->ffn + l, prec);
        all->has_ratio[l] |= one->has_ratio[l];
        all->has_attention[l] |= one->has_attention[l];
        all->has_ffn[l] |= one->has_ffn[l];
    }
    all->has_score |= one->has_score;
    all->has_hidden |= one->has_hidden;
    all->has_without |= one->has_without;
    all->rows += one->rows;
    all->changed += one->changed;
    all->open += one->open;
}

/* ---- one layer ------------------------------------------------------------------------------- */

static bool has_softmax(const attention *a)
{
    return a->kind == ATTN_EXACT || a->kind == ATTN_POLY || a->kind == ATTN_CONSTQ ||
           a->kind == ATTN_MEANQ;
}

/* Largest |ln(a / a^)| over the heads, queries with two keys at least, and their keys. */
static bool attention_ratio(job *j, const model *const m[2], const input in[2], size_t l,
                            const balls z[2], arb_t most, slong prec)
{
    balls q[2] = {{0}}, k[2] = {{0}};
    uint32_t *const keys = malloc(in->tokens * sizeof *keys);
    arb_ptr log[2] = {_arb_vec_init((slong)in->tokens), _arb_vec_init((slong)in->tokens)};
    arb_t apart;
    arb_init(apart);
    bool good = keys ? true : fail(j, UNREADABLE, "out of memory");
    for (int s = 0; good && s < 2; s++)
        good = queries_and_keys(j, m[s], &m[s]->layers[l].attn, &z[s], &q[s], &k[s], prec);
    for (size_t i = 0; good && i < in->tokens; i++) {
        const size_t n = visible(m[0], &in[0], i, keys);
        for (size_t h = 0; n > 1 && h < m[0]->layers[l].attn.nheads; h++) {
            for (int s = 0; s < 2; s++) {
                const head *const at = &m[s]->layers[l].attn.heads[h];
                log_weights(log[s], at, row_of(&q[s], i) + at->q, &k[s], keys, n, prec);
            }
            for (size_t e = 0; e < n; e++) {
                arb_sub(apart, log[0] + e, log[1] + e, prec);
                arb_abs(apart, apart);
                raise_to(most, apart, prec);
            }
        }
    }
    for (int s = 0; s < 2; s++) {
        balls_free(&q[s]);
        balls_free(&k[s]);
        _arb_vec_clear(log[s], (slong)in->tokens);
    }
    arb_clear(apart);
    free(keys);
    return good;
}

/* Largest euclidean distance of a row. */
static void row_distance(arb_t most, const balls *a, const balls *b, slong prec)
{
    arb_t sum, x;
    arb_init(sum);
    arb_init(x);
    for (size_t i = 0; i < a->n; i++) {
        arb_zero(sum);
        for (size_t k = 0; k < a->d; k++) {
            arb_sub(x, row_of(a, i) + k, row_of(b, i) + k, prec);
            arb_addmul(sum, x, x, prec);
        }
        arb_sqrtpos(sum, sum, prec);
        raise_to(most, sum, prec);
    }
    arb_clear(sum);
    arb_clear(x);
}

/* What attention and feed-forward part of g make of the rows that enter those of f. */
static bool attention_apart(job *j, const model *const m[2], const input in[2], size_t l,
                            const balls *z, arb_t most, slong prec)
{
    balls y[2] = {{0}};
    bool good = true;
    for (int s = 0; good && s < 2; s++)
        good = attention_branch(j, m[s], &in[s], &m[s]->layers[l].attn, z, &y[s], prec);
    if (good) row_distance(most, &y[0], &y[1], prec);
    balls_free(&y[0]);
    balls_free(&y[1]);
    return good;
}

static bool ffn_apart(job *j, const model *const m[2], size_t l, const balls *x, arb_t most,
                      slong prec)
{
    balls z = {0}, y[2] = {{0}};
    bool good = normalized(j, x, &m[0]->layers[l].ffn.in_norm, &z, prec);
    for (int s = 0; good && s < 2; s++) good = ffn_branch(j, &m[s]->layers[l].ffn, &z, &y[s], prec);
    if (good) row_distance(most, &y[0], &y[1], prec);
    balls_free(&z);
    balls_free(&y[0]);
    balls_free(&y[1]);
    return good;
}

static bool same_pattern(const model *a, const model *b)
{
    return a->pattern == b->pattern && a->window == b->window && a->sinks == b->sinks &&
           a->self_loops == b->self_loops && a->degree == b->degree &&
           (a->degree == 0 || a->expander_seed == b->expander_seed);
}

static bool look_at_attention(job *j, const model *const m[2], const input in[2], size_t l,
                              const balls x[2], wanted w, figures *out, slong prec)
{
    const attention *const a = &m[0]->layers[l].attn, *const b = &m[1]->layers[l].attn;
    balls z[2] = {{0}};
    bool good = true;
    if (a->kind == ATTN_ABSENT || b->kind == ATTN_ABSENT) return true;
    for (int s = 0; s < 2; s++)
        good = good && normalized(j, &x[s], &m[s]->layers[l].attn.in_norm, &z[s], prec);
    if (good && w.ratios && has_softmax(a) && has_softmax(b) && a->nheads == b->nheads &&
        same_pattern(m[0], m[1])) {
        good = attention_ratio(j, m, in, l, z, out->ratio + l, prec);
        out->has_ratio[l] = good;
    }
    if (good && w.branches && a->in == b->in && a->out == b->out) {
        good = attention_apart(j, m, in, l, &z[0], out->attention + l, prec);
        out->has_attention[l] = good;
    }
    balls_free(&z[0]);
    balls_free(&z[1]);
    return good;
}

static bool look_at_ffn(job *j, const model *const m[2], size_t l, const balls *x, wanted w,
                        figures *out, slong prec)
{
    const ffn *const f = &m[0]->layers[l].ffn, *const g = &m[1]->layers[l].ffn;
    if (!w.branches || !f->there || !g->there || f->in != g->in || f->out != g->out) return true;
    const bool good = ffn_apart(j, m, l, x, out->ffn + l, prec);
    out->has_ffn[l] = good;
    return good;
}

/* ---- the outputs ----------------------------------------------------------------------------- */

/* The entry that is above all others for certain; SIZE_MAX: not known, or two are equal. */
static size_t largest_entry(arb_srcptr x, size_t d)
{
    size_t best = 0;
    for (size_t k = 1; k < d; k++)
        if (arf_cmp(arb_midref(x + k), arb_midref(x + best)) > 0) best = k;
    for (size_t k = 0; k < d; k++)
        if (k != best && !arb_gt(x + best, x + k)) return SIZE_MAX;
    return best;
}

static void compare_rows(const balls y[2], figures *out, slong prec)
{
    arb_t apart, sum;
    arb_init(apart);
    arb_init(sum);
    for (size_t i = 0; i < y->n; i++) {
        arb_srcptr a = row_of(&y[0], i), b = row_of(&y[1], i);
        arb_zero(sum);
        for (size_t k = 0; k < y->d; k++) {
            arb_sub(apart, a + k, b + k, prec);
            arb_addmul(sum, apart, apart, prec);
            arb_addmul(out->squares, a + k, a + k, prec);
            arb_abs(apart, apart);
            raise_to(out->difference, apart, prec);
            arb_abs(apart, a + k);
            raise_to(out->largest, apart, prec);
        }
        arb_add(out->apart, out->apart, sum, prec);
        raise_to(out->row, sum, prec);
        const size_t f = largest_entry(a, y->d), g = largest_entry(b, y->d);
        out->rows++;
        out->changed += f != SIZE_MAX && g != SIZE_MAX && f != g;
        out->open += f == SIZE_MAX || g == SIZE_MAX;
        if (y->d != 2) continue;
        out->has_score = true;
        arb_sub(apart, a + 1, a, prec);
        arb_sub(sum, b + 1, b, prec);
        arb_sub(apart, apart, sum, prec);
        arb_abs(apart, apart);
        raise_to(out->score, apart, prec);
    }
    arb_clear(apart);
    arb_clear(sum);
}

static bool keep_scores(job *j, const balls *y, balls *to, slong prec)
{
    if (!balls_new(j, to, y->n, 1)) return false;
    for (size_t i = 0; i < y->n; i++) arb_sub(to->v + i, row_of(y, i) + 1, row_of(y, i), prec);
    return true;
}

/* How far an entry differs between two tokens: largest minus least of each column. */
static void spread(arb_t most, const balls *x, slong prec)
{
    arb_t high, low;
    arb_init(high);
    arb_init(low);
    for (size_t k = 0; k < x->d; k++) {
        arb_set(high, x->v + k);
        arb_set(low, x->v + k);
        for (size_t i = 1; i < x->n; i++) {
            arb_max(high, high, row_of(x, i) + k, prec);
            arb_min(low, low, row_of(x, i) + k, prec);
        }
        arb_sub(high, high, low, prec);
        raise_to(most, high, prec);
    }
    arb_clear(high);
    arb_clear(low);
}

/* |S - S without attention|^2, where every layer has a skip. */
static bool without_attention(job *j, const model *m, const input *in, const balls *y, figures *out,
                              slong prec)
{
    balls x = {0}, none = {0};
    for (size_t l = 0; l < m->nlayers; l++)
        if (m->layers[l].attn.kind != ATTN_ABSENT && m->layers[l].attn.skip == SKIP_NONE)
            return true;
    bool good = embed(j, m, in, &x, prec);
    for (size_t l = 0; good && l < m->nlayers; l++)
        good = attention_sublayer(j, m, in, l, &x, true, prec) && ffn_sublayer(j, m, l, &x, prec);
    if (good) good = apply_head(j, m, &x, &none, prec);
    arb_t apart;
    arb_init(apart);
    for (size_t i = 0; good && i < y->n * y->d; i++) {
        arb_sub(apart, y->v + i, none.v + i, prec);
        arb_addmul(out->without, apart, apart, prec);
    }
    arb_clear(apart);
    out->has_without = good;
    balls_free(&x);
    balls_free(&none);
    return good;
}

/* ---- both models ----------------------------------------------------------------------------- */

static bool run_layers(job *j, const model *const m[2], const input in[2], balls x[2], wanted w,
                       figures *out, slong prec)
{
    const size_t n = m[0]->nlayers > m[1]->nlayers ? m[0]->nlayers : m[1]->nlayers;
    const bool pair = m[0]->nlayers == m[1]->nlayers;
    bool good = true;
    for (size_t l = 0; good && l < n; l++) {
        if (pair) good = look_at_attention(j, m, in, l, x, w, out, prec);
        for (int s = 0; good && s < 2; s++)
            if (l < m[s]->nlayers)
                good = attention_sublayer(j, m[s], &in[s], l, &x[s], false, prec);
        if (good && pair) good = look_at_ffn(j, m, l, &x[0], w, out, prec);
        for (int s = 0; good && s < 2; s++)
            if (l < m[s]->nlayers) good = ffn_sublayer(j, m[s], l, &x[s], prec);
        show_progress(j, (work_of(m[0], in) + work_of(m[1], in)) / (double)n);
    }
    return good;
}

bool compare(job *j, const model *f, const model *g, const input *given, wanted w, figures *out,
             balls scores[2], slong prec)
{
    const model *const m[2] = {f, g};
    input in[2] = {*given, *given};
    graph complete[2];
    balls x[2] = {{0}}, y[2] = {{0}};
    bool good = true;
    if ((given->x || given->shift) && f->width != g->width)
        good = fail(j, NOT_TRUE, "the models take rows of %zu and %zu numbers", f->width, g->width);
    good = good && fits(j, f, given) && fits(j, g, given);
    if (good && (f->outputs != g->outputs || !f->pool != !g->pool))
        good = fail(j, NOT_TRUE, "the models have %zu and %zu outputs", f->outputs, g->outputs);
    for (int s = 0; good && s < 2; s++) {
        if (m[s]->pattern == GRAPH) good = complete_graph(j, m[s], given->edges, &complete[s]);
        in[s].complete = &complete[s];
        if (good) good = embed(j, m[s], &in[s], &x[s], prec);
    }
    if (good) good = run_layers(j, m, in, x, w, out, prec);
    if (good && w.collapse) spread(out->collapse, &x[0], prec);
    out->has_hidden = good && w.hidden && x[0].d == x[1].d;
    if (out->has_hidden) row_distance(out->hidden, &x[0], &x[1], prec);
    for (int s = 0; good && s < 2; s++) good = apply_head(j, m[s], &x[s], &y[s], prec);
    if (good) compare_rows(y, out, prec);
    if (good && w.without) good = without_attention(j, f, &in[0], &y[0], out, prec);
    for (int s = 0; good && scores && s < 2; s++) good = keep_scores(j, &y[s], &scores[s], prec);
    for (int s = 0; s < 2; s++) {
        balls_free(&x[s]);
        balls_free(&y[s]);
    }
    return good;
}

/* ---- the area under the ROC curve ------------------------------------------------------------ */

typedef struct score {
    arf_t low, high;
} score;

static int by_low(const void *a, const void *b)
{
    return arf_cmp((*(score *const *)a)->low, (*(score *const *)b)->low);
}

static int by_high(const void *a, const void *b)
{
    return arf_cmp((*(score *const *)a)->high, (*(score *const *)b)->high);
}

/* Pairs of a negative and a positive that surely count 1, and those that may: a pair counts 1 where
 * the positive is above, 1/2 where both are equal. Each list is sorted and walked once. */
static void count_pairs(score **no, size_t n, score **yes, size_t p, double *sure, double *may)
{
    size_t i = 0;
    *sure = *may = 0;
    qsort(no, n, sizeof *no, by_high);
    qsort(yes, p, sizeof *yes, by_low);
    for (size_t k = 0; k < p; k++) {
        while (i < n && arf_cmp(no[i]->high, yes[k]->low) < 0) i++;
        *sure += (double)i;
    }
    qsort(no, n, sizeof *no, by_low);
    qsort(yes, p, sizeof *yes, by_high);
    i = 0;
    for (size_t k = 0; k < p; k++) {
        while (i < n && arf_cmp(no[i]->low, yes[k]->high) <= 0) i++;
        *may += (double)i;
    }
}

bool auc_interval(job *j, const balls *s, const int64_t *target, interval *out)
{
    size_t n[2] = {0, 0};
    score *const list = take(j, s->n + 1, sizeof *list);
    score **const class[2] = {take(j, s->n + 1, sizeof **class), take(j, s->n + 1, sizeof **class)};
    if (!list || !class[0] || !class[1]) return false;
    *out = (interval){0, 1};
    for (size_t i = 0; i < s->n; i++)
        if (!arb_is_finite(s->v + i)) return true; /* nothing is known */
    for (size_t i = 0; i < s->n; i++) {
        arf_init(list[i].low);
        arf_init(list[i].high);
        arb_get_lbound_arf(list[i].low, s->v + i, 1024);
        arb_get_ubound_arf(list[i].high, s->v + i, 1024);
        if (target[i] == 0 || target[i] == 1) class[target[i]][n[target[i]]++] = &list[i];
    }
    double sure, may;
    const double all = (double)n[0] * (double)n[1];
    count_pairs(class[0], n[0], class[1], n[1], &sure, &may);
    for (size_t i = 0; i < s->n; i++) {
        arf_clear(list[i].low);
        arf_clear(list[i].high);
    }
    *out = (interval){sure == 0 ? 0 : nextafter(sure / all, 0),
                      may == all ? 1 : nextafter(may / all, 2)};
    return all > 0;
}
