/* pare/pare.h - everything, and a complete program: load a model, cut it, verify the certificate.
 *
 *     #include <pare/pare.h>
 *
 *     int main(int argc, char **argv)
 *     {
 *         if (argc != 4) {
 *             fprintf(stderr, "usage: %s MODEL DATA OUT\n", argv[0]);
 *             return 1;
 *         }
 *         pare_err err = {0};
 *         pare_model *m = NULL;
 *         pare_arena *a = pare_arena_new();
 *         pare_reduction r = {0};
 *         pare_reduce_opts o = PARE_REDUCE_OPTS_DEFAULT(PARE_REDUCE_WIDTH);
 *         o.from = argv[1], o.data = argv[2], o.to = argv[3];
 *         o.width.keep = 0.5;
 *         pare_status st = a ? pare_model_load(&m, argv[1], &err) : PARE_ERR_MEMORY;
 *         if (!st) st = pare_reduce(&r, a, m, &o, NULL, &err);
 *         if (!st) st = pare_verify_file(argv[3], NULL, &err);
 *         char bound[40]; // rounded up, as a bound must be
 *         if (st)
 *             fprintf(stderr, "%s\n", err.msg);
 *         else
 *             printf("%llu -> %llu bytes; no output moves by more than %s\n",
 *                    (unsigned long long)r.before.file_bytes,
 *                    (unsigned long long)r.after.file_bytes,
 *                    pare_ub_format(bound, pare_ub_exact(r.cert.proven), 4));
 *         pare_model_free(m);
 *         pare_arena_free(a);
 *         return pare_exit_code(st);
 *     }
 *
 *     cc -std=c17 first.c $(pkg-config --cflags --libs pare) \
 *         -Wl,-rpath,$(pkg-config --variable=libdir pare)
 *
 * Three tiers:
 *   simple     load, run, generate, cut, verify, export: base.h model.h run.h cert.h cut.h, and one
 *              header for each cut: fold.h width.h depth.h ticket.h quant.h
 *   advanced   data sets, training, engines with few tokens, plans over all cuts:
 *              data.h train.h length.h plan.h
 *   expert     linear algebra with bounds, attention kernels: linalg.h attention.h
 *
 * Ownership: results belong to the caller. They are in the caller's arena, for as long as that
 * lives, or are freed with the function that the comment names. A model is freed with
 * pare_model_free; what was made from it (a clone, a cut) may outlive it. The lists in the report
 * of one cut (pare_width, pare_depth) are the only results that live in another result: in the
 * arena of the model that is returned with them. Arguments are borrowed for the call unless the
 * comment says for how long.
 *
 * Options: pare_X_opts, and PARE_X_OPTS_DEFAULT to begin with.
 *
 * Nothing here prints, exits, reads the environment or keeps state between calls, with three
 * exceptions: pare_bar_show draws a progress bar into a FILE of yours; a failed PARE_ASSERT (a
 * fault in the calling program or in pare) says where on stderr and aborts; OpenBLAS is set to one
 * thread at the first product, because pare splits the work itself.
 *
 * C++ includes this header, not the others one by one: it gives them their C names. */
#ifndef PARE_PARE_H
#define PARE_PARE_H

#ifdef __cplusplus
extern "C" {
#endif

#include <pare/base.h>
#include <pare/linalg.h>
#include <pare/attention.h>
#include <pare/model.h>
#include <pare/run.h>
#include <pare/data.h>
#include <pare/cert.h>
#include <pare/fold.h>
#include <pare/width.h>
#include <pare/depth.h>
#include <pare/ticket.h>
#include <pare/quant.h>
#include <pare/length.h>
#include <pare/train.h>
#include <pare/cut.h>
#include <pare/plan.h>

const char *pare_version(void); /* "0.2.0" */

#ifdef __cplusplus
}
#endif
#endif
