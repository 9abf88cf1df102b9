/* ticket_required.c - pare ticket --required EPS,P: how wide a random network must be (Otsuka 2025,
 * Theorems 3 and 6), before anything is drawn. Nothing is written. */
#include "base/json.h"
#include "show_ticket.h"

#include <math.h>
#include <stdlib.h>

typedef struct required {
    double eps, p, alpha; /* alpha: of the given rows; 0 for ids */
    size_t nlayers;
    pare_ticket_layer_plan *layer;
    pare_ticket_blocks_plan blocks;
} required;

/* ---- options ------------------------------------------------------------------------------- */

/* ---- text ---------------------------------------------------------------------------------- */

/* What must be met within eta is printed rounded down, what is only bounded rounded up. */
static void print_need(const char *what, double eta, const pare_ticket_need *n)
{
    char within[40], off[40];
    pare_lb_format(within, (pare_lb){eta}, 4);
    pare_ub_format(off, (pare_ub){n->coupling}, 4);
    if (n->units > 0)
        out_line("    %s within %s: %zu products for an entry", what, within, n->units);
    else if (n->density > 0)
        out_line("    %s within %s: not proven, weights drawn in steps of 2^-23 may put %zu "
                 "products off by %s",
                 what, within, n->density, off);
    else
        out_line("    %s within %s: not proven with fewer than 2^20 products", what, within);
}

static void print_widths(const char *name, double proven, double printed, double least)
{
    char n[32];
    out_line("    %s of a head: proven %s; printed with C = 1 (no statement) %.0f; least of any "
             "construction %.0f",
             name, proven > 0 ? out_count(n, (uint64_t)proven) : "none", fmax(ceil(printed), 0),
             ceil(least));
}

