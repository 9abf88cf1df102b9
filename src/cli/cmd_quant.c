/* cmd_quant.c - pare quant: weights as integers of few bits, with the certificate. */
#include "reduce_command.h"
#include "show_cut.h"

#include <math.h>

typedef struct quant_opts {
    size_t method;
    reduction r;
} quant_opts;

/* ---- options ------------------------------------------------------------------------------- */

static pare_status check_options(cli *c, void *self)
{
    quant_opts *const o = self;
    pare_quant_opts *const q = &o->r.o.quant;
    q->method = (pare_quant_method)o->method;
    if (q->max_bytes && isfinite(o->r.o.max_error))
        return cli_usage_error(
            c, "--max-bytes and --max-error both set the number of bits; give one of them");
    if (q->method == PARE_QUANT_GPTQ && !o->r.o.data) {
        cli_note(c, "without --data every error weighs the same, and gptq is rtn");
        q->method = PARE_QUANT_RTN;
    }
    if (pare_is_dir(o->r.o.from))
        cli_note(c,
                 "%s becomes a pare file: no loader of Hugging Face folders reads its groups of "
                 "integers",
                 c->out);
    return PARE_OK;
}

/* ---- results ------------------------------------------------------------------------------- */

static void print_text(const cli *c, const void *self)
{
    const quant_opts *const o = self;
    const pare_quant_report *const r = &o->r.r.quant;
    const pare_quant_opts *const made = &o->r.r.quant_made;
    const double all = (double)(r->weights + r->numbers);
    const uint64_t bytes = r->bytes + r->number_bytes;
    char n[32], t[32], f[32];
    show_results(c, &o->r.r);
    out_row("cut", "%zu weight matrices are stored as integers with scales (%s%s)", r->n,
            pare_quant_method_names[made->method], made->affine ? ", affine" : "");
    if (r->weights)
        out_row("", "%.4g bits a weight, %.4g with the %s numbers that are stored as they are",
                8 * (double)r->bytes / (double)r->weights, 8 * (double)bytes / all,
                out_count(n, r->numbers));
    out_row("", "the weights take %s, %.3g %% of the input's %s", show_bytes(t, bytes),
            100 * (double)bytes / (double)o->r.r.before.size.bytes,
            show_bytes(f, o->r.r.before.size.bytes));
    if (c->verbose) {
        out_line("  %-28s %-12s %4s %6s %10s %10s", "matrix", "shape", "bits", "group", "error",
                 "outputs");
        for (size_t i = 0; i < r->n; i++) {
            const pare_quant_matrix *const m = &r->matrix[i];
            char shape[32], outputs[32] = "";
            snprintf(shape, sizeof shape, "%zux%zu", m->rows, m->cols);
            if (m->measured) snprintf(outputs, sizeof outputs, "%.3e", m->output_error);
            out_line("  %-28s %-12s %4u %6zu %10.3e %10s", m->name, shape, m->bits, m->group,
                     m->error, outputs);
        }
    }
    show_end(c, &o->r.r);
}

static bool json_matrices(cJSON *to, const pare_quant_report *r)
{
    cJSON *const list = pare_json_add_array(to, "matrices");
    for (size_t i = 0; list && i < r->n; i++) {
        const pare_quant_matrix *const m = &r->matrix[i];
        cJSON *const one = pare_json_add_object(list, NULL);
        if (!one ||
            !pare_json_add_values(one,
                                  "name:s rows:z cols:z bits:z group:z bytes:z "
                                  "relative_error:g relative_output_error:N",
                                  m->name, m->rows, m->cols, (size_t)m->bits, m->group, m->bytes,
                                  m->error, m->measured ? m->output_error : (double)NAN))
            return false;
    }
    return list;
}

