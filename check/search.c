/* search.c - theorems about all inputs of a domain: this program can not confirm them, but looks for
 * an input that refutes them. Inputs are drawn at random, at corners of the domain, and near the
 * worst one so far. What is found is found in balls: a refutation is a proof. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 128, LONGEST = 16, SIDE = 16, MOST_BOXES = 1 << 15 };
#define BIG_WORK 1e8 /* multiply-adds of both models: from there on there are fewer tries */

typedef enum domain_kind {
    UNKNOWN,
    ALL,       /* of the model */
    SEQUENCES, /* ids, up to `most` tokens (0: any number) */
    ROWS,      /* rows of euclidean length up to a */
    BOX,       /* entries up to a, tokens up to b apart */
    BALL,      /* rows within a of the given ones */
    EDITS      /* features of one node replaced */
} domain_kind;

typedef struct domain {
    domain_kind kind;
    double a, b;
    size_t most;
    bool euclidean; /* balls: the norm */
} domain;

typedef struct searcher {
    job *j;
    const certificate *c;
    domain d;
    philox random;
    const double *features; /* edits: rows that a node may be given */
    size_t nfeatures;
    double *best; /* the numbers of the worst input so far, and which input it is near */
    size_t best_input, best_tokens;
    double worst;
    size_t most_changed; /* rows with another largest entry at once */
    size_t edited;       /* by edits, counted one by one: beyond those without an edit */
} searcher;

/* ---- which inputs a theorem is about ---------------------------------------------------------- */

static bool begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

/* The words for a ball of a certificate: radius in 15 digits, or 17 where 15 do not restore it. */
static const char *ball_words(job *j, const certificate *c, const claim *t)
{
    char radius[40];
    const double r = parameter(t, "radius");
    snprintf(radius, sizeof radius, "%.15g", r);
    if (strtod(radius, NULL) != r) snprintf(radius, sizeof radius, "%.17g", r);
    return words(j, "every input whose %s are each within %s %s of those of %s",
                 c->model[0].ids ? "rows after the embedding (before positions)" : "feature rows",
                 radius, parameter_text(t, "ball_norm"), c->domain);
}

static domain domain_of(job *j, const certificate *c, const claim *t)
{
    domain d = {0};
    int end = -1;
    const char *const s = t->domain;
    const bool ids = c->model[0].ids;
    if (begins_with(t->kind, "ball.")) {
        d.a = parameter(t, "radius");
        d.euclidean = strcmp(parameter_text(t, "ball_norm"), "in the euclidean norm") == 0;
        const bool known = d.euclidean || !strcmp(parameter_text(t, "ball_norm"), "in every entry");
        if (known && d.a > 0 && strcmp(s, ball_words(j, c, t)) == 0) d.kind = BALL;
    } else if (begins_with(t->kind, "edits.")) {
        const char *const begin =
            words(j, "%s, and with the features of any one node replaced by any of ", c->domain);
        d.a = parameter(t, "rows");
        if (begins_with(s, begin) && d.a >= 0 && !ids && c->set.n == 1) d.kind = EDITS;
    } else if (strcmp(s, "all inputs") == 0) {
        d.kind = ALL;
    } else if (ids && strcmp(s, "all token sequences") == 0) {
        d.kind = SEQUENCES;
    } else if (ids && sscanf(s, "all token sequences of up to %zu tokens%n", &d.most, &end) == 1 &&
               end > 0 && !s[end] && d.most > 0) {
        d.kind = SEQUENCES;
    } else if (!ids &&
               ((sscanf(s, "all inputs with rows of euclidean length up to %lf%n", &d.a, &end) ==
                     1 &&
                 end > 0 && !s[end]) ||
                (sscanf(s, "every input whose rows have a euclidean length of at most %lf%n", &d.a,
                        &end) == 1 &&
                 end > 0 && !s[end]))) {
        d.kind = d.a >= 0 ? ROWS : UNKNOWN;
    } else if (!ids &&
               sscanf(s, "all inputs with entries up to %lf, tokens up to %lf apart%n", &d.a, &d.b,
                      &end) == 2 &&
               end > 0 && !s[end]) {
        d.kind = d.a >= 0 && d.b >= 0 ? BOX : UNKNOWN;
    }
    return d;
}

