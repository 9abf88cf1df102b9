/* input.c - inputs of a model: do they fit, parts of a set, random ones, and their hash. */
#include "base/support.h"
#include "inputs.h"
#include <math.h>
#include <string.h>

pare_status pare_input_check(const pare_model *m, const pare_input *in, pare_err *err)
{
    const size_t rows = in->batch * in->tokens, width = m->embedding.width,
                 vocab = m->embedding.vocab;
    if (in->batch == 0 || in->tokens == 0)
        return pare_fail(err, PARE_ERR_INPUT, "input: there are no tokens");
    if (m->context && in->tokens > m->context)
        return pare_fail(err, PARE_ERR_INPUT,
                         "input: %zu tokens are too many, the model takes at most %zu", in->tokens,
                         m->context);
    if (m->embedding.ids ? !in->ids : !in->x)
        return pare_fail(err, PARE_ERR_INPUT, "input: the model takes %s",
                         m->embedding.ids ? "token ids, not vectors" : "vectors, not token ids");
    for (size_t i = 0; m->embedding.ids && i < rows; i++)
        if (in->ids[i] < 0 || (uint64_t)in->ids[i] >= vocab)
            return pare_fail(err, PARE_ERR_INPUT,
                             "input: token id %lld (sequence %zu, position %zu) is not in the "
                             "model's vocabulary "
                             "of %zu",
                             (long long)in->ids[i], i / in->tokens, i % in->tokens, vocab);
    if (!m->embedding.ids && in->width != width)
        return pare_fail(err, PARE_ERR_INPUT,
                         "input: vectors of %zu numbers, but the model takes %zu", in->width,
                         width);
    for (size_t i = 0; !m->embedding.ids && i < rows * width; i++)
        if (!isfinite(in->x[i]))
            return pare_fail(err, PARE_ERR_NONFINITE, "input: %g at row %zu, column %zu", in->x[i],
                             i / width, i % width);
    const pare_graph *const g = in->graph;
    if (m->pattern.kind != PARE_GRAPH) return PARE_OK;
    if (!g)
        return pare_fail(err, PARE_ERR_INPUT,
                         "input: the model attends over a graph, and there is none");
    if (in->batch != 1 || g->n != in->tokens)
        return pare_fail(err, PARE_ERR_INPUT, "input: a graph of %zu nodes for %zu x %zu rows",
                         g->n, in->batch, in->tokens);
    for (size_t i = 0; i < g->n; i++)
        for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++)
            if (g->idx[e] >= g->n || (e > g->ptr[i] && g->idx[e] <= g->idx[e - 1]))
                return pare_fail(err, PARE_ERR_INPUT,
                                 "input: the keys of node %zu are not ascending nodes", i);
    return PARE_OK;
}

size_t pare_inputs_together(const pare_model *m, const pare_inputs *set, size_t first)
{
    enum { MOST_ROWS = 1 << 13, MOST_OUTPUTS = 1 << 22 };
    size_t n = 0, rows = 0, outputs = 0;
    if (m->pattern.kind == PARE_GRAPH) return 1;
    for (size_t i = first; i < set->n; i++, n++) {
        const pare_input *const in = &set->in[i];
        rows += in->batch * in->tokens;
        outputs += pare_output_rows(m, in) * pare_model_outputs(m);
        if (n && (rows > MOST_ROWS || outputs > MOST_OUTPUTS)) break;
    }
    return n;
}

/* ---- a part of a set ------------------------------------------------------------------------ */

pare_status pare_inputs_pick(pare_inputs *out, pare_arena *a, const pare_inputs *all,
                             const size_t *numbers, size_t count, size_t tokens, pare_err *err)
{
    *out = (pare_inputs){count, pare_alloc(a, count ? count : 1, sizeof *out->in)};
    if (!out->in) return pare_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        pare_input *const in = &out->in[i];
        if (numbers[i] >= all->n)
            return pare_fail(err, PARE_ERR_INPUT, "inputs: number %zu, but there are %zu",
                             numbers[i], all->n);
        *in = all->in[numbers[i]];
        if (tokens == 0 || in->tokens <= tokens) continue;
        if (in->batch != 1 || in->graph)
            return pare_fail(err, PARE_ERR_INPUT,
                             "inputs: number %zu is %s: the first %zu tokens can not be taken",
                             numbers[i], in->graph ? "a graph" : "a batch", tokens);
        in->tokens = tokens;
    }
    return PARE_OK;
}

pare_status pare_inputs_part(pare_inputs *out, pare_arena *a, const pare_inputs *all, size_t first,
                             size_t count, size_t tokens, pare_err *err)
{
    size_t end;
    if (count == 0 || !pare_add(&end, first, count) || end > all->n)
        return pare_fail(err, PARE_ERR_INPUT, "inputs: %zu from number %zu, but there are %zu",
                         count, first, all->n);
    size_t *const numbers = pare_alloc(a, count, sizeof *numbers);
    if (!numbers) return pare_no_memory(err);
    for (size_t i = 0; i < count; i++) numbers[i] = first + i;
    return pare_inputs_pick(out, a, all, numbers, count, tokens, err);
}

