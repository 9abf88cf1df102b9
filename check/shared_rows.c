/* shared_rows.c - tokens that share a row of the embedding (docs/format.md, "Shared rows"): which they
 * are, and what sharing costs at most, from the two files alone. */
#include "check.h"

#include <math.h>
#include <string.h>

void read_shared_rows(job *j, model *m)
{
    size_t k = 0, own = 0;
    while (k < m->ntensors && !same(m->tensors[k].name, "embedding.shared")) k++;
    if (k == m->ntensors) return;
    tensor *const t = &m->tensors[k];
    t->used = true;
    must(j, t->type == 'b' && t->ndim == 1 && m->vocab > 0 && t->size == (m->vocab + 7) / 8,
         "embedding.shared: has not a bit for each token");
    m->row = take(j, m->vocab, sizeof *m->row);
    for (size_t id = 0; id < m->vocab; id++) own += !(t->data[id / 8] >> id % 8 & 1);
    for (size_t id = 0, next = 0; id < m->vocab; id++)
        m->row[id] = t->data[id / 8] >> id % 8 & 1 ? own : next++;
    for (size_t bit = m->vocab; bit < 8 * t->size; bit++)
        must(j, !(t->data[bit / 8] >> bit % 8 & 1), "embedding.shared: bits behind the last token");
    m->shared = m->vocab - own;
    must(j, m->shared >= 2, "embedding.shared: fewer than two tokens");
}

size_t row_of_token(const model *m, size_t id)
{
    return m->row ? m->row[id] : id;
}

bool token_shares(const model *m, size_t id)
{
    return m->row && m->row[id] == m->vocab - m->shared;
}

static bool is_table(const char *name)
{
    return same(name, "embedding.embedding") || same(name, "embedding.shared");
}

static const tensor *tensor_named(const model *m, const char *name)
{
    for (size_t i = 0; i < m->ntensors; i++)
        if (same(m->tensors[i].name, name)) return &m->tensors[i];
    return NULL;
}

/* Whether both are the same function but for rows of shared tokens: all settings, all other tensors and
 * all other rows. */
static bool only_rows_differ(const model *f, const model *g)
{
    const tensor *const a = tensor_named(f, "embedding.embedding"), *const b = tensor_named(
                                                                        g, "embedding.embedding");
    if (!same(f->hash, g->hash) || !a || !b || a->type != b->type || a->cols != b->cols ||
        f->ntensors + (f->row ? 0 : 1) != g->ntensors || !g->row)
        return false;
    for (size_t i = 0; i < f->ntensors; i++) {
        const tensor *const x = &f->tensors[i], *const y = tensor_named(g, x->name);
        if (is_table(x->name)) continue;
        if (!y || x->type != y->type || x->ndim != y->ndim || x->rows != y->rows ||
            x->size != y->size || memcmp(x->data, y->data, x->size) != 0)
            return false;
    }
    const size_t size = a->size / a->rows;
    for (size_t id = 0; id < f->vocab; id++)
        if (!token_shares(g, id) && memcmp(a->data + row_of_token(f, id) * size,
                                           b->data + row_of_token(g, id) * size, size) != 0)
            return false;
    return true;
}

/* The largest |h . (e_v - e'_v)| over the tokens v that share, for h = gain o u + bias with
 * |u|_2 <= sqrt(divisor): sqrt(divisor) |gain o d|_2 + sum |bias d|. Inf: h is not of that form. */
static double most_moved(job *j, const model *f, const model *g)
{
    enum { BITS = 128 };
    const cJSON *const o = find(f->architecture, "head"), *const norm = find(o, "norm");
    const tensor *const a = tensor_named(f, "embedding.embedding"),
                        *const b = tensor_named(g, "embedding.embedding"),
                        *const gain = tensor_named(f, "head.norm.gain"),
                        *const bias = tensor_named(f, "head.norm.bias");
    const bool divides =
        norm && (is_text(find(norm, "kind"), "layer") || is_text(find(norm, "kind"), "rms"));
    const size_t d = a->cols;
    if (!divides || is_text(find(o, "pool"), "max") || find(o, "activation") ||
        tensor_named(f, "head.dense.weight") || flag(o, "normalize") || (gain && gain->cols != d) ||
        (bias && bias->cols != d))
        return INFINITY;
    chunk *const mark = j->memory;
    arb_ptr x = take_balls(j, 5), y = x + 1, squares = x + 2, rest = x + 3, root = x + 4;
    double most = 0;
    arb_set_d(root, get_number(j, norm, "divisor"));
    arb_sqrtpos(root, root, BITS);
    for (size_t id = 0; id < g->vocab; id++) {
        if (!token_shares(g, id)) continue;
        arb_zero(squares);
        arb_zero(rest);
        for (size_t k = 0; k < d; k++) {
            arb_set_d(x, weight_at(a, row_of_token(f, id) * d + k));
            arb_set_d(y, weight_at(b, row_of_token(g, id) * d + k));
            arb_sub(x, x, y, BITS);
            arb_abs(x, x);
            arb_set_d(y, bias ? fabs(weight_at(bias, k)) : 0);
            arb_addmul(rest, x, y, BITS);
            arb_set_d(y, gain ? weight_at(gain, k) : 1);
            arb_mul(x, x, y, BITS);
            arb_addmul(squares, x, x, BITS);
        }
        arb_sqrtpos(squares, squares, BITS);
        arb_addmul(rest, squares, root, BITS);
        most = fmax(most, interval_of(rest).high);
    }
    release(j, mark, NULL);
    return most;
}

double shared_rows_cost(job *j, const certificate *c, figure x)
{
    const model *const f = &c->model[0], *const g = &c->model[1];
    const bool tied = flag(find(f->architecture, "head"), "tied");
    if (!only_rows_differ(f, g)) return INFINITY;
    if (!tied || x == OTHERS) return 0;
    const double most = most_moved(j, f, g), up = 1 + 0x1p-50;
    return x == KL ? fmin(0.5 * most * most * up, 2 * most) : most;
}
