/* pare ticket: a model as a seed and masks, with its certificate. */
#include "show_ticket.h"

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

/* ---- options ------------------------------------------------------------------------------- */

static pare_status settle(cli *c, void *self)
{
    ticket_opts *const o = self;
    o->cut.mode = (pare_ticket_mode)o->mode;
    o->cut.method = (pare_ticket_method)o->method;
    o->cut.coding = (pare_coding)o->coding;
    o->cut.seed = c->seed;
    const bool feedback = o->cut.method == PARE_TICKET_FEEDBACK;
    pare_status st = cli_only(c, "stored", feedback, "--method feedback");
    if (!st) st = cli_only(c, "biases", !feedback, "--method best or block");
    if (!st)
        st = cli_only(c, "scale", !o->cut.strict, "tickets without --strict, whose scale is 1");
    if (!st && o->cut.stored > 0)
        st = cli_only(c, "hidden", false, "--bits, which --stored takes too");
    if (st) return st;
    if (o->scale > 0) {
        int e;
        if (frexp(o->scale, &e) != 0.5)
            return pare_fail(&c->err, PARE_ERR_USAGE,
                             "--scale %g is not a power of two; give 0.25, 0.5, 1, 2, ...",
                             o->scale);
        o->cut.exponent = e - 1;
    }
    if (o->cut.hidden && o->cut.bits)
        return pare_fail(
            &c->err, PARE_ERR_USAGE,
            "--hidden and --bits both set the number of hidden units; give one of them");
    if (o->cut.stored > 0 && !o->cut.hidden && !o->cut.bits) o->cut.bits = TICKET_STORED_BITS;
    if (!o->cut.hidden && !o->cut.bits && !isfinite(o->r.max_error))
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "the size of the ticket is missing: give --bits B (--bits 14 is a start), "
                         "--method feedback --stored R, --hidden N or --max-error E");
    return PARE_OK;
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
        if (!st) st = pare_outputs_compare(&bound, m, g, &o->d.held.set, false, &c->exec, &c->err);
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
                     "no ticket of up to %d bits a weight is proven to stay within --max-error %g; "
                     "nothing was written",
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
        cli_note(
            c,
            "%zu of %zu matrices have weights that the random products cannot reach; more bits "
            "or a larger --scale help",
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
    o->r.output_error = o->error;
    o->r.error_inputs = cut_error_inputs(&o->d);
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
    pare_status st = reduce_split_applies(c, m);
    if (!st) st = load_data(c, o, m);
    const bool search = !o->cut.hidden && !o->cut.bits;
    if (search) cli_phase(c, "find the number of bits", 60);
    if (!st && search) st = search_bits(c, o, m);
    cli_phase(c, NULL, search ? 15 : 50);
    if (!st) st = make(c, o, &small, m);
    if (!st) st = keep_report(c, &o->report);
    if (!st) warn_of_reach(c, o);
    cli_phase(c, NULL, search ? 20 : 44);
    if (!st) st = reduce_publish(c, &o->r, m, &small, &o->d.held, &pare_ticket_prover);
    o->r.held_out = o->d.apart;
    if (!st) st = reduce_compare(c, &o->r, m, &o->d.held);
    if (!st) st = beside(c, o, m);
    pare_model_free(small);
    return st;
}

static const char *const mode_help[] = {"whichever takes fewer bytes",
                                        "every matrix by itself; any model",
                                        "the products query-key and value-output of each head, and "
                                        "ReLU layers as parts of a random ReLU "
                                        "network (Otsuka 2025); no rotary positions",
                                        NULL};
static const char *const method_help[] = {
    "random products are chosen and shared where they help most",
    "every entry chooses from its own block of random products (Otsuka 2025)",
    "blocks; later entries correct the errors of earlier ones on --data", NULL};
static const char *const coding_help[] = {"one bit for each random product",
                                          "masks packed by an entropy code: smaller files", NULL};

