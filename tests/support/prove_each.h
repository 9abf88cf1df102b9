/* prove_each.h - what is proven of each input by itself, for tests. */
#ifndef PARE_TEST_PROVE_EACH_H
#define PARE_TEST_PROVE_EACH_H
#include "cert/conformal.h"
#include "cert/outputs.h"
#include <string.h>

/* The bounds on |f - g| of each input: pare_draw_count of them. */
static inline pare_status prove_each(double *each, const pare_model *f, const pare_model *g,
                                     const pare_inputs *set, pare_err *err)
{
    pare_output_bound all;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    const pare_status st = pare_outputs_compare(&all, a, f, g, set, false, NULL, err);
    if (st == PARE_OK) memcpy(each, all.each->apart, all.each->inputs * sizeof *each);
    pare_arena_free(a);
    return st;
}

/* The statements about new inputs, from two models and held-out inputs. */
static inline pare_status add_new_inputs(pare_cert *cert, pare_arena *a, const pare_data_ref *data,
                                         const pare_model *f, const pare_model *g,
                                         const pare_inputs *set, pare_err *err)
{
    pare_output_bound all = {0};
    const pare_status st =
        set->n ? pare_outputs_compare(&all, a, f, g, set, false, NULL, err) : PARE_OK;
    return st ? st : pare_add_new_inputs(cert, a, data, set, all.each, err);
}
#endif
