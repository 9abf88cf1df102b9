/* show_depth.c - attention and what may stand in its place, as tables: a row for each head, the
 * layer's figures on its first one. */
#include "show_depth.h"
#include "out.h"

#include <math.h>
#include <string.h>

enum { MOST_HEADS = 48 };

/* At most 7 characters: "0.123", "1.2e-08", "1e+14"; "-" for nan. */
static const char *fig(char buf[32], double v)
{
    const double size = fabs(v);
    if (isnan(v)) return "-";
    if (v != 0 && (size < 1e-3 || size >= 1e5))
        snprintf(buf, 32, "%.1e", v);
    else
        snprintf(buf, 32, size < 10 ? "%.3f" : "%.1f", v);
    return buf;
}

/* A bound is never printed below itself. */
static const char *ub(char buf[40], pare_ub b)
{
    return isinf(b.v) ? "vacuous" : pare_ub_format(buf, b, 2);
}

/* ---- heads and layers ------------------------------------------------------------------------ */

static void head_row(const pare_attention_stats *x, size_t h, const pare_layer_stats *l, bool all)
{
    const pare_head_stats *const e = &x->heads[h];
    char t[16][32], b[4][40], degree[48] = "none";
    if (e->poly_degree != SIZE_MAX)
        snprintf(degree, sizeof degree, "%zu (%.3g)", e->poly_degree, (double)e->poly_features);
    out_part("  %-5zu %4zu %7s %8s %8s %7s %7s %7s %6s %6s %7s %7s %7s %7s %9s", e->block, e->head,
             fig(t[0], e->eta), ub(b[0], e->b2), ub(b[1], e->v2), fig(t[1], e->range_mean),
             fig(t[2], e->range_max), fig(t[3], e->theta), fig(t[4], e->tv_uniform),
             fig(t[5], e->tv_constq), fig(t[6], e->entropy), fig(t[7], e->k_paper),
             fig(t[8], e->k_sound), fig(t[9], e->k_seen), degree);
    if (all)
        out_part(" %8s %8s %7s %7s %7s", ub(b[2], e->bil), ub(b[3], e->vinf), fig(t[10], e->rho),
                 fig(t[11], e->tau), fig(t[12], e->tv_meanq));
    if (l)
        out_part(" | %7s %7s %7s %7s", fig(t[13], l->share), fig(t[14], l->res_x),
                 fig(t[15], l->res_f), fig(t[0], l->varied));
    putchar('\n');
}

/* The head with the widest logits of a layer. */
static size_t widest(const pare_attention_stats *x, const pare_layer_stats *l)
{
    size_t most = l->first;
    for (size_t h = l->first; h < l->first + l->nheads; h++)
        if (x->heads[h].range_mean > x->heads[most].range_mean) most = h;
    return most;
}

static void print_heads(const cli *c, const pare_attention_stats *x)
{
    const bool each = c->verbose || x->nheads <= MOST_HEADS;
    char tokens[32];
    out_row("attention", "on %zu input%s, %s tokens (at most %zu in one); fitted to %s", x->inputs,
            x->inputs == 1 ? "" : "s", out_count(tokens, x->tokens), x->longest,
            x->fitted == x->inputs && x->inputs == 1 ? "the same" : "others");
    out_part("  %-5s %4s %7s %8s %8s %7s %7s %7s %6s %6s %7s %7s %7s %7s %9s", "block", "head",
             "eta", "|B|2", "|V|2", "range", "max", "theta", "TVu", "TVq", "entropy", "K paper",
             "K", "seen", "degree");
    if (c->verbose) out_part(" %8s %8s %7s %7s %7s", "Bil_inf", "N_inf(V)", "rho", "tau", "TVm");
    out_line(" | %7s %7s %7s %7s", "|F|/|X|", "Res X", "Res F", "varied");
    for (size_t i = 0; i < x->nlayers; i++) {
        const pare_layer_stats *const l = &x->layers[i];
        if (!each) {
            head_row(x, widest(x, l), l, false);
            continue;
        }
        for (size_t h = l->first; h < l->first + l->nheads; h++)
            head_row(x, h, h == l->first ? l : NULL, c->verbose);
    }
    if (!each) out_row("", "of each layer the head with the widest logits; -v shows all");
    out_row("",
            "range: mean and largest logit range of a row; TVu, TVq: mean distance from uniform "
            "weights, from one query for all");
    out_row("",
            "K: contraction |Res out| <= K |Res in| (K paper is printed, not sound); degree of a "
            "polynomial at TV 0.01 (features)");
    out_row("", "norms |B|2, |V|2 are proven; all else is measured");
}

/* ---- what replacing costs -------------------------------------------------------------------- */

/* One cell: the local error with its bound, or the error of the hidden rows with the metric. */
static void cost_cell(const pare_probe *p, size_t layer, size_t kind, bool local)
{
    const pare_replacement_cost *const at = &p->depth.costs.kinds[layer][kind];
    const pare_ub proven = p->depth.stats.layers[layer].bound[kind];
    char a[32], b[40], text[80] = "-";
    if (at->refused)
        ;
    else if (local && isfinite(proven.v))
        snprintf(text, sizeof text, "%s < %s", fig(a, at->local), ub(b, proven));
    else if (local)
        snprintf(text, sizeof text, "%s", fig(a, at->local));
    else if (isnan(at->metric))
        snprintf(text, sizeof text, "%s", fig(a, at->loo));
    else
        snprintf(text, sizeof text, "%s (%.4f)", fig(a, at->loo), at->metric);
    out_part(" %17s", text);
}

