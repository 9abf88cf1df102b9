/* pare ticket: a model as a seed and masks, with its certificate. */
#include "cut_data.h"

#include <math.h>
#include <string.h>

enum {
    TICKET_HELD = 1u << 20,
    TICKET_HELD_TEXT = 128,    /* texts that are measured ... */
    TICKET_PROVEN_TEXT = 200,  /* ... and proven on, ... */
    TICKET_PROVEN_TOKENS = 64, /* ... tokens of each */
    TICKET_FIT = 48,           /* inputs that feedback is fitted to, ... */
    TICKET_FIT_TOKENS = 128,   /* ... tokens of each */
    TICKET_MOST = 1u << 20,
    TICKET_FEWEST_BITS = 2,
    TICKET_SEARCH_BITS = 26, /* more do not serve an f32 */
    TICKET_SEARCH_STEP = 3,
    TICKET_STORED_BITS = 12 /* with --stored */
};
#define TICKET_WORK 5e8 /* multiplications of a pass over all that is proven on */

/* A quantiser that has as many bytes. */
typedef struct rounded {
    double bits, measured, error; /* measured nan: there is none */
    bool has_metric;
    evaluation metric;
} rounded;

typedef struct ticket_opts {
    size_t mode, method, coding, split;
    double scale; /* 0: chosen */
    pare_ticket_opts cut;
    cut_data d;
    reduction r;
    pare_ticket_report report;
    double error;       /* of the outputs, relative, on what is held out */
    rounded plain, fed; /* fed: with the feedback of the ticket, where it has some */
} ticket_opts;

/* ---- options ------------------------------------------------------------------------------- */

static pare_status settle(cli *c, void *self)
{
    ticket_opts *const o = self;
    o->cut.mode = (pare_ticket_mode)o->mode;
    o->cut.method = (pare_ticket_method)o->method;
    o->cut.coding = (pare_coding)o->coding;
    o->cut.seed = c->seed;
    if (o->scale > 0) {
        int e;
        if (frexp(o->scale, &e) != 0.5)
            return pare_fail(&c->err, PARE_ERR_USAGE, "--scale %g: not a power of two", o->scale);
        o->cut.exponent = e - 1;
    }
    if (o->cut.hidden && o->cut.bits)
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "--hidden and --bits both say how many hidden units: one of them is "
                         "enough");
    if (o->cut.stored > 0 && !o->cut.hidden && !o->cut.bits) o->cut.bits = TICKET_STORED_BITS;
    if (!o->cut.hidden && !o->cut.bits && !isfinite(o->r.max_error))
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "--bits B, --hidden N, --stored R or --max-error E is needed: how large "
                         "the ticket is");
    return PARE_OK;
}

/* ---- results ------------------------------------------------------------------------------- */

static uint64_t ticket_bytes(const ticket_opts *o)
{
    return o->report.bytes + o->report.number_bytes;
}

static void print_sizes(const ticket_opts *o)
{
    const pare_ticket_report *const r = &o->report;
    const double all = (double)o->r.before.size.parameters; /* merged heads have others */
    char n[64];
    out_row("cut", "%zu matrices as %s tickets, seed %llu; %llu numbers stay", r->n,
            r->merged ? "merged" : "factored", (unsigned long long)o->cut.seed,
            (unsigned long long)r->numbers);
    if (r->relu_parts + r->other_parts > 0)
        out_row("ReLU", "%zu of %zu feed-forward parts from a ReLU source; %zu factored: not ReLU",
                r->relu_parts, r->relu_parts + r->other_parts, r->other_parts);
    out_row("bits/weight", "%.4g of the matrices, %.4g of all",
            8 * (double)r->bytes / (double)r->weights, 8 * (double)ticket_bytes(o) / all);
    out_row("size", "%s of weights", out_bytes(n, ticket_bytes(o)));
    out_row("as f32", "%s (%.3g times)", out_bytes(n, (uint64_t)(4 * all)),
            4 * all / (double)ticket_bytes(o));
    out_row("as f16", "%s (%.3g times)", out_bytes(n, (uint64_t)(2 * all)),
            2 * all / (double)ticket_bytes(o));
}

static void print_matrices(const pare_ticket_report *r)
{
    printf("  %-28s %-12s %7s %6s %10s %10s %7s\n", "matrix", "shape", "hidden", "scale",
           "rms error", "largest", "reach");
    for (size_t i = 0; i < r->n; i++) {
        const pare_ticket_matrix *const m = &r->matrix[i];
        char shape[32];
        snprintf(shape, sizeof shape, "%zux%zu", m->rows, m->cols);
        printf("  %-28s %-12s %7zu %6s%-2d %8.2e %10.2e %7.2f\n", m->name, shape, m->hidden, "2^",
               m->exponent, m->rms, m->largest, m->reach);
    }
}

