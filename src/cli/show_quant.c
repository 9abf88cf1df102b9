/* show_quant.c - what pare quant prints, and pare ticket --method trellis: bits, bytes, errors. */
#include "show_quant.h"
#include "show_cut.h"

#include <math.h>

void show_quant(const cli *c, const reduction *of)
{
    const pare_quant_report *const r = &of->r.quant;
    const pare_quant_opts *const made = &of->r.quant_made;
    const double all = (double)(r->weights + r->numbers);
    const uint64_t bytes = r->bytes + r->number_bytes;
    char n[32], t[32], f[32];
    show_results(c, &of->r);
    if (made->method == PARE_QUANT_TRELLIS)
        out_row("cut",
                "%zu weight matrices are stored as the seed %llu and paths through random tables",
                r->n, (unsigned long long)made->seed);
    else if (made->method == PARE_QUANT_SEEDLM)
        out_row("cut",
                "%zu weight matrices are stored as seeds and coefficients of their blocks (%s)",
                r->n, pare_quant_method_names[made->method]);
    else
        out_row("cut", "%zu weight matrices are stored as integers with scales (%s%s)", r->n,
                pare_quant_method_names[made->method], made->affine ? ", affine" : "");
    if (r->weights)
        out_row("", "%.4g bits a weight, %.4g with the %s numbers that are stored as they are",
                8 * (double)r->bytes / (double)r->weights, 8 * (double)bytes / all,
                out_count(n, r->numbers));
    out_row("", "the weights take %s, %.3g %% of the input's %s", show_bytes(t, bytes),
            100 * (double)bytes / (double)of->r.before.size.bytes,
            show_bytes(f, of->r.before.size.bytes));
    if (c->verbose) {
        out_line("  %-28s %-12s %5s %6s %10s %10s", "matrix", "shape", "bits", "group", "error",
                 "outputs");
        for (size_t i = 0; i < r->n; i++) {
            const pare_quant_matrix *const m = &r->matrix[i];
            char shape[32], outputs[32] = "";
            snprintf(shape, sizeof shape, "%zux%zu", m->rows, m->cols);
            if (m->measured) snprintf(outputs, sizeof outputs, "%.3e", m->output_error);
            out_line("  %-28s %-12s %5g %6zu %10.3e %10s", m->name, shape, m->bits, m->group,
                     m->error, outputs);
        }
    }
    show_end(c, &of->r);
}

static bool json_matrices(cJSON *to, const pare_quant_report *r)
{
    cJSON *const list = pare_json_add_array(to, "matrices");
    for (size_t i = 0; list && i < r->n; i++) {
        const pare_quant_matrix *const m = &r->matrix[i];
        cJSON *const one = pare_json_add_object(list, NULL);
        if (!one || !pare_json_add_values(one,
                                          "name:s rows:z cols:z bits:g group:z bytes:z "
                                          "relative_error:g relative_output_error:N",
                                          m->name, m->rows, m->cols, m->bits, m->group, m->bytes,
                                          m->error, m->measured ? m->output_error : (double)NAN))
            return false;
    }
    return list;
}

pare_status show_quant_json(cli *c, const reduction *of)
{
    const pare_quant_report *const r = &of->r.quant;
    const pare_quant_opts *const made = &of->r.quant_made;
    cJSON *const root = out_json_begin(c);
    bool ok = reduce_json_front(root, &of->r);
    cJSON *const to = ok ? pare_json_add_object(root, "quant") : NULL;
    ok = to &&
         pare_json_add_values(to,
                              "method:s bits:g embedding_bits:g group:z affine:b weights:g "
                              "quantized_bytes:g number_bytes:g relative_error:g",
                              pare_quant_method_names[made->method], made->bits,
                              made->embedding_bits, made->group, made->affine, (double)r->weights,
                              (double)r->bytes, (double)r->number_bytes, of->r.output_error) &&
         json_matrices(to, r);
    return out_json(c, root, ok && reduce_json_end(root, &of->r));
}
