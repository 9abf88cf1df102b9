/* cmd_ticket.c - pare ticket: a model as a seed and masks, with its certificate. */
#include "show_quant.h"
#include "show_ticket.h"

#include <math.h>

enum {
    TICKET_MOST = 1u << 20,
    TICKET_STORED_BITS = 12,           /* with --stored */
    TRELLIS = PARE_TICKET_FEEDBACK + 1 /* --method: a path in the place of masks */
};
static const char *const method_names[] = {"best", "block", "feedback", "trellis", NULL};

/* ---- options ------------------------------------------------------------------------------- */

/* A ticket by a path: what pare quant --method trellis makes. */
static pare_status check_trellis(cli *c, ticket_opts *o)
{
    static const char *const masks = "--method best, block or feedback, which choose masks";
    const cli_rule rules[] = {{"stored,hidden,mode,biases,scale,strict,coding", false, masks}, {0}};
    const pare_status st = cli_check_rules(c, rules);
    if (st) return st;
    if (!(o->bits > 0))
        return cli_usage_error(c,
                               "--bits is missing: give the bits of the path for each weight, "
                               "%g to %g in eighths",
                               PARE_QUANT_LEAST_PATH, PARE_QUANT_MOST_PATH);
    pare_reduce_opts *const r = &o->r.o;
    const pare_reduce_opts usual = PARE_REDUCE_OPTS_DEFAULT(PARE_REDUCE_QUANT);
    r->kind = usual.kind;
    r->fit_inputs = usual.fit_inputs;
    r->fit_tokens = usual.fit_tokens;
    r->quant = (pare_quant_opts){.method = PARE_QUANT_TRELLIS, .bits = o->bits};
    return PARE_OK;
}

static pare_status check_options(cli *c, void *self)
{
    ticket_opts *const o = self;
    pare_ticket_opts *const t = &o->r.o.ticket;
    if (o->method == TRELLIS) return check_trellis(c, o);
    if (o->bits != floor(o->bits))
        return cli_usage_error(
            c,
            "--bits %g is not a whole number, which --method trellis alone takes; "
            "for a fraction of bits stored per weight there is also --method "
            "feedback --bits B --stored R",
            o->bits);
    t->bits = (size_t)o->bits;
    t->mode = (pare_ticket_mode)o->mode;
    t->method = (pare_ticket_method)o->method;
    t->coding = (pare_coding)o->coding;
    const bool feedback = t->method == PARE_TICKET_FEEDBACK;
    const cli_rule rules[] = {
        {"stored", feedback, "--method feedback"},
        {"biases", !feedback, "--method best or block"},
        {"scale", !t->strict, "tickets without --strict, whose scale is 1"},
        {"hidden", !(t->stored > 0), "--bits, which --stored takes too"},
        {0},
    };
    const pare_status st = cli_check_rules(c, rules);
    if (st) return st;
    if (o->scale > 0) {
        int e;
        if (frexp(o->scale, &e) != 0.5)
            return cli_usage_error(c, "--scale %g is not a power of two; give 0.25, 0.5, 1, 2, ...",
                                   o->scale);
        t->exponent = e - 1;
    }
    if (t->hidden && t->bits)
        return cli_usage_error(
            c, "--hidden and --bits both set the number of hidden units; give one of them");
    if (t->stored > 0 && !t->hidden && !t->bits) t->bits = TICKET_STORED_BITS;
    if (!t->hidden && !t->bits && !isfinite(o->r.o.max_error))
        return cli_usage_error(
            c, "the size of the ticket is missing: give --bits B (--bits 14 is a start), "
               "--method feedback --stored R, --hidden N or --max-error E");
    return PARE_OK;
}

static void print_text(const cli *c, const void *self)
{
    const ticket_opts *const o = self;
    if (o->method == TRELLIS)
        show_quant(c, &o->r);
    else
        show_ticket(c, o);
}

static pare_status print_json(cli *c, const void *self)
{
    const ticket_opts *const o = self;
    return o->method == TRELLIS ? show_quant_json(c, &o->r) : show_ticket_json(c, o);
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
    "blocks; later entries correct the errors of earlier ones on --data",
    "a path of B bits a weight through a random table in the place of masks, as pare quant "
    "--method "
    "trellis: stored are the seed, the path and one scale for each matrix (for each row of "
    "embeddings)",
    NULL};
static const char *const coding_help[] = {"one bit for each random product",
                                          "masks packed by an entropy code: smaller files", NULL};

