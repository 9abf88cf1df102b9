/* cmd_depth.c - pare depth: a model with fewer attention layers, with its certificate. */
#include "base/json.h"
#include "reduce_command.h"
#include "show_cut.h"

#include <math.h>

typedef struct depth_opts {
    size_t kind, select;
    const char *exact, *one_layer;
    double ball; /* radius; 0: none */
    size_t ball_norm;
    double diam; /* of inputs that the theorems speak of; 0: none */
    reduction r;
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
            return cli_usage_error(
                c, "--exact %s: give layer numbers separated by commas, such as 0,3", o->exact);
        }
    }
    o->r.o.depth.exact = list;
    o->r.o.depth.nexact = n;
    return PARE_OK;
}

/* Whether --max-error looks for the fewest exact layers. */
static bool searches(const depth_opts *o)
{
    return o->r.o.depth.layers == PARE_DEPTH_UNSET && !o->r.o.depth.blocks && !o->one_layer &&
           isfinite(o->r.o.max_error);
}

/* What has no meaning in this call; the rest needs the model (check_model). */
static pare_status check_options(cli *c, void *self)
{
    depth_opts *const o = self;
    pare_reduce_opts *const r = &o->r.o;
    pare_depth_opts *const d = &r->depth;
    pare_status st = read_list(c, o);
    d->select = (pare_depth_select)o->select;
    d->kind =
        o->kind == PARE_DEPTH_KINDS ? PARE_ATTN_NONE : (pare_attn_kind)(PARE_ATTN_ZERO + o->kind);
    if (!st && o->one_layer) {
        size_t which;
        st = cli_choose(c, &which, "--one-layer", o->one_layer, pare_collapse_names);
        if (st) return st;
        r->kind = PARE_REDUCE_ONE_LAYER;
        r->one_layer.which = (pare_collapse)which;
        r->one_layer.keep = d->nexact ? d->exact[0] : PARE_DEPTH_UNSET;
        st = cli_only(c, "layers,kind,select", false, "cuts without --one-layer");
        if (!st && d->nexact > 1)
            st = cli_usage_error(
                c, "--one-layer leaves one layer: --exact may name one to keep, not %zu",
                d->nexact);
    }
    const bool chosen = d->layers != PARE_DEPTH_UNSET || searches(o);
    if (!st)
        st = cli_only(c, "layers,exact,kind,select,one-layer", !d->blocks, "cuts without --blocks");
    if (!st && !chosen && !o->exact && !o->one_layer && !d->blocks)
        st = cli_usage_error(
            c, "say what stays: --layers K (how many attention layers), --exact LIST (which "
               "ones), --blocks K (whole blocks) or --max-error E (the fewest layers within that "
               "error)");
    if (st) return st;
    if (o->ball > 0) r->ask[r->nask++] = pare_ball_claim(o->ball, (pare_ball_norm)o->ball_norm);
    if (o->diam > 0) r->ask[r->nask++] = pare_depth_diameter(o->diam);
    const cli_rule rules[] = {
        {"heldout,prove,windows,tokens,fit-tokens", r->data != NULL, "--data FILE"},
        {"ball-norm", o->ball > 0, "--ball R"},
        {"select", chosen, "--layers K or --max-error E: with --exact alone nothing is chosen"},
        {0},
    };
    return cli_check_rules(c, rules);
}

/* The same, where the model decides. */
static pare_status check_model(cli *c, void *self, const pare_model *m)
{
    const depth_opts *const o = self;
    pare_status st = reduce_split_applies(c, NULL, m);
    if (!st) st = cli_only(c, "tokens", m->embedding.ids, "models that take tokens");
    if (!st)
        st = cli_only(c, "input-diam", !m->embedding.ids,
                      "models that take vectors; of tokens the bound covers all sequences");
    if (st || o->r.o.data) return st;
    if (o->one_layer ? pare_depth_one_needs_data(&o->r.o.one_layer)
                     : !searches(o) && pare_depth_needs_data(m, &o->r.o.depth))
        st = cli_usage_error(
            c,
            "--data FILE is needed: this cut is chosen or fitted by it; without data only "
            "%s",
            o->one_layer ? "collapses that take no means and --exact K work"
                         : "--exact LIST (or --layers 0) with --kind zero, uniform or "
                           "meanq works");
    return st;
}

