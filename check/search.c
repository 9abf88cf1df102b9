/* search.c - theorems about all inputs of a domain: this program can not confirm them, but looks for
 * an input that refutes them. Inputs are drawn at random, at corners of the domain, and near the
 * worst one so far. What is found is found in balls: a refutation is a proof. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 128, LONGEST = 16, MOST_BOXES = 1 << 15 };
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
    /* The worst input so far: its numbers in [-1, 1] (NULL: none) and which given one it is near. */
    input worst;
    const double *worst_numbers;
    size_t worst_near;
    double worst_found;
    size_t most_changed; /* rows with another largest entry at once */
    size_t edited;       /* by edits, counted one by one: beyond those without an edit */
} searcher;

/* ---- which inputs a theorem is about ---------------------------------------------------------- */

static const char *after(const char *text, const char *begin)
{
    const size_t n = strlen(begin);
    return text && strncmp(text, begin, n) == 0 ? text + n : NULL;
}

/* The number between `before` and `behind`; returns what follows, or NULL. */
static const char *number_in(const char *text, const char *before, const char *behind, double *out)
{
    char *end;
    const char *const p = after(text, before);
    if (!p) return NULL;
    *out = strtod(p, &end);
    return end > p && *out >= 0 ? after(end, behind) : NULL;
}

/* Balls and edits by their parameters; other domains have only their words. */
static domain domain_of(const certificate *c, const claim *t)
{
    domain d = {0};
    double most = 0;
    const char *const s = t->domain, *const by = parameter_text(t, "ball_norm");
    const bool ids = c->model[0].ids;
    const char *end = NULL;
    if (after(t->kind->name, "ball.")) {
        d = (domain){BALL, parameter(t, "radius"), 0, 0, !strcmp(by, "in the euclidean norm")};
        if (!(d.a > 0) || (!d.euclidean && strcmp(by, "in every entry"))) d.kind = UNKNOWN;
    } else if (after(t->kind->name, "edits.")) {
        d = (domain){EDITS, parameter(t, "rows"), 0, 0, false};
        if (!(d.a >= 0) || ids || c->set.n != 1) d.kind = UNKNOWN;
    } else if (strcmp(s, "all inputs") == 0) {
        d.kind = ALL;
    } else if (ids) {
        end = after(s, "all token sequences");
        if (end && *end) end = number_in(end, " of up to ", " tokens", &most);
        d = (domain){end && !*end ? SEQUENCES : UNKNOWN, 0, 0, (size_t)fmin(most, 1e9), false};
    } else {
        end = number_in(s, "all inputs with entries up to ", ", tokens up to ", &d.a);
        if (end) end = number_in(end, "", " apart", &d.b);
        if (end && !*end) d.kind = BOX;
        end = number_in(s, "all inputs with rows of euclidean length up to ", "", &d.a);
        if (!end)
            end = number_in(s, "every input whose rows have a euclidean length of at most ", "",
                            &d.a);
        if (end && !*end) d.kind = ROWS;
    }
    return d;
}

static bool same_domain(const domain *d, const domain *e)
{
    return d->kind == e->kind && d->a == e->a && d->b == e->b && d->most == e->most &&
           d->euclidean == e->euclidean;
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

/* Numbers in [-1, 1] that become an input: fresh ones, fresh ones at corners, or those of the worst
 * input so far with a tenth of them changed. */
static double *propose(searcher *s, size_t count, bool corners, bool climb)
{
    double *const x = take(s->j, count, sizeof *x);
    corners = corners && philox_u64(&s->random) % 2;
    for (size_t i = 0; x && i < count; i++) {
        const double u = 2 * philox_uniform(&s->random) - 1;
        const bool keep = climb && philox_below(&s->random, 10) > 0;
        x[i] = keep ? s->worst_numbers[i] : corners ? copysign(1, u) : u;
    }
    return x;
}

/* [-1, 1] to 0 ... n - 1 */
static size_t pick(double u, size_t n)
{
    const size_t at = (size_t)((u + 1) / 2 * (double)n);
    return at < n ? at : n - 1;
}

/* Every row scaled to `length`; a hair less, so that rounding does not leave the domain. */
static void scale_rows(double *x, size_t n, size_t width, double length)
{
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t k = 0; k < width; k++) sum += x[i * width + k] * x[i * width + k];
        for (size_t k = 0; sum > 0 && k < width; k++)
            x[i * width + k] *= length * (1 - 1e-12) / sqrt(sum);
    }
}

