/* show_ticket.c - what pare ticket prints: sizes, errors, and a quantizer of the same size
 * (show_ticket.h). */
#include "show_ticket.h"
#include "show_cut.h"

#include <math.h>
#include <string.h>

static void print_quantizer(const char *row, const char *how, const pare_rounded *r)
{
    if (isnan(r->measured)) return;
    out_part("%-13srounding to %.4g bits a weight%s: largest error %.4g", row, r->bits, how,
             r->measured);
    if (r->has_metric)
        out_line(", %s %.6g", show_metric_name(r->metric.metric), r->metric.value);
    else
        out_line(", the outputs change by %.3g %%", 100 * r->error);
}

void show_ticket(const cli *c, const void *self)
{
    const ticket_opts *const o = self;
    const pare_ticket_report *const r = &o->r.r.ticket;
    const pare_rounded *const plain = &o->r.r.rounded;
    const double all = (double)o->r.r.before.size.parameters; /* merged heads have others */
    const uint64_t bytes = r->bytes + r->number_bytes;
    char n[32], t[32], f[32], h[32];
    show_results(c, &o->r.r);
    out_row("cut", "%zu weight matrices are stored as the random seed %llu and bit masks (%s)",
            r->n, (unsigned long long)o->r.r.ticket_made.seed, r->merged ? "merged" : "factored");
    out_row("", "%.4g bits a weight, %.4g with the %s numbers that are stored as they are",
            8 * (double)r->bytes / (double)r->weights, 8 * (double)bytes / all,
            out_count(n, r->numbers));
    if (r->relu_parts + r->other_parts > 0)
        out_row("", "%zu of %zu feed-forward layers come from a ReLU network, %zu are factored",
                r->relu_parts, r->relu_parts + r->other_parts, r->other_parts);
    out_row("", "the weights take %s; as f32 %s (%.3g times as much), as f16 %s (%.3g times)",
            show_bytes(t, bytes), show_bytes(f, (uint64_t)(4 * all)), 4 * all / (double)bytes,
            show_bytes(h, (uint64_t)(2 * all)), 2 * all / (double)bytes);
    /* What plain rounding does in as many bytes. */
    print_quantizer("compare", "", plain);
    print_quantizer(isnan(plain->measured) ? "compare" : "", " with the same error feedback",
                    &o->r.r.rounded_with_feedback);
    if (c->verbose) {
        out_line("  %-28s %-12s %7s %6s %10s %10s %7s", "matrix", "shape", "hidden", "scale",
                 "rms error", "largest", "reach");
        for (size_t i = 0; i < r->n; i++) {
            const pare_ticket_matrix *const m = &r->matrix[i];
            char shape[32];
            snprintf(shape, sizeof shape, "%zux%zu", m->rows, m->cols);
            out_line("  %-28s %-12s %7zu %6s%-2d %8.2e %10.2e %7.2f", m->name, shape, m->hidden,
                     "2^", m->exponent, m->rms, m->largest, m->reach);
        }
    }
    show_end(c, &o->r.r);
}

static bool json_rounded(cJSON *root, const char *name, const pare_rounded *r)
{
    return isnan(r->measured) ||
           pare_json_add_record(root, name, "bits:g measured:g relative_error:g metric:N", r->bits,
                                r->measured, r->error, r->has_metric ? r->metric.value : NAN);
}

pare_status show_ticket_json(cli *c, const void *self)
{
    const ticket_opts *const o = self;
    const pare_ticket_report *const r = &o->r.r.ticket;
    const pare_ticket_opts *const made = &o->r.r.ticket_made;
    cJSON *const root = out_json_begin(c);
    const bool ok =
        reduce_json_front(root, &o->r.r) &&
        pare_json_add_record(
            root, "ticket",
            "mode:s method:s coding:s bits:z hidden:z matrices:z relu_parts:z weights:g "
            "ticket_bytes:g number_bytes:g bits_per_weight:g relative_error:g",
            r->merged ? "merged" : "factored", pare_ticket_method_names[o->method],
            pare_coding_names[o->coding], made->bits, made->hidden, r->n, r->relu_parts,
            (double)r->weights, (double)r->bytes, (double)r->number_bytes,
            8 * (double)r->bytes / (double)r->weights, o->r.r.output_error) &&
        json_rounded(root, "rounded", &o->r.r.rounded) &&
        json_rounded(root, "rounded_with_feedback", &o->r.r.rounded_with_feedback);
    return out_json(c, root, ok && reduce_json_end(root, &o->r.r));
}
