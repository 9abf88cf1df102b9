/* train_show.c - prints the result of a training as text or as one JSON object (train.h). */
#include "out.h"
#include "train.h"

#include <math.h>

enum {
    MOST_ROWS = 40,  /* rows of single runs in the text without -v */
    PATH_SHOWN = 200 /* bytes of what a score is taken on */
};

/* What a score is taken on: how many inputs, and which. */
static const char *scored_on(char *buf, size_t size, const training *tr, pare_fold_part part)
{
    const pare_scored_part *const on = &tr->facts.on[part];
    const bool test = part == PARE_PART_TEST;
    const char *const file = test ? tr->o->test : tr->o->val;
    const char *const some = tr->full_text.self ? "a part of " : "";
    const char *const what = on->documents ? "document" : "input", *s = on->inputs == 1 ? "" : "s";
    if (tr->graph)
        snprintf(buf, size, "%zu nodes of the %s mask", on->inputs, test ? "test" : "validation");
    else if (on->of)
        snprintf(buf, size, "%s%zu %s %s%s", some, on->inputs, test ? "held-out" : "other", what,
                 s);
    else
        snprintf(buf, size, "%s%zu %s%s%s%s", some, on->inputs, what, s, file ? " of " : "",
                 file ? file : "");
    return buf;
}

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

static bool add_spread(cJSON *to, const char *key, const pare_spread *s)
{
    return pare_json_add_record(to, key, "n:z mean:n std:n", s->n, s->mean, s->std);
}

static bool add_settings(cJSON *to, const training *tr, const train_result *r)
{
    cJSON *const list = pare_json_add_array(to, "settings");
    bool ok = list != NULL;
    for (size_t at = 0; ok && at < tr->settings; at++) {
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = pare_json_add_values(o, "lr:g steps:z", tr->setting[at].lr, training_steps(tr, at)) &&
             add_spread(o, "val", &r->runs->val[at]) && add_spread(o, "test", &r->runs->test[at]);
        cJSON *const runs = ok ? pare_json_add_array(o, "runs") : NULL;
        ok = runs != NULL;
        for (size_t run = 0; ok && run < tr->runs; run++) {
            const pare_train_result *const e = result_of(r, at, run);
            ok = pare_json_add_record(
                runs, NULL, "run:z seed:u split:z val:n test:n loss:n best_step:z diverged:b", run,
                training_seed(tr, run), training_split(tr, run), e->val, e->test, e->loss,
                e->best_step, e->diverged);
        }
    }
    return ok;
}

static pare_status print_json(training *tr, const train_result *r)
{
    const pare_train_result *const best = result_of(r, r->runs->setting, r->runs->best);
    const pare_task_facts *const f = &tr->facts;
    cJSON *const root = out_json_begin(tr->c);
    bool ok = pare_json_add_values(root, "kind:s", train_kinds[tr->o->kind]) &&
              out_json_facts(root, "output", &r->model) &&
              pare_json_add_record(root, "data", "path:s train:z val:z test:z", tr->o->data,
                                   f->train, f->val, f->test) &&
              pare_json_add_record(root, "metric", "name:s val:g test:g whole_val:n whole_test:n",
                                   training_task(tr, 0)->metric, best->val, best->test, r->full_val,
                                   r->full_test);
    const pare_scored_part *const on = &f->on[PARE_PART_TEST];
    if (ok && on->of)
        ok = pare_json_add_record(root, "held_out",
                                  "inputs:z of:z documents:b seed:u value:g counted:z", on->inputs,
                                  on->of, on->documents, training_heldout_seed(tr, r->runs->best),
                                  isnan(r->full_test) ? best->test : r->full_test, on->counted);
    if (tr->o->popup)
        ok =
            ok && pare_json_add_record(root, "popup", "keep:g qk_scale:g source:s seed:u",
                                       tr->o->keep, tr->o->scale, train_source_names[tr->o->source],
                                       training_seed(tr, r->runs->best));
    return out_json(tr->c, root,
                    ok && oracle_json(root, tr) &&
                        pare_json_add_values(root, "best_setting:z best_run:z", r->runs->setting,
                                             r->runs->best) &&
                        add_settings(root, tr, r) &&
                        pare_json_add_record(root, "time_ms", "training:g", 1e3 * r->seconds));
}

pare_status train_show(training *tr, const train_result *r)
{
    if (tr->c->json) return print_json(tr, r);
    char n[32], val[32], test[32], bytes[32];
    const pare_task_facts *f = &tr->facts;
    const size_t at = r->runs->setting;
    const bool several = tr->runs * tr->settings > 1;
    const pare_scored_part *const held =
        &f->on[f->on[PARE_PART_TEST].of ? PARE_PART_TEST : PARE_PART_VAL];
    char on_test[PATH_SHOWN], on_val[PATH_SHOWN];
    const pare_train_result *const e = result_of(r, at, r->runs->best);
    const char *const metric = training_task(tr, 0)->metric;
    out_row("result", "test %s %.6f (%s), validation %s %.6f (%s), at step %s of %s%s", metric,
            e->test, scored_on(on_test, sizeof on_test, tr, PARE_PART_TEST), metric, e->val,
            scored_on(on_val, sizeof on_val, tr, PARE_PART_VAL), out_count(n, e->best_step),
            out_count(val, training_steps(tr, at)), several ? " (best run)" : "");
    if (!isnan(r->full_test))
        out_row("", "on all of them: test %s %.6f, validation %s %.6f", metric, r->full_test,
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
    if (held->of)
        out_row("held out", "%s, drawn by seed %llu from the %zu %s of %s: not trained on",
                f->on[PARE_PART_TEST].of && f->on[PARE_PART_VAL].of ? "for testing and validation"
                : f->on[PARE_PART_TEST].of                          ? "for testing"
                                                                    : "for validation",
                (unsigned long long)training_heldout_seed(tr, r->runs->best), held->of,
                held->documents ? "documents" : "inputs", tr->o->data);
    out_row("schedule", "%s steps, learning rate %g to %g", out_count(n, training_steps(tr, at)),
            tr->setting[at].lr, tr->o->last_lr); /* no time: same command, same words */
    oracle_print(tr);
    return PARE_OK;
}
