/* What came of a training: a table for people, one object for programs. */
#include "out.h"
#include "train.h"

#include <math.h>

enum { MOST_ROWS = 40 }; /* of single runs that people are shown without -v */

/* ---- for people ---------------------------------------------------------------------------- */

static const pare_train_result *result_of(const plan *p, const train_result *r, size_t at,
                                          size_t run)
{
    return &r->runs->each[at * p->runs + run];
}

static void row_of_run(const plan *p, const train_result *r, size_t at, size_t run)
{
    const pare_train_result *e = result_of(p, r, at, run);
    const bool best = at == r->runs->setting && run == r->runs->best;
    out_part("  run %-5zu seed %-8llu split %-4zu", run, (unsigned long long)plan_seed(p, run),
             plan_split(p, run));
    if (isnan(e->val))
        out_part(" %10s %10s", "-", "-");
    else
        out_part(" %10.6f %10.6f at step %llu", e->val, e->test, (unsigned long long)e->best_step);
    out_line("%s%s", e->diverged ? "  diverged" : "", best ? "  kept" : "");
}

static void rows_of_setting(const plan *p, const train_result *r, size_t at)
{
    const pare_spread *val = &r->runs->val[at], *test = &r->runs->test[at];
    if (p->settings > 1)
        out_line("lr %g, %llu steps%s", p->setting[at].lr, (unsigned long long)plan_steps(p, at),
                 at == r->runs->setting ? ": the best mean validation score" : "");
    if (at == r->runs->setting && (p->runs <= MOST_ROWS || p->c->verbose))
        for (size_t i = 0; i < p->runs; i++) row_of_run(p, r, at, i);
    if (p->runs == 1 && at == r->runs->setting) return;
    out_line("  mean of %-20zu         %10.6f %10.6f", val->n, val->mean, test->mean);
    if (val->n > 1)
        out_line("  std                                  %10.6f %10.6f", val->std, test->std);
}

/* "test auc 0.8432, validation auc 0.8511 at step 36 of 40" */
static void print_result(const plan *p, const train_result *r)
{
    char step[32], steps[32];
    const size_t at = r->runs->setting;
    const pare_train_result *const e = result_of(p, r, at, r->runs->best);
    const char *const metric = plan_lesson(p, 0)->metric;
    out_row("result", "test %s %.6f, validation %s %.6f, at step %s of %s%s", metric, e->test,
            metric, e->val, out_count(step, e->best_step), out_count(steps, plan_steps(p, at)),
            p->runs * p->settings > 1 ? " (best run)" : "");
    if (!isnan(r->whole_test))
        out_row("", "on the whole texts: test %s %.6f, validation %s %.6f", metric, r->whole_test,
                metric, r->whole_val);
}

