/* cmd_eval.c - pare eval: how good a model is on data, and how far from another one. */
#include "out.h"
#include "warn_text.h"

#include <math.h>
#include <string.h>

typedef struct eval_opts {
    const char *data, *column, *reference;
    size_t split, window;
    bool f64, whole;
    size_t engine; /* a cli_engine_kind */
} eval_opts;

typedef struct eval_result {
    pare_comparison of;      /* without --reference: of.model alone */
    pare_comparison heldout; /* the same of the held-out inputs alone, which cuts are measured on */
    size_t heldout_inputs;   /* 0: all of them are */
    size_t inputs, documents, skipped, split;
    const char *separated; /* how the documents are; NULL: the file is one, or no text */
    pare_task_kind task;
    bool sentences; /* inputs are text */
    double ms;
} eval_result;

/* `inputs`: so many held-out ones; 0: all of the data. */
static void print_metric(const char *label, const pare_evaluation *e, const eval_result *r,
                         size_t inputs)
{
    static const char *const counts[] = {"nodes of the test mask", "tokens", "inputs", "tokens",
                                         "values"};
    const char *const what =
        r->task == PARE_TASK_SENTENCE && r->sentences ? "sentences" : counts[r->task];
    char n[32], of[64] = "";
    const char *const counted = out_count(n, e->scores.counted);
    if (inputs && r->task != PARE_TASK_SENTENCE)
        snprintf(of, sizeof of, " of %zu held-out input%s", inputs, inputs == 1 ? "" : "s");
    if (strcmp(e->metric, "perplexity") == 0) {
        char per_byte[40] = "";
        if (!isnan(e->nats_per_byte))
            snprintf(per_byte, sizeof per_byte, ", %.5f per byte", e->nats_per_byte);
        out_row(label, "%.4f (%.5f nats per token%s) on %s %s%s", e->value, e->scores.nats,
                per_byte, counted, what, of);
    } else if (strcmp(e->metric, "cosine") == 0)
        out_row(label, "mean %.6f on %s %sinputs", e->value, counted, inputs ? "held-out " : "");
    else if (strcmp(e->metric, "auc") == 0)
        out_row(label, "%.4f on %s %s (accuracy %.2f %%)", e->value, counted, what,
                100 * e->scores.accuracy);
    else if (r->task == PARE_TASK_VALUES)
        out_row(label, "%.6g mean squared error on %s %s%s", e->value, counted, what, of);
    else
        out_row(label, "%.2f %% of %s %s%s", 100 * e->value, counted, what, of);
}

static void print_text(const eval_opts *o, const eval_result *r)
{
    const pare_kl_report *const k = &r->of.kl;
    char n[32];
    const pare_cosine_report *const cosine = &r->of.cosine;
    const bool both = o->reference && !cosine->rows;
    print_metric(r->of.model.metric, &r->of.model, r, 0);
    if (cosine->rows)
        out_row("", "least %.6f, 1 %% below %.6f, 5 %% below %.6f, median %.6f, to the reference",
                cosine->least, cosine->p01, cosine->p05, cosine->median);
    if (both) print_metric("reference", &r->of.reference, r, 0);
    if (r->heldout_inputs) {
        print_metric("held out", &r->heldout.model, r, r->heldout_inputs);
        if (both) print_metric("reference", &r->heldout.reference, r, r->heldout_inputs);
    }
    if (k->rows) {
        out_row("same answer", "%.2f %% of %s predictions have the reference's most likely class",
                100 * k->same_top, out_count(n, k->rows));
        out_row("KL", "mean %.4g, median %.4g, 99.9 %% below %.4g, largest %.4g", k->mean,
                k->median, k->p999, k->max);
        out_row("", "KL(reference || model), in nats per prediction");
    }
    if (r->task == PARE_TASK_NODES)
        out_row("data", "%s, split %zu", o->data, r->split);
    else
        out_row("data", "%s, %s %s%s", o->data, out_count(n, r->inputs),
                r->inputs == 1 ? "input" : "inputs", r->task == PARE_TASK_TEXT ? " (windows)" : "");
    if (r->separated)
        out_row("", "%s document%s, %s", out_count(n, r->documents), r->documents == 1 ? "" : "s",
                r->separated);
    if (r->skipped) out_row("skipped", "%zu texts without a token", r->skipped);
    out_row("time", "%.1f ms (%s)", r->ms,
            o->f64      ? "in f64"
            : o->engine ? "in int8 and f32"
                        : "in f32");
}

static bool json_scores(cJSON *to, const char *key, const pare_scores *s)
{
    return pare_json_add_record(to, key, "counted:z accuracy:n nats:n perplexity:n auc:n",
                                s->counted, s->accuracy, s->nats, s->perplexity, s->auc);
}

