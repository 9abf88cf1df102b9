/* pare depth: a model with fewer attention layers, with its certificate. */
#include "cut_data.h"
#include "next_input.h"
#include "show_cut.h"

#include <math.h>
#include <string.h>

enum {
    DEPTH_WINDOWS = 64, /* inputs that kinds are fitted to, unless asked otherwise ... */
    DEPTH_TOKENS = 256, /* ... and tokens of each text */
    DEPTH_HELD_OUT = 1u << 20,
    DEPTH_HELD_OUT_TEXT = 128,
    DEPTH_PROVEN_TEXT = 8,   /* texts that are proven on unless --prove says more, ... */
    DEPTH_PROVEN_TOKENS = 64 /* ... and tokens of each */
};
#define DEPTH_WORK 1e10 /* multiplications of the passes that are proven on: a minute or so */

typedef struct depth_opts {
    size_t layers, kind, select, split, windows, tokens;
    const char *exact, *heldout, *one_layer;
    bool search; /* for the fewest exact layers that keep --max-error */
    double ball; /* radius; 0: none */
    size_t ball_norm;
    double diam;  /* of inputs that the theorems speak of; 0: none */
    size_t prove; /* inputs to prove on, 0: not said */
    pare_depth_opts cut;
    pare_depth_one_opts one;
    pare_depth_one_report one_report;
    cut_data d;
    reduction r;
    pare_depth_report report;
} depth_opts;

/* ---- options ------------------------------------------------------------------------------- */

/* "0,3,5" */
static pare_status read_list(cli *c, depth_opts *o)
{
    const char *at = o->exact;
    size_t n = 1, k = 0;
    if (!at) return PARE_OK;
    for (const char *p = at; *p; p++) n += *p == ',';
    size_t *const list = pare_alloc(c->arena, n, sizeof *list);
    if (!list) return pare_no_memory(&c->err);
    for (bool digit = false; k < n; at++) {
        if (*at >= '0' && *at <= '9' && list[k] < REDUCE_MOST) {
            list[k] = 10 * list[k] + (size_t)(*at - '0');
            digit = true;
        } else if (digit && (*at == ',' || *at == '\0')) {
            digit = false;
            k++;
        } else {
            return pare_fail(&c->err, PARE_ERR_USAGE,
                             "--exact %s: give layer numbers separated by commas, such as 0,3",
                             o->exact);
        }
    }
    o->cut.exact = list;
    o->cut.nexact = n;
    return PARE_OK;
}

static pare_status settle_one(cli *c, depth_opts *o)
{
    if (!o->one_layer) return PARE_OK;
    size_t which;
    pare_status st = cli_choose(c, &which, "--one-layer", o->one_layer, pare_collapse_names);
    if (st) return st;
    o->one.which = (pare_collapse)which;
    st = cli_only(c, "layers,kind,select", false, "cuts without --one-layer");
    if (!st && o->cut.nexact > 1)
        st = pare_fail(&c->err, PARE_ERR_USAGE,
                       "--one-layer leaves one layer: --exact may name one to keep, not %zu",
                       o->cut.nexact);
    o->one.keep = o->cut.nexact ? o->cut.exact[0] : PARE_DEPTH_UNSET;
    return st;
}

/* What has no meaning in this call; the rest needs the model (check_model). */
static pare_status check_options(cli *c, const depth_opts *o)
{
    pare_status st = cli_only(c, "heldout,prove,windows,tokens", o->r.data != NULL, "--data FILE");
    if (!st) st = cli_only(c, "ball-norm", o->ball > 0, "--ball R");
    if (!st)
        st = cli_only(c, "select", o->layers != PARE_DEPTH_UNSET || o->search,
                      "--layers K or --max-error E: with --exact alone nothing is chosen");
    return st;
}

