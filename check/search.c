/* search.c - theorems about all inputs of a domain: this program can not confirm them, but looks for
 * an input that refutes them. Inputs are drawn at random, at corners of the domain, and near the
 * worst one so far. What is found is found in balls: a refutation is a proof. */
#include "check.h"

enum { LONGEST = 16 };
#define BIG_WORK 1e8         /* multiply-adds of both models: from there on there are fewer tries */
#define INSIDE   (1 - 1e-12) /* so that rounding does not leave the domain */

typedef enum domain_kind {
    UNKNOWN,
    SEQUENCES, /* ids, up to so many tokens (0: any number) */
    UNSHARED,  /* ids of tokens that do not share a row in g */
    LENGTHS,   /* rows up to a euclidean length */
    BOX,       /* entries up to a size, tokens up to a number apart */
    BALL,      /* rows near the given ones, in the euclidean norm */
    CUBE,      /* in every entry */
    EDITS,     /* features of one node replaced by those of another */
    ALL        /* rows of the model */
} domain_kind;

typedef struct point { /* an input of the domain */
    input in;
    const double *raw; /* the numbers in [-1, 1] that it is made of */
    size_t near;       /* which given one it is near */
    double found;
} point;

typedef struct search {
    const certificate *c;
    domain_kind kind;
    bool ids, near;   /* of ids; near the given inputs */
    double number[2]; /* of its words */
    philox random;
    point worst;       /* so far; its raw is NULL: none */
    size_t *own, nown; /* the tokens that may occur */
} search;

/* ---- which inputs a theorem is about --------------------------------------------------------- */

/* Whether the text is the pattern, in which # stands for a number, @ for the given words. */
static bool match(const char *text, const char *pattern, const char *given, double *out)
{
    for (; *pattern; pattern++) {
        const bool at = *pattern == '@';
        const size_t n = at ? strlen(given) : 1;
        char *end = (char *)(uintptr_t)text;
        if (*pattern == '#')
            *out++ = strtod(text, &end);
        else if (strncmp(text, at ? given : pattern, n) == 0)
            end += n;
        if (end == text) return false;
        text = end;
    }
    return !*text;
}

