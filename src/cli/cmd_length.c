/* cmd_length.c - pare length: a plan of small calls, by which an engine that takes M tokens runs N
 * of them. */
#include "backend.h"
#include "length_pack.h"
#include "out.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ORACLE = 1 << 24, USUAL_TOKENS = 1024 };
#define TOKENS_NOT_GIVEN SIZE_MAX

typedef struct length_opts {
    size_t tokens, mode, mask, dtype, blocks;
    const char *oracle, *data, *backend;
    pare_length_input in;
    bool fixed, apart, host, single, dry, no_fallback, certify, pack;
    double penalty; /* --pack */
    size_t rows;
    pare_length_cert cert;
    double eps, delta;
    pare_length_plan plan;
    double call_ms; /* of one call on this machine's own engine; < 0: not measured */
} length_opts;

static const char *const masks[] = {"any", "full", "causal", NULL};
static const char *const types[] = {"f32", "f64", NULL};

/* ---- the oracle the plan is for -------------------------------------------------------------- */

/* M or M,L',H' */
static pare_status read_oracle(cli *c, const char *text, uint32_t out[3])
{
    const char *at = text;
    out[1] = out[2] = 1;
    for (size_t i = 0; i < 3; i++) {
        char *end;
        const unsigned long v = strtoul(at, &end, 10);
        if (end == at || *at < '0' || *at > '9' || v < 1 || v > MOST_ORACLE ||
            (*end && *end != ',') || (*end == ',' && i == 2) || (!*end && i == 1))
            break;
        out[i] = (uint32_t)v;
        if (!*end) return PARE_OK;
        at = end + 1;
    }
    return cli_usage_error(
        c,
        "--oracle %s: give the tokens of one call, M, or M,LAYERS,HEADS; each is a whole "
        "number from 1 to %d",
        text, MOST_ORACLE);
}

/* ---- what is printed ------------------------------------------------------------------------- */

/* What the calls cost beside plain attention over all tokens at once. */
static void print_cost(const cli *c, const pare_length_cost *k)
{
    const double ratio = k->direct_flops > 0 ? k->flops / k->direct_flops : 1;
    const double padded = k->pairs > 0 ? k->computed_pairs / k->pairs : 1;
    char more[64] = "no extra multiplications", padding[64] = "no padding", a[64], b[64];
    if (ratio < 0.9995 || ratio >= 1.0005)
        snprintf(more, sizeof more, "%.3g times the multiplications of attention in one piece",
                 ratio);
    if (padded >= 1.0005)
        snprintf(padding, sizeof padding, "%.3g %% of the computed scores are padding",
                 100 * (1 - 1 / padded));
    out_row("cost", "%s, %s", more, padding);
    out_row("traffic", "%s to the engine, %s back", out_bytes(a, (uint64_t)k->bytes_in),
            out_bytes(b, (uint64_t)k->bytes_out));
    out_row("memory", "%s of scratch memory at most", out_bytes(a, (uint64_t)k->scratch_bytes));
    if (!c->verbose) return;
    out_row("flops", "%.4g in calls, %.4g of attention in one piece, %.3g to merge", k->flops,
            k->direct_flops, k->outside_flops);
    out_row("weights", "%.0f bytes of distinct weights", k->weight_bytes);
}