static pare_status settle(cli *c, void *self)
{
    depth_opts *const o = self;
    pare_status st = read_list(c, o);
    o->r.heldout = o->heldout;
    o->cut.layers = o->layers;
    o->cut.select = (pare_depth_select)o->select;
    o->cut.kind =
        o->kind == PARE_DEPTH_KINDS ? PARE_ATTN_NONE : (pare_attn_kind)(PARE_ATTN_ZERO + o->kind);
    if (!st) st = settle_one(c, o);
    o->search = o->layers == PARE_DEPTH_UNSET && !o->one_layer && isfinite(o->r.max_error);
    if (!st && o->layers == PARE_DEPTH_UNSET && !o->exact && !o->one_layer && !o->search)
        st =
            pare_fail(&c->err, PARE_ERR_USAGE,
                      "say what stays: --layers K (how many attention layers), --exact LIST (which "
                      "ones) or --max-error E (the fewest within that error)");
    return st ? st : check_options(c, o);
}

/* The same, where the model decides. */
static pare_status check_model(cli *c, const depth_opts *o, const pare_model *m)
{
    const bool text = m->stem.ids && m->top.pool == PARE_POOL_NONE;
    pare_status st = reduce_split_applies(c, m);
    if (!st) st = cli_only(c, "tokens", text, "language models, whose texts are long");
    if (!st)
        st = cli_only(c, "input-diam", !m->stem.ids,
                      "models that take vectors; of tokens the bound covers all sequences");
    if (st || o->r.data) return st;
    if (o->one_layer ? pare_depth_one_needs_data(&o->one)
                     : !o->search && pare_depth_needs_data(m, &o->cut))
        st = pare_fail(
            &c->err, PARE_ERR_USAGE,
            "--data FILE is needed: this cut is chosen or fitted by it; without data only "
            "%s",
            o->one_layer ? "collapses that take no means and --exact K work"
                         : "--exact LIST (or --layers 0) with --kind zero, uniform or "
                           "meanq works");
    return st;
}

/* ---- results ------------------------------------------------------------------------------- */

static void print_layers(const pare_depth_report *p)
{
    const bool influence = p->nlayers > 0 && !isnan(p->layers[0].influence_est);
    out_row("  layer", "%-9s %24s%s", "attention", "error if replaced alone",
            influence ? "   influence" : "");
    for (size_t l = 0; l < p->nlayers; l++) {
        const pare_depth_layer *const d = &p->layers[l];
        char cost[24] = "-", weight[24] = "";
        if (!isnan(d->loo_est)) snprintf(cost, sizeof cost, "%.3g", d->loo_est);
        if (influence) snprintf(weight, sizeof weight, "%12.4g", d->influence_est);
        out_line("  %-11zu%-9s %24s%s", d->block, pare_attn_name(d->kind), cost, weight);
    }
}

static void print_cut(const depth_opts *o)
{
    const pare_depth_report *const p = &o->report;
    static const char *const by[] = {"greedily", "among all choices", "by what each costs alone",
                                     "by block influence"};
    char words[160], kept[40] = "", how[80] = "";
    if (o->one_report.keep != PARE_DEPTH_UNSET)
        snprintf(kept, sizeof kept, ", layer %zu kept", o->one_report.keep);
    if (o->one_layer) {
        snprintf(words, sizeof words, "all attention layers become one: %s%s", o->one_layer, kept);
        show_shapes(&o->r, words);
        return;
    }
    const bool chosen = p->exact > o->cut.nexact; /* else they were named, or none stays */
    if (chosen)
        snprintf(how, sizeof how, ", chosen %s (--select %s)", by[o->select],
                 pare_depth_select_names[o->select]);
    snprintf(words, sizeof words, "%zu of %zu attention layers replaced (kind %s)%s",
             p->nlayers - p->exact, p->nlayers, pare_depth_kind_names[o->kind], how);
    show_shapes(&o->r, words);
    print_layers(p);
}