static void cost_table(const pare_probe *p, bool local)
{
    out_part("  %-5s", "block");
    for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) out_part(" %17s", pare_depth_kind_names[k]);
    out_line("%s", local ? "              poly" : "");
    for (size_t i = 0; i < p->depth.stats.nlayers; i++) {
        const pare_layer_stats *const l = &p->depth.stats.layers[i];
        char bound[40];
        out_part("  %-5zu", l->block);
        for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) cost_cell(p, i, k, local);
        if (local)
            out_part("         < %7s", isinf(l->bound_poly.v) ? "-" : ub(bound, l->bound_poly));
        putchar('\n');
    }
}

static void print_alone(const pare_probe *p)
{
    const pare_attention_stats *const x = &p->depth.stats;
    double tv = 0;
    for (size_t h = 0; h < x->nheads; h++) tv += x->heads[h].tv_uniform / (double)x->nheads;
    out_row(
        "local",
        "each replaced attention layer by itself: largest error, measured < bound for inputs whose "
        "ranges are not wider");
    cost_table(p, true);
    out_row("alone", "one layer replaced: relative error of the hidden rows%s%s%s, measured",
            p->metric ? " (" : "", p->metric ? p->metric : "", p->metric ? ")" : "");
    cost_table(p, false);
    out_row("", "predicted for uniform: %.2g %% of attention's effect is lost (mean TVu)",
            100 * tv);
}

static void curve_row(const pare_probe *p, const pare_replacement_curve *curve)
{
    const pare_depth_probe *const d = &p->depth;
    out_part("  %-8s", pare_attn_name(curve->kind));
    for (size_t k = 1; k <= d->costs.nlayers; k++) {
        const pare_replacement_point *const at = &curve->points[k];
        char kept[64] = "", a[32], b[32];
        size_t used = 0;
        for (size_t l = 0; l < d->costs.nlayers && used + 12 < sizeof kept; l++)
            if (at->kept[l])
                used += (size_t)snprintf(kept + used, sizeof kept - used, "%s%zu", used ? "," : "",
                                         d->stats.layers[l].block);
        out_part("  %zu:%s %s", at->exact, *kept ? kept : "-", fig(a, at->lost));
        if (p->metric) out_part(" (%s)", fig(b, at->metric));
    }
    putchar('\n');
}

static void print_curves(const pare_probe *p)
{
    const pare_replacement_costs *const c = &p->depth.costs;
    char state[32];
    out_row("curves",
            "number of exact layers left: which, share of attention's effect that is lost%s%s%s",
            p->metric ? " (" : "", p->metric ? p->metric : "", p->metric ? ")" : "");
    for (size_t i = 0; i < c->ncurves; i++) curve_row(p, &c->curves[i]);
    if (c->ncurves == 0) return;
    const pare_replacement_point *const none = &c->curves[0].points[c->nlayers];
    out_row("",
            "without attention %.0f %% of the multiplications and %s bytes a token of cache "
            "are saved",
            100 * none->macs, out_count(state, (uint64_t)c->state));
}

/* ---- what is proven -------------------------------------------------------------------------- */

static void print_bounds(const cli *c, const pare_depth_probe *d)
{
    size_t hidden = 0;
    out_row("a priori", "all attentions replaced, %s: proven bound of an output%s",
            d->nbounds ? d->bounds[0].domain : "-", ", measured on the data");
    for (size_t i = 0; i < d->nbounds; i++) {
        const pare_probe_bound *const b = &d->bounds[i];
        char bound[40], apart[40], seen[32];
        if (!c->verbose && !isfinite(b->bound.v)) { /* vacuous */
            hidden++;
            continue;
        }
        out_part("  %-17s %9s %9s", b->what, ub(bound, b->bound), fig(seen, b->measured));
        if (isfinite(b->difference.v))
            out_part("  difference of the two outputs %s", ub(apart, b->difference));
        out_line("%s%s", *b->why ? "  " : "", b->why);
    }
    if (hidden) out_row("", "%zu more without a bound: -v lists them and says why", hidden);
}

static void print_paper(const pare_depth_probe *d)
{
    const pare_collapse_printed *const p = &d->paper;
    char a[32], b[32], c[32];
    const double most = 2 * (double)d->paper_heads * p->eps;
    out_row("paper",
            "Theorem D.1 as printed (not sound): bound %s, claim %s; hypotheses %s (Rank collapse "
            "2025)",
            fig(a, p->bound), fig(b, p->claim), p->holds ? "hold" : "fail");
    out_part("  eta <= 1: %s %s   eps < 1: %s %s", fig(a, p->eta), p->eta <= 1 ? "yes" : "no",
             fig(b, p->eps), p->eps < 1 ? "yes" : "no");
    out_part("   C < 0.5: %s %s", fig(c, p->c), p->c < 0.5 ? "yes" : "no");
    out_line("   2 H eps < 0.5: %s %s", fig(a, most), most < 0.5 ? "yes" : "no");
}

void show_depth(const cli *c, const pare_probe *p)
{
    const pare_depth_probe *const d = &p->depth;
    print_heads(c, &d->stats);
    if (d->costs.kinds && !d->costs.skipped) {
        print_alone(p);
        print_curves(p);
    }
    print_bounds(c, d);
    if (c->verbose || d->paper.holds) print_paper(d);
    out_verdict("depth", d->verdict <= PARE_DEPTH_MEASURED, pare_depth_verdict_names[d->verdict],
                ": %s", d->why);
    if (*d->violated) out_row("", "what blocks a proof: %s", d->violated);
}
