/* pare ticket --required EPS,P: how wide a random network must be (Otsuka 2025, Theorems 3 and 6),
 * before anything is drawn. Nothing is written. */
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

static pare_status read_pair(cli *c, required *r, const char *text)
{
    char *end = NULL, *last = NULL;
    r->eps = strtod(text, &end);
    if (end != text && *end == ',') r->p = strtod(end + 1, &last);
    if (!last || last == end + 1 || *last)
        return pare_fail(&c->err, PARE_ERR_USAGE, "--required: '%s' is not of the form EPS,P",
                         text);
    if (!(r->eps > 0 && r->eps < INFINITY))
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "--required: the error EPS is %g: it must be above 0 and finite", r->eps);
    if (!(r->p > 0 && r->p < 1))
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "--required: the probability P of a failure is %g: it must be above 0 and "
                         "below 1",
                         r->p);
    return PARE_OK;
}

static pare_status alone(cli *c)
{
    return cli_only(c,
                    "out,force,bits,hidden,stored,max-error,method,mode,biases,scale,strict,coding",
                    false, "a ticket, and --required makes none");
}

/* ---- for people ---------------------------------------------------------------------------- */

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

static void print_layer(const pare_ticket_layer_plan *l, size_t b)
{
    const pare_ticket_layer_size *const s = &l->size;
    const pare_ticket_plan *const p = &l->plan;
    char rows[40], values[40];
    if (*l->why) {
        out_line("  layer %zu  not covered: %s", b, l->why);
        return;
    }
    out_line("  layer %zu  %zu head%s, %zu -> %zu, rows up to %s, |V| up to %s", b, s->heads,
             s->heads == 1 ? "" : "s", s->d1, s->d2, pare_ub_format(rows, (pare_ub){s->alpha}, 4),
             pare_ub_format(values, (pare_ub){s->omega}, 4));
    print_widths("n_K", p->n_k, p->paper_k, p->least_k);
    print_need("queries and keys", p->eta_q, &p->q);
    print_widths("n_V", p->n_v, p->paper_v, p->least_v);
    print_need("values", p->eta_v, &p->v);
}

static void print_text(const pare_model *m, const required *r)
{
    char n[40];
    out_row("required", "error at most %g with probability at least %g, before anything is drawn",
            r->eps, 1 - r->p);
    if (m->stem.ids)
        out_row("domain", "all token sequences");
    else
        out_row("domain", "all inputs with rows of euclidean length up to %s",
                pare_ub_format(n, (pare_ub){r->alpha}, 6));
    out_row("Theorem 3", "(Otsuka 2025, corrected) one attention layer at a time");
    for (size_t b = 0; b < r->nlayers; b++)
        if (r->layer[b].there) print_layer(&r->layer[b], b);
    out_row("Theorem 6", "(Otsuka 2025, corrected) the outputs of the whole model");
    if (*r->blocks.why) {
        out_line("  not covered: %s", r->blocks.why);
        return;
    }
    out_line("    %s entries share the failure", out_count(n, r->blocks.entries));
    print_need("every entry", r->blocks.eta, &r->blocks.need);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static bool json_need(cJSON *to, double eta, const pare_ticket_need *n)
{
    return pare_json_add_number(to, "eta", eta) && pare_json_add_size(to, "products", n->units) &&
           pare_json_add_size(to, "products_density", n->density) &&
           pare_json_add_number(to, "coupling", n->coupling);
}

static bool json_width(cJSON *to, const char *key, double eta, const pare_ticket_need *n,
                       double proven, double printed, double least)
{
    cJSON *const o = pare_json_add_object(to, key);
    return o && pare_json_add_number(o, "proven", proven) &&
           pare_json_add_number(o, "printed_c1", printed) &&
           pare_json_add_number(o, "least", least) && json_need(o, eta, n);
}

static bool json_layer(cJSON *list, const pare_ticket_layer_plan *l, size_t b)
{
    const pare_ticket_layer_size *const s = &l->size;
    const pare_ticket_plan *const p = &l->plan;
    cJSON *const o = cJSON_CreateObject();
    if (!o || !cJSON_AddItemToArray(list, o)) {
        cJSON_Delete(o);
        return false;
    }
    if (!pare_json_add_size(o, "layer", b) || !pare_json_add_string(o, "why", l->why)) return false;
    return *l->why ||
           (pare_json_add_size(o, "heads", s->heads) && pare_json_add_size(o, "d1", s->d1) &&
            pare_json_add_size(o, "d2", s->d2) && pare_json_add_number(o, "alpha", s->alpha) &&
            pare_json_add_number(o, "omega", s->omega) &&
            json_width(o, "n_k", p->eta_q, &p->q, p->n_k, p->paper_k, p->least_k) &&
            json_width(o, "n_v", p->eta_v, &p->v, p->n_v, p->paper_v, p->least_v));
}

static pare_status print_json(cli *c, const required *r)
{
    cJSON *const root = out_json_begin(c);
    cJSON *const to = root ? pare_json_add_object(root, "required") : NULL;
    bool ok = to && pare_json_add_number(to, "eps", r->eps) &&
              pare_json_add_number(to, "p", r->p) && pare_json_add_number(to, "alpha", r->alpha);
    cJSON *const list = ok ? cJSON_AddArrayToObject(to, "layers") : NULL;
    ok = ok && list;
    for (size_t b = 0; ok && b < r->nlayers; b++)
        ok = !r->layer[b].there || json_layer(list, &r->layer[b], b);
    cJSON *const all = ok ? pare_json_add_object(to, "blocks") : NULL;
    ok = all && pare_json_add_string(all, "why", r->blocks.why) &&
         pare_json_add_size(all, "entries", r->blocks.entries) &&
         json_need(all, r->blocks.eta, &r->blocks.need);
    return out_json(c, root, ok);
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* How long the rows of the given inputs are; of ids nothing needs to be known. */
static pare_status read_alpha(cli *c, required *r, const ticket_opts *o, const pare_model *m)
{
    pare_cert_inputs in = {0};
    if (m->stem.ids) return PARE_OK;
    const pare_status st =
        pare_cert_inputs_load(&in, c->arena, m, o->r.o.data, o->r.o.split, c->seed, &c->err);
    if (!st) r->alpha = pare_ticket_alpha(&in.set);
    return st;
}

pare_status ticket_required(cli *c, const ticket_opts *o)
{
    required r = {0};
    pare_model *m = NULL;
    char why[200] = "";
    pare_status st = read_pair(c, &r, o->required);
    if (!st) st = alone(c);
    if (!st) st = cli_load(c, &m, c->operand[0]);
    if (!st) st = read_alpha(c, &r, o, m);
    if (!st && !(r.layer = pare_alloc(c->arena, m->nblocks + 1, sizeof *r.layer)))
        st = pare_no_memory(&c->err);
    if (!st) {
        r.nlayers = m->nblocks;
        st = pare_ticket_plan_layers(r.layer, why, m, r.alpha, r.eps, r.p, &c->exec, &c->err);
    }
    if (!st && *why)
        st = pare_fail(&c->err, PARE_ERR_INPUT, "%s: Theorems 3 and 6 do not cover it: %s",
                       c->operand[0], why);
    if (!st) st = pare_ticket_plan_blocks(&r.blocks, m, r.alpha, r.eps, r.p, &c->exec, &c->err);
    cli_bar_end(c);
    if (!st && c->json)
        st = print_json(c, &r);
    else if (!st)
        print_text(m, &r);
    pare_model_free(m);
    return st;
}
