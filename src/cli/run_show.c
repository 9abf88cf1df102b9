/* run_show.c - what `pare run` prints about its result. */
#include "out.h"
#include "run.h"

#include <math.h>

#define TOP        5 /* next tokens shown */
#define MOST_CLASS 10
#define FIRST      6 /* numbers of an embedding shown */

static double value(const run_state *s, size_t i)
{
    return s->o->f64 ? ((const double *)s->out)[i] : (double)((const float *)s->out)[i];
}

void run_check_finite(const cli *c, run_state *s)
{
    size_t first = 0;
    for (size_t i = 0; i < s->rows * s->cols; i++) {
        if (isfinite(value(s, i))) continue;
        if (s->nonfinite++ == 0) first = i;
    }
    if (s->nonfinite)
        fprintf(stderr,
                "pare %s: warning: %zu of %zu outputs are nan or infinite, the first in row %zu, "
                "column %zu: the model overflows%s\n",
                c->spec.command, s->nonfinite, s->rows * s->cols, first / s->cols, first % s->cols,
                s->o->f64 ? "" : " in single precision; try --f64");
}

typedef struct top_entry {
    size_t id;
    double probability;
} top_entry;

/* The likeliest n columns of the last row, best first; the earlier one of equals. */
static size_t top_entries(top_entry *top, size_t n, const run_state *s)
{
    const size_t base = (s->rows - 1) * s->cols;
    double most = -INFINITY, sum = 0;
    size_t found = 0;
    for (size_t j = 0; j < s->cols; j++) most = fmax(most, value(s, base + j));
    for (size_t j = 0; j < s->cols; j++) sum += exp(value(s, base + j) - most);
    for (size_t j = 0; j < s->cols; j++) {
        const double p = exp(value(s, base + j) - most) / sum;
        size_t i = found < n ? found++ : n;
        if (i == n) {
            if (!(p > top[n - 1].probability)) continue;
            i = n - 1;
        }
        for (; i > 0 && p > top[i - 1].probability; i--) top[i] = top[i - 1];
        top[i] = (top_entry){j, p};
    }
    return found;
}

static bool predicts_tokens(const run_state *s)
{
    return s->text && s->m->embedding.ids && s->m->head.pool == PARE_POOL_NONE &&
           s->cols == s->m->embedding.vocab;
}

/* The output is a vector to compare texts by, not scores of classes. */
static bool is_embedding(const run_state *s)
{
    const pare_output_head *const h = &s->m->head;
    return s->text && h->pool != PARE_POOL_NONE && !h->tied && !pare_has(&h->out.w);
}

static bool shows_likeliest(const run_state *s)
{
    return s->text && !is_embedding(s) && (predicts_tokens(s) || s->m->head.pool != PARE_POOL_NONE);
}

static void print_embedding(const run_state *s)
{
    const size_t base = (s->rows - 1) * s->cols, n = s->cols < FIRST ? s->cols : FIRST;
    double squares = 0;
    char buf[FIRST * 16] = "";
    for (size_t j = 0; j < s->cols; j++) squares += value(s, base + j) * value(s, base + j);
    for (size_t j = 0, at = 0; j < n; j++)
        at += (size_t)snprintf(buf + at, sizeof buf - at, "%.6g ", value(s, base + j));
    out_row("embedding", "%s%s(%zu numbers, length %.6g; -o FILE.npy or --json for all)", buf,
            n < s->cols ? "... " : "", s->cols, sqrt(squares));
}

static const char *token_text(char *buf, size_t size, const run_state *s, size_t id)
{
    size_t bytes = 0;
    const pare_input *in = &s->set.in[0];
    const char *t = NULL;
    if (id < pare_tokenizer_size(s->tok))
        t = pare_decode(s->tok, in->ids[in->tokens - 1], (int64_t)id, &bytes);
    return out_text(buf, size, t ? t : "", t ? bytes : 0);
}

