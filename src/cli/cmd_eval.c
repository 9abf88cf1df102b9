/* cmd_eval.c - pare eval: how good a model is on data, and how far from another one. */
#include "out.h"
#include "warn_text.h"

#include <math.h>
#include <string.h>

typedef struct eval_opts {
    const char *data, *reference;
    size_t split, window;
    bool f64;
} eval_opts;

typedef struct eval_result {
    pare_evaluation model, reference;
    pare_kl_report kl;
    size_t inputs, skipped, split;
    pare_task task;
    bool sentences; /* inputs are text */
    double ms;
} eval_result;

static const char *counted_what(const eval_result *r)
{
    static const char *const what[] = {"nodes of the test mask", "tokens", "inputs", "tokens",
                                       "values"};
    return r->task == PARE_TASK_SENTENCE && r->sentences ? "sentences" : what[r->task];
}

static void print_metric(const char *label, const pare_evaluation *e, const eval_result *r)
{
    char n[32];
    const char *const counted = out_count(n, e->scores.counted), *const what = counted_what(r);
    if (strcmp(e->metric, "perplexity") == 0)
        out_row(label, "%.4f (%.5f nats per token) on %s %s", e->value, e->scores.nats, counted,
                what);
    else if (strcmp(e->metric, "auc") == 0)
        out_row(label, "%.4f on %s %s (accuracy %.2f %%)", e->value, counted, what,
                100 * e->scores.accuracy);
    else if (r->task == PARE_TASK_VALUES)
        out_row(label, "%.6g mean squared error on %s %s", e->value, counted, what);
    else
        out_row(label, "%.2f %% of %s %s", 100 * e->value, counted, what);
}

static void print_kl(const pare_kl_report *k)
{
    char n[32];
    out_row("same answer", "%.2f %% of %s predictions have the reference's most likely class",
            100 * k->same_top, out_count(n, k->rows));
    out_row("KL", "mean %.4g, median %.4g, 99.9 %% below %.4g, largest %.4g", k->mean, k->median,
            k->p999, k->max);
    out_row("", "KL(reference || model), in nats per prediction");
}

static void print_text(const eval_opts *o, const eval_result *r)
{
    print_metric(r->model.metric, &r->model, r);
    if (o->reference) print_metric("reference", &r->reference, r);
    if (o->reference && r->task != PARE_TASK_VALUES) print_kl(&r->kl);
    char n[32];
    if (r->task == PARE_TASK_NODES)
        out_row("data", "%s, split %zu", o->data, r->split);
    else
        out_row("data", "%s, %s %s%s", o->data, out_count(n, r->inputs),
                r->inputs == 1 ? "input" : "inputs", r->task == PARE_TASK_TEXT ? " (windows)" : "");
    if (r->skipped)
        out_row("skipped", "%zu sentences: empty, or longer than the model's context", r->skipped);
    out_row("time", "%.1f ms (%s)", r->ms, o->f64 ? "in f64" : "in f32");
}

static bool json_number(cJSON *to, const char *key, double v)
{
    return isnan(v) ? pare_json_add_null(to, key) : pare_json_add_number(to, key, v);
}

static bool json_scores(cJSON *to, const char *key, const pare_scores *s)
{
    cJSON *o = pare_json_add_object(to, key);
    return o && pare_json_add_size(o, "counted", s->counted) &&
           json_number(o, "accuracy", s->accuracy) && json_number(o, "nats", s->nats) &&
           json_number(o, "perplexity", s->perplexity) && json_number(o, "auc", s->auc);
}

static bool json_kl(cJSON *root, const pare_kl_report *k)
{
    cJSON *o = pare_json_add_object(root, "kl");
    return o && pare_json_add_size(o, "rows", k->rows) && json_number(o, "mean", k->mean) &&
           json_number(o, "median", k->median) && json_number(o, "p999", k->p999) &&
           json_number(o, "max", k->max) && json_number(o, "same_top", k->same_top);
}

