/* replay.c - run the plan of a length certificate once more and keep the numbers of every head:
 * what it was asked (q, k, v) and what it answered (y), for who wants to check the answers
 * elsewhere. */
#include "attend_plan.h"
#include "base/list.h"
#include "backend.h"
#include "length_cert_file.h"
#include "model/inputs.h"

#include <stdlib.h>
#include <string.h>

typedef struct recorder {
    pare_arena *a;
    const pare_length_plan *plan;
    const pare_oracle *orc;
    const pare_exec *exec;
    length_replay *out;
} recorder;

/* rows x cols numbers that lie `ld` apart, side by side in the arena; NULL: memory is out. */
static void *packed(pare_arena *a, const void *from, size_t rows, size_t cols, size_t ld,
                    size_t item)
{
    uint8_t *const to = pare_alloc(a, rows * cols + 1, item);
    for (size_t i = 0; to && i < rows; i++)
        memcpy(to + i * cols * item, (const uint8_t *)from + i * ld * item, cols * item);
    return to;
}

static pare_status keep_head(const recorder *r, size_t block, size_t head, const pare_attend_job *j,
                             pare_err *err)
{
    const size_t item = pare_dtype_size(r->out->dtype);
    length_head *const list =
        list_grow(r->a, r->out->heads, r->out->nheads, &r->out->capacity, sizeof *r->out->heads);
    if (!list) return pare_no_memory(err);
    length_head *const to = &list[r->out->nheads++];
    r->out->heads = list;
    *to = (length_head){.block = block,
                        .head = head,
                        .n = j->n,
                        .dk = j->dk,
                        .dv = j->dv,
                        .scale = j->scale,
                        .q = packed(r->a, j->q, j->n, j->dk, j->ldq, item),
                        .k = packed(r->a, j->k, j->n, j->dk, j->ldk, item),
                        .v = packed(r->a, j->v, j->n, j->dv, j->ldv, item),
                        .y = packed(r->a, j->y, j->n, j->dv, j->ldy, item)};
    return to->q && to->k && to->v && to->y ? PARE_OK : pare_no_memory(err);
}

/* pare_attender.fn: of one input the heads of a layer come in one call, in their order. */
static pare_status record_layer(void *self, size_t block, pare_dtype t, const pare_attend_job *jobs,
                                size_t count, const pare_pattern *p, const pare_graph *g,
                                pare_err *err)
{
    const recorder *const r = self;
    pare_length_stats stats;
    pare_length_job *const own = calloc(count, sizeof *own);
    (void)t, (void)p, (void)g;
    if (!own) return pare_no_memory(err);
    for (size_t i = 0; i < count; i++) own[i] = pare_length_job_of(&jobs[i]);
    pare_status st = pare_length_plan_attend(r->plan, r->orc, own, count, &stats, r->exec, err);
    free(own);
    for (size_t i = 0; i < count && !st; i++) st = keep_head(r, block, i, &jobs[i], err);
    return st;
}

static pare_status run(length_replay *out, pare_arena *a, const pare_length_plan *plan,
                       const pare_exec *exec, pare_err *err)
{
    pare_oracle orc = {0};
    recorder r = {.a = a, .plan = plan, .orc = &orc, .exec = exec, .out = out};
    const pare_attender by = {.fn = record_layer, .self = &r};
    const size_t count = pare_output_rows(out->m, &out->in.in) * pare_model_outputs(out->m);
    void *const y = pare_alloc(a, count + 1, pare_dtype_size(out->dtype));
    if (!y) return pare_no_memory(err);
    pare_status st = pare_length_oracle(&orc, plan, exec, err);
    if (!st) st = pare_forward_by(y, out->dtype, out->m, &out->in.in, &by, NULL, exec, err);
    pare_oracle_free(&orc);
    return st;
}

pare_status pare_length_cert_replay(length_replay *out, pare_arena *a, const char *path,
                                    const cJSON *json, const pare_length_verify_opts *o,
                                    const pare_exec *exec, pare_err *err)
{
    pare_work w = {.arena = a, .exec = exec, .err = err};
    pare_length_claims k = {0};
    pare_length_plan plan;
    cJSON *plan_json = NULL;
    size_t context = 0;
    *out = (length_replay){0};
    pare_status st = length_read_claims(&w, &k, path, json, o);
    if (!st) st = length_read_all(&w, &k, &out->m, &context, &plan_json, &plan, &out->in);
    if (!st)
        st = pare_err_path(err, pare_length_plan_fits(&plan, a, out->m, err),
                           k.files[PARE_LENGTH_PLAN].path);
    if (!st) st = length_compare_plan(&k, &plan, err);
    if (!st) {
        out->dtype = plan.caps.dtype;
        out->rows = k.rows;
        st = run(out, a, &plan, exec, err);
        out->m->context = context;
    }
    cJSON_Delete(plan_json);
    return st;
}