void run_print(const cli *c, const run_state *s)
{
    const bool tokens = predicts_tokens(s);
    size_t sequences = 0, least = SIZE_MAX, most = 0;
    char buf[128];
    double lo = INFINITY, hi = -INFINITY;
    for (size_t i = 0; i < s->rows * s->cols; i++) {
        lo = fmin(lo, value(s, i));
        hi = fmax(hi, value(s, i));
    }
    for (size_t i = 0; i < s->set.n; i++) {
        const pare_input *const in = &s->set.in[i];
        sequences += in->batch;
        if (in->tokens < least) least = in->tokens;
        if (in->tokens > most) most = in->tokens;
    }
    snprintf(buf, sizeof buf, least < most ? "%zu to %zu" : "%zu", least, most);
    out_row("input", "%zu %s of %s tokens", sequences,
            s->set.in[0].graph ? "graph"
            : sequences == 1   ? "sequence"
                               : "sequences",
            buf);
    out_row("output", "%s %s, from %.6g to %.6g", pare_shape_text(buf, s->shape, s->ndim),
            s->o->f64 ? "f64" : "f32", lo, hi);
    if (s->o->distance) {
        char bound[40];
        out_row("rounding", "no output is further than %s from the exact function, proven",
                pare_ub_format(bound, pare_ub_exact(s->distance), 3));
    }
    if (shows_likeliest(s)) {
        top_entry top[MOST_CLASS];
        const size_t n = top_entries(top, tokens ? TOP : MOST_CLASS, s);
        out_line("%-13s%-12s %s", tokens ? "next token" : "classes", "probability",
                 tokens ? "id      text" : "class");
        for (size_t i = 0; i < n; i++) {
            out_part("%-13s%-12.6f ", "", top[i].probability);
            if (tokens)
                out_line("%-8zu'%s'", top[i].id, token_text(buf, sizeof buf, s, top[i].id));
            else
                out_line("%zu", top[i].id);
        }
    }
    if (is_embedding(s)) print_embedding(s);
    run_print_length(s);
    out_row("time", "%.3f ms (%s, %zu %s)", s->ms, s->o->f64 ? "f64" : "f32", c->threads,
            c->threads == 1 ? "thread" : "threads");
}

pare_status run_print_json(cli *c, const run_state *s)
{
    facts f;
    const pare_status st = cli_facts(c, &f, c->operand[0], s->m, &s->set.in[0], true);
    if (st) return st;
    cJSON *const root = out_json_begin(c);
    cJSON *const out =
        root && out_json_facts(root, "input", &f) ? pare_json_add_object(root, "result") : NULL;
    bool ok = pare_json_add_values(out, "path:s dtype:s", c->out, s->o->f64 ? "F64" : "F32") &&
              out_json_shape(out, "shape", s->shape, s->ndim) &&
              pare_json_add_values(out, "nonfinite:z", s->nonfinite);
    if (ok && shows_likeliest(s)) {
        const bool tokens = predicts_tokens(s);
        top_entry top[MOST_CLASS];
        char buf[128];
        const size_t n = top_entries(top, tokens ? TOP : MOST_CLASS, s);
        cJSON *const list = pare_json_add_array(root, tokens ? "next" : "classes");
        ok = list != NULL;
        for (size_t i = 0; ok && i < n; i++)
            ok = tokens ? pare_json_add_record(list, NULL, "id:z probability:g text:s", top[i].id,
                                               top[i].probability,
                                               token_text(buf, sizeof buf, s, top[i].id))
                        : pare_json_add_record(list, NULL, "id:z probability:g", top[i].id,
                                               top[i].probability);
    }
    if (ok && is_embedding(s)) {
        const size_t base = (s->rows - 1) * s->cols;
        cJSON *const list = pare_json_add_array(root, "embedding");
        ok = list != NULL;
        for (size_t j = 0; ok && j < s->cols; j++) {
            cJSON *const number = cJSON_CreateNumber(value(s, base + j));
            ok = number && cJSON_AddItemToArray(list, number);
            if (!ok) cJSON_Delete(number);
        }
    }
    return out_json(
        c, root,
        ok && run_json_poly(root, s) && run_json_length(root, s) &&
            (!s->o->distance || pare_json_add_record(root, "engine", "distance:n", s->distance)) &&
            pare_json_add_record(root, "time_ms", "run:g", s->ms));
}
