/* new_input_games.h - do statements about new inputs hold as often as they say?
 *
 * Many data sets are drawn from one source, each is cut by the command in every way that writes
 * such a statement, and each certificate is held against the source: one fresh draw against
 * `new_input.outputs`, a large sample against `new_inputs.share`. The ways in which the held-out
 * inputs decide what is written (--max-error, with a size or searching for one) must write none. */
#ifndef CLI_NEW_INPUT_GAMES_H
#define CLI_NEW_INPUT_GAMES_H
#include <claims.h>
#include <command.h>
#include "cert/conformal.h"

enum { GAME_TOKENS = 5, GAME_VOCAB = 8, GAME_LEFT_OUT = 3 };

typedef enum game_model { GAME_GPT, GAME_BERT, GAME_GRAPH, GAME_MODELS } game_model;

typedef struct game_way {
    const char *name;
    game_model model;
    const char *line; /* without model, files and --max-error */
    bool heldout;     /* data from a file of their own */
    int like;         /* withheld: with --max-error, by what this way proves; -1: statements */
} game_way;

static const game_way game_ways[] = {
    {"depth, last quarter", GAME_GPT, "depth --kind affmix --layers 0", false, -1},
    {"depth --heldout", GAME_BERT, "depth --kind affmix --layers 0", true, -1},
    {"depth, nothing fitted", GAME_BERT, "depth --kind uniform --layers 0", false, -1},
    {"width of a text", GAME_GPT, "width --keep 0.8", false, -1},
    {"width of a graph --heldout", GAME_GRAPH, "width --method lowrank --dim 3", true, -1},
    {"depth --layers --max-error", GAME_GPT, "depth --kind affmix --layers 0", false, 0},
    {"depth --max-error", GAME_GPT, "depth --kind affmix", false, 0},
    {"depth --heldout --max-error", GAME_BERT, "depth --kind affmix --layers 0", true, 1},
    {"width --keep --max-error", GAME_GPT, "width --keep 0.8", false, 3},
    {"graph --dim --heldout --max-error", GAME_GRAPH, "width --method lowrank --dim 3", true, 4},
    {"graph --heldout --max-error", GAME_GRAPH, "width --method auto", true, 4},
};
enum { GAME_WAYS = sizeof game_ways / sizeof *game_ways };

/* What is counted of one way. */
typedef struct game_tally {
    size_t written, stated; /* certificates; of these with a statement about new inputs */
    size_t claims[GAME_LEFT_OUT], above[GAME_LEFT_OUT], shares[GAME_LEFT_OUT], wrong[GAME_LEFT_OUT];
    double most[GAME_LEFT_OUT]; /* claimed probability of being above, largest */
    double *proven;
} game_tally;

typedef struct games {
    char dir[200];
    pare_arena *a;
    size_t sample, boards; /* fresh draws: of ids, of graphs */
    pare_model *f[GAME_MODELS];
    pare_inputs fresh[GAME_MODELS];
    double *outputs[GAME_MODELS]; /* of f on the fresh draws, one after another */
    pare_err err;
} games;

/* ---- the source ---------------------------------------------------------------------------------
 */

static inline size_t game_outputs(const games *g, const pare_model *m, const pare_inputs *set)
{
    size_t n = 0;
    (void)g;
    for (size_t i = 0; i < set->n; i++)
        n += pare_output_rows(m, &set->in[i]) * pare_model_outputs(m);
    return n;
}

static inline void game_run(games *g, double *y, const pare_model *m, const pare_inputs *set)
{
    for (size_t i = 0; i < set->n; i++) {
        assert_ok(pare_forward_f64(y, m, &set->in[i], NULL, NULL, &g->err), &g->err);
        y += pare_output_rows(m, &set->in[i]) * pare_model_outputs(m);
    }
}

static inline void game_ids(games *g, game_model which, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 77);
    int64_t *const ids = pare_alloc(g->a, g->sample * GAME_TOKENS, sizeof *ids);
    pare_input *const in = pare_alloc(g->a, 1, sizeof *in);
    assert_true(ids && in);
    for (size_t i = 0; i < g->sample * GAME_TOKENS; i++)
        ids[i] = (int64_t)pare_rng_below(&r, GAME_VOCAB);
    *in = (pare_input){.batch = g->sample, .tokens = GAME_TOKENS, .ids = ids};
    g->fresh[which] = (pare_inputs){1, in};
}

static inline void game_boards(games *g, uint64_t seed)
{
    char path[300];
    pare_input *const in = pare_alloc(g->a, g->boards, sizeof *in);
    assert_non_null(in);
    for (size_t i = 0; i < g->boards; i++) {
        pare_dataset d;
        assert_ok(
            pare_make_minesweeper(test_path(path, g->dir, "fresh.npz"), 3, seed + i, true, &g->err),
            &g->err);
        assert_ok(pare_dataset_load(&d, g->a, g->f[GAME_GRAPH], path, NULL, &g->err), &g->err);
        in[i] = d.inputs.in[0];
    }
    g->fresh[GAME_GRAPH] = (pare_inputs){g->boards, in};
}