/* How many tokens an input has: those of the given one, or as many as both models take. */
static size_t draw_tokens(searcher *s, const input *given, bool climb)
{
    const model *const m = s->c->model;
    size_t most = LONGEST;
    if (s->d.kind == BALL || s->d.kind == EDITS || m->pattern == GRAPH) return given->tokens;
    if (climb) return s->worst.tokens;
    if (s->d.most && most > s->d.most) most = s->d.most;
    for (int i = 0; i < 2; i++)
        if (m[i].context && most > m[i].context) most = m[i].context;
    return 1 + philox_below(&s->random, most);
}

/* Rows of vectors: a box of entries around a center of each column, or rows of a length. */
static void draw_rows(searcher *s, const double *raw, size_t n, size_t width, double *x)
{
    const double half = fmin(s->d.b / 2, s->d.a), room = s->d.a - half;
    const double scale = s->d.kind == BALL  ? s->d.a * (1 - 1e-12)
                         : s->d.kind == ALL ? pow(10, 2 * philox_uniform(&s->random) - 1)
                                            : 1;
    for (size_t k = 0; k < width; k++) {
        const double center = philox_u64(&s->random) % 2 ? room : -room;
        for (size_t i = k; i < n * width; i += width)
            x[i] = s->d.kind == BOX ? center + half * (1 - 1e-12) * raw[i] : scale * raw[i];
    }
    if (s->d.kind == ROWS || s->d.euclidean) scale_rows(x, n, width, s->d.a);
}

/* One node of the data gets another row. */
static void draw_edit(const searcher *s, const double *raw, const input *given, double *x)
{
    const size_t width = s->c->set.width, bytes_of_row = width * sizeof *x;
    const size_t node = pick(raw[0], given->tokens), by = pick(raw[1], s->nfeatures);
    memcpy(x, given->x, given->tokens * bytes_of_row);
    memcpy(x + node * width, s->features + by * width, bytes_of_row);
}

/* An input of the domain; models of graphs get the graph of the data. */
static bool draw_input(searcher *s, bool climb, input *in, size_t *near, const double **numbers)
{
    const model *const m = s->c->model;
    const bool ids = m->ids && s->d.kind != BALL, edit = s->d.kind == EDITS;
    *near = s->d.kind != BALL ? 0 : climb ? s->worst_near : philox_below(&s->random, s->c->set.n);
    const input *const given = &s->c->set.list[*near];
    const size_t n = draw_tokens(s, given, climb), all = n * m->width;
    const double *const raw = propose(s, edit ? 2 : ids ? n : all, !ids && !edit, climb);
    int64_t *const id = take(s->j, n, sizeof *id);
    double *const x = take(s->j, all, sizeof *x);
    if (s->j->t.code) return false;
    *in = s->d.kind == BALL ? *given : (input){.tokens = n, .edges = given->edges};
    for (size_t i = 0; ids && i < n; i++)
        id[i] = (int64_t)pick(raw[i], m[1].vocab < m[0].vocab ? m[1].vocab : m[0].vocab);
    if (edit) draw_edit(s, raw, given, x);
    if (!ids && !edit) draw_rows(s, raw, n, m->width, x);
    if (ids)
        in->ids = id;
    else if (s->d.kind == BALL)
        in->shift = x;
    else
        in->x = x;
    *numbers = raw;
    return true;
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
static bool one_try(searcher *s, const wanted *w, figures *all, bool climb, const figures *base)
{
    job *const j = s->j;
    const model *const m = s->c->model;
    input in;
    size_t near = 0;
    const double *numbers = NULL;
    figures *const one = figures_new(j, m->nlayers);
    const bool good = one && draw_input(s, climb, &in, &near, &numbers) &&
                      compare(j, &m[0], &m[1], &in, w, one, NULL, BITS);
    if (good) {
        figures_join(all, one, BITS);
        if (middle(one->v + DIFFERENCE) > s->worst_found) {
            s->worst = in;
            s->worst_numbers = numbers;
            s->worst_near = near;
            s->worst_found = middle(one->v + DIFFERENCE);
        }
        if (one->changed > s->most_changed) s->most_changed = one->changed;
        if (one->changed > base->changed) s->edited += one->changed - base->changed;
    }
    figures_free(one);
    return good;
}

static size_t rows_of_set(const certificate *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->set.n; i++) n += c->model[0].pool ? 1 : c->set.list[i].tokens;
    return n;
}

