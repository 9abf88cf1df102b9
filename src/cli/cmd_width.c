/* pare width: a narrower model, with its certificate. */
#include "cut_data.h"
#include "next_input.h"
#include "show_cut.h"
#include <pare/lesson.h>

#include <math.h>
#include <string.h>

enum {
    WIDTH_WINDOWS = 128,     /* inputs that a cut is fitted to, unless asked otherwise ... */
    WIDTH_TOKENS = 256,      /* ... and tokens of each */
    WIDTH_HELD_OUT = 256,    /* inputs that are measured at most */
    WIDTH_PROVEN = 8,        /* inputs that are proven on unless --prove says more, ... */
    WIDTH_PROVEN_TOKENS = 64 /* ... and tokens of each */
};

typedef struct width_opts {
    size_t split, method, rows, start, rule, basis; /* choices as their numbers */
    pare_width_opts cut;
    bool edits; /* all single-node edits are proven as well */
    size_t edit_rows;
    double ball; /* radius; 0: none */
    const char *heldout;
    size_t prove;  /* inputs to prove on, 0: not said */
    size_t epochs; /* of distilling; 0: none */
    pare_distill_opts distill;
    pare_train_result taught;
    size_t windows; /* inputs of a text that a cut is fitted to */
    reduction r;
    pare_width_report report;
} width_opts;

/* ---- results ------------------------------------------------------------------------------- */

static size_t widest(const pare_width_report *p)
{
    size_t most = 0;
    for (size_t i = 0; i < p->npoints; i++)
        if (p->points[i].before > most) most = p->points[i].before;
    return most;
}

static size_t most_keys(const pare_width_report *p)
{
    size_t most = 0;
    for (size_t i = 0; i < p->nheads; i++)
        if (p->heads[i].before > most) most = p->heads[i].before;
    return most;
}

static size_t most_units(const pare_width_report *p)
{
    size_t most = 0;
    for (size_t i = 0; i < p->nhidden; i++)
        if (p->hidden[i].before > most) most = p->hidden[i].before;
    return most;
}

static void print_details(const pare_width_report *p)
{
    for (size_t i = 0; i < p->npoints; i++) {
        out_part("  %-4s %4zu -> %-4zu", p->points[i].name, p->points[i].before,
                 p->points[i].after);
        if (!isnan(p->points[i].residual_est))
            out_part(" largest distance of a row from what is kept %.3g",
                     p->points[i].residual_est);
        putchar('\n');
    }
    for (size_t i = 0; i < p->nheads; i++) {
        const pare_width_head *const h = &p->heads[i];
        out_part("  layer %zu head %zu  %4zu -> %-4zu", h->layer, h->head, h->before, h->after);
        if (!isnan(h->scores_est)) out_part(" largest score error %.3g", h->scores_est);
        if (!isnan(h->least_est))
            out_part(", root mean square %.3g (best possible %.3g)", h->objective_est,
                     h->least_est);
        putchar('\n');
    }
    for (size_t i = 0; i < p->nhidden; i++) {
        const pare_width_hidden *const h = &p->hidden[i];
        out_part("  layer %zu hidden  %4zu -> %-4zu", h->layer, h->before, h->after);
        if (!isnan(h->limit_est))
            out_part(" spread %.3g (limit %.3g)", h->spread_est, h->limit_est);
        putchar('\n');
    }
}

/* How far from the best possible this is: at the last point of the stream, and in the outputs. */
static void print_optimality(const cli *c, const pare_cert *cert)
{
    const pare_claim *last = NULL;
    for (size_t i = 0; i < cert->nclaims; i++) {
        const pare_claim *const t = &cert->claims[i];
        if (t->kind == PARE_STREAM_OPTIMALITY && t->text[0] == 'h') last = t;
    }
    if (last)
        out_row("",
                "residual stream after the last layer: error %.4g (root mean square), best "
                "possible with this width %.4g",
                last->value, last->limit);
    const pare_claim *const least = pare_cert_find(cert, PARE_OUTPUTS_LEAST);
    const char *const words = least ? out_claim_words(c->arena, least) : NULL;
    if (words) out_row("", "%s", words);
}

static void print_people(const cli *c, const pare_model *m, const void *self)
{
    const width_opts *const o = self;
    char words[80];
    (void)m;
    show_results(c, &o->r);
    snprintf(words, sizeof words, "method %s", pare_width_method_names[o->method]);
    show_shapes(&o->r, words);
    print_optimality(c, &o->r.cert);
    if (o->epochs)
        out_row("distilled", "%zu epochs, the best is number %llu: validation score %.6f",
                o->epochs, (unsigned long long)o->taught.best_step + 1, o->taught.val);
    if (c->verbose) print_details(&o->report);
    show_end(c, &o->r);
}

