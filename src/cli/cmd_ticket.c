/* cmd_ticket.c - pare ticket: a model as a seed and masks, with its certificate. */
#include "show_ticket.h"

#include <math.h>

enum {
    TICKET_MOST = 1u << 20,
    TICKET_STORED_BITS = 12 /* with --stored */
};

/* ---- options ------------------------------------------------------------------------------- */

static pare_status check_options(cli *c, void *self)
{
    ticket_opts *const o = self;
    pare_ticket_opts *const t = &o->r.o.ticket;
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
    ticket_opts o = {.r.o = PARE_REDUCE_OPTS_DEFAULT(PARE_REDUCE_TICKET),
                     .coding = PARE_CODING_BRIDGE};
    pare_ticket_opts *const t = &o.r.o.ticket;
    t->bits = 0;
    char usual[64];
    snprintf(usual, sizeof usual, "%d random inputs", PARE_RANDOM_INPUTS);
    opt data = opt_data(
        &o.r.o.data,
        "inputs that the ticket is proven on; --method feedback fits it to a part of them", usual);
    data.group = "Data";
    /* clang-format off */
    const opt own[] = {
        {.name = "bits", .kind = OPT_SIZE, .to = &t->bits, .metavar = "B", .group = "Size", .min = 1, .max = PARE_TICKET_MOST_BITS,
         .unset = "with --max-error: the fewest that meet it",
         .hint = "for a fraction of bits stored per weight use --method feedback --bits B --stored R",
         .help = "random products that each weight is chosen from; about as many bits are stored for it"},
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
        {.name = "method", .kind = OPT_CHOICE, .to = &o.method, .metavar = "W", .group = "How", .choices = pare_ticket_method_names,
         .choice_help = method_help, .help = "how the masks are chosen"},
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
        .about = "Stores weights as a random seed and bit masks and certifies what that costs.\n"
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
    const reduce_steps steps = {check_options, reduce_split_applies, show_ticket, show_ticket_json};
    return cli_finish(&c, reduce_run(&c, &o.r, &steps, &o));
}