static void print_quantiser(const char *row, const char *how, const rounded *r)
{
    if (isnan(r->measured)) return;
    out_row(row, "%.4g bits %s: largest %.4g, relative %.4g", r->bits, how, r->measured, r->error);
    if (r->has_metric) out_row("", "%s %.6g", r->metric.metric, r->metric.value);
}

static void print_rounded(const ticket_opts *o)
{
    out_row("errors", "largest %.4g, relative %.4g (root mean squares of the outputs)",
            o->r.cert.measured, o->error);
    print_quantiser("rounded", "to nearest in as many bytes", &o->plain);
    print_quantiser("", "with the feedback of the ticket", &o->fed);
}

/* The statement about rows, in rows. */
static void print_rows(const pare_model *m, const ticket_opts *o)
{
    size_t rows = 0;
    for (size_t i = 0; i < o->d.held.set.n; i++) rows += pare_output_rows(m, &o->d.held.set.in[i]);
    for (size_t i = 0; i < o->r.cert.nstatements; i++) {
        const pare_statement *const s = &o->r.cert.statements[i];
        char buf[40];
        if (strcmp(s->norm, "share of the output rows") == 0) {
            const size_t open = (size_t)ceil(s->bound / (1 + 2e-4) * (double)rows - 1e-6);
            out_row("unchanged", "the largest output of %zu of %zu rows, proven", rows - open,
                    rows);
        } else if (strncmp(s->name, "all inputs", 10) == 0) {
            out_row("proven", "%s on %s (%s)", pare_ub_format(buf, pare_ub_exact(s->bound), 4),
                    s->domain, s->name);
        }
    }
}

static void print_people(const cli *c, const pare_model *m, const void *self)
{
    const ticket_opts *const o = self;
    print_sizes(o);
    if (c->verbose) print_matrices(&o->report);
    reduce_print(c, &o->r);
    print_rows(m, o);
    print_rounded(o);
}

static bool json_ticket(cJSON *root, const ticket_opts *o)
{
    const pare_ticket_report *const r = &o->report;
    cJSON *const to = pare_json_add_object(root, "ticket");
    return to && pare_json_add_string(to, "mode", r->merged ? "merged" : "factored") &&
           pare_json_add_string(to, "method", pare_ticket_method_names[o->method]) &&
           pare_json_add_string(to, "coding", pare_coding_names[o->coding]) &&
           pare_json_add_size(to, "bits", o->cut.bits) &&
           pare_json_add_size(to, "hidden", o->cut.hidden) &&
           pare_json_add_size(to, "matrices", r->n) &&
           pare_json_add_size(to, "relu_parts", r->relu_parts) &&
           pare_json_add_number(to, "weights", (double)r->weights) &&
           pare_json_add_number(to, "ticket_bytes", (double)r->bytes) &&
           pare_json_add_number(to, "number_bytes", (double)r->number_bytes) &&
           pare_json_add_number(to, "bits_per_weight", 8 * (double)r->bytes / (double)r->weights) &&
           pare_json_add_number(to, "relative_error", o->error);
}

static bool json_rounded(cJSON *root, const char *name, const rounded *r)
{
    if (isnan(r->measured)) return true;
    cJSON *const to = pare_json_add_object(root, name);
    return to && pare_json_add_number(to, "bits", r->bits) &&
           pare_json_add_number(to, "measured", r->measured) &&
           pare_json_add_number(to, "relative_error", r->error) &&
           (!r->has_metric || pare_json_add_number(to, "metric", r->metric.value));
}

static pare_status print_json(cli *c, const void *self)
{
    const ticket_opts *const o = self;
    cJSON *root = out_json_begin(c);
    return out_json(c, root,
                    reduce_json_front(root, &o->r) && json_ticket(root, o) &&
                        json_rounded(root, "rounded", &o->plain) &&
                        json_rounded(root, "rounded_with_feedback", &o->fed) &&
                        out_json_statements(root, &o->r.cert) && reduce_json_end(root, &o->r));
}

/* ---- the cut ------------------------------------------------------------------------------- */