int cmd_ticket(int argc, char **argv)
{
    ticket_opts o = {.r.o = PARE_REDUCE_OPTS_DEFAULT(PARE_REDUCE_TICKET),
                     .coding = PARE_CODING_BRIDGE};
    pare_ticket_opts *const t = &o.r.o.ticket;
    char usual[64];
    snprintf(usual, sizeof usual, "%d random inputs", PARE_RANDOM_INPUTS);
    opt data = opt_data(
        &o.r.o.data,
        "inputs that the ticket is proven on; --method feedback fits it to a part of them", usual);
    data.group = "Data";
    /* clang-format off */
    const opt own[] = {
        {.name = "bits", .kind = OPT_REAL, .to = &o.bits, .metavar = "B", .group = "Size", .low = 1, .high = PARE_TICKET_MOST_BITS,
         .unset = "with --max-error: the fewest that meet it",
         .help = "random products that each weight is chosen from, a whole number; about as many bits are stored for it; of --method trellis the bits of the path, 1.5 to 6 in eighths"},
        {.name = "stored", .kind = OPT_REAL, .to = &t->stored, .metavar = "R", .low = 0.01, .high = PARE_TICKET_STORED_BITS,
         .unset = "as many as it takes", .help = "bits stored for a weight on average, with --method feedback"},
        {.name = "hidden", .kind = OPT_SIZE, .to = &t->hidden, .metavar = "N", .min = 1, .max = TICKET_MOST, .rare = true,
         .unset = "B times the smaller side of the matrix", .help = "hidden units of the random network behind each matrix"},
        REDUCE_MAX_ERROR(o.r.o.max_error, "; without a size: find the fewest bits within E"),
        REDUCE_DTYPE(o.r.dtype),
        REDUCE_ALLOW_LARGER(o.r.o.allow_larger),
        data,
        opt_split(&o.r.o.split),
        opt_column(&o.r.o.column),
        REDUCE_PROVE(o.r.o.prove),
        REDUCE_TOKENS(o.r.o.proven_tokens),
        {.name = "method", .kind = OPT_CHOICE, .to = &o.method, .metavar = "W", .group = "How", .choices = method_names,
         .choice_help = method_help, .help = "how the masks, or the path, are chosen"},
        {.name = "mode", .kind = OPT_CHOICE, .to = &o.mode, .metavar = "W", .choices = pare_ticket_mode_names, .rare = true,
         .choice_help = mode_help, .help = "what becomes a part of the random network"},
        {.name = "biases", .kind = OPT_FLAG, .to = &t->biases, .rare = true,
         .help = "take biases from the random network as well; they are stored as numbers otherwise"},
        {.name = "scale", .kind = OPT_REAL, .to = &o.scale, .metavar = "S", .low = 0x1p-64, .high = 0x1p64, .rare = true,
         .unset = "chosen for each matrix", .help = "scale of the random weights, a power of two"},
        {.name = "strict", .kind = OPT_FLAG, .to = &t->strict, .rare = true,
         .help = "draw random weights at scale 1, as the theorems have it"},
        {.name = "coding", .kind = OPT_CHOICE, .to = &o.coding, .metavar = "W", .choices = pare_coding_names, .rare = true,
         .choice_help = coding_help, .help = "how masks are stored"},
        {.name = "required", .kind = OPT_TEXT, .to = &o.required, .metavar = "EPS,P", .group = "Theory", .rare = true, .unset = "no",
         .help = "write no ticket; print how wide a random network must be so that all errors are below EPS with probability 1 - P"},
    };
    /* clang-format on */
    const opt_spec spec = {
        .command = "ticket",
        .args = "MODEL --bits B [--data FILE] -o OUT",
        .about =
            "Stores weights as a random seed and bit masks (or a path through a random table)\n"
            "and certifies what that costs.\n"
            "The result loads and runs like any model.",
        .examples = {"ticket model.safetensors --bits 14 -o model.ticket",
                     "ticket gpt2/ --data text.txt --method feedback --stored 4 -o gpt2.ticket"},
        .seeded = true,
        OPT_ROWS(own),
        .operands = (const char *const[]){"MODEL", NULL},
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MAY_OUT, REDUCE_OUT_HELP, argc, argv, &rc)) return rc;
    if (o.required) return cli_finish(&c, ticket_required(&c, &o));
    if (!c.out)
        return cli_finish(&c, cli_usage_error(&c, "-o FILE is missing: say where the ticket goes"));
    const reduce_steps steps = {check_options, reduce_split_applies, print_text, print_json};
    return cli_finish(&c, reduce_run(&c, &o.r, &steps, &o));
}
