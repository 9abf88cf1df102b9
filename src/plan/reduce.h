/* reduce.h - a reduction from file to file: model + data + options -> smaller model +
 * certificate, and what it is worth.
 *
 *     pare_reduce_opts o = PARE_REDUCE_OPTS_DEFAULT(PARE_REDUCE_WIDTH);
 *     o.from = "model.safetensors", o.to = "small.safetensors", o.data = "text.txt";
 *     o.width.keep = 0.75;
 *     pare_reduce(&r, arena, model, &o, &exec, &err);
 *
 * The inputs are split (pare/cert.h), the model is cut, written, proven and certified
 * (pare/cert.h), and both files are measured. With max_error and no size the smallest cut is
 * searched that is proven to stay within it. Results are in the caller's arena. */
#ifndef PARE_PLAN_REDUCE_H
#define PARE_PLAN_REDUCE_H
#include <pare/cut.h>

/* ---- what a model is, and how large its parts are -------------------------------------------- */

/* Smallest, largest and sum over the places that have this width; n = 0: there is none. */
void pare_model_shape_of(pare_model_shape *out, const pare_model *m);
#endif