static pare_status print_json(cli *c, const eval_opts *o, const eval_result *r, const facts *f,
                              const facts *ref)
{
    cJSON *root = out_json_begin(c);
    bool ok = root && out_json_facts(root, "input", f) &&
              (!o->reference || out_json_facts(root, "reference", ref)) &&
              pare_json_add_string(root, "data", o->data) &&
              pare_json_add_size(root, "inputs", r->inputs) &&
              pare_json_add_size(root, "skipped", r->skipped);
    if (ok && r->task == PARE_TASK_NODES) ok = pare_json_add_size(root, "split", r->split);
    cJSON *metric = ok ? pare_json_add_object(root, "metric") : NULL;
    ok = metric && pare_json_add_string(metric, "name", r->model.metric) &&
         json_number(metric, "value", r->model.value) &&
         pare_json_add_size(metric, "counted", r->model.scores.counted);
    if (ok && o->reference)
        ok = json_number(metric, "before", r->reference.value) &&
             json_number(metric, "after", r->model.value);
    ok = ok && json_scores(root, "scores", &r->model.scores);
    if (ok && o->reference) ok = json_scores(root, "reference_scores", &r->reference.scores);
    if (ok && o->reference && r->task != PARE_TASK_VALUES) ok = json_kl(root, &r->kl);
    cJSON *time = ok ? pare_json_add_object(root, "time_ms") : NULL;
    return out_json(c, root, time && pare_json_add_number(time, "eval", r->ms));
}

static pare_status evaluate(cli *c, const eval_opts *o, eval_result *r, const pare_model *m,
                            const pare_model *reference, const pare_dataset *d)
{
    if (!reference) return pare_evaluate(&r->model, m, d, o->f64, c->arena, &c->exec, &c->err);
    return cli_reword(c,
                      pare_evaluate_against(&r->model, m, &r->reference, &r->kl, reference, d,
                                            o->f64, c->arena, &c->exec, &c->err),
                      "the reference", "--reference");
}

static pare_status eval(cli *c, const eval_opts *o)
{
    pare_model *m = NULL, *ref = NULL;
    pare_dataset d = {0};
    eval_result r = {0};
    facts f = {0}, fr = {0};
    const char *path = c->operand[0];
    pare_status st = cli_is_there(c, path);
    if (!st) st = cli_is_there(c, o->data);
    if (!st) st = cli_load(c, &m, path);
    if (!st && o->reference) st = cli_load(c, &ref, o->reference);
    if (!st)
        st = cli_name(c, pare_dataset_load(&d, c->arena, m, o->data, o->split, o->window, &c->err),
                      o->data);
    if (!st) warn_text(c, o->data, &d.notes);
    if (!st) st = cli_only(c, "window", d.task == PARE_TASK_TEXT, "text");
    if (!st) st = cli_only(c, "split", d.task == PARE_TASK_NODES, "a graph");
    const double start = pare_seconds();
    if (!st) st = evaluate(c, o, &r, m, ref, &d);
    if (!st) {
        r.ms = 1e3 * (pare_seconds() - start);
        r.inputs = d.inputs.n;
        r.skipped = d.skipped;
        r.split = d.split;
        r.task = d.task;
        r.sentences = m->stem.ids;
    }
    if (!st && c->json) {
        st = cli_facts(c, &f, path, m, NULL, true);
        if (!st && ref) st = cli_facts(c, &fr, o->reference, ref, NULL, true);
        if (!st) st = print_json(c, o, &r, &f, &fr);
    } else if (!st) {
        print_text(o, &r);
    }
    pare_model_free(m);
    pare_model_free(ref);
    return st;
}

/* clang-format off */
int cmd_eval(int argc, char **argv)
{
    eval_opts o = {0};
    const opt own[] = {
        opt_data(&o.data, "what to score the model on: text (.txt, token ids .npy), sentences with labels (.tsv), a graph "
                          "or arrays `inputs` with `targets` or `values` (.npz)", NULL),
        {.name = "reference", .kind = OPT_TEXT, .to = &o.reference, .metavar = "MODEL",
         .help = "score this model as well, and say how far the predictions are from its (KL divergence)"},
        opt_split(&o.split),
        {.name = "window", .kind = OPT_SIZE, .to = &o.window, .metavar = "N", .unset = "the context, at most 512",
         .help = "text: it is cut into pieces of N tokens, each scored on its own; longer pieces give each token more context",
         .min = 2, .max = 1u << 30},
        {.name = "f64", .kind = OPT_FLAG, .to = &o.f64, .help = "compute in double precision instead of single precision"},
    };
    const opt_spec spec = {
        .command = "eval",
        .args = "MODEL --data FILE",
        .about = "Scores a model on data. The data choose the metric: perplexity of text, accuracy\n"
                 "of sentences and sequences, AUC (two classes) or accuracy on the test nodes of a\n"
                 "graph, mean squared error of values.",
        .examples = {"eval model.safetensors --data test.txt",
                     "eval small.safetensors --data test.txt --reference model.safetensors"},
        OPT_ROWS(own),
        .operands = (const char *const[]){"MODEL", NULL},
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_NO_OUT, NULL, argc, argv, &rc)) return rc;
    return cli_finish(&c, eval(&c, &o));
}
/* clang-format on */
