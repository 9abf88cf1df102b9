/* width_runs.c - one run of `repro width`: a training, or a cut of a trained model that is then
 * taught. What it gives is what the command in its file gives. */
#include "study_width.h"
#include "base/json.h"
#include <pare/plan.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

const char *const role_names[RUN_ROLES] = {"mlp", "gcn", "large", "small", "cut"};

enum { CHECKPOINTS = 10 };

/* ---- recipes -------------------------------------------------------------------------------- */

/* Those of docs/train.md; the small ones without dropout and at the learning rate that the grid
 * finds. A mark is dear on a large graph. */
run_spec run_recipe(const graph_set *g, run_role role, size_t number, uint64_t seed)
{
    const bool photo = g->id == GRAPH_PHOTO, tolokers = g->id == GRAPH_TOLOKERS;
    run_spec s = {.g = g,
                  .role = role,
                  .number = number,
                  .dim = 64,
                  .layers = 4, /* Shirzad 2024, for all graphs */
                  .mark = tolokers ? 5 : 2,
                  .lr = 0.01,
                  .dropout = photo ? 0.5 : 0.3,
                  .epochs = photo ? 100 : 200,
                  .seed = seed + number,
                  .split = g->splits ? number % g->splits : number};
    if (role == RUN_MLP || role == RUN_GCN) s.mark = 5;
    if (role == RUN_SMALL) {
        s.dim = 4;
        s.dropout = 0;
        s.lr = photo ? 0.01 : 0.1;
        s.epochs = 200;
    }
    return s;
}

static pare_init_kind kind_of(run_role role)
{
    return role == RUN_MLP ? PARE_INIT_MLP : role == RUN_GCN ? PARE_INIT_GCN : PARE_INIT_GRAPH;
}

static const char *kind_word(run_role role)
{
    return role == RUN_MLP ? "mlp" : role == RUN_GCN ? "gcn" : "graph";
}

/* ---- a job ---------------------------------------------------------------------------------- */

static char *what_of(pare_arena *a, const run_spec *s)
{
    if (s->role == RUN_CUT)
        return pare_sprintf(a, "cut to %zu, taught %zu epochs, seed %llu; of [%s]", s->dim,
                            s->epochs, (unsigned long long)s->seed, s->teacher_what);
    return pare_sprintf(a,
                        "repro width 1: data %s, kind %s, dim %zu, layers %zu, lr %.17g, dropout "
                        "%.17g, epochs %zu, mark every %zu, seed %llu, split %zu",
                        s->g->sha256, kind_word(s->role), s->dim, s->layers, s->lr, s->dropout,
                        s->epochs, s->mark, (unsigned long long)s->seed, s->split);
}

/* Multiplications of an epoch, roughly: maps of nodes, pairs of edges. What a pair costs beside its
 * products is fitted to the times of D = 64 and d = 4 on Minesweeper and Photo. */
double run_cost(const run_spec *s)
{
    const double n = (double)s->g->nodes, m = (double)s->g->edges, d = (double)s->dim;
    const double maps = n * d * ((double)s->g->features + 6 * (double)s->layers * (d + 8));
    const double pairs = s->role == RUN_MLP ? 0 : (double)s->layers * m * (3 * d + 900);
    return (double)s->epochs * (maps + pairs);
}

pare_status run_job(job *out, pare_arena *a, const run_spec *s, pare_err *err)
{
    run_spec *const own = pare_alloc(a, 1, sizeof *own);
    char dim[24] = "";
    if (s->role == RUN_CUT) snprintf(dim, sizeof dim, "%zu", s->dim);
    *out = (job){.own = own,
                 .name = pare_sprintf(a, "%s-%s%s-%03zu", graph_stems[s->g->id],
                                      role_names[s->role], dim, s->number),
                 .what = what_of(a, s),
                 .cost = run_cost(s)};
    if (!own || !out->name || !out->what) return pare_no_memory(err);
    *own = *s;
    return PARE_OK;
}

