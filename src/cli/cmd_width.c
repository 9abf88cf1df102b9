/* cmd_width.c - pare width: a narrower model, with its certificate. */
#include "base/json.h"
#include "reduce_command.h"
#include "show_cut.h"

#include <math.h>

typedef struct width_opts {
    size_t method, rows, start, rule, basis; /* choices as their numbers */
    size_t epochs;                           /* of --distill */
    bool edits;                              /* all single-node edits are proven as well */
    size_t edit_rows;
    double ball; /* radius; 0: none */
    reduction r;
} width_opts;

/* ---- results ------------------------------------------------------------------------------- */

static void print_text(const cli *c, const void *self)
{
    const width_opts *const o = self;
    const pare_reduction *const r = &o->r.r;
    const pare_claim *stream = NULL; /* the optimum at the last point of the residual stream */
    char words[80];
    show_results(c, r);
    snprintf(words, sizeof words, r->keep > 0 ? "method %s, --keep %.2g" : "method %s",
             pare_width_method_names[o->method], r->keep);
    show_shapes(r, words);
    for (size_t i = 0; i < r->cert.nclaims; i++) {
        const pare_claim *const t = &r->cert.claims[i];
        if (t->kind == PARE_STREAM_OPTIMALITY && t->text[0] == 'h') stream = t;
    }
    if (stream)
        out_row("",
                "residual stream after the last layer: error %.4g (root mean square), best "
                "possible with this width %.4g",
                stream->value, stream->limit);
    const pare_claim *const least = pare_cert_find(&r->cert, PARE_OUTPUTS_LEAST);
    const char *const optimum = least ? out_claim_words(c->arena, least) : NULL;
    if (optimum) out_row("", "%s", optimum);
    if (o->epochs)
        out_row("distilled", "%zu epochs, the best is number %llu: validation score %.6f",
                o->epochs, (unsigned long long)r->distilled.best_step + 1, r->distilled.val);
    if (c->verbose) {
        for (size_t i = 0; i < r->width.npoints; i++) {
            out_part("  %-4s %4zu -> %-4zu", r->width.points[i].name, r->width.points[i].before,
                     r->width.points[i].after);
            if (!isnan(r->width.points[i].residual_est))
                out_part(" largest distance of a row from what is kept %.3g",
                         r->width.points[i].residual_est);
            putchar('\n');
        }
        for (size_t i = 0; i < r->width.nheads; i++) {
            const pare_width_head *const h = &r->width.heads[i];
            out_part("  layer %zu head %zu  %4zu -> %-4zu", h->layer, h->head, h->before, h->after);
            if (!isnan(h->scores_est)) out_part(" largest score error %.3g", h->scores_est);
            if (!isnan(h->least_est))
                out_part(", root mean square %.3g (best possible %.3g)", h->objective_est,
                         h->least_est);
            putchar('\n');
        }
        for (size_t i = 0; i < r->width.nhidden; i++) {
            const pare_width_hidden *const h = &r->width.hidden[i];
            out_part("  layer %zu hidden  %4zu -> %-4zu", h->layer, h->before, h->after);
            if (!isnan(h->limit_est))
                out_part(" spread %.3g (limit %.3g)", h->spread_est, h->limit_est);
            putchar('\n');
        }
    }
    show_end(c, r);
}

static pare_status print_json(cli *c, const void *self)
{
    const width_opts *const o = self;
    const pare_reduction *const r = &o->r.r;
    const pare_width_report *const p = &r->width;
    size_t dim = 0, qk_dim = 0, ffn_dim = 0; /* the widest before the cut */
    for (size_t i = 0; i < p->npoints; i++)
        if (p->points[i].before > dim) dim = p->points[i].before;
    for (size_t i = 0; i < p->nheads; i++)
        if (p->heads[i].before > qk_dim) qk_dim = p->heads[i].before;
    for (size_t i = 0; i < p->nhidden; i++)
        if (p->hidden[i].before > ffn_dim) ffn_dim = p->hidden[i].before;
    static const char pair[] = "before:z after:z";
    cJSON *const root = out_json_begin(c);
    cJSON *const to = reduce_json_front(root, r) ? pare_json_add_object(root, "cut") : NULL;
    bool ok = pare_json_add_values(to, "method:s", pare_width_method_names[o->method]) &&
              pare_json_add_record(to, "dim", pair, dim, p->dim) &&
              pare_json_add_record(to, "qk_dim", pair, qk_dim, p->qk_dim) &&
              pare_json_add_record(to, "ffn_dim", pair, ffn_dim, p->ffn_dim) &&
              pare_json_add_values(to, "output_error:N", r->output_error);
    if (ok && o->epochs)
        ok = pare_json_add_values(to, "distill_epochs:z validation:g", o->epochs, r->distilled.val);
    return out_json(c, root, ok && reduce_json_end(root, r));
}