static pare_status print_json(cli *c, const void *self)
{
    const quant_opts *const o = self;
    const pare_quant_report *const r = &o->r.r.quant;
    const pare_quant_opts *const made = &o->r.r.quant_made;
    cJSON *const root = out_json_begin(c);
    bool ok = reduce_json_front(root, &o->r.r);
    cJSON *const to = ok ? pare_json_add_object(root, "quant") : NULL;
    ok = to &&
         pare_json_add_values(to,
                              "method:s bits:z embedding_bits:z group:z affine:b weights:g "
                              "quantized_bytes:g number_bytes:g relative_error:g",
                              pare_quant_method_names[made->method], made->bits,
                              made->embedding_bits, made->group, made->affine, (double)r->weights,
                              (double)r->bytes, (double)r->number_bytes, o->r.r.output_error) &&
         json_matrices(to, r);
    return out_json(c, root, ok && reduce_json_end(root, &o->r.r));
}

/* ---- the command --------------------------------------------------------------------------- */

static const char *const method_help[] = {
    "each weight becomes the nearest integer; scales have the least error on --data",
    "later weights of a row make good for the errors of earlier ones on --data", NULL};

int cmd_quant(int argc, char **argv)
{
    quant_opts o = {.r.o = PARE_REDUCE_OPTS_DEFAULT(PARE_REDUCE_QUANT)};
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
        {.name = "bits", .kind = OPT_SIZE, .to = &q->bits, .metavar = "B", .group = "Size", .min = PARE_QUANT_LEAST_BITS, .max = PARE_QUANT_MOST_BITS,
         .unset = "8; with --max-bytes or --max-error: chosen", .help = "bits of a weight; scales are stored besides, 16 bits for each group"},
        {.name = "embedding-bits", .kind = OPT_SIZE, .to = &q->embedding_bits, .metavar = "B", .min = PARE_QUANT_LEAST_BITS, .max = PARE_QUANT_MOST_BITS,
         .unset = "as --bits", .help = "bits of a weight of embeddings, positions and the output head"},
        {.name = "group", .kind = OPT_SIZE, .to = &q->group, .metavar = "G", .max = REDUCE_MOST,
         .help = "weights of a row that share a scale; 0: the whole row"},
        {.name = "affine", .kind = OPT_FLAG, .to = &q->affine,
         .help = "store an offset for every group as well: another 16 bits"},
        {.name = "max-bytes", .kind = OPT_SIZE, .to = &q->max_bytes, .metavar = "B", .unset = "any", .min = 1, .max = SIZE_MAX,
         .help = "size of the file: more bits for the matrices that need them; exit 3 if 2 bits are too many"},
        REDUCE_MAX_ERROR(r->max_error, "; without --bits: find the fewest bits within E"),
        REDUCE_DTYPE(o.r.dtype),
        REDUCE_ALLOW_LARGER(r->allow_larger),
        {.name = "method", .kind = OPT_CHOICE, .to = &o.method, .metavar = "W", .group = "How", .choices = pare_quant_method_names,
         .choice_help = method_help, .help = "how the integers are chosen"},
        data,
        REDUCE_HELDOUT(r->heldout, REDUCE_USUAL_HELDOUT),
        REDUCE_PROVE(r->prove),
        REDUCE_TOKENS(r->proven_tokens),
        opt_split(&r->split),
        opt_column(&r->column),
        REDUCE_WINDOWS(r->fit_inputs),
        REDUCE_FIT_TOKENS(r->fit_tokens),
    };
    /* clang-format on */
    const opt_spec spec = {
        .command = "quant",
        .args = "MODEL --bits B [--data FILE] -o OUT",
        .about = "Stores weights as integers of 2 to 8 bits and certifies what that costs.\n"
                 "The result loads and runs like any model.",
        .examples = {"quant minilm/ --pool mean --normalize --bits 4 --data sentences.txt -o "
                     "minilm4.safetensors",
                     "quant gpt2/ --data text.txt --max-bytes 80M -o gpt2.safetensors"},
        .seeded = true,
        OPT_ROWS(own),
        .operands = (const char *const[]){"MODEL", NULL},
    };
    static const reduce_steps steps = {check_options, reduce_split_applies, print_text, print_json};
    return reduce_command(&spec, argc, argv, &o.r, &steps, &o);
}