/* The command that gives the same figures. */
static char *command_of(pare_arena *a, const run_spec *s)
{
    if (s->role == RUN_CUT)
        return pare_sprintf(a,
                            "pare width %s --data %s --split %zu --dim %zu --distill %zu --seed "
                            "%llu -o cut.safetensors",
                            s->teacher, s->g->path, s->split, s->dim, s->epochs,
                            (unsigned long long)s->seed);
    return pare_sprintf(
        a,
        "pare train --kind %s --data %s%s --split %zu --dim %zu --layers %zu --lr %g --dropout %g "
        "--epochs %zu --eval-every %zu --seed %llu -o model.safetensors",
        kind_word(s->role), s->g->path, graph_component(s->g->id) ? " --largest-component" : "",
        s->split, s->dim, s->layers, s->lr, s->dropout, s->epochs, s->mark,
        (unsigned long long)s->seed);
}

/* ---- training ------------------------------------------------------------------------------- */

typedef struct run {
    const run_spec *s;
    const job *j;
    pare_arena *a;
    const pare_exec *exec;
    pare_err *err;
    pare_task task;
    pare_task_facts facts;
    pare_model *m;
    pare_train_result result;
    double plain;
} run;

static pare_train_opts train_opts(const run *r, const char *checkpoint)
{
    const run_spec *const s = r->s;
    pare_train_opts o = {.steps = s->epochs,
                         .eval_every = s->mark,
                         .checkpoint_every = s->epochs / CHECKPOINTS ? s->epochs / CHECKPOINTS : 1,
                         .lr = s->lr,
                         .dropout = s->dropout,
                         .adamw = PARE_ADAMW_OPTS_DEFAULT,
                         .seed = s->seed,
                         .temperature = 1,
                         .checkpoint = checkpoint,
                         .resume = true};
    o.adamw.decay_vectors = true;
    return o;
}

/* A run that diverges before its first mark is a result too. */
static pare_status train(run *r)
{
    const run_spec *const s = r->s;
    const pare_task_graph_opts g = {.path = s->g->path,
                                    .split = s->split,
                                    .largest_component = graph_component(s->g->id),
                                    .full = s->role == RUN_MLP};
    pare_model *start = NULL;
    const char *const checkpoint = pare_sprintf(r->a, "%s.checkpoint", r->j->file_prefix);
    pare_status st = checkpoint ? PARE_OK : pare_no_memory(r->err);
    if (!st) st = pare_task_graph(&r->task, &r->facts, r->a, &g, r->err);
    const pare_init init = {.kind = kind_of(s->role),
                            .dim = s->dim,
                            .layers = s->layers,
                            .heads = 1,
                            .features = r->facts.features,
                            .outputs = r->facts.outputs,
                            .context = r->facts.tokens,
                            .pool = r->facts.pool,
                            .seed = s->seed};
    if (!st) st = pare_init_model(&start, &init, r->err);
    if (!st) {
        const pare_train_opts o = train_opts(r, checkpoint);
        st = pare_train(&r->m, &r->result, start, &r->task, &o, r->exec, r->err);
        if (st == PARE_ERR_NUMERIC) {
            r->result = (pare_train_result){.val = NAN, .test = NAN, .diverged = true};
            st = PARE_OK;
        }
    }
    pare_model_free(start);
    return st;
}

/* Kept for its cuts and its norms. */
static pare_status keep_model(run *r, cJSON *to)
{
    pare_batch b;
    pare_norms op, vec;
    const char *const path = pare_sprintf(r->a, "%s.safetensors", r->j->file_prefix);
    pare_status st = path ? PARE_OK : pare_no_memory(r->err);
    if (!st) st = pare_model_save(r->m, path, true, NULL, r->err);
    if (!st) st = r->task.batch(r->task.self, &b, r->a, 0, 0, r->err);
    if (!st) st = pare_probe_norms(&op, &vec, r->m, b.in.in, r->exec, r->err);
    if (st) return st;
    return pare_json_add_number(to, "operator_norm", op.mean) &&
                   pare_json_add_number(to, "operator_norm_sup", op.sup) &&
                   pare_json_add_number(to, "vector_norm", vec.mean) &&
                   pare_json_add_number(to, "vector_norm_sup", vec.sup)
               ? PARE_OK
               : pare_no_memory(r->err);
}

/* ---- cutting -------------------------------------------------------------------------------- */

/* *small becomes the taught model. */
static pare_status distill_student(run *r, const pare_model *teacher, pare_model **small)
{
    const run_spec *const s = r->s;
    const pare_task_graph_opts g = {
        .path = s->g->path, .split = s->split, .classes = pare_model_outputs(teacher)};
    pare_distill_opts o = PARE_DISTILL_OPTS_DEFAULT;
    o.teacher = teacher;
    o.epochs = s->epochs;
    o.seed = s->seed;
    pare_status st = pare_task_graph(&r->task, &r->facts, r->a, &g, r->err);
    if (!st) st = r->task.score(r->task.self, &r->plain, *small, PARE_PART_TEST, r->exec, r->err);
    if (!st) st = pare_width_distill(&r->m, &r->result, *small, &r->task, &o, r->exec, r->err);
    return st;
}

