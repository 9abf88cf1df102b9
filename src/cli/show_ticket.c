/* What pare ticket prints: sizes, errors, and a quantiser of the same size (show_ticket.h). */
#include "show_ticket.h"

#include <math.h>
#include <string.h>

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
    out_line("  %-28s %-12s %7s %6s %10s %10s %7s", "matrix", "shape", "hidden", "scale",
             "rms error", "largest", "reach");
    for (size_t i = 0; i < r->n; i++) {
        const pare_ticket_matrix *const m = &r->matrix[i];
        char shape[32];
        snprintf(shape, sizeof shape, "%zux%zu", m->rows, m->cols);
        out_line("  %-28s %-12s %7zu %6s%-2d %8.2e %10.2e %7.2f", m->name, shape, m->hidden, "2^",
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

static void print_rows(const cli *c, const pare_model *m, const ticket_opts *o)
{
    const pare_cert *const cert = &o->r.cert;
    const size_t rows = out_rows(m, &o->d.held.set);
    out_row("unchanged", "the largest output of %zu of %zu rows, proven",
            rows - out_rows_changed(cert, rows), rows);
    for (size_t i = 0; i < cert->nclaims; i++) {
        const pare_claim *const t = &cert->claims[i];
        if (t->kind != PARE_APRIORI_OUTPUTS && t->kind != PARE_APRIORI_HIDDEN) continue;
        const char *const words = out_claim_words(c->arena, t);
        out_row("proven", "%s, on %s", words ? words : "", t->domain);
    }
}

void show_ticket(const cli *c, const pare_model *m, const void *self)
{
    const ticket_opts *const o = self;
    print_sizes(o);
    if (c->verbose) print_matrices(&o->report);
    reduce_print(c, &o->r);
    print_rows(c, m, o);
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

pare_status show_ticket_json(cli *c, const void *self)
{
    const ticket_opts *const o = self;
    cJSON *root = out_json_begin(c);
    return out_json(c, root,
                    reduce_json_front(root, &o->r) && json_ticket(root, o) &&
                        json_rounded(root, "rounded", &o->plain) &&
                        json_rounded(root, "rounded_with_feedback", &o->fed) &&
                        reduce_json_end(root, &o->r));
}
