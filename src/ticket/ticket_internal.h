/* ticket_internal.h - a model as a seed and masks: a part of a random network that computes almost
 * what the model does (strong lottery tickets; docs/ticket.md).
 *
 *   pare_ticket_opts o = PARE_TICKET_OPTS_DEFAULT;
 *   o.bits = 12;                                  // stored mask bits for a weight
 *   st = pare_ticket(&small, &report, model, &o, NULL, &err);
 *   st = pare_model_save(small, "model.ticket", false, NULL, &err);   // loads like any model
 *
 * Every matrix becomes a product of two masked random ones; what is stored of it is the seed and
 * the masks. Gains stay numbers, and so do biases unless they are asked for. */
#ifndef PARE_TICKET_TICKET_INTERNAL_H
#define PARE_TICKET_TICKET_INTERNAL_H
#include <pare/ticket.h>

/* The report lives in the output model's arena. PARE_ERR_INPUT names the tensor that cannot be a
 * ticket, and why. `in` is not changed and need not outlive *out; caller frees *out with
 * pare_model_free. Same seed, same bytes, for any number of threads. */
PARE_MUST_USE pare_status pare_ticket(pare_model **out, pare_ticket_report *report,
                                      const pare_model *in, const pare_ticket_opts *opts,
                                      const pare_exec *exec, pare_err *err);

/* What a round-to-nearest quantiser with one scale for each matrix does with so many bytes: the
 * same model, whose tickets' matrices are rounded to so many levels as fit the bytes. `fit` (may be
 * NULL): with the feedback of PARE_TICKET_FEEDBACK. */
PARE_MUST_USE pare_status pare_ticket_rounded(pare_model **out, double *bits, const pare_model *in,
                                              const pare_ticket_report *of, const pare_inputs *fit,
                                              const pare_exec *exec, pare_err *err);
#endif