static void print_text(const cli *c, const length_opts *o)
{
    static const char *const meaning[] = {
        [PARE_LENGTH_AUTO] = "",
        [PARE_LENGTH_NATIVE] = "exact; the engine returns partial softmax sums, merged outside",
        [PARE_LENGTH_ZEROREF] = "exact; plain softmax calls with one reference key, merged outside",
        [PARE_LENGTH_STRICT] = "exact; calls merge the partial results too",
        [PARE_LENGTH_PAPER] = "the algorithm of Yu 2025 as printed, for comparison",
        [PARE_LENGTH_SAMPLE] =
            "approximate: a sample of the keys, with an error bound for each row",
        [PARE_LENGTH_CHUNK] = "approximate: each chunk attends to itself only, no error bound",
    };
    static const char *const patterns[] = {"full attention", "causal attention",
                                           "attention within a window of",
                                           "attention over a graph"};
    const pare_length_plan *const p = &o->plan;
    const pare_length_cost *const k = &p->cost;
    char a[64], b[64], d[64];
    out_row("plan", "%s tokens on an engine that takes %u (%s%s)", out_count(d, p->tokens),
            (unsigned)p->caps.max_len, types[p->caps.dtype == PARE_F64],
            p->tokens && p->tokens <= p->caps.max_len ? "; it takes all of them" : "");
    if (p->caps.layers > 1 || p->caps.heads > 1)
        out_row("", "of %u layers with %u heads", (unsigned)p->caps.layers,
                (unsigned)p->caps.heads);
    out_part("%-12s %zu %s, %zu %s in all, %s", "model", p->layers,
             p->layers == 1 ? "layer" : "layers", p->nheads, p->nheads == 1 ? "head" : "heads",
             patterns[p->pattern.kind]);
    if (p->pattern.kind == PARE_WINDOW)
        out_part(" %zu, %zu sinks", p->pattern.window, p->pattern.sinks);
    putchar('\n');
    out_part("%-12s %s in %llu %s", "calls", out_count(a, k->calls), (unsigned long long)k->rounds,
             k->rounds == 1 ? "round" : "rounds");
    if (k->lower) out_part("; lower bound for any plan: %s", out_count(b, k->lower));
    if (k->theorem) out_part("; Yu 2025 needs %s", out_count(b, k->theorem));
    putchar('\n');
    if (k->merge_calls || k->instances != k->calls)
        out_row("", "they hold %s pieces of attention; %llu of them only merge results",
                out_count(a, k->instances), (unsigned long long)k->merge_calls);
    if (c->verbose && k->formula)
        out_row("", "the closed form of this pattern gives %s", out_count(a, k->formula));
    print_cost(c, k);
    out_row("mode", "%s: %s", pare_length_mode_name(p->opts.mode), meaning[p->opts.mode]);
    out_row("call size", "at most %llu rows; queries and keys of %llu numbers, values of %llu",
            (unsigned long long)k->max_len, (unsigned long long)k->d_k, (unsigned long long)k->d_v);
    if (c->verbose)
        out_row("", "a token of %llu numbers; a row is merged from up to %llu partial results",
                (unsigned long long)k->d_token, (unsigned long long)k->max_partials);
    if (o->certify) {
        out_row("proven", "rounding moves no output of a head by more than %s (median row %s)",
                pare_ub_format(b, pare_ub_exact(pare_length_cert_written(o->cert.proven)), 4),
                pare_ub_format(d, pare_ub_of(o->cert.proven_median), 4));
        out_row("", "on %s", pare_length_cert_domain(o->data));
        out_row("measured", "%.3g, the largest difference from extended precision, on %zu rows",
                o->cert.measured, o->cert.rows);
        if (o->cert.bad_rows)
            out_row("", "%llu rows needed a second round of calls",
                    (unsigned long long)o->cert.bad_rows);
        if (c->verbose)
            out_row("a priori", "%s from norms alone",
                    pare_ub_format(b, pare_ub_exact(pare_length_cert_written(o->cert.apriori)), 4));
    }
    if (o->call_ms >= 0)
        out_row("time", "%.3g ms here if every call takes as long as one of the largest (%.3g ms)",
                o->call_ms * (double)k->calls, o->call_ms);
    if (!o->dry && c->out) {
        out_row("wrote", "%s; run it: pare run %s --plan %s", c->out, c->operand[0], c->out);
        if (o->certify)
            out_row("certificate", "%s.cert.json; check it: pare verify %s.cert.json", c->out,
                    c->out);
    }
}