static pare_status load_data(cli *c, ticket_opts *o, const pare_model *m)
{
    const bool text = m->stem.ids && m->top.pool == PARE_POOL_NONE;
    const bool feedback = o->cut.method == PARE_TICKET_FEEDBACK;
    const cut_plan plan = {.split = o->split,
                           .windows = feedback ? TICKET_FIT : 1,
                           .fit_tokens = feedback ? TICKET_FIT_TOKENS : 1,
                           .held = text ? TICKET_HELD_TEXT : TICKET_HELD,
                           .proven = text ? TICKET_PROVEN_TEXT : TICKET_HELD,
                           .proven_tokens = TICKET_PROVEN_TOKENS,
                           .work = TICKET_WORK,
                           .only_texts = true,
                           .unseen = !feedback};
    const pare_status st = cut_data_load(c, &o->d, m, o->r.data, &plan);
    if (feedback && o->r.data) o->cut.fit = &o->d.fit;
    return st;
}

static pare_status make(cli *c, ticket_opts *o, pare_model **small, const pare_model *m)
{
    return cli_name(c, pare_ticket(small, &o->report, m, &o->cut, &c->exec, &c->err),
                    c->operand[0]);
}

/* The fewest bits whose proven bound is small enough: it need not fall with every bit, so that the
 * answer is one that was proven, not the least there is. Few bits are quick: upwards until one is
 * enough, then by halves. */
static pare_status search_bits(cli *c, ticket_opts *o, const pare_model *m)
{
    size_t low = TICKET_FEWEST_BITS, high = TICKET_SEARCH_BITS + 1;
    while (low < high) {
        pare_model *g = NULL;
        pare_output_bound bound;
        const bool found = high <= TICKET_SEARCH_BITS;
        const size_t next = low + (found ? (high - low) / 2 : TICKET_SEARCH_STEP);
        o->cut.bits = next < TICKET_SEARCH_BITS ? next : TICKET_SEARCH_BITS;
        pare_status st = make(c, o, &g, m);
        if (!st) st = pare_outputs_compare(&bound, m, g, &o->d.held.set, &c->exec, &c->err);
        pare_model_free(g);
        if (st) return st;
        if (pare_ub_written(bound.gap.proven) <= o->r.max_error)
            high = o->cut.bits;
        else
            low = o->cut.bits + 1;
    }
    o->cut.bits = high;
    if (high <= TICKET_SEARCH_BITS) return PARE_OK;
    return pare_fail(&c->err, PARE_ERR_PROMISE,
                     "no ticket of up to %d bits for a weight is proven to be within --max-error "
                     "%g; nothing was written",
                     TICKET_SEARCH_BITS, o->r.max_error);
}

/* The names of the report live in the ticket, which publishing frees: they are copied. */
static pare_status keep_report(cli *c, pare_ticket_report *r)
{
    pare_ticket_matrix *const copy = pare_alloc(c->arena, r->n + 1, sizeof *copy);
    if (!copy) return pare_no_memory(&c->err);
    for (size_t i = 0; i < r->n; i++) {
        copy[i] = r->matrix[i];
        copy[i].name = pare_strdup(c->arena, r->matrix[i].name);
        if (!copy[i].name) return pare_no_memory(&c->err);
    }
    r->matrix = copy;
    return PARE_OK;
}

static void warn_of_reach(cli *c, const ticket_opts *o)
{
    size_t out = 0;
    for (size_t i = 0; i < o->report.n; i++) out += o->report.matrix[i].reach > 1;
    if (out)
        cli_note(c,
                 "%zu of %zu matrices have entries out of reach: more bits or a larger --scale "
                 "would help",
                 out, o->report.n);
}

/* `fit` NULL: without feedback. */
static pare_status round_beside(cli *c, rounded *r, const ticket_opts *o, const pare_model *m,
                                const pare_inputs *fit)
{
    pare_model *g = NULL;
    const cert_inputs *const held = &o->d.held;
    pare_status st = pare_ticket_rounded(&g, &r->bits, m, &o->report, fit, &c->exec, &c->err);
    if (!st) st = pare_measure(&r->measured, m, g, &held->set, &c->exec, &c->err);
    if (!st) st = cut_output_error(c, &r->error, m, g, &o->d);
    r->has_metric = !st && o->r.has_metric;
    if (r->has_metric) st = evaluate(c, &r->metric, g, &held->data, false, NULL, NULL, NULL);
    if (r->has_metric && strcmp(r->metric.metric, "perplexity") == 0) {
        r->metric.metric = "nats";
        r->metric.value = r->metric.scores.nats;
    }
    pare_model_free(g);
    return st;
}