static pare_status cut(run *r)
{
    const run_spec *const s = r->s;
    pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
    pare_width_report report;
    pare_dataset d;
    pare_model *teacher = NULL, *small = NULL;
    const pare_exec silent = pare_exec_silent(r->exec);
    o.dim = s->dim;
    o.seed = s->seed;
    pare_status st = pare_model_load(&teacher, s->teacher, r->err);
    if (!st)
        st = pare_dataset_load(&d, r->a, teacher, s->g->path, &(pare_data_opts){.split = s->split},
                               r->err);
    if (!st) st = pare_width(&small, &report, teacher, &d.inputs, &o, &silent, r->err);
    if (!st) st = distill_student(r, teacher, &small);
    pare_model_free(small);
    pare_model_free(teacher);
    return st;
}

/* ---- what is kept --------------------------------------------------------------------------- */

static bool number(cJSON *to, const char *key, double v)
{
    return isnan(v) ? pare_json_add_null(to, key) : pare_json_add_number(to, key, v);
}

static pare_status record(const run *r, cJSON *to)
{
    const char *const command = command_of(r->a, r->s);
    const pare_train_result *const t = &r->result;
    const size_t parameters = r->m ? (size_t)pare_model_size(r->m, 1, 1).parameters : 0;
    return command && pare_json_add_string(to, "command", command) &&
                   pare_json_add_string(to, "metric", r->task.metric) &&
                   pare_json_add_u64(to, "seed", r->s->seed) &&
                   pare_json_add_size(to, "split", r->s->split) &&
                   pare_json_add_size(to, "parameters", parameters) && number(to, "val", t->val) &&
                   number(to, "test", t->test) &&
                   pare_json_add_size(to, "best_step", (size_t)t->best_step) &&
                   pare_json_add_bool(to, "diverged", t->diverged) && number(to, "plain", r->plain)
               ? PARE_OK
               : pare_no_memory(r->err);
}

/* With what killed processes have left of writing it. One that stays does no harm. */
static void drop_checkpoint(const run *r)
{
    const char *const path = pare_sprintf(r->a, "%s.checkpoint", r->j->file_prefix);
    if (!path) return;
    pare_out_sweep(path);
    unlink(path);
}

pare_status run_do(void *self, const job *j, cJSON *result, const pare_exec *exec, pare_err *err)
{
    (void)self;
    run r = {.s = j->own, .j = j, .a = pare_arena_new(), .exec = exec, .err = err, .plain = NAN};
    if (!r.a) return pare_no_memory(err);
    pare_status st = r.s->role == RUN_CUT ? cut(&r) : train(&r);
    if (!st) st = record(&r, result);
    if (!st && r.s->role == RUN_LARGE && r.m) st = keep_model(&r, result);
    if (!st && r.s->role != RUN_CUT) drop_checkpoint(&r);
    pare_model_free(r.m);
    pare_arena_free(r.a);
    return st;
}

pare_status run_read(run_result *out, const job *j, pare_err *err)
{
    const cJSON *const o = j->result;
    *out = (run_result){NAN, NAN, NAN, NAN, NAN, NAN, NAN, 0, false, NULL};
    pare_status st = pare_json_number_opt(&out->val, o, "val", err);
    if (!st) st = pare_json_number_opt(&out->test, o, "test", err);
    if (!st) st = pare_json_number_opt(&out->plain, o, "plain", err);
    if (!st) st = pare_json_number_opt(&out->norm, o, "operator_norm", err);
    if (!st) st = pare_json_number_opt(&out->norm_sup, o, "operator_norm_sup", err);
    if (!st) st = pare_json_number_opt(&out->vector, o, "vector_norm", err);
    if (!st) st = pare_json_number_opt(&out->vector_sup, o, "vector_norm_sup", err);
    if (!st) st = pare_json_size(&out->parameters, o, "parameters", err);
    if (!st) st = pare_json_bool(&out->diverged, o, "diverged", err);
    if (st) pare_err_prefix(err, j->file_prefix);
    return st;
}
