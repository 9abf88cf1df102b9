/* The boxes of a length plan and of a run of one: its calls as a picture of the attention matrix,
 * and what the run promised (items.h). */
#include "items.h"
#include "plot.h"

#include <pare/length.h>

#include <math.h>

enum { SIDE = 420, MOST_SHAPES = 20000 };

typedef struct picture {
    page *p;
    double cell; /* of a token, in the picture */
    size_t call, shapes;
} picture;

static void shape(picture *pic, size_t k, size_t q, size_t nk, size_t nq)
{
    if (pic->shapes++ >= MOST_SHAPES) return;
    page_put(pic->p,
             "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" style=\"fill:var(--c%zu)\""
             "/>\n",
             (double)k * pic->cell, (double)q * pic->cell, (double)nk * pic->cell,
             (double)nq * pic->cell, pic->call % 8);
}

/* Keys x .. x + n - 1 of the tile's list are neighbours: one shape. */
static void row(picture *pic, const pare_tile *t, size_t p, size_t seen)
{
    for (size_t x = 0; x < seen;) {
        size_t low = pare_tile_key(t, x), high = low, n = 1;
        while (x + n < seen) {
            const size_t next = pare_tile_key(t, x + n);
            if (next + 1 != low && next != high + 1) break;
            low = next < low ? next : low;
            high = next > high ? next : high;
            n++;
        }
        shape(pic, low, pare_tile_query(t, p), high - low + 1, 1);
        x += n;
    }
}

static void tile(picture *pic, const pare_tile *t)
{
    if (t->vis0 == PARE_VIS_ALL && !t->keys && !t->rows && t->shared == 0) {
        const size_t q = t->q_down ? t->q0 + 1 - t->nq : t->q0;
        shape(pic, t->k_down ? t->k0 + 1 - t->nk : t->k0, q, t->nk, t->nq);
        return;
    }
    for (size_t p = 0; p < t->nq && pic->shapes <= MOST_SHAPES; p++)
        row(pic, t, p, pare_tile_sees(t, p));
}

static pare_status call(void *ctx, const pare_placed *tiles, size_t count, uint32_t rows)
{
    picture *pic = ctx;
    (void)rows;
    for (size_t i = 0; i < count && pic->shapes <= MOST_SHAPES; i++) tile(pic, &tiles[i].t);
    pic->call++;
    return pic->p->st;
}

static void draw(page *p, const pare_length_plan *plan)
{
    picture pic = {.p = p, .cell = (double)SIDE / (double)plan->tokens};
    page_put(p,
             "<figure><figcaption>The calls of one head: row i sees column j</figcaption>"
             "<svg class=\"plan\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"calls\" "
             "shape-rendering=\"crispEdges\" "
             "style=\"max-width:%dpx;background:var(--track)\">\n",
             SIDE, SIDE, SIDE);
    const pare_status st = pare_length_plan_calls(plan, call, &pic, p->err);
    if (!p->st) p->st = st;
    page_put(p,
             "</svg><p class=\"small dim\">Each colour is a call; there are %zu of at most %u "
             "rows%s.</p></figure>\n",
             pic.call, plan->caps.max_len,
             pic.shapes > MOST_SHAPES ? "; only the first ones are drawn" : "");
}

static void fact(page *p, const char *label, double v, const char *beside)
{
    number n;
    page_fact(p, label, show_count(n, v), NULL, beside, true); /* parsing computes them again */
}

static void costs(page *p, const pare_length_plan *plan)
{
    const pare_length_cost *c = &plan->cost;
    number v;
    page_put(p, "<div class=\"facts\">\n");
    fact(p, "calls", (double)c->calls,
         c->lower > 0 ? page_words(p, "at least %s for any cover", show_count(v, (double)c->lower))
                      : "");
    if (c->theorem > 0)
        fact(p, "the algorithm of Yu 2025", (double)c->theorem,
             page_words(p, "%.3g times ours", (double)c->theorem / (double)c->calls));
    fact(p, "rounds", (double)c->rounds, "calls of a round do not wait for one another");
    fact(p, "tokens of a call", plan->caps.max_len,
         page_words(p, "for inputs of %zu", plan->tokens));
    fact(p, "scratch, bytes", c->scratch_bytes, "at most");
    page_put(p,
             "</div>\n<p class=\"small dim\">%.4g times the multiplications of direct attention; "
             "%.4g pairs gone through for each that is seen.</p>\n",
             c->flops / c->direct_flops, c->computed_pairs / c->pairs);
}