static void judge(job *j, const searcher *s, const claim *t, const figures *all, size_t tries)
{
    if (t->kind->how == ROWS_SEARCHED) { /* a share of rows, or of pairs of an edit and a node */
        const bool edits = s->d.kind == EDITS;
        const double n = (double)rows_of_set(s->c), of = edits ? n * n * (double)s->nfeatures : n;
        const double seen = (double)(edits ? s->edited : s->most_changed);
        state(j, seen / of > t->bound ? REFUTED : NOT_REFUTED, t->what,
              "%.0f rows have another largest entry%s, in %zu tries", seen, edits ? "" : " at once",
              tries);
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
          middle(x), refuted ? ", above" : "; the bound is", t->bound, tries);
    arb_clear(bound);
}

/* All claims on the domain of claim `first`, with one search. */
static void search_one(job *j, const certificate *c, size_t first, domain d, wanted w,
                       const figures *base, size_t evaluated, bool *done)
{
    searcher s = {.j = j, .c = c, .d = d, .random = philox_at(j->o->seed, 1 + first)};
    const claim *const list = c->claims[THEOREMS];
    const input *const given = &c->set.list[0];
    const double work = work_of(&c->model[0], given) + work_of(&c->model[1], given);
    const double few = (double)j->o->tries * fmin(1, BIG_WORK / work);
    const size_t most = few < 2 && j->o->tries > 2 ? 2 : (size_t)few;
    figures *const all = figures_new(j, c->model[0].nlayers);
    size_t tries = 0;
    if (!all || (d.kind == EDITS && !find_features(&s, (size_t)fmin(d.a, 1e9)))) return;
    s.worst_found = -1;
    w.of[RATIO] = w.of[WITHOUT] = false; /* no theorem about a domain is about them */
    if (holds_given(c, &d)) {
        figures_join(all, base, BITS);
        s.most_changed = base->changed;
        tries = evaluated;
    }
    j->work_all += work * (double)most;
    bool good = true;
    for (size_t t = 0; good && t < most; t++, tries++)
        good = one_try(&s, &w, all, s.worst_numbers && t % 2, base);
    for (size_t i = first; good && i < c->n[THEOREMS]; i++) {
        const domain own = domain_of(c, &list[i]);
        const checking how = list[i].kind->how;
        if (done[i] || (how != SEARCHED && how != ROWS_SEARCHED) || !same_domain(&own, &d))
            continue;
        judge(j, &s, &list[i], all, tries);
        done[i] = true;
    }
    figures_free(all);
}

/* ---- lower bounds ---------------------------------------------------------------------------- */

/* one_layer.least is proven at inputs of two tokens, each with all its entries equal. So the cut must
 * be that far off already there. The square of both numbers is covered by boxes: if in every box the
 * difference, with the whole box as a ball, stays below the bound, it is refuted; if at the middle of
 * one it reaches the bound, it is not. A box that does not decide is cut into four. */
