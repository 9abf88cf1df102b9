/* verify.c - proves a quantized model from the two models and the inputs alone: loading it has
 * expanded its integers, so this is a pair of ordinary models. */
#include "cert/conformal.h"
#include "cert/outputs.h"
#include "cert/prove.h"
#include <pare/quant.h>

static pare_status prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                         const pare_model *f, const pare_model *g, const pare_inputs *set,
                         const pare_exec *exec, pare_err *err)
{
    pare_output_bound o;
    again->norm = PARE_NORM_HEADLINE;
    again->domain = pare_domain_text(a, &claimed->data);
    if (!again->domain) return pare_no_memory(err);
    pare_status st = pare_outputs_compare(&o, a, f, g, set, true, exec, err);
    if (!st) st = pare_cert_take_outputs(again, a, &o, err);
    return st ? st : pare_add_new_inputs(again, a, &claimed->data, set, o.each, err);
}

const pare_prover pare_quant_prover = {"quant", prove};