/* Whether the given inputs are of the domain, which then counts them as tries. */
static bool holds_given(const certificate *c, const domain *d)
{
    const size_t width = c->set.width;
    bool inside = true;
    for (size_t i = 0; inside && i < c->set.n; i++) {
        const input *const in = &c->set.list[i];
        if (d->kind == SEQUENCES && d->most && in->tokens > d->most) inside = false;
        for (size_t r = 0; d->kind == ROWS && r < in->tokens; r++) {
            long double sum = 0;
            for (size_t k = 0; k < width; k++)
                sum += (long double)in->x[r * width + k] * in->x[r * width + k];
            if (sqrtl(sum) > (long double)d->a) inside = false;
        }
        for (size_t k = 0; d->kind == BOX && k < width; k++) {
            double low = INFINITY, high = -INFINITY;
            for (size_t r = 0; r < in->tokens; r++) {
                low = fmin(low, in->x[r * width + k]);
                high = fmax(high, in->x[r * width + k]);
            }
            if (fmax(-low, high) > d->a || (long double)high - low > (long double)d->b)
                inside = false;
        }
    }
    return inside;
}

/* ---- drawing inputs -------------------------------------------------------------------------- */

/* Numbers that are as large as the domain allows, or anywhere in it. */
static double draw(searcher *s, bool corner)
{
    const double u = 2 * philox_uniform(&s->random) - 1;
    return corner ? (u < 0 ? -1 : 1) : u;
}

/* Every row scaled to `length` at most; a hair less, so that rounding does not leave the domain. */
static void limit_rows(double *x, size_t n, size_t width, double length, bool all)
{
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t k = 0; k < width; k++) sum += x[i * width + k] * x[i * width + k];
        const double now = sqrt(sum), factor = now > 0 ? length * (1 - 1e-12) / now : 0;
        for (size_t k = 0; (all || factor < 1) && k < width; k++) x[i * width + k] *= factor;
    }
}

/* Fresh numbers in [-1, 1], or the worst so far with a tenth of them changed. */
static void propose(searcher *s, double *x, size_t count, bool climb)
{
    const bool corner = philox_u64(&s->random) % 2;
    for (size_t i = 0; i < count; i++) {
        const bool keep = climb && philox_below(&s->random, 10) > 0;
        x[i] = keep ? s->best[i] : draw(s, corner);
    }
}

/* How many tokens an input of the search has at most: both models take it. */
static size_t longest_input(const searcher *s)
{
    size_t most = LONGEST;
    if (s->d.most && most > s->d.most) most = s->d.most;
    for (int m = 0; m < 2; m++)
        if (s->c->model[m].context && most > s->c->model[m].context) most = s->c->model[m].context;
    return most;
}

static bool draw_sequence(searcher *s, input *in)
{
    const model *const m = &s->c->model[0];
    *in = (input){.tokens = 1 + philox_below(&s->random, longest_input(s))};
    int64_t *const ids = take(s->j, in->tokens, sizeof *ids);
    const size_t vocab = s->c->model[1].vocab < m->vocab ? s->c->model[1].vocab : m->vocab;
    for (size_t i = 0; ids && i < in->tokens; i++)
        ids[i] = (int64_t)philox_below(&s->random, vocab);
    in->ids = ids;
    return ids != NULL;
}

