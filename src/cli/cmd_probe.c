/* cmd_probe.c - pare probe: what can be cut from a model, and statistics of its weights and
 * states. */
#include "describe.h"
#include "out.h"
#include "show_cut.h"
#include "show_depth.h"
#include "show_length.h"
#include "warn_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIMS = 16, MOST_ROWS = 48 };

typedef struct probe_opts {
    const char *data, *column, *dims;
    size_t part; /* a pare_probe_part */
    bool all;
    size_t split, list[MOST_DIMS];
    pare_probe_opts o;
} probe_opts;

/* ---- small pictures ------------------------------------------------------------------------ */

enum { CELLS = 12 };

/* Heights of values that fall from s[0], on a scale of powers of ten down to 1e-4. */
static const char *draw_spectrum(char buf[4 * CELLS + 1], const double *s, size_t n)
{
    static const char *const step[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    size_t at = 0;
    for (size_t i = 0; i < CELLS; i++) {
        const double v = n > 0 ? s[i * n / CELLS] : 0, largest = n > 0 ? s[0] : 0;
        const double part = v > 0 && largest > 0 ? 1 + log10(v / largest) / 4 : 0;
        const size_t k = !(part > 0) ? 0 : part >= 1 ? 8 : (size_t)ceil(8 * part);
        memcpy(buf + at, step[k], strlen(step[k]));
        at += strlen(step[k]);
    }
    buf[at] = '\0';
    return buf;
}

/* ---- weights -------------------------------------------------------------------------------- */

static bool same_group(const pare_spectrum *a, const pare_spectrum *b)
{
    return a->block == b->block && strcmp(a->name, b->name) == 0 && a->head != SIZE_MAX;
}

/* One matrix, or the same matrix of all heads of a block: the largest norm, the means of the
 * ranks. */
static void print_spectrum(const pare_probe *p, size_t first, bool heads)
{
    const pare_spectrum *const s = &p->spectra[first], *largest = s;
    double effective = 0, stable = 0;
    size_t n = 0, rank = 0;
    char where[32] = "", shape[48], picture[4 * CELLS + 1];
    for (size_t i = first; i < (heads ? p->nspectra : first + 1); i++) {
        const pare_spectrum *const t = &p->spectra[i];
        if (heads && !same_group(s, t)) continue;
        if (t->s_est[0] > largest->s_est[0]) largest = t;
        effective += t->effective_est;
        stable += t->stable_est;
        if (t->rank_est > rank) rank = t->rank_est;
        n++;
    }
    if (!heads && s->head != SIZE_MAX)
        snprintf(where, sizeof where, "%zu.%zu", s->block, s->head);
    else if (s->block != SIZE_MAX)
        snprintf(where, sizeof where, "%zu", s->block);
    if (heads)
        snprintf(shape, sizeof shape, "%zu of %zux%zu", n, s->rows, s->cols);
    else
        snprintf(shape, sizeof shape, "%zu x %zu", s->rows, s->cols);
    out_line("  %-6s %-9s %-12s %8.3f %5zu %9.1f %8.1f  %s", where, s->name, shape,
             largest->s_est[0], rank, effective / (double)n, stable / (double)n,
             draw_spectrum(picture, largest->s_est, largest->n));
}

static void print_norms(const char *label, const pare_norms *n, const char *of)
{
    if (n->n > 0) out_row(label, "%.4g +- %.2g, at most %.4g: %s", n->mean, n->std, n->sup, of);
}

static void print_weights(const cli *c, const pare_probe *p)
{
    const bool each = c->verbose || p->nspectra <= MOST_ROWS;
    out_row("weights",
            "block%s, largest singular value, rank, effective rank, stable rank, spectrum",
            each ? ".head" : "");
    out_line("  %-6s %-9s %-12s %8s %5s %9s %8s  10^0 .. 10^-4", "", "", "", "norm", "rank",
             "effective", "stable");
    for (size_t i = 0; i < p->nspectra; i++) {
        const bool heads = !each && p->spectra[i].head != SIZE_MAX;
        bool first = true;
        for (size_t k = 0; heads && k < i; k++)
            first &= !same_group(&p->spectra[k], &p->spectra[i]);
        if (first) print_spectrum(p, i, heads);
    }
    if (!each)
        out_row("", "heads of a block together: largest norm, mean ranks; -v shows each head");
    print_norms("operators", &p->operators, "norms of Wq, Wk, Wv and the feed-forward maps");
}

/* ---- stream --------------------------------------------------------------------------------- */

static void print_stream(const pare_probe *p)
{
    char tokens[32];
    out_row("stream", "residual stream on %zu input%s, %s tokens: rank of the hidden states",
            p->inputs, p->inputs == 1 ? "" : "s", out_count(tokens, p->tokens));
    out_line("  %-6s %6s %6s %6s %9s %19s %9s%s", "", "width", "rank", "affine", "effective",
             "norm of a row", "largest", p->has_width_facts ? "  residual" : "");
    for (size_t i = 0; i < p->nstreams; i++) {
        const pare_stream *const s = &p->streams[i];
        char picture[4 * CELLS + 1];
        out_part("  %-6s %6zu %6zu %6zu %9.1f %9.3f +- %6.3f %9.3f", s->name, s->width, s->rank_est,
                 s->affine_est, s->effective_est, s->mean, s->std, s->sup);
        if (p->has_width_facts && i < p->width_facts.npoints)
            out_part(" %9.3g", p->width_facts.points[i].residual_est);
        out_line("  %s", draw_spectrum(picture, s->s_est, s->width));
    }
    if (p->has_width_facts)
        out_row(
            "",
            "residual: distance of the worst row from the best affine subspace of %zu dimensions",
            p->width_facts.dim);
    print_norms("vectors", &p->vectors, "norms of the rows that enter a block");
}

/* ---- width_facts and theorems -------------------------------------------------------------------- */

static void print_width_facts(const pare_probe *p)
{
    const pare_width_facts *const s = &p->width_facts;
    out_row("scores",
            "dimensions of queries and keys that carry 99 %% of the attention scores here");
    for (size_t i = 0; i < s->nheads; i++) {
        const pare_width_facts_head *const h = &s->heads[i];
        char picture[4 * CELLS + 1];
        out_line("  %zu.%zu    %4zu of %-4zu %s", h->layer, h->head, h->needed, h->dim,
                 draw_spectrum(picture, h->form_est, h->n));
    }
    out_row("layers",
            "lemma: dimension that Johnson-Lindenstrauss asks for; leverage scores and the draws "
            "they need; clusters of rows: radius, separation");
    out_line("  %-6s %10s %10s %6s %9s %6s %9s %8s %11s", "", "rows", "pairs", "lemma", "leverage",
             "draws", "clusters", "radius", "separation");
    for (size_t i = 0; i < s->nlayers; i++) {
        const pare_width_facts_layer *const l = &s->layers[i];
        out_line("  %-6zu %10zu %10zu %6zu %9.3f %6.0f %9zu %8.3g %11.3g", i, l->rows, l->pairs,
                 l->jl_dim, l->leverage_est, l->draws, l->clusters, l->radius_est,
                 l->separation_est);
    }
}

/* ---- cuts ----------------------------------------------------------------------------------- */

static void print_cuts(const pare_probe *p)
{
    char n[32];
    out_row("cuts",
            "what each width cut changes here, measured in f64; `pare width` makes one and proves "
            "its error");
    out_part("  %-9s %5s %12s %7s %10s %10s", "method", "width", "parameters", "", "largest",
             "rms");
    if (p->metric) out_part(" %10s", p->metric);
    putchar('\n');
    out_part("  %-9s %5s %12s %5.1f %% %10s %10s", "none", "", out_count(n, p->parameters), 100.0,
             "0", "0");
    if (p->metric) out_part(" %10.4f", p->metric_before);
    putchar('\n');
    for (size_t i = 0; i < p->ncuts; i++) {
        const pare_cut_cost *const c = &p->cuts[i];
        char dim[32] = "-";
        if (i > 0 && c->refused && c[-1].refused && c->method == c[-1].method) continue;
        if (c->dim) snprintf(dim, sizeof dim, "%zu", c->dim);
        out_part("  %-9s %5s ", pare_width_method_names[c->method], dim);
        if (c->refused) {
            out_line("no: %s", c->refused);
            continue;
        }
        out_part("%12s %5.1f %% %10.3g %10.3g", out_count(n, c->parameters),
                 100 * (double)c->parameters / (double)p->parameters, c->largest, c->rms);
        if (p->metric) out_part(" %10.4f", c->metric);
        putchar('\n');
    }
}

/* ---- tickets -------------------------------------------------------------------------------- */

static void print_ticket(const pare_ticket_probe *t)
{
    char n[32];
    out_row("tickets",
            "entries of the matrices; reach: random numbers whose sums reach the largest");
    out_line("  %-22s %5s %-12s %9s %9s %6s", "", "", "", "largest", "rms", "reach");
    for (size_t i = 0; i < t->nkinds; i++) {
        const pare_probe_kind *const k = &t->kinds[i];
        char shape[48];
        snprintf(shape, sizeof shape, "%zu x %zu", k->rows, k->cols);
        out_line("  %-22s %5zu %-12s %9.3g %9.3g %6zu", k->name, k->count, shape, k->largest,
                 k->rms, k->reach);
    }
    out_row("bits",
            "random numbers for each entry (tried on 99 %% of the entries) and bytes; as f32 %s",
            out_count(n, t->f32));
    out_line("  %-8s %6s %12s %12s %6s %10s  %s", "error", "items", "factored", "merged", "of f32",
             "lattice", "proven (Lemma S)");
    for (size_t i = 0; i < t->nneeds; i++) {
        const pare_probe_need *const need = &t->needs[i];
        char seen[32] = "> 26", proven[48];
        if (need->seen) snprintf(seen, sizeof seen, "%zu", need->seen);
        snprintf(proven, sizeof proven, "%zu", need->proven);
        if (!need->proven)
            snprintf(proven, sizeof proven, "no (%zu without rounding to a grid)", need->density);
        out_part("  %-8.0e %6s %12s", need->error, seen,
                 need->seen ? out_count(n, need->factored) : "-");
        out_part(" %12s", need->seen && need->merged ? out_count(n, need->merged) : "-");
        if (need->seen)
            out_part(" %6.2f", (double)need->factored / (double)t->f32);
        else
            out_part(" %6s", "-");
        out_line(" %10.2g  %s", need->coupling, proven);
    }
    if (*t->not_merged) out_row("", "not merged: %s", t->not_merged);
}

/* ---- each direction: what can be cut, at which price, what blocks the rest ------------------- */

static void print_price(const pare_probe *p, const pare_cost_estimate *t)
{
    char bound[40];
    if (!isinf(t->proven.v) && t->proven.v == 0)
        out_row("", "proven: no output changes (%s)", t->domain);
    else if (!isinf(t->proven.v))
        out_row("", "proven: no output changes by more than %s (%s)",
                pare_ub_format(bound, t->proven, 3), t->domain);
    if (!isnan(t->measured) && !isinf(t->measured))
        out_row("", "measured: outputs change by at most %.3g", t->measured);
    if (!p->metric || isnan(t->metric)) return;
    if (strcmp(p->metric, "accuracy") == 0)
        out_row("", "accuracy %.4g %% -> %.4g %%", 100 * p->metric_before, 100 * t->metric);
    else
        out_row("", "%s %.4g -> %.4g", show_metric_name(p->metric), p->metric_before, t->metric);
}

static void print_text(const cli *c, const pare_model *m, const pare_probe *p)
{
    static const char *const can[] = {"no", "yes", "unknown"};
    char n[32], block[DESCRIBE_BYTES];
    out_row("model", "%s: %zu block%s, %s parameters", m->name ? m->name : c->operand[0],
            m->nblocks, m->nblocks == 1 ? "" : "s", out_count(n, p->parameters));
    describe_kind(block, m);
    out_row("kind", "%s", block);
    if (m->nblocks) describe_block(block, &m->blocks[0]);
    if (m->nblocks) out_row("first block", "%s", block);
    if (p->nestimates)
        out_line("What can be cut: one cut of each direction was made here and thrown away");
    for (size_t i = 0; i < p->nestimates; i++) {
        const pare_cost_estimate *const t = &p->estimates[i];
        if (*t->cut)
            out_row(t->direction, "%s: pare %s %s %s", can[t->can], t->cut,
                    strcmp(t->direction, "length") == 0 ? "runs" : "leaves", t->left);
        else
            out_row(t->direction, "%s", can[t->can]);
        if (*t->cut) print_price(p, t);
        /* The hypothesis that fails is a detail. */
        const char *const begin = *t->cut ? "what blocks more:" : "why:";
        const char *const detail = c->verbose ? NULL : strstr(t->why, "no bound for all inputs: ");
        if (detail)
            out_row("", "%s %.*sno bound for all inputs is known here (details: -v)", begin,
                    (int)(detail - t->why), t->why);
        else if (*t->why)
            out_row("", "%s %s", begin, t->why);
    }
    for (size_t i = 0; i < p->nuntold; i++) out_row("not known", "%s", p->untold[i]);
    out_line("Details");
    print_weights(c, p);
    if (p->nstreams) print_stream(p);
    if (p->has_width_facts) print_width_facts(p);
    if (p->nfindings)
        out_row("theorems", "hypotheses of the theorems of Shirzad 2024: whether each holds, else "
                            "by what factor it fails");
    for (size_t i = 0; i < p->nfindings; i++) {
        const pare_finding *const f = &p->findings[i];
        char factor[32] = "";
        if (f->holds != PARE_TRUE && !isnan(f->factor))
            snprintf(factor, sizeof factor, " by %.3g", f->factor);
        out_line("  %-5s%-12s %-17s %s: %.4g, at most %.4g%s%s%s",
                 f->holds == PARE_TRUE ? "holds" : "fails", factor, f->theorem, f->what, f->value,
                 f->limit, *f->where ? " (" : "", f->where, *f->where ? ")" : "");
    }
    if (p->ncuts) print_cuts(p);
    if (p->has_depth) show_depth(c, p);
    if (p->has_ticket) print_ticket(&p->ticket);
    if (p->has_length) show_length(c, m, &p->length);
}

/* ---- the command ---------------------------------------------------------------------------- */

/* Options that would be ignored are refused. */
static pare_status check_options(cli *c, probe_opts *o)
{
    const bool width = o->part == PARE_PROBE_ALL || o->part == PARE_PROBE_WIDTH;
    const bool depth = o->part == PARE_PROBE_ALL || o->part == PARE_PROBE_DEPTH;
    const cli_rule rules[] = {
        {"dims,trials,tokens,split,all", o->data, "--data FILE"},
        {"dims,trials", width, "--part width or all"},
        {"dims,trials", !o->o.no_cuts, "cuts that are tried, not with --no-cuts"},
        {"all", depth, "--part depth or all"},
        {0},
    };
    const char *const inputs[] = {c->operand[0], o->data};
    o->o.part = (pare_probe_part)o->part;
    if (o->all) o->o.depth_macs = 0;
    pare_status st = cli_check_rules(c, rules);
    for (size_t i = 0; i < 2 && !st; i++) st = cli_is_there(c, inputs[i]);
    for (const char *at = o->dims; !st && at && *at;) {
        char *end;
        const unsigned long d = strtoul(at, &end, 10);
        if (end == at || *at == '-' || *at == '+' || d == 0 || d > 1u << 20 ||
            (*end && *end != ',') || o->o.ndims == MOST_DIMS)
            return cli_usage_error(
                c, "--dims %s: give at most %d whole numbers from 1, separated by commas", o->dims,
                MOST_DIMS);
        o->list[o->o.ndims++] = d;
        at = *end ? end + 1 : end;
    }
    if (!st && o->dims && o->o.ndims == 0)
        st = cli_usage_error(c, "--dims is empty: give widths separated by commas");
    o->o.dims = o->o.ndims ? o->list : NULL;
    return st ? st : cli_check_files(c, inputs, 2);
}

/* The library's sentences name its own options; those of the command have other names. */
static void name_options(cli *c, pare_probe *p)
{
    for (size_t i = 0; i < p->nuntold; i++) p->untold[i] = cli_option_words(c, p->untold[i]);
    for (size_t i = 0; i < p->nestimates; i++) {
        p->estimates[i].domain = cli_option_words(c, p->estimates[i].domain);
        p->estimates[i].why = cli_option_words(c, p->estimates[i].why);
    }
    if (p->has_depth) p->depth.why = cli_option_words(c, p->depth.why);
    if (p->has_ticket) p->ticket.not_merged = cli_option_words(c, p->ticket.not_merged);
}

static pare_status probe(cli *c, void *self)
{
    probe_opts *const o = self;
    const char *const path = c->operand[0];
    pare_model *m = NULL;
    pare_probe *p = NULL;
    pare_dataset data;
    facts f;
    pare_status st = check_options(c, o);
    if (!st) st = cli_load(c, &m, path);
    if (!st) st = cli_facts(c, &f, path, m, NULL, c->json || c->out);
    if (!st && o->data) {
        st = pare_dataset_load(
            &data, c->arena, m, o->data,
            &(pare_data_opts){.split = o->split, .column = o->column, .seed = c->seed}, &c->err);
        st = cli_name(c, st, o->data);
        if (!st) warn_text(c, o->data, &data.notes);
        if (!st) st = cli_only(c, "split", data.task == PARE_TASK_NODES, "a graph");
        if (!st)
            st = cli_only(c, "tokens", data.task != PARE_TASK_NODES, "data other than a graph");
        if (!st && data.inputs.n == 0)
            st = pare_fail(&c->err, PARE_ERR_INPUT, "%s: no input in it suits the model", o->data);
    }
    o->o.seed = c->seed;
    if (!st) st = pare_probe_model(&p, m, o->data ? &data : NULL, &o->o, &c->exec, &c->err);
    cli_bar_end(c);
    if (!st) name_options(c, p);
    char *json = NULL;
    if (!st && (c->json || c->out)) st = pare_probe_text(&json, c->arena, p, &c->err);
    if (json) { /* its keys come after those that every command has */
        char kind[DESCRIBE_BYTES];
        describe_kind(kind, m);
        cJSON *const root = out_json_begin(c);
        const bool ok = pare_json_add_values(root, "line:s", c->line) &&
                        out_json_facts(root, "input", &f) &&
                        pare_json_add_values(root, "kind:s data:s", kind, o->data) &&
                        out_json_text(root, "probe", json);
        st = c->out ? out_json_file(c, root, ok, c->out) : out_json(c, root, ok);
    }
    if (!st && !c->json) print_text(c, m, p);
    pare_probe_free(p);
    pare_model_free(m);
    return st;
}

/* clang-format off */
int cmd_probe(int argc, char **argv)
{
    static const char *const parts[] = {"all", "width", "depth", "ticket", "length", NULL};
    static const char *const part_help[] = {
        "everything", "make the model narrower: ranks, theorems, what each method costs",
        "replace attention: what it does in each layer, and what its replacement costs",
        "store the weights as a random seed and bit masks: how many bits they need",
        "run long inputs by small calls: calls and costs for engines of different sizes", NULL};
    probe_opts o = {.o = PARE_PROBE_OPTS_DEFAULT};
    const opt own[] = {
        opt_data(&o.data, "look at the model on these inputs: a graph, text or arrays, as for pare eval",
                 "the weights alone, which says little about cuts"),
        {.name = "part", .kind = OPT_CHOICE, .to = &o.part, .metavar = "PART", .choices = parts, .choice_help = part_help,
         .help = "look at one direction only"},
        {.name = "dims", .kind = OPT_TEXT, .to = &o.dims, .metavar = "D,D,...", .unset = "1/4, 1/8, 1/16 of the width; of text models 3/4, 1/2, 1/4",
         .help = "widths that are tried"},
        {.name = "no-cuts", .kind = OPT_FLAG, .to = &o.o.no_cuts, .help = "try no cuts: much faster"},
        {.name = "all", .kind = OPT_FLAG, .to = &o.all, .rare = true,
         .help = "try all replacements of attention, also those that take very long for this model"},
        {.name = "tokens", .kind = OPT_SIZE, .to = &o.o.tokens, .metavar = "N", .min = 1, .max = 1u << 30, .rare = true,
         .help = "look at no more than N tokens of the data; of a graph always at all nodes"},
        {.name = "trials", .kind = OPT_SIZE, .to = &o.o.trials, .metavar = "N", .min = 1, .max = 1u << 20, .rare = true,
         .help = "draws of cutting methods that use random numbers; the best one counts"},
        opt_split(&o.split),
        opt_column(&o.column),
    };
    const opt_spec spec = {
        .command = "probe",
        .args = "MODEL [--data FILE]",
        .about = "Says what can be cut from a model: for each direction (width, depth, weights,\n"
                 "length) one cut that is tried, its price, and what blocks more. Below that the\n"
                 "details: spectra, ranks and norms by layer and head, which theorem applies.",
        .examples = {"probe model.safetensors --data board.npz",
                     "probe model.safetensors --data test.txt --part width -o probe.json"},
        .seeded = true,
        OPT_ROWS(own),
        .operands = (const char *const[]){"MODEL", NULL},
    };
    return cli_command(&spec, CLI_MAY_OUT, "also write everything as JSON, for pare report", argc, argv, probe, &o);
}
/* clang-format on */