/* ---- results ------------------------------------------------------------------------------- */

static void print_text(const cli *c, const void *self)
{
    const depth_opts *const o = self;
    const pare_reduction *const r = &o->r.r;
    const pare_depth_report *const p = &r->depth;
    static const char *const by[] = {"greedily", "among all choices", "by what each costs alone",
                                     "by block influence"};
    char words[160], kept[40] = "", how[80] = "";
    show_results(c, r);
    if (r->one_layer.keep != PARE_DEPTH_UNSET)
        snprintf(kept, sizeof kept, ", layer %zu kept", r->one_layer.keep);
    if (p->exact > o->r.o.depth.nexact) /* else they were named, or none stays */
        snprintf(how, sizeof how, ", chosen %s (--select %s)", by[o->select],
                 pare_depth_select_names[o->select]);
    if (o->r.o.depth.blocks)
        snprintf(words, sizeof words, "%zu of %zu blocks removed, attention and feed-forward layer",
                 p->nlayers - p->exact, p->nlayers);
    else if (o->one_layer)
        snprintf(words, sizeof words, "all attention layers become one: %s%s", o->one_layer, kept);
    else
        snprintf(words, sizeof words, "%zu of %zu attention layers replaced (kind %s)%s",
                 p->nlayers - p->exact, p->nlayers, pare_depth_kind_names[o->kind], how);
    show_shapes(r, words);
    if (!o->one_layer) {
        const bool influence = p->nlayers > 0 && !isnan(p->layers[0].influence_est);
        const bool whole = o->r.o.depth.blocks > 0;
        out_row(whole ? "  block" : "  layer", "%-9s %24s%s", "attention",
                whole ? "error if removed alone" : "error if replaced alone",
                influence ? "   influence" : "");
        for (size_t l = 0; l < p->nlayers; l++) {
            const pare_depth_layer *const d = &p->layers[l];
            char cost[24] = "-", weight[24] = "";
            if (!isnan(d->loo_est)) snprintf(cost, sizeof cost, "%.3g", d->loo_est);
            if (influence) snprintf(weight, sizeof weight, "%12.4g", d->influence_est);
            const bool removed = d->kind == PARE_ATTN_NONE;
            out_line("  %-11zu%-9s %24s%s", d->block, removed ? "removed" : pare_attn_name(d->kind),
                     cost, weight);
        }
    }
    show_end(c, r);
}

