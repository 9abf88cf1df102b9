/* bench_forward.c - forward passes of the f32 engine: a graph transformer on a board, on a dense
 * web and on a graph of the user, and a small GPT (bench.h). */
#include "bench.h"

#include <math.h>
#include <string.h>

/* ---- what all passes share ----------------------------------------------------------------- */

/* Once the input is there: counts, and the model's file for the peers. */
static pare_status give_model(bench_job *j)
{
    bench_pass *s = j->state;
    s->count = pare_output_rows(s->m, &s->in) * pare_model_outputs(s->m);
    j->amount = (double)(s->in.batch * s->in.tokens);
    if (!j->peers) return PARE_OK;
    char *path = bench_path(j, "model.safetensors");
    return path ? pare_model_save(s->m, path, true, NULL, &j->c->err) : j->c->err.code;
}

static pare_status forward_reference(bench_job *j)
{
    bench_pass *s = j->state;
    s->exact = bench_alloc(j, s->count, sizeof *s->exact);
    s->out = bench_alloc(j, s->count, sizeof *s->out);
    if (!s->exact || !s->out) return j->c->err.code;
    j->result = s->out;
    j->nresult = s->count;
    j->tolerance = 1e-4; /* several layers of f32, norms between them */
    const pare_exec all = {.threads = (int)j->c->threads};
    return pare_forward_f64(s->exact, s->m, &s->in, NULL, &all, &j->c->err);
}

static pare_status forward_run(bench_job *j)
{
    bench_pass *s = j->state;
    return pare_forward_f32(s->out, s->m, &s->in, NULL, &j->exec, &j->c->err);
}

static pare_status forward_check(bench_job *j, double *error)
{
    const bench_pass *s = j->state;
    *error = bench_distance(s->out, s->exact, s->count);
    return PARE_OK;
}

static void forward_free(bench_job *j)
{
    const bench_pass *s = j->state;
    if (s) pare_model_free(s->m);
}

/* ---- graph transformers -------------------------------------------------------------------- */

/* A fresh model as `pare train` makes it: the subject of both a pass and a step. */
static bench_pass *new_graph_pass(bench_job *j, size_t dim, size_t layers, size_t features)
{
    bench_pass *const s = j->state = bench_alloc(j, 1, sizeof *s);
    const pare_init o = {.kind = PARE_INIT_GRAPH,
                         .dim = dim,
                         .layers = layers,
                         .heads = 1,
                         .features = features,
                         .outputs = 2,
                         .self_loops = true,
                         .seed = j->c->seed};
    return s && !pare_init_model(&s->m, &o, &j->c->err) ? s : NULL;
}

/* What all graphs have once s->in is set. Peers get the graph that the model attends over, with its
 * self loops. */
static pare_status finish_graph_input(bench_job *j, const char *what, size_t dim, size_t layers)
{
    const bench_pass *s = j->state;
    pare_graph g = {0};
    _Static_assert(sizeof *g.ptr == 8, "written as U64");
    pare_status st = pare_graph_complete(&g, j->arena, s->in.graph, &s->m->pattern, &j->c->err);
    if (st) return st;
    const size_t pairs = g.ptr[g.n];
    snprintf(j->shape, sizeof j->shape, "%s n=%zu pairs=%zu dim=%zu layers=%zu", what, g.n, pairs,
             dim, layers);
    j->flops = 2 * (double)pare_model_size(s->m, g.n, pairs).macs;
    st = give_model(j);
    if (!st) st = bench_give_array(j, "x", PARE_F64, g.n, s->in.width, s->in.x);
    if (!st) st = bench_give_array(j, "ptr", PARE_U64, 1, g.n + 1, g.ptr);
    if (!st) st = bench_give_array(j, "idx", PARE_U32, 1, pairs, g.idx);
    return st ? st : bench_give_case(j, "{\"kind\": \"graph\"}");
}

/* Minesweeper: p = side, dim, layers. */
pare_status bench_board_input(bench_job *j, const size_t *p)
{
    bench_pass *s = new_graph_pass(j, p[1], p[2], 7);
    char *path = bench_path(j, "board.npz");
    if (!s || !path) return j->c->err.code;
    pare_status st = pare_make_minesweeper(path, p[0], j->c->seed, true, &j->c->err);
    if (!st) st = pare_graph_load(&s->board, j->arena, path, &j->c->err);
    if (st) return st;
    const pare_graph_data *b = &s->board;
    s->in = (pare_input){.batch = 1, .tokens = b->graph.n, .width = b->features};
    s->in.x = b->x;
    s->in.graph = &b->graph;
    return finish_graph_input(j, "minesweeper", p[1], p[2]);
}

