/* depth_trained_model.c - the trained model of E8 and E9: the one that is given, or a small GPT
 * that learns to sort. */
#include "study_depth.h"
#include "base/json.h"
#include <pare/data.h>
#include <pare/train.h>
#include <string.h>

enum { LENGTH = 6, SYMBOLS = 4, COUNT = 12000, STEPS = 500 };

/* ---- a model of our own ---------------------------------------------------------------------- */

static pare_status train_job(void *self, const job *j, cJSON *result, const pare_exec *exec,
                             pare_err *err)
{
    const setting *const s = self;
    pare_arena *const a = pare_arena_new();
    const char *const path = a ? pare_sprintf(a, "%s.safetensors", j->file_prefix) : NULL;
    const pare_task_series_opts data = {.train = j->own, .batch = 64, .shares = true};
    const pare_train_opts o = {.steps = STEPS,
                               .eval_every = STEPS / 2,
                               .lr = 1e-3,
                               .last_lr = 1e-4,
                               .adamw = PARE_ADAMW_OPTS_DEFAULT,
                               .seed = s->seed,
                               .temperature = 1};
    pare_task task;
    pare_task_facts facts = {0};
    pare_train_result trained_result;
    pare_model *start = NULL, *m = NULL;
    pare_status st = path ? pare_task_series(&task, &facts, a, &data, err) : pare_no_memory(err);
    const pare_init init = {.kind = PARE_INIT_GPT,
                            .dim = 48,
                            .layers = 4,
                            .heads = 3,
                            .vocab = facts.ids,
                            .context = facts.tokens,
                            .outputs = facts.outputs,
                            .seed = s->seed};
    if (!st) st = pare_init_model(&start, &init, err);
    if (!st) st = pare_train(&m, &trained_result, start, &task, &o, exec, err);
    if (!st) st = pare_model_save(m, path, true, NULL, err);
    if (!st && !pare_json_add_string(result, "model", path)) st = pare_no_memory(err);
    pare_model_free(start);
    pare_model_free(m);
    pare_arena_free(a);
    return st;
}

static pare_status make_model(study_context *c, setting *s, pare_model **out, const char **data)
{
    pare_arena *const a = c->r->arena;
    jobs b = {0};
    pare_status st = new_jobs(c, &b, 1);
    char *const path =
        pare_sprintf(a, "%s/sort-%llu.npz", c->r->folder, (unsigned long long)s->seed);
    *data = path;
    if (!st && !path) st = pare_no_memory(c->err);
    if (!st && is_first_rank(c) && !pare_file_exists(path))
        st = pare_make_sort(path, COUNT, LENGTH, SYMBOLS, s->seed, true, c->err);
    if (!st) {
        b.n = 1;
        b.title = "train";
        b.run = train_job;
        b.self = s;
        b.job[0] = (job){.name = "sorter",
                         .cost = 1,
                         .own = path,
                         .what = pare_sprintf(a, "repro depth 1: a GPT that sorts, seed %llu",
                                              (unsigned long long)s->seed)};
        if (!b.job[0].what) st = pare_no_memory(c->err);
    }
    st = do_jobs(c, &b, st);
    const char *const model = st ? NULL : pare_sprintf(a, "%s.safetensors", b.job[0].file_prefix);
    if (!st && !model) st = pare_no_memory(c->err);
    if (!st) st = pare_model_load(out, model, c->err);
    jobs_close(&b);
    return st;
}

/* ---- the one that is given ------------------------------------------------------------------- */

/* Windows [n, T + 1] that an .npz of a model brings along under "val". */
static pare_status own_windows(pare_dataset *out, pare_arena *a, const char *path, bool *found,
                               pare_err *err)
{
    pare_npz *z = NULL;
    pare_array val = {0};
    *found = false;
    if (strlen(path) < 4 || strcmp(path + strlen(path) - 4, ".npz") != 0) return PARE_OK;
    pare_status st = pare_npz_open(&z, a, path, err);
    *found = !st && pare_npz_has(z, "val");
    if (*found) st = pare_npz_get(&val, z, "val", err);
    pare_npz_close(z);
    if (st || !*found) return st;
    if (val.ndim != 2 || val.dtype != PARE_I64 || val.shape[1] < 2)
        return pare_fail(err, PARE_ERR_INPUT, "%s: val: windows of ids [n, T + 1] are needed",
                         path);
    const size_t n = val.shape[0], width = val.shape[1];
    pare_input *const in = pare_alloc(a, n ? n : 1, sizeof *in);
    const int64_t **const target = pare_alloc(a, n ? n : 1, sizeof *target);
    if (!in || !target) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const int64_t *const row = (const int64_t *)val.data + i * width;
        in[i] = (pare_input){.batch = 1, .tokens = width - 1, .ids = row, .target = row + 1};
        target[i] = row + 1;
    }
    *out = (pare_dataset){.task = PARE_TASK_TEXT, .inputs = {n, in}, .target = target};
    return PARE_OK;
}

static pare_status given_model(study_context *c, setting *s, pare_model **out, const char **data)
{
    const study_opts *const o = c->o;
    pare_dataset *const set = pare_alloc(c->r->arena, 1, sizeof *set);
    bool own = false;
    pare_status st = set ? pare_model_load(out, o->model, c->err) : pare_no_memory(c->err);
    if (!st && o->ndata > 1)
        return pare_fail(c->err, PARE_ERR_USAGE, "one --data is for the model, not %zu", o->ndata);
    *data = o->ndata ? o->data[0] : NULL;
    if (!st && !*data) st = own_windows(set, c->r->arena, o->model, &own, c->err);
    if (!st && !*data && !own)
        return pare_fail(c->err, PARE_ERR_USAGE, "%s: --data says what to look at it on", o->model);
    s->data = own ? set : NULL;
    s->tiny = own && (*out)->nblocks == 6 && (*out)->embedding.vocab == 95;
    return st;
}

pare_status depth_model(study_context *c, setting *s, pare_model **out)
{
    const char *data = NULL;
    char hex[PARE_SHA256_HEX] = "";
    pare_dataset *const set = pare_alloc(c->r->arena, 1, sizeof *set);
    pare_status st = !set          ? pare_no_memory(c->err)
                     : c->o->model ? given_model(c, s, out, &data)
                                   : make_model(c, s, out, &data);
    if (!st && data) {
        st = pare_dataset_load(set, c->r->arena, *out, data, NULL, c->err);
        s->data = set;
    }
    if (!st && s->data->inputs.n == 0)
        st = pare_fail(c->err, PARE_ERR_INPUT, "%s: no input in it suits the model", data);
    if (!st) st = pare_model_sha256(hex, *out, c->err);
    s->trained = *out;
    s->trained_name = pare_sprintf(c->r->arena, "%s on %s", hex, data ? data : "its own windows");
    return st ? st : s->trained_name ? PARE_OK : pare_no_memory(c->err);
}
