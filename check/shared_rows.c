/* shared_rows.c - tokens that share a row of the embedding (docs/format.md, "Shared rows"): which they
 * are, and what sharing costs at most, from the two files alone. */
#include "check.h"

#include <math.h>

void read_shared_rows(model *m)
{
    array *const t = find_array(m->tensors, "embedding.shared");
    if (!t) return;
    size_t own = 0, next = 0;
    t->used = true;
    must(t->whole && t->ndim == 1 && m->vocab > 0 && t->count == (m->vocab + 7) / 8,
         "embedding.shared: has not a bit for each token");
    m->row = take(m->vocab, sizeof *m->row);
    for (size_t i = 0; i < 8 * t->count; i++) {
        const bool bit = (unsigned)t->v[i / 8] >> i % 8 & 1;
        must(i < m->vocab || !bit, "embedding.shared: bits behind the last token");
        m->shared += bit;
        if (i < m->vocab) m->row[i] = bit ? SIZE_MAX : next++;
    }
    own = m->vocab - m->shared;
    for (size_t i = 0; i < m->vocab; i++)
        if (m->row[i] == SIZE_MAX) m->row[i] = own;
    must(m->shared >= 2, "embedding.shared: fewer than two tokens");
}

size_t row_of_token(const model *m, size_t id)
{
    return m->row ? m->row[id] : id;
}

bool token_shares(const model *m, size_t id)
{
    return m->row && m->row[id] == m->vocab - m->shared;
}

static const array *table_of(const model *m)
{
    const array *const t = find_array(m->tensors, "embedding.embedding");
    return t && t->ndim == 2 && t->shape[1] == m->width &&
                   t->shape[0] == (m->row ? m->vocab + 1 - m->shared : m->vocab)
               ? t
               : NULL;
}

/* Whether both are the same function but for rows of shared tokens: all settings, all other tensors and
 * all other rows. */
static bool only_rows_differ(const model *f, const model *g)
{
    const array *const a = table_of(f), *const b = table_of(g);
    size_t others = 0;
    if (!same(f->hash, g->hash) || !a || !b || f->vocab != g->vocab || !g->row) return false;
    for (const array *y = g->tensors.list; y < g->tensors.list + g->tensors.n; y++)
        others += !same(y->name, "embedding.embedding") && !same(y->name, "embedding.shared");
    for (const array *x = f->tensors.list; x < f->tensors.list + f->tensors.n; x++) {
        if (same(x->name, "embedding.embedding") || same(x->name, "embedding.shared")) continue;
        const array *const y = find_array(g->tensors, x->name);
        if (!y || x->ndim != y->ndim || x->shape[0] != y->shape[0] || !same(x->hash, y->hash))
            return false;
        others--;
    }
    for (size_t id = 0; id < f->vocab; id++)
        for (size_t k = 0; !token_shares(g, id) && k < f->width; k++)
            if (a->v[row_of_token(f, id) * f->width + k] !=
                b->v[row_of_token(g, id) * f->width + k])
                return false;
    return others == 0;
}

/* The largest |h . (e_v - e'_v)| over the tokens v that share, for h = gain o u + bias with
 * |u|_2 <= sqrt(divisor): sqrt(divisor) |gain o d|_2 + sum |bias d|. Inf: h is not of that form. */
static double most_moved(const model *f, const model *g)
{
    const cJSON *const o = find(f->architecture, "head"), *const norm = find(o, "norm");
    const array *const a = table_of(f), *const b = table_of(g),
                       *const gain = find_array(f->tensors, "head.norm.gain"),
                       *const bias = find_array(f->tensors, "head.norm.bias");
    const size_t d = f->width;
    const bool divides = is_text(find(norm, "kind"), "layer") || is_text(find(norm, "kind"), "rms");
    if (!divides || is_text(find(o, "pool"), "max") || find(o, "activation") ||
        flag(o, "normalize") || find_array(f->tensors, "head.dense.weight") ||
        (gain && gain->count != d) || (bias && bias->count != d))
        return INFINITY;
    chunk *const mark = now->memory;
    arb_ptr x = take_balls(5), y = x + 1, squares = x + 2, rest = x + 3, root = x + 4;
    double most = 0;
    arb_set_d(root, get_number(norm, "divisor"));
    arb_sqrtpos(root, root, bits);
    for (size_t id = 0; id < g->vocab; id++) {
        if (!token_shares(g, id)) continue;
        arb_zero(squares);
        arb_zero(rest);
        for (size_t k = 0; k < d; k++) {
            arb_set_d(x, a->v[row_of_token(f, id) * d + k]);
            arb_set_d(y, b->v[row_of_token(g, id) * d + k]);
            arb_sub(x, x, y, bits);
            arb_abs(x, x);
            arb_set_d(y, bias ? fabs(bias->v[k]) : 0);
            arb_addmul(rest, x, y, bits);
            arb_set_d(y, gain ? gain->v[k] : 1);
            arb_mul(x, x, y, bits);
            arb_addmul(squares, x, x, bits);
        }
        arb_sqrtpos(squares, squares, bits);
        arb_addmul(rest, squares, root, bits);
        most = fmax(most, interval_of(rest).high);
    }
    release(mark, NULL);
    return most;
}

double shared_rows_cost(const certificate *c, figure x)
{
    const model *const f = &c->model[0], *const g = &c->model[1];
    if (!only_rows_differ(f, g)) return INFINITY;
    if (!flag(find(f->architecture, "head"), "tied") || x == OTHERS) return 0;
    const double most = most_moved(f, g), up = 1 + 0x1p-50;
    return x == KL ? fmin(0.5 * most * most * up, 2 * most) : most;
}