typedef struct box {
    double x, y, half;
} box;

static bool difference_on(job *j, const certificate *c, box b, arb_t out)
{
    static const wanted outputs = {{false}};
    const size_t width = c->model[0].width;
    double *const x = take(j, 2 * width, sizeof *x);
    figures *const f = x ? figures_new(j, c->model[0].nlayers) : NULL;
    if (!f) return false;
    for (size_t k = 0; k < 2 * width; k++) x[k] = k < width ? b.x : b.y;
    const input in = {.tokens = 2, .x = x, .radius = b.half * (1 + 1e-12)};
    const bool good = compare(j, &c->model[0], &c->model[1], &in, &outputs, f, NULL, BITS);
    if (good) arb_set(out, f->v + DIFFERENCE);
    figures_free(f);
    return good;
}

/* Whether the difference is below the bound everywhere; `most`: the largest at a point. */
static bool below_everywhere(job *j, const certificate *c, domain d, const arb_t bound, arb_t most)
{
    box *const list = take(j, MOST_BOXES + 4, sizeof *list);
    size_t n = 1;
    bool below = list != NULL;
    arb_t x;
    if (list) list[0] = (box){0, 0, d.a};
    arb_init(x);
    for (size_t next = 0; below && next < n; next++) {
        const box b = list[next];
        if (fabs(b.x - b.y) - 2 * b.half > d.b) continue; /* too far apart: not in the domain */
        if (fabs(b.x - b.y) <= d.b) {
            below = difference_on(j, c, (box){b.x, b.y, 0}, x);
            if (below && arb_is_finite(x)) arb_max(most, most, x, BITS);
        }
        below = below && !arb_ge(most, bound) && difference_on(j, c, b, x);
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
    const domain d = domain_of(c, t);
    const model *const f = &c->model[0], *const g = &c->model[1];
    if (d.kind != BOX || f->pattern == GRAPH || g->pattern == GRAPH || f->context == 1 ||
        g->context == 1) {
        state(j, NOT_CHECKED, t->what, "its domain is not a box of vectors");
        return;
    }
    arb_ptr most = _arb_vec_init(2), bound = most + 1;
    arb_set_d(bound, t->bound);
    const bool refuted = below_everywhere(j, c, d, bound, most);
    state(j, refuted ? REFUTED : NOT_REFUTED, t->what,
          "the cut's own error reaches %.9g at two tokens with equal entries%s", middle(most),
          refuted ? ", and is nowhere above it" : "");
    _arb_vec_clear(most, 2);
}

/* ---- all of them ----------------------------------------------------------------------------- */

void search_domains(job *j, const certificate *c, const wanted *w, const figures *base,
                    size_t evaluated)
{
    bool *const done = take(j, c->n[THEOREMS] + 1, sizeof *done);
    for (size_t i = 0; done && i < c->n[THEOREMS] && !j->t.code; i++) {
        const claim *const t = &c->claims[THEOREMS][i];
        const checking how = t->kind->how;
        const domain d = domain_of(c, t);
        if (done[i] || (how != SEARCHED && how != ROWS_SEARCHED && how != ONE_LAYER)) continue;
        if (how == ONE_LAYER)
            check_one_layer(j, c, t);
        else if (d.kind == UNKNOWN)
            state(j, NOT_CHECKED, t->what, "its domain, \"%.160s\", is not one of this kind",
                  t->domain);
        else if (d.kind == BALL && c->model[0].width != c->model[1].width)
            state(j, NOT_CHECKED, t->what, "the models have embeddings of other widths");
        else if (j->o->tries == 0)
            state(j, NOT_CHECKED, t->what, "no tries were asked for");
        else
            search_one(j, c, i, d, *w, base, evaluated, done);
        done[i] = true;
    }
}
