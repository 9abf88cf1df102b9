/* card_length.c - the cards of a length plan and of a run of one: its calls as a picture of the
 * attention matrix, and what the run promises (items.h). */
#include "items.h"
#include "plot.h"

#include "length/attend_plan.h"
#include <pare/cert.h>

#include <math.h>

enum { SIDE = 420, LEFT = 46, TOP = 26, BOTTOM = 44, RIGHT = 14, MAX_SHAPES = 20000, TONES = 5 };
enum { MAX_LABELS = 400 };

/* Which tokens a call sees: rectangles of keys (columns) and queries (rows). Every block has the
 * number of its call; colors only keep neighbors apart. */
typedef struct picture {
    page *p;
    double cell; /* of a token, in the picture */
    size_t unit; /* tokens of a call */
    size_t call, shapes;
    double area, sum_x, sum_y; /* of the tile at hand, and its middle times its area */
    struct {
        double x0, y0, x1, y1;
    } label[MAX_LABELS];
    size_t nlabels;
} picture;

static void draw_rectangle(picture *pic, size_t k, size_t q, size_t nk, size_t nq)
{
    if (pic->shapes++ >= MAX_SHAPES) return;
    const double x = LEFT + (double)k * pic->cell, y = TOP + (double)q * pic->cell,
                 w = (double)nk * pic->cell, h = (double)nq * pic->cell;
    page_put(pic->p, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>", x, y, w, h);
    pic->area += w * h;
    pic->sum_x += w * h * (x + w / 2);
    pic->sum_y += w * h * (y + h / 2);
}

/* The number of the call in the middle of the tile, where it is large enough for it and no other
 * number stands there. */
static void draw_number(picture *pic)
{
    enum { LETTER = 8, LINE = 13 };
    const double w = LETTER * (pic->call < 9 ? 1 : pic->call < 99 ? 2 : pic->call < 999 ? 3 : 4);
    const double x = pic->sum_x / pic->area, y = pic->sum_y / pic->area;
    if (!(pic->area >= 1.6 * w * LINE) || pic->nlabels == MAX_LABELS) return;
    for (size_t i = 0; i < pic->nlabels; i++)
        if (x - w / 2 < pic->label[i].x1 && pic->label[i].x0 < x + w / 2 &&
            y - LINE / 2.0 < pic->label[i].y1 && pic->label[i].y0 < y + LINE / 2.0)
            return;
    pic->label[pic->nlabels].x0 = x - w / 2, pic->label[pic->nlabels].x1 = x + w / 2;
    pic->label[pic->nlabels].y0 = y - LINE / 2.0, pic->label[pic->nlabels++].y1 = y + LINE / 2.0;
    page_put(pic->p, "<text class=\"ink\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%zu</text>",
             x, y + 4, pic->call + 1);
}

static pare_status draw_call(void *ctx, const pare_placed *tiles, size_t count, uint32_t rows)
{
    picture *pic = ctx;
    const size_t unit = pic->unit;
    (void)rows;
    for (size_t i = 0; i < count && pic->shapes <= MAX_SHAPES; i++) {
        const pare_tile *const t = &tiles[i].t;
        pic->area = pic->sum_x = pic->sum_y = 0;
        /* Neighbors, also at corners, have different tones. */
        page_put(pic->p,
                 "<g shape-rendering=\"crispEdges\" style=\"fill:color-mix(in oklab,var(--c%zu) "
                 "34%%,var(--box))\">",
                 (t->q0 / unit + 2 * (t->k0 / unit)) % TONES);
        if (t->vis0 == PARE_VIS_ALL && !t->keys && !t->rows && t->shared == 0) {
            const size_t q = t->q_down ? t->q0 + 1 - t->nq : t->q0;
            draw_rectangle(pic, t->k_down ? t->k0 + 1 - t->nk : t->k0, q, t->nk, t->nq);
        } else
            for (size_t p = 0; p < t->nq && pic->shapes <= MAX_SHAPES; p++) {
                /* Keys x .. x + n - 1 of the tile's list are neighbors: one shape. */
                const size_t seen = pare_tile_sees(t, p);
                for (size_t x = 0; x < seen;) {
                    size_t low = pare_tile_key(t, x), high = low, n = 1;
                    while (x + n < seen) {
                        const size_t next = pare_tile_key(t, x + n);
                        if (next + 1 != low && next != high + 1) break;
                        low = next < low ? next : low;
                        high = next > high ? next : high;
                        n++;
                    }
                    draw_rectangle(pic, low, pare_tile_query(t, p), high - low + 1, 1);
                    x += n;
                }
            }
        page_put(pic->p, "</g>");
        draw_number(pic);
        page_put(pic->p, "\n");
    }
    pic->call++;
    return pic->p->w.st;
}

/* Ticks at whole multiples of a call's length, at most about seven. */
static void draw_axes(page *p, const pare_length_plan *plan, double cell)
{
    const size_t unit = plan->caps.max_len ? plan->caps.max_len : 1;
    const size_t step = unit * ((plan->tokens / unit + 6) / 7 ? (plan->tokens / unit + 6) / 7 : 1);
    for (size_t t = 0; t <= plan->tokens; t += step) {
        const double at = (double)t * cell;
        page_put(p,
                 "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>"
                 "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%zu</text>"
                 "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                 "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%zu</text>\n",
                 LEFT + at, LEFT + at, TOP + SIDE, TOP + SIDE + 5, LEFT + at, TOP + SIDE + 17, t,
                 LEFT - 5, LEFT, TOP + at, TOP + at, LEFT - 8, TOP + at + 4, t);
    }
    page_put(p,
             "<text x=\"2\" y=\"12\">query: token that looks, counted from 0</text>"
             "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">key: token that is seen</text>\n",
             LEFT + SIDE / 2, TOP + SIDE + 36);
}

static void draw_calls(page *p, const pare_length_plan *plan)
{
    picture *const pic = page_alloc(p, 1, sizeof *pic);
    if (!pic) return;
    pic->p = p;
    pic->unit = plan->caps.max_len ? plan->caps.max_len : 1;
    pic->cell = (double)SIDE / (double)plan->tokens;
    page_put(p,
             "<figure><figcaption>Which call computes which part of the attention matrix (one "
             "head)</figcaption>"
             "<svg class=\"plan\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"calls of one "
             "head\">\n<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
             "style=\"fill:var(--track)\"/>\n",
             LEFT + SIDE + RIGHT, TOP + SIDE + BOTTOM, LEFT, TOP, SIDE, SIDE);
    pare_work_keep(&p->w, pare_length_plan_calls(plan, draw_call, pic, p->w.err));
    draw_axes(p, plan, pic->cell);
    page_put(p,
             "</svg><p class=\"small dim\">A number is a call: blocks with one number are computed "
             "by one call. There are %zu calls of at most %u tokens%s%s. Gray pairs are not "
             "attended to.</p></figure>\n",
             pic->call, plan->caps.max_len,
             pic->nlabels < pic->call ? "; blocks too small for a number have none" : "",
             pic->shapes > MAX_SHAPES ? "; only the first ones are drawn" : "");
}

static void count_fact(page *p, const char *label, double v, const char *beside)
{
    number n;
    page_fact(p, label, show_count(n, v), NULL, beside, true); /* parsing computes them again */
}

static pare_status parse_plan(page *p, pare_length_plan *plan, const cJSON *json, const char *path)
{
    const pare_status st = pare_length_plan_parse(plan, p->w.arena, json, NULL, p->w.err);
    if (st) pare_err_prefix(p->w.err, path);
    return st;
}

static const char *sentence(page *p, const pare_length_plan *plan)
{
    number v;
    return page_format(p,
                       "An input of %zu tokens on an engine that takes %u: %s calls in %zu rounds.",
                       plan->tokens, plan->caps.max_len, show_count(v, (double)plan->cost.calls),
                       (size_t)plan->cost.rounds);
}

static void put_plan(page *p, const pare_length_plan *plan)
{
    page_put(p, "<p class=\"small dim\">Mode <code>%s</code>.</p>\n",
             pare_length_mode_name(plan->opts.mode));
    const pare_length_cost *c = &plan->cost;
    const double work = c->flops / c->direct_flops, pairs = c->computed_pairs / c->pairs;
    number v;
    page_put(p, "<div class=\"facts\">\n");
    count_fact(p, "calls, all heads", (double)c->calls,
               c->lower > 0
                   ? page_format(p, "at least %s for any plan", show_count(v, (double)c->lower))
                   : "");
    if (c->theorem > 0)
        count_fact(p, "calls of the algorithm of Yu 2025", (double)c->theorem,
                   page_format(p, "%.3g times as many", (double)c->theorem / (double)c->calls));
    count_fact(p, "rounds", (double)c->rounds, "calls of one round can run at the same time");
    count_fact(p, "tokens a call takes", plan->caps.max_len,
               page_format(p, "for an input of %zu", plan->tokens));
    count_fact(p, "scratch memory, bytes", c->scratch_bytes, "at most");
    page_put(p, "</div>\n<p class=\"small dim\">");
    if (work <= 1.0005)
        page_put(p, "No extra multiplications");
    else
        page_put(p, "%.4g times the multiplications of direct attention", work);
    if (pairs <= 1.0005)
        page_put(p, ", no padding.</p>\n");
    else
        page_put(p, ", %.4g pairs of tokens computed for each one that is needed.</p>\n", pairs);
    if (plan->opts.mode == PARE_LENGTH_NATIVE || plan->opts.mode == PARE_LENGTH_ZEROREF)
        draw_calls(p, plan);
}

void card_plan(page *p, const item *it)
{
    pare_length_plan plan;
    if (!p->w.st) p->w.st = parse_plan(p, &plan, it->json, it->path);
    if (p->w.st) return;
    page_card(p, &(card){it->id, it->number, cut_kind_of(it)->word, it->path, NULL, NULL,
                         sentence(p, &plan), false});
    put_plan(p, &plan);
    page_source(p, it->path, NULL, NULL);
    page_card_end(p);
}

/* ---- a certified run ------------------------------------------------------------------------- */

void card_length(page *p, const item *it)
{
    const char *const model = item_string(p, item_object(p, it->json, "input"), "path");
    const char *const beside = item_string(p, item_object(p, it->json, "plan"), "path");
    const char *const path = beside ? pare_path_beside(p->w.arena, it->path, beside) : NULL;
    pare_length_plan plan;
    cJSON *json = NULL;
    if (it->holds == PARE_FALSE) {
        page_refuted(p, it, item_string(p, it->json, "norm"), item_string(p, it->json, "domain"),
                     item_number(p, it->json, "proven"));
        return;
    }
    if (!p->w.st && !path)
        p->w.st = pare_fail(p->w.err, PARE_ERR_INPUT, "%s: names no plan", it->path);
    if (!p->w.st) p->w.st = pare_json_read(&json, path, p->w.err);
    if (!p->w.st) p->w.st = parse_plan(p, &plan, json, path);
    if (!p->w.st) {
        page_card(p, &(card){it->id, it->number, cut_kind_of(it)->word, it->path, verdict_class(it),
                             verdict_word(it), sentence(p, &plan), false});
        page_put(p, "<p class=\"small dim\">Model <code>%s</code>.</p>\n", model);
        page_verdict(p, it);
        const char *const domain = item_string(p, it->json, "domain");
        const bool claimed = it->holds != PARE_TRUE;
        const char *const none =
            page_format(p, "No bound holds for %s (inf).", domain ? domain : "");
        const bar t[] = {
            {claimed ? "measured, says the certificate" : "measured", domain,
             item_number(p, it->json, "measured"), 1, .measured = true, .claimed = claimed},
            {claimed ? "claimed bound" : "proven bound", domain, item_number(p, it->json, "proven"),
             0, .claimed = claimed, .none = none},
            {"from sizes and the largest logit alone", domain, item_number(p, it->json, "apriori"),
             3, .claimed = claimed, .none = none},
        };
        page_put(p, "<h3>Error of the run%s</h3>\n",
                 claimed ? ", according to the certificate" : "");
        plot_bars(p, t, sizeof t / sizeof *t);
        page_put(p,
                 "<p class=\"small dim\">The bars show the %s, on a logarithmic scale. Domain: "
                 "%s.</p>\n",
                 item_string(p, it->json, "norm"), domain);
        put_plan(p, &plan);
        page_source(p, it->path, NULL, NULL);
        page_card_end(p);
    }
    cJSON_Delete(json);
}