/* docs/format.md, "domain of a theorem". */
static domain_kind read_domain(const char *text, const char *given, double *number)
{
#define NEAR(rows, norm) "every input whose " rows " are each within # in " norm " of those of @"
#define EMBEDDED         "rows after the embedding (before positions)"
    static const struct {
        domain_kind kind;
        const char *pattern;
    } list[] = {
        {ALL, "all inputs"},
        {UNSHARED, "all inputs without the # shared tokens"},
        {SEQUENCES, "all token sequences"},
        {SEQUENCES, "all token sequences of up to # tokens"},
        {LENGTHS, "all inputs with rows of euclidean length up to #"},
        {LENGTHS, "every input whose rows have a euclidean length of at most #"},
        {BOX, "all inputs with entries up to #, tokens up to # apart"},
        {BALL, NEAR("feature rows", "the euclidean norm")},
        {CUBE, NEAR("feature rows", "every entry")},
        {BALL, NEAR(EMBEDDED, "the euclidean norm")},
        {CUBE, NEAR(EMBEDDED, "every entry")},
        {EDITS, "@, and with the features of any one node replaced by any of its # different rows "
                "(# edits)"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (match(text, list[i].pattern, given, number)) return list[i].kind;
    return UNKNOWN;
}

/* NULL: why it can not be searched is in *why. */
static search begin_search(const certificate *c, const char *domain, const char **why)
{
    const model *const f = c->model, *const g = f + 1;
    search s = {.c = c, .random = {.seed = now->o->seed, .stream = 1}, .worst.found = -1};
    s.kind = read_domain(domain, c->domain, s.number);
    s.near = s.kind == BALL || s.kind == CUBE;
    if (s.kind == ALL && f->vocab) s.kind = SEQUENCES;
    s.ids = s.kind == SEQUENCES || s.kind == UNSHARED;
    s.own = whole_numbers(f->vocab < g->vocab ? f->vocab : g->vocab);
    for (size_t id = 0; s.ids && id < f->vocab && id < g->vocab; id++)
        if (s.kind == SEQUENCES || !token_shares(g, id)) s.own[s.nown++] = id;
    const bool fits = s.near || s.ids == (f->vocab > 0);
    *why = s.kind == UNKNOWN || !fits || (s.ids && !s.nown) || (s.kind == EDITS && c->set.n != 1) ||
                   (s.kind == UNSHARED && s.number[0] != (double)g->shared)
               ? words("its domain, \"%.160s\", is not one that is searched", domain)
           : f->width != g->width && !s.ids ? "the models have other widths"
           : now->o->tries == 0             ? "no tries were asked for"
                                            : NULL;
    if (s.kind == UNSHARED) s.number[0] = 0;
    return s;
}

/* ---- drawing inputs -------------------------------------------------------------------------- */

/* Numbers in [-1, 1] that become an input: fresh ones, of vectors half of them at corners, or those of
 * the worst input so far with a tenth of them changed. */
static double *propose(search *s, size_t count, bool climb)
{
    double *const x = take(count, sizeof *x);
    const bool corners = !s->ids && s->kind != EDITS && philox_u64(&s->random) % 2;
    for (size_t i = 0; i < count; i++) {
        const double u = 2 * philox_uniform(&s->random) - 1;
        const bool keep = climb && philox_below(&s->random, 10) > 0;
        x[i] = keep ? s->worst.raw[i] : corners ? copysign(1, u) : u;
    }
    return x;
}

/* [-1, 1] to 0 ... n - 1 */
static size_t pick(double u, size_t n)
{
    const size_t at = (size_t)((u + 1) / 2 * (double)n);
    return at < n ? at : n - 1;
}

/* How many tokens an input has: those of the given one, or as many as both models take. */
static size_t draw_tokens(search *s, const input *given, bool climb)
{
    size_t most = LONGEST;
    if (s->near || s->kind == EDITS || given->edges) return given->tokens;
    if (s->ids && s->number[0] > 0) most = (size_t)fmin(LONGEST, s->number[0]);
    for (int i = 0; i < 2; i++)
        if (s->c->model[i].context && most > s->c->model[i].context) most = s->c->model[i].context;
    return climb ? s->worst.in.tokens : 1 + philox_below(&s->random, most);
}

/* Rows of vectors: in a box around a center of each column, of a length, or of any size. */
static void place_rows(search *s, double *x, size_t n, size_t width)
{
    const double *const a = s->number;
    const double half = s->kind == BOX ? fmin(a[1] / 2, a[0]) : 0, room = a[0] - half;
    const double size = s->kind == CUBE  ? a[0] * INSIDE
                        : s->kind == BOX ? half * INSIDE
                        : s->kind == ALL ? pow(10, 2 * philox_uniform(&s->random) - 1)
                                         : 1;
    for (size_t k = 0; k < width; k++) {
        const double center = s->kind != BOX ? 0 : philox_u64(&s->random) % 2 ? room : -room;
        for (size_t i = k; i < n * width; i += width) x[i] = center + size * x[i];
    }
    for (size_t i = 0; (s->kind == LENGTHS || s->kind == BALL) && i < n; i++) {
        double sum = 0;
        for (size_t k = 0; k < width; k++) sum += x[i * width + k] * x[i * width + k];
        for (size_t k = 0; sum > 0 && k < width; k++) x[i * width + k] *= a[0] * INSIDE / sqrt(sum);
    }
}

static point draw_input(search *s, bool climb)
{
    const size_t near = !s->near ? 0
                        : climb  ? s->worst.near
                                 : philox_below(&s->random, s->c->set.n);
    const input *const given = &s->c->set.list[near];
    const size_t n = draw_tokens(s, given, climb), width = s->c->model->width;
    const size_t count = s->ids ? n : n * width;
    double *const raw = propose(s, count, climb), *const x = take(count, sizeof *x);
    input in = *given;
    in.tokens = n;
    *(s->near ? &in.shift : &in.x) = x;
    memcpy(x, s->kind == EDITS ? given->x : raw, count * sizeof *x);
    if (s->kind == EDITS) /* one node gets the row of another */
        memcpy(x + width * pick(raw[0], n), given->x + width * pick(raw[count - 1], n),
               width * sizeof *x);
    else if (s->ids)
        for (size_t i = 0; i < n; i++) x[i] = (double)s->own[pick(raw[i], s->nown)];
    else
        place_rows(s, x, n, width);
    return (point){in, raw, near, 0};
}

/* ---- the search ------------------------------------------------------------------------------ */

/* One try; what it finds is joined to `all`: of rows with another largest entry the most at once. */
static void one_try(search *s, unsigned wanted, interval *all, bool climb)
{
    const size_t count = count_figures(s->c->model);
    point p = draw_input(s, climb);
    interval *const one = new_figures(count);
    chunk *const mark = now->memory;
    balls y[2];
    compare(s->c->model, &p.in, wanted, one, y);
    release(mark, NULL, NULL);
    for (size_t k = 0; k < count; k++)
        if (k != CHANGED) join_figure(all, k, one[k]);
    all[CHANGED].low = fmax(all[CHANGED].low, one[CHANGED].low);
    p.found = one[DIFFERENCE].low;
    if (p.found > s->worst.found) s->worst = p;
}

const char *search_domain(const certificate *c, const char *domain, unsigned wanted,
                          const interval *given, size_t evaluated, interval *all, size_t *tries)
{
    const model *const m = c->model;
    const double work = work_of(&m[0], c->set.list) + work_of(&m[1], c->set.list);
    const double few = (double)now->o->tries * fmin(1, BIG_WORK / work);
    const size_t most = few < 2 && now->o->tries > 2 ? 2 : (size_t)few;
    const char *why;
    search s = begin_search(c, domain, &why);
    if (why) return why;
    bool inside = s.kind != LENGTHS && s.kind != BOX && s.kind != UNSHARED; /* the given inputs */
    for (size_t i = 0; s.ids && s.number[0] > 0 && i < c->set.n; i++)
        inside = inside && (double)c->set.list[i].tokens <= s.number[0];
    for (size_t p = 0; inside && p < count_figures(m); p++) join_figure(all, p, given[p]);
    if (inside) *tries = evaluated;
    now->work_all += work * (double)most;
    for (size_t t = 0; t < most; t++, ++*tries)
        one_try(&s, wanted & ~(BIT(RATIO) | BIT(OUTPUTS)), all,
                s.worst.raw && t % 2 && s.kind != EDITS);
    return NULL;
}