/* ---- options ------------------------------------------------------------------------------- */

static pare_status check_options(cli *c, void *self)
{
    width_opts *const o = self;
    pare_reduce_opts *const r = &o->r.o;
    if (!r->data && o->method != PARE_WIDTH_SVD)
        return cli_usage_error(
            c, "--data FILE is needed: the cut is fitted to it (only --method svd works "
               "without data)");
    r->time_attention = true;
    r->width.method = (pare_width_method)o->method;
    r->width.rows = (pare_width_rows)o->rows;
    r->width.start = (pare_width_start)o->start;
    r->width.rule = (pare_width_rule)o->rule;
    r->width.basis = (pare_width_basis)o->basis;
    r->distill.epochs = o->epochs;
    if (o->edits || o->edit_rows) r->ask[r->nask++] = pare_width_edits(o->edit_rows);
    if (o->ball > 0) r->ask[r->nask++] = pare_ball_claim(o->ball, PARE_BALL_TWO);
    return cli_only(c, "heldout,prove,tokens", r->data != NULL, "--data FILE");
}

/* How large the result is: one way of saying it, not two and not none. */
static pare_status check_size(cli *c, const width_opts *o, bool text)
{
    const pare_width_opts *const w = &o->r.o.width;
    const bool scores = o->method == PARE_WIDTH_JL || o->method == PARE_WIDTH_QK;
    const bool within = text && (scores || o->method == PARE_WIDTH_AUTO);
    const char *const width = within   ? "--qk-dim, --v-dim or --ffn-dim"
                              : scores ? "--qk-dim"
                                       : "--dim";
    const bool both = w->keep > 0 && (within   ? w->qk_dim || w->v_dim || w->ffn_dim
                                      : scores ? w->qk_dim > 0
                                               : w->dim > 0);
    if (both)
        return cli_usage_error(
            c, "--keep chooses the widths itself: give either --keep or widths (%s)", width);
    const bool sized = w->dim || w->qk_dim || w->v_dim || w->ffn_dim || w->keep > 0;
    if (sized || isfinite(o->r.o.max_error) || o->method == PARE_WIDTH_EXACT) return PARE_OK;
    return cli_usage_error(
        c,
        "the size of the result is missing: give --keep SHARE (such as --keep 75%%), "
        "%s, or --max-error E for the smallest model within that error",
        width);
}

static pare_status check_model(cli *c, void *self, const pare_model *m)
{
    const width_opts *const o = self;
    const size_t k = o->method;
    const bool text = pare_width_is_text(m, (pare_width_method)k);
    const char *const name = pare_width_method_names[k];
    if (text && m->pattern.kind == PARE_GRAPH)
        return cli_usage_error(c,
                               "--method %s is for language models and encoders; this is a graph "
                               "transformer (pare probe --part width measures %s for comparison)",
                               name, name);
    if (!text && pare_width_is_text(m, PARE_WIDTH_AUTO))
        return cli_usage_error(c,
                               "--method %s works for graph transformers; for this model use auto, "
                               "qk, slice or svd",
                               name);
    const bool slice = k == PARE_WIDTH_SLICE, svd = k == PARE_WIDTH_SVD, qk = k == PARE_WIDTH_QK,
               automatic = k == PARE_WIDTH_AUTO, cluster = k == PARE_WIDTH_CLUSTER,
               exact = k == PARE_WIDTH_EXACT, jl = k == PARE_WIDTH_JL,
               stream = k == PARE_WIDTH_LOWRANK || k == PARE_WIDTH_LEVERAGE;
    const cli_rule rules[] = {
        {"dim", text ? slice || svd : !exact && !jl && !qk,
         text ? "--method slice (or svd) of a language model or encoder"
              : "--method auto, lowrank, leverage or cluster of a graph transformer"},
        {"qk-dim", !slice && !exact && !cluster, "--method auto, qk, svd, jl, lowrank or leverage"},
        {"v-dim", text && (automatic || svd),
         "--method auto or svd of a language model or encoder"},
        {"ffn-dim", automatic || svd || stream, "--method auto, svd, lowrank or leverage"},
        {"keep", !exact, "the other methods: exact removes only what the data does not need"},
        {"untie", slice || svd, "--method slice or svd"},
        {"windows,fit-tokens", text && !svd,
         "--method auto, qk or slice of a language model or encoder"},
        {"split", !text, "graph transformers"},
        {"prove,tokens", text, "language models and encoders; of graphs every input is proven on"},
        {"edits,edit-rows,ball", !text, "graph transformers"},
        {"distill", !text && automatic, "--method auto of a graph transformer"},
        {"distill-lr,distill-weight", o->epochs > 0, "--distill N"},
        {"basis", stream || slice, "--method lowrank, leverage or slice"},
        {"rows", stream && o->r.o.width.ffn_dim > 0,
         "--ffn-dim N and --method leverage or lowrank"},
        {"start,rule", cluster, "--method cluster"},
        {"trials", jl || cluster || (stream && o->rows == PARE_ROWS_SAMPLE),
         "--method jl, --method cluster or --rows sample"},
        {0},
    };
    pare_status st = cli_check_rules(c, rules);
    if (!st) st = check_size(c, o, text);
    if (!st && o->basis == (slice ? PARE_BASIS_MINMAX : PARE_BASIS_SHARED))
        st =
            cli_usage_error(c, "--basis %s goes with --method %s", pare_width_basis_names[o->basis],
                            slice ? "lowrank or leverage" : "slice");
    return st;
}