/* Vectors of ROWS, BOX or ALL. Models of graphs get the graph of the data. */
static bool draw_vectors(searcher *s, input *in, double **numbers, bool climb)
{
    const model *const m = &s->c->model[0];
    const input *const given = &s->c->set.list[0];
    const size_t n = m->pattern == GRAPH ? given->tokens
                     : climb             ? s->best_tokens
                                         : 1 + philox_below(&s->random, longest_input(s));
    *in = (input){.tokens = n, .edges = given->edges};
    double *const raw = take(s->j, n * m->width, sizeof *raw);
    double *const x = take(s->j, n * m->width, sizeof *x);
    if (!raw || !x) return false;
    propose(s, raw, n * m->width, climb);
    const double half = fmin(s->d.b / 2, s->d.a), room = s->d.a - half;
    const double scale = s->d.kind == ALL ? pow(10, 2 * philox_uniform(&s->random) - 1) : 1;
    for (size_t k = 0; k < m->width; k++) {
        const double center = room * draw(s, true);
        for (size_t i = 0; i < n; i++)
            x[i * m->width + k] = s->d.kind == BOX
                                      ? center + half * (1 - 1e-12) * raw[i * m->width + k]
                                      : scale * raw[i * m->width + k];
    }
    if (s->d.kind == ROWS) limit_rows(x, n, m->width, s->d.a, true);
    in->x = x;
    *numbers = raw;
    return true;
}

/* Each row of a given input (or of its embedding) moved by at most the radius. */
static bool draw_in_ball(searcher *s, input *in, size_t *number, double **numbers, bool climb)
{
    const model *const m = &s->c->model[0];
    *number = climb ? s->best_input : philox_below(&s->random, s->c->set.n);
    *in = s->c->set.list[*number];
    const size_t count = in->tokens * m->width;
    double *const raw = take(s->j, count, sizeof *raw), *const by = take(s->j, count, sizeof *by);
    if (!raw || !by) return false;
    propose(s, raw, count, climb);
    for (size_t i = 0; i < count; i++) by[i] = s->d.a * (1 - 1e-12) * raw[i];
    if (s->d.euclidean) limit_rows(by, in->tokens, m->width, s->d.a, true);
    in->shift = by;
    *numbers = raw;
    return true;
}

static bool draw_edit(searcher *s, input *in)
{
    const size_t width = s->c->set.width;
    *in = s->c->set.list[0];
    double *const x = take(s->j, in->tokens * width, sizeof *x);
    if (!x) return false;
    memcpy(x, in->x, in->tokens * width * sizeof *x);
    const size_t node = philox_below(&s->random, in->tokens);
    const size_t by = philox_below(&s->random, s->nfeatures);
    memcpy(x + node * width, s->features + by * width, width * sizeof *x);
    in->x = x;
    return true;
}

static bool draw_input(searcher *s, input *in, size_t *number, double **numbers, bool climb)
{
    *numbers = NULL;
    *number = 0;
    if (s->d.kind == BALL) return draw_in_ball(s, in, number, numbers, climb);
    if (s->d.kind == EDITS) return draw_edit(s, in);
    if (s->c->model[0].ids) return draw_sequence(s, in);
    return draw_vectors(s, in, numbers, climb);
}

/* ---- edits: the rows that nodes may be given ------------------------------------------------- */

typedef struct kind_of_row {
    const double *x;
    size_t width, first, count;
} kind_of_row;

static int by_content(const void *a, const void *b)
{
    const kind_of_row *const p = a, *const q = b;
    const int c = memcmp(p->x, q->x, p->width * sizeof *p->x);
    return c ? c : (p->first > q->first) - (p->first < q->first);
}

static int by_count(const void *a, const void *b)
{
    const kind_of_row *const p = a, *const q = b;
    if (p->count != q->count) return p->count < q->count ? 1 : -1;
    return (p->first > q->first) - (p->first < q->first);
}

/* The different rows of the data, the most frequent first; the first `most` of them (0: all). */
static bool find_features(searcher *s, size_t most)
{
    const input *const in = &s->c->set.list[0];
    const size_t width = s->c->set.width;
    kind_of_row *const list = take(s->j, in->tokens, sizeof *list);
    size_t n = 0;
    if (!list) return false;
    for (size_t i = 0; i < in->tokens; i++) list[i] = (kind_of_row){in->x + i * width, width, i, 1};
    qsort(list, in->tokens, sizeof *list, by_content);
    for (size_t i = 1; i < in->tokens; i++) {
        if (memcmp(list[n].x, list[i].x, width * sizeof *list[i].x) == 0)
            list[n].count++;
        else
            list[++n] = list[i];
    }
    qsort(list, n + 1, sizeof *list, by_count);
    s->nfeatures = most && most < n + 1 ? most : n + 1;
    double *const rows = take(s->j, s->nfeatures * width, sizeof *rows);
    for (size_t i = 0; rows && i < s->nfeatures; i++)
        memcpy(rows + i * width, list[i].x, width * sizeof *rows);
    s->features = rows;
    return rows != NULL;
}