static bool json_pair(cJSON *to, const char *key, size_t before, size_t after)
{
    cJSON *o = pare_json_add_object(to, key);
    return o && pare_json_add_size(o, "before", before) && pare_json_add_size(o, "after", after);
}

static bool json_cut(cJSON *root, const width_opts *o)
{
    cJSON *to = pare_json_add_object(root, "cut");
    const pare_width_report *const p = &o->report;
    return to && pare_json_add_string(to, "method", pare_width_method_names[o->method]) &&
           json_pair(to, "dim", widest(p), p->dim) &&
           json_pair(to, "qk_dim", most_keys(p), p->qk_dim) &&
           json_pair(to, "ffn_dim", most_units(p), p->ffn_dim) &&
           (isnan(o->r.output_error) ||
            pare_json_add_number(to, "output_error", o->r.output_error)) &&
           (o->epochs == 0 || (pare_json_add_size(to, "distill_epochs", o->epochs) &&
                               pare_json_add_number(to, "validation", o->taught.val)));
}

static pare_status print_json(cli *c, const void *self)
{
    const width_opts *const o = self;
    cJSON *root = out_json_begin(c);
    return out_json(c, root,
                    reduce_json_front(root, &o->r) && json_cut(root, o) &&
                        reduce_json_end(root, &o->r));
}

/* ---- the cut ------------------------------------------------------------------------------- */

/* The report lives in the cut model, which publishing frees: what is shown is copied. */
static pare_status keep_report(cli *c, pare_width_report *p)
{
    struct {
        void **list;
        size_t n, size;
    } all[] = {{(void **)&p->points, p->npoints, sizeof *p->points},
               {(void **)&p->heads, p->nheads, sizeof *p->heads},
               {(void **)&p->hidden, p->nhidden, sizeof *p->hidden}};
    for (size_t i = 0; i < 3; i++) {
        void *const copy = pare_alloc(c->arena, all[i].n ? all[i].n : 1, all[i].size);
        if (!copy) return pare_no_memory(&c->err);
        memcpy(copy, *all[i].list, all[i].n * all[i].size);
        *all[i].list = copy;
    }
    return PARE_OK;
}

/* *small becomes the model that was taught. */
static pare_status distill(cli *c, width_opts *o, const pare_model *m, pare_model **small)
{
    pare_lesson lesson;
    pare_lesson_facts asked;
    pare_model *taught = NULL;
    const pare_graph_lesson g = {.path = o->r.data,
                                 .split = o->split,
                                 .full = m->pattern.kind != PARE_GRAPH,
                                 .classes = pare_model_outputs(m)};
    o->distill.epochs = o->epochs;
    o->distill.seed = c->seed;
    pare_status st = pare_lesson_graph(&lesson, &asked, c->arena, &g, &c->err);
    if (!st)
        st = pare_width_distill(&taught, &o->taught, *small, m, &lesson, &o->distill, &c->exec,
                                &c->err);
    if (st) return st;
    pare_model_free(*small);
    *small = taught;
    return PARE_OK;
}

/* Fitted to `in`, proven on `on`. */
static pare_status cut(cli *c, width_opts *o, const pare_model *m, const cert_inputs *in,
                       const cert_inputs *on)
{
    pare_model *small = NULL;
    pare_width_opts *const w = &o->cut;
    w->method = (pare_width_method)o->method;
    w->rows = (pare_width_rows)o->rows;
    w->start = (pare_width_start)o->start;
    w->rule = (pare_width_rule)o->rule;
    w->basis = (pare_width_basis)o->basis;
    w->seed = c->seed;
    /* A promise without a dimension looks for one; a little below, as the proof adds its slack. */
    if (!w->dim && !w->qk_dim && !w->ffn_dim && w->keep == 0) w->max_move = 0.99 * o->r.max_error;
    pare_status st = pare_width(&small, &o->report, m, &in->set, w, &c->exec, &c->err);
    if (!st) st = keep_report(c, &o->report);
    if (!st && o->epochs) st = distill(c, o, m, &small);
    if (!st) st = reduce_publish(c, &o->r, m, &small, on, &pare_width_provers[o->method]);
    pare_model_free(small);
    return st;
}

/* What the certificate is to say beside the headline. */
static void ask(width_opts *o)
{
    if (o->edits || o->edit_rows) o->r.ask[o->r.nask++] = pare_width_edits(o->edit_rows);
    if (o->ball > 0) o->r.ask[o->r.nask++] = pare_ball_claim(o->ball, PARE_BALL_TWO);
}

