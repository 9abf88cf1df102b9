/* cmd_quant.c - pare quant: weights as integers of few bits, with the certificate. */
#include "quant_compare.h"
#include "show_quant.h"

#include <math.h>
#include <string.h>

typedef struct quant_opts {
    size_t method;
    const char *compare;
    pare_rivals_opts rivals;
    reduction r;
} quant_opts;

/* ---- options ------------------------------------------------------------------------------- */

static pare_status check_options(cli *c, void *self)
{
    quant_opts *const o = self;
    pare_quant_opts *const q = &o->r.o.quant;
    q->method = (pare_quant_method)o->method;
    const bool groups = q->method == PARE_QUANT_RTN || q->method == PARE_QUANT_GPTQ;
    const cli_rule rules[] = {{"group,affine", groups, "--method rtn and gptq"},
                              {"state-bits", q->method == PARE_QUANT_TRELLIS, "--method trellis"},
                              {0}};
    const pare_status st = cli_check_rules(c, rules);
    if (st) return st;
    if (!groups) q->group = 0, q->affine = false;
    if (q->max_bytes && isfinite(o->r.o.max_error))
        return cli_usage_error(
            c, "--max-bytes and --max-error both set the number of bits; give one of them");
    if (q->method == PARE_QUANT_GPTQ && !o->r.o.data) {
        cli_note(c, "without --data every error weighs the same, and gptq is rtn");
        q->method = PARE_QUANT_RTN;
    }
    if (pare_is_dir(o->r.o.from))
        cli_note(c, "%s becomes a pare file: no loader of Hugging Face folders reads %s", c->out,
                 groups                            ? "its groups of integers"
                 : q->method == PARE_QUANT_TRELLIS ? "paths through random tables"
                                                   : "its blocks of seeds");
    return PARE_OK;
}

/* ---- results ------------------------------------------------------------------------------- */

static void print_text(const cli *c, const void *self)
{
    const quant_opts *const o = self;
    show_quant(c, &o->r);
}

static pare_status print_json(cli *c, const void *self)
{
    const quant_opts *const o = self;
    return show_quant_json(c, &o->r);
}

static pare_status compare(cli *c, quant_opts *o)
{
    if (o->r.o.quant.bits > 0) o->rivals.bits = o->r.o.quant.bits;
    o->rivals.data = o->r.o.data;
    o->rivals.column = o->r.o.column;
    o->rivals.fit_inputs = o->r.o.fit_inputs;
    o->rivals.fit_tokens = o->r.o.fit_tokens;
    o->rivals.seed = c->seed;
    if (strcmp(o->compare, "all") != 0) o->rivals.methods = o->compare;
    return quant_compare(c, &o->rivals);
}

/* ---- the command --------------------------------------------------------------------------- */

static const char *const method_help[] = {
    "each weight becomes the nearest integer; scales have the least error on --data",
    "later weights of a row make good for the errors of earlier ones on --data",
    "each weight is read along a path through a table of random numbers, in rotated coordinates "
    "and "
    "with the errors made good as in gptq: a ticket; stored are the seed, a path of B bits a "
    "weight "
    "and one scale for each matrix (for each row of embeddings): 0.001 to 0.05 bits a weight "
    "besides",
    "for comparison with the others (SeedLM): each block of weights is a combination of "
    "pseudorandom columns, stored as a seed and coefficients of 4 bits; reads no data",
    NULL};