/* ---- random inputs ------------------------------------------------------------------------- */

enum { DEFAULT_TOKENS = 64, INPUT_STREAM = 0x696e7000 }; /* input i draws from stream + i */

/* Every node sees its two neighbors on a ring. */
static pare_status ring_graph(pare_graph **out, pare_arena *a, size_t n, pare_err *err)
{
    pare_graph *const g = pare_alloc(a, 1, sizeof *g);
    size_t *const ptr = pare_alloc(a, n + 1, sizeof *ptr);
    uint32_t *const idx = pare_alloc(a, 2 * n, sizeof *idx);
    if (!g || !ptr || !idx) return pare_no_memory(err);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t before = (i + n - 1) % n, after = (i + 1) % n;
        const size_t low = before < after ? before : after, high = before < after ? after : before;
        if (n > 1) idx[at++] = (uint32_t)low;
        if (n > 2) idx[at++] = (uint32_t)high;
        ptr[i + 1] = at;
    }
    *g = (pare_graph){n, ptr, idx};
    *out = g;
    return PARE_OK;
}

pare_status pare_inputs_random(pare_inputs *out, pare_arena *a, const pare_model *m, size_t n,
                               size_t tokens, uint64_t seed, pare_err *err)
{
    if (tokens == 0)
        tokens = m->context && m->context < DEFAULT_TOKENS ? m->context : DEFAULT_TOKENS;
    out->n = n;
    out->in = pare_alloc(a, n ? n : 1, sizeof *out->in);
    if (!out->in) return pare_no_memory(err);
    pare_graph *g = NULL;
    pare_status st = PARE_OK;
    if (m->pattern.kind == PARE_GRAPH && (st = ring_graph(&g, a, tokens, err))) return st;
    for (size_t i = 0; i < n; i++) {
        pare_rng rng = pare_rng_at(seed, INPUT_STREAM + i);
        pare_input *const in = &out->in[i];
        const size_t width = m->embedding.ids ? 1 : m->embedding.width;
        size_t count = 0; /* tokens may come from a certificate: any number */
        if (!pare_mul(&count, tokens, width)) return pare_no_memory(err);
        int64_t *const ids = m->embedding.ids ? pare_alloc(a, count, sizeof *ids) : NULL;
        double *const x = m->embedding.ids ? NULL : pare_alloc(a, count, sizeof *x);
        if (!ids && !x) return pare_no_memory(err);
        for (size_t k = 0; ids && k < count; k++)
            ids[k] = (int64_t)pare_rng_below(&rng, m->embedding.vocab);
        /* Rounded to f32, so that both passes see the same numbers. */
        for (size_t k = 0; x && k < count; k++) x[k] = (double)(float)pare_rng_normal(&rng);
        *in = (pare_input){.batch = 1, .tokens = tokens, .ids = ids, .x = x, .graph = g};
        if (x) in->width = width;
    }
    return PARE_OK;
}

/* ---- hash ----------------------------------------------------------------------------------- */

static void add_sizes(pare_sha256 *h, const uint64_t *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t b[8];
        for (int k = 0; k < 8; k++) b[k] = (uint8_t)(v[i] >> (8 * k));
        pare_sha256_add(h, b, sizeof b);
    }
}

pare_status pare_inputs_sha256(char hex[PARE_SHA256_HEX], const pare_inputs *set, pare_err *err)
{
    pare_sha256 h;
    const uint64_t n = set->n;
    const pare_status st = pare_sha256_begin(&h, err);
    if (st) return st;
    add_sizes(&h, &n, 1);
    for (size_t k = 0; k < set->n; k++) {
        const pare_input *const in = &set->in[k];
        const pare_graph *const g = in->graph;
        const size_t rows = in->batch * in->tokens;
        const uint64_t shape[] = {in->batch, in->tokens, in->x ? in->width : 0, in->ids != NULL,
                                  g != NULL};
        add_sizes(&h, shape, sizeof shape / sizeof *shape);
        if (in->ids) pare_sha256_add(&h, in->ids, rows * sizeof *in->ids);
        if (in->x) pare_sha256_add(&h, in->x, rows * in->width * sizeof *in->x);
        for (size_t i = 0; g && i < g->n; i++) {
            const uint64_t degree = g->ptr[i + 1] - g->ptr[i];
            add_sizes(&h, &degree, 1);
            if (degree) pare_sha256_add(&h, g->idx + g->ptr[i], degree * sizeof *g->idx);
        }
    }
    pare_sha256_end(&h, hex);
    return PARE_OK;
}