static const char *const method_help[] = {
    "graphs: remove only dimensions that the data does not need",
    "graphs: the residual stream in --dim dimensions (Shirzad 2024, Theorem 4.2)",
    "graphs: lowrank, and --ffn-dim hidden units that stand for all (Proposition 4.3)",
    "graphs: at most --dim clusters of nodes; ReLU networks without skips (Theorem 4.4)",
    "graphs: random projection of queries and keys to --qk-dim (Theorem 3.3)",
    "queries and keys only: the best bilinear form of rank --qk-dim",
    "graphs: every width, fitted layer by layer; other models: queries, keys, values and hidden "
    "units where it costs least",
    "language models and encoders: principal directions of the residual stream",
    "language models and encoders: singular values of the weights; needs no data",
    NULL};
static const char *const rows_help[] = {"remove one unit after another, with a guarantee",
                                        "draw units by leverage scores, best of --trials", NULL};
static const char *const start_help[] = {"exactly, by the rank of the data", "by random projection",
                                         NULL};
static const char *const rule_help[] = {"by the largest margin",
                                        "as the paper prints it, corrected", NULL};
static const char *const basis_help[] = {
    "principal directions: minimizes the mean error",
    "minimizes the largest error; lowrank and leverage",
    "slice: one basis for all layers, so that skips stay identities", NULL};