static pare_status print_json(cli *c, const eval_opts *o, const eval_result *r, const facts *f,
                              const facts *ref)
{
    const pare_kl_report *const k = &r->of.kl;
    const double value = r->of.model.value;
    const bool both = o->reference != NULL;
    cJSON *const root = out_json_begin(c);
    bool ok =
        root && out_json_facts(root, "input", f) &&
        (!both || out_json_facts(root, "reference", ref)) &&
        pare_json_add_values(root, "data:s inputs:z skipped:z", o->data, r->inputs, r->skipped) &&
        (r->task != PARE_TASK_NODES || pare_json_add_values(root, "split:z", r->split));
    cJSON *const metric = ok ? pare_json_add_object(root, "metric") : NULL;
    ok =
        pare_json_add_values(metric, "name:s value:n counted:z", r->of.model.metric, value,
                             r->of.model.scores.counted) &&
        (isnan(r->of.model.nats_per_byte) ||
         pare_json_add_values(metric, "nats_per_byte:n", r->of.model.nats_per_byte)) &&
        (!both || pare_json_add_values(metric, "before:n after:n", r->of.reference.value, value)) &&
        json_scores(root, "scores", &r->of.model.scores) &&
        (!r->heldout_inputs ||
         pare_json_add_record(root, "held_out", "inputs:z value:n nats:n counted:z",
                              r->heldout_inputs, r->heldout.model.value,
                              r->heldout.model.scores.nats, r->heldout.model.scores.counted)) &&
        (!both || json_scores(root, "reference_scores", &r->of.reference.scores));
    const pare_cosine_report *const s = &r->of.cosine;
    if (ok && s->rows)
        ok = pare_json_add_record(root, "cosine", "rows:z mean:n median:n p05:n p01:n least:n",
                                  s->rows, s->mean, s->median, s->p05, s->p01, s->least);
    if (ok && k->rows)
        ok = pare_json_add_record(root, "kl", "rows:z mean:n median:n p999:n max:n same_top:n",
                                  k->rows, k->mean, k->median, k->p999, k->max, k->same_top);
    return out_json(c, root, ok && pare_json_add_record(root, "time_ms", "eval:g", r->ms));
}

static pare_status score(cli *c, const eval_opts *o, pare_comparison *to, const pare_model *m,
                         const pare_model *ref, const pare_dataset *d)
{
    if (!ref) return pare_evaluate(&to->model, m, d, o->f64, &c->exec, &c->err);
    return cli_reword(c, pare_evaluate_against(to, m, ref, d, o->f64, &c->exec, &c->err),
                      "the reference", "--reference");
}

static pare_status eval(cli *c, void *self)
{
    const eval_opts *const o = self;
    pare_model *m = NULL, *ref = NULL;
    pare_dataset d = {0}, held = {0};
    eval_result r = {0};
    facts f = {0}, fr = {0};
    const char *path = c->operand[0];
    const pare_data_opts read = {.split = o->split,
                                 .window = o->window,
                                 .column = o->column,
                                 .whole = o->whole,
                                 .seed = c->seed,
                                 .exec = &c->exec};
    pare_status st = cli_check_files(c, (const char *const[]){path, o->data}, 2);
    if (!st) st = cli_only(c, "engine", !o->f64, "the fast engine, without --f64");
    c->packed = o->engine == CLI_ENGINE_INT8;
    if (!st) st = cli_load(c, &m, path);
    if (!st) st = cli_engine(c, o->engine, m);
    c->packed = false;
    if (!st && o->reference) st = cli_load(c, &ref, o->reference);
    if (!st) st = cli_name(c, pare_dataset_load(&d, c->arena, m, o->data, &read, &c->err), o->data);
    if (!st) warn_text(c, o->data, &d.notes);
    if (!st) st = cli_only(c, "whole", d.task == PARE_TASK_TEXT, "text");
    if (!st) st = cli_only(c, "window", d.task == PARE_TASK_TEXT, "text");
    if (!st) st = cli_only(c, "split", d.task == PARE_TASK_NODES, "a graph");
    const double start = pare_seconds();
    if (!st) st = score(c, o, &r.of, m, ref, &d);
    const double end = pare_seconds();
    /* The inputs that a cut with this seed is measured on. */
    if (!st) st = pare_dataset_heldout(&held, c->arena, &d, c->seed, &c->err);
    if (!st && held.inputs.n < d.inputs.n) {
        r.heldout_inputs = held.inputs.n;
        st = score(c, o, &r.heldout, m, ref, &held);
        if (st == PARE_ERR_INPUT) { /* no target among them counts */
            r.heldout_inputs = 0;
            st = PARE_OK;
        }
    }
    if (!st) {
        r.ms = 1e3 * (end - start);
        r.inputs = d.inputs.n;
        r.skipped = d.skipped;
        r.documents = d.documents;
        r.separated = d.separated;
        r.split = d.split;
        r.task = d.task;
        r.sentences = m->embedding.ids;
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
        opt_data(&o.data, "what to score the model on: text (.txt, .csv, .tsv, .jsonl, token ids .npy; with a column `label`: sentences with labels), a graph "
                          "or arrays `inputs` with `targets` or `values` (.npz)", NULL),
        {.name = "reference", .kind = OPT_TEXT, .to = &o.reference, .metavar = "MODEL",
         .help = "score this model as well, and say how far the predictions are from its (KL divergence)"},
        opt_split(&o.split),
        opt_column(&o.column),
        {.name = "window", .kind = OPT_SIZE, .to = &o.window, .metavar = "N", .unset = "the context, at most 512",
         .help = "text: it is cut into pieces of N tokens, each scored on its own; longer pieces give each token more context",
         .min = 2, .max = 1u << 30},
        {.name = "whole", .kind = OPT_FLAG, .to = &o.whole, .rare = true,
         .help = "a .txt is one document, also where blank lines or <|endoftext|> separate parts of it (as WikiText is usually scored)"},
        {.name = "engine", .kind = OPT_CHOICE, .to = &o.engine, .metavar = "ENGINE",
         .help = "what the products of MODEL are computed in", .choices = cli_engine_words, .choice_help = cli_engine_help},
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
        .seeded = true,
        OPT_ROWS(own),
        .operands = (const char *const[]){"MODEL", NULL},
    };
    return cli_command(&spec, CLI_NO_OUT, NULL, argc, argv, eval, &o);
}
/* clang-format on */