static pare_status check_edits(cli *c, const width_opts *o, const pare_model *m,
                               const cert_inputs *on)
{
    if (on->set.n != 1)
        return pare_fail(&c->err, PARE_ERR_USAGE, "--edits speaks of one graph, %s has %zu inputs",
                         on->path, on->set.n);
    return pare_width_edits_check(m, &on->set.in[0], o->edit_rows, &c->err);
}

/* ---- language models and encoders ----------------------------------------------------------- */

static pare_status measure_text(cli *c, width_opts *o, const pare_model *m, const cut_data *d)
{
    pare_model *g = NULL;
    o->r.held_out = d->apart;
    pare_status st = reduce_compare(c, &o->r, m, &d->held);
    if (st || o->r.has_metric) return st; /* targets say more than a distance */
    st = cli_load(c, &g, c->out);
    if (!st) st = cut_output_error(c, &o->r.output_error, m, g, d);
    if (!st) o->r.error_inputs = cut_error_inputs(d);
    pare_model_free(g);
    return st;
}

static pare_status width_of_text(cli *c, width_opts *o, const pare_model *m)
{
    const cut_plan plan = {.windows = o->windows,
                           .held = o->prove > WIDTH_HELD_OUT ? o->prove : WIDTH_HELD_OUT,
                           .proven = o->prove ? o->prove : WIDTH_PROVEN,
                           .proven_tokens = WIDTH_PROVEN_TOKENS,
                           .work = INFINITY};
    cut_data d;
    pare_model *small = NULL;
    pare_width_opts *const w = &o->cut;
    w->method = (pare_width_method)o->method;
    w->basis = (pare_width_basis)o->basis;
    w->seed = c->seed;
    pare_status st = cut_data_load(c, &d, m, o->r.data, &plan);
    if (!st && o->r.data) next_ask(c, &o->r, &d, false);
    if (!st) st = pare_width(&small, &o->report, m, d.fit.n ? &d.fit : NULL, w, &c->exec, &c->err);
    if (!st) st = keep_report(c, &o->report);
    if (!st) st = reduce_publish(c, &o->r, m, &small, &d.held, &pare_width_provers[o->method]);
    pare_model_free(small);
    return st ? st : measure_text(c, o, m, &d);
}

static pare_status width_of_graph(cli *c, width_opts *o, const pare_model *m)
{
    cert_inputs in, on;
    bool seen = false;
    if (o->prove)
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "--prove goes with texts; of graphs all inputs are proven on");
    pare_status st = cli_inputs(c, &in, m, o->r.data, o->split);
    on = in;
    if (!st && o->heldout) st = cli_inputs(c, &on, m, o->heldout, o->split);
    if (!st && o->heldout) st = cut_has_seen(c, &seen, &in.set, &on.set, 0);
    const cut_data d = {.fit = in.set, .no_next = seen ? cut_saw_some : NULL};
    if (!st && o->heldout) next_ask(c, &o->r, &d, false);
    if (!st && (o->edits || o->edit_rows)) st = check_edits(c, o, m, &on);
    if (!st) st = cut(c, o, m, &in, &on);
    o->r.held_out = o->heldout != NULL;
    return st ? st : reduce_compare(c, &o->r, m, &on);
}

static pare_status settle(cli *c, void *self)
{
    width_opts *const o = self;
    if (!o->r.data && o->method != PARE_WIDTH_SVD && o->method != PARE_WIDTH_SLICE)
        return pare_fail(&c->err, PARE_ERR_USAGE, "--data is needed: a cut is fitted to it");
    if (o->epochs && o->method != PARE_WIDTH_AUTO)
        return pare_fail(&c->err, PARE_ERR_USAGE, "--distill goes with --method auto");
    o->r.time_attention = true;
    ask(o);
    return PARE_OK;
}

static pare_status any_width(cli *c, void *self, const pare_model *m)
{
    width_opts *const o = self;
    if (!pare_width_is_text(m, (pare_width_method)o->method)) return width_of_graph(c, o, m);
    if (o->edits || o->edit_rows || o->ball > 0 || o->heldout || o->epochs)
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "--heldout, --edits, --ball and --distill go with graph transformers");
    return width_of_text(c, o, m);
}

#define JOINED_SIZE(word, field, text, more)                                                       \
    {                                                                                              \
        .name = word, .kind = OPT_SIZE, .to = &o.field, .metavar = "D", .help = text,              \
        .max = REDUCE_MOST, .unset = "as it is"                                                    \
    }
