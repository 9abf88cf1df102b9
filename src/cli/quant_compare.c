/* quant_compare.c - pare quant --compare: every method at the same number of stored bits. Nothing is
 * written. */
#include "out.h"
#include "quant_compare.h"
#include "warn_text.h"

#include <math.h>
#include <string.h>

typedef struct table {
    pare_rivals r;
    const pare_rivals_opts *o;
} table;

static bool has_nats(const pare_evaluation *e)
{
    return strcmp(e->metric, "perplexity") == 0;
}

/* The loss that a method adds, or the score that it leaves. */
static double score_of(const pare_comparison *c)
{
    return has_nats(&c->model) ? c->model.scores.nats - c->reference.scores.nats : c->model.value;
}

static const char *score_name(const pare_evaluation *e)
{
    return has_nats(e)                        ? "nats added"
           : strcmp(e->metric, "cosine") == 0 ? "mean cosine"
                                              : e->metric;
}

static void print_score(const pare_comparison *c)
{
    if (!c->model.metric)
        out_part("  %13s", "");
    else
        out_part(has_nats(&c->model) ? "  %+13.5f" : "  %13.5f", score_of(c));
}

static void print_text(const table *t)
{
    const pare_evaluation *const e = &t->r.of[0].inside.model;
    const bool other = t->o->other;
    out_row("methods", "%g bits a weight, stored: scales, seeds and headers counted", t->o->bits);
    out_row("data", "%s: fitted to %zu inputs, measured on %zu others", t->o->data,
            t->r.on.data.fit.n, t->r.on.data.held.data.inputs.n);
    if (other) out_row("other", "%s: measured on %zu inputs", t->o->other, t->r.on.other.inputs.n);
    if (has_nats(e))
        out_row("original",
                other ? "%.5f nats per token of data, %.5f of other"
                      : "%.5f nats per token of data",
                t->r.of[0].inside.reference.scores.nats, t->r.of[0].outside.reference.scores.nats);
    out_line("%s", "");
    out_line("  %-8s  %6s  %11s  %14s  %13s%s", "method", "bits", "bytes", "weights' error",
             score_name(e), other ? "       on other" : "");
    for (size_t k = 0; k < t->r.n; k++) {
        const pare_rival *const r = &t->r.of[k];
        char n[32];
        out_part("  %-8s  %6.3f  %11s  %14.6f", r->method, r->bits, out_count(n, r->bytes),
                 r->error);
        print_score(&r->inside);
        if (other) print_score(&r->outside);
        out_line("%s", "");
    }
    out_line("%s", "");
    out_line("  weights' error: square of the errors over square of the weights");
}

static bool json_scores(cJSON *to, const char *key, const pare_comparison *c)
{
    if (!c->model.metric) return true;
    cJSON *const one = pare_json_add_object(to, key);
    return one &&
           pare_json_add_values(one, "name:s before:n after:n", c->model.metric, c->reference.value,
                                c->model.value) &&
           (!has_nats(&c->model) ||
            pare_json_add_values(one, "nats_before:n nats_after:n kl:n", c->reference.scores.nats,
                                 c->model.scores.nats, c->kl.mean)) &&
           (!c->cosine.rows ||
            pare_json_add_values(one, "p05:n least:n", c->cosine.p05, c->cosine.least));
}

static pare_status print_json(cli *c, const table *t)
{
    cJSON *const root = out_json_begin(c);
    bool ok = root && pare_json_add_values(root, "bits:g data:s other:s", t->o->bits, t->o->data,
                                           t->o->other ? t->o->other : "");
    cJSON *const list = ok ? pare_json_add_array(root, "methods") : NULL;
    ok = list;
    for (size_t k = 0; ok && k < t->r.n; k++) {
        const pare_rival *const r = &t->r.of[k];
        cJSON *const one = pare_json_add_object(list, NULL);
        ok = one &&
             pare_json_add_values(one, "method:s bits:g bytes:g relative_error:g seconds:g",
                                  r->method, r->bits, (double)r->bytes, r->error, r->seconds) &&
             json_scores(one, "data", &r->inside) && json_scores(one, "other", &r->outside);
    }
    return out_json(c, root, ok);
}

pare_status quant_compare(cli *c, const pare_rivals_opts *o)
{
    table t = {.o = o};
    pare_model *m = NULL;
    pare_status st = PARE_OK;
    if (!o->data) st = cli_usage_error(c, "--compare: give --data, what the methods are fitted to");
    if (!st)
        st =
            cli_only(c,
                     "out,force,embedding-bits,group,affine,max-bytes,max-error,dtype,allow-larger,"
                     "method,heldout,prove,tokens,split",
                     false, "a file of one method, and --compare writes none");
    if (!st) st = cli_check_files(c, (const char *const[]){c->operand[0], o->data}, 2);
    if (!st) st = cli_is_there(c, o->other);
    if (!st) st = cli_load(c, &m, c->operand[0]);
    if (!st) st = pare_compare_rivals(&t.r, c->arena, m, o, &c->whole, &c->err);
    cli_bar_end(c);
    if (!st) warn_text(c, o->data, &t.r.on.data.held.data.notes);
    if (!st && c->json)
        st = print_json(c, &t);
    else if (!st)
        print_text(&t);
    pare_model_free(m);
    return st;
}