static inline void games_open(games *g, size_t sample, size_t boards)
{
    static const pare_random_kind kinds[] = {PARE_RANDOM_GPT, PARE_RANDOM_BERT, PARE_RANDOM_GRAPH};
    static const char *const names[] = {"gpt", "bert", "graph"};
    *g = (games){.a = pare_arena_new(), .sample = sample, .boards = boards};
    test_mkdir(g->dir);
    for (int k = 0; k < GAME_MODELS; k++) {
        char path[300];
        pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
        o.kind = kinds[k];
        o.dim = 4, o.heads = k == GAME_GRAPH ? 1 : 2, o.layers = 1, o.ffn = 4;
        o.vocab = GAME_VOCAB, o.context = GAME_TOKENS, o.seed = 3;
        assert_ok(pare_random_model(&g->f[k], &o, &g->err), &g->err);
        assert_ok(pare_model_save(g->f[k], test_path(path, g->dir, names[k]), false, NULL, &g->err),
                  &g->err);
        if (k == GAME_GRAPH)
            game_boards(g, 1u << 30);
        else
            game_ids(g, (game_model)k, 1u << 30);
        g->outputs[k] = pare_alloc(g->a, game_outputs(g, g->f[k], &g->fresh[k]), sizeof(double));
        assert_non_null(g->outputs[k]);
        game_run(g, g->outputs[k], g->f[k], &g->fresh[k]);
    }
}

static inline void games_close(games *g)
{
    for (int k = 0; k < GAME_MODELS; k++) pare_model_free(g->f[k]);
    pare_arena_free(g->a);
    test_rmdir(g->dir);
}

/* The files of data set number `set`: three of ids, two boards. */
static inline void game_draw(games *g, uint64_t set)
{
    char path[300];
    static const char *const names[] = {"gpt.npy", "bert.npy", "bert_held.npy"};
    static const size_t count[] = {32, 40, 25};
    for (size_t i = 0; i < 3; i++)
        assert_ok(pare_make_random_ids(test_path(path, g->dir, names[i]), count[i], GAME_TOKENS,
                                       GAME_VOCAB, 10 * set + i, true, &g->err),
                  &g->err);
    for (size_t i = 0; i < 2; i++)
        assert_ok(pare_make_minesweeper(test_path(path, g->dir, i ? "graph_held.npz" : "graph.npz"),
                                        3, 10 * set + 5 + i, true, &g->err),
                  &g->err);
}

/* ---- one cut ------------------------------------------------------------------------------------
 */

/* False: nothing was written (exit 3 with --max-error; else the method does not take the data). */
static inline bool game_cut(games *g, const game_way *w, double max_error, pare_cert **cert)
{
    static const char *const models[] = {"gpt", "bert", "graph"};
    char line[500], promise[60] = "", held[60] = "", path[300];
    const char *const m = models[w->model], *const ext = w->model == GAME_GRAPH ? "npz" : "npy";
    if (w->like >= 0) snprintf(promise, sizeof promise, " --max-error %.17g", max_error);
    if (w->heldout) snprintf(held, sizeof held, " --heldout %s_held.%s", m, ext);
    snprintf(line, sizeof line, "%s %s --data %s.%s%s%s -f -o out", w->line, m, m, ext, held,
             promise);
    remove(test_path(path, g->dir, "out.cert.json"));
    const int code = command_run(g->dir, line);
    if (code == 3 && w->like >= 0) return false;
    if (code == 2 && w->model == GAME_GRAPH) return false; /* a board whose rows are all alike */
    if (code != 0) {
        size_t bytes;
        fail_msg("pare %s: exit %d: %s", line, code,
                 (const char *)test_read_file(test_path(path, g->dir, "stderr.txt"), &bytes));
    }
    assert_ok(pare_cert_read(cert, g->a, path, &g->err), &g->err);
    return true;
}

/* Errors of the cut on every fresh draw. */
static inline double *game_errors(games *g, game_model which, size_t *n)
{
    char path[300];
    pare_model *small = NULL;
    const pare_inputs *const set = &g->fresh[which];
    const size_t all = game_outputs(g, g->f[which], set);
    double *const y = pare_alloc(g->a, all, sizeof *y);
    *n = which == GAME_GRAPH ? g->boards : g->sample;
    double *const e = pare_alloc(g->a, *n, sizeof *e);
    assert_true(y && e);
    assert_ok(pare_model_load(&small, test_path(path, g->dir, "out"), &g->err), &g->err);
    game_run(g, y, small, set);
    pare_model_free(small);
    for (size_t i = 0; i < *n; i++) e[i] = 0;
    for (size_t i = 0; i < all; i++) {
        const size_t draw = i / (all / *n); /* all draws have as many outputs */
        e[draw] = fmax(e[draw], fabs(y[i] - g->outputs[which][i]));
    }
    return e;
}