/* ---- the search ------------------------------------------------------------------------------ */

/* One try; what it finds is joined to `all`. */
static bool one_try(searcher *s, wanted w, figures *all, bool climb, const figures *base)
{
    job *const j = s->j;
    input in;
    size_t number;
    double *numbers;
    figures *const one = figures_new(j, s->c->model[0].nlayers);
    bool good = one && draw_input(s, &in, &number, &numbers, climb) &&
                compare(j, &s->c->model[0], &s->c->model[1], &in, w, one, NULL, BITS);
    if (good) figures_join(all, one, BITS);
    const double found = good ? arf_get_d(arb_midref(one->difference), ARF_RND_NEAR) : 0;
    if (good && numbers && found > s->worst) {
        s->best = numbers;
        s->best_input = number;
        s->best_tokens = in.tokens;
        s->worst = found;
    }
    if (good && one->changed > s->most_changed) s->most_changed = one->changed;
    if (good && one->changed > base->changed) s->edited += one->changed - base->changed;
    figures_free(one);
    return good;
}

static size_t rows_of_set(const certificate *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->set.n; i++) n += c->model[0].pool ? 1 : c->set.list[i].tokens;
    return n;
}

/* The figure that a kind is about; NULL: none was found. */
static arb_srcptr figure_of(const claim *t, const figures *f)
{
    const char *const kind = strchr(t->kind, '.') ? strchr(t->kind, '.') + 1 : t->kind;
    const double l = parameter(t, "layer");
    const bool known = l >= 0 && l < (double)f->nlayers;
    const bool ffn_part = begins_with(parameter_text(t, "part"), "feed");
    if (strcmp(kind, "outputs") == 0) return f->difference;
    if (strcmp(kind, "score") == 0) return f->has_score ? f->score : NULL;
    if (strcmp(kind, "hidden") == 0) return f->has_hidden ? f->hidden : NULL;
    if (strstr(t->kind, "rank_collapse")) return f->collapse;
    if (strcmp(kind, "injected") == 0 || (strcmp(kind, "ticket") == 0 && !ffn_part))
        return known && f->has_attention[(size_t)l] ? f->attention + (size_t)l : NULL;
    if (strcmp(kind, "ticket") == 0)
        return known && f->has_ffn[(size_t)l] ? f->ffn + (size_t)l : NULL;
    return NULL;
}

static void judge(job *j, const searcher *s, const claim *t, const figures *all, size_t tries)
{
    if (strstr(t->kind, "rows_changed")) { /* a share of rows, or of pairs of an edit and a node */
        const double n = (double)rows_of_set(s->c);
        const double of = s->d.kind == EDITS ? n * n * (double)s->nfeatures : n;
        const double seen = (double)(s->d.kind == EDITS ? s->edited : s->most_changed);
        state(j, seen / of > t->bound ? REFUTED : NOT_REFUTED, t->what,
              "%.0f rows have another largest entry%s, in %zu tries", seen,
              s->d.kind == EDITS ? "" : " at once", tries);
        return;
    }
    arb_srcptr x = figure_of(t, all);
    if (!x) {
        state(j, NOT_CHECKED, t->what, "the models do not have this figure in common");
        return;
    }
    arb_t bound;
    arb_init(bound);
    arb_set_d(bound, t->bound);
    const bool refuted = isfinite(t->bound) && arb_is_finite(x) && arb_gt(x, bound);
    state(j, refuted ? REFUTED : NOT_REFUTED, t->what, "%.9g was found%s %.9g, in %zu tries",
          arf_get_d(arb_midref(x), ARF_RND_NEAR), refuted ? ", above" : "; the bound is", t->bound,
          tries);
    arb_clear(bound);
}