int cmd_ticket(int argc, char **argv)
{
    ticket_opts o = {.cut = PARE_TICKET_OPTS, .coding = PARE_CODING_BRIDGE};
    o.cut.bits = 0;
    o.r.max_error = INFINITY;
    o.r.output_error = NAN;
    char usual[64];
    snprintf(usual, sizeof usual, "%d random inputs", CLI_RANDOM_INPUTS);
    opt data = opt_data(
        &o.r.data,
        "inputs that the ticket is proven on; --method feedback fits it to a part of them", usual);
    data.group = "Data";
    /* clang-format off */
    const opt own[] = {
        {.name = "bits", .kind = OPT_SIZE, .to = &o.cut.bits, .metavar = "B", .group = "Size", .min = 1, .max = PARE_TICKET_MOST_BITS,
         .unset = "with --max-error: the fewest that meet it",
         .hint = "for a fraction of bits stored per weight use --method feedback --bits B --stored R",
         .help = "random products that each weight is chosen from; about as many bits are stored for it"},
        {.name = "stored", .kind = OPT_REAL, .to = &o.cut.stored, .metavar = "R", .low = 0.01, .high = PARE_TICKET_STORED_BITS,
         .unset = "as many as it takes", .help = "bits stored for a weight on average, with --method feedback"},
        {.name = "hidden", .kind = OPT_SIZE, .to = &o.cut.hidden, .metavar = "N", .min = 1, .max = TICKET_MOST, .rare = true,
         .unset = "B times the smaller side of the matrix", .help = "hidden units of the random network behind each matrix"},
        REDUCE_MAX_ERROR(o.r.max_error, "; without a size: find the fewest bits within E"),
        data,
        opt_split(&o.split),
        {.name = "method", .kind = OPT_CHOICE, .to = &o.method, .metavar = "W", .group = "How", .choices = pare_ticket_method_names,
         .choice_help = method_help, .help = "how the masks are chosen"},
        {.name = "mode", .kind = OPT_CHOICE, .to = &o.mode, .metavar = "W", .choices = pare_ticket_mode_names, .rare = true,
         .choice_help = mode_help, .help = "what becomes a part of the random network"},
        {.name = "biases", .kind = OPT_FLAG, .to = &o.cut.biases, .rare = true,
         .help = "take biases from the random network as well; they are stored as numbers otherwise"},
        {.name = "scale", .kind = OPT_REAL, .to = &o.scale, .metavar = "S", .low = 0x1p-64, .high = 0x1p64, .rare = true,
         .unset = "chosen for each matrix", .help = "scale of the random weights, a power of two"},
        {.name = "strict", .kind = OPT_FLAG, .to = &o.cut.strict, .rare = true,
         .help = "draw random weights at scale 1, as the theorems have it"},
        {.name = "coding", .kind = OPT_CHOICE, .to = &o.coding, .metavar = "W", .choices = pare_coding_names, .rare = true,
         .choice_help = coding_help, .help = "how masks are stored"},
        {.name = "required", .kind = OPT_TEXT, .to = &o.required, .metavar = "EPS,P", .group = "Theory", .rare = true, .unset = "no",
         .help = "write no ticket; print how wide a random network must be so that all errors are below EPS with probability 1 - P"},
    };
    /* clang-format on */
    static const char *const operands[] = {"MODEL", NULL};
    const opt_spec spec = {
        .command = "ticket",
        .args = "MODEL --bits B [--data FILE] -o OUT",
        .about = "Stores weights as a random seed and bit masks and certifies what that costs.\n"
                 "The result loads and runs like any model.",
        .examples = {"ticket model.safetensors --bits 14 -o model.ticket",
                     "ticket gpt2/ --data text.txt --method feedback --stored 4 -o gpt2.ticket"},
        .seeded = true,
        .own = own,
        .nown = sizeof own / sizeof *own,
        .operands = operands,
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MAY_OUT, REDUCE_OUT_HELP, argc, argv, &rc)) return rc;
    if (o.required) return cli_finish(&c, ticket_required(&c, &o));
    if (!c.out)
        return cli_finish(
            &c, pare_fail(&c.err, PARE_ERR_USAGE, "-o FILE is missing: say where the ticket goes"));
    const reduce_steps steps = {settle, cut, show_ticket, show_ticket_json};
    return cli_finish(&c, reduce_run(&c, &o.r, &steps, &o));
}