static pare_status print_json(cli *c, const void *self)
{
    const depth_opts *const o = self;
    const pare_reduction *const r = &o->r.r;
    cJSON *const root = out_json_begin(c), *list = NULL;
    cJSON *const to = reduce_json_front(root, r) ? pare_json_add_object(root, "cut") : NULL;
    bool ok = to != NULL;
    if (ok && o->one_layer) {
        ok = pare_json_add_values(to, "one_layer:s", o->one_layer) &&
             (r->one_layer.keep == PARE_DEPTH_UNSET ||
              pare_json_add_values(to, "kept:z", r->one_layer.keep));
    } else if (ok && r->depth.nlayers && o->r.o.depth.blocks) {
        ok = pare_json_add_values(to, "blocks:z of:z", r->depth.exact, r->depth.nlayers) &&
             (list = pare_json_add_array(to, "layers"));
    } else if (ok) {
        ok = pare_json_add_values(to, "kind:s select:s exact:z", pare_depth_kind_names[o->kind],
                                  pare_depth_select_names[o->select], r->depth.exact) &&
             (list = pare_json_add_array(to, "layers"));
    }
    for (size_t l = 0; ok && list && l < r->depth.nlayers; l++) {
        const pare_depth_layer *const d = &r->depth.layers[l];
        ok = pare_json_add_record(list, NULL, "layer:z kind:s leave_one_out:N block_influence:N",
                                  d->block, pare_attn_name(d->kind), d->loo_est, d->influence_est);
    }
    return out_json(c, root, ok && reduce_json_end(root, r));
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
    depth_opts o = {.kind = PARE_DEPTH_KINDS,
                    .ball_norm = PARE_BALL_TWO,
                    .r.o = PARE_REDUCE_OPTS_DEFAULT(PARE_REDUCE_DEPTH)};
    pare_reduce_opts *const r = &o.r.o;
    opt data = opt_data(&r->data,
                        "inputs that the cut is fitted to and proven on; needed unless the cut is "
                        "chosen by hand and not fitted",
                        "64 random inputs to prove on");
    data.group = "Data";
    /* clang-format off */
    const opt own[] = {
        {.name = "layers", .kind = OPT_SIZE, .to = &r->depth.layers, .metavar = "K", .max = REDUCE_MOST, .group = "What to cut",
         .unset = "as many as --exact names", .help = "attention layers that stay as they are; the others are replaced"},
        {.name = "exact", .kind = OPT_TEXT, .to = &o.exact, .metavar = "LIST", .unset = "none",
         .help = "layers that stay, such as 0,3 (counted from 0); --layers may add more"},
        {.name = "blocks", .kind = OPT_SIZE, .to = &r->depth.blocks, .metavar = "K", .min = 1, .max = REDUCE_MOST, .unset = "all",
         .help = "instead: remove whole blocks until K are left, one after the other, each time the one that costs least"},
        {.name = "kind", .kind = OPT_CHOICE, .to = &o.kind, .metavar = "W", .choices = pare_depth_kind_names, .choice_help = kind_help,
         .help = "what replaces attention; auto is best for most models, --help all explains the others"},
        {.name = "select", .kind = OPT_CHOICE, .to = &o.select, .metavar = "W", .choices = pare_depth_select_names, .choice_help = select_help, .rare = true,
         .help = "how the layers that stay are chosen"},
        {.name = "one-layer", .kind = OPT_TEXT, .to = &o.one_layer, .metavar = "W", .unset = "no", .rare = true,
         .help = "replace all layers of a network of attention and skips alone by one: identity, keep, keepbias, parallel, uniform, uniform+keep, parallel+uniform, rankone or umix"},
        REDUCE_MAX_ERROR(r->max_error, "; without --layers: keep as few layers as E allows"),
        REDUCE_ANY_SHAPE(o.r.any_shape),
        REDUCE_DTYPE(o.r.dtype),
        REDUCE_ALLOW_LARGER(r->allow_larger),
        data,
        REDUCE_HELDOUT(r->heldout, REDUCE_USUAL_HELDOUT),
        REDUCE_PROVE(r->prove),
        REDUCE_TOKENS(r->proven_tokens),
        opt_split(&r->split),
        opt_column(&r->column),
        REDUCE_WINDOWS(r->fit_inputs),
        REDUCE_FIT_TOKENS(r->fit_tokens),
        REDUCE_BALL(o.ball, ""),
        {.name = "ball-norm", .kind = OPT_CHOICE, .to = &o.ball_norm, .metavar = "W", .choices = pare_depth_ball_norms, .choice_help = norm_help, .rare = true,
         .help = "in which norm the distance of --ball is measured"},
        {.name = "input-diam", .kind = OPT_REAL, .to = &o.diam, .metavar = "D", .unset = "no", .low = 1e-30, .high = 1e30, .rare = true,
         .help = "also prove a bound for all inputs of vectors whose tokens are at most D apart in every entry"},
    };
    /* clang-format on */
    const opt_spec spec = {
        .command = "depth",
        .args = "MODEL --data FILE (--layers K | --blocks K) -o OUT",
        .about =
            "Replaces all but K attention layers by something cheaper and certifies what that\n"
            "costs. Skip connections and feed-forward layers stay.",
        .examples = {"depth model.safetensors --data text.txt --layers 8 -o flat.safetensors",
                     "depth minilm/ --data sentences.txt --blocks 5 -o minilm-5/"},
        .seeded = true,
        OPT_ROWS(own),
        .operands = (const char *const[]){"MODEL", NULL},
    };
    static const reduce_steps steps = {check_options, check_model, print_text, print_json};
    return reduce_command(&spec, argc, argv, &o.r, &steps, &o);
}