static pare_status print_json(cli *c, const length_opts *o)
{
    char *plan = NULL;
    const pare_status st = pare_length_plan_text(&plan, c->arena, &o->plan, &c->err);
    if (st) return st;
    cJSON *const root = out_json_begin(c);
    bool ok = root && out_json_text(root, "plan", plan);
    if (o->call_ms >= 0)
        ok = ok && pare_json_add_values(root, "call_ms:g predicted_ms:g", o->call_ms,
                                        o->call_ms * (double)o->plan.cost.calls);
    if (!o->dry && c->out) ok = ok && pare_json_add_values(root, "output:s", c->out);
    return out_json(c, root, ok);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Options that would be ignored are refused. */
static pare_status check_options(cli *c, const length_opts *o)
{
    const cli_rule rules[] = {
        {"mode,mask,static,no-pack,host-remainder,one-vector,certify,dry-run,tokens", !o->pack,
         "the plan of one long input, not with --pack"},
        {"backend,penalty", o->pack, "--pack (a plan is run by `pare run MODEL --plan PLAN`)"},
        {"rows", o->certify || (o->pack && !(o->penalty > 0)),
         "--certify, or with --pack without --penalty"},
        {"tokens", !o->data, "plans without --data, which says how long the input is"},
        {0},
    };
    const pare_status st = cli_check_rules(c, rules);
    if (st || o->pack) return st;
    if (!o->dry && !c->out)
        return cli_usage_error(c, "-o PLAN is missing; --dry-run prints the costs without a file");
    if (o->dry && c->out)
        return cli_usage_error(c, "--dry-run writes nothing: leave -o %s out, or --dry-run",
                               c->out);
    if (o->dry && o->certify)
        return cli_usage_error(c, "--certify runs the plan and writes files: leave --dry-run out");
    return PARE_OK;
}

/* The input and its plan: the number of tokens is enough unless the plan is run, or the pattern is
 * a graph of the data. */
static pare_status make_plan(cli *c, length_opts *o, pare_model *m)
{
    static const uint32_t by_mask[] = {PARE_ORC_FULL | PARE_ORC_CAUSAL, PARE_ORC_FULL,
                                       PARE_ORC_CAUSAL};
    const char *const path = c->operand[0];
    pare_length_head *heads;
    uint32_t engine[3];
    size_t count = 0;
    pare_status st = PARE_OK;
    if (pare_length_may_exceed(m)) m->context = 0;
    if (o->tokens == TOKENS_NOT_GIVEN)
        o->tokens = m->context && m->context < USUAL_TOKENS ? m->context : USUAL_TOKENS;
    if (m->pattern.kind == PARE_GRAPH && !o->data)
        return pare_fail(&c->err, PARE_ERR_INPUT,
                         "%s attends over a graph: a plan depends on its edges, so give the graph "
                         "with --data",
                         path);
    if (!o->data && m->context && o->tokens > m->context)
        return pare_fail(&c->err, PARE_ERR_INPUT,
                         "%s takes at most %zu tokens (its positions are learned), so no plan for "
                         "%zu could run: give --tokens %zu or less",
                         path, m->context, o->tokens, m->context);
    o->in.in.tokens = o->tokens;
    if (o->data || o->certify)
        st = pare_length_input_read(&o->in, c->arena, m, o->data, o->tokens, c->seed, &c->err);
    if (!st) st = read_oracle(c, o->oracle, engine);
    if (!st) st = pare_length_heads(&heads, &count, c->arena, m, &c->err);
    if (!st && !count)
        st = pare_fail(&c->err, PARE_ERR_INPUT, "%s has no softmax attention to plan", path);
    if (st) return st;
    const bool strict = o->mode == PARE_LENGTH_STRICT || engine[1] > 1 || engine[2] > 1;
    const bool partial = o->mode <= PARE_LENGTH_NATIVE && !strict && !o->mask && !o->fixed;
    const pare_oracle_caps caps = {
        .size = sizeof(pare_oracle_caps),
        .features = by_mask[o->mask] |
                    (strict ? PARE_ORC_STRICT | PARE_ORC_WIDE_HEAD : PARE_ORC_QKV) |
                    (partial ? PARE_ORC_PARTIAL : 0) | (o->fixed ? PARE_ORC_STATIC : 0),
        .max_len = engine[0],
        .layers = engine[1],
        .heads = engine[2],
        .dtype = o->dtype ? PARE_F64 : PARE_F32,
        .exp_flush = o->dtype ? 746 : 104,
        .exp_err = o->dtype ? 2 : 4,
        .w_min = o->dtype ? 0x1p-900 : 0x1p-80};
    const pare_length_opts opts = {.mode = (pare_length_mode)o->mode,
                                   .no_pack = o->apart,
                                   .host_remainder = o->host,
                                   .one_vector = o->single,
                                   .no_fallback = o->no_fallback,
                                   .eps = o->eps,
                                   .delta = o->delta,
                                   .blocks = (uint32_t)o->blocks,
                                   .seed = c->seed};
    return pare_length_plan_make(&o->plan, c->arena,
                                 &(pare_length_shape){.heads = heads,
                                                      .count = count,
                                                      .tokens = o->in.in.tokens,
                                                      .pattern = &m->pattern,
                                                      .graph = o->in.graph},
                                 &caps, &opts, &c->err);
}

static pare_status length(cli *c, void *self)
{
    length_opts *const o = self;
    pare_model *m = NULL;
    pare_oracle orc;
    const char *const path = c->operand[0];
    pare_status st = check_options(c, o);
    if (!st && o->pack) {
        uint32_t engine[3];
        st = read_oracle(c, o->oracle, engine);
        if (st) return st;
        const pack_opts p = {.data = o->data,
                             .backend = o->backend ? o->backend : "cpu",
                             .engine = {.max_len = engine[0],
                                        .layers = engine[1],
                                        .heads = engine[2],
                                        .dtype = o->dtype ? PARE_F64 : PARE_F32},
                             .penalty = o->penalty,
                             .rows = o->rows};
        return length_pack(c, &p);
    }
    if (!st) st = cli_check_files(c, (const char *const[]){path, o->data}, 2);
    if (!st && o->certify) st = cli_may_write(c, cli_suffixed(c, c->out, ".cert.json"), path);
    if (!st) st = cli_load(c, &m, path);
    if (!st) st = make_plan(c, o, m);
    if (!st) st = pare_length_call_ms(&o->call_ms, &o->plan, c->arena, &c->exec, &c->err);
    if (!st && o->certify && !(st = pare_length_oracle(&orc, &o->plan, &c->exec, &c->err))) {
        st = pare_length_certify(&o->cert,
                                 &(pare_length_pass){.oracle = &orc, .model = m, .in = &o->in.in},
                                 &o->plan, o->rows, &c->exec, &c->err);
        pare_oracle_free(&orc);
        if (!st && !o->cert.sound)
            st = pare_fail(&c->err, PARE_ERR_VERIFY,
                           "the run is not within its own bounds: measured %.3g, proven %.3g",
                           o->cert.measured, o->cert.proven);
    }
    if (!st && !o->dry) st = pare_length_plan_write(c->out, &o->plan, c->force, &c->err);
    if (!st && o->certify)
        st = pare_length_cert_write(&o->cert, &o->plan,
                                    &(pare_length_cert_opts){.model = path,
                                                             .plan = c->out,
                                                             .data = o->data,
                                                             .rows = o->rows,
                                                             .seed = c->seed,
                                                             .overwrite = c->force},
                                    &c->err);
    if (!st && c->json)
        st = print_json(c, o);
    else if (!st)
        print_text(c, o);
    pare_model_free(m);
    return st;
}

/* clang-format off */
int cmd_length(int argc, char **argv)
{
    static const char *const mask_help[] = {"both full and causal attention", "full attention only",
                                            "causal attention only", NULL};
    length_opts o = {.tokens = TOKENS_NOT_GIVEN, .rows = PARE_LENGTH_ROWS};
    char usual[64];
    snprintf(usual, sizeof usual, "%d, or the longest input of the model", USUAL_TOKENS);
    const opt own[] = {
        {.name = "oracle", .kind = OPT_TEXT, .to = &o.oracle, .metavar = "M[,L,H]", .required = true, .group = "The engine",
         .help = "tokens that one call of the engine takes; with L and H, an engine of L layers with H heads that also "
                 "merges (--mode strict)"},
        {.name = "dtype", .kind = OPT_CHOICE, .to = &o.dtype, .metavar = "TYPE", .choices = types,
         .help = "numbers the engine computes with"},
        {.name = "mask", .kind = OPT_CHOICE, .to = &o.mask, .metavar = "MASK", .choices = masks, .choice_help = mask_help, .rare = true,
         .help = "attention the engine computes"},
        {.name = "static", .kind = OPT_FLAG, .to = &o.fixed, .rare = true,
         .help = "the engine takes exactly M rows in every call, as a compiled model does"},
        {.name = "tokens", .kind = OPT_SIZE, .to = &o.tokens, .metavar = "N", .group = "The plan", .unset = usual,
         .help = "tokens of the input", .max = PARE_LENGTH_MOST_TOKENS},
        {.name = "data", .kind = OPT_TEXT, .to = &o.data, .metavar = "FILE",
         .help = "plan for the first input of this file: graph models need it, because a plan depends on the edges",
         .unset = "an input of N random tokens"},
        {.name = "dry-run", .kind = OPT_FLAG, .to = &o.dry,
         .help = "print what the plan costs, write nothing"},
        {.name = "mode", .kind = OPT_CHOICE, .to = &o.mode, .metavar = "MODE", .choices = backend_modes, .choice_help = backend_mode_help,
         .help = "how the calls make up the whole"},
        {.name = "no-pack", .kind = OPT_FLAG, .to = &o.apart, .rare = true,
         .help = "one piece of attention in each call, also where several fit"},
        {.name = "host-remainder", .kind = OPT_FLAG, .to = &o.host, .rare = true,
         .help = "full attention: compute the keys beyond whole blocks outside the engine, which saves calls"},
        {.name = "one-vector", .kind = OPT_FLAG, .to = &o.single, .rare = true,
         .help = "for engines whose tokens are query and key in one vector (full attention, --mode zeroref or strict)"},
        {.name = "certify", .kind = OPT_FLAG, .to = &o.certify, .group = "Certificate",
         .help = "run the plan once, prove how far rounding can move its results, and write PLAN.cert.json"},
        {.name = "rows", .kind = OPT_SIZE, .to = &o.rows, .metavar = "R", .rare = true,
         .help = "rows of each head that are proven and measured; 0: all", .max = PARE_LENGTH_MOST_TOKENS},
        {.name = "pack", .kind = OPT_FLAG, .to = &o.pack, .group = "Many short inputs",
         .help = "run the inputs of --data, as many in each call as it holds; -o gets the outputs"},
        {.name = "backend", .kind = OPT_TEXT, .to = &o.backend, .metavar = "ENGINE", .unset = "cpu", .rare = true,
         .help = "with --pack: the engine, cpu (built in), paper (slow reference of "
                 "Yu 2025), onnx:FILE or pipe:COMMAND"},
        {.name = "penalty", .kind = OPT_REAL, .to = &o.penalty, .metavar = "P", .rare = true, .low = 1e-3, .high = 1e6,
         .help = "with --pack: lower the scores between two inputs by P", .unset = "enough that no weight passes"},
    };
    const opt_spec spec = {
        .command = "length",
        .args = "MODEL --oracle M --tokens N -o PLAN",
        .about = "Runs N tokens on hardware built for M: plans attention over a long input as\n"
                 "calls of an engine that takes at most M tokens, and says what that costs.\n"
                 "`pare run --plan` makes the calls. --pack runs many short inputs in one call\n"
                 "instead.",
        .examples = {"length model.safetensors --tokens 4096 --oracle 128 --dry-run",
                     "length model.safetensors --tokens 4096 --oracle 128 -o plan.json"},
        .seeded = true,
        OPT_ROWS(own),
        .operands = (const char *const[]){"MODEL", NULL},
    };
    return cli_command(&spec, CLI_MAY_OUT, "write the plan here; with --pack, the outputs as a .npy array", argc, argv, length, &o);
}
/* clang-format on */
