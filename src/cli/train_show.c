/* train_show.c - prints the result of a training as text or as one JSON object (train.h). */
#include "out.h"
#include "train.h"

#include <math.h>

enum { MOST_ROWS = 40 }; /* rows of single runs in the text without -v */

static const pare_train_result *result_of(const train_result *r, size_t at, size_t run)
{
    return &r->runs->each[at * r->runs->runs + run];
}

/* ---- text ---------------------------------------------------------------------------------- */

static void print_setting(const training *tr, const train_result *r, size_t at)
{
    const pare_spread *val = &r->runs->val[at], *test = &r->runs->test[at];
    const bool best = at == r->runs->setting;
    if (tr->settings > 1)
        out_line("lr %g, %llu steps%s", tr->setting[at].lr,
                 (unsigned long long)training_steps(tr, at),
                 best ? ": the best mean validation score" : "");
    const bool each = best && (tr->runs <= MOST_ROWS || tr->c->verbose);
    for (size_t run = 0; each && run < tr->runs; run++) {
        const pare_train_result *e = result_of(r, at, run);
        out_part("  run %-5zu seed %-8llu split %-4zu", run,
                 (unsigned long long)training_seed(tr, run), training_split(tr, run));
        if (isnan(e->val))
            out_part(" %10s %10s", "-", "-");
        else
            out_part(" %10.6f %10.6f at step %llu", e->val, e->test,
                     (unsigned long long)e->best_step);
        out_line("%s%s", e->diverged ? "  diverged" : "", run == r->runs->best ? "  kept" : "");
    }
    if (tr->runs == 1 && best) return;
    out_line("  mean of %-20zu         %10.6f %10.6f", val->n, val->mean, test->mean);
    if (val->n > 1)
        out_line("  std                                  %10.6f %10.6f", val->std, test->std);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static const out_field spread_fields[] = {
    {"n", NULL, OUT_SIZE, offsetof(pare_spread, n)},
    {"mean", NULL, OUT_REAL, offsetof(pare_spread, mean)},
    {"std", NULL, OUT_REAL, offsetof(pare_spread, std)},
    {0},
};
static const out_field run_fields[] = {
    {"val", NULL, OUT_REAL, offsetof(pare_train_result, val)},
    {"test", NULL, OUT_REAL, offsetof(pare_train_result, test)},
    {"loss", NULL, OUT_REAL, offsetof(pare_train_result, loss)},
    {"best_step", NULL, OUT_COUNT, offsetof(pare_train_result, best_step)},
    {"diverged", NULL, OUT_BOOL, offsetof(pare_train_result, diverged)},
    {0},
};
static const out_field data_fields[] = {
    {"train", NULL, OUT_SIZE, offsetof(pare_task_facts, train)},
    {"val", NULL, OUT_SIZE, offsetof(pare_task_facts, val)},
    {"test", NULL, OUT_SIZE, offsetof(pare_task_facts, test)},
    {0},
};
static const out_field full_text_fields[] = {
    {"whole_val", NULL, OUT_REAL, offsetof(train_result, full_val)},
    {"whole_test", NULL, OUT_REAL, offsetof(train_result, full_test)},
    {0},
};

static bool add_settings(cJSON *to, const training *tr, const train_result *r)
{
    cJSON *list = pare_json_add_array(to, "settings");
    bool ok = list != NULL;
    for (size_t at = 0; ok && at < tr->settings; at++) {
        cJSON *o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_number(o, "lr", tr->setting[at].lr) &&
             pare_json_add_size(o, "steps", training_steps(tr, at)) &&
             out_json_add_fields(o, "val", spread_fields, &r->runs->val[at]) &&
             out_json_add_fields(o, "test", spread_fields, &r->runs->test[at]);
        cJSON *runs = ok ? pare_json_add_array(o, "runs") : NULL;
        ok = runs != NULL;
        for (size_t run = 0; ok && run < tr->runs; run++) {
            cJSON *const one = pare_json_add_object(runs, NULL);
            ok = one && pare_json_add_size(one, "run", run) &&
                 pare_json_add_u64(one, "seed", training_seed(tr, run)) &&
                 pare_json_add_size(one, "split", training_split(tr, run)) &&
                 out_json_fields(one, run_fields, result_of(r, at, run));
        }
    }
    return ok;
}

static bool add_popup(cJSON *to, const training *tr, const train_result *r)
{
    if (!tr->o->popup) return true;
    cJSON *o = pare_json_add_object(to, "popup");
    return o && pare_json_add_number(o, "keep", tr->o->keep) &&
           pare_json_add_number(o, "qk_scale", tr->o->scale) &&
           pare_json_add_string(o, "source", train_source_names[tr->o->source]) &&
           pare_json_add_u64(o, "seed", training_seed(tr, r->runs->best));
}

pare_status train_show(training *tr, const train_result *r)
{
    if (tr->c->json) {
        const pare_train_result *best = result_of(r, r->runs->setting, r->runs->best);
        cJSON *root = out_json_begin(tr->c);
        bool ok = root && pare_json_add_string(root, "kind", train_kinds[tr->o->kind]) &&
                  out_json_facts(root, "output", &r->model);
        cJSON *const data = ok ? pare_json_add_object(root, "data") : NULL;
        ok = data && pare_json_add_string(data, "path", tr->o->data) &&
             out_json_fields(data, data_fields, &tr->facts);
        cJSON *const metric = ok ? pare_json_add_object(root, "metric") : NULL;
        ok = metric && pare_json_add_string(metric, "name", training_task(tr, 0)->metric) &&
             pare_json_add_number(metric, "val", best->val) &&
             pare_json_add_number(metric, "test", best->test) &&
             out_json_fields(metric, full_text_fields, r) && add_popup(root, tr, r) &&
             oracle_json(root, tr) && pare_json_add_size(root, "best_setting", r->runs->setting) &&
             pare_json_add_size(root, "best_run", r->runs->best) && add_settings(root, tr, r);
        cJSON *const times = ok ? pare_json_add_object(root, "time_ms") : NULL;
        ok = times && pare_json_add_number(times, "training", 1e3 * r->seconds);
        return out_json(tr->c, root, ok);
    }
    char n[32], val[32], test[32], bytes[32];
    const pare_task_facts *f = &tr->facts;
    const size_t at = r->runs->setting;
    const bool several = tr->runs * tr->settings > 1;
    const pare_train_result *const e = result_of(r, at, r->runs->best);
    const char *const metric = training_task(tr, 0)->metric;
    out_row("result", "test %s %.6f, validation %s %.6f, at step %s of %s%s", metric, e->test,
            metric, e->val, out_count(n, e->best_step), out_count(val, training_steps(tr, at)),
            several ? " (best run)" : "");
    if (!isnan(r->full_test))
        out_row("", "on the whole texts: test %s %.6f, validation %s %.6f", metric, r->full_test,
                metric, r->full_val);
    if (several) out_line("%-38s %10s %10s", metric, "validation", "test");
    for (size_t s = 0; several && s < tr->settings; s++) print_setting(tr, r, s);
    out_row("model", "%s: %s, %s parameters, %s bytes", r->model.path, r->name,
            out_count(n, r->model.size.parameters), out_count(bytes, r->model.file_bytes));
    if (tr->o->popup)
        out_row("popup", "keeps %.3g %% of the random weights (%s), queries and keys times %.3g",
                100 * tr->o->keep, train_source_names[tr->o->source], tr->o->scale);
    out_row("data", "%s: %s %s to train on, %s for validation, %s for testing", tr->o->data,
            out_count(n, f->train), tr->unit, out_count(val, f->val), out_count(test, f->test));
    out_row("schedule", "%s steps, learning rate %g to %g", out_count(n, training_steps(tr, at)),
            tr->setting[at].lr, tr->o->last_lr); /* no time: same command, same words */
    oracle_print(tr);
    return PARE_OK;
}