/* The graph of --graph, called by its file's name: p = dim, layers. */
pare_status bench_file_input(bench_job *j, const size_t *p)
{
    pare_graph_data *b = bench_alloc(j, 1, sizeof *b);
    if (!b) return j->c->err.code;
    const pare_status st = pare_graph_load(b, j->arena, j->graph, &j->c->err);
    if (st) return st;
    bench_pass *s = new_graph_pass(j, p[0], p[1], b->features);
    if (!s) return j->c->err.code;
    s->board = *b;
    s->in = (pare_input){.batch = 1, .tokens = b->graph.n, .width = b->features, .x = b->x};
    s->in.graph = &s->board.graph;
    const char *slash = strrchr(j->graph, '/'), *name = slash ? slash + 1 : j->graph;
    char what[32];
    snprintf(what, sizeof what, "%.*s", (int)strcspn(name, ".,\""), name);
    return finish_graph_input(j, what, p[0], p[1]);
}

/* Many edges on few nodes, and some nodes with very many, as in Tolokers: p = nodes, edges, dim,
 * layers. One end of an edge is uniform, the other leans to the first nodes (density ~ x^-1/2). */
pare_status bench_web_input(bench_job *j, const size_t *p)
{
    const size_t n = p[0], nedges = p[1], features = 10;
    bench_pass *s = new_graph_pass(j, p[2], p[3], features);
    int64_t *edges = bench_alloc(j, 2 * nedges, sizeof *edges);
    double *x = bench_alloc(j, n * features, sizeof *x);
    if (!s || !edges || !x) return j->c->err.code;
    pare_rng r = pare_rng_at(j->c->seed, 8);
    for (size_t e = 0; e < nedges; e++) {
        const double u = pare_rng_uniform(&r);
        edges[2 * e] = (int64_t)pare_rng_below(&r, n);
        edges[2 * e + 1] = (int64_t)(u * u * (double)n);
    }
    for (size_t i = 0; i < n * features; i++) x[i] = pare_rng_normal(&r);
    const pare_status st =
        pare_graph_from_edges(&s->board.graph, j->arena, n, edges, nedges, &j->c->err);
    if (st) return st;
    s->in = (pare_input){.batch = 1, .tokens = n, .width = features, .x = x};
    s->in.graph = &s->board.graph;
    return finish_graph_input(j, "web", p[2], p[3]);
}

/* ---- a GPT --------------------------------------------------------------------------------- */

/* p = batch, tokens, dim, layers, vocab; heads of 64 where they fit. */
pare_status bench_gpt_input(bench_job *j, const size_t *p)
{
    const size_t batch = p[0], tokens = p[1], heads = p[2] < 128 ? 2 : p[2] / 64;
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    o.dim = p[2];
    o.layers = p[3];
    o.heads = heads;
    o.vocab = p[4];
    o.context = tokens;
    o.seed = j->c->seed;
    o.exec = &j->exec;
    bench_pass *s = j->state = bench_alloc(j, 1, sizeof *s);
    int64_t *ids = bench_alloc(j, batch * tokens, sizeof *ids);
    if (!s || !ids || pare_random_model(&s->m, &o, &j->c->err)) return j->c->err.code;
    pare_rng r = pare_rng_at(j->c->seed, 9);
    for (size_t i = 0; i < batch * tokens; i++) ids[i] = (int64_t)pare_rng_below(&r, o.vocab);
    s->in = (pare_input){.batch = batch, .tokens = tokens, .ids = ids};
    snprintf(j->shape, sizeof j->shape, "gpt batch=%zu n=%zu dim=%zu layers=%zu vocab=%zu", batch,
             tokens, o.dim, o.layers, o.vocab);
    j->flops = 2 * (double)batch * (double)pare_model_size(s->m, tokens, 0).macs;
    pare_status st = give_model(j);
    if (!st) st = bench_give_array(j, "ids", PARE_I64, batch, tokens, ids);
    return st ? st : bench_give_case(j, "{\"kind\": \"gpt\", \"heads\": %zu}", heads);
}

#define FORWARD(input)                                                                             \
    {                                                                                              \
        input, forward_reference, NULL, forward_run, forward_check, forward_free                   \
    }
const bench_kind bench_board = FORWARD(bench_board_input);
const bench_kind bench_file = FORWARD(bench_file_input);
const bench_kind bench_web = FORWARD(bench_web_input);
const bench_kind bench_gpt = FORWARD(bench_gpt_input);
