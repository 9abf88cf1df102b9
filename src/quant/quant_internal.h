/* quant_internal.h - a model whose matrices are integers with scales: made, and its bits allocated.
 * Private to src/quant and src/plan. */
#ifndef PARE_QUANT_QUANT_INTERNAL_H
#define PARE_QUANT_QUANT_INTERNAL_H
#include <pare/quant.h>

/* The report lives in the output model's arena. `in` is not changed and need not outlive *out;
 * caller frees *out with pare_model_free. Same bytes for any number of threads. */
PARE_MUST_USE pare_status pare_quant(pare_model **out, pare_quant_report *report,
                                     const pare_model *in, const pare_quant_opts *opts,
                                     const pare_exec *exec, pare_err *err);

/* How the matrix of this name is quantized; bits 0: it stays numbers, because they take no more
 * bytes. */
typedef struct quant_choice {
    double bits;
    size_t group;
    size_t bytes;
} quant_choice;
/* What it takes as numbers, in a model of this precision. */
size_t quant_number_bytes(const pare_weight *w, pare_dtype precision);
quant_choice quant_choose(const pare_quant_opts *o, const char *name, const pare_weight *w,
                          size_t number_bytes);
/* The bits a weight that a method can have: least, least + step, .. most. */
typedef struct quant_bits {
    double least, step, most;
} quant_bits;
quant_bits quant_bits_of(pare_quant_method method);
#endif