static void print_text(const plan *p, const train_result *r)
{
    char n[32], val[32], test[32], bytes[32];
    const pare_lesson_facts *f = &p->facts;
    const size_t at = r->runs->setting;
    print_result(p, r);
    if (p->runs * p->settings > 1) {
        out_line("%-38s %10s %10s", plan_lesson(p, 0)->metric, "validation", "test");
        for (size_t s = 0; s < p->settings; s++) rows_of_setting(p, r, s);
    }
    out_row("model", "%s: %s, %s parameters, %s bytes", r->model.path, r->name,
            out_count(n, r->model.size.parameters), out_count(bytes, r->model.file_bytes));
    if (p->o->popup)
        out_row("popup", "keeps %.3g %% of the random weights (%s), queries and keys times %.3g",
                100 * p->o->keep, train_source_names[p->o->source], p->o->scale);
    out_row("data", "%s: %s %s to train on, %s for validation, %s for testing", p->o->data,
            out_count(n, f->train), p->unit, out_count(val, f->val), out_count(test, f->test));
    out_row("schedule", "%s steps, learning rate %g to %g", out_count(n, plan_steps(p, at)),
            p->setting[at].lr, p->o->last_lr); /* no time: same command, same words */
    oracle_print(p);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static bool add_if_number(cJSON *to, const char *key, double v)
{
    return isnan(v) ? pare_json_add_null(to, key) : pare_json_add_number(to, key, v);
}

static bool json_spread(cJSON *to, const char *key, const pare_spread *s)
{
    cJSON *o = pare_json_add_object(to, key);
    return o && pare_json_add_size(o, "n", s->n) && add_if_number(o, "mean", s->mean) &&
           add_if_number(o, "std", s->std);
}

static bool json_run(cJSON *list, const plan *p, const train_result *r, size_t at, size_t run)
{
    const pare_train_result *e = result_of(p, r, at, run);
    cJSON *o = pare_json_add_object(list, NULL);
    return o && pare_json_add_size(o, "run", run) &&
           pare_json_add_u64(o, "seed", plan_seed(p, run)) &&
           pare_json_add_size(o, "split", plan_split(p, run)) && add_if_number(o, "val", e->val) &&
           add_if_number(o, "test", e->test) && add_if_number(o, "loss", e->loss) &&
           pare_json_add_size(o, "best_step", e->best_step) &&
           pare_json_add_bool(o, "diverged", e->diverged);
}

static bool json_settings(cJSON *to, const plan *p, const train_result *r)
{
    cJSON *list = pare_json_add_array(to, "settings");
    bool ok = list != NULL;
    for (size_t at = 0; ok && at < p->settings; at++) {
        cJSON *o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_number(o, "lr", p->setting[at].lr) &&
             pare_json_add_size(o, "steps", plan_steps(p, at)) &&
             json_spread(o, "val", &r->runs->val[at]) && json_spread(o, "test", &r->runs->test[at]);
        cJSON *runs = ok ? pare_json_add_array(o, "runs") : NULL;
        ok = runs != NULL;
        for (size_t i = 0; ok && i < p->runs; i++) ok = json_run(runs, p, r, at, i);
    }
    return ok;
}

static bool json_data(cJSON *to, const plan *p)
{
    cJSON *o = pare_json_add_object(to, "data");
    return o && pare_json_add_string(o, "path", p->o->data) &&
           pare_json_add_size(o, "train", p->facts.train) &&
           pare_json_add_size(o, "val", p->facts.val) &&
           pare_json_add_size(o, "test", p->facts.test);
}

static bool json_metric(cJSON *to, const plan *p, const train_result *r)
{
    const pare_train_result *e = result_of(p, r, r->runs->setting, r->runs->best);
    cJSON *o = pare_json_add_object(to, "metric");
    return o && pare_json_add_string(o, "name", plan_lesson(p, 0)->metric) &&
           pare_json_add_number(o, "val", e->val) && pare_json_add_number(o, "test", e->test) &&
           add_if_number(o, "whole_val", r->whole_val) &&
           add_if_number(o, "whole_test", r->whole_test);
}

static bool json_popup(cJSON *to, const plan *p, const train_result *r)
{
    if (!p->o->popup) return true;
    cJSON *o = pare_json_add_object(to, "popup");
    return o && pare_json_add_number(o, "keep", p->o->keep) &&
           pare_json_add_number(o, "qk_scale", p->o->scale) &&
           pare_json_add_string(o, "source", train_source_names[p->o->source]) &&
           pare_json_add_u64(o, "seed", plan_seed(p, r->runs->best));
}

static bool json_times(cJSON *to, const train_result *r)
{
    cJSON *o = pare_json_add_object(to, "time_ms");
    return o && pare_json_add_number(o, "training", 1e3 * r->seconds);
}

static pare_status print_json(plan *p, const train_result *r)
{
    cJSON *root = out_json_begin(p->c);
    return out_json(p->c, root,
                    root && pare_json_add_string(root, "kind", train_kinds[p->o->kind]) &&
                        out_json_facts(root, "output", &r->model) && json_data(root, p) &&
                        json_metric(root, p, r) && json_popup(root, p, r) && oracle_json(root, p) &&
                        pare_json_add_size(root, "best_setting", r->runs->setting) &&
                        pare_json_add_size(root, "best_run", r->runs->best) &&
                        json_settings(root, p, r) && json_times(root, r));
}

pare_status train_show(plan *p, const train_result *r)
{
    if (p->c->json) return print_json(p, r);
    print_text(p, r);
    return PARE_OK;
}