static void print_text(const pare_model *m, const required *r)
{
    char n[40];
    out_row("required", "error at most %g with probability at least %g, before anything is drawn",
            r->eps, 1 - r->p);
    if (m->embedding.ids)
        out_row("domain", "all token sequences");
    else
        out_row("domain", "all inputs with rows of euclidean length up to %s",
                pare_ub_format(n, (pare_ub){r->alpha}, 6));
    out_row("Theorem 3", "(Otsuka 2025, corrected) one attention layer at a time");
    for (size_t b = 0; b < r->nlayers; b++)
        if (r->layer[b].there) {
            const pare_ticket_layer_size *const s = &r->layer[b].size;
            const pare_ticket_plan *const p = &r->layer[b].plan;
            char rows[40], values[40];
            if (*r->layer[b].why) {
                out_line("  layer %zu  not covered: %s", b, r->layer[b].why);
                continue;
            }
            out_line("  layer %zu  %zu head%s, %zu -> %zu, rows up to %s, |V| up to %s", b,
                     s->heads, s->heads == 1 ? "" : "s", s->d1, s->d2,
                     pare_ub_format(rows, (pare_ub){s->alpha}, 4),
                     pare_ub_format(values, (pare_ub){s->omega}, 4));
            print_widths("n_K", p->n_k, p->paper_k, p->least_k);
            print_need("queries and keys", p->eta_q, &p->q);
            print_widths("n_V", p->n_v, p->paper_v, p->least_v);
            print_need("values", p->eta_v, &p->v);
        }
    out_row("Theorem 6", "(Otsuka 2025, corrected) the outputs of the whole model");
    if (*r->blocks.why) {
        out_line("  not covered: %s", r->blocks.why);
        return;
    }
    out_line("    %s entries share the failure", out_count(n, r->blocks.entries));
    print_need("every entry", r->blocks.eta, &r->blocks.need);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static bool add_need(cJSON *to, const pare_ticket_need *n)
{
    return pare_json_add_values(to, "products:z products_density:z coupling:n", n->units,
                                n->density, n->coupling);
}

static pare_status print_json(cli *c, const required *r)
{
    static const char width_keys[] = "proven:n printed_c1:n least:n eta:n";
    cJSON *const root = out_json_begin(c);
    cJSON *const to = root ? pare_json_add_object(root, "required") : NULL;
    bool ok = pare_json_add_values(to, "eps:g p:g alpha:g", r->eps, r->p, r->alpha);
    cJSON *const list = ok ? pare_json_add_array(to, "layers") : NULL;
    ok = list != NULL;
    for (size_t b = 0; ok && b < r->nlayers; b++) {
        const pare_ticket_layer_size *const s = &r->layer[b].size;
        const pare_ticket_plan *const p = &r->layer[b].plan;
        if (!r->layer[b].there) continue;
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = pare_json_add_values(o, "layer:z why:s", b, r->layer[b].why);
        if (!ok || *r->layer[b].why) continue;
        ok = pare_json_add_values(o, "heads:z d1:z d2:z alpha:n omega:n", s->heads, s->d1, s->d2,
                                  s->alpha, s->omega);
        cJSON *const keys = ok ? pare_json_add_object(o, "n_k") : NULL;
        ok = pare_json_add_values(keys, width_keys, p->n_k, p->paper_k, p->least_k, p->eta_q) &&
             add_need(keys, &p->q);
        cJSON *const values = ok ? pare_json_add_object(o, "n_v") : NULL;
        ok = pare_json_add_values(values, width_keys, p->n_v, p->paper_v, p->least_v, p->eta_v) &&
             add_need(values, &p->v);
    }
    cJSON *const all = ok ? pare_json_add_object(to, "blocks") : NULL;
    ok = pare_json_add_values(all, "why:s entries:z eta:g", r->blocks.why,
                              (size_t)r->blocks.entries, r->blocks.eta) &&
         add_need(all, &r->blocks.need);
    return out_json(c, root, ok);
}

/* ---- the command ----------------------------------------------------------------------------- */

pare_status ticket_required(cli *c, const ticket_opts *o)
{
    required r = {0};
    pare_cert_inputs in = {0};
    pare_model *m = NULL;
    char why[200] = "";
    char *end = NULL, *last = NULL;
    r.eps = strtod(o->required, &end);
    if (end != o->required && *end == ',') r.p = strtod(end + 1, &last);
    if (!last || last == end + 1 || *last)
        return cli_usage_error(c, "--required: '%s' is not of the form EPS,P", o->required);
    if (!(r.eps > 0 && r.eps < INFINITY))
        return cli_usage_error(c, "--required: the error EPS is %g: it must be above 0 and finite",
                               r.eps);
    if (!(r.p > 0 && r.p < 1))
        return cli_usage_error(
            c,
            "--required: the probability P of a failure is %g: it must be above 0 and "
            "below 1",
            r.p);
    pare_status st = PARE_OK;
    if (!st)
        st = cli_only(
            c, "out,force,bits,hidden,stored,max-error,method,mode,biases,scale,strict,coding",
            false, "a ticket, and --required makes none");
    if (!st) st = cli_load(c, &m, c->operand[0]);
    /* How long the rows of the given inputs are; nothing needs to be known about ids. */
    if (!st && !m->embedding.ids) {
        st = pare_cert_inputs_load(
            &in, c->arena, m, o->r.o.data,
            &(pare_data_opts){.split = o->r.o.split, .column = o->r.o.column, .seed = c->seed},
            &c->err);
        if (!st) r.alpha = pare_ticket_alpha(&in.set);
    }
    if (!st && !(r.layer = pare_alloc(c->arena, m->nblocks + 1, sizeof *r.layer)))
        st = pare_no_memory(&c->err);
    const pare_ticket_goal goal = {.alpha = r.alpha, .eps = r.eps, .p = r.p};
    if (!st) {
        r.nlayers = m->nblocks;
        st = pare_ticket_plan_layers(r.layer, why, m, &goal, &c->exec, &c->err);
    }
    if (!st && *why)
        st = pare_fail(&c->err, PARE_ERR_INPUT, "%s: Theorems 3 and 6 do not cover it: %s",
                       c->operand[0], why);
    if (!st) st = pare_ticket_plan_blocks(&r.blocks, m, &goal, &c->exec, &c->err);
    cli_bar_end(c);
    if (!st && c->json)
        st = print_json(c, &r);
    else if (!st)
        print_text(m, &r);
    pare_model_free(m);
    return st;
}
