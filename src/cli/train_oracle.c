/* train_oracle.c - pare train --oracle M: attention, forward and backward, by calls of an engine
 * that takes M tokens (train.h). */
#include "out.h"
#include "train.h"

pare_status oracle_prepare(training *tr, const pare_model *m)
{
    cli *const c = tr->c;
    pare_length_head *heads;
    size_t count = 0;
    if (!tr->o->oracle) return PARE_OK;
    if (tr->o->attention == ATTENTION_POLY)
        return cli_usage_error(c, "--oracle computes exact attention: leave --attention poly out");
    if (m->pattern.kind == PARE_GRAPH)
        return pare_fail(&c->err, PARE_ERR_INPUT,
                         "--oracle: the model attends over a graph; small calls can train full, "
                         "causal and window attention only");
    const pare_status st = pare_length_heads(&heads, &count, c->arena, m, &c->err);
    if (st) return st;
    if (!count)
        return pare_fail(&c->err, PARE_ERR_INPUT, "--oracle: the model has no softmax attention");
    tr->engine = pare_alloc(c->arena, tr->settings * tr->runs, sizeof *tr->engine);
    return tr->engine ? PARE_OK : pare_no_memory(&c->err);
}

pare_status oracle_open_run(training *tr, const pare_attention_provider **out, size_t i,
                            pare_err *err)
{
    pare_oracle engine;
    *out = NULL;
    if (!tr->engine) return PARE_OK;
    pare_length_training *const w = &tr->engine[i];
    pare_length_training_close(w); /* ranks that receive a model begin a run anew */
    pare_status st = pare_oracle_cpu(&engine, PARE_F32, (uint32_t)tr->o->oracle, &tr->c->exec, err);
    if (!st) st = pare_length_training_open(w, engine, &tr->c->exec, err);
    if (!st) *out = &w->by;
    return st;
}

static void add_count(pare_oracle_count *to, const pare_oracle_count *from)
{
    to->calls += from->calls;
    if (from->max_len > to->max_len) to->max_len = from->max_len;
}

pare_status oracle_sum_calls(training *tr)
{
    const size_t ranks = pare_ranks_size(tr->ranks);
    pare_oracle_count own[2] = {{0}}, *const all = pare_alloc(tr->c->arena, 2 * ranks, sizeof *all);
    if (!tr->engine) return PARE_OK;
    for (size_t i = 0; i < tr->settings * tr->runs; i++) {
        add_count(&own[0], &tr->engine[i].forward);
        add_count(&own[1], &tr->engine[i].backward);
    }
    pare_status st =
        pare_ranks_agree(tr->ranks, all ? PARE_OK : pare_no_memory(&tr->c->err), &tr->c->err);
    if (!st) st = pare_ranks_gather(tr->ranks, all, own, sizeof own, &tr->c->err);
    for (size_t r = 0; r < ranks && !st; r++) {
        add_count(&tr->forward, &all[2 * r]);
        add_count(&tr->backward, &all[2 * r + 1]);
    }
    return st;
}

void oracle_close_all(training *tr)
{
    for (size_t i = 0; tr->engine && i < tr->settings * tr->runs; i++)
        pare_length_training_close(&tr->engine[i]);
}

void oracle_print(const training *tr)
{
    char a[32], b[32];
    if (!tr->engine) return;
    out_row("engine",
            "%zu tokens: attention took %s calls forward and %s backward, of at most %llu rows",
            tr->o->oracle, out_count(a, tr->forward.calls), out_count(b, tr->backward.calls),
            (unsigned long long)(tr->forward.max_len > tr->backward.max_len
                                     ? tr->forward.max_len
                                     : tr->backward.max_len));
}

bool oracle_json(cJSON *to, const training *tr)
{
    return !tr->engine ||
           pare_json_add_record(
               to, "engine",
               "tokens:z forward_calls:z backward_calls:z longest_forward:z longest_backward:z",
               tr->o->oracle, (size_t)tr->forward.calls, (size_t)tr->backward.calls,
               (size_t)tr->forward.max_len, (size_t)tr->backward.max_len);
}