int cmd_quant(int argc, char **argv)
{
    quant_opts o = {.rivals = PARE_RIVALS_OPTS_DEFAULT,
                    .r.o = PARE_REDUCE_OPTS_DEFAULT(PARE_REDUCE_QUANT)};
    pare_reduce_opts *const r = &o.r.o;
    pare_quant_opts *const q = &r->quant;
    o.method = q->method;
    q->bits = 0;
    char usual[64];
    snprintf(usual, sizeof usual, "%d random inputs", PARE_RANDOM_INPUTS);
    opt data = opt_data(
        &r->data, "inputs that weight the errors (a part of them) and that the result is proven on",
        usual);
    data.group = "Data";
    /* clang-format off */
    const opt own[] = {
        {.name = "bits", .kind = OPT_REAL, .to = &q->bits, .metavar = "B", .group = "Size", .low = PARE_QUANT_LEAST_PATH, .high = PARE_QUANT_MOST_BITS,
         .unset = "8, of trellis and seedlm 6; with --max-bytes or --max-error: chosen",
         .help = "bits of a weight: 2 to 8; of --method trellis 1.5 to 6 in eighths, e.g. 2.125, of seedlm 2 to 6; scales are stored besides, 16 bits for each group"},
        {.name = "embedding-bits", .kind = OPT_REAL, .to = &q->embedding_bits, .metavar = "B", .low = PARE_QUANT_LEAST_PATH, .high = PARE_QUANT_MOST_BITS,
         .unset = "as --bits", .help = "bits of a weight of embeddings, positions and the output head"},
        {.name = "group", .kind = OPT_SIZE, .to = &q->group, .metavar = "G", .max = REDUCE_MOST,
         .help = "weights of a row that share a scale; 0: the whole row"},
        {.name = "affine", .kind = OPT_FLAG, .to = &q->affine,
         .help = "store an offset for every group as well: another 16 bits"},
        {.name = "max-bytes", .kind = OPT_SIZE, .to = &q->max_bytes, .metavar = "B", .unset = "any", .min = 1, .max = SIZE_MAX,
         .help = "size of the file: more bits for the matrices that need them; exit 3 if even the fewest bits are too many"},
        REDUCE_MAX_ERROR(r->max_error, "; without --bits: find the fewest bits within E"),
        REDUCE_DTYPE(o.r.dtype),
        REDUCE_ALLOW_LARGER(r->allow_larger),
        {.name = "method", .kind = OPT_CHOICE, .to = &o.method, .metavar = "W", .group = "How", .choices = pare_quant_method_names,
         .choice_help = method_help, .help = "how weights become bits"},
        {.name = "state-bits", .kind = OPT_SIZE, .to = &q->state_bits, .metavar = "L", .unset = "15", .min = PARE_QUANT_LEAST_STATE, .max = PARE_QUANT_MOST_STATE, .rare = true,
         .help = "with --method trellis: paths through 2^L states; one bit less takes half the time"},
        data,
        REDUCE_HELDOUT(r->heldout, REDUCE_USUAL_HELDOUT),
        REDUCE_PROVE(r->prove),
        REDUCE_TOKENS(r->proven_tokens),
        opt_split(&r->split),
        opt_column(&r->column),
        REDUCE_WINDOWS(r->fit_inputs),
        REDUCE_FIT_TOKENS(r->fit_tokens),
        {.name = "compare", .kind = OPT_TEXT, .to = &o.compare, .metavar = "LIST", .group = "Comparison", .unset = "no",
         .help = "write nothing; print what methods leave of the model at --bits B stored bits a weight (4.25): all, or some of rtn,gptq,seedlm,masks,trellis (masks, those of pare ticket, take longest)"},
        {.name = "other", .kind = OPT_TEXT, .to = &o.rivals.other, .metavar = "FILE", .unset = "none",
         .help = "with --compare: inputs of another domain, to measure on as well"},
    };
    /* clang-format on */
    const opt_spec spec = {
        .command = "quant",
        .args = "MODEL --bits B [--data FILE] -o OUT",
        .about = "Stores weights in 1.5 to 8 bits each and certifies what that costs.\n"
                 "The result loads and runs like any model.",
        .examples = {"quant minilm/ --pool mean --normalize --bits 4 --data sentences.txt -o "
                     "minilm4.safetensors",
                     "quant gpt2/ --data text.txt --max-bytes 80M -o gpt2.safetensors"},
        .seeded = true,
        OPT_ROWS(own),
        .operands = (const char *const[]){"MODEL", NULL},
    };
    cli c;
    int rc;
    if (!cli_start(&c, &spec, CLI_MAY_OUT, REDUCE_OUT_HELP, argc, argv, &rc)) return rc;
    if (o.compare) return cli_finish(&c, compare(&c, &o));
    static const reduce_steps steps = {check_options, reduce_split_applies, print_text, print_json};
    pare_status st = cli_only(&c, "other", false, "--compare");
    if (!st && !c.out) st = cli_usage_error(&c, "-o FILE is missing: " REDUCE_OUT_HELP);
    return cli_finish(&c, st ? st : reduce_run(&c, &o.r, &steps, &o));
}