/* All claims on the domain of claim `first`, with one search. */
static void search_one(job *j, const certificate *c, size_t first, domain d, const figures *base,
                       size_t evaluated, bool *done)
{
    searcher s = {.j = j, .c = c, .d = d, .random = philox_at(j->o->seed, 1 + first), .worst = -1};
    const claim *const list = c->claims[THEOREMS];
    figures *const all = figures_new(j, c->model[0].nlayers);
    wanted w = {0};
    size_t tries = 0;
    const double work =
        work_of(&c->model[0], &c->set.list[0]) + work_of(&c->model[1], &c->set.list[0]);
    const double few = (double)j->o->tries * fmin(1, BIG_WORK / work);
    const size_t most = few < 2 && j->o->tries > 2 ? 2 : (size_t)few;
    if (!all || (d.kind == EDITS && !find_features(&s, (size_t)d.a))) return;
    for (size_t i = first; i < c->n[THEOREMS]; i++) {
        w.branches |= begins_with(list[i].kind, "layer.");
        w.collapse |= strstr(list[i].kind, "rank_collapse") != NULL;
        w.hidden |= strcmp(list[i].kind, "apriori.hidden") == 0;
    }
    if (holds_given(c, &d)) {
        figures_join(all, base, BITS);
        s.most_changed = base->changed;
        tries = evaluated;
    }
    bool good = true;
    j->work_all += work * (double)most;
    for (size_t t = 0; good && t < most; t++, tries++)
        good = one_try(&s, w, all, s.best && t % 2, base);
    for (size_t i = first; good && i < c->n[THEOREMS]; i++) {
        const bool balls_same =
            parameter(&list[i], "radius") == parameter(&list[first], "radius") || d.kind != BALL;
        if (done[i] || list[i].lower || strcmp(list[i].domain, list[first].domain) || !balls_same)
            continue;
        judge(j, &s, &list[i], all, tries);
        done[i] = true;
    }
    figures_free(all);
}

/* ---- lower bounds ---------------------------------------------------------------------------- */

/* one_layer.least is proven at inputs of two tokens, each with all its entries equal. So the cut must
 * be that far off already there. The square of both numbers is covered by boxes: if in every box the
 * difference, with the whole box as a ball, stays below the bound, it is refuted. A box that does not
 * decide is cut into four. */
typedef struct box {
    double x, y, half;
} box;

static bool difference_on(job *j, const certificate *c, const box *b, bool point, arb_t out)
{
    const size_t width = c->model[0].width;
    double *const x = take(j, 2 * width, sizeof *x);
    figures *const f = x ? figures_new(j, c->model[0].nlayers) : NULL;
    if (!f) return false;
    for (size_t k = 0; k < width; k++) x[k] = b->x, x[width + k] = b->y;
    const input in = {.tokens = 2, .x = x, .radius = point ? 0 : b->half * (1 + 1e-12)};
    const bool good = compare(j, &c->model[0], &c->model[1], &in, (wanted){0}, f, NULL, BITS);
    if (good) arb_set(out, f->difference);
    figures_free(f);
    return good;
}

/* The largest difference at the points of a grid, rim included. */
static bool largest_at_points(job *j, const certificate *c, const domain *d, arb_t most)
{
    arb_t x;
    bool good = true;
    arb_init(x);
    for (size_t i = 0; good && i <= SIDE * SIDE + 2 * SIDE; i++) {
        const box b = {d->a * (2 * (double)(i % (SIDE + 1)) / SIDE - 1),
                       d->a * (2 * (double)(i / (SIDE + 1)) / SIDE - 1), 0};
        if (fabs(b.x - b.y) > d->b) continue; /* too far apart: not in the domain */
        good = difference_on(j, c, &b, true, x);
        if (good && arb_is_finite(x)) arb_max(most, most, x, BITS);
    }
    arb_clear(x);
    return good;
}