static inline void game_hold(games *g, game_tally *t, const pare_cert *c, game_model which,
                             size_t set)
{
    size_t n, k = 0;
    const double *const e = game_errors(g, which, &n);
    for (size_t i = 0; i < c->nclaims; i++) {
        const pare_claim *const q = &c->claims[i];
        if (q->kind != PARE_NEW_INPUT_OUTPUTS) continue;
        const pare_claim *const share = claim_at(c, PARE_NEW_INPUTS_SHARE, k);
        size_t above = 0;
        assert_true(k < GAME_LEFT_OUT && share && share->p[1] == q->p[1]);
        for (size_t d = 0; d < n; d++) above += e[d] > q->value;
        t->claims[k]++;
        t->above[k] += e[set % n] > q->value;
        t->most[k] = fmax(t->most[k], 1 - q->probability);
        /* Three deviations of the sample: what is counted as wrong is wrong. */
        const double p = share->value, dev = sqrt(p * (1 - p) / (double)n);
        t->shares[k]++;
        t->wrong[k] += (double)above / (double)n > p + 3 * dev;
        k++;
    }
}

/* ---- all of them --------------------------------------------------------------------------------
 */

/* P( at least `seen` of n, each with probability p ) */
static inline double game_tail(size_t n, size_t seen, double p)
{
    return seen == 0 ? 1 : fmax(0, 1 - pare_binomial_tail(n, seen - 1, p).v);
}

static inline int game_rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What a fifth of the data sets keeps. */
static inline double game_promise(const game_tally *t)
{
    assert_true(t->written > 4);
    qsort(t->proven, t->written, sizeof *t->proven, game_rising);
    return t->proven[t->written / 5];
}

static inline size_t game_refuted(const game_way *w, const game_tally *t, size_t sets, double level)
{
    size_t refuted = 0;
    print_message("%-34s %4zu written of %zu, %zu with statements\n", w->name, t->written, sets,
                  t->stated);
    for (size_t k = 0; k < GAME_LEFT_OUT && t->claims[k]; k++) {
        const double one = game_tail(t->claims[k], t->above[k], t->most[k]);
        const double all = game_tail(t->shares[k], t->wrong[k], 1 - PARE_CONFIDENCE);
        print_message("    a new draw was above %zu of %zu times, %.1f claimed (P %.2g); shares "
                      "wrong %zu of %zu times, %.1f claimed (P %.2g)\n",
                      t->above[k], t->claims[k], t->most[k] * (double)t->claims[k], one,
                      t->wrong[k], t->shares[k], (1 - PARE_CONFIDENCE) * (double)t->shares[k], all);
        refuted += (size_t)(one < level) + (size_t)(all < level);
    }
    return refuted;
}

static inline void games_play(size_t sets, size_t sample, size_t boards, double level)
{
    games g;
    game_tally t[GAME_WAYS] = {0};
    size_t refuted = 0, stated = 0;
    games_open(&g, sample, boards);
    for (size_t w = 0; w < GAME_WAYS; w++) {
        t[w].proven = pare_alloc(g.a, sets, sizeof(double));
        assert_non_null(t[w].proven);
    }
    for (int promise = 0; promise < 2; promise++)
        for (size_t set = 0; set < sets; set++) {
            game_draw(&g, set);
            for (size_t w = 0; w < GAME_WAYS; w++) {
                const game_way *const way = &game_ways[w];
                const pare_mark mark = pare_arena_mark(g.a);
                pare_cert *cert = NULL;
                if ((way->like >= 0) != (promise == 1)) continue;
                const double most = promise ? game_promise(&t[way->like]) : INFINITY;
                if (game_cut(&g, way, most, &cert)) {
                    t[w].proven[t[w].written++] = cert->proven;
                    t[w].stated += pare_cert_find(cert, PARE_NEW_INPUT_OUTPUTS) ||
                                   pare_cert_find(cert, PARE_NEW_INPUTS_SHARE);
                    game_hold(&g, &t[w], cert, way->model, set);
                }
                pare_arena_reset(g.a, mark);
            }
        }
    for (size_t w = 0; w < GAME_WAYS; w++) {
        refuted += game_refuted(&game_ways[w], &t[w], sets, level);
        if (game_ways[w].like >= 0) stated += t[w].stated;
        assert_true(t[w].written > 0);
        if (game_ways[w].like < 0) assert_true(10 * t[w].stated >= 9 * sets);
    }
    games_close(&g);
    if (refuted) fail_msg("%zu statements are made more often than they are true", refuted);
    if (stated) fail_msg("%zu statements although the held-out inputs decided", stated);
}
#endif
