/* pare train --oracle M: attention in both passes by calls of an engine that takes M tokens. */
#include "out.h"
#include "train.h"

pare_status oracle_open(plan *p, const pare_model *m)
{
    cli *const c = p->c;
    pare_length_head *heads;
    size_t count = 0;
    if (!p->o->oracle) return PARE_OK;
    if (p->o->attention == ATTENTION_POLY)
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "--oracle computes exact attention: leave --attention poly out");
    if (m->pattern.kind == PARE_GRAPH)
        return pare_fail(&c->err, PARE_ERR_INPUT,
                         "--oracle: the model attends over a graph; small calls can train full, "
                         "causal and window attention only");
    const pare_status st = pare_length_heads(&heads, &count, c->arena, m, &c->err);
    if (st) return st;
    if (!count)
        return pare_fail(&c->err, PARE_ERR_INPUT, "--oracle: the model has no softmax attention");
    p->engine = pare_alloc(c->arena, p->settings * p->runs, sizeof *p->engine);
    return p->engine ? PARE_OK : pare_no_memory(&c->err);
}

pare_status oracle_start(plan *p, const pare_attention_provider **out, size_t i, pare_err *err)
{
    pare_oracle engine;
    *out = NULL;
    if (!p->engine) return PARE_OK;
    pare_length_training *const w = &p->engine[i];
    pare_length_training_close(w); /* ranks that receive a model begin a run anew */
    pare_status st = pare_oracle_cpu(&engine, PARE_F32, (uint32_t)p->o->oracle, &p->c->exec, err);
    if (!st) st = pare_length_training_open(w, engine, &p->c->exec, err);
    if (!st) *out = &w->by;
    return st;
}

static void add(pare_oracle_count *to, const pare_oracle_count *from)
{
    to->calls += from->calls;
    if (from->max_len > to->max_len) to->max_len = from->max_len;
}

pare_status oracle_count(plan *p)
{
    const size_t ranks = pare_ranks_size(p->ranks);
    pare_oracle_count own[2] = {{0}}, *const all = pare_alloc(p->c->arena, 2 * ranks, sizeof *all);
    if (!p->engine) return PARE_OK;
    for (size_t i = 0; i < p->settings * p->runs; i++) {
        add(&own[0], &p->engine[i].forward);
        add(&own[1], &p->engine[i].backward);
    }
    pare_status st =
        pare_ranks_agree(p->ranks, all ? PARE_OK : pare_no_memory(&p->c->err), &p->c->err);
    if (!st) st = pare_ranks_gather(p->ranks, all, own, sizeof own, &p->c->err);
    for (size_t r = 0; r < ranks && !st; r++) {
        add(&p->forward, &all[2 * r]);
        add(&p->backward, &all[2 * r + 1]);
    }
    return st;
}

void oracle_close(plan *p)
{
    for (size_t i = 0; p->engine && i < p->settings * p->runs; i++)
        pare_length_training_close(&p->engine[i]);
}

void oracle_print(const plan *p)
{
    char a[32], b[32];
    if (!p->engine) return;
    out_row("engine",
            "%zu tokens: attention took %s calls forward and %s backward, of at most %llu rows",
            p->o->oracle, out_count(a, p->forward.calls), out_count(b, p->backward.calls),
            (unsigned long long)(p->forward.max_len > p->backward.max_len ? p->forward.max_len
                                                                          : p->backward.max_len));
}

bool oracle_json(cJSON *to, const plan *p)
{
    if (!p->engine) return true;
    cJSON *const o = pare_json_add_object(to, "engine");
    return o && pare_json_add_size(o, "tokens", p->o->oracle) &&
           pare_json_add_size(o, "forward_calls", p->forward.calls) &&
           pare_json_add_size(o, "backward_calls", p->backward.calls) &&
           pare_json_add_size(o, "longest_forward", p->forward.max_len) &&
           pare_json_add_size(o, "longest_backward", p->backward.max_len);
}