int cmd_width(int argc, char **argv)
{
    width_opts o = {.method = PARE_WIDTH_AUTO, .r.o = PARE_REDUCE_OPTS_DEFAULT(PARE_REDUCE_WIDTH)};
    pare_reduce_opts *const r = &o.r.o;
    r->width.tokens = r->fit_tokens;
    opt data =
        opt_data(&r->data,
                 "inputs that the cut is fitted to and proven on: a graph, a text, or token arrays",
                 "required, except with --method svd");
    data.group = "Data";
    /* clang-format off */
    const opt own[] = {
        {.name = "keep", .kind = OPT_SHARE, .to = &r->width.keep, .metavar = "SHARE", .group = "What to cut", .unset = "not set", .low = 1e-6, .high = 1,
         .help = "keep at most this share of the parameters, e.g. 0.75 or 75%"},
        {.name = "dim", .kind = OPT_SIZE, .to = &r->width.dim, .metavar = "N", .unset = "unchanged", .min = 1, .max = REDUCE_MOST,
         .help = "width of the residual stream (language models and encoders: only with --method slice or svd)"},
        {.name = "qk-dim", .kind = OPT_SIZE, .to = &r->width.qk_dim, .metavar = "N", .unset = "unchanged", .min = 1, .max = REDUCE_MOST,
         .help = "width of queries and keys, per head"},
        {.name = "v-dim", .kind = OPT_SIZE, .to = &r->width.v_dim, .metavar = "N", .unset = "unchanged", .min = 1, .max = REDUCE_MOST,
         .help = "width of values, per head (only language models and encoders)"},
        {.name = "ffn-dim", .kind = OPT_SIZE, .to = &r->width.ffn_dim, .metavar = "N", .unset = "unchanged", .min = 1, .max = REDUCE_MOST,
         .help = "hidden units of each feed-forward layer"},
        REDUCE_MAX_ERROR(r->max_error, "; without a width: find the smallest model within E"),
        REDUCE_ANY_SHAPE(o.r.any_shape),
        REDUCE_DTYPE(o.r.dtype),
        REDUCE_ALLOW_LARGER(r->allow_larger),
        {.name = "method", .kind = OPT_CHOICE, .to = &o.method, .metavar = "W", .choices = pare_width_method_names, .choice_help = method_help,
         .help = "how the model is made narrower; auto is best for most models, --help all explains the others"},
        data,
        REDUCE_HELDOUT(r->heldout, "texts: " REDUCE_USUAL_HELDOUT "; graphs: all of --data"),
        REDUCE_PROVE(r->prove),
        REDUCE_TOKENS(r->proven_tokens),
        opt_split(&r->split),
        opt_column(&r->column),
        REDUCE_WINDOWS(r->fit_inputs),
        REDUCE_FIT_TOKENS(r->width.tokens),
        {.name = "edits", .kind = OPT_FLAG, .to = &o.edits, .group = "Also prove (graph transformers)", .rare = true,
         .help = "a bound for every change of one node's features to those of another node"},
        {.name = "edit-rows", .kind = OPT_SIZE, .to = &o.edit_rows, .metavar = "N", .unset = "all", .min = 1, .max = REDUCE_MOST, .rare = true,
         .help = "like --edits, but only with the N most frequent feature rows"},
        REDUCE_BALL(o.ball, " (Euclidean length of a row)"),
        {.name = "distill", .kind = OPT_SIZE, .to = &o.epochs, .metavar = "N", .group = "Training after the cut (graph transformers)", .unset = "no training", .min = 1, .max = REDUCE_MOST, .rare = true,
         .help = "train the smaller model for N epochs with the larger one as teacher"},
        {.name = "distill-lr", .kind = OPT_REAL, .to = &r->distill.lr, .metavar = "R", .high = INFINITY, .rare = true,
         .help = "learning rate of --distill"},
        {.name = "distill-weight", .kind = OPT_REAL, .to = &r->distill.weight, .metavar = "W", .high = 1, .rare = true,
         .help = "weight of the teacher's outputs in the loss of --distill; the labels have the rest"},
        {.name = "basis", .kind = OPT_CHOICE, .to = &o.basis, .metavar = "W", .group = "Details of methods", .choices = pare_width_basis_names, .choice_help = basis_help, .rare = true,
         .help = "subspace of lowrank, leverage and slice"},
        {.name = "untie", .kind = OPT_FLAG, .to = &r->width.untie, .rare = true,
         .help = "slice, svd: give a head that shares the embedding a matrix of its own"},
        {.name = "rows", .kind = OPT_CHOICE, .to = &o.rows, .metavar = "W", .choices = pare_width_rows_names, .choice_help = rows_help, .rare = true,
         .help = "how leverage chooses hidden units"},
        {.name = "trials", .kind = OPT_SIZE, .to = &r->width.trials, .metavar = "N", .min = 1, .max = REDUCE_MOST, .rare = true,
         .help = "random draws of jl, cluster and --rows sample; the best one is taken"},
        {.name = "start", .kind = OPT_CHOICE, .to = &o.start, .metavar = "W", .choices = pare_width_start_names, .choice_help = start_help, .rare = true,
         .help = "how cluster maps the first layer"},
        {.name = "rule", .kind = OPT_CHOICE, .to = &o.rule, .metavar = "W", .choices = pare_width_rule_names, .choice_help = rule_help, .rare = true,
         .help = "how cluster tells clusters apart"},
    };
    /* clang-format on */
    const opt_spec spec = {
        .command = "width",
        .args = "MODEL --data FILE (--keep SHARE | --dim N | --max-error E) -o OUT",
        .about = "Makes a model narrower and certifies how much its outputs can change.",
        .examples = {"width minilm/ --data sentences.txt --keep 75% -o minilm-small.safetensors",
                     "width gt.safetensors --data graph.npz --dim 8 -o gt8.safetensors"},
        .seeded = true,
        OPT_ROWS(own),
        .operands = (const char *const[]){"MODEL", NULL},
    };
    static const reduce_steps steps = {check_options, check_model, print_text, print_json};
    return reduce_command(&spec, argc, argv, &o.r, &steps, &o);
}