static pare_status parse(page *p, pare_length_plan *plan, const cJSON *json, const char *path)
{
    const pare_status st = pare_length_plan_parse(plan, p->arena, json, NULL, p->err);
    if (st) pare_err_prefix(p->err, path);
    return st;
}

/* What the plan holds is a function of these words alone. */
static const char *command(page *p, const pare_length_plan *plan, const char *model,
                           const char *more)
{
    return page_words(p, "pare length %s --tokens %zu --oracle %u --mode %s%s", model, plan->tokens,
                      plan->caps.max_len, pare_length_mode_name(plan->opts.mode), more);
}

static void title(page *p, const item *it, const pare_length_plan *plan)
{
    page_card(
        p, it->id, "length",
        page_words(p, "%zu tokens on an engine that takes %u", plan->tokens, plan->caps.max_len));
}

static void show(page *p, const pare_length_plan *plan)
{
    costs(p, plan);
    if (plan->opts.mode == PARE_LENGTH_NATIVE || plan->opts.mode == PARE_LENGTH_ZEROREF)
        draw(p, plan);
}

void card_plan(page *p, const item *it)
{
    pare_length_plan plan;
    if (!p->st) p->st = parse(p, &plan, it->json, it->path);
    if (p->st) return;
    title(p, it, &plan);
    show(p, &plan);
    page_source(p, it->path, command(p, &plan, "MODEL", ""), NULL);
    page_card_end(p);
}

/* ---- a certified run ------------------------------------------------------------------------- */

static void tiers_of(page *p, const item *it)
{
    const char *const domain = item_string(p, it->json, "domain");
    const double proven = item_number(p, it->json, "proven");
    const bool claimed = it->holds != PARE_TRUE;
    const tier t[] = {
        {claimed ? "measured, says the certificate" : "measured", domain,
         item_number(p, it->json, "measured"), 1, .measured = true, .claimed = claimed},
        {claimed ? "proven, says the certificate" : "proven", domain, proven, 0,
         .vacuous = isinf(proven), .claimed = claimed},
        {"a priori", "from sizes and the largest logit", item_number(p, it->json, "apriori"), 3,
         .vacuous = false, .claimed = claimed},
    };
    page_put(p, "<h3>Error of the run%s</h3>\n", claimed ? ", according to the certificate" : "");
    plot_tiers(p, t, sizeof t / sizeof *t);
    page_put(p, "<p class=\"small dim\">Norm: %s. It is about %s.</p>\n",
             item_string(p, it->json, "norm"), domain);
}

void card_length(page *p, const item *it)
{
    const char *const model = item_string(p, item_object(p, it->json, "input"), "path");
    const char *const beside = item_string(p, item_object(p, it->json, "plan"), "path");
    const char *const path = beside ? pare_path_beside(p->arena, it->path, beside) : NULL;
    pare_length_plan plan;
    cJSON *json = NULL;
    if (it->holds == PARE_FALSE) {
        page_refuted(p, it, "length", item_string(p, it->json, "norm"),
                     item_string(p, it->json, "domain"), item_number(p, it->json, "proven"));
        return;
    }
    if (!p->st && !path) p->st = pare_fail(p->err, PARE_ERR_INPUT, "%s: names no plan", it->path);
    if (!p->st) p->st = pare_json_read(&json, path, p->err);
    if (!p->st) p->st = parse(p, &plan, json, path);
    if (!p->st) {
        title(p, it, &plan);
        page_verdict(p, it);
        tiers_of(p, it);
        show(p, &plan);
        page_source(p, it->path, command(p, &plan, model ? model : "MODEL", " --certify"), NULL);
        page_card_end(p);
    }
    cJSON_Delete(json);
}