static void print_people(const cli *c, const pare_model *m, const void *self)
{
    const depth_opts *const o = self;
    (void)m;
    show_results(c, &o->r);
    print_cut(o);
    show_end(c, &o->r);
}

static bool json_layers(cJSON *to, const pare_depth_report *p)
{
    cJSON *const list = pare_json_add_array(to, "layers");
    bool ok = list != NULL;
    for (size_t l = 0; ok && l < p->nlayers; l++) {
        const pare_depth_layer *const d = &p->layers[l];
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_size(o, "layer", d->block) &&
             pare_json_add_string(o, "kind", pare_attn_name(d->kind)) &&
             (isnan(d->loo_est) || pare_json_add_number(o, "leave_one_out", d->loo_est)) &&
             (isnan(d->influence_est) ||
              pare_json_add_number(o, "block_influence", d->influence_est));
    }
    return ok;
}

static bool json_cut(cJSON *root, const depth_opts *o)
{
    cJSON *const to = pare_json_add_object(root, "cut");
    if (o->one_layer)
        return to && pare_json_add_string(to, "one_layer", o->one_layer) &&
               (o->one_report.keep == PARE_DEPTH_UNSET ||
                pare_json_add_size(to, "kept", o->one_report.keep));
    return to && pare_json_add_string(to, "kind", pare_depth_kind_names[o->kind]) &&
           pare_json_add_string(to, "select", pare_depth_select_names[o->select]) &&
           pare_json_add_size(to, "exact", o->report.exact) && json_layers(to, &o->report);
}

static pare_status print_json(cli *c, const void *self)
{
    const depth_opts *const o = self;
    cJSON *root = out_json_begin(c);
    return out_json(c, root,
                    reduce_json_front(root, &o->r) && json_cut(root, o) &&
                        reduce_json_end(root, &o->r));
}

/* ---- the cut ------------------------------------------------------------------------------- */

static pare_status load_data(cli *c, depth_opts *o, const pare_model *m)
{
    const bool text = m->stem.ids && m->top.pool == PARE_POOL_NONE;
    const size_t held = text ? DEPTH_HELD_OUT_TEXT : DEPTH_HELD_OUT;
    const cut_plan plan = {.split = o->split,
                           .windows = o->windows,
                           .fit_tokens = o->tokens,
                           .held = o->prove > held ? o->prove : held,
                           .proven = o->prove ? o->prove
                                     : text   ? DEPTH_PROVEN_TEXT
                                              : DEPTH_HELD_OUT,
                           .proven_tokens = DEPTH_PROVEN_TOKENS,
                           .work = DEPTH_WORK,
                           .only_texts = true,
                           .unseen =
                               !o->search && (o->one_layer ? !pare_depth_one_needs_data(&o->one)
                                                           : !pare_depth_needs_data(m, &o->cut))};
    pare_status st = o->heldout ? cut_data_load_two(c, &o->d, m, o->r.data, o->heldout, &plan)
                                : cut_data_load(c, &o->d, m, o->r.data, &plan);
    if (st || !o->r.data) return st;
    /* --max-error: how many stay is chosen by what is proven on them */
    next_ask(c, &o->r, &o->d, o->search);
    return PARE_OK;
}

/* The report lives in the cut model, which publishing frees: what is shown is copied. */
static pare_status keep_report(cli *c, pare_depth_report *p)
{
    pare_depth_layer *const copy = pare_alloc(c->arena, p->nlayers ? p->nlayers : 1, sizeof *copy);
    if (!copy) return pare_no_memory(&c->err);
    if (p->nlayers) memcpy(copy, p->layers, p->nlayers * sizeof *copy);
    p->layers = copy;
    if (p->unknowns > p->tokens)
        cli_note(c,
                 "the cut is fitted to %zu tokens, fewer than the %zu unknowns of one output; more "
                 "--data would help",
                 p->tokens, p->unknowns);
    return PARE_OK;
}

