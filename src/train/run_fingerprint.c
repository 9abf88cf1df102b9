/* run_fingerprint.c - which options a run may have, and which run it is. */
#include "run_fingerprint.h"
#include <math.h>

pare_status train_opts_check(const pare_model *start, const pare_train_opts *o, pare_err *err)
{
    const double inf = INFINITY;
    const struct {
        const char *name;
        double value, from, below; /* from <= value < below */
    } limit[] = {{"the learning rate", o->lr, 0, inf},
                 {"the last learning rate", o->last_lr, 0, inf},
                 {"clip", o->clip, 0, inf},
                 {"dropout", o->dropout, 0, 1},
                 {"beta1", o->adamw.beta1, 0, 1},
                 {"beta2", o->adamw.beta2, 0, 1},
                 {"eps", o->adamw.eps, 0, inf},
                 {"weight decay", o->adamw.weight_decay, 0, inf},
                 {"distill", o->distill, 0, inf},
                 {"hidden", o->hidden, 0, inf}};
    for (size_t i = 0; i < sizeof limit / sizeof *limit; i++)
        if (!(limit[i].value >= limit[i].from && limit[i].value < limit[i].below))
            return pare_fail(err, PARE_ERR_USAGE, "%s is %g: it must be from %g and below %g",
                             limit[i].name, limit[i].value, limit[i].from, limit[i].below);
    if (o->steps == 0) return pare_fail(err, PARE_ERR_USAGE, "no steps to train");
    if (o->warmup > o->steps)
        return pare_fail(
            err, PARE_ERR_USAGE,
            "a warm-up of %llu steps is longer than the training, which has %llu step%s",
            (unsigned long long)o->warmup, (unsigned long long)o->steps, o->steps == 1 ? "" : "s");
    if (!o->teacher) {
        if (o->distill == 0 && o->hidden == 0) return PARE_OK;
        return pare_fail(err, PARE_ERR_USAGE, "there is no teacher to distill from");
    }
    if (o->distill > 1) return pare_fail(err, PARE_ERR_USAGE, "distill is %g, above 1", o->distill);
    if (o->distill > 0 && !(o->temperature > 0 && isfinite(o->temperature)))
        return pare_fail(err, PARE_ERR_USAGE, "the temperature %g is not above 0", o->temperature);
    const size_t want = pare_model_outputs(start), is = pare_model_outputs(o->teacher);
    if (want != is && o->distill > 0)
        return pare_fail(err, PARE_ERR_USAGE, "the teacher has %zu outputs, the model %zu", is,
                         want);
    return PARE_OK;
}

/* A difference is reported by its first line. So the shape of the model comes before the hashes,
 * which say least. */
pare_status run_fingerprint(cJSON **out, const pare_model *m, const pare_task *task,
                            const pare_train_opts *o, pare_err *err)
{
    char start[PARE_SHA256_HEX], teacher[PARE_SHA256_HEX] = "";
    const pare_block *const b = m->nblocks ? &m->blocks[0] : NULL;
    const size_t ffn = b && b->ffn.nlayers ? b->ffn.layers[0].w.rows : 0;
    *out = NULL;
    pare_status st = pare_model_sha256(start, m, err);
    if (!st && o->teacher) st = pare_model_sha256(teacher, o->teacher, err);
    if (st) return st;
    cJSON *const run = cJSON_CreateObject();
    const bool ok = run && pare_json_add_string(run, "metric", task->metric ? task->metric : "") &&
                    pare_json_add_bool(run, "more_is_better", task->more_is_better) &&
                    pare_json_add_u64(run, "seed", o->seed) &&
                    pare_json_add_u64(run, "steps", o->steps) &&
                    pare_json_add_u64(run, "warmup", o->warmup) &&
                    pare_json_add_u64(run, "eval_every", o->eval_every) &&
                    pare_json_add_number(run, "lr", o->lr) &&
                    pare_json_add_number(run, "last_lr", o->last_lr) &&
                    pare_json_add_number(run, "clip", o->clip) &&
                    pare_json_add_number(run, "dropout", o->dropout) &&
                    pare_json_add_number(run, "beta1", o->adamw.beta1) &&
                    pare_json_add_number(run, "beta2", o->adamw.beta2) &&
                    pare_json_add_number(run, "eps", o->adamw.eps) &&
                    pare_json_add_number(run, "weight_decay", o->adamw.weight_decay) &&
                    pare_json_add_bool(run, "decay_vectors", o->adamw.decay_vectors) &&
                    pare_json_add_size(run, "layers", m->nblocks) &&
                    pare_json_add_size(run, "dim", b ? b->ffn.din : 0) &&
                    pare_json_add_size(run, "heads", b ? b->attn.nheads : 0) &&
                    pare_json_add_size(run, "ffn", ffn) &&
                    pare_json_add_string(run, "act", b ? pare_act_name(b->ffn.act) : "none") &&
                    pare_json_add_size(run, "outputs", pare_model_outputs(m)) &&
                    pare_json_add_string(run, "pattern", pare_pattern_name(m->pattern.kind)) &&
                    pare_json_add_size(run, "context", m->context) &&
                    pare_json_add_string(run, "teacher", teacher) &&
                    pare_json_add_number(run, "distill", o->teacher ? o->distill : 0) &&
                    pare_json_add_number(run, "temperature", o->distill > 0 ? o->temperature : 0) &&
                    pare_json_add_number(run, "hidden", o->teacher ? o->hidden : 0) &&
                    (!o->popup || pare_json_add_number(run, "popup_keep", o->popup->keep)) &&
                    (!o->attention || pare_json_add_string(run, "attention", o->attention->id)) &&
                    pare_json_add_string(run, "lesson", task->id ? task->id : "") &&
                    pare_json_add_string(run, "start", start);
    if (!ok) {
        cJSON_Delete(run);
        return pare_no_memory(err);
    }
    *out = run;
    return PARE_OK;
}