/* On one line of the help: the first one's text is the word before it. */
#define CHOICE_ROW(word, field, text, names)                                                       \
    {                                                                                              \
        .name = word, .kind = OPT_CHOICE, .to = &o.field, .metavar = "W", .help = text,            \
        .choices = names                                                                           \
    }

int cmd_width(int argc, char **argv)
{
    width_opts o = {.method = PARE_WIDTH_AUTO,
                    .cut = PARE_WIDTH_OPTS_DEFAULT,
                    .distill = PARE_DISTILL_OPTS_DEFAULT};
    o.r.max_error = INFINITY;
    o.r.output_error = NAN;
    o.windows = WIDTH_WINDOWS;
    o.cut.tokens = WIDTH_TOKENS;
    const opt own[] = {
        {.name = "method",
         .kind = OPT_CHOICE,
         .to = &o.method,
         .metavar = "M",
         .help = "",
         .choices = pare_width_method_names},
        opt_data(&o.r.data, "what the cut is fitted to and proven on", "must be given"),
        JOINED_SIZE("dim", cut.dim, "width", true),
        JOINED_SIZE("qk-dim", cut.qk_dim, "", true),
        JOINED_SIZE("v-dim", cut.v_dim, "", true),
        JOINED_SIZE("ffn-dim", cut.ffn_dim, "", false),
        REDUCE_SPLIT(o.split, "data"),
        REDUCE_WINDOWS(o.windows),
        REDUCE_TOKENS(o.cut.tokens, true),
        {.name = "untie", .kind = OPT_FLAG, .to = &o.cut.untie, .help = ""},
        {.name = "distill",
         .kind = OPT_SIZE,
         .to = &o.epochs,
         .metavar = "N",
         .help = "teach",
         .unset = "not at all",
         .min = 1,
         .max = REDUCE_MOST},
        {.name = "distill-lr",
         .kind = OPT_REAL,
         .to = &o.distill.lr,
         .metavar = "R",
         .help = "",
         .low = 0,
         .high = INFINITY},
        {.name = "distill-weight",
         .kind = OPT_REAL,
         .to = &o.distill.weight,
         .metavar = "W",
         .help = "",
         .low = 0,
         .high = 1},
        {.name = "keep",
         .kind = OPT_REAL,
         .to = &o.cut.keep,
         .metavar = "F",
         .help = "the widest with this share of the parameters",
         .unset = "not asked",
         .low = 1e-6,
         .high = 1},
        REDUCE_MAX_ERROR(o.r.max_error, "; without a width: the narrowest"),
        /* What is proven beside the headline, and on what. */
        {.name = "heldout",
         .kind = OPT_TEXT,
         .to = &o.heldout,
         .metavar = "D",
         .help = "proven",
         .unset = "on --data"},
        NEXT_PROVE(o.prove),
        REDUCE_BALL(o.ball, "near", true),
        {.name = "edits", .kind = OPT_FLAG, .to = &o.edits, .help = ""},
        {.name = "edit-rows",
         .kind = OPT_SIZE,
         .to = &o.edit_rows,
         .metavar = "N",
         .help = "",
         .unset = "all rows",
         .min = 1,
         .max = REDUCE_MOST},
        CHOICE_ROW("rows", rows, "draws", pare_width_rows_names),
        CHOICE_ROW("basis", basis, "", pare_width_basis_names),
        CHOICE_ROW("start", start, "", pare_width_start_names),
        CHOICE_ROW("rule", rule, "", pare_width_rule_names),
        {.name = "trials",
         .kind = OPT_SIZE,
         .to = &o.cut.trials,
         .metavar = "N",
         .help = "",
         .min = 1,
         .max = REDUCE_MOST},
    };
    static const char *const operands[] = {"MODEL", NULL};
    const opt_spec spec = {
        .command = "width",
        .args = "MODEL --data D --dim N|--keep F -o OUT",
        .about = "Makes a model narrower and proves what that costs: graph transformers on their\n"
                 "graph; language models and encoders on text (auto, qk, slice, svd).",
        .examples = {"width model.safetensors --data board.npz --dim 8 -o small.safetensors"},
        .seeded = true,
        .own = own,
        .nown = sizeof own / sizeof *own,
        .operands = operands,
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MUST_OUT, "the model; its certificate goes beside it", argc, argv,
                   &rc))
        return rc;
    const reduce_steps steps = {settle, any_width, print_people, print_json};
    return cli_finish(&c, reduce_run(&c, &o.r, &steps, &o));
}