static pare_status make(cli *c, depth_opts *o, pare_model **small, const pare_model *m)
{
    const pare_inputs *const fit = o->r.data ? &o->d.fit : NULL;
    if (o->one_layer)
        return pare_depth_one_layer(small, &o->one_report, m, fit, &o->one, &c->exec, &c->err);
    const pare_status st = pare_depth(small, &o->report, m, fit, &o->cut, &c->exec, &c->err);
    return st ? st : keep_report(c, &o->report);
}

/* What the certificate is to say beside the headline. */
static void ask(depth_opts *o)
{
    if (o->ball > 0) o->r.ask[o->r.nask++] = pare_ball_claim(o->ball, (pare_ball_norm)o->ball_norm);
    if (o->diam > 0) o->r.ask[o->r.nask++] = pare_depth_diameter(o->diam);
}

static pare_status make_and_publish(cli *c, depth_opts *o, const pare_model *m)
{
    pare_model *small = NULL;
    cli_phase(c, NULL, o->search ? 10 : 60);
    pare_status st = make(c, o, &small, m);
    cli_phase(c, NULL, o->search ? 10 : 30);
    if (!st) st = reduce_publish(c, &o->r, m, &small, &o->d.held, &pare_depth_prover);
    if (!st && o->r.data) next_prove_note(c, &o->d, o->prove);
    pare_model_free(small);
    return st;
}

static pare_status none_will_do(cli *c, const depth_opts *o, double best, size_t at, bool all)
{
    char bound[40];
    return pare_fail(&c->err, PARE_ERR_PROMISE,
                     "no cut that was tried stays within --max-error %g: the best proven bound is "
                     "%s, with %zu exact layer%s; nothing was written%s",
                     o->r.max_error, pare_ub_format(bound, pare_ub_exact(best), 3), at,
                     at == 1 ? "" : "s", all ? "" : " (with --data more cuts can be tried)");
}

/* The fewest exact layers whose proven headline keeps the promise. One more need not be better, so
 * they are tried one by one from the fewest. */
static pare_status fewest_layers(cli *c, depth_opts *o, const pare_model *m)
{
    double best = INFINITY;
    size_t at = o->cut.nexact;
    for (size_t k = at;; k++) {
        o->cut.layers = k;
        const pare_status st = make_and_publish(c, o, m);
        if (st != PARE_ERR_PROMISE) return st;
        if (o->r.cert.proven < best) best = o->r.cert.proven, at = k;
        if (k + 1 >= o->report.nlayers) return none_will_do(c, o, best, at, true);
        o->cut.layers = k + 1;
        if (!o->r.data && pare_depth_needs_data(m, &o->cut))
            return none_will_do(c, o, best, at, false);
    }
}

static pare_status cut(cli *c, void *self, const pare_model *m)
{
    depth_opts *const o = self;
    pare_status st = check_model(c, o, m);
    if (!st) st = load_data(c, o, m);
    ask(o);
    if (!st) st = o->search ? fewest_layers(c, o, m) : make_and_publish(c, o, m);
    o->r.held_out = o->d.apart;
    return st ? st : reduce_compare(c, &o->r, m, &o->d.held);
}

static const char *const kind_help[] = {
    "nothing",
    "a constant row, fitted",
    "the average of the values it sees",
    "attention with one fitted query for all tokens",
    "attention with the mean of all queries",
    "a linear map of the token, fitted",
    "linear maps of the token and of the average, fitted",
    "a linear map of the token and of what one query for all gathers, fitted",
    "of each layer the kind that costs least",
    NULL};
static const char *const select_help[] = {
    "replace one layer after another, each time the one that costs least",
    "try all choices, where there are at most 2000", "by what replacing each layer alone costs",
    "by how little a block changes its input (the usual heuristic)", NULL};
static const char *const norm_help[] = {"largest entry", "Euclidean length of a row", NULL};