/* Whether the difference is below the bound in every box. */
static bool below_everywhere(job *j, const certificate *c, const domain *d, const arb_t bound)
{
    box *const list = take(j, MOST_BOXES + 4, sizeof *list);
    size_t n = 0, next = 0;
    bool below = list != NULL;
    const double half = d->a / SIDE;
    for (size_t i = 0; below && i < SIDE * SIDE; i++)
        list[n++] = (box){(2 * (double)(i % SIDE) + 1) * half - d->a,
                          (2 * (double)(i / SIDE) + 1) * half - d->a, half};
    arb_t x;
    arb_init(x);
    for (; below && next < n; next++) {
        const box b = list[next];
        if (fabs(b.x - b.y) - 2 * b.half > d->b) continue;
        below = difference_on(j, c, &b, false, x);
        if (!below || (arb_is_finite(x) && arb_lt(x, bound))) continue;
        below = n + 4 <= MOST_BOXES;
        for (int q = 0; below && q < 4; q++)
            list[n++] = (box){b.x + (q % 2 ? 0.5 : -0.5) * b.half,
                              b.y + (q / 2 ? 0.5 : -0.5) * b.half, b.half / 2};
    }
    arb_clear(x);
    return below;
}

static void check_one_layer(job *j, const certificate *c, const claim *t)
{
    const domain d = domain_of(j, c, t);
    const bool one_token = c->model[0].context == 1 || c->model[1].context == 1;
    if (d.kind != BOX || c->model[0].pattern == GRAPH || c->model[1].pattern == GRAPH ||
        one_token) {
        state(j, NOT_CHECKED, t->what, "its domain is not a box of vectors");
        return;
    }
    arb_t most, bound;
    arb_init(most);
    arb_init(bound);
    arb_set_d(bound, t->bound);
    if (largest_at_points(j, c, &d, most)) {
        const double found = arf_get_d(arb_midref(most), ARF_RND_NEAR);
        if (!arb_ge(most, bound) && below_everywhere(j, c, &d, bound))
            state(j, REFUTED, t->what,
                  "the cut's own error stays below it at all inputs of two tokens with equal "
                  "entries");
        else
            state(j, NOT_REFUTED, t->what,
                  "the cut's own error reaches %.9g at two tokens with equal entries", found);
    }
    arb_clear(most);
    arb_clear(bound);
}

/* Upper and lower bounds of the same figure on the same domain. */
static bool contradicts(job *j, const certificate *c, const claim *t)
{
    for (size_t i = 0; i < c->n[THEOREMS]; i++) {
        const claim *const u = &c->claims[THEOREMS][i];
        if (strcmp(u->kind, "apriori.outputs") || strcmp(u->domain, t->domain)) continue;
        if (!(t->bound > u->bound)) continue;
        state(j, REFUTED, t->what, "%.9g is above the upper bound %.9g of apriori.outputs",
              t->bound, u->bound);
        return true;
    }
    return false;
}

/* ---- all of them ----------------------------------------------------------------------------- */

void search_domains(job *j, const certificate *c, const figures *base, size_t evaluated)
{
    bool *const done = take(j, c->n[THEOREMS] + 1, sizeof *done);
    for (size_t i = 0; done && i < c->n[THEOREMS] && !j->t.code; i++) {
        const claim *const t = &c->claims[THEOREMS][i];
        if (done[i] || is_about_given(c, t)) continue;
        const domain d = domain_of(j, c, t);
        if (strcmp(t->kind, "one_layer.least") == 0) {
            if (!contradicts(j, c, t)) check_one_layer(j, c, t);
        } else if (d.kind == UNKNOWN || t->lower) {
            state(j, NOT_CHECKED, t->what, "its domain, \"%.160s\", is not one of this kind",
                  t->domain);
        } else if (d.kind == BALL && c->model[0].width != c->model[1].width) {
            state(j, NOT_CHECKED, t->what, "the models have embeddings of other widths");
        } else if (j->o->tries == 0) {
            state(j, NOT_CHECKED, t->what, "no tries were asked for");
        } else {
            search_one(j, c, i, d, base, evaluated, done);
        }
        done[i] = true;
    }
}