static pare_status beside(cli *c, ticket_opts *o, const pare_model *m)
{
    pare_model *g = NULL;
    pare_status st = cli_load(c, &g, c->out);
    if (!st) st = cut_output_error(c, &o->error, m, g, &o->d);
    pare_model_free(g);
    o->plain.measured = o->fed.measured = NAN;
    if (st || o->report.merged) return st;
    st = round_beside(c, &o->plain, o, m, NULL);
    if (!st && o->cut.fit) st = round_beside(c, &o->fed, o, m, o->cut.fit);
    return st;
}

static pare_status cut(cli *c, void *self, const pare_model *m)
{
    ticket_opts *const o = self;
    pare_model *small = NULL;
    pare_status st = load_data(c, o, m);
    if (!st && !o->cut.hidden && !o->cut.bits) st = search_bits(c, o, m);
    if (!st) st = make(c, o, &small, m);
    if (!st) st = keep_report(c, &o->report);
    if (!st) warn_of_reach(c, o);
    if (!st) st = reduce_publish(c, &o->r, m, &small, &o->d.held, &pare_ticket_prover);
    if (!st) st = reduce_compare(c, &o->r, m, &o->d.held);
    if (!st) reduce_in_nats(&o->r);
    if (!st) st = beside(c, o, m);
    pare_model_free(small);
    return st;
}

int cmd_ticket(int argc, char **argv)
{
    ticket_opts o = {.cut = PARE_TICKET_OPTS, .coding = PARE_CODING_BRIDGE};
    o.cut.bits = 0;
    o.r.max_error = INFINITY;
    const opt own[] = {
        {.name = "bits",
         .kind = OPT_SIZE,
         .to = &o.cut.bits,
         .metavar = "B",
         .help = "random products an entry is chosen from",
         .unset = "searched, with --max-error",
         .min = 1,
         .max = PARE_TICKET_MOST_BITS},
        {.name = "hidden",
         .kind = OPT_SIZE,
         .to = &o.cut.hidden,
         .metavar = "N",
         .help = "hidden units of every matrix",
         .unset = "B times its smaller side",
         .min = 1,
         .max = TICKET_MOST},
        {.name = "max-error",
         .kind = OPT_REAL,
         .to = &o.r.max_error,
         .metavar = "E",
         .help = "largest proven error",
         .low = 0,
         .high = INFINITY},
        {.name = "mode",
         .kind = OPT_CHOICE,
         .to = &o.mode,
         .metavar = "W",
         .help = "",
         .choices = pare_ticket_mode_names},
        {.name = "method",
         .kind = OPT_CHOICE,
         .to = &o.method,
         .metavar = "W",
         .help = "",
         .choices = pare_ticket_method_names},
        {.name = "stored",
         .kind = OPT_REAL,
         .to = &o.cut.stored,
         .metavar = "R",
         .help = "bits stored for a weight, with --method feedback",
         .unset = "as many as it takes",
         .low = 0,
         .high = PARE_TICKET_STORED_BITS},
        {.name = "biases",
         .kind = OPT_FLAG,
         .to = &o.cut.biases,
         .help = "biases from the source as well; else they stay numbers"},
        {.name = "scale",
         .kind = OPT_REAL,
         .to = &o.scale,
         .metavar = "S",
         .help = "source",
         .unset = "a power of two for each matrix",
         .low = 0,
         .high = INFINITY,
         .joined = true},
        {.name = "strict", .kind = OPT_FLAG, .to = &o.cut.strict, .help = "", .joined = true},
        {.name = "coding",
         .kind = OPT_CHOICE,
         .to = &o.coding,
         .metavar = "W",
         .help = "",
         .choices = pare_coding_names},
        opt_data(&o.r.data, "what it is proven on, and --method feedback fitted to",
                 "random inputs"),
        opt_split(&o.split),
    };
    static const char *const operands[] = {"MODEL", NULL};
    const opt_spec spec = {
        .command = "ticket",
        .args = "MODEL --bits B -o OUT",
        .about =
            "Writes a model as a seed and masks: a part of a random network that does the same.",
        .example = "ticket model.safetensors --bits 16 -o model.ticket",
        .own = own,
        .nown = sizeof own / sizeof *own,
        .operands = operands,
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MUST_OUT, "the ticket; its certificate goes beside it", argc,
                   argv, &rc))
        return rc;
    const reduce_steps steps = {settle, cut, print_people, print_json};
    return cli_finish(&c, reduce_run(&c, &o.r, &steps, &o));
}