int cmd_depth(int argc, char **argv)
{
    depth_opts o = {.layers = PARE_DEPTH_UNSET,
                    .kind = PARE_DEPTH_KINDS,
                    .one_report = {.keep = PARE_DEPTH_UNSET},
                    .windows = DEPTH_WINDOWS,
                    .tokens = DEPTH_TOKENS,
                    .ball_norm = PARE_BALL_TWO};
    o.r.max_error = INFINITY;
    o.r.output_error = NAN;
    opt data = opt_data(&o.r.data,
                        "inputs that the cut is fitted to and proven on; needed unless the cut is "
                        "chosen by hand and not fitted",
                        "64 random inputs to prove on");
    data.group = "Data";
    /* clang-format off */
    const opt own[] = {
        {.name = "layers", .kind = OPT_SIZE, .to = &o.layers, .metavar = "K", .max = REDUCE_MOST, .group = "What to cut",
         .unset = "as many as --exact names", .help = "attention layers that stay as they are; the others are replaced"},
        {.name = "exact", .kind = OPT_TEXT, .to = &o.exact, .metavar = "LIST", .unset = "none",
         .help = "layers that stay, such as 0,3 (counted from 0); --layers may add more"},
        {.name = "kind", .kind = OPT_CHOICE, .to = &o.kind, .metavar = "W", .choices = pare_depth_kind_names, .choice_help = kind_help,
         .help = "what replaces attention; auto is best for most models, --help all explains the others"},
        {.name = "select", .kind = OPT_CHOICE, .to = &o.select, .metavar = "W", .choices = pare_depth_select_names, .choice_help = select_help, .rare = true,
         .help = "how the layers that stay are chosen"},
        {.name = "one-layer", .kind = OPT_TEXT, .to = &o.one_layer, .metavar = "W", .unset = "no", .rare = true,
         .help = "replace all layers of a network of attention and skips alone by one: identity, keep, keepbias, parallel, uniform, uniform+keep, parallel+uniform, rankone or umix"},
        REDUCE_MAX_ERROR(o.r.max_error, "; without --layers: keep as few layers as E allows"),
        data,
        REDUCE_HELDOUT(o.heldout, "the last quarter of --data"),
        NEXT_PROVE(o.prove, "8 texts, or all other inputs"),
        opt_split(&o.split),
        REDUCE_WINDOWS(o.windows),
        REDUCE_TOKENS(o.tokens),
        REDUCE_BALL(o.ball, ""),
        {.name = "ball-norm", .kind = OPT_CHOICE, .to = &o.ball_norm, .metavar = "W", .choices = pare_depth_ball_norms, .choice_help = norm_help, .rare = true,
         .help = "in which norm the distance of --ball is measured"},
        {.name = "input-diam", .kind = OPT_REAL, .to = &o.diam, .metavar = "D", .unset = "no", .low = 1e-30, .high = 1e30, .rare = true,
         .help = "also prove a bound for all inputs of vectors whose tokens are at most D apart in every entry"},
    };
    /* clang-format on */
    static const char *const operands[] = {"MODEL", NULL};
    const opt_spec spec = {
        .command = "depth",
        .args = "MODEL --data FILE --layers K -o OUT",
        .about =
            "Replaces all but K attention layers by something cheaper and certifies what that\n"
            "costs. Skip connections and feed-forward layers stay.",
        .examples = {"depth model.safetensors --data text.txt --layers 8 -o flat.safetensors",
                     "depth model.safetensors --exact 0,3 --kind uniform -o flat.safetensors"},
        .seeded = true,
        .own = own,
        .nown = sizeof own / sizeof *own,
        .operands = operands,
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MUST_OUT, REDUCE_OUT_HELP, argc, argv, &rc)) return rc;
    const reduce_steps steps = {settle, cut, print_people, print_json};
    return cli_finish(&c, reduce_run(&c, &o.r, &steps, &o));
}
