/* pare/pare.h - everything, and a complete program:
 *
 *     #include <pare/pare.h>
 *
 *     int main(int argc, char **argv)
 *     {
 *         if (argc != 2) {
 *             fprintf(stderr, "usage: %s MODEL\n", argv[0]);
 *             return 1;
 *         }
 *         pare_err err = {0};
 *         pare_model *m = NULL;
 *         const pare_status st = pare_model_load(&m, argv[1], &err);
 *         if (st) {
 *             fprintf(stderr, "%s\n", err.msg);
 *             return pare_exit_code(st);
 *         }
 *         const pare_size s = pare_model_size(m, 1, 0);
 *         printf("%zu blocks, %llu parameters\n", m->nblocks, (unsigned long long)s.parameters);
 *         pare_model_free(m);
 *         return 0;
 *     }
 *
 *     cc -std=c17 first.c $(pkg-config --cflags --libs pare) \
 *         -Wl,-rpath,$(pkg-config --variable=libdir pare)
 *
 * Ownership: a model owns its arena; what a function returns in an arena lives as long as that
 * arena; everything else is borrowed. Nothing here prints, exits, reads the environment or keeps
 * state between calls, but for one thing: OpenBLAS is set to one thread at the first product,
 * because pare splits the work itself.
 *
 * C++ includes this header, not the others one by one: it gives them their C names. */
#ifndef PARE_PARE_H
#define PARE_PARE_H

#ifdef __cplusplus
extern "C" {
#endif

#include <pare/alike.h>
#include <pare/array.h>
#include <pare/attention.h>
#include <pare/backend.h>
#include <pare/ball.h>
#include <pare/base.h>
#include <pare/cert.h>
#include <pare/coded.h>
#include <pare/collapse.h>
#include <pare/data.h>
#include <pare/decode.h>
#include <pare/depth.h>
#include <pare/engine.h>
#include <pare/evaluate.h>
#include <pare/exchange.h>
#include <pare/export.h>
#include <pare/fold.h>
#include <pare/forward.h>
#include <pare/frozen.h>
#include <pare/generate.h>
#include <pare/gradient.h>
#include <pare/heldout.h>
#include <pare/init.h>
#include <pare/json.h>
#include <pare/length.h>
#include <pare/length_cert.h>
#include <pare/length_probe.h>
#include <pare/lesson.h>
#include <pare/linalg.h>
#include <pare/model.h>
#include <pare/oracle.h>
#include <pare/outputs.h>
#include <pare/plan.h>
#include <pare/poly.h>
#include <pare/publish.h>
#include <pare/random_model.h>
#include <pare/ranks.h>
#include <pare/reduce.h>
#include <pare/runs.h>
#include <pare/variant.h>
#include <pare/vmath.h>
#include <pare/verify.h>
#include <pare/popup.h>
#include <pare/probe.h>
#include <pare/report.h>
#include <pare/text.h>
#include <pare/source.h>
#include <pare/stopwatch.h>
#include <pare/subset.h>
#include <pare/survey.h>
#include <pare/ticket.h>
#include <pare/ticket_bounds.h>
#include <pare/ticket_fit.h>
#include <pare/train.h>
#include <pare/width.h>
#include <pare/xray.h>

const char *pare_version(void); /* "0.1.0" */

#ifdef __cplusplus
}
#endif
#endif
